//! The lab protocol: every request that a lab answers, and every reply that it gives, on either clock.
//!
//! A request comes as a JSON object with `"do"` and is read once, at the door, by [`Request::read`]; from there on
//! it is a typed value. docs/reference/lab-protocol.md shows the table of requests that [`reference`] gives.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use twinnet_apps::AppConfig;
use twinnet_fabric::{DirectionConfig, PortCounters, TunnelConfig};
use twinnet_impair::{JitterConfig, LossConfig};
use twinnet_packet::Framing;
use twinnet_queue::QueueConfig;
use twinnet_switch::control::ConnectionState;
use twinnet_units::{Duration, Rate, Time};

use crate::capture::Ring;
use crate::error::LabError;
use crate::network::NetworkSpec;

/// The version of the protocol. It grows when a request or a reply changes its meaning.
pub const VERSION: u32 = 1;

/// What a request is answered with.
pub type Answer = Result<Reply, LabError>;

/// Defines the requests: their names, fields and replies stand in one place each.
macro_rules! requests {
    ($(
        $(#[doc = $doc:literal])*
        $name:literal $request:ident {
            $( $(#[doc = $field_doc:literal])* $field:ident = $wire:literal : $kind:ty, )*
        } -> $reply:literal;
    )*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Debug, PartialEq, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $request {
                $( $(#[doc = $field_doc])* #[serde(rename = $wire)] pub $field: $kind, )*
            }
        )*

        /// What a lab is asked.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Request {
            $( $(#[doc = $doc])* $request(Box<$request>), )*
        }

        impl Request {
            /// Reads a request. `"id"` is its sender's and is passed over.
            ///
            /// # Errors
            /// `MalformedRequest` for what is no request at all, `UnknownRequest`, and for a field that lacks, is
            /// unknown or cannot be read `BadRequest` or the name of what the field describes, such as `BadApp` and
            /// `BadQueue`.
            pub fn read(body: Value) -> Result<Self, LabError> {
                let Value::Object(mut fields) = body else {
                    return Err(malformed("a request is a JSON object"));
                };
                fields.remove("id");
                let Some(Value::String(name)) = fields.remove("do") else {
                    return Err(malformed("the request has no \"do\""));
                };
                let fields = &mut Fields { request: &name, fields };
                let request = match name.as_str() {
                    $( $name => {
                        $( let $field = fields.take($wire)?; )*
                        Self::$request(Box::new($request { $($field),* }))
                    } )*
                    _ => return Err(unknown_request(&name)),
                };
                fields.end(&[$( ($name, &[$($wire),*]) ),*])?;
                request.check()?;
                Ok(request)
            }

            /// The name under `"do"`.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $( Self::$request(_) => $name, )*
                }
            }
        }

        /// All requests with their fields and replies, for the reference page: a JSON array of
        /// `{"do", "is", "fields", "reply"}`.
        #[must_use]
        pub fn reference() -> Value {
            let requests = [$(
                serde_json::json!({
                    "do": $name,
                    "is": concat!($($doc),*).trim(),
                    "fields": [$( {
                        "name": $wire,
                        "type": type_words(stringify!($kind)),
                        "is": concat!($($field_doc),*).trim(),
                    } ),*],
                    "reply": $reply,
                })
            ),*];
            Value::Array(requests.into())
        }
    };
}

requests! {
    /// Builds the network and starts the lab's clock.
    "start" Start {
        /// The description, [below](#network).
        network = "network": Described,
        /// [Below](#options-of-start).
        options = "options": Option<Value>,
        /// The version that the client speaks; another one than the lab's is refused.
        protocol = "protocol": Option<u32>,
    } -> "`{\"pid\": n, \"hosts\": n, \"setup_ms\": x, \"interface\": \"tap\" or \"veth\", \"realtime\": \
        bool, \"protocol\": n}`";

    /// Tells the network as it was built, with addresses, interface names and port numbers.
    "describe" Describe {} -> "the network, and `\"interface\": \"tap\"` or `\"veth\"` on the wall clock";

    /// Tells the time.
    "now" Now {} -> "`{\"now_ps\": n}`";

    /// Ends the lab.
    "stop" Stop {} -> "`{}`; then the process ends";

    /// Gives the lab an interface of the machine before `start` ([how](#interfaces-of-the-machine)). Descriptors: a
    /// packet socket, a socket that hears of the interface.
    "interface.offer" InterfaceOffer {
        /// The node that it is.
        node = "node": String,
        /// Its index in the network namespace of the lab's owner.
        index = "index": u32,
        /// Its MTU.
        mtu = "mtu": u32,
    } -> "`{}`";

    /// Tells the state of the interfaces of the machine.
    "interfaces" Interfaces {} -> "array of `{\"node\", \"interface\", \"state\": \"up\", \"down\" or \"gone\"}`";

    /// Starts a program in a real host. Descriptors: stdin, stdout, stderr; with `terminal` one, the pty's slave.
    "spawn" Spawn {
        /// The host.
        host = "host": String,
        /// The program and its arguments.
        argv = "argv": Vec<String>,
        /// The whole environment; that of the lab's owner when null.
        env = "env": Option<BTreeMap<String, String>>,
        /// The working directory; that of the lab's owner when null.
        cwd = "cwd": Option<String>,
        /// Whether it has a terminal.
        terminal = "terminal": Option<bool>,
        /// The time after which it is ended.
        limit_ps = "limit_ps": Option<u64>,
    } -> "`{\"job\": n, \"pid\": n}`; `pid` is that in the host. Errors: `UnknownHost`, `ProgramNotFound`, \
        `ProgramNotExecutable`, `ProgramNotStarted`, `NoSuchDirectory`, `BadDescriptors`, `HostNotReady`, \
        `HostBusy`, `ModelHost` (it runs no programs)";

    /// Waits until a program ends.
    "wait" Wait {
        /// Its number.
        job = "job": u64,
    } -> "`{\"status\": n or null, \"signal\": n or null, \"limit\": bool, \"elapsed_ps\": n}`; `HostEnded` when its \
        host was killed";

    /// Sends a signal to the process group of a program.
    "signal" Signal {
        /// Its number.
        job = "job": u64,
        /// The signal's number.
        signal = "signal": i32,
    } -> "`{}`";

    /// Lists the programs.
    "jobs" Jobs {} -> "array of `{\"job\", \"host\", \"argv\", \"pid\", \"state\", \"status\", \"signal\"}`";

    /// Starts an app.
    "app.start" AppStart {
        /// The host.
        host = "host": String,
        /// The app's [description](#apps).
        app = "app": AppConfig,
        /// When; null: now.
        at = "at_ps": Option<Time>,
        /// The seed of its random numbers; null: derived from the app's number.
        seed = "seed": Option<u64>,
    } -> "`{\"app\": n}`";

    /// Asks an app to end.
    "app.stop" AppStop {
        /// Its number.
        app = "app": u32,
    } -> "`{}`";

    /// Tells what apps have counted.
    "app.report" AppReports {
        /// One app; without it and `apps` all are told.
        app = "app": Option<u32>,
        /// Several apps.
        apps = "apps": Option<Vec<u32>>,
    } -> "array of `{\"app\": n, \"host\", \"kind\", \"finished\": bool, \"report\": {...}}`";

    /// Waits until apps have finished. On the virtual clock time passes meanwhile.
    "app.wait" AppWait {
        /// Their numbers.
        apps = "apps": Vec<u32>,
        /// The time at which it is answered at the latest.
        until = "until_ps": Option<Time>,
    } -> "`{\"finished\": bool}`; on the virtual clock also what `advance` answers";

    /// Adds flow entries, all or none.
    "flows.add" FlowsAdd {
        /// The switch.
        switch = "switch": String,
        /// Lines in the [syntax of flows](flow-syntax.md).
        flows = "flows": Vec<String>,
    } -> "`{}`; the error names line, token, position";

    /// Deletes flow entries.
    "flows.delete" FlowsDelete {
        /// The switch.
        switch = "switch": String,
        /// The line that they match; all when it is empty or null.
        matching = "match": Option<String>,
    } -> "`{\"deleted\": n}`";

    /// Tells the flow entries.
    "flows.dump" FlowsDump {
        /// The switch.
        switch = "switch": String,
    } -> "array of lines in `ovs-ofctl dump-flows` form";

    /// Serves the connection of a controller until it ends. Descriptor: a connected stream socket. Wall clock only.
    "controller.attach" ControllerAttach {
        /// The switch.
        switch = "switch": String,
        /// A text that names the peer.
        target = "target": String,
        /// What the peer is; null: a controller.
        peer = "peer": Option<PeerKind>,
    } -> "when the connection ends: `{\"ended\": why}`";

    /// Makes a connection between a switch and a controller on the virtual clock.
    "controller.open" ControllerOpen {
        /// The switch.
        switch = "switch": String,
        /// A text that names the peer.
        target = "target": String,
    } -> "`{\"connection\": n}`";

    /// Ends such a connection.
    "controller.close" ControllerClose {
        /// Its number.
        connection = "connection": u64,
    } -> "`{}`";

    /// Tells how the connections of controllers stand.
    "controllers" Controllers {} -> "array of `{\"switch\", \"target\", \"peer\", \"connection\": \
        n, \"version\": \"1.0\", \"1.3\" or null, \"role\", \"messages\", \"packet_ins\", \"errors\"}`";

    /// Waits until each switch has agreed on a version with a controller; on the virtual clock also until nothing
    /// more is on its way between them.
    "controllers.wait" ControllersWait {
        /// The switches.
        switches = "switches": Vec<String>,
        /// The time at which it is answered at the latest; needed on the virtual clock.
        until = "until_ps": Option<Time>,
    } -> "`{}`; on the virtual clock what `advance` answers, and `\"finished\": bool`";

    /// Gives a port another queue; what waits moves into it.
    "queues.set" QueuesSet {
        /// An interface name or, with `node`, the index of one of its ports.
        port = "port": PortName,
        /// The node whose port it is.
        node = "node": Option<String>,
        /// The [queue configuration](#network).
        queue = "queue": QueueConfig,
    } -> "`{}`";

    /// Changes a link: all together or nothing.
    "link.set" LinkSet {
        /// The link's number; or `a` and `b`.
        link = "link": Option<usize>,
        /// The node at one end.
        a = "a": Option<String>,
        /// The node at the other end.
        b = "b": Option<String>,
        /// The directions that are meant; null: both.
        direction = "direction": Option<LinkWay>,
        /// Any fields of a direction, and `up`. What is not named stays as it is.
        set = "set": LinkSettings,
    } -> "`{}`";

    /// Tells the links.
    "links" Links {} -> "array of `{\"link\": index, \"a\": node, \"b\": node, \"ab\": D, \"ba\": D}` with D = \
        `{\"port\", \"up\", \"config\", \"counters\"}`";

    /// Tells the ports.
    "ports" Ports {} -> "array of `{\"port\": name, \"counters\": {...}, \"classes\": [...]}`: \
        [links](links.md#counters), [classes](queue-disciplines.md#counters-of-classes)";

    /// Counts what ports do in each interval.
    "samples.start" SamplesStart {
        /// The interval, at least 1 us.
        interval = "interval_ps": Duration,
        /// Interface names.
        ports = "ports": Vec<String>,
    } -> "`{\"sampler\": n}`";

    /// Tells what was counted so far.
    "samples.read" SamplesRead {
        /// The sampler.
        sampler = "sampler": u32,
    } -> "`{\"interval_ps\": n, \"start_ps\": n, \"full\": bool, \"ports\": {name: {column: [...]}}}`: \
        [columns](#samples)";

    /// Tells what was counted and ends the sampler.
    "samples.stop" SamplesStop {
        /// The sampler.
        sampler = "sampler": u32,
    } -> "as `samples.read`";

    /// Changes a link at a given time.
    "schedule" Schedule {
        /// When.
        at = "at_ps": Time,
        /// The fields of a `link.set`.
        set = "set": LinkSet,
    } -> "`{}`";

    /// Captures a port to a file. Descriptor on the wall clock: the file to write; with a ring its folder.
    "capture.start" CaptureStart {
        /// The interface name.
        port = "port": String,
        /// The path of the file; virtual clock only.
        path = "path": Option<String>,
        /// The name that a ring's files get a number into; wall clock only.
        file = "file": Option<String>,
        /// Bytes of file; what comes later is counted only.
        limit_bytes = "limit_bytes": Option<u64>,
        /// Bytes of each frame that are kept.
        snap = "snap": Option<u32>,
        /// The frames that are meant; null: both.
        direction = "direction": Option<CaptureWay>,
        /// `{"files": n, "bytes": n or null, "duration_ps": n or null}`: files that follow each other.
        ring = "ring": Option<Ring>,
    } -> "`{\"capture\": n}`";

    /// Ends a capture.
    "capture.stop" CaptureStop {
        /// Its number.
        capture = "capture": u32,
    } -> "`{\"frames\": n, \"dropped\": n, \"write_failed\": false, \"failure\": text or null, \"files\": [name, \
        ...]}`";

    /// Gives a tunnel's end its socket. Descriptor: the socket.
    "tunnel.attach" TunnelAttach {
        /// The tunnel's end.
        node = "node": String,
        /// A name; tunnels that share a socket give the same.
        underlay = "underlay": String,
        /// The MTU of the way to the remote.
        mtu = "mtu": u32,
    } -> "`{}`";

    /// Tells how the tunnels to other speakers stand.
    "tunnels" Tunnels {} -> "for each `{\"node\", \"remote\", \"tunnel\", \"path_mtu\", \"inner_mtu\", \"counters\": \
        {...}, \"refused\": {...}}`";

    /// Tells how closely the lab kept its schedule.
    "fidelity" Fidelity {} -> "the [fidelity record](#fidelity)";

    /// Begins the fidelity record anew.
    "fidelity.reset" FidelityReset {} -> "`{}`";

    /// Lets time pass on the virtual clock.
    "advance" Advance {
        /// Until then.
        until = "until_ps": Time,
    } -> "`{\"now_ps\": n, \"paused\": bool, \"controllers\": bool}`; paused: the caller's patience ended first, \
        asking again goes on";
}

/// A network as a request describes it: read and checked, or the reason why it was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Described(Result<NetworkSpec, LabError>);

impl Described {
    /// The network. [`Request::read`] refuses a request whose network was refused.
    ///
    /// # Errors
    /// Why it was refused.
    pub const fn network(&self) -> Result<&NetworkSpec, &LabError> {
        self.0.as_ref()
    }
}

impl<'de> Deserialize<'de> for Described {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self(NetworkSpec::from_json(&value)))
    }
}

/// What is at the other end of a switch's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerKind {
    /// A controller.
    #[default]
    Controller,
    /// A tool such as `ovs-ofctl`, for which the switch does not give up its fail mode.
    Tool,
}

