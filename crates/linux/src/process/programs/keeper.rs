//! The keeper of programs: the part of the lab that answers `spawn`, `wait`, `signal` and `jobs`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::epoll;
use rustix::fs::MemfdFlags;
use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
use serde_json::{json, Value};
use twinnet_lab::network::{HostSpec, NetworkSpec, NodeSpec};
use twinnet_lab::protocol::{Answer, Reply, Request, Signal, Spawn};

use super::held_up::{datagrams, Datagrams, Stops};
use super::jobs::Jobs;
use super::names_of_hosts;
use super::orders::{HostOrder, Notice, Order, ProgramOrder};
use crate::kernel::namespace::HostNamespace;
use crate::process::control::message::{self, Received};
use crate::service::{Call, ErrorName, LabError, Responder, Service};

/// Hosts that are named when an unknown one is asked for.
const NAMED_HOSTS: usize = 8;
/// The highest signal number.
const HIGHEST_SIGNAL: i32 = 64;

/// A host whose first process runs (or is being made).
struct RunningHost {
    name: String,
    socket: OwnedFd,
    /// Why it could not be set up, when it told so before it ended.
    failure: Option<LabError>,
}

#[derive(Default)]
struct State {
    /// By number; a host that is started anew has a new number.
    running: HashMap<u64, RunningHost>,
    /// Numbers by host name.
    numbers: HashMap<String, u64>,
    last_number: u64,
    jobs: Jobs,
    stops: Stops,
    /// Hosts that have run a program.
    ran: BTreeSet<String>,
    /// The datagrams of hosts when the record of fidelity began.
    datagrams_before: BTreeMap<String, Datagrams>,
}

struct Shared {
    state: Mutex<State>,
    epoll: OwnedFd,
}

/// The keeper of programs.
pub struct Keeper {
    shared: Arc<Shared>,
    networks: BTreeMap<String, OwnedFd>,
    /// The hosts that have an image or limits.
    special: BTreeMap<String, HostSpec>,
    names: OwnedFd,
    zygote: Arc<OwnedFd>,
}

