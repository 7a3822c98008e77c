//! The requests that the fabric's loop answers (docs/reference/lab-protocol.md).

use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError};

use twinnet_lab::capture::CaptureSettings;
use twinnet_lab::protocol::{Answer, CaptureStart, PortsShow, Reply, Request};
use twinnet_lab::requests::{self, missing, port};

use crate::service::{Call, ErrorName, LabError, Responder};
use crate::wall::capture::Capture;
use crate::wall::fidelity::FidelityRecord;
use crate::wall::ingress::Counted;
use crate::wall::parts::crossing::CrossingRecord;
use crate::wall::parts::record::{told, Layout, PartRecord};
use crate::wall::realtime::{FabricLoop, Order};
use crate::wall::scheduling::is_realtime;

/// Does what was ordered.
pub(crate) fn carry_out(at: &mut FabricLoop, order: Order) {
    match order {
        Order::Call(call) => answer(at, call),
        Order::TakeRecord(done) => take_record(at, done),
        Order::Sample { asked, begin, responder } => {
            responder.send(requests::start_samples_at(&mut at.network, &asked, begin));
        }
    }
}

/// Answers one request, now or later.
fn answer(at: &mut FabricLoop, call: Call) {
    let Call { request, mut descriptors, responder } = call;
    let answer = match request {
        Request::Now(_) => Ok(Reply::Now { now_ps: at.clock.now() }),
        Request::CaptureStart(asked) => start_capture(at, &asked, descriptors.pop()),
        Request::CaptureStop(asked) => match at.hosts.captures.remove(asked.capture, &mut at.network.fabric) {
            Ok(capture) => return FabricLoop::finish_capture(capture, responder),
            Err(error) => Err(error),
        },
        Request::AppStart(asked) => at.apps.start(&mut at.network, &asked, &mut at.hosts),
        Request::AppStop(asked) => at.apps.stop(&mut at.network, asked.app, &mut at.hosts),
        Request::AppReports(asked) => at.apps.report(&at.network, &asked),
        Request::AppWait(asked) => return at.apps.wait(&at.network, *asked, at.clock.now(), responder),
        Request::ControllerAttach(asked) => {
            return at.controllers.attach(&mut at.network, *asked, descriptors.pop(), responder, &at.epoll)
        }
        Request::Interfaces(_) => {
            Ok(Reply::Interfaces(at.real.values().map(|real| real.row(&at.network.spec)).collect()))
        }
        Request::PortsShow(asked) => show_ports(at, &asked, descriptors.pop()),
        Request::PortsShown(_) => {
            let (frames, left_out) = at.hosts.shown.counts();
            Ok(Reply::Shown { frames, left_out })
        }
        Request::TunnelAttach(asked) => at.attach_tunnel(&asked, descriptors.pop()),
        Request::Tunnels(_) => Ok(Reply::Tunnels(at.hosts.tunnels.state())),
        Request::Controllers(asked) => {
            Ok(Reply::Controllers(at.controllers.state(&at.network, asked.said == Some(true))))
        }
        Request::ControllersWait(asked) => return at.controllers.wait(&at.network, &asked, responder),
        Request::Fidelity(_) => {
            let layout = Layout::whole(at.network.spec.nodes.len());
            let tell = move |record| responder.send(Ok(Reply::Fidelity(Box::new(told(vec![record], &layout)))));
            return take_record(at, tell);
        }
        Request::FidelityReset(_) => {
            at.hosts.record = FidelityRecord::begin(at.clock.now());
            at.hosts.delivery.forget();
            let events_before = at.network.fabric.events_handled();
            at.hosts.crossings.record = CrossingRecord { events_before, ..CrossingRecord::default() };
            at.network.fabric.forget_line_records();
            return forget_counts(at, responder);
        }
        other => requests::answer(&mut at.network, other, &mut at.hosts)
            .unwrap_or_else(|other| Err(other.refused("it is one for a lab on the virtual clock"))),
    };
    responder.send(answer);
}

/// Takes the record as it is now, with what the kernel has counted, for `done`. The kernel is asked by a thread of its
/// own: telling the machine's stolen time alone takes some 200 us, which would hold up the loop.
fn take_record(at: &FabricLoop, done: impl FnOnce(PartRecord) + Send + 'static) {
    let elsewhere = at.hosts.delivery.hand_overs();
    let (fabric, names) = (&at.network.fabric, &at.network.names.port_names);
    let taken = at.hosts.record.taken(&elsewhere, fabric, names, at.clock.now(), at.long_lines, is_realtime());
    let crossings = at.hosts.crossings.record.clone();
    let events = fabric.events_handled() - crossings.events_before;
    let (watched, before, evidence) = (at.watched(), Arc::clone(&at.counted_before), at.evidence.clone());
    at.aside.run(move || {
        let before = before.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let counted = Counted::of(&watched);
        let losses = counted.losses.since(&before.losses);
        let (steal_s, machine) = (counted.steal_s - before.steal_s, evidence.to_json());
        done(PartRecord { taken, losses, steal_s, machine, crossings, events });
    });
}

fn forget_counts(at: &FabricLoop, responder: Responder) {
    let (watched, before, evidence) = (at.watched(), Arc::clone(&at.counted_before), at.evidence.clone());
    at.aside.run(move || {
        evidence.forget();
        *before.lock().unwrap_or_else(PoisonError::into_inner) = Counted::of(&watched);
        responder.send(Ok(Reply::Done {}));
    });
}

fn show_ports(at: &mut FabricLoop, asked: &PortsShow, socket: Option<OwnedFd>) -> Answer {
    let socket = socket.ok_or_else(|| missing("a descriptor", "a packet socket"))?;
    let found: Result<Vec<_>, LabError> =
        asked.ports.iter().map(|(name, index)| Ok((port(&at.network, name)?, *index))).collect();
    let found = found?;
    at.hosts.shown.add(found.iter().copied(), socket).map_err(|error| {
        LabError::new(ErrorName::CaptureFailed, format!("showing ports: {error}"), "see `twinnet doctor`")
    })?;
    found.iter().for_each(|(port, _)| at.network.fabric.set_shown(*port, true));
    Ok(Reply::Done {})
}

fn start_capture(at: &mut FabricLoop, asked: &CaptureStart, place: Option<OwnedFd>) -> Answer {
    let name = &asked.port;
    let port = port(&at.network, name)?;
    let settings = CaptureSettings::of(asked)?;
    let place = place.ok_or_else(|| missing("a descriptor", "the file to write, or a ring's folder"))?;
    let file = match settings.ring {
        Some(_) => asked.file.as_deref().ok_or_else(|| missing("file", "the name of a ring's files"))?,
        None => "",
    };
    if file.contains('/') {
        return Err(missing("file", "the name of a ring's files in the folder of the descriptor"));
    }
    let capture = Capture::start(place, file, name, settings, at.clock).map_err(|error| {
        LabError::new(ErrorName::CaptureFailed, format!("{file}: {error}"), "name a place that can be written")
    })?;
    Ok(Reply::Capture { capture: at.hosts.captures.add(port, capture, &mut at.network.fabric) })
}
