//! The requests that the fabric's loop answers (docs/reference/lab-protocol.md).

use std::sync::{Arc, PoisonError};

use serde_json::{json, Map, Value};
use twinnet_fabric::switch::Switch;
use twinnet_fabric::{DirectionChange, DirectionConfig, PortId};
use twinnet_units::{Duration, Time};

use crate::assemble;
use crate::capture::Capture;
use crate::fidelity::FidelityRecord;
use crate::ingress::Losses;
use crate::realtime::FabricLoop;
use crate::scheduling::is_realtime;
use crate::service::{LabError, Reply, Request};

type Answer = Result<Value, LabError>;

/// Answers one request, now or later.
pub(crate) fn answer(at: &mut FabricLoop, mut request: Request) {
    let body = std::mem::take(&mut request.body);
    let action = body.get("do").and_then(Value::as_str).unwrap_or_default();
    let result = match action {
        "now" => Ok(json!({"now_ps": at.clock.now().as_ps()})),
        "describe" => describe(at),
        "flows.add" => add_flows(at, &body),
        "flows.delete" => delete_flows(at, &body),
        "flows.dump" => dump_flows(at, &body),
        "queues.set" => set_queue(at, &body),
        "link.set" => set_link(at, &body),
        "links" => Ok(links(at)),
        "ports" => Ok(ports(at)),
        "samples.start" => start_samples(at, &body),
        "samples.read" => read_samples(at, &body),
        "schedule" => schedule(at, &body),
        "capture.start" => start_capture(at, &body, &mut request),
        "capture.stop" => match stop_capture(at, &body) {
            Ok(capture) => return FabricLoop::finish_capture(capture, request.reply),
            Err(error) => Err(error),
        },
        "fidelity" => {
            let record = at.hosts.record.to_json(at.clock.now(), is_realtime());
            return with_losses(at, record, request.reply);
        }
        "fidelity.reset" => {
            at.hosts.record = FidelityRecord::begin(at.clock.now());
            return forget_losses(at, request.reply);
        }
        other => Err(LabError::new("UnknownRequest", format!("there is no request {other:?}"), "see the protocol")),
    };
    request.reply.send(result);
}

/// Answers with `record` and the losses of the hosts' interfaces. These are asked of the kernel by a thread of their own, so
/// that the loop is not held up.
fn with_losses(at: &FabricLoop, mut record: Value, reply: Reply) {
    let (watched, before) = (at.watched(), Arc::clone(&at.losses_before));
    aside(move || {
        let before = *before.lock().unwrap_or_else(PoisonError::into_inner);
        let losses = Losses::of(&watched).since(before);
        if let Some(fields) = record.as_object_mut() {
            fields.insert("ingress_drops".to_owned(), losses.unrated.into());
            fields.insert("interface_drops".to_owned(), losses.rated.into());
        }
        reply.send(Ok(record));
    });
}

fn forget_losses(at: &FabricLoop, reply: Reply) {
    let (watched, before) = (at.watched(), Arc::clone(&at.losses_before));
    aside(move || {
        *before.lock().unwrap_or_else(PoisonError::into_inner) = Losses::of(&watched);
        reply.send(Ok(json!({})));
    });
}

fn aside(work: impl FnOnce() + Send + 'static) {
    // Without a thread the reply is dropped with the work, which tells the client that there is no answer.
    let _ = std::thread::Builder::new().name("losses".into()).spawn(work);
}

fn text<'a>(body: &'a Value, key: &str) -> Result<&'a str, LabError> {
    body.get(key).and_then(Value::as_str).ok_or_else(|| missing(key, "a text"))
}

fn number(body: &Value, key: &str) -> Result<u64, LabError> {
    body.get(key).and_then(Value::as_u64).ok_or_else(|| missing(key, "a whole number"))
}

fn missing(key: &str, kind: &str) -> LabError {
    LabError::new("BadRequest", format!("the request needs {key:?}, {kind}"), "see the protocol")
}

