//! The choice of what is sent next, and whether it may be sent now.

use twinnet_packet::tcp::{Flags, Options, Repr, HEADER_LENGTH};
use twinnet_units::{Rate, Time};

use super::connection::{Connection, State};
use super::handshake::header_bytes;
use super::recovery::Phase;
use super::segment::Outgoing;

/// The most that waits in the host (`tcp_limit_output_bytes`).
const SMALL_QUEUE_LIMIT: u64 = 1 << 20;
/// Segments that leave before pacing begins, as in Linux.
const UNPACED_SEGMENTS: u64 = 10;
/// Segments of a super-segment that are sent together however low the rate (`tcp_min_tso_segs`).
const LEAST_OF_SUPER: u32 = 2;
/// The place of the checksum in a TCP header.
const CHECKSUM: std::ops::Range<usize> = 16..18;
/// The longest header with its options.
const LONGEST_HEADER: usize = 60;

/// The limits of departures beside the windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Departures {
    /// Pacing rate, where the congestion control paces.
    pub rate: Option<Rate>,
    /// The time when the next segment may leave.
    next: Time,
    /// The latest time that was told: a departure that is due already needs no timer.
    clock: Time,
    /// Payload that the interface has not begun to send.
    in_host: u64,
    /// The most of it that there may be, and what the pacing rate (or the pace that the window makes) holds in about a
    /// millisecond.
    most_in_host: u64,
    per_millisecond: u64,
    segments: u64,
    /// Segments that are still to leave of the super-segment that has begun.
    left_of_super: u32,
    /// The number after the last segment that was not full (Minshall's variant of Nagle's algorithm).
    small_end: u64,
    /// What the congestion window was used for since it was last full (`tcp_cwnd_validate`).
    limited: bool,
    most_outstanding: u32,
    usage_end: u64,
}

/// The next thing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Nothing,
    Reset,
    Syn,
    Resend(usize),
    New { length: u32, fin: bool },
    Probe,
    Acknowledgement,
}

/// The next segment as [`Connection::planned`] gave it.
#[derive(Clone, Copy, Debug)]
pub struct Planned(Plan);

impl Connection {
    /// Returns `true` if [`Connection::poll_send`] would give a segment now.
    #[must_use]
    pub fn wants_to_send(&self, now: Time) -> bool {
        self.planned(now).is_some()
    }

    /// The next segment that may be sent now, for [`Connection::send_planned`] before anything else is done with the
    /// connection. `None` when there is none: the window, TCP small queues, pacing or a lack of data forbids.
    #[must_use]
    pub fn planned(&self, now: Time) -> Option<Planned> {
        let plan = self.plan(now);
        (plan != Plan::Nothing).then_some(Planned(plan))
    }

    /// Appends the next segment that may be sent now to `bytes`, if there is one; see [`Connection::planned`].
    pub fn poll_send(&mut self, now: Time, bytes: &mut Vec<u8>) -> Option<Outgoing> {
        let Some(planned) = self.planned(now) else {
            self.tell_time(now);
            self.note_app_limit();
            return None;
        };
        self.send_planned(planned, now, bytes)
    }

    /// Appends a planned segment to `bytes`: header, options and the real bytes of its payload.
    pub fn send_planned(&mut self, Planned(plan): Planned, now: Time, bytes: &mut Vec<u8>) -> Option<Outgoing> {
        self.tell_time(now);
        match plan {
            Plan::Nothing => None,
            Plan::Reset => {
                let (sequence, acknowledgement) = self.reset.take()?;
                let flags = if acknowledgement.is_some() { Flags::RST.with(Flags::ACK) } else { Flags::RST };
                self.emit(sequence, acknowledgement.unwrap_or(0), flags, 0, Options::default(), bytes);
                self.conclude();
                Some(NO_PAYLOAD)
            }
            Plan::Syn => {
                let (flags, window, options) = self.syn(now);
                let acknowledgement = if flags.has(Flags::ACK) { self.incoming.next() as u32 } else { 0 };
                self.emit(self.send.initial as u32, acknowledgement, flags, window, options, bytes);
                self.syn_sent(now);
                Some(NO_PAYLOAD)
            }
            Plan::Resend(index) => self.resend(index, now, bytes),
            Plan::New { length, fin } => Some(self.send_new(length, fin, now, bytes)),
            Plan::Probe => {
                self.timers.window_probe_wanted = false;
                // A number that is already acknowledged: the peer must answer (RFC 9293, 3.8.6.1).
                let sequence = self.send.unacknowledged.wrapping_sub(1);
                self.emit_acknowledging(sequence, Flags::ACK, now, bytes);
                Some(NO_PAYLOAD)
            }
            Plan::Acknowledgement => {
                self.emit_acknowledging(self.send.next, Flags::ACK, now, bytes);
                Some(NO_PAYLOAD)
            }
        }
    }

