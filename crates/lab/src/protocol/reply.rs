//! The answers of a lab, with the rows of its lists.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use schemars::generate::SchemaSettings;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{json, Map, Value};
use twinnet_fabric::{DirectionConfig, PortCounters, TunnelConfig};
use twinnet_packet::MacAddress;
use twinnet_switch::control::{ConnectionState, Messages};
use twinnet_switch::{FollowedStep, GroupRow, MeterRow};
use twinnet_units::{Duration, Rate, Time};

use super::fields::PeerKind;
use crate::network::NetworkSpec;

/// The answer of a lab. On the wire it is the JSON value of its content.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Reply {
    /// It is done; there is nothing to tell.
    #[schemars(title = "Done")]
    Done {},
    /// `start`.
    #[schemars(title = "Started")]
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
    #[schemars(title = "Description")]
    Description {
        /// The network.
        #[serde(flatten)]
        #[schemars(with = "Map<String, Value>")]
        network: Box<NetworkSpec>,
        /// The way real hosts are joined to the fabric: `tap` or `veth`.
        #[serde(skip_serializing_if = "Option::is_none")]
        interface: Option<&'static str>,
    },
    /// `now`.
    #[schemars(title = "Now")]
    Now {
        /// The lab's time.
        now_ps: Time,
    },
    /// `events.next`.
    #[schemars(title = "Next")]
    Next {
        /// The time of the next event.
        next_ps: Option<Time>,
    },
    /// `spawn`.
    #[schemars(title = "Job")]
    Job {
        /// The program's number.
        job: u64,
        /// Its process.
        pid: i32,
    },
    /// `wait`.
    #[schemars(title = "JobEnded")]
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
    #[schemars(title = "Jobs")]
    Jobs(Vec<JobRow>),
    /// `app.start`.
    #[schemars(title = "App")]
    App {
        /// The app's number.
        app: u32,
    },
    /// `app.report`.
    #[schemars(title = "Apps")]
    Apps(Vec<AppRow>),
    /// `app.wait` and `controllers.wait` on the wall clock.
    #[schemars(title = "Finished")]
    Finished {
        /// `true` if all apps have finished, or all controllers have joined.
        finished: bool,
    },
    /// `advance`, and the waits of the virtual clock.
    #[schemars(title = "Passed")]
    Passed(Passed),
    /// `flows.delete`.
    #[schemars(title = "Deleted")]
    Deleted {
        /// Entries that are gone.
        deleted: usize,
    },
    /// `flows.dump`.
    #[schemars(title = "Flows")]
    Flows(Vec<String>),
    /// `learnt`.
    #[schemars(title = "Learnt")]
    Learnt(Vec<LearntRow>),
    /// `groups`.
    #[schemars(title = "Groups")]
    Groups {
        /// The groups, by number.
        groups: Vec<GroupRow>,
        /// The meters, by number.
        meters: Vec<MeterRow>,
    },
    /// `follow`.
    #[schemars(title = "Followed")]
    Followed(FollowedFrame),
    /// `controller.attach`.
    #[schemars(title = "Ended")]
    Ended {
        /// Why the connection ended.
        ended: String,
    },
    /// `controller.open`.
    #[schemars(title = "Connection")]
    Connection {
        /// The connection's number.
        connection: u64,
    },
    /// `controllers`.
    #[schemars(title = "Controllers")]
    Controllers(Vec<ControllerRow>),
    /// `interfaces`.
    #[schemars(title = "Interfaces")]
    Interfaces(Vec<InterfaceRow>),
    /// `links`.
    #[schemars(title = "Links")]
    Links(Vec<LinkRow>),
    /// `links.counters`.
    #[schemars(title = "LinkCounters")]
    LinkCounters(LinkCounters),
    /// `ports`.
    #[schemars(title = "Ports")]
    Ports(Vec<PortRow>),
    /// `samples.start`.
    #[schemars(title = "Sampler")]
    Sampler {
        /// The sampler's number.
        sampler: u32,
    },
    /// `samples.read` and `samples.stop`.
    #[schemars(title = "Samples")]
    Samples(SamplesTold),
    /// `capture.start`.
    #[schemars(title = "Capture")]
    Capture {
        /// The capture's number.
        capture: u32,
    },
    /// `capture.stop`.
    #[schemars(title = "Captured")]
    Captured(Captured),
    /// `ports.shown`.
    #[schemars(title = "Shown")]
    Shown {
        /// Frames that were written to interfaces.
        frames: u64,
        /// Frames that were not.
        left_out: u64,
    },
    /// `tunnels`.
    #[schemars(title = "Tunnels")]
    Tunnels(Vec<TunnelRow>),
    /// `fidelity` on the wall clock: the record as the loop keeps it (docs/reference/fidelity.md).
    #[schemars(title = "Fidelity")]
    Fidelity(#[schemars(with = "Map<String, Value>")] Box<Value>),
    /// `fidelity` on the virtual clock.
    #[schemars(title = "VirtualFidelity")]
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
    /// The forms of the answers by name, for clients in other languages: `{"answers": {name: schema}, "types": {name:
    /// schema}}`; an answer's schema refers to the types.
    #[must_use]
    pub fn schemas() -> Value {
        let mut generator = SchemaSettings::default().for_serialize().into_generator();
        let whole = Self::json_schema(&mut generator);
        let answers = whole.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        let named = answers.filter_map(|answer| Some((answer["title"].as_str()?.to_owned(), answer.clone())));
        json!({"answers": named.collect::<Map<String, Value>>(), "types": generator.take_definitions(true)})
    }

    /// The value on the wire.
    #[must_use]
    pub fn into_json(self) -> Value {
        // Only a map whose keys are no texts could fail, and there is none.
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
    #[schemars(with = "Option<Map<String, Value>>")]
    pub report: Option<Value>,
}

/// The virtual time that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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

/// An address that a switch has learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LearntRow {
    /// The number of the port at which it was seen last.
    pub port: u32,
    /// The VLAN; 0: none.
    pub vlan: u16,
    /// The address.
    #[schemars(with = "String")]
    pub mac: MacAddress,
    /// The time since it was seen.
    pub age_ps: Duration,
}

