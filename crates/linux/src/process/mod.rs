//! The lab process: the first process of its own user, PID, mount, network, IPC and UTS namespaces. When it dies the kernel
//! ends all that it started; when its owner dies it ends itself.

mod child;
pub mod control;
mod names;
pub mod programs;
mod spawn;
pub mod start_up;

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::kernel::interface::{HostInterface, InterfaceKind};
use crate::kernel::namespace;
use crate::kernel::open_vswitch;
use crate::kernel::real_interface::{self, Offer};
use crate::process::control::{Control, Incident, Next};
use crate::process::programs::{zygote, Keeper};
use crate::service::{LabError, Reply, Request, Service};
use crate::wall::clock::LabClock;
use crate::wall::fidelity::{ThreadUsage, Timeliness};
use crate::wall::model_apps::{self, Share};
pub use names::list as list_labs;
pub use spawn::{spawn_lab, LabHandle};
use twinnet_lab::network::NetworkSpec;

/// Makes the fabric's loop of a network: its interfaces, its clock and the `options` of the request are given.
pub type FabricFactory = dyn Fn(&NetworkSpec, Vec<HostInterface>, LabClock, Option<&Value>) -> Result<Box<dyn Service>, LabError>
    + Send
    + Sync;
/// Makes the agent of the apps: the hosts by name, with their network namespaces, are given.
pub type AgentFactory = dyn Fn(LabClock, Vec<(String, OwnedFd)>) -> Result<Box<dyn Service>, LabError> + Send + Sync;

/// The parts of a lab that are made when its network is known.
pub struct Factories {
    /// Makes the fabric's loop.
    pub fabric: Box<FabricFactory>,
    /// Makes the agent.
    pub agent: Box<AgentFactory>,
}

/// Time that parts have to put away what they hold when the lab is stopped.
const TIDY_TIME: Duration = Duration::from_secs(2);

/// A lab that runs.
struct Running {
    fabric: Arc<dyn Service>,
    agent: Arc<dyn Service>,
    programs: Arc<Keeper>,
    clock: LabClock,
    description: Arc<Value>,
    /// Names of the model hosts.
    models: Arc<HashSet<String>>,
}

enum Stage {
    /// No network yet.
    Waiting,
    /// The network is being built.
    Building,
    /// It runs.
    Running(Running),
    /// Building failed, and why.
    Failed(LabError),
}

struct Lab {
    stage: Mutex<Stage>,
    /// What the agent had used when the record of fidelity began.
    agent_before: Mutex<(ThreadUsage, Timeliness)>,
    /// Held as long as the lab lives: the zygote ends when it is closed, and the lab ends when the zygote does.
    zygote: Arc<OwnedFd>,
    /// Interfaces of the machine that were offered and are not yet taken.
    offers: Mutex<Vec<Offer>>,
    factories: Factories,
}

/// Runs a lab on the owner's socket `control` and the listening socket `listener`, and ends the process.
///
/// # Safety
/// The process must be the one that [`spawn_lab`] made, with one thread.
pub unsafe fn lab_main(control: OwnedFd, listener: OwnedFd, name: &str, factories: Factories) -> ! {
    // SAFETY: the caller vouches for what `run` needs.
    let status = match unsafe { run(control, listener, name, factories) } {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("twinnet: lab {name:?}: {error}");
            1
        }
    };
    // SAFETY: ends the process, and with it all processes of its PID namespace.
    unsafe { libc::_exit(status) }
}

unsafe fn run(control: OwnedFd, listener: OwnedFd, name: &str, factories: Factories) -> std::io::Result<()> {
    start_up::reset_signals();
    start_up::set_title(&format!("twinnet: {name}"));
    let mounted = start_up::mount_own_proc();
    // SAFETY: the caller vouches that there is one thread.
    let zygote = unsafe { zygote::fork(&[&control, &listener]) }?;
    start_up::raise_open_files();
    rustix::net::sockopt::set_socket_timeout(
        &zygote.socket,
        rustix::net::sockopt::Timeout::Send,
        Some(Duration::from_secs(1)),
    )?;
    let signals = start_up::signal_descriptor(&[libc::SIGCHLD, libc::SIGTERM])?;
    let stage = mounted.map_or_else(Stage::Failed, |()| Stage::Waiting);
    let zygote_socket = Arc::new(zygote.socket);
    let lab = Arc::new(Lab {
        stage: Mutex::new(stage),
        agent_before: Mutex::default(),
        zygote: zygote_socket,
        offers: Mutex::default(),
        factories,
    });
    Control::new(control, listener)?.serve(&signals, |incident| match incident {
        Incident::OwnerGone => Next::End,
        Incident::Signal => {
            let asked_to_end = start_up::waiting_signals(&signals).contains(&libc::SIGTERM);
            let zygote_ended = start_up::reap().iter().any(|(pid, _)| *pid == zygote.pid);
            if zygote_ended {
                lab.abandon_programs();
            }
            if asked_to_end || zygote_ended {
                Next::End
            } else {
                Next::Continue
            }
        }
        Incident::Request(request) if request.body.get("do") == Some(&"stop".into()) => {
            lab.put_away();
            request.reply.send(Ok(json!({})));
            Next::End
        }
        Incident::Request(request) => {
            lab.submit(request);
            Next::Continue
        }
    });
    Ok(())
}

