//! The requests that every lab answers alike, on either clock (docs/reference/lab-protocol.md).

use std::collections::BTreeMap;

use twinnet_fabric::{DirectionChange, NodeId, PortCounters, PortId, Samples, World};
use twinnet_packet::{Frame, MacAddress};
use twinnet_queue::QueueConfig;
use twinnet_switch::Switch;
use twinnet_units::{Duration, Time};

use super::assemble::{check_queue, RunningNetwork};
use super::error::{ErrorName, LabError};
use super::network::check_mtu;
use super::protocol::{
    Answer, DirectionRow, Follow, FollowedFrame, FollowedOutput, LearntRow, LinkCounters, LinkName, LinkRow, LinkSet,
    LinkWay, PortName, PortRow, QueuesSet, Reply, Request, SamplesStart, SamplesTold, Schedule,
};

/// Answers a request about the network itself; another request comes back.
///
/// # Errors
/// The request, when it asks for something else.
pub fn answer(at: &mut RunningNetwork, request: Request, world: &mut dyn World) -> Result<Answer, Request> {
    Ok(match request {
        Request::Describe(_) => Ok(Reply::Description { network: Box::new(at.spec.clone()), interface: None }),
        Request::FlowsAdd(asked) => add_flows(at, &asked.switch, &asked.flows),
        Request::FlowsDelete(asked) => delete_flows(at, &asked.switch, asked.matching.as_deref().unwrap_or_default()),
        Request::FlowsDump(asked) => dump_flows(at, &asked.switch),
        Request::Learnt(asked) => learnt(at, &asked.switch),
        Request::Groups(asked) => groups(at, &asked.switch),
        Request::LearntForget(asked) => forget_learnt(at, &asked.switch),
        Request::Follow(asked) => follow(at, &asked),
        Request::QueuesSet(asked) => set_queue(at, &asked, world),
        Request::LinkSet(asked) => set_link(at, &asked, world),
        Request::Links(_) => Ok(links(at)),
        Request::LinksCounters(_) => Ok(link_counters(at)),
        Request::Ports(_) => Ok(ports(at)),
        Request::SamplesStart(asked) => start_samples(at, &asked),
        Request::SamplesRead(asked) => read_samples(at, asked.sampler, asked.skip),
        Request::SamplesStop(asked) => stop_samples(at, asked.sampler, asked.skip),
        Request::Schedule(asked) => schedule(at, &asked),
        other => return Err(other),
    })
}

/// The refusal of a request that lacks `what` beside it, such as a descriptor.
#[must_use]
pub fn missing(what: &str, kind: &str) -> LabError {
    LabError::new(ErrorName::BadRequest, format!("the request needs {what:?}, {kind}"), "see the protocol")
}

fn node(at: &RunningNetwork, name: &str) -> Result<NodeId, LabError> {
    at.names.nodes.get(name).copied().ok_or_else(|| {
        LabError::new(
            ErrorName::UnknownNode,
            format!("there is no node {name:?} in this lab"),
            "see `nodes` for the names",
        )
    })
}

/// The port of that interface name.
///
/// # Errors
/// `UnknownPort`.
pub fn port(at: &RunningNetwork, name: &str) -> Result<PortId, LabError> {
    at.names.ports.get(name).copied().ok_or_else(|| {
        let remedy = "ports are named like s1-eth1; see `ports` for the names";
        LabError::new(ErrorName::UnknownPort, format!("there is no port {name:?} in this lab"), remedy)
    })
}

/// The refusal of what only a switch of the fabric does.
#[must_use]
pub fn not_a_switch(at: &RunningNetwork, name: &str) -> LabError {
    if at.spec.open_vswitches().any(|(_, switch)| switch.name == name) {
        let message = format!("{name:?} is Open vSwitch, and the lab does not speak with it");
        return LabError::new(ErrorName::OpenVswitch, message, "spawn ovs-ofctl in the host \".ovs\" instead");
    }
    LabError::new(ErrorName::NotASwitch, format!("{name:?} is not a switch"), "name a switch; see `nodes`")
}

fn add_flows(at: &mut RunningNetwork, name: &str, lines: &[String]) -> Answer {
    let switch = node(at, name)?;
    let result = at.fabric.with_switch(switch, |switch, now| {
        for (position, line) in lines.iter().enumerate() {
            Switch::check_flow(line).map_err(|error| (position, error))?;
        }
        for (position, line) in lines.iter().enumerate() {
            switch.add_flow(line, now).map_err(|error| (position, error))?;
        }
        Ok(())
    });
    match result {
        None => Err(not_a_switch(at, name)),
        Some(Ok(())) => Ok(Reply::Done {}),
        Some(Err((position, error))) => {
            Err(LabError::new(ErrorName::BadFlow, format!("flow {}: {error}", position + 1), "no flow was added"))
        }
    }
}

