//! The lab process: the first process of its own user, PID, mount, network, IPC and UTS namespaces. When it dies
//! the kernel ends all that it started; when its owner dies it ends itself.

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

use serde_json::Value;
use twinnet_lab::network::NetworkSpec;
use twinnet_lab::protocol::{self, Answer, Fidelity, InterfaceOffer, Joining, Reply, Request, Start, StartOptions};

use crate::kernel::interface::{self, HostInterface, InterfaceKind};
use crate::kernel::namespace;
use crate::kernel::open_vswitch;
use crate::kernel::real_interface::{self, Offer};
use crate::process::control::{Control, Incident, Next};
use crate::process::programs::{zygote, Keeper};
use crate::service::{BringCode, Call, ErrorName, LabError, Responder, Service};
use crate::wall::clock::LabClock;
use crate::wall::fidelity::{ThreadUsage, Timeliness};
use crate::wall::model_apps::{self, Share};
pub use names::{claim as claim_lab, find as find_labs, open as open_lab, Labs, Stranger};
pub use spawn::{spawn_lab, LabHandle};

/// Makes the fabric's loop of a network: its interfaces, its clock and the `options` of the request are given.
pub type FabricFactory = dyn Fn(&NetworkSpec, Vec<HostInterface>, LabClock, StartOptions) -> MadeService + Send + Sync;
/// A part of the lab, or the reason why it cannot be made.
pub type MadeService = Result<Box<dyn Service>, LabError>;
/// Makes the agent of the apps: the hosts by name, with their network namespaces, are given.
pub type AgentFactory = dyn Fn(LabClock, Vec<(String, OwnedFd)>) -> MadeService + Send + Sync;

/// The parts of a lab that are made when its network is known.
pub struct Factories {
    /// Makes the fabric's loop.
    pub fabric: Box<FabricFactory>,
    /// Makes the agent.
    pub agent: Box<AgentFactory>,
    /// Makes code of the user's known to the apps of this process.
    pub bring: Box<BringCode>,
}

/// Time that parts have to put away what they hold when the lab is stopped.
const TIDY_TIME: Duration = Duration::from_secs(2);

/// A lab that runs.
struct Running {
    fabric: Arc<dyn Service>,
    agent: Arc<dyn Service>,
    programs: Arc<Keeper>,
    clock: LabClock,
    description: Arc<Reply>,
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
    /// The usage of the agent when the record of fidelity began.
    agent_before: Mutex<(ThreadUsage, Timeliness)>,
    /// Held as long as the lab lives: the zygote ends when it is closed, and the lab ends when the zygote does.
    zygote: Arc<OwnedFd>,
    /// Interfaces of the machine that were offered and are not yet taken.
    offers: Mutex<Vec<Offer>>,
    factories: Factories,
}

/// Refuses a process that `spawn_lab` has not just made: a lab is the first process of its PID namespace and forks,
/// which one with threads must not. `descriptors` are sockets that it is to own.
///
/// # Errors
/// Which of this is not so.
pub fn check_fresh(descriptors: [i32; 2]) -> Result<(), LabError> {
    let refuse = |what: String| {
        let remedy = "a lab is started by Network.emulate or twinnet lab: nothing else calls this";
        Err(LabError::new(ErrorName::NotALabProcess, what, remedy))
    };
    let pid = std::process::id();
    if pid != 1 {
        return refuse(format!("this process has the number {pid}, and a lab is the first of its PID namespace"));
    }
    let tasks = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if tasks != 1 {
        return refuse(format!("this process has {tasks} threads, and a lab begins with one"));
    }
    for descriptor in descriptors {
        // SAFETY: all zeros is a valid `stat`; the kernel looks whether the descriptor is open.
        let mode = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            if libc::fstat(descriptor, &raw mut status) == 0 {
                status.st_mode
            } else {
                0
            }
        };
        if mode & libc::S_IFMT != libc::S_IFSOCK {
            return refuse(format!("descriptor {descriptor} is no open socket"));
        }
    }
    Ok(())
}

