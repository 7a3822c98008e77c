//! The bindings behind the Python package `twinnet`: newtypes and conversions, nothing else.

use pyo3::prelude::*;

#[pymodule]
mod _core {}