/// A port by its interface name or by its place at a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum PortName {
    /// The place among the ports of a node.
    Index(usize),
    /// The interface name.
    Interface(String),
}

/// Directions of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkWay {
    /// From `a` to `b`.
    Ab,
    /// From `b` to `a`.
    Ba,
    /// Both.
    #[default]
    Both,
}

/// Frames of a port that a capture keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureWay {
    /// Those that arrive.
    In,
    /// Those that are sent.
    Out,
    /// All.
    #[default]
    Both,
}

/// New settings of a direction of a link: those that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkSettings {
    /// Line rate; `Some(None)`: no serialisation time.
    #[serde(deserialize_with = "given")]
    pub rate_bps: Option<Option<Rate>>,
    /// Bytes of a frame on the wire.
    #[serde(deserialize_with = "given")]
    pub framing: Option<Framing>,
    /// Propagation delay.
    #[serde(deserialize_with = "given")]
    pub delay_ps: Option<Duration>,
    /// Distribution of the delay's variation; `Some(None)`: none.
    #[serde(deserialize_with = "given")]
    pub jitter: Option<Option<JitterConfig>>,
    /// Whether jitter may change the order of frames.
    #[serde(deserialize_with = "given")]
    pub reorder: Option<bool>,
    /// Loss model; `Some(None)`: no loss.
    #[serde(deserialize_with = "given")]
    pub loss: Option<Option<LossConfig>>,
    /// Probability that a frame is carried twice.
    #[serde(deserialize_with = "given")]
    pub duplicate: Option<f64>,
    /// Probability that a bit of a frame is turned.
    #[serde(deserialize_with = "given")]
    pub corrupt: Option<f64>,
    /// Whether it carries anything.
    #[serde(deserialize_with = "given")]
    pub up: Option<bool>,
}

