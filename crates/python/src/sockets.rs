//! Apps on real sockets of the machine itself.

use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Mutex;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{json, Value};
use twinnet_lab::protocol::{Answer, Request};
use twinnet_linux::agent::{Agent, MACHINE};
use twinnet_linux::service::{Call, ErrorName, LabError, Responder, Service};
use twinnet_linux::wall::clock::LabClock;

use crate::lab::core_error;

/// The interval at which a request that takes long looks for an interruption.
const LOOK: Duration = Duration::from_millis(50);

/// A thread that runs apps on sockets of this machine, in the caller's network namespace.
#[pyclass(frozen, module = "twinnet._core")]
pub struct SocketAgent {
    agent: Mutex<Option<Agent>>,
    clock: LabClock,
}

#[pymethods]
impl SocketAgent {
    /// Starts the thread. Its clock shows zero when the machine's monotonic clock shows `zero_ns`.
    #[new]
    #[pyo3(signature = (zero_ns = None))]
    fn new(zero_ns: Option<u64>) -> PyResult<Self> {
        let clock = zero_ns.map_or_else(LabClock::of_machine, LabClock::with_zero);
        let agent = Agent::start_on_machine(clock).map_err(|error| {
            core_error(LabError::new(
                ErrorName::AgentFailed,
                format!("the thread that runs apps cannot start: {error}"),
                "twinnet needs Linux 5.11 or later",
            ))
        })?;
        Ok(Self { agent: Mutex::new(Some(agent)), clock })
    }

    /// The agent's clock in picoseconds, on which all its times stand.
    fn now_ps(&self) -> u64 {
        self.clock.now().as_ps()
    }

    /// Answers `body` (JSON; `app.start`, `app.stop`, `app.report`, `app.wait`) with JSON. The only host is
    /// `"machine"`. An interrupt (Ctrl-C) in the main thread ends the wait.
    fn request(&self, py: Python<'_>, body: &str) -> PyResult<String> {
        let mut body: Value =
            serde_json::from_str(body).map_err(|error| PyValueError::new_err(format!("not JSON: {error}")))?;
        if let Some(fields) = body.as_object_mut().filter(|fields| fields.get("do") == Some(&json!("app.start"))) {
            fields.entry("host").or_insert_with(|| json!(MACHINE));
        }
        let request = Request::read(body).map_err(core_error)?;
        let (sender, answers) = channel();
        let responder = Responder::new(move |answer| {
            // Nobody waits any more where the caller was interrupted.
            let _ = sender.send(answer);
        });
        {
            let agent = self.agent.lock().map_err(|_| PyValueError::new_err("the agent has failed"))?;
            let agent = agent.as_ref().ok_or_else(|| PyValueError::new_err("the agent has ended"))?;
            agent.submit(Call { request, descriptors: Vec::new(), responder });
        }
        let answer: PyResult<Answer> = py.detach(move || loop {
            match answers.recv_timeout(LOOK) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(Err(LabError::new(ErrorName::NoAnswer, "the agent ended before it answered", "")))
                }
            }
        });
        answer?.map(|reply| reply.into_json().to_string()).map_err(core_error)
    }

    /// The time that the thread has used, and the findings about its processor, as JSON.
    fn usage(&self) -> PyResult<String> {
        let agent = self.agent.lock().map_err(|_| PyValueError::new_err("the agent has failed"))?;
        let used = agent.as_ref().map(Agent::cpu).unwrap_or_default();
        Ok(json!({
            "cpu_s": (used.user + used.system).as_secs_f64(),
            "user_s": used.user.as_secs_f64(),
            "waited_s": used.waited.as_secs_f64(),
            "involuntary_switches": used.involuntary_switches,
            "shared": used.shared,
            "realtime": used.realtime,
        })
        .to_string())
    }

    /// How well the thread kept to its timers since its start, as JSON: `agent` of the record of fidelity.
    fn timeliness(&self) -> PyResult<String> {
        let agent = self.agent.lock().map_err(|_| PyValueError::new_err("the agent has failed"))?;
        let kept = agent.as_ref().and_then(Service::timeliness).unwrap_or_default();
        Ok(kept.to_json().to_string())
    }

    /// Ends the thread and closes all sockets.
    fn close(&self, py: Python<'_>) {
        let agent = self.agent.lock().ok().and_then(|mut agent| agent.take());
        py.detach(|| drop(agent));
    }
}
