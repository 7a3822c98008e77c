//! The window that we offer: how large the receive buffer may become (Linux's dynamic right-sizing), how fast the
//! window opens, and when it is better shut (RFC 9293, 3.8.6.2.2).
//!
//! A part of the buffer is the overhead of storing segments. Linux begins with half of it, and measures it from the
//! first full segment on (`tcp_measure_rcv_mss`, `scaling_ratio`).

use twinnet_units::{Duration, Time};

use super::config::TcpConfig;

/// Segments of the window with which a connection is thought to begin (RFC 6928).
const FIRST_SEGMENTS: u64 = 10;

/// The bytes that storing a segment costs beside its payload, in bytes: what Linux 6.18 showed for frames that came
/// through a TAP or a virtual Ethernet pair, where a buffer of 131,072 bytes gave a window of 86,016 for segments of
/// 1448.
const SEGMENT_OVERHEAD: u64 = 758;

/// A shorter round trip than this makes the buffer grow by less (`tcp_rcvbuf_low_rtt`).
const LOW_ROUND_TRIP: Duration = Duration::from_ms(1);

/// The window of one connection.
#[derive(Clone, Debug)]
pub(super) struct ReceiveWindow {
    buffer: u64,
    largest_buffer: u64,
    /// The part of the buffer that is window, in 256ths (`scaling_ratio`).
    ratio: u64,
    measured_segment: u32,
    clamp: u64,
    /// The most that the window may open by now (`rcv_ssthresh`).
    threshold: u64,
    /// The window offered last, and from which number on.
    offered: u64,
    offered_from: u64,
    shift: u8,
    segment: u64,
    /// The bytes that the owner has read over the last round trip, and where and when the running measurement began.
    read_per_round: u64,
    read: u64,
    measured_from: u64,
    measured_since: Time,
    /// Eight times the round trip as the receiver sees it, in picoseconds; 0 before the first sample.
    round_trip_times_8: u64,
    /// Without timestamps a round trip is the time in which a window's worth comes: its end and its beginning.
    round_end: u64,
    round_since: Time,
}

impl ReceiveWindow {
    /// The window that a SYN offers; `segment` is the largest that we take.
    pub fn new(config: &TcpConfig, segment: u32) -> Self {
        let buffer = config.receive_buffer[1].min(config.receive_buffer[2]).max(2);
        let segment = u64::from(segment.max(1));
        let space = buffer / 2;
        let space = if space > segment { space - space % segment } else { space };
        let largest = (config.receive_buffer[2].max(buffer)).max(65_536);
        let shift = if config.window_scaling { (largest.ilog2().saturating_sub(15)).min(14) as u8 } else { 0 };
        let offered = space.min(65_535);
        Self {
            buffer,
            largest_buffer: config.receive_buffer[2],
            ratio: 128,
            measured_segment: 0,
            clamp: (65_535 << shift).min(buffer / 2),
            threshold: offered,
            offered,
            offered_from: 0,
            shift,
            segment,
            read_per_round: offered.min(FIRST_SEGMENTS * segment),
            read: 0,
            measured_from: 0,
            measured_since: Time::ZERO,
            round_trip_times_8: 0,
            round_end: 0,
            round_since: Time::ZERO,
        }
    }

    /// Returns the value for the header of a SYN; never scaled.
    pub fn in_syn(&self) -> u16 {
        u16::try_from(self.offered).unwrap_or(u16::MAX)
    }

    /// The shift that our SYN offers.
    pub fn shift(&self) -> u8 {
        self.shift
    }

    /// The handshake is over: `next` is expected; windows are scaled only if both sides agreed.
    pub fn established(&mut self, next: u64, scaling: bool, now: Time) {
        if !scaling {
            self.shift = 0;
            self.clamp = self.clamp.min(65_535);
        }
        self.offered_from = next;
        self.measured_since = now;
        self.round_end = next + self.offered;
        self.round_since = now;
    }

    /// Returns what was offered and is not used up.
    pub fn remaining(&self, next: u64) -> u64 {
        (self.offered_from + self.offered).saturating_sub(next)
    }

    /// Returns the place where the offer began: what was expected when the last acknowledgement left.
    pub fn offered_from(&self) -> u64 {
        self.offered_from
    }