impl LinkSettings {
    /// `config` with these settings.
    #[must_use]
    pub fn applied_to(&self, config: &DirectionConfig) -> DirectionConfig {
        let mut changed = config.clone();
        let Self { rate_bps, framing, delay_ps, jitter, reorder, loss, duplicate, corrupt, up: _ } = self.clone();
        let impair = &mut changed.impair;
        set(&mut changed.rate_bps, rate_bps);
        set(&mut changed.framing, framing);
        set(&mut changed.delay_ps, delay_ps);
        set(&mut impair.jitter, jitter);
        set(&mut impair.reorder, reorder);
        set(&mut impair.loss, loss);
        set(&mut impair.duplicate, duplicate);
        set(&mut impair.corrupt, corrupt);
        changed
    }
}

fn set<T>(field: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *field = value;
    }
}

/// Reads a field that was given, so that a given null differs from an absent field.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A link by its number or by the names of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkName<'a> {
    /// Its number.
    Number(usize),
    /// The nodes at its ends.
    Ends(&'a str, &'a str),
}

impl LinkSet {
    /// The link that is meant.
    ///
    /// # Errors
    /// `BadRequest` when it is named in both ways or in none.
    pub fn name(&self) -> Result<LinkName<'_>, LabError> {
        match (self.link, &self.a, &self.b) {
            (Some(link), None, None) => Ok(LinkName::Number(link)),
            (None, Some(a), Some(b)) => Ok(LinkName::Ends(a, b)),
            _ => Err(LabError::new(
                "BadRequest",
                "a link is named by \"link\", its number, or by \"a\" and \"b\", the nodes at its ends",
                "give one of both; see `links`",
            )),
        }
    }
}

