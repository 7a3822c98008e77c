//! The requests that the fabric's loop answers (docs/reference/lab-protocol.md).

use std::sync::{Arc, PoisonError};

use serde_json::{json, Value};
use twinnet_lab::capture::CaptureSettings;
use twinnet_lab::requests::{self, missing, number, port, text};

use crate::service::{LabError, Reply, Request};
use crate::wall::capture::Capture;
use crate::wall::fidelity::{FidelityRecord, TakenRecord};
use crate::wall::ingress::Counted;
use crate::wall::realtime::FabricLoop;
use crate::wall::scheduling::is_realtime;
use twinnet_units::Duration;

use twinnet_lab::requests::Answer;

/// Answers one request, now or later.
pub(crate) fn answer(at: &mut FabricLoop, mut request: Request) {
    let body = std::mem::take(&mut request.body);
    let action = body.get("do").and_then(Value::as_str).unwrap_or_default();
    let result = match action {
        "now" => Ok(json!({"now_ps": at.clock.now().as_ps()})),
        "capture.start" => start_capture(at, &body, &mut request),
        "capture.stop" => match stop_capture(at, &body) {
            Ok(capture) => return FabricLoop::finish_capture(capture, request.reply),
            Err(error) => Err(error),
        },
        "app.start" | "app.stop" | "app.report" => {
            at.apps.answer(&mut at.network, &body, Duration::ZERO, &mut at.hosts)
        }
        "app.wait" => return at.apps.wait(&at.network, &body, at.clock.now(), request.reply),
        "controller.attach" => return at.controllers.attach(&mut at.network, &body, request, &at.epoll),
        "interfaces" => Ok(at.real.values().map(|real| real.to_json(&at.network.spec)).collect()),
        "tunnel.attach" => at.attach_tunnel(&body, &mut request),
        "tunnels" => Ok(at.hosts.tunnels.state()),
        "controllers" => Ok(at.controllers.state(&at.network)),
        "controllers.wait" => return at.controllers.wait(&at.network, &body, request.reply),
        "fidelity" => {
            let record =
                at.hosts.record.taken(&at.network.fabric, &at.network.names.port_names, at.clock.now(), is_realtime());
            return with_counts(at, record, request.reply);
        }
        "fidelity.reset" => {
            at.hosts.record = FidelityRecord::begin(at.clock.now());
            at.network.fabric.forget_line_records();
            return forget_counts(at, request.reply);
        }
        other => requests::answer(&mut at.network, &body, Duration::ZERO, &mut at.hosts).unwrap_or_else(|| {
            Err(LabError::new("UnknownRequest", format!("there is no request {other:?}"), "see the protocol"))
        }),
    };
    request.reply.send(result);
}

/// Answers with `record` and what the kernel has counted. It is asked by a thread of its own: telling the machine's stolen time
/// alone takes some 200 us, which would hold up the loop.
fn with_counts(at: &FabricLoop, record: TakenRecord, reply: Reply) {
    let (watched, before, evidence) = (at.watched(), Arc::clone(&at.counted_before), at.evidence.clone());
    at.aside.run(move || {
        let before = before.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let counted = Counted::of(&watched);
        let losses = counted.losses.since(&before.losses);
        let mut record = record.to_json();
        if let Some(fields) = record.as_object_mut() {
            fields.insert("ingress_drops".to_owned(), losses.unrated.into());
            fields.insert("interface_drops".to_owned(), losses.rated.values().sum::<u64>().into());
            fields.insert("interface_drops_by_port".to_owned(), json!(losses.rated));
            fields.insert("steal_s".to_owned(), (counted.steal_s - before.steal_s).into());
            fields.insert("machine".to_owned(), evidence.to_json());
        }
        reply.send(Ok(record));
    });
}

fn forget_counts(at: &FabricLoop, reply: Reply) {
    let (watched, before, evidence) = (at.watched(), Arc::clone(&at.counted_before), at.evidence.clone());
    at.aside.run(move || {
        evidence.forget();
        *before.lock().unwrap_or_else(PoisonError::into_inner) = Counted::of(&watched);
        reply.send(Ok(json!({})));
    });
}

fn start_capture(at: &mut FabricLoop, body: &Value, request: &mut Request) -> Answer {
    let name = text(body, "port")?;
    let port = port(&at.network, name)?;
    let settings = CaptureSettings::from_request(body)?;
    let place =
        request.descriptors.pop().ok_or_else(|| missing("a descriptor", "the file to write, or a ring's folder"))?;
    let file = if settings.ring.is_some() { text(body, "file")? } else { "" };
    if file.contains('/') {
        return Err(missing("file", "the name of a ring's files in the folder of the descriptor"));
    }
    let capture = Capture::start(place, file, name, settings, at.clock).map_err(|error| {
        LabError::new("CaptureFailed", format!("{file}: {error}"), "name a place that can be written")
    })?;
    let number = at.next_capture;
    at.next_capture += 1;
    at.hosts.captures.insert(number, (port, capture));
    at.network.fabric.set_capture(port, true);
    Ok(json!({"capture": number}))
}

fn stop_capture(at: &mut FabricLoop, body: &Value) -> Result<Capture, LabError> {
    let wanted = number(body, "capture")?;
    let found = u32::try_from(wanted).ok().and_then(|wanted| at.hosts.captures.remove(&wanted));
    let Some((port, capture)) = found else {
        return Err(LabError::new("UnknownCapture", format!("there is no capture {wanted}"), ""));
    };
    if !at.hosts.captures.values().any(|(captured, _)| *captured == port) {
        at.network.fabric.set_capture(port, false);
    }
    Ok(capture)
}