    /// The interface has begun to send (or has thrown away) a segment of `payload` bytes: TCP small queues let the
    /// next one come.
    pub fn left_host(&mut self, payload: u32) {
        self.departures.in_host = self.departures.in_host.saturating_sub(u64::from(payload));
    }

    /// Returns `true` if everything outstanding still waits in this host.
    pub(super) fn all_waits_in_host(&self) -> bool {
        let fin = u64::from(self.send.fin.is_some());
        let outstanding = (self.send.next - self.send.unacknowledged).saturating_sub(fin);
        outstanding > 0 && self.departures.in_host >= outstanding
    }

    /// Returns the time when pacing lets the next segment leave, if that is what it waits for.
    pub(super) fn departures_resume(&self) -> Option<Time> {
        self.departures.rate?;
        let next = self.departures.next;
        (next > self.departures.clock && self.plan_of_data(next) != Plan::Nothing).then_some(next)
    }

    /// Takes note of the time.
    pub(super) fn tell_time(&mut self, now: Time) {
        self.departures.clock = now;
    }

    /// Returns `true` if the peer's window is too small for what is to be sent next.
    pub(super) fn is_window_shut(&self) -> bool {
        let waiting = self.outgoing.end().saturating_sub(self.send.next);
        let fin = waiting == 0 && self.finish_wanted && self.send.fin.is_none();
        let wanted = waiting.min(u64::from(self.segment_bytes)).max(u64::from(fin));
        wanted > 0 && self.send.next + wanted > self.send.window_end()
    }

    fn plan(&self, now: Time) -> Plan {
        if self.reset.is_some() {
            return Plan::Reset;
        }
        match self.state {
            State::Closed => return Plan::Nothing,
            State::SynSent | State::SynReceived => {
                return if self.handshake.syn_wanted { Plan::Syn } else { Plan::Nothing };
            }
            _ => {}
        }
        let data = self.plan_of_data(now);
        if data != Plan::Nothing {
            data
        } else if self.timers.window_probe_wanted {
            Plan::Probe
        } else if self.acks.is_due() {
            Plan::Acknowledgement
        } else {
            Plan::Nothing
        }
    }

    /// The next segment with data, or the FIN.
    fn plan_of_data(&self, now: Time) -> Plan {
        if self.state == State::TimeWait {
            return Plan::Nothing;
        }
        if self.recovery.probe_wanted {
            return self.plan_of_tail_probe();
        }
        if self.departures.rate.is_some() && self.departures.next > now {
            return Plan::Nothing;
        }
        if self.sent.in_flight() >= self.congestion_window() || self.is_held_by_small_queue() {
            return Plan::Nothing;
        }
        if let Some(index) = self.sent.next_lost().filter(|_| !self.recovery.new_data_first) {
            let inside = self.sent.get(index).is_some_and(|segment| segment.start < self.send.window_end());
            if inside || index == 0 {
                return Plan::Resend(index);
            }
        }
        self.plan_of_new(true)
    }

    /// New data within the peer's window, full segments unless the last; `patient` when it may wait for more to come.
    fn plan_of_new(&self, patient: bool) -> Plan {
        let waiting = self.outgoing.end().saturating_sub(self.send.next);
        let ends = self.finish_wanted && self.send.fin.is_none();
        if waiting == 0 {
            // A FIN takes a number too, so it must fit in the window.
            let fits = self.send.next < self.send.window_end();
            return if ends && fits { Plan::New { length: 0, fin: true } } else { Plan::Nothing };
        }
        let most = self.payload_limit();
        let length = waiting.min(u64::from(most)) as u32;
        let last = u64::from(length) == waiting;
        let fits = self.send.next + u64::from(length) <= self.send.window_end();
        if !fits {
            let open = self.send.window_end().saturating_sub(self.send.next);
            // Part of a segment only when the persist timer has run out (RFC 9293, 3.8.6.2.1).
            return match self.timers.window_probe_wanted && open > 0 {
                true => Plan::New { length: open.min(u64::from(most)) as u32, fin: false },
                false => Plan::Nothing,
            };
        }
        if patient && length < most && !ends && self.waits_for_more() {
            return Plan::Nothing;
        }
        let fin_fits = self.send.next + u64::from(length) < self.send.window_end();
        Plan::New { length, fin: last && ends && fin_fits }
    }