impl AppReports {
    /// The apps that are named; `None`: all.
    #[must_use]
    pub fn wanted(&self) -> Option<Vec<u32>> {
        self.app.map(|app| vec![app]).or_else(|| self.apps.clone())
    }
}

impl Request {
    /// Refuses fields that exclude each other and values out of range.
    fn check(&self) -> Result<(), LabError> {
        match self {
            Self::Start(start) => {
                if let Some(other) = start.protocol.filter(|version| *version != VERSION) {
                    let message = format!("the client speaks version {other} of the lab protocol, the lab {VERSION}");
                    return Err(LabError::new(
                        "ProtocolMismatch",
                        message,
                        "use the client that came with this twinnet",
                    ));
                }
                start.network.network().map(|_| ()).map_err(Clone::clone)
            }
            Self::AppStart(start) => {
                start.app.validate().map_err(|error| LabError::new("BadApp", error.to_string(), ""))
            }
            Self::AppReports(wanted) if wanted.app.is_some() && wanted.apps.is_some() => {
                Err(LabError::new("BadRequest", "app.report: app and apps are both given", "give one of both"))
            }
            Self::LinkSet(change) => change.name().map(|_| ()),
            Self::Schedule(planned) => planned.set.name().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The refusal of a request that this part of a lab does not answer.
    #[must_use]
    pub fn refused(&self, remedy: &str) -> LabError {
        LabError::new("UnknownRequest", format!("there is no request {:?} here", self.name()), remedy)
    }
}

/// The fields of a request that were not read yet.
struct Fields<'a> {
    request: &'a str,
    fields: Map<String, Value>,
}

impl Fields<'_> {
    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, LabError> {
        let given = self.fields.remove(name);
        let lacks = given.is_none();
        let value = given.unwrap_or(Value::Null);
        serde_json::from_value(value).map_err(|error| {
            let why = if lacks { "it is needed and was not given".to_owned() } else { error.to_string() };
            LabError::new(refusal_of(self.request, name), format!("{}: {name}: {why}", self.request), REMEDY)
        })
    }

