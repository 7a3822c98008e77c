//! The lab on the virtual clock.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;
use twinnet_lab::network::NetworkSpec;
use twinnet_lab::protocol::Request;
use twinnet_linux::wall::capture::Paths;

use crate::lab::core_error;

/// The interval at which a request that takes long looks for an interruption.
const LOOK: Duration = Duration::from_millis(50);

/// A network of model hosts, in the caller's process. Requests of several threads are answered one after the other.
#[pyclass(frozen, module = "twinnet._core")]
pub struct VirtualLab(Mutex<twinnet_lab::VirtualLab>);

#[pymethods]
impl VirtualLab {
    /// Builds the network that `network` (JSON) describes.
    #[new]
    fn new(py: Python<'_>, network: &str) -> PyResult<Self> {
        py.detach(|| {
            let spec = NetworkSpec::from_text(network).map_err(core_error)?;
            let lab = twinnet_lab::VirtualLab::new(spec, Arc::new(Paths)).map_err(core_error)?;
            Ok(Self(Mutex::new(lab)))
        })
    }

    /// Answers `body` (JSON) with JSON. After `patience_s` seconds an answer that takes virtual time comes early:
    /// it says `"paused": true`, and asking again goes on. An interrupt (Ctrl-C) in the main thread ends the wait.
    #[pyo3(signature = (body, patience_s = None))]
    fn request(&self, py: Python<'_>, body: &str, patience_s: Option<f64>) -> PyResult<String> {
        let limit = match patience_s.map(Duration::try_from_secs_f64) {
            None => None,
            Some(Ok(patience)) => Some(patience),
            Some(Err(error)) => return Err(PyValueError::new_err(format!("patience_s: {error}"))),
        };
        let mut interrupted = None;
        let answer = py.detach(|| {
            let request = Request::read(read(body)?).map_err(core_error)?;
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
            let mut lab = self.lab()?;
            lab.request(request, &mut pause).map_err(core_error)
        })?;
        match interrupted {
            Some(error) => Err(error),
            None => Ok(answer.into_json().to_string()),
        }
    }

    /// The messages to controllers now, in order: the connection's number, whole messages, and why the connection
    /// is over then, if it is.
    fn take_control<'py>(&self, py: Python<'py>) -> PyResult<Vec<ToController<'py>>> {
        let messages = py.detach(|| self.lab().map(|mut lab| lab.take_control()))?;
        let tuple = |message: twinnet_lab::ControlMessage| {
            (message.connection, PyBytes::new(py, &message.bytes), message.ending)
        };
        Ok(messages.into_iter().map(tuple).collect())
    }

    /// The controller at the other end of `connection` says `bytes`.
    fn give_control(&self, py: Python<'_>, connection: u64, bytes: &[u8]) -> PyResult<()> {
        let bytes = bytes.to_vec();
        py.detach(|| self.lab()?.give_control(connection, &bytes).map_err(core_error))
    }
}

type ToController<'py> = (u64, Bound<'py, PyBytes>, Option<String>);

impl VirtualLab {
    /// The lab, unless a panic in another thread has left it in an unknown state: better none than a wrong answer.
    fn lab(&self) -> PyResult<MutexGuard<'_, twinnet_lab::VirtualLab>> {
        self.0.lock().map_err(|_| PyValueError::new_err("the lab has failed: make a new one"))
    }
}

fn read(text: &str) -> PyResult<Value> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("not JSON: {error}")))
}
