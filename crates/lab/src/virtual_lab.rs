//! A lab on the virtual clock: all hosts are models, and time passes only when it is asked to.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{json, Value};
use twinnet_fabric::{DirectionConfig, PortId, Way, World};
use twinnet_packet::Frame;
use twinnet_units::{Duration, Time};

use super::app_requests::{app_numbers, optional_number};
use super::assemble::{assemble, Bodies, RunningNetwork};
use super::capture::{CaptureSettings, CaptureStore};
use super::error::LabError;
use super::model_apps::ModelApps;
use super::network::NetworkSpec;
use super::requests::{self, number, port, schedule_described, text, Answer};
use super::virtual_capture::VirtualCapture;
use super::virtual_control::{ControlMessage, VirtualControl};

/// Events that are handled between two looks at whether the owner wants to pause.
const EVENTS_PER_TURN: usize = 8192;
/// The last moment that a lab can reach: 106 days. Twice that still fits the clock's 64 bits of picoseconds, so that no
/// duration added to a moment can overflow.
const LAST_MOMENT: Time = Time::from_ps(u64::MAX / 2);

/// What lies outside of the fabric: captures, and nothing else.
#[derive(Default)]
struct Outside {
    captures: BTreeMap<u32, (PortId, VirtualCapture)>,
}

impl World for Outside {
    fn deliver(&mut self, _port: PortId, _frame: Box<Frame>, _due: Time) {}

    fn pull(&mut self, _port: PortId) -> Option<Box<Frame>> {
        None
    }

    fn captured(&mut self, port: PortId, way: Way, frame: &Frame, at: Time) {
        for (captured, capture) in self.captures.values_mut() {
            if *captured == port {
                capture.record(way, frame, at);
            }
        }
    }

    fn carrier(&mut self, _port: PortId, _up: bool) {}

    fn reconfigured(&mut self, _port: PortId, _config: &DirectionConfig) {}
}

/// The lab. It answers the requests of docs/reference/lab-protocol.md.
pub struct VirtualLab {
    network: RunningNetwork,
    apps: ModelApps,
    outside: Outside,
    control: VirtualControl,
    next_capture: u32,
    files: Arc<dyn CaptureStore>,
}

impl VirtualLab {
    /// Builds the network that `spec` describes, with models for hosts; `files` has the files of captures.
    ///
    /// # Errors
    /// What is wrong with the description.
    pub fn new(spec: NetworkSpec, files: Arc<dyn CaptureStore>) -> Result<Self, LabError> {
        let mut network = assemble(spec, Bodies::Models)?;
        schedule_described(&mut network)?;
        let (apps, outside, control) = (ModelApps::new(1), Outside::default(), VirtualControl::default());
        Ok(Self { network, apps, outside, control, next_capture: 0, files })
    }

    /// What controllers are to get now, in the order in which they are to get it.
    pub fn take_control(&mut self) -> Vec<ControlMessage> {
        self.control.take(&mut self.network)
    }

    /// The controller at the other end of `connection` says `bytes`.
    ///
    /// # Errors
    /// `UnknownConnection` when it was closed.
    pub fn give_control(&mut self, connection: u64, bytes: &[u8]) -> Result<(), LabError> {
        self.control.give(&mut self.network, connection, bytes, &mut self.outside)
    }

    /// Answers `body`. Where that takes virtual time, `pause` is asked now and then, and `true` makes the answer come early: it then
    /// says `"paused": true`, and asking again goes on. It comes early as well when controllers are to be told something at the moment that
    /// it then is: it says `"controllers": true`.
    ///
    /// # Errors
    /// Refusals, as a lab process gives them.
    pub fn request(&mut self, body: &Value, pause: &mut dyn FnMut() -> bool) -> Answer {
        match body.get("do").and_then(Value::as_str).unwrap_or_default() {
            "now" => Ok(json!({"now_ps": self.now().as_ps()})),
            "advance" => self.advance(body, pause),
            "app.start" => self.apps.start(&mut self.network, body, &mut self.outside),
            "app.stop" => self.apps.stop(&mut self.network, body, &mut self.outside),
            "app.report" => self.apps.report(&self.network, body),
            "app.wait" => self.wait(body, pause),
            "controller.open" => self.control.open(&mut self.network, body),
            "controller.close" => self.control.close(&mut self.network, body),
            "controllers.wait" => self.wait_for_controllers(body, pause),
            "controllers" => Ok(self.control.state(&self.network)),
            "capture.start" => self.start_capture(body),
            "capture.stop" => self.stop_capture(body),
            "fidelity" => Ok(json!({
                "clock": "virtual", "elapsed_ps": self.now().as_ps(), "events": self.network.fabric.events_handled(),
                "trace_hash": format!("{:016x}", self.network.fabric.trace_hash()),
            })),
            "fidelity.reset" | "stop" => Ok(json!({})),
            other => {
                requests::answer(&mut self.network, body, Duration::ZERO, &mut self.outside).unwrap_or_else(|| {
                    let remedy = "real hosts, which the wall clock has, are needed for what concerns programs";
                    Err(LabError::new(
                        "UnknownRequest",
                        format!("a lab on the virtual clock has no request {other:?}"),
                        remedy,
                    ))
                })
            }
        }
    }