fn delete_flows(at: &mut RunningNetwork, name: &str, line: &str) -> Answer {
    let switch = node(at, name)?;
    match at.fabric.with_switch(switch, |switch, now| switch.delete_flows(line, now)) {
        None => Err(not_a_switch(at, name)),
        Some(Ok(deleted)) => Ok(Reply::Deleted { deleted }),
        Some(Err(error)) => Err(LabError::new(ErrorName::BadFlow, error.to_string(), "no flow was deleted")),
    }
}

fn a_switch<'a>(at: &'a RunningNetwork, name: &str) -> Result<&'a Switch, LabError> {
    at.fabric.switch(node(at, name)?).ok_or_else(|| not_a_switch(at, name))
}

fn dump_flows(at: &RunningNetwork, name: &str) -> Answer {
    let switch = a_switch(at, name)?;
    Ok(Reply::Flows(switch.dump_flows(at.fabric.now())))
}

fn learnt(at: &RunningNetwork, name: &str) -> Answer {
    let rows = a_switch(at, name)?.learnt(at.fabric.now()).into_iter().map(|one| LearntRow {
        port: one.port,
        vlan: one.vlan,
        mac: MacAddress(one.mac),
        age_ps: one.age,
    });
    Ok(Reply::Learnt(rows.collect()))
}

fn groups(at: &RunningNetwork, name: &str) -> Answer {
    let (switch, now) = (a_switch(at, name)?, at.fabric.now());
    Ok(Reply::Groups { groups: switch.groups(now), meters: switch.meters(now) })
}

fn forget_learnt(at: &mut RunningNetwork, name: &str) -> Answer {
    let switch = node(at, name)?;
    let forgotten = at.fabric.with_switch(switch, |switch, _| switch.forget_learnt());
    forgotten.map(|deleted| Reply::Deleted { deleted }).ok_or_else(|| not_a_switch(at, name))
}