impl Lab {
    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(self: &Arc<Self>, request: Request) {
        let Some(what) = request.body.get("do").and_then(Value::as_str).map(str::to_owned) else {
            return request.reply.send(Err(LabError::new(
                "MalformedRequest",
                "the request has no \"do\"",
                "name what is to be done",
            )));
        };
        if what == "start" {
            return self.start(request);
        }
        if what == "interface.offer" {
            return self.offer(request);
        }
        let mut stage = self.lock();
        let running = match &mut *stage {
            Stage::Running(running) => running,
            Stage::Failed(error) => return request.reply.send(Err(error.clone())),
            Stage::Waiting | Stage::Building => {
                let message = format!("{what:?} needs a network, and none has been started");
                return request.reply.send(Err(LabError::new(
                    "NotStarted",
                    message,
                    "send `start` with a network first, and await its reply",
                )));
            }
        };
        if what.starts_with("fidelity") {
            let (fabric, agent) = (Arc::clone(&running.fabric), Arc::clone(&running.agent));
            drop(stage);
            return self.fidelity(&what, request, &*fabric, &*agent);
        }
        if let Some(name) = programs_host(&request.body).filter(|name| running.models.contains(*name)) {
            let message = format!("{name:?} is a model host, which lives in the fabric: it runs apps, no programs");
            return request.reply.send(Err(LabError::new("ModelHost", message, "use an app, or make it a real host")));
        }
        let service: Arc<dyn Service> = match what.as_str() {
            "now" => return request.reply.send(Ok(json!({"now_ps": running.clock.now().as_ps()}))),
            "describe" => return request.reply.send(Ok((*running.description).clone())),
            "spawn" | "wait" | "signal" | "jobs" => Arc::clone(&running.programs) as Arc<dyn Service>,
            what if what.starts_with("app.") => {
                let (fabric, agent) = (Arc::clone(&running.fabric), Arc::clone(&running.agent));
                let models = Arc::clone(&running.models);
                drop(stage);
                return ask_apps(request, &models, &*agent, &*fabric);
            }
            _ => Arc::clone(&running.fabric),
        };
        drop(stage);
        service.submit(request);
    }

    /// Asks the fabric for its record and adds the agent's share to it.
    fn fidelity(&self, what: &str, request: Request, fabric: &dyn Service, agent: &dyn Service) {
        let (now, kept) = (agent.usage().unwrap_or_default(), agent.timeliness().unwrap_or_default());
        let mut before = self.agent_before.lock().unwrap_or_else(PoisonError::into_inner);
        if what == "fidelity.reset" {
            *before = (now, kept.clone());
        }
        let used = ThreadUsage {
            cpu_s: now.cpu_s - before.0.cpu_s,
            user_s: now.user_s - before.0.user_s,
            involuntary_switches: now.involuntary_switches - before.0.involuntary_switches,
        };
        let kept = kept.since(&before.1);
        drop(before);
        let Request { body, descriptors, reply } = request;
        let answer = Reply::new(move |record: Result<Value, LabError>| {
            reply.send(record.map(|record| with_agent(record, used, &kept)));
        });
        fabric.submit(Request { body, descriptors, reply: answer });
    }

    /// Keeps an interface of the machine for the network that is to come.
    fn offer(&self, mut request: Request) {
        let refusal = match &*self.lock() {
            Stage::Waiting => None,
            Stage::Failed(error) => Some(error.clone()),
            _ => {
                Some(LabError::new("AlreadyStarted", "this lab has a network already", "offer interfaces before start"))
            }
        };
        let answer = refusal.map_or_else(|| Offer::read(&mut request), Err).map(|offer| {
            self.offers.lock().unwrap_or_else(PoisonError::into_inner).push(offer);
            json!({})
        });
        request.reply.send(answer);
    }