    /// Returns what was offered last.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Returns `true` if so little of the window is left that an acknowledgement should tell of a larger one.
    pub fn is_half_used(&self, next: u64) -> bool {
        2 * self.remaining(next) <= self.clamp
    }

    /// The window to offer while `held` bytes are in the buffer, and whether the buffer is more than half full
    /// (`__tcp_select_window`).
    pub fn candidate(&self, held: u64, peer_segment: u32) -> (u64, bool) {
        let free = self.space().saturating_sub(held);
        let full = self.clamp.min(self.space());
        let segment = u64::from(peer_segment).min(full);
        let mut free = free;
        let scarce = free < full / 2;
        if scarce {
            free = free >> self.shift << self.shift;
            if free < self.space() / 16 || free < segment {
                return (0, true);
            }
        }
        free = free.min(self.threshold);
        if self.shift > 0 {
            return (free.next_multiple_of(1 << self.shift), scarce);
        }
        let mut window = self.offered;
        if segment > 0 && (window + segment <= free || window > free) {
            window = free - free % segment;
        }
        (window.min(65_535), scarce)
    }

    /// Offers `candidate`, but never takes back what was offered; gives the field of the header.
    pub fn offer(&mut self, candidate: u64, next: u64) -> u16 {
        let mut window = candidate;
        let remaining = self.remaining(next);
        if window < remaining {
            // "A TCP receiver SHOULD NOT shrink the window" (RFC 9293, 3.8.6).
            window = remaining.next_multiple_of(1 << self.shift);
        }
        let field = (window >> self.shift).min(65_535);
        self.offered = field << self.shift;
        self.offered_from = next;
        field as u16
    }

    /// The window that the buffer makes room for (`tcp_win_from_space`).
    fn space(&self) -> u64 {
        u64::try_from(u128::from(self.buffer) * u128::from(self.ratio) / 256).unwrap_or(u64::MAX)
    }

    /// The peer's full segments have `length` bytes of payload: measures the overhead of storing them.
    pub fn measure(&mut self, length: u32) {
        if length == self.measured_segment || length == 0 {
            return;
        }
        self.measured_segment = length;
        let length = u64::from(length);
        self.ratio = (length * 256 / (length + SEGMENT_OVERHEAD)).max(1);
        self.clamp = (65_535 << self.shift).min(self.space());
    }

    /// Data came in: the window may open by two segments (`tcp_grow_window`). Returns whether it does.
    pub fn grow(&mut self, held: u64) -> bool {
        let room = self.clamp.min(self.space().saturating_sub(held)).saturating_sub(self.threshold);
        self.threshold += room.min(2 * self.segment);
        room > 0
    }

    /// A round trip, told by the echo of a timestamp: a shorter one than before counts at once, a longer one by an
    /// eighth, and not while data waits for the owner (`tcp_rcv_rtt_update`).
    pub fn round_trip(&mut self, sample: Duration, unread: bool) {
        let sample = sample.as_ps().max(1_000_000_000);
        let times_8 = sample.saturating_mul(8);
        if self.round_trip_times_8 == 0 || times_8 < self.round_trip_times_8 {
            self.round_trip_times_8 = times_8;
        } else if !unread {
            self.round_trip_times_8 = self.round_trip_times_8 - self.round_trip_times_8 / 8 + sample;
        }
    }

    /// The round trip as the receiver knows it; zero before it has been measured.
    pub fn measured_round_trip(&self) -> Duration {
        Duration::from_ps(self.round_trip_times_8 / 8)
    }

    /// Without timestamps: a round trip is at most the time in which a window's worth comes in.
    pub fn round_trip_by_window(&mut self, next: u64, now: Time) {
        if next < self.round_end {
            return;
        }
        let sample = (now - self.round_since).as_ps().max(1_000_000).saturating_mul(8);
        if self.round_trip_times_8 == 0 || sample < self.round_trip_times_8 {
            self.round_trip_times_8 = sample;
        }
        self.round_end = next + self.offered;
        self.round_since = now;
    }

    /// The owner has read `count` bytes, and `unread` wait for it: once a round trip the buffer is made as large as
    /// what was read in it asks for (`tcp_rcv_space_adjust`). `early` is as in [`Self::early_data`].
    pub fn owner_read(&mut self, count: u64, unread: u64, early: u64, now: Time) {
        self.read += count;
        let round = self.round_trip_times_8 / 8;
        if round == 0 || (now - self.measured_since).as_ps() < round {
            return;
        }
        let copied = (self.read - self.measured_from).saturating_sub(unread);
        if copied > self.read_per_round {
            let before = std::mem::replace(&mut self.read_per_round, copied);
            self.grow_buffer(before, early);
        }
        self.measured_from = self.read;
        self.measured_since = now;
    }