fn follow(at: &RunningNetwork, asked: &Follow) -> Answer {
    let byte = |place: usize| u8::from_str_radix(asked.frame.get(place..place + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..asked.frame.len()).step_by(2).map(byte).collect();
    let bytes = bytes.filter(|bytes| bytes.len() >= 14).ok_or_else(|| {
        LabError::new(
            ErrorName::BadFrame,
            "the frame is no hexadecimal text of at least an Ethernet header",
            "two digits a byte",
        )
    })?;
    let followed = a_switch(at, &asked.switch)?.follow(asked.in_port, Frame::new(bytes), at.fabric.now());
    let outputs = followed.outputs.into_iter().map(|output| FollowedOutput {
        port: output.port,
        queue: output.frame.queue,
        frame: output.frame.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    });
    Ok(Reply::Followed(FollowedFrame { steps: followed.steps, outputs: outputs.collect() }))
}

/// The port that is named by its interface name, or by its node and its index there.
fn queue_port(at: &RunningNetwork, asked: &QueuesSet) -> Result<PortId, LabError> {
    let index = match (&asked.port, &asked.node) {
        (PortName::Interface(name), None) => return port(at, name),
        (PortName::Index(index), Some(_)) => *index,
        _ => {
            let message = "a port is named by its interface name alone, or by its node and its index there";
            return Err(LabError::new(ErrorName::BadRequest, message, "see `ports` for the names"));
        }
    };
    let name = asked.node.as_deref().unwrap_or_default();
    node(at, name)?;
    let position = at.spec.node_index(name).unwrap_or(usize::MAX);
    let ports = at.names.ports_of_node.get(position).map_or(&[][..], Vec::as_slice);
    ports.get(index).copied().ok_or_else(|| {
        let message = format!("{name:?} has {} ports; there is no port {index}", ports.len());
        LabError::new(ErrorName::UnknownPort, message, "ports of a node are counted from 0")
    })
}

fn set_queue(at: &mut RunningNetwork, asked: &QueuesSet, world: &mut dyn World) -> Answer {
    let port = queue_port(at, asked)?;
    let name = &at.names.port_names[port.0 as usize];
    check_queue(&asked.queue, name)?;
    let queue: QueueConfig = match at.open_vswitch_of(port) {
        Some(switch) => switch.fabric_queue(Some(&asked.queue), name)?,
        None => asked.queue.clone(),
    };
    at.fabric
        .set_queue(port, &queue, world)
        .map_err(|error| LabError::new(ErrorName::BadQueue, error.to_string(), "the old queue stays"))?;
    Ok(Reply::Done {})
}

/// The ports of the link that is named by its number or by its ends.
fn link(at: &RunningNetwork, name: LinkName<'_>) -> Result<(PortId, PortId), LabError> {
    let (a, b) = match name {
        LinkName::Ends(a, b) => (a, b),
        LinkName::Number(index) => {
            return at.names.links.get(index).copied().ok_or_else(|| {
                let message = format!("there is no link {index}; there are {}", at.names.links.len());
                LabError::new(ErrorName::UnknownLink, message, "links are counted from 0; see `links`")
            });
        }
    };
    node(at, a)?;
    node(at, b)?;
    let mut found = at.names.link_ends.iter().zip(&at.names.links).filter_map(|((from, to), &(x, y))| {
        if from == a && to == b {
            Some((x, y))
        } else {
            (from == b && to == a).then_some((y, x))
        }
    });
    match (found.next(), found.next()) {
        (Some(ports), None) => Ok(ports),
        (None, _) => Err(LabError::new(
            ErrorName::UnknownLink,
            format!("there is no link between {a:?} and {b:?}"),
            "see `links`",
        )),
        (Some(_), Some(_)) => {
            let message = format!("there are several links between {a:?} and {b:?}");
            Err(LabError::new(ErrorName::AmbiguousLink, message, "name the link by its number; see `links`"))
        }
    }
}

/// Returns what is asked of a link, for each direction that it concerns.
fn link_changes(at: &RunningNetwork, asked: &LinkSet) -> Result<Vec<(PortId, DirectionChange)>, LabError> {
    let (a, b) = link(at, asked.name()?)?;
    let ports = match asked.direction.unwrap_or_default() {
        LinkWay::Ab => vec![a],
        LinkWay::Ba => vec![b],
        LinkWay::Both => vec![a, b],
    };
    let change = |port: PortId| {
        let refuse = |why: String| LabError::new(ErrorName::BadLink, why, "nothing was changed");
        let (before, _) = at.fabric.direction_config(port).ok_or_else(|| refuse("the port has no link".into()))?;
        let config = asked.set.applied_to(before);
        config.impair.validate().map_err(|error| refuse(error.to_string()))?;
        if let Some(mtu) = asked.set.mtu {
            check_mtu(mtu).map_err(refuse)?;
            if let Some(tunnel) = &config.tunnel {
                tunnel.check(mtu).map_err(|error| refuse(format!("tunnel: {error}")))?;
            }
        }
        let mtu = asked.set.mtu.map(u64::from);
        Ok((port, DirectionChange { config: Some(config), up: asked.set.up, mtu }))
    };
    ports.into_iter().map(change).collect()
}

fn set_link(at: &mut RunningNetwork, asked: &LinkSet, world: &mut dyn World) -> Answer {
    for (port, change) in link_changes(at, asked)? {
        at.fabric
            .change(port, change, world)
            .map_err(|error| LabError::new(ErrorName::BadLink, error.to_string(), "nothing was changed"))?;
    }
    Ok(Reply::Done {})
}

fn schedule(at: &mut RunningNetwork, asked: &Schedule) -> Answer {
    let changes = link_changes(at, &asked.set)?;
    at.fabric
        .change_at(asked.at, changes)
        .map_err(|error| LabError::new(ErrorName::BadLink, error.to_string(), "nothing was scheduled"))?;
    Ok(Reply::Done {})
}

/// Schedules the changes that the network's description lists.
///
/// # Errors
/// The fault of the first change that cannot be.
pub fn schedule_described(at: &mut RunningNetwork) -> Result<(), LabError> {
    let described = std::mem::take(&mut at.spec.schedule);
    for (position, change) in described.iter().enumerate() {
        schedule(at, change)
            .map_err(|error| LabError { message: format!("schedule {}: {}", position + 1, error.message), ..error })?;
    }
    Ok(())
}

fn direction(at: &RunningNetwork, port: PortId) -> DirectionRow {
    let (config, up) = at.fabric.direction_config(port).unzip();
    DirectionRow {
        port: at.names.port_names[port.0 as usize].clone(),
        up,
        config: config.cloned(),
        counters: at.fabric.counters(port),
    }
}

fn link_counters(at: &RunningNetwork) -> Reply {
    let rows = at.names.links.iter().flat_map(|&(a, b)| [direction(at, a), direction(at, b)]);
    Reply::LinkCounters(LinkCounters::of(rows.collect()))
}

fn links(at: &RunningNetwork) -> Reply {
    let rows = at.names.links.iter().zip(&at.names.link_ends).enumerate().map(|(link, (&(a, b), ends))| {
        let (ab, ba) = (direction(at, a), direction(at, b));
        LinkRow { link, a: ends.0.clone(), b: ends.1.clone(), ab, ba }
    });
    Reply::Links(rows.collect())
}

fn ports(at: &RunningNetwork) -> Reply {
    let rows = at.names.port_names.iter().zip(0..).map(|(name, index)| {
        let port = PortId(index);
        let (counters, classes) = (at.fabric.counters(port), at.fabric.class_counters(port));
        PortRow { port: name.clone(), counters, classes }
    });
    Reply::Ports(rows.collect())
}

fn start_samples(at: &mut RunningNetwork, asked: &SamplesStart) -> Answer {
    start_samples_at(at, asked, at.fabric.now())
}

/// Answers a `samples.start` whose first interval begins at `begin`.
///
/// # Errors
/// `BadRequest`, `UnknownPort`.
pub fn start_samples_at(at: &mut RunningNetwork, asked: &SamplesStart, begin: Time) -> Answer {
    let interval = asked.interval;
    if interval < Duration::from_us(1) {
        return Err(LabError::new(
            ErrorName::BadRequest,
            format!("an interval of {interval} is too short"),
            "at least 1 us",
        ));
    }
    let ports = asked.ports.iter().map(|name| port(at, name)).collect::<Result<Vec<_>, _>>()?;
    Ok(Reply::Sampler { sampler: at.fabric.sample_ports_from(begin, interval, &ports) })
}

fn read_samples(at: &RunningNetwork, sampler: u32, skip: Option<u64>) -> Answer {
    let (interval, samples) = at.fabric.samples(sampler).ok_or_else(|| unknown_sampler(sampler))?;
    Ok(samples_told(at, interval, samples, skip))
}

fn stop_samples(at: &mut RunningNetwork, sampler: u32, skip: Option<u64>) -> Answer {
    let (interval, samples) = at.fabric.stop_samples(sampler).ok_or_else(|| unknown_sampler(sampler))?;
    Ok(samples_told(at, interval, &samples, skip))
}

fn unknown_sampler(sampler: u32) -> LabError {
    LabError::new(ErrorName::UnknownSampler, format!("no sampler {sampler} runs"), "a sampler that was stopped is gone")
}

type Column = (&'static str, fn(&PortCounters) -> u64);

/// The columns of each interval of a port.
const COLUMNS: [Column; 17] = [
    ("frames", |port| port.sent.frames),
    ("link_bytes", |port| port.sent.link_bytes),
    ("wire_bytes", |port| port.sent.wire_bytes),
    ("received_frames", |port| port.received_frames),
    ("received_bytes", |port| port.received_bytes),
    ("drops", |port| port.sent.dropped()),
    ("dropped_overlimit", |port| port.sent.dropped_overlimit),
    ("dropped_early", |port| port.sent.dropped_early),
    ("dropped_unclassified", |port| port.sent.dropped_unclassified),
    ("dropped_down", |port| port.sent.dropped_down),
    ("dropped_oversize", |port| port.sent.dropped_oversize),
    ("dropped_unfragmentable", |port| port.sent.dropped_unfragmentable),
    ("lost", |port| port.sent.lost),
    ("dropped_loop", |port| port.dropped_loop),
    ("marked", |port| port.sent.marked),
    ("backlog_frames", |port| port.backlog_frames),
    ("backlog_bytes", |port| port.backlog_bytes),
];

/// What was counted after the first `skip` intervals.
fn samples_told(at: &RunningNetwork, interval: Duration, samples: &Samples, skip: Option<u64>) -> Reply {
    let counted = samples.ports.first().map_or(0, |(_, series)| series.len());
    let skip = usize::try_from(skip.unwrap_or(0)).unwrap_or(usize::MAX).min(counted);
    let columns = |series: &[PortCounters]| {
        let told = series.get(skip..).unwrap_or_default();
        COLUMNS.into_iter().map(|(name, of)| (name, told.iter().map(of).collect())).collect::<BTreeMap<_, _>>()
    };
    let named = |port: &PortId| at.names.port_names[port.0 as usize].clone();
    Reply::Samples(SamplesTold {
        interval_ps: interval,
        start_ps: samples.start + Duration::from_ps(interval.as_ps() * skip as u64),
        full: samples.full,
        ports: samples.ports.iter().map(|(port, series)| (named(port), columns(series))).collect(),
    })
}
