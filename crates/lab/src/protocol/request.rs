//! The requests, each defined once: name, fields, reply, and the words of the reference page.

use std::collections::BTreeMap;

use serde_json::Value;
use twinnet_apps::AppConfig;
use twinnet_queue::QueueConfig;
use twinnet_units::{Duration, Time};

use super::fields::{CaptureWay, DescribedNetwork, PeerKind, PortName, Ring};
use super::reading::{malformed, request_type, requests, unknown_request};
use super::start_options::StartOptions;
use super::VERSION;
use crate::described::{self, Fields};
use crate::error::{ErrorName, LabError};
use crate::network::{LinkSet, Schedule};

requests! {
    /// Builds the network and starts the lab's clock.
    "start" Start {
        /// The description, [below](#network).
        network = "network": DescribedNetwork,
        /// [Below](#options-of-start).
        options = "options": Option<StartOptions>,
        /// The version that the client speaks; another one than the lab's is refused.
        protocol = "protocol": Option<u32>,
    } -> Started "`{\"pid\": n, \"hosts\": n, \"setup_ms\": x, \"interface\": \"tap\" or \"veth\", \"realtime\": \
        bool, \"fabric_threads\": n, \"protocol\": n}`";

    /// Reports the network as it was built, with addresses, interface names and port numbers.
    "describe" Describe {} -> Description "the network, and `\"interface\": \"tap\"` or `\"veth\"` on the wall clock";

    /// Reports the time.
    "now" Now {} -> Now "`{\"now_ps\": n}`";

    /// Ends the lab.
    "stop" Stop {} -> Done "`{}`; then the process ends";

    /// Gives the lab an interface of the machine before `start` ([how](#interfaces-of-the-machine)). Descriptors: a
    /// packet socket, a socket that hears of the interface.
    "interface.offer" InterfaceOffer {
        /// The node that it is.
        node = "node": String,
        /// Its index in the network namespace of the lab's owner.
        index = "index": u32,
        /// Its MTU.
        mtu = "mtu": u32,
    } -> Done "`{}`";

    /// Reports the state of the interfaces of the machine.
    "interfaces" Interfaces {} -> Interfaces "array of `{\"node\", \"interface\", \"state\": \"up\", \
        \"down\" or \"gone\"}`";

    /// Starts a program in a real host. Descriptors: stdin, stdout, stderr; with `terminal` one, the pty's slave.
    "spawn" Spawn {
        /// The host.
        host = "host": String,
        /// The program and its arguments.
        argv = "argv": Vec<String>,
        /// The whole environment; when null that of the lab's owner, or that of the host's image.
        env = "env": Option<BTreeMap<String, String>>,
        /// The working directory; when null that of the lab's owner, or that of the host's image.
        cwd = "cwd": Option<String>,
        /// `true` if it has a terminal.
        terminal = "terminal": Option<bool>,
        /// The time after which it is ended.
        limit_ps = "limit_ps": Option<u64>,
    } -> Job "`{\"job\": n, \"pid\": n}`; `pid` is that in the host. Errors: `UnknownHost`, `ProgramNotFound`, \
        `ProgramNotExecutable`, `ProgramNotStarted`, `NoSuchDirectory`, `BadDescriptors`, `HostNotReady`, \
        `HostBusy`, `ModelHost` (it runs no programs)";

    /// Waits until a program ends.
    "wait" Wait {
        /// Its number.
        job = "job": u64,
    } -> JobEnded "`{\"status\": n or null, \"signal\": n or null, \"limit\": bool, \"elapsed_ps\": n}`; `HostEnded` \
        when its host was killed";

    /// Sends a signal to the process group of a program.
    "signal" Signal {
        /// Its number.
        job = "job": u64,
        /// The signal's number.
        signal = "signal": i32,
    } -> Done "`{}`";

    /// Lists the programs.
    "jobs" Jobs {} -> Jobs "array of `{\"job\", \"host\", \"argv\", \"pid\", \"state\", \"status\", \"signal\"}`";

    /// Brings Python code of the user's along: apps of real hosts may name it then.
    "code.bring" CodeBring {
        /// `application` or `estimator`.
        kind = "kind": String,
        /// The name by which apps name it.
        name = "name": String,
        /// What messages and reports call it.
        called = "called": String,
        /// Where it is: `module:Class`.
        of = "of": String,
        /// The file of the module.
        file = "file": String,
        /// The text of that file; null: the module is imported.
        source = "source": Option<String>,
        /// Where Python looks for modules.
        search = "search": Vec<String>,
    } -> Done "`{}`; `OwnCodeFailed` when it cannot be run";

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
    } -> App "`{\"app\": n}`";

    /// Asks an app to end.
    "app.stop" AppStop {
        /// Its number.
        app = "app": u32,
    } -> Done "`{}`";

    /// Reports what apps have counted.
    "app.report" AppReports {
        /// One app; without it and `apps` all are reported.
        app = "app": Option<u32>,
        /// Several apps.
        apps = "apps": Option<Vec<u32>>,
    } -> Apps "array of `{\"app\": n, \"host\", \"kind\", \"finished\": bool, \"report\": {...}}`";

    /// Waits until apps have finished. On the virtual clock time passes meanwhile.
    "app.wait" AppWait {
        /// Their numbers.
        apps = "apps": Vec<u32>,
        /// The time at which it is answered at the latest.
        until = "until_ps": Option<Time>,
    } -> Finished "`{\"finished\": bool}`; on the virtual clock also what `advance` answers";

    /// Adds flow entries, all or none.
    "flows.add" FlowsAdd {
        /// The switch.
        switch = "switch": String,
        /// Lines in the [syntax of flows](flow-syntax.md).
        flows = "flows": Vec<String>,
    } -> Done "`{}`; the error names line, token, position";

    /// Deletes flow entries.
    "flows.delete" FlowsDelete {
        /// The switch.
        switch = "switch": String,
        /// The line that they match; all when it is empty or null.
        matching = "match": Option<String>,
    } -> Deleted "`{\"deleted\": n}`";

    /// Reports the flow entries.
    "flows.dump" FlowsDump {
        /// The switch.
        switch = "switch": String,
    } -> Flows "array of lines in `ovs-ofctl dump-flows` form";

    /// Reports the addresses that a switch has learnt, as a switch without a controller and the action `normal` do.
    "learnt" Learnt {
        /// The switch.
        switch = "switch": String,
    } -> Learnt "array of `{\"port\": n, \"vlan\": n, \"mac\", \"age_ps\"}`";

    /// Reports groups and meters with what they have counted.
    "groups" Groups {
        /// The switch.
        switch = "switch": String,
    } -> Groups "`{\"groups\": [{\"group\": n, \"kind\", \"frames\": n, \"bytes\": n, \"age_ps\", \
        \"buckets\": [...]}], \"meters\": [{\"meter\": n, \"unit\": \"kbps\" or \"pktps\", ..., \"bands\": [...]}]}`";

    /// Has a switch forget the addresses that it has learnt.
    "learnt.forget" LearntForget {
        /// The switch.
        switch = "switch": String,
    } -> Deleted "`{\"deleted\": n}`";

    /// Says what would become of a frame in a switch, and why. Nothing is sent, counted or learnt; meters are taken to
    /// let it pass.
    "follow" Follow {
        /// The switch.
        switch = "switch": String,
        /// The number of the port by which it comes in.
        in_port = "in_port": u32,
        /// The frame from the Ethernet header on, without FCS, in hexadecimal.
        frame = "frame": String,
    } -> Followed "`{\"steps\": [{\"kind\", \"number\": n or absent, \"text\": or absent}], \
        \"outputs\": [{\"port\": n, \"queue\": n, \"frame\"}]}`; errors: `BadFrame`";

    /// Serves the connection of a controller until it ends. Descriptor: a connected stream socket. Wall clock only.
    "controller.attach" ControllerAttach {
        /// The switch.
        switch = "switch": String,
        /// A text that names the peer.
        target = "target": String,
        /// The kind of the peer; null: a controller.
        peer = "peer": Option<PeerKind>,
    } -> Ended "when the connection ends: `{\"ended\": why}`";

    /// Makes a connection between a switch and a controller on the virtual clock.
    "controller.open" ControllerOpen {
        /// The switch.
        switch = "switch": String,
        /// A text that names the peer.
        target = "target": String,
    } -> Connection "`{\"connection\": n}`";

    /// Ends such a connection.
    "controller.close" ControllerClose {
        /// Its number.
        connection = "connection": u64,
    } -> Done "`{}`";

    /// Reports how the connections of controllers stand.
    "controllers" Controllers {
        /// Whether it is also told what was said: `received` and `sent` by type, and the `newest` messages.
        said = "said": Option<bool>,
    } -> Controllers "array of `{\"switch\", \"target\", \"peer\", \"connection\": \
        n, \"version\": \"1.0\", \"1.3\" or null, \"role\", \"messages\", \"packet_ins\", \"errors\", \"said\"}`";

    /// Waits until each switch has agreed on a version with a controller; on the virtual clock also until nothing
    /// more is on its way between them.
    "controllers.wait" ControllersWait {
        /// The switches.
        switches = "switches": Vec<String>,
        /// The time at which it is answered at the latest; needed on the virtual clock.
        until = "until_ps": Option<Time>,
    } -> Finished "`{\"finished\": true}`; on the virtual clock `bool`, and what `advance` answers";

    /// Gives a port another queue; what waits moves into it.
    "queues.set" QueuesSet {
        /// An interface name or, with `node`, the index of one of its ports.
        port = "port": PortName,
        /// The node whose port it is.
        node = "node": Option<String>,
        /// The [queue configuration](#network).
        queue = "queue": QueueConfig,
    } -> Done "`{}`";

    /// Changes a link: all together or nothing.
    "link.set" LinkSet -> Done "`{}`";

    /// Reports the links.
    "links" Links {} -> Links "array of `{\"link\": index, \"a\": node, \"b\": node, \"ab\": D, \"ba\": D}` with D = \
        `{\"port\", \"up\", \"config\", \"counters\"}`";

    /// Reports what changes often of the links, in little space: of each direction a row, from `a` to `b` first.
    "links.counters" LinksCounters {} -> LinkCounters "`{\"columns\": [name, ...], \"rows\": [[n, ...], ...]}`: \
        `up` and `lossy` (1: yes), `rate_bps` (0: none), `backlog_frames`, and [counters](links.md#counters)";

    /// Reports the ports.
    "ports" Ports {} -> Ports "array of `{\"port\": name, \"counters\": {...}, \"classes\": [...]}`: \
        [links](links.md#counters), [classes](queue-disciplines.md#counters-of-classes)";

    /// Counts what ports do in each interval.
    "samples.start" SamplesStart {
        /// The interval, at least 1 us.
        interval = "interval_ps": Duration,
        /// Interface names.
        ports = "ports": Vec<String>,
    } -> Sampler "`{\"sampler\": n}`";

    /// Reports what was counted so far.
    "samples.read" SamplesRead {
        /// The sampler.
        sampler = "sampler": u32,
        /// So many intervals, the first ones, are left out: those that were told before.
        skip = "skip": Option<u64>,
    } -> Samples "`{\"interval_ps\": n, \"start_ps\": n, \"full\": bool, \"ports\": {name: {column: [...]}}}`: \
        [columns](#samples)";

    /// Reports what was counted and ends the sampler.
    "samples.stop" SamplesStop {
        /// The sampler.
        sampler = "sampler": u32,
        /// As in `samples.read`.
        skip = "skip": Option<u64>,
    } -> Samples "as `samples.read`";

    /// Changes a link at a given time.
    "schedule" Schedule -> Done "`{}`";

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
    } -> Capture "`{\"capture\": n}`";

    /// Ends a capture.
    "capture.stop" CaptureStop {
        /// Its number.
        capture = "capture": u32,
    } -> Captured "`{\"frames\": n, \"dropped\": n, \"write_failed\": false, \"failure\": text or null, \"files\": \
        [name, ...]}`";

    /// Writes what arrives at ports of switches to interfaces of the machine, so that programs see it there.
    /// Descriptor: a packet socket, not bound, with `PACKET_VNET_HDR`, in the network namespace of the interfaces.
    "ports.show" PortsShow {
        /// By the name of a port the index of an interface.
        ports = "ports": BTreeMap<String, u32>,
    } -> Done "`{}`";

    /// Reports how much of what arrived at shown ports was written, and how much was not for want of time.
    "ports.shown" PortsShown {} -> Shown "`{\"frames\": n, \"left_out\": n}`";

    /// Gives a tunnel's end its socket. Descriptor: the socket.
    "tunnel.attach" TunnelAttach {
        /// The tunnel's end.
        node = "node": String,
        /// A name; tunnels that share a socket give the same.
        underlay = "underlay": String,
        /// The MTU of the way to the remote.
        mtu = "mtu": u32,
    } -> Done "`{}`";

    /// Reports how the tunnels to other speakers stand.
    "tunnels" Tunnels {} -> Tunnels "for each `{\"node\", \"remote\", \"tunnel\", \"path_mtu\", \"inner_mtu\", \
        \"counters\": {...}, \"refused\": {...}}`";

    /// Reports how closely the lab kept its schedule.
    "fidelity" Fidelity {} -> Fidelity "the [fidelity record](#fidelity)";

    /// Begins the fidelity record anew.
    "fidelity.reset" FidelityReset {} -> Done "`{}`";

    /// Reports when something happens next on the virtual clock.
    "events.next" EventsNext {} -> Next "`{\"next_ps\": n or null}`; null: nothing will by itself";

    /// Lets time pass on the virtual clock.
    "advance" Advance {
        /// Until then.
        until = "until_ps": Time,
    } -> Passed "`{\"now_ps\": n, \"paused\": bool, \"controllers\": bool}`; paused: the caller's patience ended \
        first, asking again goes on";
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
                        ErrorName::ProtocolMismatch,
                        message,
                        "use the client that came with this twinnet",
                    ));
                }
                start.network.network().map(|_| ()).map_err(Clone::clone)
            }
            Self::AppStart(start) => {
                start.app.validate().map_err(|error| LabError::new(ErrorName::BadApp, error.to_string(), ""))
            }
            Self::AppReports(wanted) if wanted.app.is_some() && wanted.apps.is_some() => {
                Err(LabError::new(ErrorName::BadRequest, "app.report: app and apps are both given", "give one of both"))
            }
            Self::LinkSet(change) => change.name().map(|_| ()),
            Self::Schedule(planned) => planned.set.name().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The refusal of a request that this part of a lab does not answer.
    #[must_use]
    pub fn refused(&self, remedy: &str) -> LabError {
        LabError::new(ErrorName::UnknownRequest, format!("there is no request {:?} here", self.name()), remedy)
    }
}