    /// Data came behind a gap: what is there by now ends `early` bytes after what is expected next. The buffer makes
    /// room for it beside what a round trip brings, or a sender in loss recovery would be held back by our window
    /// (`tcp_data_queue_ofo`, `tcp_rcvbuf_grow`).
    pub fn early_data(&mut self, early: u64) {
        self.grow_buffer(self.read_per_round, early);
    }

    /// Makes the buffer large enough for twice what the owner reads in a round trip, and for a sender that doubles its
    /// rate (`tcp_rcvbuf_grow`).
    fn grow_buffer(&mut self, before: u64, early: u64) {
        let window = u128::from(self.read_per_round) * 2;
        let round = self.round_trip_times_8 / 8;
        let growth = match round < LOW_ROUND_TRIP.as_ps() {
            true => window * u128::from(round) / u128::from(LOW_ROUND_TRIP.as_ps()),
            false => 2 * window * u128::from(self.read_per_round - before) / u128::from(before.max(1)),
        };
        let wanted = (window + growth + u128::from(early)) * 256 / u128::from(self.ratio);
        let buffer = u64::try_from(wanted).unwrap_or(u64::MAX).min(self.largest_buffer);
        if buffer > self.buffer {
            self.buffer = buffer;
            self.clamp = (65_535 << self.shift).min(self.space());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> ReceiveWindow {
        let mut window = ReceiveWindow::new(&TcpConfig::default(), 1460);
        window.established(1, true, Time::ZERO);
        window
    }

    #[test]
    fn it_begins_as_linux_does() {
        let window = window();
        assert_eq!((window.in_syn(), window.shift()), (64_240, 10));
    }

    #[test]
    fn it_shuts_when_little_is_free_and_never_shrinks() {
        let mut window = window();
        let (open, scarce) = window.candidate(0, 1460);
        assert_eq!((open, scarce), (64_512, false));
        assert_eq!(window.offer(open, 1), 63);
        assert_eq!(window.candidate(64_000, 1460), (0, true));
        assert_eq!(window.offer(0, 1), 63);
        assert_eq!(window.offer(0, 1 + 64_512), 0);
    }

    #[test]
    fn the_buffer_follows_what_is_read_in_a_round_trip_up_to_its_limit() {
        let mut window = window();
        window.round_trip(Duration::from_ms(100), false);
        let mut now = Time::ZERO;
        let mut sizes = Vec::new();
        for _ in 0..12 {
            now += Duration::from_ms(100);
            let read = window.clamp;
            window.owner_read(read, 0, 0, now);
            sizes.push(window.buffer);
        }
        assert!(sizes[0] > 2 * 131_072, "{sizes:?}");
        assert_eq!(sizes[11], 33_554_432);
    }

    #[test]
    fn the_buffer_makes_room_for_what_came_behind_a_gap() {
        let mut window = window();
        window.round_trip(Duration::from_ms(100), false);
        window.measure(1448);
        // Ten segments of 1460 bytes a round trip, twice, and a megabyte: with what storing it costs.
        window.early_data(1_000_000);
        assert_eq!(window.buffer, (29_200 + 1_000_000) * 256 / (1448 * 256 / (1448 + 758)));
        let before = window.buffer;
        window.early_data(1000);
        assert_eq!(window.buffer, before, "it never becomes smaller");
        window.early_data(1 << 40);
        assert_eq!(window.buffer, 33_554_432);
    }

    #[test]
    fn a_shorter_round_trip_counts_at_once_and_a_longer_one_by_an_eighth() {
        let mut window = window();
        let mut told = |sample, unread| {
            window.round_trip(Duration::from_ms(sample), unread);
            window.measured_round_trip()
        };
        assert_eq!(told(100, false), Duration::from_ms(100));
        assert_eq!(told(180, true), Duration::from_ms(100), "data waits for the owner");
        assert_eq!(told(180, false), Duration::from_ms(110));
        assert_eq!(told(40, true), Duration::from_ms(40));
    }
}
