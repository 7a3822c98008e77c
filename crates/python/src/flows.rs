//! Flow syntax, checked without a lab.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use twinnet_switch::Switch;

/// Checks a flow in `ovs-ofctl` syntax.
#[pyfunction]
pub fn check_flow(line: &str) -> PyResult<()> {
    Switch::check_flow(line).map_err(|error| PyValueError::new_err(error.to_string()))
}
