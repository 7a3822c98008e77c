//! A lab on the virtual clock: all hosts are models, and time passes only when it is asked to.

use std::sync::Arc;

use twinnet_fabric::{DirectionConfig, PortId, Way, World};
use twinnet_packet::Frame;
use twinnet_units::{impossible, Time};

use super::assemble::{assemble, Bodies, RunningNetwork};
use super::capture::{CaptureSettings, CaptureStore, RunningCaptures};
use super::error::LabError;
use super::model_apps::ModelApps;
use super::network::NetworkSpec;
use super::protocol::{Answer, AppWait, CaptureStart, ControllersWait, Passed, Reply, Request};
use super::requests::{self, missing, port, schedule_described};
use super::virtual_capture::VirtualCapture;
use super::virtual_control::{ControlMessage, VirtualControl};

/// Events that are handled between two looks at whether the owner wants to pause.
const EVENTS_PER_TURN: usize = 8192;
/// The last moment that a lab can reach: 106 days. Twice that still fits the clock's 64 bits of picoseconds, so that no
/// duration added to a moment can overflow.
const LAST_MOMENT: Time = Time::from_ps(u64::MAX / 2);

/// The surroundings of the fabric: captures, and nothing else.
#[derive(Default)]
struct Outside {
    captures: RunningCaptures<VirtualCapture>,
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

/// A lab on the virtual clock. It answers the requests of docs/reference/lab-protocol.md.
///
/// Who calls it: one caller at a time, which alone lets time pass, by [`request`](Self::request) with
/// [`Request::Advance`], [`Request::AppWait`] or [`Request::ControllersWait`]; every other request is answered at
/// the moment that it is. When an answer says `"controllers": true`, the caller gives what
/// [`take_control`](Self::take_control) has to the controllers, their answers to
/// [`give_control`](Self::give_control), and asks again: virtual time waits for them meanwhile.
///
/// Invariants: the same description, seed and requests at the same moments give the same replies and the same
/// trace hash, on every machine. A request that is refused has changed nothing.
pub struct VirtualLab {
    network: RunningNetwork,
    apps: ModelApps,
    outside: Outside,
    control: VirtualControl,
    files: Arc<dyn CaptureStore>,
}

impl VirtualLab {
    /// Builds the network that `spec` describes, with models for hosts; `files` has the files of captures.
    ///
    /// # Errors
    /// The fault of the description.
    pub fn new(spec: NetworkSpec, files: Arc<dyn CaptureStore>) -> Result<Self, LabError> {
        let mut network = assemble(spec, Bodies::Models)?;
        schedule_described(&mut network)?;
        let (apps, outside, control) = (ModelApps::new(1), Outside::default(), VirtualControl::default());
        Ok(Self { network, apps, outside, control, files })
    }

    /// Takes what controllers are to get now, in the order in which they are to get it.
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

    /// Answers `request`. Where that takes virtual time, `pause` is asked now and then, and `true` makes the answer
    /// come early: it then says `"paused": true`, and asking again goes on. It comes early as well when controllers
    /// are to be told something at the moment that it then is: it says `"controllers": true`.
    ///
    /// # Errors
    /// Refusals, as a lab process gives them.
    pub fn request(&mut self, request: Request, pause: &mut dyn FnMut() -> bool) -> Answer {
        tracing::debug!(request = request.name(), "asked");
        match request {
            Request::Now(_) => Ok(Reply::Now { now_ps: self.now() }),
            Request::Advance(asked) => self.advance(asked.until, pause),
            Request::AppStart(asked) => self.apps.start(&mut self.network, &asked, &mut self.outside),
            Request::AppStop(asked) => self.apps.stop(&mut self.network, asked.app, &mut self.outside),
            Request::AppReports(asked) => self.apps.report(&self.network, &asked),
            Request::AppWait(asked) => self.wait(*asked, pause),
            Request::ControllerOpen(asked) => self.control.open(&mut self.network, *asked),
            Request::ControllerClose(asked) => self.control.close(&mut self.network, asked.connection),
            Request::ControllersWait(asked) => self.wait_for_controllers(&asked, pause),
            Request::Controllers(_) => Ok(self.control.state(&self.network)),
            Request::CaptureStart(asked) => self.start_capture(&asked),
            Request::CaptureStop(asked) => self.stop_capture(asked.capture),
            Request::Fidelity(_) => Ok(Reply::VirtualFidelity {
                clock: "virtual",
                elapsed_ps: self.now(),
                events: self.network.fabric.events_handled(),
                trace_hash: format!("{:016x}", self.network.fabric.trace_hash()),
                impossible_states: impossible::met(),
                first_impossible_state: impossible::first(),
            }),
            Request::FidelityReset(_) | Request::Stop(_) => Ok(Reply::Done {}),
            other => requests::answer(&mut self.network, other, &mut self.outside).unwrap_or_else(|other| {
                Err(other.refused("it is one for a lab on the wall clock, which has real hosts and programs"))
            }),
        }
    }