    /// Returns `true` if a segment that is not full must wait: for the acknowledgement of one like it (RFC 9293, 3.7.4,
    /// with Minshall's change), or for what is still in the host (Linux's `tcp_autocorking`).
    fn waits_for_more(&self) -> bool {
        let small_outstanding = self.departures.small_end > self.send.unacknowledged;
        small_outstanding || self.departures.in_host > 0
    }

    fn plan_of_tail_probe(&self) -> Plan {
        match self.plan_of_new(false) {
            Plan::Nothing => self.sent.last_index().map_or(Plan::Nothing, Plan::Resend),
            new => new,
        }
    }

    /// TCP small queues: about a millisecond of data may wait in the host, and at least two segments.
    fn is_held_by_small_queue(&self) -> bool {
        self.departures.in_host > self.departures.most_in_host && self.sent.outstanding() > 1
    }

    /// Payload that fits beside the options of the next segment.
    fn payload_limit(&self) -> u32 {
        if !self.has_sack_blocks() {
            return self.segment_bytes.max(1);
        }
        let blocks = self.sack_blocks().iter().flatten().count();
        let options = if blocks > 0 { 4 + 8 * blocks as u32 } else { 0 };
        self.segment_bytes.saturating_sub(options).max(1)
    }

    #[inline]
    fn has_sack_blocks(&self) -> bool {
        self.agreed.sack && (self.duplicate.is_some() || self.incoming.has_gap())
    }

    /// The blocks to tell: what came twice first (RFC 2883), then what is early.
    fn sack_blocks(&self) -> [Option<(u64, u64)>; 3] {
        let mut blocks = [None; 3];
        if !self.has_sack_blocks() {
            return blocks;
        }
        let duplicate = self.duplicate.into_iter();
        let early = self.incoming.blocks().iter().flatten().copied();
        for (place, block) in blocks.iter_mut().zip(duplicate.chain(early)) {
            // An early FIN lies behind its data and is held as well.
            *place = Some((block.0, block.1 + u64::from(self.fin_at == Some(block.1))));
        }
        blocks
    }

    fn send_new(&mut self, length: u32, fin: bool, now: Time, bytes: &mut Vec<u8>) -> Outgoing {
        let start = self.send.next;
        let mut flags = Flags::ACK;
        if fin {
            flags = flags.with(Flags::FIN);
        }
        let last = start + u64::from(length) == self.outgoing.end();
        if self.ends_super_segment() || last && length > 0 {
            flags = flags.with(Flags::PSH);
        }
        if length > 0 && std::mem::take(&mut self.echo.reduced) {
            flags = flags.with(Flags::CWR);
        }
        let full = length >= self.payload_limit();
        self.emit_acknowledging(start, flags, now, bytes);
        let elided = self.outgoing.copy(start, length, bytes);

        let idle = self.sent.outstanding() == 0;
        self.note_start(now);
        let stamp = self.rate.sending(idle, now);
        self.sent.push(start, length + u32::from(fin), fin, stamp, now);
        self.send.next = start + u64::from(length) + u64::from(fin);
        if fin {
            self.send.fin = Some(self.send.next - 1);
            self.fin_sent(now);
        }
        if !full {
            self.departures.small_end = self.send.next;
        }
        self.acks.data_sent(now);
        let probe = std::mem::take(&mut self.recovery.probe_wanted);
        self.timers.window_probe_wanted = false;
        self.departed(length, now);
        self.note_usage();
        self.after_new_segment(idle, probe, now);
        Outgoing { elided, ecn_capable: self.agreed.ecn && length > 0, payload: length }
    }

