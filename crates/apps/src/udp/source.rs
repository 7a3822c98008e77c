//! Sends datagrams, whatever becomes of them: at a constant rate, by random processes of gaps and sizes, or by a trace.
//!
//! Pacing is by absolute deadlines. Datagram `k` of a constant source is due at `start + floor(k * interval)` with the
//! interval as an exact fraction, so errors never accumulate. A source that is called late sends all that is due at
//! once, at most [`MOST_PER_CALL`] at a time, and asks to be called again at once for the rest.
//!
//! When the interval is below [`GATHER`], up to that much time of datagrams may gather and leave in one burst: a
//! host with a clock of its own cannot wake for each of 80,000 datagrams a second at a reasonable cost. A source
//! that is told to be exact does not gather.
//!
//! The report of its own gaps is of the moments at which datagrams were handed to the kernel, where the host has one.

use std::net::SocketAddr;

use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::account::errors::ErrorTally;
use crate::account::pacing::Pacing;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::account::returns::Returns;
use crate::schedule::profile::Interval;
use crate::schedule::sizes::TraceEntry;
use crate::udp::header::{Header, Stamp, FULL_LENGTH};
use crate::udp::source_config::{End, Schedule, Traffic, UdpSourceConfig};
use crate::{App, Chunk, Event, Handover, Host, HostError, SocketId};

/// Datagrams sent in one call.
pub const MOST_PER_CALL: u32 = 64;
/// The time that datagrams of a fast source may gather.
pub const GATHER: Duration = Duration::from_us(200);
/// The shortest interval at which an unpaced source offers datagrams, and how long it waits when the host is full.
const UNPACED_TURN: Duration = Duration::from_us(1);
const UNPACED_WAIT: Duration = Duration::from_us(20);
/// The time after its due moment at which a source may send what was due in it.
const GRACE: Duration = Duration::from_ms(10);

/// The app.
pub struct UdpSource {
    config: UdpSourceConfig,
    interval: Interval,
    schedule: Schedule,
    socket: Option<SocketId>,
    from: Option<SocketAddr>,
    start: Option<Time>,
    /// The time when the next datagram is due; `None` before the start and after the end.
    due: Option<Time>,
    /// Datagrams that have been due so far.
    due_count: u64,
    sent: u64,
    sent_bytes: u64,
    last_sent: Option<Time>,
    finished: bool,
    pacing: Pacing,
    /// Datagrams of this call, to be told of once they are handed over: when due, their size, whether they were taken.
    offered: Vec<(Time, u32, bool)>,
    /// The size that was drawn for the datagram that the host had no room for.
    held_size: Option<u32>,
    returns: Returns,
    errors: ErrorTally,
}

impl UdpSource {
    /// A source that does what `config` says.
    #[must_use]
    pub fn new(config: UdpSourceConfig) -> Self {
        Self {
            interval: config.interval(),
            schedule: config.schedule(0, 0),
            config,
            socket: None,
            from: None,
            start: None,
            due: None,
            due_count: 0,
            sent: 0,
            sent_bytes: 0,
            last_sent: None,
            finished: false,
            pacing: Pacing::default(),
            offered: Vec::new(),
            held_size: None,
            returns: Returns::default(),
            errors: ErrorTally::default(),
        }
    }

    fn begin(&mut self, now: Time, host: &mut dyn Host) {
        self.start = Some(now);
        // Both are drawn whether they are needed or not: a change of one process leaves the other's numbers as they
        // were.
        let (gap_seed, size_seed) = (host.random(), host.random());
        self.schedule = self.config.schedule(gap_seed, size_seed);
        match host.udp_bind(0, self.config.to.is_ipv6()) {
            Ok(socket) => {
                self.socket = Some(socket);
                self.from = host.addresses(socket).map(|(local, _)| local);
                let marked = self.config.dscp.map_or(Ok(()), |dscp| host.set_dscp(socket, dscp));
                let mut whole = || if self.config.fragment { Ok(()) } else { host.forbid_fragments(socket) };
                if let Err(error) = marked.and_then(|()| whole()) {
                    self.errors.add(error);
                    self.end(now, host);
                    return;
                }
                self.due = match &mut self.schedule {
                    Schedule::Even(..) | Schedule::Unpaced(_) | Schedule::Drawn(_, _, true) => Some(now),
                    Schedule::Drawn(process, _, false) => Some(now + process.distance()),
                    Schedule::Trace => self.trace_entry().map(|entry| now + Duration::from_ps(entry.0)),
                };
            }
            Err(error) => {
                self.errors.add(error);
                self.finished = true;
            }
        }
    }