    /// Refuses what is left.
    fn end(&self, known: &[(&str, &[&str])]) -> Result<(), LabError> {
        let Some(name) = self.fields.keys().next() else { return Ok(()) };
        let known = known.iter().find(|(request, _)| *request == self.request).map_or(&[][..], |(_, fields)| fields);
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("{}: there is no field {name:?}; there are {known}", self.request);
        Err(LabError::new("BadRequest", message, REMEDY))
    }
}

const REMEDY: &str = "docs/reference/lab-protocol.md tells the fields";

/// The name of the refusal of a field that cannot be read.
fn refusal_of(request: &str, field: &str) -> &'static str {
    match (request, field) {
        ("app.start", "app") => "BadApp",
        ("queues.set", "queue") => "BadQueue",
        ("link.set" | "schedule", "set") => "BadLink",
        ("capture.start", "limit_bytes" | "snap" | "direction" | "ring") | ("start", "options") => "InvalidOption",
        _ => "BadRequest",
    }
}

fn malformed(why: &str) -> LabError {
    LabError::new("MalformedRequest", why, "docs/reference/lab-protocol.md tells the form of a request")
}

fn unknown_request(name: &str) -> LabError {
    let shown: String = name.chars().take(60).collect();
    LabError::new("UnknownRequest", format!("there is no request {shown:?}"), "see docs/reference/lab-protocol.md")
}

