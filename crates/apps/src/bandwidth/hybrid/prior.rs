//! What counters said before: its spread over the window of the estimate, and how it is weighed with what trains found.

use super::super::estimator::Finding;
use super::Hybrid;

/// A capacity that was told and is more than so many times the narrow link's is that of another link.
const NOT_NARROW: f64 = 1.1;

impl Hybrid {
    /// The prior and its standard deviation over the window of this estimate: of traffic that is not the same for long,
    /// averages over a shorter time vary by more, as the root of the ratio; and a whole number of packets passes in it.
    pub(super) fn prior(&self) -> Option<(f64, f64)> {
        let (prior, deviation) = self.config.prior()?;
        let window = self.begun_ns.map_or(0, |begun| self.ended_ns - begun).max(1) as f64;
        let shorter = self.config.prior_window_ns.map_or(1.0, |over| (over / window).max(1.0));
        let packet = self.probing.framing.bits(self.probing.most_payload) * 1e9 / window;
        Some((prior, (deviation * shorter.sqrt()).hypot(packet)))
    }

    /// Returns `true` if the tight link, whose capacity was told, is not the narrow one.
    pub(super) fn is_not_narrow(&self) -> bool {
        self.config.capacity_bps.zip(self.narrow()).is_some_and(|(told, narrow)| told > NOT_NARROW * narrow)
    }

    /// The answer where the tight link is not the one that trains can ask: the prior alone.
    pub(super) fn answer_of_prior(&self, notes: &[String]) -> Option<Finding> {
        let (prior, deviation) = self.prior().filter(|_| self.is_not_narrow())?;
        let mut notes = notes.to_vec();
        notes.push("the tight link is not the narrow one, which is all that trains can ask: this is the prior".into());
        Some(Finding {
            estimate_bps: Some(prior),
            low_bps: Some((prior - 1.96 * deviation).max(0.0)),
            high_bps: Some(prior + 1.96 * deviation),
            confidence: Some(0.95),
            capacity_bps: self.config.capacity_bps,
            notes,
            ..Finding::default()
        })
    }

    /// The estimate, with half of its interval, of what trains found (with half of theirs) and of the prior, each
    /// weighed by its variance: the step of a Kalman filter for one state. And whether both contradict each other.
    pub(super) fn fuse(&self, probed: f64, half: f64) -> (f64, f64, bool) {
        let Some((prior, deviation)) = self.prior() else { return (probed.max(0.0), half, false) };
        let (ours, theirs) = ((half / 1.96).powi(-2), deviation.powi(-2));
        let apart = (probed - prior).abs();
        let estimate = (probed * ours + prior * theirs) / (ours + theirs);
        let mut half = 1.96 / (ours + theirs).sqrt();
        let contradiction = apart > 1.96 * (ours.recip() + theirs.recip()).sqrt();
        if contradiction {
            // One of them is wrong, and nothing says which.
            half = half.max((probed - estimate).abs() + 1.96 / ours.sqrt());
            half = half.max((prior - estimate).abs() + 1.96 / theirs.sqrt());
        }
        (estimate, half, contradiction)
    }
}
