//! The form that the core gives a description: with it Python's tests hold their own definitions against those here.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use twinnet_apps::AppConfig;
use twinnet_queue::QueueConfig;

/// Reads a queue configuration in the form of the lab protocol, checks it as a lab does, and returns it with every
/// default written out. Raises `ValueError` with the path of what is wrong.
#[pyfunction]
pub fn check_queue(configuration: &str) -> PyResult<String> {
    let config: QueueConfig =
        serde_json::from_str(configuration).map_err(|error| PyValueError::new_err(error.to_string()))?;
    config.validate().map_err(|error| PyValueError::new_err(error.to_string()))?;
    serde_json::to_string(&config).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The contents that a description or a report can have, as JSON: kinds, fields, types, units, defaults and ranges.
#[pyfunction]
pub fn vocabulary() -> String {
    twinnet_lab::vocabulary::vocabulary().to_string()
}

/// As [`check_queue`], for an app. Its `to` is an address, as a lab has put it in.
#[pyfunction]
pub fn check_app(configuration: &str) -> PyResult<String> {
    let config: AppConfig =
        serde_json::from_str(configuration).map_err(|error| PyValueError::new_err(error.to_string()))?;
    config.validate().map_err(|error| PyValueError::new_err(error.to_string()))?;
    serde_json::to_string(&config).map_err(|error| PyValueError::new_err(error.to_string()))
}
