//! The accuracy of a source's schedule: what was asked for against what was done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::Time;

use crate::{Summary, SummaryReport};

/// Achieved rates below this share of the requested one are told as not kept up.
const LEAST_SHARE: f64 = 0.999;

/// Follows the datagrams of one source.
#[derive(Clone, Debug, Default)]
pub struct Pacing {
    first: Option<Moment>,
    last: Option<Moment>,
    /// The moment at which the last one that was due was offered to the host.
    errors: Summary,
    lateness: Summary,
    due: u64,
    due_bytes: u64,
    sent: u64,
    sent_bytes: u64,
    last_bytes: u64,
    last_sent_bytes: u64,
    gave_up: bool,
    first_sent: Option<Time>,
    last_sent: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Moment {
    due: Time,
    done: Time,
}

/// The row's part about the schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PacingReport {
    /// Distance between requested and achieved gap, for each datagram after the first, without sign.
    pub gap_error_ps: Option<SummaryReport>,
    /// The time after its due moment at which each datagram was handed to the host.
    pub lateness_ps: Option<SummaryReport>,
    /// Datagrams a second by the schedule, from the first that was due to the last; null below two.
    pub requested_packets_per_second: Option<f64>,
    /// Datagrams a second that the host took, from first to last; null below two.
    pub achieved_packets_per_second: Option<f64>,
    /// Bits of payload a second by the schedule.
    pub requested_rate_bps: Option<f64>,
    /// Bits of payload a second that the host took.
    pub achieved_rate_bps: Option<f64>,
    /// `true` if all that was due was taken, at no less than 99.9 % of the requested rate.
    pub kept_up: bool,
}

impl Pacing {
    /// A datagram that was due at `due` was handed over at `now`; whether the host took it.
    pub fn add(&mut self, due: Time, now: Time, bytes: u32, taken: bool) {
        if let Some(before) = self.last {
            self.errors.add(now.since(before.done).as_ps().abs_diff(due.since(before.due).as_ps()));
        }
        self.lateness.add(now.since(due).as_ps());
        let moment = Moment { due, done: now };
        self.first.get_or_insert(moment);
        self.last = Some(moment);
        self.due += 1;
        self.due_bytes += u64::from(bytes);
        self.last_bytes = u64::from(bytes);
        if taken {
            self.sent += 1;
            self.sent_bytes += u64::from(bytes);
            self.last_sent_bytes = u64::from(bytes);
            self.first_sent.get_or_insert(now);
            self.last_sent = Some(now);
        }
    }

    /// The time was over before all was sent.
    pub fn give_up(&mut self) {
        self.gave_up = true;
    }

    /// The report; `None` before the first datagram.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn report(&self) -> Option<PacingReport> {
        let (first, last) = (self.first?, self.last?);
        let per_second = |amount: u64, span: Option<f64>| span.map(|span| amount as f64 / span);
        let positive = |seconds: f64| (seconds > 0.0).then_some(seconds);
        let asked = positive(last.due.since(first.due).as_secs_f64());
        let done = self.first_sent.zip(self.last_sent).and_then(|(from, to)| positive(to.since(from).as_secs_f64()));
        // The last datagram begins a gap that is not counted.
        let requested = per_second(self.due - 1, asked);
        let achieved = per_second(self.sent.saturating_sub(1), done);
        let slow = requested.zip(achieved).is_some_and(|(asked, done)| done < asked * LEAST_SHARE);
        Some(PacingReport {
            gap_error_ps: self.errors.report(),
            lateness_ps: self.lateness.report(),
            requested_packets_per_second: requested,
            achieved_packets_per_second: achieved,
            requested_rate_bps: per_second((self.due_bytes - self.last_bytes) * 8, asked),
            achieved_rate_bps: per_second((self.sent_bytes - self.last_sent_bytes) * 8, done),
            kept_up: !self.gave_up && self.sent == self.due && !slow,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lateness_us: &[u64], refused: Option<usize>) -> PacingReport {
        let mut pacing = Pacing::default();
        for (number, late) in lateness_us.iter().enumerate() {
            let due = Time::from_ns(1_000_000 * number as u64);
            pacing.add(due, due + twinnet_units::Duration::from_us(*late), 100, refused != Some(number));
        }
        pacing.report().unwrap()
    }

    #[test]
    fn a_source_in_time_has_no_gap_errors_and_its_rate() {
        let report = run(&[0; 11], None);
        let errors = report.gap_error_ps.unwrap();
        assert_eq!((errors.count, errors.max, report.kept_up), (10, 0, true));
        assert_eq!(report.requested_packets_per_second, Some(1000.0));
        assert_eq!((report.achieved_packets_per_second, report.achieved_rate_bps), (Some(1000.0), Some(800_000.0)));
    }

    #[test]
    fn one_late_datagram_makes_two_wrong_gaps() {
        let report = run(&[0, 0, 30, 0, 0], None);
        let errors = report.gap_error_ps.unwrap();
        assert_eq!((errors.max, errors.count, errors.mean), (30_000_000, 4, 15_000_000.0));
        assert!(report.kept_up);
    }

    #[test]
    fn refused_datagrams_and_lagging_are_not_keeping_up() {
        assert!(!run(&[0; 11], Some(5)).kept_up);
        assert!(!run(&[0, 100, 200, 300, 400, 500], None).kept_up);
        assert_eq!(Pacing::default().report(), None);
    }
}
