//! Text to exact integers and back.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use twinnet_units::{Duration, ParseError, Rate, Size};

fn value_error(error: ParseError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A duration such as "5 ms", in picoseconds.
#[pyfunction]
pub fn parse_duration(text: &str) -> PyResult<u64> {
    text.parse::<Duration>().map(Duration::as_ps).map_err(value_error)
}

/// A rate such as "10 Mbit", in bits per second.
#[pyfunction]
pub fn parse_rate(text: &str) -> PyResult<u64> {
    text.parse::<Rate>().map(Rate::as_bps).map_err(value_error)
}

/// A size such as "1500 B", in bytes.
#[pyfunction]
pub fn parse_size(text: &str) -> PyResult<u64> {
    text.parse::<Size>().map(Size::as_bytes).map_err(value_error)
}

/// Picoseconds as text that `parse_duration` reads back.
#[pyfunction]
pub fn format_duration(picoseconds: u64) -> String {
    Duration::from_ps(picoseconds).to_string()
}

/// Bits per second as text that `parse_rate` reads back.
#[pyfunction]
pub fn format_rate(bits_per_second: u64) -> PyResult<String> {
    Rate::from_bps(bits_per_second)
        .map(|rate| rate.to_string())
        .ok_or_else(|| PyValueError::new_err("a rate is above zero"))
}

/// Bytes as text that `parse_size` reads back.
#[pyfunction]
pub fn format_size(bytes: u64) -> String {
    Size::from_bytes(bytes).to_string()
}
