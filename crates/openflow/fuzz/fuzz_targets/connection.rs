//! Any bytes from a connection: messages of both versions, and the stream. Run with `cargo fuzz run connection` in
//! `crates/openflow`.
//!
//! `tests/any_bytes` does the same with bytes from proptest on every `cargo test`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/any_bytes/exercise.rs"]
mod exercise;

fuzz_target!(|bytes: &[u8]| exercise::connection(bytes));
