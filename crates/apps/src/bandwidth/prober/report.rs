//! What a prober tells of its estimate, and of how it came about.

use super::super::estimator::Finding;
use super::super::{ceiling, slots};
use super::BandwidthProber;
use crate::account::bandwidth_report::BandwidthReport;

/// The share of the rates asked for that must have been sent for an estimate to be told.
const LEAST_SHARE: f64 = 0.9;

impl BandwidthProber {
    pub(super) fn bandwidth_report(&self) -> BandwidthReport {
        let mut finding = match &self.estimator {
            Some(_) if self.slots_hinder() => slots::finding(&self.config.method),
            Some(estimator) => estimator.finding(),
            None => Finding::default(),
        };
        finding.gave_up = self.why_ended.clone().or(finding.gave_up);
        finding = ceiling::judged(finding, &self.config.method, &self.ceiling, self.most_rate_bps as f64);
        if self.counts.overflowed > 0 {
            finding.notes.push(format!("the listener's host threw {} datagrams away", self.counts.overflowed));
        }
        if self.most_rate_bps < self.config.most_rate_bps {
            finding.notes.push(format!(
                "the listener lets probers send at {:.1} Mbit/s at most",
                self.most_rate_bps as f64 / 1e6
            ));
        }
        let (sum, count, least) = self.shares;
        let share = sum / count.max(1) as f64;
        if count > 0 && share < LEAST_SHARE && !self.slots_hinder() && !self.config.method.survives_interruptions() {
            // A method that takes its schedule for granted would be wrong without knowing.
            finding = Finding {
                gave_up: Some(format!(
                    "trains were sent at {:.0} % of the rates that were asked for, with {} gaps in which the sender \
                     lost its processor: this machine is too busy for this method (run it as root, or choose hybrid)",
                    100.0 * share,
                    self.counts.interruptions
                )),
                notes: finding.notes,
                ..Finding::default()
            };
        }
        BandwidthReport {
            method: self.config.method.name().to_owned(),
            layer: self.config.layer,
            finding,
            window_start_ps: self.window.map(|(start, _)| start.as_ps()),
            window_end_ps: self.window.map(|(_, end)| end.as_ps()),
            probe_packets: self.counts.packets,
            probe_bytes: self.counts.bytes as u64,
            probe_lost: self.counts.lost,
            control_bytes: self.counts.control_bytes as u64,
            trains: self.counts.trains,
            kernel_stamped_trains: self.counts.kernel_stamped,
            generated_share: (count > 0).then_some(share),
            least_generated_share: (count > 0).then_some(least),
            interruptions: self.counts.interruptions,
            batched_trains: self.counts.batched,
            overflowed: self.counts.overflowed,
            clock_steps: self.counts.clock_steps,
            rates: self.rates.clone(),
            record: self.record.clone(),
        }
    }
}
