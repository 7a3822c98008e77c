//! The regression: the ratio of sums over all samples, weighed by time, and its spread.

use super::sample::Sample;
use super::Hybrid;

/// Packets of cross traffic that even trains meet differ by so little: the square.
const EVEN: f64 = 1.0;
/// And by less than this share of their mean number, or by this where there are few: what whole numbers leave.
const RANDOM: f64 = 0.2;
const LEAST_RANDOM: f64 = 0.35;
/// Of the averaging window: what the trains that count must span, where others were forgotten.
pub(super) const SPAN: f64 = 0.7;
/// The prior knowledge of the spread between trains: so many trains' worth of it, and the variance of a whole
/// number of packets about a mean that is half way between two of them.
const KNOWN: f64 = 4.0;
const WHOLE: f64 = 0.25;
/// So many times the least number of trains is needed where they do not all meet about as many packets.
pub(super) const MORE_IRREGULAR: usize = 6;
/// Runs of trains whose sums tell how much neighbours resemble each other.
const BATCHES: usize = 16;
/// Of the interval's half: what two stamps of 1 us each leave of a train's time.
const STAMP_NS: f64 = 1_000.0;

/// The sum of what all samples say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratio {
    pub(super) available: f64,
    /// What was available if the link was never idle.
    pub(super) least: f64,
    pub(super) error: f64,
    /// Of Student's t.
    pub(super) freedom: f64,
    /// The amount that the time in which the link may have been idle could add.
    pub(super) unknown: f64,
    /// `true` if all trains met about as many packets of cross traffic, and met any.
    pub(super) regular: bool,
    /// `true` if cross traffic is no more random than that of a few periodic senders.
    pub(super) even: bool,
    /// `true` if it is more random than that, whatever the link did while it may have been idle.
    pub(super) random: bool,
}

impl Hybrid {
    /// Returns the weight of each train, in nanoseconds: its time; or, where short trains look at traffic that comes in
    /// bursts, half of the time to the trains beside it, since the next train waits until the queue has let this one
    /// through, and so comes later in a burst than in a silence.
    fn weights_ns(&self) -> Vec<f64> {
        if self.overload.is_finite() {
            return self.samples.iter().map(|sample| sample.time_ns).collect();
        }
        let at = |place: usize| self.samples[place.min(self.samples.len() - 1)].at_ns;
        let around = |place: usize| {
            let both = if place == 0 || place + 1 == self.samples.len() { 1.0 } else { 0.5 };
            (at(place + 1) - at(place.saturating_sub(1))) as f64 * both
        };
        let around: Vec<f64> = (0..self.samples.len()).map(around).collect();
        let seen: f64 = self.samples.iter().map(|sample| sample.time_ns).sum();
        let scale = seen / around.iter().sum::<f64>().max(1.0);
        around.iter().map(|weight| weight * scale).collect()
    }

