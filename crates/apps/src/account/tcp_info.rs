//! The state that a host tells of a connection's TCP, and its course over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::{Duration, Time};

/// Samples that are kept; [`TcpInfoSeries::overflowed`] tells when there were more.
const MOST_SAMPLES: usize = 1 << 20;

/// The state of one connection, as Linux's `TCP_INFO` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Congestion window in segments.
    pub congestion_window: u32,
    /// Slow-start threshold in segments; `None` before there is one.
    pub slow_start_threshold: Option<u32>,
    /// Smoothed round trip; zero before the first sample.
    pub smoothed_round_trip: Duration,
    /// Segments retransmitted since the connection began.
    pub retransmitted: u64,
}

/// Samples of a connection's state at multiples of an interval of the lab's clock.
#[derive(Clone, Debug)]
pub(crate) struct TcpInfoSeries {
    interval: Duration,
    next: Option<Time>,
    untold: bool,
    overflowed: bool,
    report: TcpInfoReport,
}

/// The contents of a series: arrays of the same length, one entry for each sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpInfoReport {
    /// The interval that was asked for.
    pub interval_ps: u64,
    /// The time when each sample was taken.
    pub at_ps: Vec<u64>,
    /// Congestion windows in segments.
    pub cwnd_segments: Vec<u32>,
    /// Slow-start thresholds in segments; null before there is one.
    pub ssthresh_segments: Vec<Option<u32>>,
    /// Smoothed round trips.
    pub srtt_ps: Vec<u64>,
    /// Segments retransmitted since the connection began.
    pub retransmits: Vec<u64>,
}

impl TcpInfoSeries {
    /// A series without samples.
    pub fn new(interval: Duration) -> Self {
        let interval = interval.max(Duration::from_ps(1));
        let report = TcpInfoReport { interval_ps: interval.as_ps(), ..TcpInfoReport::default() };
        Self { interval, next: None, untold: false, overflowed: false, report }
    }

    /// Returns the time when the next sample is wanted; `None` before the first and after [`TcpInfoSeries::end`].
    pub fn due(&self) -> Option<Time> {
        self.next
    }

    /// Takes a sample at `now` - `None` when the host tells nothing - and plans the next.
    pub fn sample(&mut self, now: Time, info: Option<TcpInfo>) {
        let Some(info) = info else {
            self.untold = true;
            self.next = None;
            return;
        };
        if self.report.at_ps.len() >= MOST_SAMPLES {
            self.overflowed = true;
            self.next = None;
            return;
        }
        self.report.at_ps.push(now.as_ps());
        self.report.cwnd_segments.push(info.congestion_window);
        self.report.ssthresh_segments.push(info.slow_start_threshold);
        self.report.srtt_ps.push(info.smoothed_round_trip.as_ps());
        self.report.retransmits.push(info.retransmitted);
        // A late sample puts none off: the next comes at its own multiple.
        let into = now.as_ps() % self.interval.as_ps();
        self.next = Some(now + self.interval.saturating_sub(Duration::from_ps(into)));
    }

    /// No more samples.
    pub fn end(&mut self) {
        self.next = None;
    }

    /// The samples so far.
    pub fn report(&self) -> TcpInfoReport {
        self.report.clone()
    }

    /// Returns what hindered the sampling.
    pub fn error(&self) -> Option<&'static str> {
        if self.untold {
            return Some("this host does not tell the state of its TCP: start the source without info_interval_ps");
        }
        self.overflowed.then_some("the flow lasted longer than samples can be kept: use a longer info_interval_ps")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: TcpInfo = TcpInfo {
        congestion_window: 10,
        slow_start_threshold: None,
        smoothed_round_trip: Duration::from_ms(3),
        retransmitted: 0,
    };

    #[test]
    fn samples_keep_to_multiples_of_the_interval_however_late_one_is() {
        let mut series = TcpInfoSeries::new(Duration::from_ms(10));
        let mut taken = Vec::new();
        for late_ms in [3, 0, 14, 0] {
            let now = series.due().unwrap_or(Time::ZERO) + Duration::from_ms(late_ms);
            taken.push(now.as_ps() / 1_000_000_000);
            series.sample(now, Some(INFO));
        }
        assert_eq!(taken, [3, 10, 34, 40]);
        assert_eq!(series.due(), Some(Time::ZERO + Duration::from_ms(50)));
        assert_eq!(series.report().cwnd_segments, [10; 4]);
    }

    #[test]
    fn a_host_that_tells_nothing_is_asked_once() {
        let mut series = TcpInfoSeries::new(Duration::from_ms(10));
        series.sample(Time::ZERO, None);
        assert_eq!(series.due(), None);
        assert!(series.error().unwrap().contains("without info_interval_ps"));
        assert!(series.report().at_ps.is_empty());
    }
}
