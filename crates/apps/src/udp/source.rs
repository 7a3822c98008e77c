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

use crate::account::report::{AppReport, Protocol};
use crate::account::sender::Sender;
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
    sender: Sender,
    /// The time when the next datagram is due; `None` before the start and after the end.
    due: Option<Time>,
    /// Datagrams that have been due so far.
    due_count: u64,
    sent_bytes: u64,
    /// Datagrams of this call, to be told of once they are handed over: when due, their size, whether they were taken.
    offered: Vec<(Time, u32, bool)>,
    /// The size that was drawn for the datagram that the host had no room for.
    held_size: Option<u32>,
    /// The share of its time that it was behind when it gave up.
    behind: Option<f64>,
}

impl UdpSource {
    /// A source that does what `config` says.
    #[must_use]
    pub fn new(config: UdpSourceConfig) -> Self {
        Self {
            interval: config.interval(),
            schedule: config.schedule(0, 0),
            sender: Sender::new(SocketAddr::new(config.to, config.port)),
            config,
            due: None,
            due_count: 0,
            sent_bytes: 0,
            offered: Vec::new(),
            held_size: None,
            behind: None,
        }
    }

    fn begin(&mut self, now: Time, host: &mut dyn Host) {
        self.sender.start = Some(now);
        // Both are drawn whether they are needed or not: a change of one process leaves the other's numbers as they
        // were.
        let (gap_seed, size_seed) = (host.random(), host.random());
        self.schedule = self.config.schedule(gap_seed, size_seed);
        if self.sender.bind(now, self.config.dscp, !self.config.fragment, host) {
            self.due = match &mut self.schedule {
                Schedule::Even(..) | Schedule::Unpaced(_) | Schedule::Drawn(_, _, true) => Some(now),
                Schedule::Drawn(process, _, false) => Some(now + process.distance()),
                Schedule::Trace => self.trace_entry().map(|entry| now + Duration::from_ps(entry.0)),
            };
        }
    }

    /// The trace's entry for the datagram that is due next; `None` after its end.
    fn trace_entry(&self) -> Option<TraceEntry> {
        self.config.trace_entry(self.due_count)
    }

    fn send_due(&mut self, now: Time, host: &mut dyn Host) {
        let (Some(start), Some(socket)) = (self.sender.start, self.sender.socket) else { return };
        if matches!(self.schedule, Schedule::Unpaced(_)) {
            self.send_unpaced(now, start, host);
            return;
        }
        if let Some(End::After(duration)) = self.config.end() {
            if now.since(start) > duration + GRACE {
                self.give_up(now, start, duration, host);
                return;
            }
        }
        let over = self.offer_due(now, start, host);
        self.note_handed_over(now, socket, host);
        if over {
            self.end(now, host);
        }
    }

    /// Sends what is due by now; whether that was all.
    fn offer_due(&mut self, now: Time, start: Time, host: &mut dyn Host) -> bool {
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
            let outcome = self.send_one(now, size, host);
            self.offered.push((due, size, outcome.is_ok()));
            if outcome.is_err_and(|error| matches!(error, HostError::WouldFragment(_))) && self.sender.sent == 0 {
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
            self.sender.pacing.add(due, begun + Duration::from_ps(each * place as u64), size, taken);
        }
    }

    fn send_unpaced(&mut self, now: Time, start: Time, host: &mut dyn Host) {
        self.due = Some(now + UNPACED_TURN);
        let end = self.config.end();
        for _ in 0..MOST_PER_CALL {
            if end.is_some_and(|end| end.reached(now.since(start), self.sender.sent)) {
                self.end(now, host);
                return;
            }
            let Schedule::Unpaced(sizes) = &mut self.schedule else { return };
            let size = self.held_size.take().unwrap_or_else(|| sizes.size());
            match self.offer(now, size, host) {
                Ok(()) => {}
                Err(HostError::Full) => {
                    self.held_size = Some(size);
                    self.due = Some(now + UNPACED_WAIT);
                    return;
                }
                Err(error) => {
                    let never = matches!(error, HostError::WouldFragment(_)) && self.sender.sent == 0;
                    self.sender.errors.add(error);
                    if never {
                        self.end(now, host);
                    }
                    return;
                }
            }
        }
    }

    /// Sends a datagram and notes what hindered it.
    fn send_one(&mut self, now: Time, size: u32, host: &mut dyn Host) -> Result<(), HostError> {
        let outcome = self.offer(now, size, host);
        match &outcome {
            Ok(()) => {}
            Err(HostError::Full) => self.sender.errors.add("a datagram was not sent: the host's send buffer was full"),
            Err(error) => self.sender.errors.add(error),
        }
        outcome
    }

    /// Sends a datagram. One that the host refuses takes no sequence number: it was never in the network.
    fn offer(&mut self, now: Time, size: u32, host: &mut dyn Host) -> Result<(), HostError> {
        let there = i128::from(now.as_ps()) + i128::from(self.config.clock_offset_ps);
        let stamp = u64::try_from(there / 1000).unwrap_or(0);
        let sent = (size as usize >= FULL_LENGTH).then_some(Stamp(stamp));
        #[allow(clippy::cast_possible_truncation)]
        let header = Header { sequence: self.sender.sent as u32, flow: self.config.flow, sent };
        let (bytes, length) = (header.emit(), header.length());
        #[allow(clippy::cast_possible_truncation)]
        let chunk = Chunk::Padded(&bytes[..length], size.saturating_sub(length as u32));
        self.sender.send(now, chunk, host)?;
        self.sent_bytes += u64::from(size);
        Ok(())
    }

    /// The time is over and datagrams that were due are not sent: a source that went on would send at another time
    /// than it was told to.
    fn give_up(&mut self, now: Time, start: Time, duration: Duration, host: &mut dyn Host) {
        let done = self.due.map_or(Duration::ZERO, |due| due.since(start));
        self.behind = Some((1.0 - done.as_secs_f64() / duration.as_secs_f64()).clamp(0.0, 1.0));
        self.sender.errors.add(format!(
            "the host could not keep up: the source was behind when its time was over, and sent {} datagrams",
            self.sender.sent
        ));
        self.sender.pacing.give_up();
        self.end(now, host);
    }

    fn end(&mut self, now: Time, host: &mut dyn Host) {
        self.due = None;
        self.sender.close(now, host);
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
                self.sender.errors.add(error);
                self.end(now, host);
            }
            Event::Returned { error, datagrams, .. } => self.sender.note_returned(now, error, datagrams),
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

    fn fell_behind(&self) -> Option<f64> {
        self.behind
    }

    fn finished(&self) -> bool {
        self.sender.finished
    }

    fn report(&self, _now: Time) -> Value {
        let mut row = self.sender.report(self.config.flow, Protocol::Udp);
        row.bytes = self.sent_bytes;
        AppReport { flows: vec![row] }.into_json()
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
