//! The requests that every lab answers alike, on either clock (docs/reference/lab-protocol.md).

use serde_json::{json, Map, Value};
use twinnet_fabric::{DirectionChange, DirectionConfig, NodeId, PortCounters, PortId, Samples, World};
use twinnet_switch::Switch;
use twinnet_units::{Duration, Time};

use super::assemble::{self, RunningNetwork};
use super::error::LabError;

/// What a request is answered with.
pub type Answer = Result<Value, LabError>;

/// Answers a request about the network itself; `None` when `body` asks for something else. `behind` is what the lab's clock is
/// ahead of the fabric's.
pub fn answer(at: &mut RunningNetwork, body: &Value, behind: Duration, world: &mut dyn World) -> Option<Answer> {
    Some(match body.get("do").and_then(Value::as_str).unwrap_or_default() {
        "describe" => describe(at),
        "flows.add" => add_flows(at, body),
        "flows.delete" => delete_flows(at, body),
        "flows.dump" => dump_flows(at, body),
        "queues.set" => set_queue(at, body, world),
        "link.set" => set_link(at, body, world),
        "links" => Ok(links(at)),
        "ports" => Ok(ports(at)),
        "samples.start" => start_samples(at, body),
        "samples.read" => read_samples(at, body),
        "samples.stop" => stop_samples(at, body),
        "schedule" => schedule(at, body, behind),
        _ => return None,
    })
}

/// The text under `key`.
///
/// # Errors
/// `BadRequest` when there is none.
pub fn text<'a>(body: &'a Value, key: &str) -> Result<&'a str, LabError> {
    body.get(key).and_then(Value::as_str).ok_or_else(|| missing(key, "a text"))
}

/// The whole number under `key`.
///
/// # Errors
/// `BadRequest` when there is none.
pub fn number(body: &Value, key: &str) -> Result<u64, LabError> {
    body.get(key).and_then(Value::as_u64).ok_or_else(|| missing(key, "a whole number"))
}

/// The refusal of a request that lacks `key`.
#[must_use]
pub fn missing(key: &str, kind: &str) -> LabError {
    LabError::new("BadRequest", format!("the request needs {key:?}, {kind}"), "see the protocol")
}

fn describe(at: &RunningNetwork) -> Answer {
    serde_json::to_value(&at.spec).map_err(|error| LabError::new("Internal", error.to_string(), ""))
}

fn node(at: &RunningNetwork, name: &str) -> Result<NodeId, LabError> {
    at.names.nodes.get(name).copied().ok_or_else(|| {
        LabError::new("UnknownNode", format!("there is no node {name:?} in this lab"), "see `nodes` for the names")
    })
}

/// The port of that interface name.
///
/// # Errors
/// `UnknownPort`.
pub fn port(at: &RunningNetwork, name: &str) -> Result<PortId, LabError> {
    at.names.ports.get(name).copied().ok_or_else(|| {
        let remedy = "ports are named like s1-eth1; see `ports` for the names";
        LabError::new("UnknownPort", format!("there is no port {name:?} in this lab"), remedy)
    })
}

/// The refusal of what only a switch of the fabric does.
#[must_use]
pub fn not_a_switch(at: &RunningNetwork, name: &str) -> LabError {
    if at.spec.open_vswitches().any(|(_, switch)| switch.name == name) {
        let message = format!("{name:?} is Open vSwitch, and the lab does not speak with it");
        return LabError::new("OpenVswitch", message, "spawn ovs-ofctl in the host \".ovs\" instead");
    }
    LabError::new("NotASwitch", format!("{name:?} is not a switch"), "name a switch; see `nodes`")
}

fn add_flows(at: &mut RunningNetwork, body: &Value) -> Answer {
    let name = text(body, "switch")?;
    let switch = node(at, name)?;
    let lines = body.get("flows").and_then(Value::as_array).ok_or_else(|| missing("flows", "an array of lines"))?;
    let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
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
        Some(Ok(())) => Ok(json!({})),
        Some(Err((position, error))) => {
            Err(LabError::new("BadFlow", format!("flow {}: {error}", position + 1), "no flow was added"))
        }
    }
}

fn delete_flows(at: &mut RunningNetwork, body: &Value) -> Answer {
    let name = text(body, "switch")?;
    let line = body.get("match").and_then(Value::as_str).unwrap_or_default();
    let switch = node(at, name)?;
    match at.fabric.with_switch(switch, |switch, now| switch.delete_flows(line, now)) {
        None => Err(not_a_switch(at, name)),
        Some(Ok(deleted)) => Ok(json!({"deleted": deleted})),
        Some(Err(error)) => Err(LabError::new("BadFlow", error.to_string(), "no flow was deleted")),
    }
}