    fn start(self: &Arc<Self>, request: Request) {
        let mut stage = self.lock();
        let refusal = match &*stage {
            Stage::Waiting => None,
            Stage::Failed(error) => Some(error.clone()),
            _ => Some(LabError::new("AlreadyStarted", "this lab has a network already", "start another lab")),
        };
        if let Some(error) = refusal {
            return request.reply.send(Err(error));
        }
        *stage = Stage::Building;
        drop(stage);
        let lab = Arc::clone(self);
        let Request { body, reply, .. } = request;
        let builder = std::thread::Builder::new().name("builder".to_owned());
        // A reply that cannot be moved into a thread is dropped with it, which answers with an error.
        let _ = builder.spawn(move || lab.build(&body, reply));
    }

    /// Builds the network; the lab's clock starts when all namespaces stand.
    fn build(&self, body: &Value, reply: Reply) {
        let began = Instant::now();
        match self.assemble(body) {
            Ok((running, hosts, kind)) => {
                let setup_ms = began.elapsed().as_secs_f64() * 1e3;
                let fabric = Arc::clone(&running.fabric);
                *self.lock() = Stage::Running(running);
                let answer = Reply::new(move |fidelity: Result<Value, LabError>| {
                    let realtime = fidelity.ok().and_then(|record| record.get("realtime")?.as_bool()).unwrap_or(false);
                    let interface = if kind == InterfaceKind::Tap { "tap" } else { "veth" };
                    let pid = std::process::id();
                    reply.send(Ok(json!({"pid": pid, "hosts": hosts, "setup_ms": setup_ms, "interface": interface, "realtime": realtime})));
                });
                fabric.submit(Request { body: json!({"do": "fidelity"}), descriptors: Vec::new(), reply: answer });
            }
            Err(error) => {
                *self.lock() = Stage::Failed(error.clone());
                reply.send(Err(error));
            }
        }
    }

    fn assemble(&self, body: &Value) -> Result<(Running, usize, InterfaceKind), LabError> {
        let spec =
            body.get("network").ok_or_else(|| LabError::new("MalformedRequest", "`start` has no \"network\"", ""))?;
        let network = NetworkSpec::from_json(spec)?;
        check_options(body.get("options"))?;
        let wanted = wanted_interface(body.get("options"))?;
        let mut built = namespace::build(&network, wanted)?;
        let offers = std::mem::take(&mut *self.offers.lock().unwrap_or_else(PoisonError::into_inner));
        built.interfaces.extend(real_interface::take(&network, offers)?);
        let count = built.hosts.iter().filter(|host| host.name != open_vswitch::HOST).count();
        let lacking = |error: std::io::Error| {
            LabError::new("LabNotStarted", error.to_string(), "raise the limit of open files (ulimit -n)")
        };
        let mut for_agent = Vec::with_capacity(count);
        for host in built.hosts.iter().filter(|host| host.name != open_vswitch::HOST) {
            for_agent.push((host.name.clone(), host.network.try_clone().map_err(lacking)?));
        }
        let clock = LabClock::start();
        let programs = Arc::new(Keeper::new(&network, built.hosts, Arc::clone(&self.zygote)).map_err(lacking)?);
        let agent = Arc::from((self.factories.agent)(clock, for_agent)?);
        let fabric = Arc::from((self.factories.fabric)(&network, built.interfaces, clock, body.get("options"))?);
        let models = Arc::new(network.model_names().map(str::to_owned).collect());
        let mut description =
            serde_json::to_value(&network).map_err(|error| LabError::new("Internal", error.to_string(), ""))?;
        description["interface"] = if built.kind == InterfaceKind::Tap { "tap".into() } else { "veth".into() };
        Ok((Running { fabric, agent, programs, clock, description: Arc::new(description), models }, count, built.kind))
    }

    fn abandon_programs(&self) {
        if let Stage::Running(running) = &*self.lock() {
            running.programs.abandon();
        }
    }

    /// Lets the parts put away what they hold (captures that are being written), for a limited time.
    fn put_away(&self) {
        let stopped = LabError::new("LabStopped", "the lab was stopped", "");
        let stage = std::mem::replace(&mut *self.lock(), Stage::Failed(stopped));
        let (done, is_done) = std::sync::mpsc::channel();
        let tidy = std::thread::Builder::new().spawn(move || {
            drop(stage);
            // Nobody listens any more when the time was over.
            let _ = done.send(());
        });
        if tidy.is_ok() {
            let _ = is_done.recv_timeout(TIDY_TIME);
        }
    }
}

