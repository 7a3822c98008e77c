//! Congestion control: how many segments may be in flight, and how fast they may leave.
//!
//! One file for each algorithm. The connection finds losses, runs the recovery and measures the delivery rate; the
//! algorithm is told and answers with a window. Windows are counted in segments.

mod bbr;
mod cubic;
mod filter;
mod hystart;
mod new_reno;
mod own;
mod window;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use twinnet_units::{Duration, Rate, Time};

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use filter::Windowed;
pub use new_reno::NewReno;
pub use own::{register, Start, LONGEST_NAME};

/// An algorithm, by the name that Linux gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// RFC 9438.
    #[default]
    Cubic,
    /// RFC 5681 and RFC 6582.
    Reno,
    /// BBR version 1.
    Bbr,
    /// One that was [`register`]ed, by its place.
    #[serde(skip)]
    Own(u32),
}

impl Algorithm {
    /// The algorithm of that name: `cubic`, `reno`, `bbr`, or one that was [`register`]ed.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::built_in(name).or_else(|| own::place(name).map(Self::Own))
    }

    fn built_in(name: &str) -> Option<Self> {
        match name {
            "cubic" => Some(Self::Cubic),
            "reno" => Some(Self::Reno),
            "bbr" => Some(Self::Bbr),
            _ => None,
        }
    }

    /// Its state at the beginning of a connection with `initial_window` segments. `random` seeds what is drawn
    /// (BBR's phase).
    #[must_use]
    pub fn start(self, initial_window: u32, random: u64) -> Box<dyn CongestionControl> {
        match self {
            Self::Cubic => Box::new(Cubic::new(initial_window)),
            Self::Reno => Box::new(NewReno::new(initial_window)),
            Self::Bbr => Box::new(Bbr::new(initial_window, random)),
            // What was registered stays so.
            Self::Own(place) => {
                own::start(place, initial_window, random).unwrap_or_else(|| Box::new(Cubic::new(initial_window)))
            }
        }
    }
}

/// The contents of an acknowledgement, after the connection has brought its own state up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Acknowledged {
    /// The time when it arrived.
    pub now: Time,
    /// Segments that it newly acknowledged cumulatively.
    pub acknowledged: u32,
    /// Segments that it newly acknowledged, cumulatively or selectively.
    pub delivered: u32,
    /// Segments that were newly found lost while it was handled.
    pub lost: u32,
    /// Segments in flight before it.
    pub in_flight_before: u32,
    /// Segments in flight after it.
    pub in_flight: u32,
    /// Round trip of the newest segment that it acknowledged and that was sent once; `None` when it tells none.
    pub round_trip: Option<Duration>,
    /// Least round trip of the connection so far, over Linux's window of 300 s; zero before the first sample.
    pub least_round_trip: Duration,
    /// Smoothed round trip; zero before the first sample.
    pub smoothed_round_trip: Duration,
    /// `true` if the window is being reduced in proportion, in fast recovery or for a mark (Linux's
    /// `tcp_in_cwnd_reduction`): windows do not grow. Not after a timeout, when they grow by slow start.
    pub in_recovery: bool,
    /// The connection's kind of repair.
    pub repair: Repair,
    /// `true` if the window, and not the app or the peer, limited the sender since the last window's worth (Linux's
    /// `tcp_is_cwnd_limited`): windows grow only then.
    pub window_limited: bool,
    /// The delivery rate, where one could be measured.
    pub rate: Option<RateSample>,
    /// Sequence number sent next, extended to 64 bits: ends a round when it is acknowledged.
    pub next_sequence: u64,
    /// Cumulative acknowledgement, extended to 64 bits.
    pub acknowledged_to: u64,
    /// Payload of a full segment, in bytes.
    pub segment_bytes: u32,
}

/// The kind of repair of a connection (the states of Linux's `icsk_ca_state` that matter to an algorithm). The order is
/// deliberate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// Nothing: segments may be out of order, or marked, but none is known to be lost.
    #[default]
    Nothing,
    /// Losses that acknowledgements told of: fast recovery.
    Losses,
    /// The retransmission timer ran out, and what was in flight is not acknowledged yet.
    Timeout,
}

