//! Any bytes as a capture: read, analysed, matched. Run with `cargo fuzz run capture` in `crates/capture`.
//!
//! `tests/any_bytes` does the same with bytes from proptest on every `cargo test`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/any_bytes/exercise.rs"]
mod exercise;

fuzz_target!(|bytes: &[u8]| exercise::capture(bytes));
