//! The handling of an acknowledgement (Linux's `tcp_ack`).

use twinnet_packet::tcp::{Flags, SACK_BLOCKS};
use twinnet_units::{Duration, Time};

use super::congestion::Acknowledged;
use super::connection::Connection;
use super::delivery_rate::Candidate;
use super::recovery::Phase;
use super::segment::Segment;
use super::sent::Sent;
use super::sequence;

/// The contents of an acknowledgement, gathered while it is handled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ack {
    pub now: Time,
    /// The stream position that was acknowledged before it.
    pub acknowledged_before: u64,
    /// It acknowledges new data.
    pub advanced: bool,
    /// It tells a new window, or comes with data.
    pub not_duplicate: bool,
    /// It is a duplicate acknowledgement (RFC 5681, 2).
    pub duplicate: bool,
    /// It acknowledges new data selectively.
    pub selected: bool,
    /// It reports something that came twice.
    reports_duplicate: bool,
    /// That was the probe for a lost tail.
    pub probe_was_duplicate: bool,
    /// It echoes a mark.
    pub echoes_mark: bool,
    /// Data sent once, before the phase began, was delivered.
    pub original_delivered: bool,
    /// A retransmission was found lost.
    pub lost_retransmission: bool,
    /// A retransmitted segment is among what it acknowledges cumulatively.
    resent_acknowledged: bool,
    /// The timer is to be set anew.
    pub set_timer: bool,
    /// Segments that it acknowledges cumulatively, and those that it says to be delivered.
    acknowledged: u32,
    pub delivered: u32,
    /// The times when the first and the last of the segments were sent that were sent once: acknowledged cumulatively,
    /// and selectively.
    sent_at: Option<(Time, Time)>,
    selected_sent_at: Option<(Time, Time)>,
    /// The lowest number that was delivered after higher ones.
    reordered_from: Option<u64>,
    /// The round trip of the newest of them.
    round_trip: Option<Duration>,
    candidate: Option<Candidate>,
}

impl Ack {
    fn reordered(&mut self, start: u64) {
        self.reordered_from = Some(self.reordered_from.map_or(start, |low| low.min(start)));
    }
}

/// Widens a span of times by one more.
fn widen(span: &mut Option<(Time, Time)>, sent_at: Time) {
    *span = Some((span.map_or(sent_at, |span| span.0), sent_at));
}

impl Connection {
    /// Takes in the acknowledgement of `segment`. Whether the segment is to be taken in further.
    pub(super) fn acknowledge(&mut self, segment: &Segment<'_>, start: u64, now: Time) -> bool {
        let before = self.send.unacknowledged;
        let acknowledged = sequence::extend(segment.acknowledgement, before);
        // RFC 5961, 5.2: what is not acceptable is answered, and dropped.
        if acknowledged > self.send.next || acknowledged + self.send.largest_window < before {
            self.challenge(now);
            return false;
        }
        let mut ack = Ack { now, acknowledged_before: before, ..Ack::default() };
        ack.advanced = acknowledged > before;
        ack.set_timer = ack.advanced;
        ack.not_duplicate = segment.payload_length() > 0 || segment.flags.has(Flags::FIN);
        ack.echoes_mark = self.agreed.ecn && segment.flags.has(Flags::ECE);
        let outstanding = self.sent.outstanding();
        let in_flight = self.sent.in_flight();
        let lost = self.sent.lost_total();
        let highest = self.sent.highest_sacked().max(before);
        self.recovery.new_data_first = false;

        if acknowledged >= before {
            ack.not_duplicate |= self.take_window(segment, start, acknowledged);
            self.send.unacknowledged = acknowledged;
            self.outgoing.release(acknowledged);
            self.timers.window_probes = 0;
            if ack.advanced {
                self.timers.silent_since = None;
                self.recovery.timeouts = 0;
            }
        }
        if self.agreed.sack && segment.options.sack[0].is_some() {
            self.take_selections(segment, acknowledged, &mut ack);
        }
        if acknowledged < before {
            // An old one: only what it selects is news.
            if ack.selected || ack.reports_duplicate {
                self.alert(&mut ack, now);
                self.finish_acknowledgement(&ack, in_flight, lost, now);
            }
            return true;
        }
        if outstanding == 0 {
            if ack.reports_duplicate {
                self.alert(&mut ack, now);
            }
            self.after_window(now);
            return true;
        }
        self.take_off_acknowledged(&mut ack, highest);
        if let Some(candidate) = ack.candidate {
            self.rack.adapt(candidate.delivered_before(), self.rate.delivered());
        }
        self.answer_to_tail_probe(&ack, acknowledged, now);
        ack.not_duplicate |= ack.advanced;
        let alarming = ack.selected || ack.echoes_mark || ack.reports_duplicate;
        if !ack.not_duplicate || alarming || self.recovery.phase != Phase::Open {
            ack.duplicate = !ack.not_duplicate && !ack.reports_duplicate;
            self.alert(&mut ack, now);
        }
        if ack.set_timer {
            self.set_transmission_timer(now);
        }
        self.finish_acknowledgement(&ack, in_flight, lost, now);
        self.after_window(now);
        true
    }