    /// The ratio over all samples; `None` below three of them.
    pub(super) fn ratio(&self) -> Option<Ratio> {
        let capacity = self.capacity()?;
        let seen: f64 = self.samples.iter().map(|sample| sample.time_ns).sum();
        let count = self.samples.len() as f64;
        if count < 3.0 || seen <= 0.0 {
            return None;
        }
        let weights = self.weights_ns();
        let time: f64 = weights.iter().sum();
        let mean = |of: &dyn Fn(&Sample) -> f64| {
            self.samples.iter().zip(&weights).map(|(sample, weight)| of(sample) * weight).sum::<f64>() / time
        };
        let base = self.base_ns?;
        let least = mean(&|sample| sample.least(capacity));
        let unknown = capacity * mean(&|sample| sample.idle_ns(base) / sample.time_ns);
        // Of the time in which the link may have been idle it was so for the share that it is, or for half where that
        // is less: the queue was empty at its beginning.
        let share = ((least + unknown) / capacity).clamp(0.5, 1.0);
        let found = |sample: &Sample| sample.least(capacity) + share * capacity * sample.idle_ns(base) / sample.time_ns;
        let available = least + share * unknown;
        let deviations: Vec<f64> = self
            .samples
            .iter()
            .zip(&weights)
            .map(|(sample, weight)| (found(sample) - available) * weight / 1e9)
            .collect();
        // Trains that all meet the same number of packets do not tell how far it is from the mean number: what a
        // number between two whole ones leaves is known beforehand.
        let packet = self.probing.framing.bits(self.probing.most_payload);
        let met = ((capacity - available) * time / 1e9 / count / packet).max(0.0);
        let any = met.min(1.0);
        let squares: f64 = deviations.iter().map(|deviation| deviation.powi(2)).sum();
        let single = (count - 1.0 + KNOWN, (squares + KNOWN * WHOLE * any * packet.powi(2)) / (count - 1.0 + KNOWN));
        let spread_packets = squares / (count - 1.0) / packet.powi(2);
        // Random packets spread as much as they are.
        let less_than_random = (RANDOM * met).max(LEAST_RANDOM);
        let regular = self.overload.is_finite() && any > 0.5 && spread_packets < (2.0 * WHOLE).min(less_than_random);
        let even = self.overload.is_finite() && spread_packets < EVEN.min(less_than_random);
        // Where the link may have been idle, trains that differ may all have met as much.
        let outside = |sample: &Sample, weight: f64| {
            let (least, most) =
                (sample.least(capacity), sample.least(capacity) + capacity * sample.idle_ns(base) / sample.time_ns);
            ((available - available.clamp(least, most)) * weight / 1e9 / packet).powi(2)
        };
        let surely = self.samples.iter().zip(&weights).map(|(sample, weight)| outside(sample, *weight)).sum::<f64>();
        let random = self.overload.is_infinite() || surely / (count - 1.0) >= EVEN.min(less_than_random);
        let (freedom, square) = of_batches(&deviations).filter(|batches| batches.1 > single.1).unwrap_or(single);
        let window = self.begun_ns.map_or(0, |begun| self.ended_ns - begun) as f64;
        let unseen = if window > 0.0 { (1.0 - seen / window).clamp(0.0, 1.0) } else { 1.0 };
        let spread = (count * square * unseen).sqrt() * 1e9 / time;
        let stamps = capacity * STAMP_NS * count.sqrt() / seen;
        // The variance of that share is between that of an even spread and none.
        let error = spread.hypot(stamps).hypot(unknown * (share * (1.0 - share) / 3.0).sqrt());
        Some(Ratio { available, least, error, freedom, unknown, regular, even, random })
    }

    /// The share of the averaging window that the trains that count span: all of it where none was forgotten, and no
    /// looks came after them.
    pub(super) fn spanned(&self) -> f64 {
        let window = self.begun_ns.map_or(0, |begun| self.ended_ns - begun) as f64;
        let spanned = match (self.counted_ns, self.begun_ns, self.before) {
            (Some(counted), ..) if self.looks.count() > 0 => self.until_ns - counted,
            (Some(counted), ..) => self.ended_ns - counted,
            (None, Some(begun), Some((_, until))) => until - begun,
            _ => 0,
        } as f64;
        if self.forgotten == 0 && self.looks.count() == 0 || window <= 0.0 {
            1.0
        } else {
            (spanned / window).min(1.0)
        }
    }

    /// Returns `true` if the interval is as narrow as it is to be: asked at numbers of trains that grow by a quarter,
    /// since who looks after each train ends when the trains happen to agree.
    pub(super) fn is_precise(&mut self) -> bool {
        let count = self.samples.len();
        let Some(ratio) = self.ratio() else { return false };
        // A few trains that agree may all have met one burst, or one silence.
        let more = if ratio.regular { 1 } else { MORE_IRREGULAR };
        let least = self.config.least_trains as usize * more;
        if count < least.max(self.looked + self.looked / 4 + 1) || self.spanned() < SPAN {
            return false;
        }
        self.looked = count;
        ratio.error <= self.config.precision * ratio.available
    }
}

/// Degrees of freedom, and the variance of one deviation by that of the sums of [`BATCHES`] runs of them: more than
/// their own where neighbours resemble each other. `None` where there are too few for that.
fn of_batches(deviations: &[f64]) -> Option<(f64, f64)> {
    let length = deviations.len() / BATCHES;
    if length < 2 {
        return None;
    }
    // The few at the end that make no batch are in the last one.
    let sums = (0..BATCHES).map(|batch| {
        let end = if batch + 1 == BATCHES { deviations.len() } else { (batch + 1) * length };
        deviations[batch * length..end].iter().sum::<f64>()
    });
    let squares: f64 = sums.map(|sum| sum.powi(2)).sum();
    let freedom = BATCHES as f64 - 1.0;
    Some((freedom, squares / freedom * BATCHES as f64 / deviations.len() as f64))
}
