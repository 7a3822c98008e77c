//! The time to acknowledge: RFC 1122 (4.2.3.2) and RFC 5681 (4.2) as Linux does it, quick at first and then by a
//! timeout that adapts.

use twinnet_units::{Duration, Time};

/// Least time that an acknowledgement is delayed, and the step of its adaptation (`TCP_DELACK_MIN`, `TCP_ATO_MIN`).
const LEAST_DELAY: Duration = Duration::from_ms(40);
/// Longest time (`TCP_DELACK_MAX`); RFC 1122 permits half a second.
const LONGEST_DELAY: Duration = Duration::from_ms(200);
/// Acknowledgements sent at once at the beginning (`TCP_MAX_QUICKACKS`).
const MOST_QUICK: u32 = 16;
/// Selective acknowledgements of one gap that are sent at once (`TCP_FASTRETRANS_THRESH`), and segments that one
/// may be kept back for (`tcp_comp_sack_nr`).
const GAP_AT_ONCE: u8 = 3;
const MOST_COMPRESSED: u8 = 44;
/// The longest time that a selective acknowledgement is kept back (`tcp_comp_sack_delay_ns`), its share of the round
/// trip in percent (`tcp_comp_sack_rtt_percent`), and how much later Linux's timer may go off
/// (`tcp_comp_sack_slack_ns`), which it does when nothing else wakes the processor. Values of Linux 7.3.
const LONGEST_COMPRESSION: Duration = Duration::from_ms(1);
const COMPRESSION_PERCENT: u64 = 33;
const COMPRESSION_SLACK: Duration = Duration::from_us(10);
/// The size that is taken for a full segment before one has come (`TCP_MSS_DEFAULT`).
const FIRST_SEGMENT: u32 = 536;

/// The known facts when data has been taken in, and it is to be decided whether to acknowledge it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakenIn {
    /// Bytes in order that are not acknowledged.
    pub unacknowledged: u64,
    /// The window to be offered is not smaller than the last.
    pub window_keeps_up: bool,
    /// Data is missing before this number, and what lies behind it can be told of selectively or not.
    pub gap: Option<Gap>,
    /// The round trip as a sender knows it.
    pub smoothed: Option<Duration>,
}

/// A gap in what has come in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// The sequence number at which it begins.
    pub next: u64,
    /// `true` if the peer understands selective acknowledgements.
    pub selective: bool,
    /// The round trip as the receiver knows it (the sender's, when it is shorter).
    pub round_trip: Duration,
}

/// Selective acknowledgements that are kept back, so that one tells of several segments.
#[derive(Clone, Copy, Debug, Default)]
struct Compression {
    /// The gap that is counted for.
    next: u64,
    /// Acknowledgements of it that were sent at once.
    at_once: u8,
    /// Segments that one is kept back for.
    kept_back: u8,
    deadline: Option<Time>,
}

/// The state.
#[derive(Clone, Debug)]
pub(super) struct DelayedAck {
    /// Acknowledgements still to be sent at once.
    quick: u32,
    /// The delay, as adapted to the pace of arrivals; zero before the first data.
    delay: Duration,
    /// The owner answers what it receives: its answers carry the acknowledgements.
    interactive: bool,
    last_data_at: Time,
    /// Something is not acknowledged.
    scheduled: bool,
    /// An acknowledgement is to be sent at once.
    now: bool,
    deadline: Option<Time>,
    compression: Compression,
    /// Segments since the last acknowledgement that ended what the sender had at hand, at most 2: small ones, and
    /// full ones with the push flag, of which there is counted one (`ICSK_ACK_PUSHED`, `ICSK_ACK_PUSHED2`).
    pushed: u8,
    /// The size of the peer's full segments, as seen.
    segment: u32,
    longest_segment: u32,
}

impl DelayedAck {
    /// Nothing arrived yet; the peer may send segments of `longest_segment`.
    pub fn new(longest_segment: u32) -> Self {
        Self {
            quick: 0,
            delay: Duration::ZERO,
            interactive: false,
            last_data_at: Time::ZERO,
            scheduled: false,
            now: false,
            deadline: None,
            compression: Compression::default(),
            pushed: 0,
            segment: FIRST_SEGMENT.min(longest_segment),
            longest_segment,
        }
    }