    /// The trace's entry for the datagram that is due next; `None` after its end.
    fn trace_entry(&self) -> Option<TraceEntry> {
        self.config.trace_entry(self.due_count)
    }

    fn send_due(&mut self, now: Time, host: &mut dyn Host) {
        let (Some(start), Some(socket)) = (self.start, self.socket) else { return };
        if matches!(self.schedule, Schedule::Unpaced(_)) {
            self.send_unpaced(now, start, socket, host);
            return;
        }
        if matches!(self.config.end(), Some(End::After(duration)) if now.since(start) > duration + GRACE) {
            self.give_up(now, host);
            return;
        }
        let over = self.offer_due(now, start, socket, host);
        self.note_handed_over(now, socket, host);
        if over {
            self.end(now, host);
        }
    }

    /// Sends what is due by now; whether that was all.
    fn offer_due(&mut self, now: Time, start: Time, socket: SocketId, host: &mut dyn Host) -> bool {
        let end = self.config.end();
        for _ in 0..MOST_PER_CALL {
            let Some(due) = self.due else { return true };
            if end.is_some_and(|end| end.reached(due.since(start), self.due_count)) {
                return true;
            }
            if due > now {
                return false;
            }
            let size = match &mut self.schedule {
                Schedule::Even(_, sizes) | Schedule::Drawn(_, sizes, _) | Schedule::Unpaced(sizes) => sizes.size(),
                Schedule::Trace => self.trace_entry().map_or(0, |entry| entry.1),
            };
            let outcome = self.send_one(now, size, socket, host);
            self.offered.push((due, size, outcome.is_ok()));
            if outcome.is_err_and(|error| matches!(error, HostError::WouldFragment(_))) && self.sent == 0 {
                return true;
            }
            self.due_count += 1;
            self.due = match &mut self.schedule {
                Schedule::Even(interval, _) => Some(start + interval.times(self.due_count)),
                Schedule::Drawn(process, _, _) => Some(due + process.distance()),
                Schedule::Trace => self.trace_entry().map(|entry| due + Duration::from_ps(entry.0)),
                Schedule::Unpaced(_) => Some(now),
            };
            if self.due.is_none() {
                return true;
            }
        }
        false
    }

    /// Enters the datagrams of this call in the account of the schedule, spread over the time that handing them
    /// over took.
    fn note_handed_over(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        if self.offered.is_empty() {
            return;
        }
        let Handover { begun, ended } = host.flush(socket).unwrap_or(Handover { begun: now, ended: now });
        let (each, count) = (ended.since(begun).as_ps() / self.offered.len() as u64, self.offered.len());
        for (place, (due, size, taken)) in self.offered.drain(..count).enumerate() {
            self.pacing.add(due, begun + Duration::from_ps(each * place as u64), size, taken);
        }
    }

    fn send_unpaced(&mut self, now: Time, start: Time, socket: SocketId, host: &mut dyn Host) {
        self.due = Some(now + UNPACED_TURN);
        let end = self.config.end();
        for _ in 0..MOST_PER_CALL {
            if end.is_some_and(|end| end.reached(now.since(start), self.sent)) {
                self.end(now, host);
                return;
            }
            let Schedule::Unpaced(sizes) = &mut self.schedule else { return };
            let size = self.held_size.take().unwrap_or_else(|| sizes.size());
            match self.offer(now, size, socket, host) {
                Ok(()) => {}
                Err(HostError::Full) => {
                    self.held_size = Some(size);
                    self.due = Some(now + UNPACED_WAIT);
                    return;
                }
                Err(error) => {
                    let never = matches!(error, HostError::WouldFragment(_)) && self.sent == 0;
                    self.errors.add(error);
                    if never {
                        self.end(now, host);
                    }
                    return;
                }
            }
        }
    }