/// What would become of a frame in a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FollowedFrame {
    /// What would be done with it, in order.
    pub steps: Vec<FollowedStep>,
    /// Where it would leave.
    pub outputs: Vec<FollowedOutput>,
}

/// A frame that would leave a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FollowedOutput {
    /// The number of the port.
    pub port: u32,
    /// The queue of that port.
    pub queue: u32,
    /// The frame as it would leave, in hexadecimal.
    pub frame: String,
}

/// A connection of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ControllerRow {
    /// The switch.
    pub switch: String,
    /// The name of the peer.
    pub target: String,
    /// The kind of the peer.
    pub peer: PeerKind,
    /// The state of the connection; the switch may have let go of it.
    #[serde(flatten)]
    pub state: Option<ConnectionState>,
    /// What was said on it, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<Messages>,
}

/// The state of an interface of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InterfaceRow {
    /// The node that it is.
    pub node: Option<String>,
    /// Its name.
    pub interface: String,
    /// Its state.
    pub state: InterfaceState,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DirectionRow {
    /// The port that sends into it.
    pub port: String,
    /// `true` if it carries anything.
    pub up: Option<bool>,
    /// Its settings.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub config: Option<DirectionConfig>,
    /// The counters of the port.
    pub counters: PortCounters,
}

/// What changes often of links.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LinkCounters {
    /// The name of each place of a row.
    pub columns: Vec<&'static str>,
    /// Two rows for each link: from `a` to `b`, and back.
    #[serde(serialize_with = "in_columns")]
    #[schemars(with = "Vec<Vec<u64>>")]
    pub rows: Vec<DirectionRow>,
}

impl LinkCounters {
    /// Those of all directions, in their order.
    #[must_use]
    pub fn of(rows: Vec<DirectionRow>) -> Self {
        Self { columns: COLUMNS.iter().map(|(name, _)| *name).collect(), rows }
    }
}

/// The name of a column, and where its value is.
type Column = (&'static str, fn(&DirectionRow) -> u64);

/// The columns of [`LinkCounters`], with what each has of a direction.
const COLUMNS: [Column; 14] = [
    ("up", |row| row.up.unwrap_or_default().into()),
    ("lossy", |row| row.config.as_ref().is_some_and(|config| config.impair.is_lossy()).into()),
    ("rate_bps", |row| row.config.as_ref().and_then(|config| config.rate_bps).map_or(0, Rate::as_bps)),
    ("backlog_frames", |row| row.counters.backlog_frames),
    ("link_bytes", |row| row.counters.sent.link_bytes),
    ("wire_bytes", |row| row.counters.sent.wire_bytes),
    ("marked", |row| row.counters.sent.marked),
    ("dropped_overlimit", |row| row.counters.sent.dropped_overlimit),
    ("dropped_early", |row| row.counters.sent.dropped_early),
    ("dropped_unclassified", |row| row.counters.sent.dropped_unclassified),
    ("dropped_down", |row| row.counters.sent.dropped_down),
    ("dropped_oversize", |row| row.counters.sent.dropped_oversize),
    ("dropped_unfragmentable", |row| row.counters.sent.dropped_unfragmentable),
    ("lost", |row| row.counters.sent.lost),
];

fn in_columns<S: Serializer>(rows: &[DirectionRow], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.iter().map(|row| COLUMNS.map(|(_, of)| of(row))))
}

/// A port.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PortRow {
    /// Its interface name.
    pub port: String,
    /// Its counters.
    pub counters: PortCounters,
    /// The counters of the classes of its queue discipline.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub classes: Value,
}

/// The columns of a sampler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SamplesTold {
    /// The length of an interval.
    pub interval_ps: Duration,
    /// The time when the first that is told began.
    pub start_ps: Time,
    /// `true` if it ended because it keeps no more.
    pub full: bool,
    /// For each port its columns by name.
    pub ports: BTreeMap<String, BTreeMap<&'static str, Vec<u64>>>,
}

/// The outcome of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TunnelRow {
    /// The node that it is.
    pub node: String,
    /// The other speaker.
    pub remote: Ipv4Addr,
    /// The encapsulation.
    #[schemars(with = "Map<String, Value>")]
    pub tunnel: TunnelConfig,
    /// The MTU of the way to the remote.
    pub path_mtu: u32,
    /// The longest packet that goes through it.
    pub inner_mtu: u32,
    /// Its counters, as its end counts them.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub counters: Value,
    /// The numbers of what its socket has refused, by reason.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub refused: Value,
}
