//! The answers of a lab, with the rows of its lists.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::Serialize;
use serde_json::Value;
use twinnet_fabric::{DirectionConfig, PortCounters, TunnelConfig};
use twinnet_switch::control::ConnectionState;
use twinnet_units::{Duration, Time};

use super::fields::PeerKind;
use crate::network::NetworkSpec;

/// The answer of a lab. On the wire it is the JSON value of its content.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// It is done; there is nothing to tell.
    Done {},
    /// `start`.
    Started {
        /// The process of the lab.
        pid: u32,
        /// Real hosts.
        hosts: usize,
        /// Milliseconds that it took to build the network.
        setup_ms: f64,
        /// The way hosts are joined to the fabric: `tap` or `veth`.
        interface: &'static str,
        /// `true` if the loop runs under real-time scheduling.
        realtime: bool,
        /// Threads that move the network.
        fabric_threads: u64,
        /// The version of the protocol.
        protocol: u32,
    },
    /// `describe`.
    Description {
        /// The network.
        #[serde(flatten)]
        network: Box<NetworkSpec>,
        /// The way real hosts are joined to the fabric: `tap` or `veth`.
        #[serde(skip_serializing_if = "Option::is_none")]
        interface: Option<&'static str>,
    },
    /// `now`.
    Now {
        /// The lab's time.
        now_ps: Time,
    },
    /// `spawn`.
    Job {
        /// The program's number.
        job: u64,
        /// Its process.
        pid: i32,
    },
    /// `wait`.
    JobEnded {
        /// Its exit status, when it exited.
        status: Option<i32>,
        /// The signal that ended it otherwise.
        signal: Option<i32>,
        /// `true` if its time was over.
        limit: bool,
        /// The time that it ran, in picoseconds.
        elapsed_ps: u64,
    },
    /// `jobs`.
    Jobs(Vec<JobRow>),
    /// `app.start`.
    App {
        /// The app's number.
        app: u32,
    },
    /// `app.report`.
    Apps(Vec<AppRow>),
    /// `app.wait` on the wall clock.
    Finished {
        /// `true` if all apps have finished.
        finished: bool,
    },
    /// `advance`, and the waits of the virtual clock.
    Passed(Passed),
    /// `flows.delete`.
    Deleted {
        /// Entries that are gone.
        deleted: usize,
    },
    /// `flows.dump`.
    Flows(Vec<String>),
    /// `controller.attach`.
    Ended {
        /// Why the connection ended.
        ended: String,
    },
    /// `controller.open`.
    Connection {
        /// The connection's number.
        connection: u64,
    },
    /// `controllers`.
    Controllers(Vec<ControllerRow>),
    /// `interfaces`.
    Interfaces(Vec<InterfaceRow>),
    /// `links`.
    Links(Vec<LinkRow>),
    /// `ports`.
    Ports(Vec<PortRow>),
    /// `samples.start`.
    Sampler {
        /// The sampler's number.
        sampler: u32,
    },
    /// `samples.read` and `samples.stop`.
    Samples(SamplesTold),
    /// `capture.start`.
    Capture {
        /// The capture's number.
        capture: u32,
    },
    /// `capture.stop`.
    Captured(Captured),
    /// `tunnels`.
    Tunnels(Vec<TunnelRow>),
    /// `fidelity` on the wall clock: the record as the loop keeps it (docs/reference/fidelity.md).
    Fidelity(Box<Value>),
    /// `fidelity` on the virtual clock.
    VirtualFidelity {
        /// `virtual`.
        clock: &'static str,
        /// The lab's time.
        elapsed_ps: Time,
        /// Events that were handled.
        events: u64,
        /// The hash of all of them, in hexadecimal digits.
        trace_hash: String,
        /// States that cannot be which this process has met: 0, or there is a fault in the program.
        impossible_states: u64,
        /// The first of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        first_impossible_state: Option<&'static str>,
    },
}