    /// Sends a datagram and notes what hindered it.
    fn send_one(&mut self, now: Time, size: u32, socket: SocketId, host: &mut dyn Host) -> Result<(), HostError> {
        let outcome = self.offer(now, size, socket, host);
        match &outcome {
            Ok(()) => {}
            Err(HostError::Full) => self.errors.add("a datagram was not sent: the host's send buffer was full"),
            Err(error) => self.errors.add(error),
        }
        outcome
    }

    /// Sends a datagram. One that the host refuses takes no sequence number: it was never in the network.
    fn offer(&mut self, now: Time, size: u32, socket: SocketId, host: &mut dyn Host) -> Result<(), HostError> {
        let there = i128::from(now.as_ps()) + i128::from(self.config.clock_offset_ps);
        let stamp = u64::try_from(there / 1000).unwrap_or(0);
        let sent = (size as usize >= FULL_LENGTH).then_some(Stamp(stamp));
        #[allow(clippy::cast_possible_truncation)]
        let header = Header { sequence: self.sent as u32, flow: self.config.flow, sent };
        let (bytes, length) = (header.emit(), header.length());
        #[allow(clippy::cast_possible_truncation)]
        let chunk = Chunk::Padded(&bytes[..length], size.saturating_sub(length as u32));
        host.udp_send(socket, SocketAddr::new(self.config.to, self.config.port), chunk)?;
        self.sent += 1;
        self.sent_bytes += u64::from(size);
        self.last_sent = Some(now);
        Ok(())
    }

    /// The time is over and datagrams that were due are not sent: a source that went on would send at another time
    /// than it was told to.
    fn give_up(&mut self, now: Time, host: &mut dyn Host) {
        self.errors.add(format!(
            "the host could not keep up: the source was behind when its time was over, and sent {} datagrams",
            self.sent
        ));
        self.pacing.give_up();
        self.end(now, host);
    }

    fn note_returned(&mut self, now: Time, error: HostError, datagrams: u64) {
        let to = SocketAddr::new(self.config.to, self.config.port);
        self.returns.add(now, to, error, datagrams, &mut self.errors);
    }

    fn end(&mut self, now: Time, host: &mut dyn Host) {
        self.due = None;
        self.finished = true;
        if let Some(socket) = self.socket.take() {
            for (error, datagrams) in host.returned(socket) {
                self.note_returned(now, error, datagrams);
            }
            host.close(socket);
        }
    }
}

impl App for UdpSource {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => {
                self.begin(now, host);
                self.send_due(now, host);
            }
            Event::Timer => self.send_due(now, host),
            Event::Stop => self.end(now, host),
            Event::Failed { error, .. } => {
                self.errors.add(error);
                self.end(now, host);
            }
            Event::Returned { error, datagrams, .. } => self.note_returned(now, error, datagrams),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.due
    }

    fn slack(&self) -> Duration {
        if self.interval.times(1) < GATHER && !matches!(self.config.traffic, Traffic::Scheduled { exact: true, .. }) {
            GATHER
        } else {
            Duration::ZERO
        }
    }

    fn fell_behind(&self) -> bool {
        self.pacing.gave_up()
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn report(&self, _now: Time) -> Value {
        let mut row = FlowReport::new(Some(self.config.flow), Protocol::Udp, Role::Source).with_errors(&self.errors);
        row.from = self.from.map(|from| from.to_string());
        row.to = Some(SocketAddr::new(self.config.to, self.config.port).to_string());
        row.start_ps = self.start.map(Time::as_ps);
        row.end_ps = self.last_sent.or(self.start).map(Time::as_ps);
        row.packets = Some(self.sent);
        row.bytes = self.sent_bytes;
        row.errors.extend(self.returns.told(self.start));
        row.pacing = self.pacing.report().into();
        AppReport { flows: vec![row] }.into_json()
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
