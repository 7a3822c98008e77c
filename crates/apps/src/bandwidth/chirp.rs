//! Trains of rising rate, and what all methods that use them share: which of them count, and the mean of the last.

use super::estimator::{mean_and_error, Probing};
use super::excursions::Excursions;
use super::hinge::bend;
use super::train::{Plan, Train, MOST_PACKETS};

/// Packets of a chirp at most.
const MOST_CHIRP: usize = 200;
/// Signatures whose mean is told from noise.
const LEAST_SIGNATURES: usize = 5;
/// A chirp whose own schedule was distorted by more than this is not used (STAB's rule).
const MOST_DISTORTION: f64 = 0.2;

/// The headers of IPv4 and UDP.
const HEADERS: u32 = 28;

/// The payload of packets of `packet_bytes`, as far as the path takes it.
#[must_use]
pub fn payload(packet_bytes: u32, probing: &Probing) -> u32 {
    packet_bytes.saturating_sub(HEADERS).clamp(32, probing.most_payload)
}

/// Rates from `low_bps` on, each `spread` times the one before, until one reaches `high_bps`.
#[must_use]
pub fn rising_rates(low_bps: f64, high_bps: f64, spread: f64) -> Vec<f64> {
    let mut rates = vec![low_bps];
    while rates.len() < MOST_CHIRP - 1 && rates[rates.len() - 1] < high_bps {
        rates.push(rates[rates.len() - 1] * spread);
    }
    rates
}

/// A chirp of packets of `payload` bytes, `hold` of them at each rate.
#[must_use]
pub fn chirp(rates: &[f64], hold: u32, payload: u32, probing: &Probing) -> Plan {
    let gap = |rate: &f64| probing.framing.gap_ns(payload, *rate);
    Plan::by_gaps(payload, rates.iter().flat_map(|rate| std::iter::repeat_n(gap(rate), hold as usize)))
}

/// Silence after a chirp for a mean load of `load_bps`, and at least as long as the chirp.
#[must_use]
pub fn silence_ns(plan: &Plan, load_bps: f64, probing: &Probing) -> f64 {
    let duration = plan.duration_ns() as f64;
    (plan.bits(probing.framing) * 1e9 / load_bps - duration).max(duration)
}

/// The delays of one chirp, and the gaps at which it was sent.
#[derive(Debug)]
struct Signature {
    delays: Vec<f64>,
    rates: Vec<f64>,
    gaps: Vec<f64>,
}

/// Why chirps were not used, and the estimates of the last that were.
#[derive(Debug, Default)]
pub struct ChirpWindow {
    /// Estimates in the order of time: at most as many as are averaged.
    pub estimates: Vec<f64>,
    /// The last chirps' delays, all of one plan.
    signatures: Vec<Signature>,
    plan: Plan,
    /// Chirps that were lost in part or reordered.
    pub incomplete: u32,
    /// Chirps that the sender distorted.
    pub distorted: u32,
    /// Chirps of which a part came in batches.
    pub batched: u32,
    /// Chirps that were used.
    pub used: u32,
}

impl ChirpWindow {
    /// Hears a chirp: its estimate by the rates at which it was really sent; `None` when it is not used.
    pub fn hear(
        &mut self,
        train: &Train,
        rule: Excursions,
        batch_ns: f64,
        length: usize,
        probing: &Probing,
    ) -> Option<f64> {
        if train.lost() > 0 || train.reordered() || train.clock_stepped {
            self.incomplete += 1;
            return None;
        }
        if train.distortion() > MOST_DISTORTION || !train.interruptions().is_empty() {
            self.distorted += 1;
            return None;
        }
        let signature = signature(train, batch_ns, probing);
        let found = signature.and_then(|(signature, cut)| {
            let found = rule.estimate(&signature.delays, &signature.rates, &signature.gaps)?;
            Some((found, cut, signature))
        });
        match found {
            Some((found, cut, signature)) => {
                self.batched += u32::from(cut);
                self.used += 1;
                self.keep(signature, &train.plan, length);
                self.estimates.push(found);
                let more = self.estimates.len().saturating_sub(length);
                self.estimates.drain(..more);
                Some(found)
            }
            None => {
                self.incomplete += 1;
                None
            }
        }
    }