    fn now(&self) -> Time {
        self.network.fabric.now()
    }

    fn advance(&mut self, body: &Value, pause: &mut dyn FnMut() -> bool) -> Answer {
        let until = moment(number(body, "until_ps")?)?;
        let mut paused = false;
        while self.network.fabric.advance_some(until, EVENTS_PER_TURN, &mut self.outside) {
            if self.network.fabric.controllers_are_due() {
                break;
            }
            paused = pause();
            if paused {
                break;
            }
        }
        Ok(self.passed(paused))
    }

    /// Lets time pass until apps have finished. When they will never, as no event is left and no time is named, it says so.
    fn wait(&mut self, body: &Value, pause: &mut dyn FnMut() -> bool) -> Answer {
        let mut left_to_finish = app_numbers(body)?;
        self.apps.check_known(&left_to_finish)?;
        let until = optional_number(body, "until_ps")?.map(moment).transpose()?;
        let mut paused = false;
        let finished = loop {
            // What has finished stays so: each app is looked at once, however many there are.
            while left_to_finish.last().is_some_and(|app| self.apps.has_finished(&self.network, *app)) {
                left_to_finish.pop();
            }
            if left_to_finish.is_empty() {
                break true;
            }
            let ended = self.network.fabric.finished_apps();
            let left = self.network.fabric.advance_until_app_finishes(
                until.unwrap_or(LAST_MOMENT),
                EVENTS_PER_TURN,
                &mut self.outside,
            );
            if self.network.fabric.finished_apps() != ended {
                continue;
            }
            if !left || self.network.fabric.controllers_are_due() {
                break false;
            }
            paused = pause();
            if paused {
                break false;
            }
        };
        let mut answer = self.passed(paused);
        answer["finished"] = Value::Bool(finished);
        Ok(answer)
    }

    /// Lets time pass until every named switch has agreed on a version with a controller, and nothing more is on its way between
    /// switches and controllers.
    fn wait_for_controllers(&mut self, body: &Value, pause: &mut dyn FnMut() -> bool) -> Answer {
        let until = moment(number(body, "until_ps")?)?;
        let names = body.get("switches").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let switches = names.map(|name| self.network.switch(name)).collect::<Result<Vec<_>, _>>()?;
        let mut paused = false;
        let served = loop {
            let fabric = &mut self.network.fabric;
            let agreed = |node| fabric.controllers(node).iter().any(|state| state.version.is_some());
            if fabric.control_is_quiet() && switches.iter().all(|node| agreed(*node)) {
                break true;
            }
            if fabric.controllers_are_due() || !fabric.advance_some(until, 1, &mut self.outside) {
                break false;
            }
            paused = pause();
            if paused {
                break false;
            }
        };
        let mut answer = self.passed(paused);
        answer["finished"] = Value::Bool(served);
        Ok(answer)
    }

    /// How far time has come, and why no further.
    fn passed(&self, paused: bool) -> Value {
        let controllers = self.network.fabric.controllers_are_due();
        json!({"now_ps": self.now().as_ps(), "paused": paused, "controllers": controllers})
    }

    fn start_capture(&mut self, body: &Value) -> Answer {
        let name = text(body, "port")?;
        let port = port(&self.network, name)?;
        let path = text(body, "path")?;
        let settings = CaptureSettings::from_request(body)?;
        let capture = VirtualCapture::begin(Arc::clone(&self.files), path, name, settings).map_err(|error| {
            LabError::new("CaptureFailed", format!("{path}: {error}"), "name a file that can be written")
        })?;
        let number = self.next_capture;
        self.next_capture += 1;
        self.outside.captures.insert(number, (port, capture));
        self.network.fabric.set_capture(port, true);
        Ok(json!({"capture": number}))
    }

    fn stop_capture(&mut self, body: &Value) -> Answer {
        let wanted = number(body, "capture")?;
        let found = u32::try_from(wanted).ok().and_then(|wanted| self.outside.captures.remove(&wanted));
        let Some((port, capture)) = found else {
            return Err(LabError::new("UnknownCapture", format!("there is no capture {wanted}"), ""));
        };
        if !self.outside.captures.values().any(|(captured, _)| *captured == port) {
            self.network.fabric.set_capture(port, false);
        }
        Ok(capture.finish())
    }
}

/// A moment that a lab can reach.
fn moment(ps: u64) -> Result<Time, LabError> {
    let moment = Time::from_ps(ps);
    if moment > LAST_MOMENT {
        let message = format!("the moment {ps} ps is past the end of the clock, {} ps", LAST_MOMENT.as_ps());
        return Err(LabError::new("BadRequest", message, "virtual time reaches 106 days"));
    }
    Ok(moment)
}

impl Drop for VirtualLab {
    fn drop(&mut self) {
        // What was captured is in the file even when nobody ended the capture.
        for (_, (_, capture)) in std::mem::take(&mut self.outside.captures) {
            capture.finish();
        }
    }
}