    /// The peer's window, if this segment is the latest to tell it (RFC 9293, 3.10.7.4). Whether it changed.
    fn take_window(&mut self, segment: &Segment<'_>, start: u64, acknowledged: u64) -> bool {
        let window = u64::from(segment.window) << self.agreed.peer_shift;
        let (told_by, _) = self.send.window_told_by;
        let newer = acknowledged > self.send.unacknowledged || start > told_by;
        if !(newer || start == told_by && (window > self.send.window || window == 0)) {
            return false;
        }
        self.send.window_told_by = (start, acknowledged);
        let changed = self.send.window != window;
        self.send.window = window;
        self.send.largest_window = self.send.largest_window.max(window);
        changed
    }

    /// Takes in the SACK blocks (`tcp_sacktag_write_queue`).
    fn take_selections(&mut self, segment: &Segment<'_>, acknowledged: u64, ack: &mut Ack) {
        let near = self.send.unacknowledged;
        let told = segment.options.sack.map(|block| {
            let (from, to) = block?;
            Some((sequence::extend(from, near), sequence::extend(to, near)))
        });
        let mut blocks = told;
        if self.reports_duplicate(&told, acknowledged) {
            if let Some(duplicate) = told[0] {
                self.take_duplicate_report(duplicate, ack);
            }
            blocks[0] = None;
        }
        for place in &mut blocks {
            *place = place.filter(|(from, to)| from < to && *from >= acknowledged && *to <= self.send.next);
        }
        blocks.sort_unstable_by_key(|block| block.map_or(u64::MAX, |(from, _)| from));
        self.select(&blocks, ack);
        self.sent.know(blocks);
        if self.recovery.phase != Phase::Loss || self.recovery.undo_from.is_some() {
            if let Some(low) = ack.reordered_from.take() {
                let highest = self.sent.highest_sacked().max(self.send.unacknowledged);
                self.rack.reordered(low, highest, self.segment_bytes);
            }
        }
    }

    /// Returns `true` if the first block reports something that came twice: it is acknowledged, or lies in the second
    /// (RFC 2883, 4).
    fn reports_duplicate(&self, told: &[Option<(u64, u64)>; SACK_BLOCKS], acknowledged: u64) -> bool {
        let Some((from, to)) = told[0] else { return false };
        from < acknowledged || told[1].is_some_and(|(first, last)| first <= from && to <= last)
    }

