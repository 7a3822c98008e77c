//! The rate at which the network delivers (draft-cheng-iccrg-delivery-rate-estimation), kept as Linux's `tcp_rate.c`
//! does.

use twinnet_units::{Duration, Time};

use super::congestion::RateSample;

/// The state that a segment remembers of the moment it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    /// The time when the first segment of the flight that it belongs to was sent.
    first_sent_at: Time,
    /// The time when the latest delivery before it was told.
    delivered_at: Time,
    /// Segments delivered by then.
    delivered: u64,
    /// `true` if the app had too little to send.
    app_limited: bool,
}

/// The sample that an acknowledgement is about to give: that of the newest segment it told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    serial: u64,
    stamp: Stamp,
    send_interval: Duration,
}

impl Candidate {
    /// Returns what had been delivered when its segment was sent.
    pub fn delivered_before(&self) -> u64 {
        self.stamp.delivered
    }
}

/// The counters of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryRate {
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// The app has too little to send until so many segments are delivered; 0: it has enough.
    app_limited_until: u64,
}

impl DeliveryRate {
    /// Segments delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// `count` segments were delivered.
    pub fn count(&mut self, count: u32) {
        self.delivered += u64::from(count);
    }

    /// A segment is being sent; `idle` when nothing is in flight.
    pub fn sending(&mut self, idle: bool, now: Time) -> Stamp {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Stamp {
            first_sent_at: self.first_sent_at,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            app_limited: self.app_limited_until > 0,
        }
    }

    /// A segment was acknowledged, cumulatively or selectively, for the first time.
    pub fn acknowledged(&mut self, stamp: Stamp, serial: u64, sent_at: Time, candidate: &mut Option<Candidate>) {
        if candidate.is_none_or(|candidate| serial > candidate.serial) {
            *candidate = Some(Candidate { serial, stamp, send_interval: sent_at - stamp.first_sent_at });
            self.first_sent_at = sent_at;
        }
    }

    /// The app has nothing more to send and the window is open: samples of what is in flight may tell too little.
    pub fn app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Returns `true` if the app had too little to send.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    /// Completes the sample of an acknowledgement that delivered `delivered` segments. `None` where the interval is
    /// too short to be true.
    pub fn sample(
        &mut self,
        candidate: Option<Candidate>,
        delivered: u32,
        delayed: bool,
        least_round_trip: Option<Duration>,
        now: Time,
    ) -> Option<RateSample> {
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if delivered > 0 {
            self.delivered_at = now;
        }
        let candidate = candidate?;
        let interval = candidate.send_interval.max(now - candidate.stamp.delivered_at);
        if interval < least_round_trip.unwrap_or(Duration::MAX) || interval == Duration::ZERO {
            return None;
        }
        Some(RateSample {
            delivered: u32::try_from(self.delivered - candidate.stamp.delivered).unwrap_or(u32::MAX),
            interval,
            delivered_before: candidate.stamp.delivered,
            delivered_total: self.delivered,
            app_limited: candidate.stamp.app_limited,
            delayed,
        })
    }
}