fn dump_flows(at: &RunningNetwork, body: &Value) -> Answer {
    let name = text(body, "switch")?;
    let switch = at.fabric.switch(node(at, name)?).ok_or_else(|| not_a_switch(at, name))?;
    Ok(json!(switch.dump_flows(at.fabric.now())))
}

/// The port that `body` names by its interface name, or by its node and its index there.
fn queue_port(at: &RunningNetwork, body: &Value) -> Result<PortId, LabError> {
    let Some(index) = body.get("port").and_then(Value::as_u64) else { return port(at, text(body, "port")?) };
    let name = text(body, "node")?;
    node(at, name)?;
    let position = at.spec.node_index(name).unwrap_or(usize::MAX);
    let ports = at.names.ports_of_node.get(position).map_or(&[][..], Vec::as_slice);
    usize::try_from(index).ok().and_then(|index| ports.get(index)).copied().ok_or_else(|| {
        let message = format!("{name:?} has {} ports; there is no port {index}", ports.len());
        LabError::new("UnknownPort", message, "ports of a node are counted from 0")
    })
}

fn set_queue(at: &mut RunningNetwork, body: &Value, world: &mut dyn World) -> Answer {
    let port = queue_port(at, body)?;
    let name = &at.names.port_names[port.0 as usize];
    let mut queue =
        assemble::queue(body.get("queue"), name)?.ok_or_else(|| missing("queue", "a queue configuration"))?;
    if let Some(switch) = at.open_vswitch_of(port) {
        queue = switch.fabric_queue(body.get("queue"), name)?;
    }
    at.fabric
        .set_queue(port, &queue, world)
        .map_err(|error| LabError::new("BadQueue", error.to_string(), "the old queue stays"))?;
    Ok(json!({}))
}

/// The ports of the link that `body` names by index or by its ends.
fn link(at: &RunningNetwork, body: &Value) -> Result<(PortId, PortId), LabError> {
    if let Some(index) = body.get("link").and_then(Value::as_u64) {
        let found = usize::try_from(index).ok().and_then(|index| at.names.links.get(index));
        return found.copied().ok_or_else(|| {
            let message = format!("there is no link {index}; there are {}", at.names.links.len());
            LabError::new("UnknownLink", message, "links are counted from 0; see `links`")
        });
    }
    let (a, b) = (text(body, "a")?, text(body, "b")?);
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
        (None, _) => {
            Err(LabError::new("UnknownLink", format!("there is no link between {a:?} and {b:?}"), "see `links`"))
        }
        (Some(_), Some(_)) => {
            let message = format!("there are several links between {a:?} and {b:?}");
            Err(LabError::new("AmbiguousLink", message, "name the link by its number; see `links`"))
        }
    }
}

/// What `body` asks of a link, for each direction that it concerns. Keys that are not named stay as they are.
fn link_changes(at: &RunningNetwork, body: &Value) -> Result<Vec<(PortId, DirectionChange)>, LabError> {
    let (a, b) = link(at, body)?;
    let ports = match body.get("direction").and_then(Value::as_str).unwrap_or("both") {
        "ab" => vec![a],
        "ba" => vec![b],
        "both" => vec![a, b],
        other => {
            let message = format!("direction {other:?} is not one of \"ab\", \"ba\", \"both\"");
            return Err(LabError::new("BadRequest", message, ""));
        }
    };
    let set = body.get("set").and_then(Value::as_object).ok_or_else(|| missing("set", "an object"))?;
    ports.into_iter().map(|port| Ok((port, direction_change(at, port, set)?))).collect()
}

fn direction_change(at: &RunningNetwork, port: PortId, set: &Map<String, Value>) -> Result<DirectionChange, LabError> {
    let refuse = |why: String| LabError::new("BadLink", why, "nothing was changed");
    let (config, _) = at.fabric.direction_config(port).ok_or_else(|| refuse("the port has no link".into()))?;
    let mut fields = serde_json::to_value(config).map_err(|error| refuse(error.to_string()))?;
    let mut up = None;
    let known = fields.as_object_mut().ok_or_else(|| refuse("the link has no fields".into()))?;
    for (key, value) in set {
        if key == "up" {
            up = Some(value.as_bool().ok_or_else(|| refuse(format!("\"up\" is true or false, not {value}")))?);
        } else if known.contains_key(key) {
            known.insert(key.clone(), value.clone());
        } else {
            let mut names: Vec<&str> = known.keys().map(String::as_str).collect();
            names.push("up");
            return Err(refuse(format!("a link has no {key:?}; it has {}", names.join(", "))));
        }
    }
    let config: DirectionConfig = serde_json::from_value(fields).map_err(|error| refuse(error.to_string()))?;
    config.impair.validate().map_err(|error| refuse(error.to_string()))?;
    Ok(DirectionChange { config: Some(config), up })
}