    /// The size of the peer's full segments.
    pub fn segment(&self) -> u32 {
        self.segment
    }

    /// Returns `true` if an acknowledgement is to be sent now.
    pub fn is_due(&self) -> bool {
        self.now
    }

    /// Returns the time when [`DelayedAck::timer`] is wanted.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline.into_iter().chain(self.compression.deadline).min()
    }

    /// An acknowledgement is to be sent, now or later.
    pub fn schedule(&mut self) {
        self.scheduled = true;
    }

    /// Sends an acknowledgement now.
    pub fn at_once(&mut self) {
        self.scheduled = true;
        self.now = true;
    }

    /// The next acknowledgements are sent at once, for the sender needs them: order is lost, or the path is congested.
    pub fn be_quick(&mut self, most: u32, window: u64) {
        let by_window = u32::try_from(window / (2 * u64::from(self.segment.max(1)))).unwrap_or(u32::MAX);
        let by_window = if by_window == 0 { 2 } else { by_window };
        self.quick = self.quick.max(by_window.min(most));
        self.interactive = false;
        self.delay = LEAST_DELAY;
    }

    /// Data of `length` bytes came, with the push flag or without (`tcp_event_data_recv`). `window` is what is
    /// offered, `timeout` our retransmission timeout.
    pub fn data_arrived(&mut self, length: u32, push: bool, window: u64, timeout: Duration, now: Time) {
        self.scheduled = true;
        if length >= self.segment {
            self.segment = length.min(self.longest_segment);
            self.pushed = self.pushed.max(u8::from(push));
        } else {
            self.pushed = (self.pushed + 1).min(2);
        }
        if self.delay == Duration::ZERO {
            self.increase_quick(window);
            self.delay = LEAST_DELAY;
        } else {
            let gap = now - self.last_data_at;
            let half = Duration::from_ps(self.delay.as_ps() / 2);
            if gap.as_ps() <= LEAST_DELAY.as_ps() / 2 {
                self.delay = half + Duration::from_ps(LEAST_DELAY.as_ps() / 2);
            } else if gap < self.delay {
                self.delay = (half + gap).min(timeout);
            } else if gap > timeout {
                // The sender has probably begun anew after a pause, with a small window.
                self.increase_quick(window);
            }
        }
        self.last_data_at = now;
    }

    /// The window opens: the sender is told so at once (`tcp_grow_window`).
    pub fn window_opens(&mut self) {
        self.quick |= 1;
    }

    fn increase_quick(&mut self, window: u64) {
        let by_window = u32::try_from(window / (2 * u64::from(self.segment.max(1)))).unwrap_or(u32::MAX);
        let by_window = if by_window == 0 { 2 } else { by_window };
        self.quick = self.quick.max(by_window.min(MOST_QUICK));
    }

    /// Data has been taken in (`__tcp_ack_snd_check`).
    pub fn decide(&mut self, taken_in: &TakenIn, now: Time) {
        if !self.scheduled || self.now {
            return;
        }
        let second_segment = taken_in.unacknowledged > u64::from(self.segment) && taken_in.window_keeps_up;
        if second_segment || self.is_quick() {
            self.now = true;
            return;
        }
        match &taken_in.gap {
            None => self.wait(taken_in.smoothed, now),
            Some(gap) => self.tell_of(gap, now),
        }
    }

    /// Tells of what lies behind a gap: the first times at once, then of several segments by one acknowledgement.
    fn tell_of(&mut self, gap: &Gap, now: Time) {
        let compression = &mut self.compression;
        if compression.next != gap.next {
            (compression.next, compression.at_once) = (gap.next, 0);
        }
        if !gap.selective || compression.kept_back >= MOST_COMPRESSED {
            self.now = true;
        } else if compression.at_once < GAP_AT_ONCE {
            compression.at_once += 1;
            self.now = true;
        } else {
            compression.kept_back += 1;
            let delay = Duration::from_ps((gap.round_trip.as_ps() / 100).saturating_mul(COMPRESSION_PERCENT));
            let at = now + delay.min(LONGEST_COMPRESSION) + COMPRESSION_SLACK;
            compression.deadline.get_or_insert(at);
        }
    }

    /// Returns `true` if acknowledgements go out at once.
    fn is_quick(&self) -> bool {
        self.quick > 0 && !self.interactive
    }

    /// Sets the timer (`tcp_send_delayed_ack`).
    fn wait(&mut self, smoothed: Option<Duration>, now: Time) {
        let mut delay = self.delay;
        if delay > LEAST_DELAY {
            let mut longest = Duration::from_ms(500);
            if self.interactive || self.pushed > 0 {
                longest = LONGEST_DELAY;
            }
            if let Some(smoothed) = smoothed {
                longest = longest.min(smoothed.max(LEAST_DELAY));
            }
            delay = delay.min(longest);
        }
        delay = delay.min(LONGEST_DELAY);
        let mut deadline = now + delay;
        if let Some(pending) = self.deadline {
            if pending <= now + Duration::from_ps(delay.as_ps() / 4) {
                self.now = true;
                return;
            }
            deadline = deadline.min(pending);
        }
        self.deadline = Some(deadline);
    }

    /// The delay is over (`tcp_delack_timer_handler`).
    pub fn timer(&mut self, timeout: Duration, now: Time) {
        if self.compression.deadline.is_some_and(|deadline| deadline <= now) {
            self.compression.deadline = None;
            self.now = true;
        }
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        self.deadline = None;
        if !self.scheduled {
            return;
        }
        if self.interactive {
            // The owner did not answer in time after all.
            self.interactive = false;
            self.delay = LEAST_DELAY;
        } else {
            self.delay = (self.delay + self.delay).min(timeout);
        }
        self.now = true;
    }

    /// The owner has read. Whether an acknowledgement should go out because it has read all that the sender had at
    /// hand, or a full segment waits for one (`__tcp_cleanup_rbuf`).
    pub fn owner_read(&mut self, unacknowledged: u64, all: bool) -> bool {
        let pushed = self.pushed > 1 || self.pushed > 0 && !self.interactive;
        if self.scheduled && (unacknowledged > u64::from(self.segment) || pushed && all) {
            self.now = true;
        }
        self.now
    }

    /// The window shrinks: acknowledgements are not to be spent.
    pub fn no_longer_quick(&mut self) {
        self.quick = 0;
    }

    /// We send data: shortly after data has arrived it is an answer.
    pub fn data_sent(&mut self, now: Time) {
        if self.last_data_at > Time::ZERO && now - self.last_data_at < self.delay {
            self.interactive = true;
        }
    }

    /// A segment with an acknowledgement goes out.
    pub fn sent(&mut self) {
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = LEAST_DELAY;
            }
        }
        self.scheduled = false;
        self.now = false;
        self.pushed = 0;
        self.deadline = None;
        (self.compression.kept_back, self.compression.deadline) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes in a segment behind a gap, of which there were `before`; returns whether it is told of at once.
    fn behind_a_gap(acks: &mut DelayedAck, before: u64, opens: bool) -> bool {
        let now = Time::ZERO + Duration::from_secs(1) + Duration::from_us(100 * before);
        if opens {
            acks.window_opens();
        }
        acks.schedule();
        let gap = Gap { next: 7, selective: true, round_trip: Duration::from_ms(100) };
        acks.decide(&TakenIn { unacknowledged: 0, window_keeps_up: true, gap: Some(gap), smoothed: None }, now);
        let at_once = acks.is_due();
        if at_once {
            acks.sent();
        }
        at_once
    }

    #[test]
    fn behind_a_gap_three_segments_are_told_of_at_once_and_all_while_the_window_opens() {
        let mut acks = DelayedAck::new(1448);
        let at_once: Vec<bool> = (0..6).map(|before| behind_a_gap(&mut acks, before, false)).collect();
        assert_eq!(at_once, [true, true, true, false, false, false]);
        assert!((6..30).all(|before| behind_a_gap(&mut acks, before, true)));
        assert!(!behind_a_gap(&mut acks, 30, false), "it opens no more");
    }
}