/// The type of a field in the words of the reference page.
fn type_words(kind: &str) -> String {
    let kind: String = kind.chars().filter(|letter| !letter.is_whitespace()).collect();
    if let Some(inner) = kind.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>')) {
        return format!("{} or null", type_words(inner));
    }
    if let Some(inner) = kind.strip_prefix("Vec<").and_then(|rest| rest.strip_suffix('>')) {
        return format!("array of {}", type_words(inner));
    }
    match kind.as_str() {
        "String" => "text",
        "bool" => "bool",
        "u32" | "u64" | "usize" | "i32" => "whole number",
        "Time" | "Duration" => "picoseconds",
        "PortName" => "text or whole number",
        "PeerKind" => "`\"controller\"` or `\"tool\"`",
        "LinkWay" => "`\"ab\"`, `\"ba\"` or `\"both\"`",
        "CaptureWay" => "`\"in\"`, `\"out\"` or `\"both\"`",
        _ => "object",
    }
    .to_owned()
}

/// What a lab answers. On the wire it is the JSON value of its content.
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
        /// How hosts are joined to the fabric: `tap` or `veth`.
        interface: &'static str,
        /// Whether the loop runs under real-time scheduling.
        realtime: bool,
        /// The version of the protocol.
        protocol: u32,
    },
    /// `describe`.
    Description {
        /// The network.
        #[serde(flatten)]
        network: Box<NetworkSpec>,
        /// How real hosts are joined to the fabric: `tap` or `veth`.
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
        /// Whether its time was over.
        limit: bool,
        /// How long it ran, in picoseconds.
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
        /// Whether all apps have finished.
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
    /// Whether it has nothing more to do.
    pub finished: bool,
    /// What it counted; `None` when it is gone with its host.
    pub report: Option<Value>,
}

/// How far virtual time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Passed {
    /// The lab's time.
    pub now_ps: Time,
    /// Whether the caller's patience ended first.
    pub paused: bool,
    /// Whether controllers are to be told something at this moment.
    pub controllers: bool,
    /// Whether what was waited for has come; of `advance` nothing is said.
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
    /// What the peer is.
    pub peer: PeerKind,
    /// How the connection stands.
    #[serde(flatten)]
    pub state: Option<ConnectionState>,
}