    fn keep(&mut self, signature: Signature, plan: &Plan, length: usize) {
        let other_length = self.signatures.first().is_some_and(|first| first.gaps.len() != signature.gaps.len());
        if *plan != self.plan || other_length {
            self.signatures.clear();
            self.plan = plan.clone();
        }
        self.signatures.push(signature);
        let more = self.signatures.len().saturating_sub(length);
        self.signatures.drain(..more);
    }

    /// Finds where the mean of all signatures but one bends: the noise of single packets of cross traffic averages out
    /// first.
    fn of_mean_signature(&self, without: Option<usize>) -> Option<f64> {
        let used =
            || self.signatures.iter().enumerate().filter(|(place, _)| Some(*place) != without).map(|(_, one)| one);
        let count = used().count() as f64;
        let mean = |values: fn(&Signature) -> &[f64]| -> Vec<f64> {
            let length = self.signatures.first().map_or(0, |first| values(first).len());
            (0..length).map(|place| used().map(|one| values(one)[place]).sum::<f64>() / count).collect()
        };
        bend(&mean(|one| &one.delays), &mean(|one| &one.rates), &mean(|one| &one.gaps))
    }

    /// The estimate by now: by the mean of the signatures, or of the last chirp alone.
    pub fn latest(&self, mean_signature: bool) -> Option<f64> {
        if mean_signature && self.signatures.len() >= LEAST_SIGNATURES {
            self.of_mean_signature(None)
        } else {
            self.estimates.last().copied()
        }
    }

    /// The estimate and its standard error: by the mean of the signatures (the error by the jackknife), or by the
    /// mean of the estimates of single chirps, as published.
    pub fn found(&self, mean_signature: bool) -> Option<(f64, f64)> {
        let count = self.signatures.len();
        if !mean_signature || count < LEAST_SIGNATURES {
            return mean_and_error(&self.estimates);
        }
        let found = self.of_mean_signature(None)?;
        let without: Vec<f64> = (0..count).filter_map(|place| self.of_mean_signature(Some(place))).collect();
        let mean = without.iter().sum::<f64>() / without.len() as f64;
        let squares: f64 = without.iter().map(|one| (one - mean).powi(2)).sum();
        Some((found, (squares * (count as f64 - 1.0) / count as f64).sqrt()))
    }

    /// Sentences about chirps that were not used.
    pub fn notes(&self) -> Vec<String> {
        let told = [
            (self.incomplete, "chirps were lost in part, reordered, or stamped by a clock that was set"),
            (self.distorted, "chirps were distorted by the sender (it lost its processor)"),
            (self.batched, "chirps were cut where packets arrived in batches"),
        ];
        told.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect()
    }
}

/// The delays of one chirp with its gaps, and whether it was cut at a batch.
fn signature(train: &Train, batch_ns: f64, probing: &Probing) -> Option<(Signature, bool)> {
    // Of a chirp that expires on the way, the packets that follow its own tell.
    let places = train.arrived();
    if places.len() < 3 || places.len() > MOST_PACKETS {
        return None;
    }
    let delay = |place: usize| train.arrived_ns[place].map(|arrived| (arrived - train.sent_ns[place]) as f64);
    let arrival_gap = |pair: &[usize]| Some((train.arrived_ns[pair[1]]? - train.arrived_ns[pair[0]]?) as f64);
    let first = delay(places[0])?;
    let mut delays = vec![0.0];
    let (mut rates, mut gaps) = (Vec::new(), Vec::new());
    let (mut close, mut cut) = (0, false);
    let payload = train.plan.packets.iter().map(|packet| packet.payload).max()?;
    let follows = places.len() < train.plan.packets.len();
    let behind = if follows { train.plan.packets[places[0]].payload } else { 0 };
    let bits = probing.framing.bits(payload) + if follows { probing.framing.bits(behind) } else { 0.0 };
    for pair in places.windows(2) {
        let sent = (train.sent_ns[pair[1]] - train.sent_ns[pair[0]]) as f64;
        if sent <= 0.0 {
            return None;
        }
        // A queue spaces packets by their length; what comes much closer was held back by the receiving host.
        close = if arrival_gap(pair)? < batch_ns && arrival_gap(pair)? < sent / 5.0 { close + 1 } else { 0 };
        if close >= 2 && gaps.len() > 2 {
            cut = true;
            break;
        }
        gaps.push(sent);
        rates.push(bits * 1e9 / sent);
        delays.push(delay(pair[1])? - first);
    }
    Some((Signature { delays, rates, gaps }, cut))
}
