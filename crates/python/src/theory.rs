//! Experiments that queueing theory has an answer for.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use twinnet_fabric::theory::PortExperiment;

/// Runs the experiment at one port that `experiment` (JSON) describes; returns its report as JSON.
#[pyfunction]
pub fn port_experiment(py: Python<'_>, experiment: &str) -> PyResult<String> {
    py.detach(|| {
        let experiment: PortExperiment =
            serde_json::from_str(experiment).map_err(|error| PyValueError::new_err(format!("experiment: {error}")))?;
        let report = experiment.run().map_err(|error| PyValueError::new_err(error.to_string()))?;
        serde_json::to_string(&report).map_err(|error| PyValueError::new_err(error.to_string()))
    })
}