/// A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Segments delivered over `interval`.
    pub delivered: u32,
    /// The longer of the send and the acknowledgement interval.
    pub interval: Duration,
    /// The data that the connection had delivered, in segments, when the newest acknowledged segment was sent.
    pub delivered_before: u64,
    /// The data that it has delivered now; `delivered` of this acknowledgement are in it.
    pub delivered_total: u64,
    /// `true` if the app had nothing to send when that segment was sent.
    pub app_limited: bool,
    /// `true` if the peer may have delayed this acknowledgement (a single segment acknowledged, as delayed ACKs do).
    pub delayed: bool,
}

/// Why the window must be reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Losses were found by acknowledgements: fast recovery begins.
    Loss,
    /// The peer echoed a mark (RFC 3168).
    Marked,
    /// The retransmission timer ran out.
    Timeout,
}

/// An algorithm in the midst of a connection.
pub trait CongestionControl: Send + std::fmt::Debug {
    /// Returns its algorithm.
    fn algorithm(&self) -> Algorithm;

    /// The congestion window in segments, at least 1. During fast recovery the connection uses it only when
    /// [`CongestionControl::rules_recovery`]; after a timeout it always does, for the window then grows by slow start.
    fn window(&self) -> u32;

    /// The slow-start threshold in segments; `u32::MAX` when there is none.
    fn slow_start_threshold(&self) -> u32;

    /// The handshake is complete. `round_trip` is what it measured, `segment_bytes` the payload of a full segment.
    /// Linux starts its algorithms at this moment.
    fn established(&mut self, _round_trip: Option<Duration>, _segment_bytes: u32, _now: Time) {}

    /// A segment leaves and none was in flight before it, however short the pause (Linux's `CA_EVENT_TX_START`).
    /// `idle` is the time since the last one left, `app_limited` whether the app had nothing to send.
    /// [`CongestionControl::restarted`], when it is due, comes first.
    fn transmission_started(&mut self, _idle: Duration, _app_limited: bool, _now: Time) {}

    /// An acknowledgement that delivered something has been handled. Called in recovery too: loss-based algorithms
    /// keep still in fast recovery and slow-start in recovery after a timeout.
    fn acknowledged(&mut self, told: &Acknowledged);

    /// An episode of congestion begins: computes and remembers the new threshold. `in_flight` are segments in
    /// flight at that moment, for a timeout before they are taken for lost. For [`Congestion::Timeout`] the window
    /// becomes 1; for the others the connection reduces the window in proportion (RFC 6937) down to the threshold,
    /// and says so by [`CongestionControl::recovered`].
    fn congested(&mut self, congestion: Congestion, in_flight: u32, now: Time);

    /// The retransmission timer ran out while a loss was being repaired: the window becomes 1 and the threshold,
    /// which that loss has lowered already, stays (Linux's `tcp_enter_loss`). `in_flight` as for
    /// [`CongestionControl::congested`].
    fn timed_out_again(&mut self, _in_flight: u32, now: Time) {
        self.recovered(1, now);
    }

    /// Fast recovery or the reduction for a mark is over: the window is `window` segments from now on. Not called
    /// at the end of recovery after a timeout.
    fn recovered(&mut self, window: u32, now: Time);

    /// The last reduction was for nothing (RFC 4015, F-RTO, DSACK): goes back to what was before it.
    fn undo(&mut self, now: Time);

    /// Nothing was in flight for at least a retransmission timeout, and sending begins again (RFC 9293, Linux's
    /// `tcp_slow_start_after_idle`).
    fn restarted(&mut self, idle: Duration, timeout: Duration, now: Time);

    /// Returns the rate at which segments may leave; `None`: as fast as the window allows. `segment_bytes` is a segment
    /// on the network layer.
    fn pacing_rate(&self, _segment_bytes: u32) -> Option<Rate> {
        None
    }

    /// Returns `true` if the algorithm rules the window in recovery too (BBR).
    fn rules_recovery(&self) -> bool {
        false
    }

    /// Congestion windows that the send buffer makes room for (`tcp_sndbuf_expand`).
    fn buffered_windows(&self) -> u64 {
        2
    }
}