fn set_link(at: &mut RunningNetwork, body: &Value, world: &mut dyn World) -> Answer {
    for (port, change) in link_changes(at, body)? {
        at.fabric
            .change(port, change, world)
            .map_err(|error| LabError::new("BadLink", error.to_string(), "nothing was changed"))?;
    }
    Ok(json!({}))
}

fn schedule(at: &mut RunningNetwork, body: &Value, behind: Duration) -> Answer {
    let when = Time::from_ps(number(body, "at_ps")?.saturating_sub(behind.as_ps()));
    let change = match body.get("set") {
        Some(nested) if nested.get("set").is_some() => nested,
        _ => body,
    };
    let changes = link_changes(at, change)?;
    at.fabric
        .change_at(when, changes)
        .map_err(|error| LabError::new("BadLink", error.to_string(), "nothing was scheduled"))?;
    Ok(json!({}))
}

/// Schedules the changes that the network's description lists.
///
/// # Errors
/// What is wrong with the first change that cannot be.
pub fn schedule_described(at: &mut RunningNetwork) -> Result<(), LabError> {
    let described = std::mem::take(&mut at.spec.schedule);
    for (position, change) in described.iter().enumerate() {
        schedule(at, change, Duration::ZERO)
            .map_err(|error| LabError { message: format!("schedule {}: {}", position + 1, error.message), ..error })?;
    }
    Ok(())
}

fn links(at: &RunningNetwork) -> Value {
    let direction = |port: PortId| {
        let (config, up) = at.fabric.direction_config(port).unzip();
        json!({
            "port": at.names.port_names[port.0 as usize],
            "up": up, "config": config, "counters": at.fabric.counters(port),
        })
    };
    let rows = at.names.links.iter().zip(&at.names.link_ends).enumerate().map(|(index, (&(a, b), ends))| {
        json!({"link": index, "a": ends.0, "b": ends.1, "ab": direction(a), "ba": direction(b)})
    });
    Value::Array(rows.collect())
}

fn ports(at: &RunningNetwork) -> Value {
    let rows = at.names.port_names.iter().zip(0..).map(|(name, index)| {
        let port = PortId(index);
        json!({"port": name, "counters": at.fabric.counters(port), "classes": at.fabric.class_counters(port)})
    });
    Value::Array(rows.collect())
}

fn start_samples(at: &mut RunningNetwork, body: &Value) -> Answer {
    let interval = Duration::from_ps(number(body, "interval_ps")?);
    if interval < Duration::from_us(1) {
        return Err(LabError::new("BadRequest", format!("an interval of {interval} is too short"), "at least 1 us"));
    }
    let names = body.get("ports").and_then(Value::as_array).ok_or_else(|| missing("ports", "an array of names"))?;
    let names = names.iter().map(|name| name.as_str().ok_or_else(|| missing("ports", "an array of names")));
    let ports = names.map(|name| port(at, name?)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({"sampler": at.fabric.sample_ports(interval, &ports)}))
}

fn read_samples(at: &RunningNetwork, body: &Value) -> Answer {
    let sampler = number(body, "sampler")?;
    let found = u32::try_from(sampler).ok().and_then(|sampler| at.fabric.samples(sampler));
    let (interval, samples) = found.ok_or_else(|| unknown_sampler(sampler))?;
    Ok(samples_told(at, interval, samples))
}

fn stop_samples(at: &mut RunningNetwork, body: &Value) -> Answer {
    let sampler = number(body, "sampler")?;
    let found = u32::try_from(sampler).ok().and_then(|sampler| at.fabric.stop_samples(sampler));
    let (interval, samples) = found.ok_or_else(|| unknown_sampler(sampler))?;
    Ok(samples_told(at, interval, &samples))
}

fn unknown_sampler(sampler: u64) -> LabError {
    LabError::new("UnknownSampler", format!("no sampler {sampler} runs"), "a sampler that was stopped is gone")
}

type Column = (&'static str, fn(&PortCounters) -> u64);

/// What is told of each interval of a port.
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

fn samples_told(at: &RunningNetwork, interval: Duration, samples: &Samples) -> Value {
    let mut ports = Map::new();
    for (port, series) in &samples.ports {
        let column = |(name, of): Column| (name.to_owned(), series.iter().map(of).collect::<Vec<u64>>().into());
        let columns: Map<String, Value> = COLUMNS.into_iter().map(column).collect();
        ports.insert(at.names.port_names[port.0 as usize].clone(), columns.into());
    }
    let (interval_ps, start_ps) = (interval.as_ps(), samples.start.as_ps());
    json!({"interval_ps": interval_ps, "start_ps": start_ps, "full": samples.full, "ports": ports})
}