impl Keeper {
    /// A keeper for `hosts` that has their first processes made by the zygote on `zygote`.
    ///
    /// # Errors
    /// When the kernel gives no descriptor or thread.
    pub fn new(network: &NetworkSpec, hosts: Vec<HostNamespace>, zygote: Arc<OwnedFd>) -> io::Result<Self> {
        let names = rustix::fs::memfd_create("hosts", MemfdFlags::CLOEXEC)?;
        let content = names_of_hosts::content(network);
        let mut rest = content.as_bytes();
        while !rest.is_empty() {
            let written = rustix::io::write(&names, rest)?;
            rest = &rest[written..];
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let shared = Arc::new(Shared { state: Mutex::default(), epoll });
        let listening = Arc::clone(&shared);
        std::thread::Builder::new().name("programs".to_owned()).spawn(move || listening.listen())?;
        let networks = hosts.into_iter().map(|host| (host.name, host.network)).collect();
        let special = network.nodes.iter().filter_map(|node| match node {
            NodeSpec::Host(host) if host.image.is_some() || host.limits.is_some() => {
                Some((host.name.clone(), host.clone()))
            }
            _ => None,
        });
        Ok(Self { shared, networks, special: special.collect(), names, zygote })
    }

    /// The zygote is gone: answers all who wait.
    pub fn abandon(&self) {
        let error =
            LabError::new(ErrorName::ProgramsEnded, "the process that starts programs was killed; the lab ends", "");
        self.shared.lock().jobs.lose(None, &error);
    }

    /// Returns what held up programs since it was last forgotten, and whether the kernel tells of sockets without room.
    /// Asks the kernel for each host that has run a program: not for a thread that must not wait.
    #[must_use]
    pub fn held_up(&self) -> (Value, bool) {
        let (ran, before, stops) = {
            let state = self.shared.lock();
            (state.ran.clone(), state.datagrams_before.clone(), state.stops.to_json())
        };
        let counted = datagrams(self.networks.iter().filter(|(name, _)| ran.contains(*name)));
        let told = counted.is_some();
        let (mut dropped, mut read) = (BTreeMap::new(), BTreeMap::new());
        for (host, now) in counted.into_iter().flatten() {
            let grown = now.since(before.get(&host).copied().unwrap_or_default());
            if grown.dropped > 0 {
                read.insert(host.clone(), grown.read);
                dropped.insert(host, grown.dropped);
            }
        }
        (json!({"dropped_datagrams": dropped, "read_datagrams": read, "stops": stops}), told)
    }

    /// Forgets what held up programs so far.
    pub fn forget_held_up(&self) {
        // Hosts that run their first program later are to begin with what their apps lost before.
        let counted = datagrams(self.networks.iter()).unwrap_or_default();
        let mut state = self.shared.lock();
        state.datagrams_before = counted;
        state.stops.forget();
    }

    fn spawn(&self, fields: Spawn, descriptors: &[OwnedFd], responder: Responder) {
        let mut state = self.shared.lock();
        let number = match self.running(&mut state, &fields.host) {
            Ok(number) => number,
            Err(error) => return responder.send(Err(error)),
        };
        let job = state.jobs.add(&fields.host, fields.argv.clone(), responder);
        let limit_ns = fields.limit_ps.map(|limit| limit / 1000);
        let image = self.special.get(&fields.host).and_then(|host| host.image.as_ref());
        let order = ProgramOrder {
            job,
            argv: fields.argv,
            env: fields.env.or_else(|| image.map(|image| image.all_variables())),
            cwd: fields.cwd,
            terminal: fields.terminal.unwrap_or(false),
            limit_ns,
        };
        let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        if let Err(error) = state.order(number, &Order::Spawn(order), &borrowed) {
            state.jobs.refused(job, error);
        }
    }

    /// The number of `host`, whose first process is ordered when it does not run. Orders may be sent to it at once:
    /// they wait in its socket until it is set up.
    fn running(&self, state: &mut State, host: &str) -> Result<u64, LabError> {
        if let Some(number) = state.numbers.get(host) {
            return Ok(*number);
        }
        let network = self.networks.get(host).ok_or_else(|| self.unknown_host(host))?;
        let refuse = |error: io::Error| {
            LabError::new(
                ErrorName::HostNotReady,
                format!("host {host:?}: starting its first process: {error}"),
                "raise the limits of processes and open files",
            )
        };
        let (socket, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(|error| refuse(error.into()))?;
        rustix::io::ioctl_fionbio(&socket, true).map_err(|error| refuse(error.into()))?;
        let special = self.special.get(host);
        let order = HostOrder {
            host: host.to_owned(),
            image: special.and_then(|host| host.image.clone()),
            groups: special.and_then(|host| host.limits.as_ref()).map_or_else(Vec::new, |limits| limits.groups.clone()),
        };
        let order = serde_json::to_vec(&order).map_err(|error| refuse(error.into()))?;
        message::send(self.zygote.as_fd(), &order, &[network.as_fd(), there.as_fd(), self.names.as_fd()])
            .map_err(refuse)?;
        state.last_number += 1;
        let number = state.last_number;
        epoll::add(&self.shared.epoll, &socket, epoll::EventData::new_u64(number), epoll::EventFlags::IN)
            .map_err(|error| refuse(error.into()))?;
        state.numbers.insert(host.to_owned(), number);
        state.ran.insert(host.to_owned());
        state.running.insert(number, RunningHost { name: host.to_owned(), socket, failure: None });
        Ok(number)
    }

    fn unknown_host(&self, host: &str) -> LabError {
        let some: Vec<&str> = self.networks.keys().take(NAMED_HOSTS).map(String::as_str).collect();
        let more = if self.networks.len() > NAMED_HOSTS { ", ..." } else { "" };
        let shown: String = host.chars().take(80).collect();
        LabError::new(
            ErrorName::UnknownHost,
            format!("there is no host {shown:?}; the hosts are {}{more}", some.join(", ")),
            "",
        )
    }

    fn signal(&self, fields: &Signal) -> Answer {
        if !(0..=HIGHEST_SIGNAL).contains(&fields.signal) {
            return Err(LabError::new(
                ErrorName::NoSuchSignal,
                format!("signal {} does not exist; 0 to {HIGHEST_SIGNAL} do", fields.signal),
                "",
            ));
        }
        let state = self.shared.lock();
        let number = state.jobs.host_of_running(fields.job)?.and_then(|host| state.numbers.get(host));
        if let Some(number) = number {
            state.order(*number, &Order::Signal { job: fields.job, signal: fields.signal }, &[])?;
        }
        Ok(Reply::Done {})
    }
}

impl Service for Keeper {
    fn submit(&self, call: Call) {
        let Call { request, descriptors, responder } = call;
        match request {
            Request::Spawn(fields) => self.spawn(*fields, &descriptors, responder),
            Request::Wait(fields) => self.shared.lock().jobs.wait(fields.job, responder),
            Request::Signal(fields) => responder.send(self.signal(&fields)),
            Request::Jobs(_) => responder.send(Ok(Reply::Jobs(self.shared.lock().jobs.list()))),
            other => responder.send(Err(other.refused("the keeper of programs answers spawn, wait, signal and jobs"))),
        }
    }
}

impl State {
    fn order(&self, number: u64, order: &Order, descriptors: &[BorrowedFd<'_>]) -> Result<(), LabError> {
        let Some(host) = self.running.get(&number) else { return Ok(()) };
        let text = serde_json::to_vec(order)
            .map_err(|error| LabError::new(ErrorName::MalformedRequest, error.to_string(), ""))?;
        match message::send(host.socket.as_fd(), &text, descriptors) {
            // Its first process is gone, and `end` is about to tell why to all who wait.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => {
                let remedy = "try again when the host has worked off what waits for it";
                Err(LabError::new(
                    ErrorName::HostBusy,
                    format!("host {:?} takes no orders: {error}", host.name),
                    remedy,
                ))
            }
            Ok(()) => Ok(()),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what first processes tell, for as long as the lab lives.
    fn listen(&self) {
        let mut buffer = vec![0; message::PACKET_BYTES];
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            // An interrupted wait finds nothing ready.
            let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None);
            for event in &events {
                let number = event.data.u64();
                let mut state = self.lock();
                let Some(host) = state.running.get(&number) else { continue };
                match message::receive(host.socket.as_fd(), &mut buffer) {
                    Ok(Received::Message(received)) => {
                        if let Ok(notice) = serde_json::from_slice(&received.text) {
                            state.take(number, notice);
                        }
                    }
                    Ok(Received::Nothing | Received::Malformed { .. }) => {}
                    Ok(Received::End) | Err(_) => state.end(number),
                }
            }
        }
    }
}

impl State {
    fn take(&mut self, number: u64, notice: Notice) {
        match notice {
            Notice::Started { job, pid } => self.jobs.started(job, pid),
            Notice::Refused { job, error } => self.jobs.refused(job, error),
            Notice::Stopped { job } => {
                let program = self.jobs.program(job);
                self.stops.stopped(job, program);
            }
            Notice::Continued { job, stopped_ns } => self.stops.went_on(job, Some(Duration::from_nanos(stopped_ns))),
            Notice::Ended { job, outcome } => {
                self.stops.went_on(job, None);
                self.jobs.ended(job, outcome);
            }
            Notice::Failed { error } => {
                if let Some(host) = self.running.get_mut(&number) {
                    host.failure = Some(error);
                }
            }
        }
    }

    /// A host's first process is gone: closing its socket takes it out of the epoll.
    fn end(&mut self, number: u64) {
        let Some(host) = self.running.remove(&number) else { return };
        self.numbers.remove(&host.name);
        let error = host.failure.unwrap_or_else(|| {
            let message = format!("the first process of host {:?} was killed, and all its programs with it", host.name);
            LabError::new(
                ErrorName::HostEnded,
                message,
                "the next program starts the host anew; its network was not touched",
            )
        });
        self.jobs.lose(Some(&host.name), &error);
    }
}