fn describe(at: &FabricLoop) -> Answer {
    serde_json::to_value(&at.spec).map_err(|error| LabError::new("Internal", error.to_string(), ""))
}

fn node(at: &FabricLoop, name: &str) -> Result<twinnet_fabric::NodeId, LabError> {
    at.names.nodes.get(name).copied().ok_or_else(|| {
        LabError::new("UnknownNode", format!("there is no node {name:?} in this lab"), "see `nodes` for the names")
    })
}

fn port(at: &FabricLoop, name: &str) -> Result<PortId, LabError> {
    at.names.ports.get(name).copied().ok_or_else(|| {
        let remedy = "ports are named like s1-eth1; see `ports` for the names";
        LabError::new("UnknownPort", format!("there is no port {name:?} in this lab"), remedy)
    })
}

fn not_a_switch(name: &str) -> LabError {
    LabError::new("NotASwitch", format!("{name:?} is not a switch"), "name a switch; see `nodes`")
}

fn add_flows(at: &mut FabricLoop, body: &Value) -> Answer {
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
        None => Err(not_a_switch(name)),
        Some(Ok(())) => Ok(json!({})),
        Some(Err((position, error))) => {
            Err(LabError::new("BadFlow", format!("flow {}: {error}", position + 1), "no flow was added"))
        }
    }
}

fn delete_flows(at: &mut FabricLoop, body: &Value) -> Answer {
    let name = text(body, "switch")?;
    let line = body.get("match").and_then(Value::as_str).unwrap_or_default();
    let switch = node(at, name)?;
    match at.fabric.with_switch(switch, |switch, _| switch.delete_flows(line)) {
        None => Err(not_a_switch(name)),
        Some(Ok(deleted)) => Ok(json!({"deleted": deleted})),
        Some(Err(error)) => Err(LabError::new("BadFlow", error.to_string(), "no flow was deleted")),
    }
}

fn dump_flows(at: &FabricLoop, body: &Value) -> Answer {
    let name = text(body, "switch")?;
    let switch = at.fabric.switch(node(at, name)?).ok_or_else(|| not_a_switch(name))?;
    Ok(json!(switch.dump_flows(at.fabric.now())))
}