/// The host in which `body` wants a program started.
fn programs_host(body: &Value) -> Option<&str> {
    body.get("host").filter(|_| body.get("do") == Some(&"spawn".into())).and_then(Value::as_str)
}

/// Asks the agent, the fabric or both about apps. Without model hosts it is always the agent.
fn ask_apps(request: Request, models: &HashSet<String>, agent: &dyn Service, fabric: &dyn Service) {
    if models.is_empty() {
        return agent.submit(request);
    }
    match model_apps::share(&request.body, |host| models.contains(host)) {
        Share::Agent => agent.submit(request),
        Share::Fabric => fabric.submit(request),
        Share::Both { agent: for_agent, fabric: for_fabric } => {
            let reply = Arc::new(Mutex::new((Some(request.reply), None)));
            let halves = [true, false].map(|is_agent| {
                let both = Arc::clone(&reply);
                Reply::new(move |answer| join_answers(&both, is_agent, answer))
            });
            let [first, second] = halves;
            agent.submit(Request { body: for_agent, descriptors: Vec::new(), reply: first });
            fabric.submit(Request { body: for_fabric, descriptors: Vec::new(), reply: second });
        }
    }
}

/// An answer, and whether it is the agent's.
type Half = (bool, Result<Value, LabError>);

/// Sends the joint answer when the second half has come.
fn join_answers(both: &Mutex<(Option<Reply>, Option<Half>)>, is_agent: bool, answer: Result<Value, LabError>) {
    let mut both = both.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((first_is_agent, first)) = both.1.take() else {
        both.1 = Some((is_agent, answer));
        return;
    };
    if let Some(reply) = both.0.take() {
        let (agent, fabric) = if first_is_agent { (first, answer) } else { (answer, first) };
        reply.send(model_apps::join(agent, fabric));
    }
}

/// Adds what the agent used to the fabric's record; the times in user and kernel mode are of both.
fn with_agent(mut record: Value, agent: ThreadUsage, kept: &Timeliness) -> Value {
    let mut add = |part: &str, key: &str, amount: f64| {
        if let Some(fields) = record.get_mut(part).and_then(Value::as_object_mut) {
            let sum = fields.get(key).and_then(Value::as_f64).unwrap_or(0.0) + amount;
            fields.insert(key.to_owned(), sum.into());
        }
    };
    add("cpu_s", "agent", agent.cpu_s);
    add("cpu_s", "user", agent.user_s);
    add("cpu_s", "system", agent.cpu_s - agent.user_s);
    if let Some(switches) = record.get_mut("involuntary_switches").and_then(Value::as_object_mut) {
        switches.insert("agent".to_owned(), agent.involuntary_switches.into());
    }
    if let Some(fields) = record.as_object_mut() {
        let timers = json!({
            "timers": kept.lateness.count(), "lateness_ns": kept.lateness.to_json(), "waited_s": kept.waited_s,
            "overloaded_senders": kept.overloaded_senders, "overflowed_datagrams": kept.overflowed_datagrams,
        });
        fields.insert("agent".to_owned(), timers);
    }
    record
}

/// The options that a `start` request may have.
const OPTIONS: [&str; 3] = ["interface", "realtime", "slip_after_ps"];

/// Refuses options that nobody would read.
fn check_options(options: Option<&Value>) -> Result<(), LabError> {
    let refuse = |message: String| Err(LabError::new("InvalidOption", message, ""));
    match options {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(fields)) => match fields.keys().find(|key| !OPTIONS.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => refuse(format!("there is no option {key:?}; there are {}", OPTIONS.join(", "))),
        },
        Some(other) => refuse(format!("the options are {other}; they are an object")),
    }
}

fn wanted_interface(options: Option<&Value>) -> Result<Option<InterfaceKind>, LabError> {
    match options.and_then(|options| options.get("interface")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text == "auto" => Ok(None),
        Some(Value::String(text)) if text == "tap" => Ok(Some(InterfaceKind::Tap)),
        Some(Value::String(text)) if text == "veth" => Ok(Some(InterfaceKind::Packet)),
        Some(other) => Err(LabError::new(
            "InvalidOption",
            format!("the option interface is {other}; it can be \"auto\", \"tap\" or \"veth\""),
            "",
        )),
    }
}
