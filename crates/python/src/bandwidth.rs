//! Estimators of available bandwidth on recorded trains.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use twinnet_apps::{replay_bandwidth as replay, BandwidthMethod, Framing, Layer, Probing, Train};

use crate::own_code;

/// The trains to replay.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    method: BandwidthMethod,
    layer: Layer,
    v6: bool,
    most_payload: u32,
    most_rate_bps: f64,
    seed: u64,
    trains: Vec<Train>,
}

/// The settings with which a method was published, as JSON; `None` for ours.
#[pyfunction]
pub fn published_bandwidth_method(name: &str) -> PyResult<Option<String>> {
    BandwidthMethod::published(name)
        .map(|method| serde_json::to_string(&method).map_err(|error| PyValueError::new_err(error.to_string())))
        .transpose()
}

/// The findings of a method in recorded trains; `request` and the answer are JSON.
#[pyfunction]
pub fn replay_bandwidth(py: Python<'_>, request: &str) -> PyResult<String> {
    let refused = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let request: Request = serde_json::from_str(request).map_err(|error| refused(&error))?;
    let probing = Probing {
        framing: Framing::new(request.layer, request.v6),
        most_payload: request.most_payload,
        most_rate_bps: request.most_rate_bps,
        seed: request.seed,
    };
    let found = py.detach(|| replay(&request.method, probing, &request.trains)).map_err(|error| refused(&error))?;
    if let Some(failure) = own_code::take_failure() {
        return Err(failure);
    }
    serde_json::to_string(&found).map_err(|error| refused(&error))
}