impl Reply {
    /// The value on the wire.
    #[must_use]
    pub fn into_json(self) -> Value {
        // Only a map whose keys are no texts could fail, and there is none.
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobRow {
    /// Its number.
    pub job: u64,
    /// The host.
    pub host: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its process, once it runs.
    pub pid: Option<i32>,
    /// `starting`, `running`, `ended` or `lost`.
    pub state: &'static str,
    /// Its exit status, when it exited.
    pub status: Option<i32>,
    /// The signal that ended it otherwise.
    pub signal: Option<i32>,
}

/// An app and what it counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AppRow {
    /// Its number.
    pub app: u32,
    /// The host.
    pub host: String,
    /// Its kind.
    pub kind: &'static str,
    /// `true` if it has nothing more to do.
    pub finished: bool,
    /// Its report; `None` when it is gone with its host.
    pub report: Option<Value>,
}

/// The virtual time that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Passed {
    /// The lab's time.
    pub now_ps: Time,
    /// `true` if the caller's patience ended first.
    pub paused: bool,
    /// `true` if controllers are to be told something at this moment.
    pub controllers: bool,
    /// `true` if programs have done something at this moment that the lab's owner is to be told first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub programs: bool,
    /// `true` if what was waited for has come; of `advance` nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<bool>,
}

/// A connection of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ControllerRow {
    /// The switch.
    pub switch: String,
    /// The name of the peer.
    pub target: String,
    /// The kind of the peer.
    pub peer: PeerKind,
    /// The state of the connection.
    #[serde(flatten)]
    pub state: Option<ConnectionState>,
}

/// The state of an interface of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InterfaceState {
    /// It can carry frames.
    Up,
    /// It is down, or has no carrier.
    Down,
    /// It is gone from its namespace, for ever.
    Gone,
}

impl InterfaceState {
    /// As it is told to the user.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down or without carrier: its port is down",
            Self::Gone => "gone: its port is down",
        }
    }
}

/// An interface of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterfaceRow {
    /// The node that it is.
    pub node: Option<String>,
    /// Its name.
    pub interface: String,
    /// Its state.
    pub state: InterfaceState,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkRow {
    /// Its number.
    pub link: usize,
    /// The node at one end.
    pub a: String,
    /// The node at the other end.
    pub b: String,
    /// From `a` to `b`.
    pub ab: DirectionRow,
    /// From `b` to `a`.
    pub ba: DirectionRow,
}

/// A direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionRow {
    /// The port that sends into it.
    pub port: String,
    /// `true` if it carries anything.
    pub up: Option<bool>,
    /// Its settings.
    pub config: Option<DirectionConfig>,
    /// The counters of the port.
    pub counters: PortCounters,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortRow {
    /// Its interface name.
    pub port: String,
    /// Its counters.
    pub counters: PortCounters,
    /// The counters of the classes of its queue discipline.
    pub classes: Value,
}

/// The columns of a sampler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SamplesTold {
    /// The length of an interval.
    pub interval_ps: Duration,
    /// The time when the first began.
    pub start_ps: Time,
    /// `true` if it ended because it keeps no more.
    pub full: bool,
    /// For each port its columns by name.
    pub ports: BTreeMap<String, BTreeMap<&'static str, Vec<u64>>>,
}

/// The outcome of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Captured {
    /// Frames that are in files, also in those that a ring has removed since.
    pub frames: u64,
    /// Frames that are in none.
    pub dropped: u64,
    /// `true` if writing failed.
    pub write_failed: bool,
    /// Why it failed.
    pub failure: Option<String>,
    /// The files that are there, the oldest first.
    pub files: Vec<String>,
}

/// A tunnel to another speaker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TunnelRow {
    /// The node that it is.
    pub node: String,
    /// The other speaker.
    pub remote: Ipv4Addr,
    /// The encapsulation.
    pub tunnel: TunnelConfig,
    /// The MTU of the way to the remote.
    pub path_mtu: u32,
    /// The longest packet that goes through it.
    pub inner_mtu: u32,
    /// Its counters, as its end counts them.
    pub counters: Value,
    /// The numbers of what its socket has refused, by reason.
    pub refused: Value,
}
