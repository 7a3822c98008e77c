//! Any bytes as a message between a prober and a listener: `cargo fuzz run bandwidth_message` in `crates/apps`.
//!
//! `tests/any_bytes` does the same with bytes from proptest on every `cargo test`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/any_bytes/exercise.rs"]
mod exercise;

fuzz_target!(|bytes: &[u8]| exercise::bandwidth_message(bytes));
