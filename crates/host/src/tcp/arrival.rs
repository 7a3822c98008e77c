//! A segment that arrives: whether it is acceptable, and what becomes of its parts (RFC 9293, 3.10.7; RFC 5961; RFC
//! 7323).

use twinnet_packet::tcp::Flags;
use twinnet_units::{Duration, Time};

use super::config::Failure;
use super::connection::{Connection, State};
use super::delayed_ack::{Gap, TakenIn};
use super::segment::Segment;
use super::sequence;

/// At most one challenge in so long a time (`tcp_invalid_ratelimit`): two ends that both think the other wrong must
/// not talk forever.
const CHALLENGE_INTERVAL: Duration = Duration::from_ms(500);
/// After so long a timestamp is no longer compared (RFC 7323, 5.5).
const TIMESTAMP_OLD: Duration = Duration::from_secs(24 * 24 * 3600);
/// Payload from which on a segment opens the window.
const LEAST_TO_GROW: u32 = 128;
/// Acknowledgements sent at once after something came twice, and after a mark.
const QUICK_AFTER_DUPLICATE: u32 = 16;
const QUICK_AFTER_MARK: u32 = 2;

impl Connection {
    /// A segment arrived.
    pub fn receive(&mut self, segment: &Segment<'_>, now: Time) {
        self.tell_time(now);
        if self.state == State::Closed {
            return;
        }
        if self.state == State::SynSent {
            self.receive_in_syn_sent(segment, now);
            return;
        }
        if self.state == State::SynReceived && !self.receive_in_syn_received(segment, now) {
            return;
        }
        let start = sequence::extend(segment.sequence, self.incoming.next());
        if !self.is_acceptable(segment, start, now) {
            return;
        }
        if segment.flags.has(Flags::RST) {
            self.take_reset(start, now);
            return;
        }
        if segment.flags.has(Flags::SYN) {
            // RFC 5961, 4.2: whatever its number, the peer must confirm it by a reset.
            self.challenge(now);
            return;
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        self.take_timestamps(segment, start, now);
        if !self.acknowledge(segment, start, now) {
            return;
        }
        self.after_acknowledgement(now);
        if self.state != State::Closed {
            self.take_payload(segment, start, now);
        }
    }

    /// The sequence number must lie in the window, and the timestamp must not be old (PAWS).
    fn is_acceptable(&mut self, segment: &Segment<'_>, start: u64, now: Time) -> bool {
        let reset = segment.flags.has(Flags::RST);
        let length = u64::from(segment.payload_length()) + u64::from(segment.flags.has(Flags::FIN));
        let end = start + length;
        let old = !reset && self.is_older_by_timestamp(segment, now);
        let outside = end < self.window.offered_from()
            || start > self.incoming.next() + self.window.remaining(self.incoming.next());
        if !old && !outside {
            return true;
        }
        if reset {
            return false;
        }
        if length == 0 || segment.flags.has(Flags::SYN) {
            self.challenge(now);
        } else {
            if end <= self.incoming.next() && self.agreed.sack && segment.payload_length() > 0 {
                self.duplicate = Some((start, start + u64::from(segment.payload_length())));
            }
            self.restart_time_wait(segment, now);
            self.acks.be_quick(QUICK_AFTER_DUPLICATE, self.window.offered());
            self.acks.at_once();
        }
        false
    }

    fn is_older_by_timestamp(&self, segment: &Segment<'_>, now: Time) -> bool {
        let Some((value, _)) = segment.options.timestamps.filter(|_| self.agreed.timestamps) else { return false };
        let older = (value.wrapping_sub(self.recent_timestamp) as i32) < 0;
        // An acknowledgement without data that was overtaken does no harm (Linux's `tcp_disordered_ack`): it is
        // only old.
        let overtaken = segment.payload_length() == 0
            && !segment.flags.has(Flags::FIN)
            && self.recent_timestamp.wrapping_sub(value) < overtaken_by(self.round_trip.timeout());
        older && !overtaken && now - self.recent_timestamp_at < TIMESTAMP_OLD
    }

    /// RFC 5961, 3.2: a reset counts only with the number expected next; another in the window is challenged.
    fn take_reset(&mut self, start: u64, now: Time) {
        let expected = self.incoming.next();
        let confirms_early = self.incoming.blocks().iter().flatten().map(|block| block.1).max() == Some(start);
        if start != expected && !confirms_early {
            self.challenge(now);
        } else if matches!(self.state, State::TimeWait | State::Closing | State::LastAck) {
            self.end(now);
        } else {
            self.fail(Failure::Reset);
        }
    }

    /// Answers what may be forged by an acknowledgement, which a peer in another state answers by a reset.
    pub(super) fn challenge(&mut self, now: Time) {
        if self.timers.challenged_at.is_some_and(|last| now - last < CHALLENGE_INTERVAL) {
            return;
        }
        self.timers.challenged_at = Some(now);
        self.acks.at_once();
    }

    /// Remembers the peer's timestamp, and its echo of ours (RFC 7323, 4.3).
    fn take_timestamps(&mut self, segment: &Segment<'_>, start: u64, now: Time) {
        self.echoed_timestamp = None;
        let Some((value, echo)) = segment.options.timestamps.filter(|_| self.agreed.timestamps) else { return };
        let newer = (value.wrapping_sub(self.recent_timestamp) as i32) >= 0;
        if newer && start <= self.window.offered_from() {
            self.recent_timestamp = value;
            self.recent_timestamp_at = now;
        }
        // An echo from the future was not sent by us.
        if self.timestamp(now).wrapping_sub(echo) as i32 >= 0 {
            self.echoed_timestamp = Some(echo);
        }
    }

    /// Data and FIN.
    fn take_payload(&mut self, segment: &Segment<'_>, start: u64, now: Time) {
        let length = segment.payload_length();
        let fin = segment.flags.has(Flags::FIN);
        if length == 0 && !fin {
            return;
        }
        if self.finished_by_peer {
            // All was taken long ago: the peer has not heard of it.
            self.restart_time_wait(segment, now);
            self.acks.at_once();
            return;
        }
        let expected = self.incoming.next();
        if self.abandoned && start + u64::from(length) > expected && length > 0 {
            // Nobody will read it (RFC 9293, 3.10.7.4, by way of Linux).
            self.abort(now);
            return;
        }
        if self.agreed.ecn && length > 0 {
            self.take_marks(segment);
        }
        if length > 0 {
            self.take_data(segment, start, now);
        }
        if fin {
            self.fin_at = Some(start + u64::from(length));
        }
        if self.fin_at == Some(self.incoming.next()) {
            self.incoming.step_over_fin();
            self.fin_at = None;
            self.finished_by_peer = true;
            self.signals.readable = true;
            self.acks.at_once();
            self.peer_finished(now);
        } else if fin {
            self.acks.at_once();
        }
        self.decide_acknowledgement(now);
    }

    /// RFC 3168, 6.1.3.
    fn take_marks(&mut self, segment: &Segment<'_>) {
        if segment.flags.has(Flags::CWR) {
            self.echo.to_peer = false;
            // The sender's window may be as small as one segment: it must not wait.
            self.acks.at_once();
        }
        if segment.congestion_experienced && !self.echo.to_peer {
            self.acks.be_quick(QUICK_AFTER_MARK, self.window.offered());
            self.echo.to_peer = true;
        }
    }

    fn take_data(&mut self, segment: &Segment<'_>, start: u64, now: Time) {
        let expected = self.incoming.next();
        let length = u64::from(segment.payload_length());
        // What lies beyond the window is not kept: memory is bounded by what was offered.
        let limit = expected + self.window.remaining(expected);
        let limit = self.fin_at.map_or(limit, |fin| limit.min(fin));
        let kept = limit.saturating_sub(start).min(length);
        if kept < length {
            self.acks.at_once();
        }
        let real = segment.payload.len().min(usize::try_from(kept).unwrap_or(usize::MAX));
        self.measure_receiver_round_trip(segment, now);
        let inserted = self.incoming.insert(start, &segment.payload[..real], kept - real as u64);
        if let Some(duplicate) = inserted.duplicate.filter(|(from, to)| from < to) {
            self.duplicate = Some(duplicate).filter(|_| self.agreed.sack);
            self.acks.be_quick(QUICK_AFTER_DUPLICATE, self.window.offered());
            self.acks.at_once();
        }
        if inserted.in_order == 0 {
            self.early_arrived(segment);
            self.acks.schedule();
            return;
        }
        self.signals.readable = true;
        if !self.agreed.timestamps {
            self.window.round_trip_by_window(self.incoming.next(), now);
        }
        let push = segment.flags.has(Flags::PSH);
        self.acks.data_arrived(segment.payload_length(), push, self.window.offered(), self.round_trip.timeout(), now);
        if segment.payload_length() >= LEAST_TO_GROW {
            if segment.payload_length() == self.acks.segment() {
                self.window.measure(segment.payload_length());
            }
            // What has just come in does not count as held yet: the window opens to its full size, as is seen of Linux.
            let held = self.incoming.held().saturating_sub(u64::from(segment.payload_length()));
            if self.window.grow(held) {
                self.acks.window_opens();
            }
        }
        if inserted.filled {
            self.acks.at_once();
        }
    }

    /// Data came behind a gap, or once more: the buffer makes room, and the window opens for a sender that selective
    /// acknowledgements tell of it.
    fn early_arrived(&mut self, segment: &Segment<'_>) {
        let length = segment.payload_length();
        if length >= LEAST_TO_GROW && self.agreed.sack && self.incoming.has_gap() && self.duplicate.is_none() {
            // The window opens before the segment counts as held.
            if self.window.grow(self.incoming.held().saturating_sub(u64::from(length))) {
                self.acks.window_opens();
            }
        }
        self.window.early_data(self.incoming.early_span());
    }

    /// Measures the round trip by the echo of a timestamp, before `segment` is taken in.
    fn measure_receiver_round_trip(&mut self, segment: &Segment<'_>, now: Time) {
        if !self.agreed.timestamps {
            return;
        }
        let Some(echo) = self.echoed_timestamp.filter(|echo| *echo != self.last_echo_measured) else { return };
        self.last_echo_measured = echo;
        if segment.payload_length() >= self.acks.segment() {
            let elapsed = self.timestamp(now).wrapping_sub(echo);
            self.window.round_trip(Duration::from_ms(u64::from(elapsed)), self.incoming.unread() > 0);
        }
    }

    fn decide_acknowledgement(&mut self, now: Time) {
        if self.acks.is_due() {
            return;
        }
        let unacknowledged = self.incoming.next() - self.window.offered_from();
        let keeps_up = unacknowledged > u64::from(self.acks.segment())
            && (self.incoming.unread() == 0
                || self.window.candidate(self.incoming.held(), self.acks.segment()).0 >= self.window.offered());
        let smoothed = self.round_trip.smoothed();
        let gap = self.incoming.has_gap().then(|| {
            let measured = self.window.measured_round_trip();
            let round_trip = smoothed.map_or(measured, |smoothed| smoothed.min(measured));
            Gap { next: self.incoming.next(), selective: self.agreed.sack, round_trip }
        });
        self.acks.decide(&TakenIn { unacknowledged, window_keeps_up: keeps_up, gap, smoothed }, now);
    }

    /// The owner has read: the buffer follows its pace, and the peer hears of a window that has opened (RFC 9293,
    /// 3.8.6.2.2).
    pub(super) fn after_read(&mut self, count: u64, now: Time) {
        if self.state == State::Closed {
            self.conclude();
            return;
        }
        if count == 0 {
            return;
        }
        self.window.owner_read(count, self.incoming.unread(), self.incoming.early_span(), now);
        let next = self.incoming.next();
        let unacknowledged = next - self.window.offered_from().min(next);
        if self.acks.owner_read(unacknowledged, self.incoming.unread() == 0) {
            return;
        }
        if self.window.is_half_used(next) && !self.finished_by_peer {
            let (candidate, _) = self.window.candidate(self.incoming.held(), self.acks.segment());
            if candidate > 0 && candidate >= 2 * self.window.remaining(next) {
                self.acks.at_once();
            }
        }
    }
}

/// Milliseconds by which an acknowledgement may be overtaken: about a retransmission timeout.
fn overtaken_by(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_ps() / 1_000_000_000 * 6 / 5).unwrap_or(u32::MAX)
}