    /// Returns `true` if the segment that is about to be sent is the last of a super-segment of two or more: Linux
    /// hands as many segments at once to the interface as the windows let go and a millisecond of its rate holds, and
    /// sets the push flag in the last of them so that the receiver does not wait for more (`tcp_tso_autosize`,
    /// `__tcp_transmit_skb`).
    fn ends_super_segment(&mut self) -> bool {
        if self.departures.left_of_super == 0 {
            let segment = u64::from(self.segment_bytes.max(1));
            let most = u32::try_from(self.departures.per_millisecond / segment).unwrap_or(u32::MAX);
            let by_congestion = self.congestion_window().saturating_sub(self.sent.in_flight());
            let open = self.outgoing.end().min(self.send.window_end()).saturating_sub(self.send.next);
            let by_peer = u32::try_from(open.div_ceil(segment)).unwrap_or(u32::MAX);
            let together = by_congestion.min(by_peer).min(most.max(LEAST_OF_SUPER));
            self.departures.left_of_super = if together > 1 { together } else { 0 };
        }
        let left = self.departures.left_of_super;
        self.departures.left_of_super = left.saturating_sub(1);
        left == 1
    }

    fn resend(&mut self, index: usize, now: Time, bytes: &mut Vec<u8>) -> Option<Outgoing> {
        let limit = self.payload_limit();
        if self.sent.get(index)?.payload() > limit {
            self.sent.split(index, limit);
        }
        let mut index = index;
        let probe = std::mem::take(&mut self.recovery.probe_wanted);
        if probe {
            index = self.sent.last_index()?;
        }
        let segment = *self.sent.get(index)?;
        let mut flags = Flags::ACK;
        if segment.has_fin() {
            flags = flags.with(Flags::FIN);
        }
        let payload = segment.payload();
        if segment.start + u64::from(payload) == self.outgoing.end() && payload > 0 {
            flags = flags.with(Flags::PSH);
        }
        self.emit_acknowledging(segment.start, flags, now, bytes);
        let elided = self.outgoing.copy(segment.start, payload, bytes);
        self.note_start(now);
        let stamp = self.rate.sending(false, now);
        self.sent.resend(index, probe, stamp, now);
        self.retransmitted += 1;
        self.departed(payload, now);
        self.after_resent_segment(index, probe, now);
        Some(Outgoing { elided, ecn_capable: false, payload })
    }

    /// A segment is about to leave: the congestion control hears of it when nothing was in flight.
    fn note_start(&mut self, now: Time) {
        if self.sent.in_flight() == 0 {
            let idle = now - self.timers.idle_since;
            self.congestion.transmission_started(idle, self.rate.is_app_limited(), now);
            self.update_pace();
        }
        self.timers.idle_since = now;
        self.timers.restarted = false;
    }

    /// A segment with payload has been handed to the interface.
    fn departed(&mut self, payload: u32, now: Time) {
        self.recovery.sent_in_reduction += 1;
        let departures = &mut self.departures;
        departures.in_host += u64::from(payload);
        departures.segments += 1;
        let Some(rate) = departures.rate.filter(|_| departures.segments > UNPACED_SEGMENTS) else { return };
        let mut gap = rate.serialise(u64::from(payload + header_bytes(self.local)));
        // What a late segment lost of its gap is made good, up to half of the next.
        let late = (now - departures.next).as_ps().min(gap.as_ps() / 2);
        gap = gap.saturating_sub(twinnet_units::Duration::from_ps(late));
        departures.next = departures.next.max(now) + gap;
    }

    /// Remembers whether the congestion window is what limits (`tcp_cwnd_validate`).
    fn note_usage(&mut self) {
        let outstanding = self.sent.outstanding();
        let limited = self.sent.in_flight() >= self.congestion_window();
        let departures = &mut self.departures;
        let over = self.send.unacknowledged >= departures.usage_end;
        if over || limited || !departures.limited && outstanding > departures.most_outstanding {
            departures.limited = limited;
            departures.most_outstanding = outstanding;
            departures.usage_end = self.send.next;
        }
    }

    /// Linux's `tcp_is_cwnd_limited`: in slow start the window may grow to twice what was used.
    pub(super) fn is_window_limited(&self) -> bool {
        let window = self.congestion.window();
        self.departures.limited
            || window < self.congestion.slow_start_threshold()
                && window < self.departures.most_outstanding.saturating_mul(2)
    }

