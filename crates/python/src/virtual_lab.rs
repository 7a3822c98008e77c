//! The lab on the virtual clock.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;
use twinnet_fabric::lab::network::NetworkSpec;
use twinnet_linux::capture::Paths;

use crate::lab::core_error;

/// How often a request that takes long looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(50);

/// A network of model hosts, in the caller's process. Requests of several threads are answered one after the other.
#[pyclass(frozen, module = "twinnet._core")]
pub struct VirtualLab(Mutex<twinnet_fabric::lab::VirtualLab>);

#[pymethods]
impl VirtualLab {
    /// Builds the network that `network` (JSON) describes.
    #[new]
    fn new(py: Python<'_>, network: &str) -> PyResult<Self> {
        py.detach(|| {
            let spec = NetworkSpec::from_text(network).map_err(core_error)?;
            let lab = twinnet_fabric::lab::VirtualLab::new(spec, Arc::new(Paths)).map_err(core_error)?;
            Ok(Self(Mutex::new(lab)))
        })
    }

    /// Answers `body` (JSON) with JSON. After `patience_s` seconds an answer that takes virtual time comes early: it says
    /// `"paused": true`, and asking again goes on. An interrupt (Ctrl-C) in the main thread ends the wait.
    #[pyo3(signature = (body, patience_s = None))]
    fn request(&self, py: Python<'_>, body: &str, patience_s: Option<f64>) -> PyResult<String> {
        let limit = match patience_s.map(Duration::try_from_secs_f64) {
            None => None,
            Some(Ok(patience)) => Some(patience),
            Some(Err(error)) => return Err(PyValueError::new_err(format!("patience_s: {error}"))),
        };
        let mut interrupted = None;
        let answer = py.detach(|| {
            let body = read(body)?;
            let begin = Instant::now();
            let mut looked = begin;
            let mut pause = || {
                let now = Instant::now();
                if now.duration_since(looked) >= LOOK {
                    looked = now;
                    if let Err(error) = Python::attach(|py| py.check_signals()) {
                        interrupted = Some(error);
                        return true;
                    }
                }
                limit.is_some_and(|limit| now.duration_since(begin) >= limit)
            };
            // A panic in another thread has left the lab in an unknown state: better none than a wrong answer.
            let mut lab = self.0.lock().map_err(|_| PyValueError::new_err("the lab has failed: make a new one"))?;
            lab.request(&body, &mut pause).map_err(core_error)
        })?;
        match interrupted {
            Some(error) => Err(error),
            None => Ok(answer.to_string()),
        }
    }
}

fn read(text: &str) -> PyResult<Value> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("not JSON: {error}")))
}
