//! A lab on the virtual clock: hosts are models or live in a guest, and time passes only when it is asked to.

use std::sync::Arc;

use twinnet_fabric::{DirectionConfig, Event, PortId, Way, World};
use twinnet_packet::Frame;
use twinnet_units::random::mix;
use twinnet_units::{impossible, Time};

use super::assemble::{assemble, Bodies, RunningNetwork};
use super::capture::{CaptureSettings, CaptureStore, RunningCaptures};
use super::error::{ErrorName, LabError};
use super::guest::{hash_of, interfaces, Guest, GuestHosts, Input, News, ProgramOrder, TerminalSize};
use super::model_apps::ModelApps;
use super::network::NetworkSpec;
use super::protocol::{Answer, AppWait, CaptureStart, ControllersWait, Passed, Reply, Request, Spawn};
use super::requests::{self, missing, port, schedule_described};
use super::trace_file::{self, TraceFile};
use super::virtual_capture::VirtualCapture;
use super::virtual_control::{ControlMessage, VirtualControl};
use super::virtual_time;

/// Events that are handled between two looks at whether the owner wants to pause.
const EVENTS_PER_TURN: usize = 8192;
/// The last moment that a lab can reach: 106 days. Twice that still fits the clock's 64 bits of picoseconds, so that no
/// duration added to a moment can overflow.
const LAST_MOMENT: Time = Time::from_ps(u64::MAX / 2);

/// The surroundings of the fabric: captures, the guest in which real hosts live, and the trace where one is written.
#[derive(Default)]
pub(super) struct Outside {
    captures: RunningCaptures<VirtualCapture>,
    pub(super) hosts: Option<GuestHosts>,
    trace: Option<TraceFile>,
}

impl Outside {
    /// It is `now`, and the guest sends something.
    pub(super) fn set(&mut self, now: Time) {
        if let Some(trace) = &mut self.trace {
            trace.set(now);
        }
    }
}

impl World for Outside {
    fn deliver(&mut self, port: PortId, frame: Box<Frame>, _due: Time) {
        if let Some(hosts) = &mut self.hosts {
            hosts.deliver(port, frame);
        }
    }

    fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        let frame = self.hosts.as_mut()?.pull(port)?;
        if let Some(trace) = &mut self.trace {
            trace.sends(port, &frame.bytes, hash_of(&frame.bytes));
        }
        Some(frame)
    }

    fn happens(&mut self, event: Event) {
        if let Some(trace) = &mut self.trace {
            trace.happens(event);
        }
    }

    fn captured(&mut self, port: PortId, way: Way, frame: &Frame, at: Time) {
        for (captured, capture) in self.captures.values_mut() {
            if *captured == port {
                capture.record(way, frame, at);
            }
        }
    }

    fn carrier(&mut self, port: PortId, up: bool) {
        if let Some(hosts) = &mut self.hosts {
            hosts.carrier(port, up);
        }
    }

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

    /// Builds the network that `spec` describes with the guest that `boot` makes of it for real hosts. Their lab begins
    /// when they stand.
    ///
    /// # Errors
    /// The fault of the description, or why there is no guest.
    pub fn with_guest(
        spec: NetworkSpec,
        files: Arc<dyn CaptureStore>,
        boot: impl FnOnce(&NetworkSpec) -> Result<Box<dyn Guest>, LabError>,
    ) -> Result<Self, LabError> {
        refuse_lines_without_end(&spec)?;
        let mut network = assemble(spec, Bodies::Guest)?;
        network.fabric.keep_trains_exact();
        schedule_described(&mut network)?;
        let guest = boot(&network.spec)?;
        let hosts = Some(GuestHosts::new(guest, &network));
        let (apps, outside, control) =
            (ModelApps::new(1), Outside { hosts, ..Outside::default() }, VirtualControl::default());
        Ok(Self { network, apps, outside, control, files })
    }

    /// Writes the trace into the file `path` from now on: each event that the trace hash covers, each frame that a
    /// program sends, and which programs start and end (`trace_file`).
    ///
    /// # Errors
    /// `TraceFailed` when the file cannot be written.
    pub fn keep_trace(&mut self, path: &str) -> Result<(), LabError> {
        let file = self.files.open(path).map_err(|error| trace_file::failed(path, &error))?;
        self.outside.trace = Some(TraceFile::new(file, path, &self.network.names));
        self.network.fabric.tell_events();
        Ok(())
    }

    /// Ends the trace, if one is written.
    ///
    /// # Errors
    /// `TraceFailed` when not all of it could be written.
    pub fn end_trace(&mut self) -> Result<(), LabError> {
        self.outside.trace.as_mut().map_or(Ok(()), TraceFile::finish)
    }

    /// Starts a program in a real host: its number comes at once, and whether it runs is news of it.
    ///
    /// # Errors
    /// `ModelHost`, `UnknownHost`, or `NoPrograms` where all hosts are models.
    pub fn spawn(&mut self, asked: Spawn, input: Input) -> Answer {
        let host = asked.host.clone();
        let argv = asked.argv.clone();
        let now = self.now();
        let Outside { hosts, trace, .. } = &mut self.outside;
        let hosts = hosts.as_mut().ok_or_else(|| no_programs(&host))?;
        let answer = hosts.spawn(&self.network.spec, asked, input)?;
        if let (Some(trace), Reply::Job { job, .. }) = (trace, &answer) {
            trace.set(now);
            trace.starts(&host, *job, &argv);
        }
        Ok(answer)
    }

    /// Gives the standard input of the program `job` these bytes; `None` closes it.
    pub fn feed(&mut self, job: u64, bytes: Option<Vec<u8>>) {
        if let Some(hosts) = &mut self.outside.hosts {
            hosts.order(match bytes {
                Some(bytes) => ProgramOrder::Feed { job, bytes },
                None => ProgramOrder::Close { job },
            });
        }
    }

    /// The terminal of the program `job` has another size.
    pub fn resize(&mut self, job: u64, size: TerminalSize) {
        if let Some(hosts) = &mut self.outside.hosts {
            hosts.order(ProgramOrder::Resize { job, size });
        }
    }

    /// Ends all programs, and the guest that they live in.
    pub fn end_programs(&mut self) {
        self.outside.hosts = None;
    }

    /// Takes what programs have done since it was last asked, in order.
    pub fn take_news(&mut self) -> Vec<News> {
        let now = self.now();
        let news = self.outside.hosts.as_mut().map_or_else(Vec::new, GuestHosts::take_news);
        if let Some(trace) = &mut self.outside.trace {
            trace.set(now);
            news.iter().for_each(|one| trace.hears(one));
        }
        news
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
    /// are to be told something at the moment that it then is: it says `"controllers": true`; and when programs have
    /// done something that [`take_news`](Self::take_news) tells: it says `"programs": true`.
    ///
    /// # Errors
    /// Refusals, as a lab process gives them.
    pub fn request(&mut self, request: Request, pause: &mut dyn FnMut() -> bool) -> Answer {
        tracing::debug!(request = request.name(), "asked");
        match request {
            Request::Now(_) => Ok(Reply::Now { now_ps: self.now() }),
            Request::EventsNext(_) => Ok(Reply::Next { next_ps: self.network.fabric.next_event() }),
            Request::Advance(asked) => self.advance(asked.until, pause),
            Request::AppStart(asked) if self.is_real(&asked.host) => Err(LabError::new(
                ErrorName::RealHost,
                format!(
                    "{:?} is a real host: on the virtual clock it runs programs, and apps run in models",
                    asked.host
                ),
                "run a program there, or describe it with model=True (model: true)",
            )),
            Request::AppStart(asked) => self.apps.start(&mut self.network, &asked, &mut self.outside),
            Request::AppStop(asked) => self.apps.stop(&mut self.network, asked.app, &mut self.outside),
            Request::AppReports(asked) => self.apps.report(&self.network, &asked),
            Request::AppWait(asked) => self.wait(*asked, pause),
            Request::ControllerOpen(asked) => self.control.open(&mut self.network, *asked),
            Request::ControllerClose(asked) => self.control.close(&mut self.network, asked.connection),
            Request::ControllersWait(asked) => self.wait_for_controllers(&asked, pause),
            Request::Controllers(asked) => Ok(self.control.state(&self.network, asked.said == Some(true))),
            Request::CaptureStart(asked) => self.start_capture(&asked),
            Request::CaptureStop(asked) => self.stop_capture(asked.capture),
            Request::Fidelity(_) => Ok(Reply::VirtualFidelity {
                clock: "virtual",
                elapsed_ps: self.now(),
                events: self.network.fabric.events_handled(),
                trace_hash: format!("{:016x}", self.trace_hash()),
                impossible_states: impossible::met(),
                first_impossible_state: impossible::first(),
            }),
            Request::Spawn(asked) => self.spawn(*asked, Input::Empty),
            Request::Signal(asked) => match &mut self.outside.hosts {
                Some(hosts) => hosts.signal(&asked),
                None => Err(no_programs("")),
            },
            Request::FidelityReset(_) | Request::Stop(_) => Ok(Reply::Done {}),
            other => requests::answer(&mut self.network, other, &mut self.outside).unwrap_or_else(|other| {
                Err(other.refused("it is one for a lab on the wall clock, which has real hosts and programs"))
            }),
        }
    }

    /// Returns `true` if programs run in the host of that name.
    fn is_real(&self, host: &str) -> bool {
        self.outside.hosts.is_some() && super::guest::hosts(&self.network.spec).any(|one| one.name == host)
    }

    /// A hash over all that has happened, and over the frames that programs have sent.
    fn trace_hash(&self) -> u64 {
        let fabric = self.network.fabric.trace_hash();
        self.outside.hosts.as_ref().map_or(fabric, |hosts| mix(fabric ^ hosts.trace()))
    }

    /// Handles some of what is due until `until`; returns whether anything is left.
    fn pass(&mut self, until: Time, most: usize) -> Result<bool, LabError> {
        let left = virtual_time::pass(&mut self.network.fabric, &mut self.outside, until, most)?;
        self.outside.trace.as_ref().map_or(Ok(()), TraceFile::check)?;
        Ok(left)
    }

    /// Returns `true` if the lab's owner is to do something before time goes on.
    fn owner_is_due(&self) -> bool {
        self.network.fabric.controllers_are_due() || self.has_news()
    }

    fn has_news(&self) -> bool {
        self.outside.hosts.as_ref().is_some_and(|hosts| hosts.guest.has_news())
    }

    fn now(&self) -> Time {
        self.network.fabric.now()
    }

    fn advance(&mut self, until: Time, pause: &mut dyn FnMut() -> bool) -> Answer {
        let until = moment(until)?;
        let mut paused = false;
        while self.pass(until, EVENTS_PER_TURN)? {
            if self.owner_is_due() {
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
            let until = until.unwrap_or(LAST_MOMENT);
            let left = if self.outside.hosts.is_some() {
                self.pass(until, 1)?
            } else {
                self.network.fabric.advance_until_app_finishes(until, EVENTS_PER_TURN, &mut self.outside)
            };
            if self.network.fabric.finished_apps() != ended {
                continue;
            }
            if !left || self.owner_is_due() {
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
            if fabric.controllers_are_due() || !self.pass(until, 1)? || self.has_news() {
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
        Reply::Passed(Passed { now_ps: self.now(), paused, controllers, programs: self.has_news(), finished })
    }

    fn start_capture(&mut self, asked: &CaptureStart) -> Answer {
        let name = &asked.port;
        let port = port(&self.network, name)?;
        let path = asked.path.as_deref().ok_or_else(|| missing("path", "the file to write"))?;
        let settings = CaptureSettings::of(asked)?;
        let capture = VirtualCapture::begin(Arc::clone(&self.files), path, name, settings).map_err(|error| {
            LabError::new(ErrorName::CaptureFailed, format!("{path}: {error}"), "name a file that can be written")
        })?;
        let capture = self.outside.captures.add(port, capture, &mut self.network.fabric);
        Ok(Reply::Capture { capture })
    }

    fn stop_capture(&mut self, number: u32) -> Answer {
        let capture = self.outside.captures.remove(number, &mut self.network.fabric)?;
        Ok(Reply::Captured(capture.finish()))
    }
}

/// The refusal of a program where all hosts are models.
fn no_programs(host: &str) -> LabError {
    let who = if host.is_empty() { "hosts are models here".to_owned() } else { format!("{host:?} is a model here") };
    LabError::new(ErrorName::ModelHost, format!("{who} and runs no programs"), "simulate with programs, or use an app")
}

/// Refuses lines into which a program could send without end at one moment: time would never go on.
fn refuse_lines_without_end(spec: &NetworkSpec) -> Result<(), LabError> {
    let attachments = spec.attachments();
    for (host, port) in interfaces(spec) {
        let name = host.name.as_str();
        let Some(line) = attachments.get(&(name, port)) else { continue };
        if line.rate.is_none() && !line.follows_trace {
            let message = format!(
                "the link of {} has no rate: on the virtual clock a program could send into it without end at one \
                 moment",
                host.ports[port].name
            );
            return Err(LabError::new(ErrorName::NoRate, message, "give it one, for example rate=\"1 Gbit\""));
        }
    }
    Ok(())
}

/// A moment that a lab can reach.
fn moment(moment: Time) -> Result<Time, LabError> {
    if moment > LAST_MOMENT {
        let ps = moment.as_ps();
        let message = format!("the moment {ps} ps is past the end of the clock, {} ps", LAST_MOMENT.as_ps());
        return Err(LabError::new(ErrorName::BadRequest, message, "virtual time reaches 106 days"));
    }
    Ok(moment)
}

impl Drop for VirtualLab {
    fn drop(&mut self) {
        // What was captured is in the file even when nobody ended the capture.
        for capture in self.outside.captures.take() {
            capture.finish();
        }
        // Whoever wanted to know of a failure has asked before.
        let _ = self.end_trace();
    }
}