    /// Nothing is left to send although the window is open: rate samples will tell the app's pace
    /// (`tcp_rate_check_app_limited`).
    fn note_app_limit(&mut self) {
        let waiting = self.outgoing.end().saturating_sub(self.send.next);
        if self.state.is_synchronised()
            && waiting < u64::from(self.segment_bytes)
            && self.departures.in_host == 0
            && self.sent.in_flight() < self.congestion_window()
            && self.sent.lost() <= self.sent.resent()
        {
            self.rate.app_limited(self.sent.in_flight());
        }
    }

    /// The congestion window in force, in segments.
    pub(super) fn congestion_window(&self) -> u32 {
        match self.recovery.phase {
            Phase::Reduction | Phase::Recovery if !self.congestion.rules_recovery() => self.recovery.window,
            _ => self.congestion.window(),
        }
    }

    /// Takes over the pacing rate and sets the limit of TCP small queues, after the window or the round trip has
    /// changed.
    pub(super) fn update_pace(&mut self) {
        self.departures.rate = self.congestion.pacing_rate(self.segment_bytes + self.options_and_headers());
        let segment = u64::from(self.segment_bytes);
        let per_millisecond = match (self.departures.rate, self.round_trip.smoothed()) {
            (Some(rate), _) => rate.as_bps() / 8000,
            (None, Some(smoothed)) => {
                let window = self.congestion_window().max(self.sent.outstanding());
                // Twice the window a round trip in slow start, else a fifth more (`tcp_update_pacing_rate`).
                let slow_start =
                    u64::from(self.congestion.window()) < u64::from(self.congestion.slow_start_threshold()) / 2;
                let percent = if slow_start { 200 } else { 120 };
                let bytes = segment * u64::from(window) * percent / 100;
                let nanoseconds = smoothed.as_ns().max(1);
                bytes.saturating_mul(1_000_000) / nanoseconds
            }
            (None, None) => SMALL_QUEUE_LIMIT,
        };
        self.departures.per_millisecond = per_millisecond;
        self.departures.most_in_host = per_millisecond.max(2 * segment).min(SMALL_QUEUE_LIMIT.max(2 * segment));
    }

    fn options_and_headers(&self) -> u32 {
        header_bytes(self.local) + if self.agreed.timestamps { super::handshake::TIMESTAMPS_LENGTH } else { 0 }
    }

    /// Appends the header of a segment that acknowledges what came in.
    fn emit_acknowledging(&mut self, sequence: u64, flags: Flags, now: Time, bytes: &mut Vec<u8>) {
        let next = self.incoming.next();
        let (candidate, scarce) = self.window.candidate(self.incoming.held(), self.acks.segment());
        if scarce {
            self.acks.no_longer_quick();
        }
        let window = self.window.offer(candidate, next);
        let mut options = Options::default();
        if self.agreed.timestamps {
            options.timestamps = Some((self.timestamp(now), self.recent_timestamp));
        }
        if self.duplicate.is_some() || self.incoming.has_gap() {
            options.sack = self.sack_blocks().map(|block| block.map(|(from, to)| (from as u32, to as u32)));
            self.duplicate = None;
        }
        let flags = if self.echo.to_peer { flags.with(Flags::ECE) } else { flags };
        self.acks.sent();
        self.emit(sequence as u32, next as u32, flags, window, options, bytes);
    }

    fn emit(
        &self,
        sequence: u32,
        acknowledgement: u32,
        flags: Flags,
        window: u16,
        options: Options,
        bytes: &mut Vec<u8>,
    ) {
        let (source_port, destination_port) = (self.local.port(), self.peer.port());
        let header = Repr { source_port, destination_port, sequence, acknowledgement, flags, window, options };
        let mut room = [0; LONGEST_HEADER];
        let length = header.header_length().clamp(HEADER_LENGTH, LONGEST_HEADER);
        header.emit(&mut room[..length], 0);
        room[CHECKSUM].fill(0);
        bytes.extend_from_slice(&room[..length]);
    }
}

/// A segment without data.
const NO_PAYLOAD: Outgoing = Outgoing { elided: 0, ecn_capable: false, payload: 0 };
