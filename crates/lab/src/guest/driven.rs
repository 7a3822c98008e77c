//! The real hosts of a lab on the virtual clock: the guest that they live in, and the ports of the fabric that lead to
//! it.

use twinnet_fabric::PortId;
use twinnet_packet::Frame;
use twinnet_units::random::mix;
use twinnet_units::{impossible, Time};

use super::{hosts, interfaces, Guest, Input, News, Program, ProgramOrder};
use crate::assemble::RunningNetwork;
use crate::error::{ErrorName, LabError};
use crate::network::NetworkSpec;
use crate::protocol::{Answer, Reply, Signal, Spawn};

/// A guest with what the lab knows of it.
pub(crate) struct GuestHosts {
    pub(crate) guest: Box<dyn Guest>,
    /// The interface of the guest behind each port of the fabric, if any.
    interfaces: Vec<Option<usize>>,
    /// The port of the fabric at each interface of the guest.
    ports: Vec<PortId>,
    /// A hash over all frames that the guest has sent, in order.
    trace: u64,
    /// `true` while the guest has the turn.
    pub(crate) has_turn: bool,
    /// `true` if something was given to it that it does not know of yet.
    stirred: bool,
    jobs: u64,
}

impl GuestHosts {
    /// The hosts of `network`, in `guest`.
    pub(crate) fn new(guest: Box<dyn Guest>, network: &RunningNetwork) -> Self {
        let names = interfaces(&network.spec).map(|(host, port)| host.ports[port].name.as_str());
        let ports: Vec<PortId> = names.filter_map(|name| network.names.ports.get(name).copied()).collect();
        let mut interfaces = vec![None; network.names.port_names.len()];
        for (interface, port) in ports.iter().enumerate() {
            interfaces[port.0 as usize] = Some(interface);
        }
        let trace = network.spec.seed;
        Self { guest, interfaces, ports, trace, has_turn: false, stirred: false, jobs: 0 }
    }

    /// The port of the fabric at the guest's `interface`.
    pub(crate) fn port(&self, interface: usize) -> Option<PortId> {
        self.ports.get(interface).copied()
    }

    /// A hash over the frames that the guest has sent so far.
    pub(crate) fn trace(&self) -> u64 {
        self.trace
    }

    fn interface(&self, port: PortId) -> Option<usize> {
        self.interfaces.get(port.0 as usize).copied().flatten()
    }

    pub(crate) fn deliver(&mut self, port: PortId, frame: Box<Frame>) {
        let Some(interface) = self.interface(port) else {
            return impossible!("a frame for a real host that is in no guest");
        };
        self.stirred = true;
        self.guest.deliver(interface, frame);
    }

    pub(crate) fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        let interface = self.interface(port)?;
        // What was sent before has left: the guest is to know that its memory is free.
        self.stirred = true;
        let frame = self.guest.pull(interface)?;
        self.trace = mix(self.trace ^ u64::from(port.0) << 32 ^ hash_of(&frame.bytes));
        Some(frame)
    }

    pub(crate) fn carrier(&mut self, port: PortId, up: bool) {
        if let Some(interface) = self.interface(port) {
            self.stirred = true;
            self.guest.carrier(interface, up);
        }
    }

    /// Lets the guest know at `at` of what was given to it.
    pub(crate) fn settle(&mut self, at: Time) -> Result<(), LabError> {
        if std::mem::take(&mut self.stirred) {
            self.guest.settle(at)?;
        }
        Ok(())
    }

    /// Orders a program.
    pub(crate) fn order(&mut self, order: ProgramOrder) {
        self.stirred = true;
        self.guest.order(order);
    }

    /// `spawn`: the program's number comes at once; whether it runs is news.
    pub(crate) fn spawn(&mut self, network: &NetworkSpec, asked: Spawn, input: Input) -> Answer {
        if !hosts(network).any(|host| host.name == asked.host) {
            return Err(no_real_host(network, &asked.host));
        }
        self.jobs += 1;
        let job = self.jobs;
        let limit = asked.limit_ps.map(twinnet_units::Duration::from_ps);
        let Spawn { host, argv, env, cwd, .. } = asked;
        self.order(ProgramOrder::Start(Program { job, host, argv, env, cwd, input, limit }));
        Ok(Reply::Job { job, pid: 0 })
    }

    /// `signal`.
    pub(crate) fn signal(&mut self, asked: &Signal) -> Answer {
        let Signal { job, signal } = *asked;
        if !(1..=64).contains(&signal) {
            let message = format!("signal {signal} does not exist");
            return Err(LabError::new(ErrorName::BadRequest, message, "signals have the numbers 1 to 64"));
        }
        if job == 0 || job > self.jobs {
            return Err(LabError::new(ErrorName::UnknownJob, format!("there is no program {job}"), "see `jobs`"));
        }
        self.order(ProgramOrder::Signal { job, signal });
        Ok(Reply::Done {})
    }

    /// Takes what programs have done.
    pub(crate) fn take_news(&mut self) -> Vec<News> {
        self.guest.take_news()
    }
}

/// A hash of `bytes`, not for keeping secrets.
pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let mut words = bytes.chunks_exact(8);
    let hash =
        words.by_ref().fold(bytes.len() as u64, |hash, word| step(hash, word.try_into().map_or(0, u64::from_le_bytes)));
    words.remainder().iter().fold(hash, |hash, byte| step(hash, u64::from(*byte)))
}

/// The refusal of a program in `host`.
fn no_real_host(network: &NetworkSpec, host: &str) -> LabError {
    if network.host_names().any(|name| name == host) {
        let message = format!("{host:?} is a model host, which lives in the fabric: it runs apps, no programs");
        return LabError::new(ErrorName::ModelHost, message, "use an app, or describe it without model");
    }
    crate::model_apps::unknown_host(host, network.host_names())
}