/// How an interface of the machine stands.
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
    /// How it stands.
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
    /// Whether it carries anything.
    pub up: Option<bool>,
    /// Its settings.
    pub config: Option<DirectionConfig>,
    /// What the port has done.
    pub counters: PortCounters,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortRow {
    /// Its interface name.
    pub port: String,
    /// What it has done.
    pub counters: PortCounters,
    /// The counters of the classes of its queue discipline.
    pub classes: Value,
}

/// The columns of a sampler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SamplesTold {
    /// The length of an interval.
    pub interval_ps: Duration,
    /// When the first began.
    pub start_ps: Time,
    /// Whether it ended because it keeps no more.
    pub full: bool,
    /// For each port its columns by name.
    pub ports: BTreeMap<String, BTreeMap<&'static str, Vec<u64>>>,
}

/// What became of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Captured {
    /// Frames that are in files, also in those that a ring has removed since.
    pub frames: u64,
    /// Frames that are in none.
    pub dropped: u64,
    /// Whether writing failed.
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
    /// What it has done, as its end counts it.
    pub counters: Value,
    /// What its socket has refused, by reason.
    pub refused: Value,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(body: Value) -> (String, String) {
        let error = Request::read(body).unwrap_err();
        (error.name, error.message)
    }

    #[test]
    fn a_request_becomes_its_type_and_keeps_its_name() {
        let read = Request::read(json!({"id": 4, "do": "app.wait", "apps": [1, 2], "until_ps": null})).unwrap();
        assert_eq!(read.name(), "app.wait");
        assert_eq!(read, Request::AppWait(Box::new(AppWait { apps: vec![1, 2], until: None })));
    }

    #[test]
    fn a_given_null_differs_from_an_absent_field_of_a_link() {
        let body = json!({"do": "link.set", "link": 0, "set": {"rate_bps": null, "delay_ps": 7}});
        let Request::LinkSet(change) = Request::read(body).unwrap() else { panic!("a link was to be set") };
        let before = DirectionConfig { rate_bps: Rate::from_bps(9), ..DirectionConfig::default() };
        let after = change.set.applied_to(&before);
        assert_eq!((after.rate_bps, after.delay_ps, after.framing), (None, Duration::from_ps(7), before.framing));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_field() {
        for (body, name, words) in [
            (json!([]), "MalformedRequest", "JSON object"),
            (json!({"id": 1}), "MalformedRequest", "\"do\""),
            (json!({"do": "app.fly"}), "UnknownRequest", "\"app.fly\""),
            (json!({"do": "app.wait"}), "BadRequest", "app.wait: apps: it is needed"),
            (json!({"do": "app.wait", "apps": "all"}), "BadRequest", "app.wait: apps: invalid type"),
            (json!({"do": "now", "colour": 1}), "BadRequest", "there is no field \"colour\"; there are none"),
            (json!({"do": "app.start", "host": "h1", "app": {"kind": "fly"}}), "BadApp", "unknown variant `fly`"),
            (json!({"do": "queues.set", "port": "p", "queue": {"kind": "pile"}}), "BadQueue", "unknown variant `pile`"),
            (json!({"do": "link.set", "link": 0, "set": {"speed": 1}}), "BadLink", "unknown field `speed`"),
            (json!({"do": "link.set", "link": 0, "a": "h1", "set": {}}), "BadRequest", "a link is named by"),
            (json!({"do": "start", "network": {}, "protocol": 99}), "ProtocolMismatch", "version 99"),
            (json!({"do": "start", "network": {"colour": 1}}), "InvalidNetwork", "colour"),
        ] {
            let refused = refusal(body.clone());
            assert_eq!(refused.0, name, "{body}: {}", refused.1);
            assert!(refused.1.contains(words), "{}", refused.1);
        }
    }

    #[test]
    fn the_reference_names_every_request_once_with_words_for_each() {
        let reference = reference();
        let rows = reference.as_array().unwrap();
        let mut names: Vec<&str> = rows.iter().map(|row| row["do"].as_str().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len());
        let said = |row: &Value| !row["is"].as_str().unwrap().is_empty();
        assert!(rows.iter().all(|row| said(row) && row["fields"].as_array().unwrap().iter().all(said)));
    }
}
