//! The three-way handshake and what is agreed in it: MSS, window scaling, SACK, timestamps, ECN.

use std::net::SocketAddr;

use twinnet_packet::tcp::{Flags, Options, HEADER_LENGTH};
use twinnet_units::Time;

use super::config::{Ecn, Failure};
use super::connection::{Connection, State};
use super::receive_buffer::ReceiveBuffer;
use super::segment::Segment;
use super::sequence;

/// The number of times a SYN is sent again (`tcp_syn_retries`), and a SYN with an ACK (`tcp_synack_retries`).
const SYN_RETRIES: u32 = 6;
const SYN_ACK_RETRIES: u32 = 5;
/// Least segment that is sent, options included (`TCP_MIN_SND_MSS`): a peer must not make us send crumbs.
const LEAST_SEGMENT: u32 = 48;
/// Bytes of the timestamps option with its padding.
pub(super) const TIMESTAMPS_LENGTH: u32 = 12;

/// The options that both sides have agreed to use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreed {
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    pub scaling: bool,
    /// The shift of the windows that the peer tells.
    pub peer_shift: u8,
}

/// The handshake while it lasts, and what it told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    /// The largest segment that we take: what our SYN says.
    pub our_segment: u16,
    /// The largest that the peer takes, options included.
    pub peer_segment: u32,
    /// Our SYN is to be sent.
    pub syn_wanted: bool,
    /// The number of times it was sent.
    pub syns: u32,
    /// The number of times no answer came in time.
    unanswered: u32,
    sent_at: Time,
    /// The peer's SYN is known: ours acknowledges it.
    pub peer_known: bool,
}

impl Handshake {
    /// Before anything is sent.
    pub fn new(local: SocketAddr, mtu: u32) -> Self {
        let our_segment = mtu.saturating_sub(header_bytes(local)).clamp(LEAST_SEGMENT, 65_535) as u16;
        // RFC 9293, 3.7.1: what is assumed of a peer that does not say.
        let peer_segment = if local.is_ipv4() { 536 } else { 1220 };
        Self {
            our_segment,
            peer_segment,
            syn_wanted: false,
            syns: 0,
            unanswered: 0,
            sent_at: Time::ZERO,
            peer_known: false,
        }
    }
}

/// Bytes of the network's and our header without options.
pub(super) fn header_bytes(local: SocketAddr) -> u32 {
    let network = if local.is_ipv4() { 20 } else { 40 };
    network + HEADER_LENGTH as u32
}

impl Connection {
    /// Sends the SYN for the first time.
    pub(super) fn begin_handshake(&mut self, state: State, now: Time) {
        self.state = state;
        self.handshake.syn_wanted = true;
        self.timers.handshake = Some(now + self.round_trip.timeout());
    }

    /// Header fields of our SYN.
    pub(super) fn syn(&self, now: Time) -> (Flags, u16, Options) {
        let mut flags = Flags::SYN;
        let answer = self.handshake.peer_known;
        if answer {
            flags = flags.with(Flags::ACK);
        }
        // RFC 3168, 6.1.1: ECN is asked for by both marks and granted by one; not again once a SYN was lost, for
        // what is in the way may throw such segments away.
        if answer && self.agreed.ecn {
            flags = flags.with(Flags::ECE);
        } else if !answer && self.config.ecn == Ecn::Ask && self.handshake.syns == 0 {
            flags = flags.with(Flags::ECE).with(Flags::CWR);
        }
        let offer = |wanted: bool, agreed: bool| if answer { agreed } else { wanted };
        let timestamps = offer(self.config.timestamps, self.agreed.timestamps);
        let options = Options {
            maximum_segment: Some(self.handshake.our_segment),
            window_scale: offer(self.config.window_scaling, self.agreed.scaling).then(|| self.window.shift()),
            sack_permitted: offer(self.config.sack, self.agreed.sack),
            timestamps: timestamps.then(|| (self.timestamp(now), if answer { self.recent_timestamp } else { 0 })),
            ..Options::default()
        };
        (flags, self.window.in_syn(), options)
    }

    /// Our SYN has left.
    pub(super) fn syn_sent(&mut self, now: Time) {
        self.handshake.syn_wanted = false;
        self.handshake.syns += 1;
        if self.handshake.syns == 1 {
            self.handshake.sent_at = now;
            self.timers.handshake = Some(now + self.round_trip.timeout());
        }
        self.send.next = self.send.next.max(self.send.initial + 1);
    }

    /// The SYN was not answered in time.
    pub(super) fn handshake_timer(&mut self, now: Time) {
        let retries = if self.handshake.peer_known { SYN_ACK_RETRIES } else { SYN_RETRIES };
        self.handshake.unanswered += 1;
        if self.handshake.unanswered > retries {
            self.fail(Failure::TimedOut);
            return;
        }
        self.round_trip.back_off();
        self.handshake.syn_wanted = true;
        self.timers.handshake = Some(now + self.round_trip.timeout());
    }

