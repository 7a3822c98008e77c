//! Any bytes as a frame: the flow key, every view, rewriting and cutting. Run with `cargo fuzz run frame` in
//! `crates/packet`.
//!
//! `tests/any_bytes.rs` does the same with bytes from proptest on every `cargo test`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/any_bytes/exercise.rs"]
mod exercise;

fuzz_target!(|bytes: &[u8]| exercise::frame(bytes));
