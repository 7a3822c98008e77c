//! The lab on the virtual clock.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{json, Value};
use twinnet_lab::guest::{Input, News, Stream, TerminalSize};
use twinnet_lab::network::NetworkSpec;
use twinnet_lab::protocol::Request;
use twinnet_linux::guest::{GuestSettings, Machine};
use twinnet_linux::wall::capture::Paths;

use crate::lab::core_error;
use crate::own_code;

/// The interval at which a request that takes long looks for an interruption.
const LOOK: Duration = Duration::from_millis(50);

/// A network on the virtual clock, in the caller's process. Requests of several threads are answered one after the
/// other.
#[pyclass(frozen, module = "twinnet._core")]
pub struct VirtualLab(Mutex<twinnet_lab::VirtualLab>);

#[pymethods]
impl VirtualLab {
    /// Builds the network that `network` (JSON) describes: with models for hosts or, where the settings of a `guest`
    /// (JSON) are given, with real hosts in it. The trace is written into the file `trace`, where one is named.
    #[new]
    #[pyo3(signature = (network, guest = None, trace = None))]
    fn new(py: Python<'_>, network: &str, guest: Option<&str>, trace: Option<&str>) -> PyResult<Self> {
        let mut interrupted = None;
        let lab = py.detach(|| {
            let spec = NetworkSpec::from_text(network).map_err(core_error)?;
            let lab = match guest {
                None => twinnet_lab::VirtualLab::new(spec, Arc::new(Paths)),
                Some(guest) => {
                    let settings: GuestSettings = serde_json::from_str(guest)
                        .map_err(|error| PyValueError::new_err(format!("the guest's settings: {error}")))?;
                    twinnet_lab::VirtualLab::with_guest(spec, Arc::new(Paths), |network| {
                        let mut look = || {
                            interrupted = Python::attach(|py| py.check_signals()).err();
                            interrupted.is_some()
                        };
                        Ok(Box::new(Machine::boot(&settings, network, &mut look)?))
                    })
                }
            };
            let mut lab = lab.map_err(core_error)?;
            trace.map_or(Ok(()), |path| lab.keep_trace(path)).map_err(core_error)?;
            Ok(Self(Mutex::new(lab)))
        });
        interrupted.map_or(lab, Err)
    }

    /// Ends the trace, if one is written.
    fn end_trace(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lab()?.end_trace().map_err(core_error))
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
                own_code::has_failed() || limit.is_some_and(|limit| now.duration_since(begin) >= limit)
            };
            let mut lab = self.lab()?;
            let answer = lab.request(request, &mut pause).map_err(core_error);
            own_code::take_failure().map_or(answer, Err)
        })?;
        match interrupted {
            Some(error) => Err(error),
            None => Ok(answer.into_json().to_string()),
        }
    }

    /// Starts a program as the request `spawn` (JSON) says, which reads what is fed to it if it is `fed`: by a terminal
    /// where the `size` of one is given, in rows and columns. Returns its number at once.
    #[pyo3(signature = (body, fed, size = None))]
    fn spawn(&self, py: Python<'_>, body: &str, fed: bool, size: Option<(u16, u16)>) -> PyResult<String> {
        let input = match size {
            Some((rows, columns)) => Input::Terminal(TerminalSize { rows, columns }),
            None if fed => Input::Fed,
            None => Input::Empty,
        };
        py.detach(|| match Request::read(read(body)?).map_err(core_error)? {
            Request::Spawn(asked) => {
                let answer = self.lab()?.spawn(*asked, input).map_err(core_error)?;
                Ok(answer.into_json().to_string())
            }
            other => Err(PyValueError::new_err(format!("{} starts no program", other.name()))),
        })
    }

    /// Gives the standard input of the program `job` these bytes; `None` closes it.
    #[pyo3(signature = (job, bytes))]
    fn feed(&self, py: Python<'_>, job: u64, bytes: Option<&[u8]>) -> PyResult<()> {
        let bytes = bytes.map(<[u8]>::to_vec);
        py.detach(|| self.lab().map(|mut lab| lab.feed(job, bytes)))
    }

    /// The terminal of the program `job` has another size.
    fn resize(&self, py: Python<'_>, job: u64, rows: u16, columns: u16) -> PyResult<()> {
        py.detach(|| self.lab().map(|mut lab| lab.resize(job, TerminalSize { rows, columns })))
    }

    /// Ends all programs, and the guest that they live in.
    fn end_programs(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lab().map(|mut lab| lab.end_programs()))
    }

    /// What programs have done since it was last asked, in order: the program's number, what it did (`started`,
    /// `refused`, `ended`, as JSON) and what it wrote to the stream 1 or 2.
    fn take_news<'py>(&self, py: Python<'py>) -> PyResult<Vec<OfProgram<'py>>> {
        let news = py.detach(|| self.lab().map(|mut lab| lab.take_news()))?;
        Ok(news.into_iter().map(|one| told(py, one)).collect())
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

type OfProgram<'py> = (u64, Option<String>, u8, Bound<'py, PyBytes>);

fn told(py: Python<'_>, news: News) -> OfProgram<'_> {
    let (job, said) = match news {
        News::Wrote { job, stream, bytes } => {
            let stream = if stream == Stream::Error { 2 } else { 1 };
            return (job, None, stream, PyBytes::new(py, &bytes));
        }
        News::Started { job, pid } => (job, json!({"started": {"pid": pid}})),
        News::Refused { job, error } => (job, json!({"refused": error})),
        News::Ended { job, how } => (job, json!({"ended": how})),
    };
    (job, Some(said.to_string()), 0, PyBytes::new(py, b""))
}

type ToController<'py> = (u64, Bound<'py, PyBytes>, Option<String>);

impl VirtualLab {
    /// The lab, unless a panic in another thread has left it in an unknown state: better none than a wrong answer.
    fn lab(&self) -> PyResult<MutexGuard<'_, twinnet_lab::VirtualLab>> {
        own_code::refuse_while_running()?;
        self.0.lock().map_err(|_| PyValueError::new_err("the lab has failed: make a new one"))
    }
}

fn read(text: &str) -> PyResult<Value> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("not JSON: {error}")))
}