    fn take_duplicate_report(&mut self, (from, to): (u64, u64), ack: &mut Ack) {
        if from >= to || to - from > self.send.largest_window.max(1) || to > self.send.next {
            return;
        }
        let segments = (to - from).div_ceil(u64::from(self.segment_bytes.max(1))) as u32;
        if self.recovery.probe_end == Some(to) && segments == 1 {
            ack.probe_was_duplicate = true;
        }
        self.recovery.duplicates_told += u64::from(segments);
        // The network duplicates too: only what we sent twice tells of us.
        if self.recovery.duplicates_told > self.retransmitted {
            return;
        }
        if !ack.probe_was_duplicate {
            self.rack.duplicate();
        }
        ack.reports_duplicate = true;
        let forgotten = to <= ack.acknowledged_before;
        if forgotten || self.sent.was_resent(from) || to <= self.send.unacknowledged {
            self.recovery.was_duplicate(to, segments);
        }
    }

    fn select(&mut self, blocks: &[Option<(u64, u64)>; SACK_BLOCKS], ack: &mut Ack) {
        let least = self.round_trip.least();
        let high = self.recovery.high;
        let (sent, rack, rate) = (&mut self.sent, &mut self.rack, &mut self.rate);
        for block in blocks.iter().flatten() {
            sent.select(*block, |segment, highest| {
                rack.delivered(segment, least, ack.now);
                rate.acknowledged(segment.stamp, segment.serial, segment.sent_at, &mut ack.candidate);
                rate.count(1);
                ack.delivered += 1;
                ack.selected = true;
                if !segment.was_retransmitted() {
                    widen(&mut ack.selected_sent_at, segment.sent_at);
                    ack.original_delivered |= segment.end() <= high;
                    if segment.start < highest {
                        ack.reordered(segment.start);
                    }
                }
            });
        }
    }

    /// Takes cumulatively acknowledged segments off the scoreboard (`tcp_clean_rtx_queue`).
    fn take_off_acknowledged(&mut self, ack: &mut Ack, highest: u64) {
        let acknowledged = self.send.unacknowledged;
        let least = self.round_trip.least();
        ack.reordered_from = None;
        while let Some(segment) = self.sent.pop_acknowledged(acknowledged) {
            ack.acknowledged += 1;
            self.took_off(&segment, ack, least);
        }
        if self.agreed.sack {
            if let Some(low) = ack.reordered_from {
                self.rack.reordered(low, highest, self.segment_bytes);
            }
        } else {
            ack.delivered += self.uncount_duplicates(ack.acknowledged);
        }
        self.measure_round_trip(ack);
    }

    fn took_off(&mut self, segment: &Sent, ack: &mut Ack, least: Option<Duration>) {
        if segment.was_retransmitted() {
            ack.resent_acknowledged = true;
        } else if !segment.is_sacked() {
            widen(&mut ack.sent_at, segment.sent_at);
            ack.reordered(segment.start);
            ack.original_delivered |= segment.end() <= self.recovery.high;
        }
        if segment.is_sacked() {
            return;
        }
        if self.agreed.sack {
            ack.delivered += 1;
            self.rate.count(1);
            if !self.is_answer_to_original(segment) {
                self.rack.delivered(segment, least, ack.now);
            }
        }
        self.rate.acknowledged(segment.stamp, segment.serial, segment.sent_at, &mut ack.candidate);
    }

    /// Returns `true` if the echo is older than the segment's retransmission: the original is what arrived.
    fn is_answer_to_original(&self, segment: &Sent) -> bool {
        let sent = self.timestamp(segment.sent_at);
        segment.was_retransmitted()
            && self.echoed_timestamp.is_some_and(|echoed| (echoed.wrapping_sub(sent) as i32) < 0)
    }