    /// Takes what the peer's SYN says.
    pub(super) fn take_syn(&mut self, syn: &Segment<'_>, now: Time) {
        let next = sequence::begin(syn.sequence) + 1;
        self.incoming = ReceiveBuffer::new(next);
        self.send.window_told_by = (next - 1, self.send.unacknowledged);
        self.handshake.peer_known = true;
        let answer = syn.flags.has(Flags::ACK);
        let options = &syn.options;
        if let Some(segment) = options.maximum_segment {
            self.handshake.peer_segment = u32::from(segment).max(LEAST_SEGMENT);
        }
        self.agreed.sack = self.config.sack && options.sack_permitted;
        self.agreed.timestamps = self.config.timestamps && options.timestamps.is_some();
        self.agreed.scaling = self.config.window_scaling && options.window_scale.is_some();
        self.agreed.peer_shift = options.window_scale.filter(|_| self.agreed.scaling).unwrap_or(0);
        // RFC 3168, 6.1.1: an answer with both marks is a reflection by something that does not know them.
        let (echo, reduced) = (syn.flags.has(Flags::ECE), syn.flags.has(Flags::CWR));
        let willing = self.config.ecn == Ecn::Ask || self.config.ecn == Ecn::WhenAsked && !answer;
        self.agreed.ecn = willing && echo && (answer != reduced);
        if let Some((value, _)) = options.timestamps {
            self.recent_timestamp = value;
            self.recent_timestamp_at = now;
        }
        // A window in a SYN is never scaled (RFC 7323, 2.2).
        self.send.window = u64::from(syn.window);
        self.send.largest_window = self.send.window;
        self.window.established(next, self.agreed.scaling, now);
        self.fit_segments();
    }

    /// Sets the payload of a full segment by what the path and the peer take.
    pub(super) fn fit_segments(&mut self) {
        let by_path = self.mtu.saturating_sub(header_bytes(self.local));
        let options = if self.agreed.timestamps { TIMESTAMPS_LENGTH } else { 0 };
        self.segment_bytes = by_path.min(self.handshake.peer_segment).max(LEAST_SEGMENT) - options;
        self.update_pace();
    }

    /// A segment in SYN-SENT (RFC 9293, 3.10.7.3).
    pub(super) fn receive_in_syn_sent(&mut self, segment: &Segment<'_>, now: Time) {
        let flags = segment.flags;
        let acknowledges = flags.has(Flags::ACK);
        if acknowledges
            && (self.handshake.syns == 0 || segment.acknowledgement != (self.send.initial as u32).wrapping_add(1))
        {
            if !flags.has(Flags::RST) {
                self.reset = Some((segment.acknowledgement, None));
            }
            return;
        }
        if flags.has(Flags::RST) {
            if acknowledges {
                self.fail(Failure::Refused);
            }
            return;
        }
        if !flags.has(Flags::SYN) {
            return;
        }
        self.take_syn(segment, now);
        if acknowledges {
            self.complete_handshake(segment, now);
            self.acks.at_once();
        } else {
            // Both have opened at once (RFC 9293, 3.5): our SYN goes out again, with the acknowledgement of theirs.
            self.handshake.syns = 0;
            self.handshake.unanswered = 0;
            self.begin_handshake(State::SynReceived, now);
        }
    }

    /// A segment in SYN-RECEIVED (RFC 9293, 3.10.7.4). Whether what it carries is to be taken in.
    pub(super) fn receive_in_syn_received(&mut self, segment: &Segment<'_>, now: Time) -> bool {
        let next = self.incoming.next();
        let sequence = sequence::extend(segment.sequence, next);
        let in_window = sequence >= next && sequence < next + self.window.remaining(next).max(1);
        if segment.flags.has(Flags::RST) {
            if in_window {
                self.fail(Failure::Refused);
            }
            return false;
        }
        let again = segment.flags.has(Flags::SYN) && sequence + 1 == next;
        if again && !segment.flags.has(Flags::ACK) {
            // Our answer was lost.
            self.handshake.syn_wanted = true;
            return false;
        }
        if !in_window && !again {
            self.acks.at_once();
            return false;
        }
        if segment.flags.has(Flags::SYN) && !again {
            self.acks.at_once();
            return false;
        }
        if !segment.flags.has(Flags::ACK) || self.handshake.syns == 0 {
            return false;
        }
        if segment.acknowledgement != (self.send.initial as u32).wrapping_add(1) {
            self.reset = Some((segment.acknowledgement, None));
            return false;
        }
        self.complete_handshake(segment, now);
        !again
    }

    /// The peer has acknowledged our SYN.
    fn complete_handshake(&mut self, segment: &Segment<'_>, now: Time) {
        self.state = State::Established;
        self.signals.connected = true;
        self.timers.handshake = None;
        self.handshake.syn_wanted = false;
        self.send.unacknowledged = self.send.initial + 1;
        self.send.next = self.send.unacknowledged;
        self.window_from_handshake(segment);
        if self.handshake.syns == 1 {
            let measured = now - self.handshake.sent_at;
            self.round_trip.sample(measured, self.send.unacknowledged, self.send.next);
            self.round_trip.sample_least(measured, now);
        } else {
            self.round_trip.fall_back();
        }
        self.congestion.established(self.round_trip.smoothed(), self.segment_bytes, now);
        self.expand_send_buffer();
        self.signals.writable |= std::mem::take(&mut self.room_wanted);
        self.update_pace();
        self.timers.idle_since = now;
    }

    /// The window of the segment that completes the handshake: scaled unless it is a SYN.
    fn window_from_handshake(&mut self, segment: &Segment<'_>) {
        let shift = if segment.flags.has(Flags::SYN) { 0 } else { self.agreed.peer_shift };
        self.send.window = u64::from(segment.window) << shift;
        self.send.largest_window = self.send.largest_window.max(self.send.window);
        self.send.window_told_by = (self.incoming.next(), self.send.unacknowledged);
    }

    /// Returns the value of our timestamps: milliseconds, begun anywhere (RFC 7323, 5.4).
    pub(super) fn timestamp(&self, now: Time) -> u32 {
        ((now.as_ps() / 1_000_000_000) as u32).wrapping_add(self.send.initial as u32)
    }
}