/// Runs a lab on the owner's socket `control` and the listening socket `listener`, and ends the process.
///
/// # Safety
/// The process must be the one that [`spawn_lab`] made, with one thread: [`check_fresh`] has passed.
pub unsafe fn lab_main(control: OwnedFd, listener: OwnedFd, name: &str, factories: Factories) -> ! {
    // SAFETY: the caller vouches for what `run` needs.
    let status = match unsafe { run(control, listener, name, factories) } {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!("lab {name:?} ended: {error}");
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
    tracing::info!("lab {name:?} waits for its network");
    let lab = Arc::new(Lab {
        stage: Mutex::new(stage),
        agent_before: Mutex::default(),
        zygote: zygote_socket,
        offers: Mutex::default(),
        factories,
    });
    Control::new(control, listener)?.serve(&signals, |incident| match incident {
        Incident::OwnerGone => {
            tracing::info!("the owner of lab {name:?} is gone, and the lab ends");
            Next::End
        }
        Incident::Signal => {
            let asked_to_end = start_up::waiting_signals(&signals).contains(&libc::SIGTERM);
            let zygote_ended = start_up::reap().iter().any(|(pid, _)| *pid == zygote.pid);
            if zygote_ended {
                tracing::error!("the process that starts programs was killed: lab {name:?} ends");
                lab.abandon_programs();
            }
            if asked_to_end || zygote_ended {
                Next::End
            } else {
                Next::Continue
            }
        }
        Incident::Call(Call { request: Request::Stop(_), responder, .. }) => {
            tracing::info!("lab {name:?} was told to stop");
            lab.put_away();
            responder.send(Ok(Reply::Done {}));
            Next::End
        }
        Incident::Call(call) => {
            lab.submit(call);
            Next::Continue
        }
    });
    interface::close_packet_sockets();
    Ok(())
}

impl Lab {
    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(self: &Arc<Self>, call: Call) {
        let Call { request, descriptors, responder } = call;
        tracing::debug!(request = request.name(), "asked");
        let request = match request {
            Request::Start(asked) => return self.start(*asked, responder),
            Request::InterfaceOffer(asked) => return responder.send(self.offer(*asked, descriptors)),
            Request::CodeBring(asked) => {
                // In a thread, as `start`: what it imports may take long, and others are answered meanwhile.
                let lab = Arc::clone(self);
                let run = move || responder.send((lab.factories.bring)(&asked).map(|()| Reply::Done {}));
                let _ = std::thread::Builder::new().name("importer".to_owned()).spawn(run);
                return;
            }
            request => request,
        };
        let mut stage = self.lock();
        let running = match &mut *stage {
            Stage::Running(running) => running,
            Stage::Failed(error) => return responder.send(Err(error.clone())),
            Stage::Waiting | Stage::Building => {
                let message = format!("{:?} needs a network, and none has been started", request.name());
                return responder.send(Err(LabError::new(
                    ErrorName::NotStarted,
                    message,
                    "send `start` with a network first, and await its reply",
                )));
            }
        };
        let service: Arc<dyn Service> = match &request {
            Request::Now(_) => return responder.send(Ok(Reply::Now { now_ps: running.clock.now() })),
            Request::Describe(_) => return responder.send(Ok((*running.description).clone())),
            Request::Fidelity(_) | Request::FidelityReset(_) => {
                let (fabric, agent) = (Arc::clone(&running.fabric), Arc::clone(&running.agent));
                let programs = Arc::clone(&running.programs);
                drop(stage);
                return self.fidelity(request, responder, (&*fabric, &*agent, programs));
            }
            Request::Spawn(asked) if running.models.contains(&asked.host) => {
                let host = &asked.host;
                let message = format!("{host:?} is a model host, which lives in the fabric: it runs apps, no programs");
                let remedy = "use an app, or make it a real host";
                return responder.send(Err(LabError::new(ErrorName::ModelHost, message, remedy)));
            }
            Request::Spawn(_) | Request::Wait(_) | Request::Signal(_) | Request::Jobs(_) => {
                Arc::clone(&running.programs) as Arc<dyn Service>
            }
            Request::AppStart(_) | Request::AppStop(_) | Request::AppReports(_) | Request::AppWait(_) => {
                let (fabric, agent) = (Arc::clone(&running.fabric), Arc::clone(&running.agent));
                let models = Arc::clone(&running.models);
                drop(stage);
                return ask_apps(request, responder, &models, &*agent, &*fabric);
            }
            _ => Arc::clone(&running.fabric),
        };
        drop(stage);
        service.submit(Call { request, descriptors, responder });
    }

    /// Asks the fabric for its record and adds the agent's and the programs' share to it.
    fn fidelity(
        &self,
        request: Request,
        responder: Responder,
        (fabric, agent, programs): (&dyn Service, &dyn Service, Arc<Keeper>),
    ) {
        let (now, kept) = (agent.usage().unwrap_or_default(), agent.timeliness().unwrap_or_default());
        let mut before = self.agent_before.lock().unwrap_or_else(PoisonError::into_inner);
        let resets = matches!(request, Request::FidelityReset(_));
        if resets {
            *before = (now, kept.clone());
            agent.forget_pauses();
        }
        let used = ThreadUsage {
            cpu_s: now.cpu_s - before.0.cpu_s,
            user_s: now.user_s - before.0.user_s,
            involuntary_switches: now.involuntary_switches - before.0.involuntary_switches,
        };
        let kept = kept.since(&before.1);
        drop(before);
        let answer = Responder::new(move |record: Answer| {
            if resets {
                programs.forget_held_up();
            }
            responder.send(record.map(|record| with_programs(with_agent(record, used, &kept), &programs)));
        });
        fabric.submit(Call { request, descriptors: Vec::new(), responder: answer });
    }

    /// Keeps an interface of the machine for the network that is to come.
    fn offer(&self, asked: InterfaceOffer, descriptors: Vec<OwnedFd>) -> Answer {
        match &*self.lock() {
            Stage::Waiting => {}
            Stage::Failed(error) => return Err(error.clone()),
            _ => {
                let message = "this lab has a network already";
                return Err(LabError::new(ErrorName::AlreadyStarted, message, "offer interfaces before start"));
            }
        }
        let offer = Offer::of(asked, descriptors)?;
        self.offers.lock().unwrap_or_else(PoisonError::into_inner).push(offer);
        Ok(Reply::Done {})
    }

    fn start(self: &Arc<Self>, asked: Start, responder: Responder) {
        let mut stage = self.lock();
        let refusal = match &*stage {
            Stage::Waiting => None,
            Stage::Failed(error) => Some(error.clone()),
            _ => Some(LabError::new(ErrorName::AlreadyStarted, "this lab has a network already", "start another lab")),
        };
        if let Some(error) = refusal {
            return responder.send(Err(error));
        }
        *stage = Stage::Building;
        drop(stage);
        let lab = Arc::clone(self);
        let builder = std::thread::Builder::new().name("builder".to_owned());
        // A reply that cannot be moved into a thread is dropped with it, which answers with an error.
        let _ = builder.spawn(move || lab.build(&asked, responder));
    }

    /// Builds the network; the lab's clock starts when all namespaces stand.
    fn build(&self, asked: &Start, responder: Responder) {
        let began = Instant::now();
        match self.assemble(asked) {
            Ok((running, hosts, kind)) => {
                let setup_ms = began.elapsed().as_secs_f64() * 1e3;
                tracing::info!(hosts, setup_ms, interface = interface_word(kind), "the network runs");
                let fabric = Arc::clone(&running.fabric);
                *self.lock() = Stage::Running(running);
                let answer = Responder::new(move |fidelity: Answer| {
                    let record = match &fidelity {
                        Ok(Reply::Fidelity(record)) => Some(record),
                        _ => None,
                    };
                    let realtime = record.and_then(|record| record.get("realtime")?.as_bool());
                    let threads = record.and_then(|record| record.get("parts")?.get("threads")?.as_u64());
                    let fabric_threads = threads.unwrap_or(1);
                    let (pid, interface, protocol) = (std::process::id(), interface_word(kind), protocol::VERSION);
                    let realtime = realtime.unwrap_or(false);
                    responder.send(Ok(Reply::Started {
                        pid,
                        hosts,
                        setup_ms,
                        interface,
                        realtime,
                        fabric_threads,
                        protocol,
                    }));
                });
                let request = Request::Fidelity(Box::new(Fidelity {}));
                fabric.submit(Call { request, descriptors: Vec::new(), responder: answer });
            }
            Err(error) => {
                tracing::info!("the network was not built: {error}");
                *self.lock() = Stage::Failed(error.clone());
                responder.send(Err(error));
            }
        }
    }

    fn assemble(&self, asked: &Start) -> Result<(Running, usize, InterfaceKind), LabError> {
        let network = asked.network.network().map_err(Clone::clone)?;
        let options = asked.options.unwrap_or_default();
        let mut built = namespace::build(network, wanted_interface(options))?;
        let offers = std::mem::take(&mut *self.offers.lock().unwrap_or_else(PoisonError::into_inner));
        built.interfaces.extend(real_interface::take(network, offers)?);
        let count = built.hosts.iter().filter(|host| host.name != open_vswitch::HOST).count();
        let lacking = |error: std::io::Error| {
            LabError::new(ErrorName::LabNotStarted, error.to_string(), "raise the limit of open files (ulimit -n)")
        };
        let mut for_agent = Vec::with_capacity(count);
        for host in built.hosts.iter().filter(|host| host.name != open_vswitch::HOST) {
            for_agent.push((host.name.clone(), host.network.try_clone().map_err(lacking)?));
        }
        let clock = options.zero_ns.map_or_else(LabClock::start, LabClock::with_zero);
        let programs = Arc::new(Keeper::new(network, built.hosts, Arc::clone(&self.zygote)).map_err(lacking)?);
        let agent = Arc::from((self.factories.agent)(clock, for_agent)?);
        let fabric = Arc::from((self.factories.fabric)(network, built.interfaces, clock, options)?);
        let models = Arc::new(network.model_names().map(str::to_owned).collect());
        let description =
            Reply::Description { network: Box::new(network.clone()), interface: Some(interface_word(built.kind)) };
        Ok((Running { fabric, agent, programs, clock, description: Arc::new(description), models }, count, built.kind))
    }

    fn abandon_programs(&self) {
        if let Stage::Running(running) = &*self.lock() {
            running.programs.abandon();
        }
    }

    /// Lets the parts put away what they hold (captures that are being written), for a limited time.
    fn put_away(&self) {
        let stopped = LabError::new(ErrorName::LabStopped, "the lab was stopped", "");
        let stage = std::mem::replace(&mut *self.lock(), Stage::Failed(stopped));
        interface::close_packet_sockets();
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

/// The protocol's word for how hosts are joined to the fabric.
const fn interface_word(kind: InterfaceKind) -> &'static str {
    match kind {
        InterfaceKind::Tap => "tap",
        InterfaceKind::Packet => "veth",
    }
}

/// Asks the agent, the fabric or both about apps. Without model hosts it is always the agent.
fn ask_apps(
    request: Request,
    responder: Responder,
    models: &HashSet<String>,
    agent: &dyn Service,
    fabric: &dyn Service,
) {
    let ask = |service: &dyn Service, request, responder| {
        service.submit(Call { request, descriptors: Vec::new(), responder });
    };
    if models.is_empty() {
        return ask(agent, request, responder);
    }
    match model_apps::share(request, |host| models.contains(host)) {
        Share::Agent(request) => ask(agent, request, responder),
        Share::Fabric(request) => ask(fabric, request, responder),
        Share::Both { agent: for_agent, fabric: for_fabric } => {
            let responder = Arc::new(Mutex::new((Some(responder), None)));
            let halves = [true, false].map(|is_agent| {
                let both = Arc::clone(&responder);
                Responder::new(move |answer| join_answers(&both, is_agent, answer))
            });
            let [first, second] = halves;
            ask(agent, for_agent, first);
            ask(fabric, for_fabric, second);
        }
    }
}

/// An answer, and whether it is the agent's.
type Half = (bool, Answer);

/// Sends the joint answer when the second half has come.
fn join_answers(both: &Mutex<(Option<Responder>, Option<Half>)>, is_agent: bool, answer: Answer) {
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
fn with_agent(reply: Reply, agent: ThreadUsage, kept: &Timeliness) -> Reply {
    let Reply::Fidelity(mut record) = reply else { return reply };
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
        fields.insert("agent".to_owned(), kept.to_json());
    }
    Reply::Fidelity(record)
}

/// Adds what held up the programs of hosts.
fn with_programs(reply: Reply, programs: &Keeper) -> Reply {
    let Reply::Fidelity(mut record) = reply else { return reply };
    let (held_up, told) = programs.held_up();
    if let Some(fields) = record.as_object_mut() {
        fields.insert("programs".to_owned(), held_up);
    }
    if let Some(sources) = record.get_mut("sources").and_then(Value::as_object_mut) {
        sources.insert("sockets".to_owned(), told.into());
    }
    Reply::Fidelity(record)
}

/// The kind of interface that is asked for; `None`: what the machine permits.
const fn wanted_interface(options: StartOptions) -> Option<InterfaceKind> {
    match options.joining {
        Joining::Auto => None,
        Joining::Tap => Some(InterfaceKind::Tap),
        Joining::Veth => Some(InterfaceKind::Packet),
    }
}