    fn now(&self) -> Time {
        self.network.fabric.now()
    }

    fn advance(&mut self, until: Time, pause: &mut dyn FnMut() -> bool) -> Answer {
        let until = moment(until)?;
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
        Ok(self.passed(paused, None))
    }

    /// Lets time pass until apps have finished. When they will never, as no event is left and no time is named, it
    /// says so.
    fn wait(&mut self, asked: AppWait, pause: &mut dyn FnMut() -> bool) -> Answer {
        let mut left_to_finish = asked.apps;
        self.apps.check_known(&left_to_finish)?;
        let until = asked.until.map(moment).transpose()?;
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
        Ok(self.passed(paused, Some(finished)))
    }

    /// Lets time pass until every named switch has agreed on a version with a controller, and nothing more is on
    /// its way between switches and controllers.
    fn wait_for_controllers(&mut self, asked: &ControllersWait, pause: &mut dyn FnMut() -> bool) -> Answer {
        let until = asked.until.ok_or_else(|| missing("until_ps", "how long virtual time may pass"))?;
        let until = moment(until)?;
        let names = asked.switches.iter();
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
        Ok(self.passed(paused, Some(served)))
    }

    /// Returns how far time has come, and why no further.
    fn passed(&self, paused: bool, finished: Option<bool>) -> Reply {
        let controllers = self.network.fabric.controllers_are_due();
        Reply::Passed(Passed { now_ps: self.now(), paused, controllers, finished })
    }

    fn start_capture(&mut self, asked: &CaptureStart) -> Answer {
        let name = &asked.port;
        let port = port(&self.network, name)?;
        let path = asked.path.as_deref().ok_or_else(|| missing("path", "the file to write"))?;
        let settings = CaptureSettings::of(asked)?;
        let capture = VirtualCapture::begin(Arc::clone(&self.files), path, name, settings).map_err(|error| {
            LabError::new("CaptureFailed", format!("{path}: {error}"), "name a file that can be written")
        })?;
        let capture = self.outside.captures.add(port, capture, &mut self.network.fabric);
        Ok(Reply::Capture { capture })
    }

    fn stop_capture(&mut self, number: u32) -> Answer {
        let capture = self.outside.captures.remove(number, &mut self.network.fabric)?;
        Ok(Reply::Captured(capture.finish()))
    }
}

/// A moment that a lab can reach.
fn moment(moment: Time) -> Result<Time, LabError> {
    if moment > LAST_MOMENT {
        let ps = moment.as_ps();
        let message = format!("the moment {ps} ps is past the end of the clock, {} ps", LAST_MOMENT.as_ps());
        return Err(LabError::new("BadRequest", message, "virtual time reaches 106 days"));
    }
    Ok(moment)
}

impl Drop for VirtualLab {
    fn drop(&mut self) {
        // What was captured is in the file even when nobody ended the capture.
        for capture in self.outside.captures.take() {
            capture.finish();
        }
    }
}