    /// Samples the round trip by what was sent once (Karn's algorithm, RFC 6298, 3), else by the echo of a timestamp.
    fn measure_round_trip(&mut self, ack: &mut Ack) {
        let now = ack.now;
        let clean = ack.sent_at.filter(|_| !ack.resent_acknowledged);
        let first = clean.or(ack.selected_sent_at);
        let last = ack.selected_sent_at.or(clean);
        let mut sample = first.map(|(first, _)| now - first);
        if sample.is_none() && ack.acknowledged > 0 {
            sample = self.echoed_timestamp.map(|echoed| {
                let elapsed = self.timestamp(now).wrapping_sub(echoed) as i32;
                Duration::from_ms(u64::try_from(elapsed).unwrap_or(0).max(1))
            });
        }
        let Some(sample) = sample else { return };
        ack.round_trip = last.map(|(_, last)| now - last);
        if let Some(newest) = ack.round_trip {
            self.round_trip.sample_least(newest, now);
        }
        self.round_trip.sample(sample, self.send.unacknowledged, self.send.next);
        ack.set_timer |= ack.advanced;
    }

    /// Tells the congestion control, and takes one step of a reduction.
    fn finish_acknowledgement(&mut self, ack: &Ack, in_flight_before: u32, lost_before: u64, now: Time) {
        self.sent.settle();
        let lost = u32::try_from(self.sent.lost_total() - lost_before).unwrap_or(u32::MAX);
        let delayed = ack.acknowledged == 1 && !ack.selected && ack.delivered == 1;
        let rate = self.rate.sample(ack.candidate, ack.delivered, delayed, self.round_trip.least(), now);
        let reducing = self.recovery.is_reducing();
        if reducing && !self.congestion.rules_recovery() {
            self.reduce(ack.delivered, lost, ack.advanced);
        }
        if ack.delivered > 0 {
            // Linux's `tcp_may_raise_cwnd`: with much reordering selective acknowledgements raise the window as well.
            let raises = ack.acknowledged > 0 || self.rack.reordering > super::rack::REORDERING;
            let told = Acknowledged {
                now,
                acknowledged: if raises { ack.delivered } else { 0 },
                delivered: ack.delivered,
                lost,
                in_flight_before,
                in_flight: self.sent.in_flight(),
                round_trip: ack.round_trip,
                least_round_trip: self.round_trip.least().unwrap_or(Duration::ZERO),
                smoothed_round_trip: self.round_trip.smoothed().unwrap_or(Duration::ZERO),
                in_recovery: reducing,
                repair: self.recovery.repair(),
                window_limited: self.is_window_limited(),
                rate,
                next_sequence: self.send.next,
                acknowledged_to: self.send.unacknowledged,
                segment_bytes: self.segment_bytes,
            };
            self.congestion.acknowledged(&told);
        }
        self.update_pace();
    }

    /// Room has come up in the send buffer, and perhaps the window has shut.
    fn after_window(&mut self, now: Time) {
        self.keep_probing_window(now);
        if self.room_wanted {
            self.expand_send_buffer();
            let held = self.outgoing.held();
            // As Linux: wake the owner when a third of the buffer is free, not for each segment.
            if held <= self.send_buffer / 3 * 2 {
                self.room_wanted = false;
                self.signals.writable = true;
            }
        }
    }

    /// Makes the send buffer as large as two congestion windows, with BBR three, ask for (`tcp_sndbuf_expand`).
    pub(super) fn expand_send_buffer(&mut self) {
        let window = self.congestion_window();
        if self.sent.in_flight() >= window && self.state.is_synchronised() && self.sent.outstanding() > 0 {
            return;
        }
        // What Linux accounts for a segment: its headers and its keeping, rounded up to a power of two.
        let stored = u64::from(self.segment_bytes + HEADERS_IN_MEMORY).next_power_of_two() + DESCRIPTOR_IN_MEMORY;
        let segments = u64::from(window.max(10).max(self.rack.reordering + 1));
        let wanted = self.congestion.buffered_windows() * segments * stored;
        self.send_buffer = self.send_buffer.max(wanted.min(self.config.send_buffer[2]));
    }
}

/// Bytes that Linux keeps in front of and behind a segment (`MAX_TCP_HEADER`, `skb_shared_info`), and its `sk_buff`.
const HEADERS_IN_MEMORY: u32 = 640;
const DESCRIPTOR_IN_MEMORY: u64 = 256;