/// The port that `body` names by its interface name, or by its node and its index there.
fn queue_port(at: &FabricLoop, body: &Value) -> Result<PortId, LabError> {
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

fn set_queue(at: &mut FabricLoop, body: &Value) -> Answer {
    let port = queue_port(at, body)?;
    let name = &at.names.port_names[port.0 as usize];
    let queue = assemble::queue(body.get("queue"), name)?.ok_or_else(|| missing("queue", "a queue configuration"))?;
    at.fabric
        .set_queue(port, &queue, &mut at.hosts)
        .map_err(|error| LabError::new("BadQueue", error.to_string(), "the old queue stays"))?;
    Ok(json!({}))
}

/// The ports of the link that `body` names by index or by its ends.
fn link(at: &FabricLoop, body: &Value) -> Result<(PortId, PortId), LabError> {
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
fn link_changes(at: &FabricLoop, body: &Value) -> Result<Vec<(PortId, DirectionChange)>, LabError> {
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

fn direction_change(at: &FabricLoop, port: PortId, set: &Map<String, Value>) -> Result<DirectionChange, LabError> {
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

fn set_link(at: &mut FabricLoop, body: &Value) -> Answer {
    for (port, change) in link_changes(at, body)? {
        at.fabric
            .change(port, change, &mut at.hosts)
            .map_err(|error| LabError::new("BadLink", error.to_string(), "nothing was changed"))?;
    }
    Ok(json!({}))
}

fn schedule(at: &mut FabricLoop, body: &Value) -> Answer {
    let when = at.fabric_time_of(Time::from_ps(number(body, "at_ps")?));
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
pub(crate) fn schedule_described(at: &mut FabricLoop, described: &[Value]) -> Result<(), LabError> {
    for (position, change) in described.iter().enumerate() {
        schedule(at, change)
            .map_err(|error| LabError { message: format!("schedule {}: {}", position + 1, error.message), ..error })?;
    }
    Ok(())
}

fn links(at: &FabricLoop) -> Value {
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

fn ports(at: &FabricLoop) -> Value {
    let rows = at.names.port_names.iter().zip(0..).map(|(name, index)| {
        let port = PortId(index);
        json!({"port": name, "counters": at.fabric.counters(port), "classes": at.fabric.class_counters(port)})
    });
    Value::Array(rows.collect())
}

fn start_samples(at: &mut FabricLoop, body: &Value) -> Answer {
    let interval = Duration::from_ps(number(body, "interval_ps")?);
    if interval < Duration::from_us(1) {
        return Err(LabError::new("BadRequest", format!("an interval of {interval} is too short"), "at least 1 us"));
    }
    let names = body.get("ports").and_then(Value::as_array).ok_or_else(|| missing("ports", "an array of names"))?;
    let names = names.iter().map(|name| name.as_str().ok_or_else(|| missing("ports", "an array of names")));
    let ports = names.map(|name| port(at, name?)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({"sampler": at.fabric.sample_ports(interval, &ports)}))
}

fn read_samples(at: &FabricLoop, body: &Value) -> Answer {
    let sampler = number(body, "sampler")?;
    let (interval, samples) = u32::try_from(sampler)
        .ok()
        .and_then(|sampler| at.fabric.samples(sampler))
        .ok_or_else(|| LabError::new("UnknownSampler", format!("there is no sampler {sampler}"), ""))?;
    let mut ports = Map::new();
    for (port, series) in &samples.ports {
        let column = |of: fn(&twinnet_fabric::Sample) -> u64| series.iter().map(of).collect::<Vec<u64>>();
        let columns = json!({
            "frames": column(|sample| sample.frames),
            "link_bytes": column(|sample| sample.link_bytes),
            "wire_bytes": column(|sample| sample.wire_bytes),
            "drops": column(|sample| sample.drops),
            "backlog_bytes": column(|sample| sample.backlog_bytes),
        });
        ports.insert(at.names.port_names[port.0 as usize].clone(), columns);
    }
    Ok(json!({"interval_ps": interval.as_ps(), "start_ps": samples.start.as_ps(), "ports": ports}))
}

fn start_capture(at: &mut FabricLoop, body: &Value, request: &mut Request) -> Answer {
    let name = text(body, "port")?;
    let port = port(at, name)?;
    let file = request.descriptors.pop().ok_or_else(|| missing("a descriptor", "the file to write"))?;
    let limit = body.get("limit_bytes").and_then(Value::as_u64);
    let snap = body.get("snap").and_then(Value::as_u64).map(|snap| u32::try_from(snap).unwrap_or(u32::MAX));
    let capture = Capture::start(file, name, limit, snap, at.clock)
        .map_err(|error| LabError::new("CaptureFailed", error.to_string(), ""))?;
    let number = at.next_capture;
    at.next_capture += 1;
    at.hosts.captures.insert(number, (port, capture));
    at.fabric.set_capture(port, true);
    Ok(json!({"capture": number}))
}

fn stop_capture(at: &mut FabricLoop, body: &Value) -> Result<Capture, LabError> {
    let wanted = number(body, "capture")?;
    let found = u32::try_from(wanted).ok().and_then(|wanted| at.hosts.captures.remove(&wanted));
    let Some((port, capture)) = found else {
        return Err(LabError::new("UnknownCapture", format!("there is no capture {wanted}"), ""));
    };
    if !at.hosts.captures.values().any(|(captured, _)| *captured == port) {
        at.fabric.set_capture(port, false);
    }
    Ok(capture)
}
