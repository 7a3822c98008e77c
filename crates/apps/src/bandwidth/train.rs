//! A train of probes: what is to be sent, and what became of it.

use twinnet_units::Time;

use super::framing::Framing;
pub use crate::account::bandwidth_report::{Plan, Planned, Train};

/// Packets of one train at most.
pub const MOST_PACKETS: usize = 1024;
/// A stamp of the kernel is not earlier than the time at which its packet was handed over, but for the reading of two
/// clocks. One that is earlier by more is that of another packet, or a clock was set.
const CLOCKS_APART_NS: i64 = 10_000;

impl Plan {
    /// `count` packets of `payload` bytes, `gap_ns` apart; each at its own rounded time, so that rounding does not
    /// add up.
    #[must_use]
    pub fn even(count: usize, payload: u32, gap_ns: f64) -> Self {
        Self::by_gaps(payload, std::iter::repeat_n(gap_ns, count.saturating_sub(1)))
    }

    /// Packets of `payload` bytes with these gaps between them.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn by_gaps(payload: u32, gaps_ns: impl IntoIterator<Item = f64>) -> Self {
        let mut at = 0.0;
        let mut packets = vec![Planned { at_ns: 0, payload, hop_limit: None }];
        for gap in gaps_ns {
            at += gap;
            packets.push(Planned { at_ns: at.round() as u64, payload, hop_limit: None });
        }
        packets.truncate(MOST_PACKETS);
        Self { packets }
    }

    /// Nanoseconds from the first packet to the last.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.packets.last().map_or(0, |last| last.at_ns)
    }

    /// Bits of all packets.
    #[must_use]
    pub fn bits(&self, framing: Framing) -> f64 {
        self.packets.iter().map(|packet| framing.bits(packet.payload)).sum()
    }

    /// The rate that is asked for; `None` for packets that are to leave at once.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn rate_bps(&self, framing: Framing) -> Option<f64> {
        let first = self.packets.first()?;
        let duration = self.duration_ns();
        (duration > 0).then(|| (self.bits(framing) - framing.bits(first.payload)) * 1e9 / duration as f64)
    }
}

#[allow(clippy::cast_precision_loss)]
impl Train {
    /// Takes the kernel's stamps of the train's packets, and of the `asked` questions that followed them, as the times
    /// of sending. Which stamp is whose is known by their order and number only, so `false`, and nothing is taken,
    /// where one is missing or lies before its packet was handed over.
    pub fn use_departures(&mut self, asked: usize, departures: &[Time]) -> bool {
        let count = self.sent_ns.len();
        let left = departures.iter().take(count).map(|left| i64::try_from(left.as_ns()).unwrap_or(i64::MAX));
        let left: Vec<i64> = left.collect();
        let fits = |(left, handed_over): (&i64, &i64)| *left >= handed_over.saturating_sub(CLOCKS_APART_NS);
        if count == 0 || departures.len() != count + asked || !left.iter().zip(&self.sent_ns).all(fits) {
            return false;
        }
        self.handed_over_ns = std::mem::replace(&mut self.sent_ns, left);
        true
    }

    /// Returns `true` if the stamps fit the plan: what is read from a record may not.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let count = self.plan.packets.len();
        // Differences of times below this cannot overflow.
        let bounded = |time: &i64| time.unsigned_abs() < 1 << 62;
        (1..=MOST_PACKETS).contains(&count)
            && self.sent_ns.len() == count
            && self.arrived_ns.len() == count
            && self.sent_ns.iter().all(bounded)
            && self.arrived_ns.iter().flatten().all(bounded)
    }

    /// Packets that did not arrive, of those that were not sent to expire on the way.
    #[must_use]
    pub fn lost(&self) -> usize {
        let packets = self.plan.packets.iter().zip(&self.arrived_ns);
        packets.filter(|(packet, arrived)| packet.hop_limit.is_none() && arrived.is_none()).count()
    }

    /// The share of packets that did not arrive.
    #[must_use]
    pub fn loss(&self) -> f64 {
        self.lost() as f64 / self.plan.packets.len().max(1) as f64
    }

    /// Returns `true` if packets overtook each other.
    #[must_use]
    pub fn reordered(&self) -> bool {
        let mut latest = i64::MIN;
        self.arrived_ns.iter().flatten().any(|arrived| {
            let late = *arrived < latest;
            latest = latest.max(*arrived);
            late
        })
    }

    /// Places of the packets that arrived.
    #[must_use]
    pub fn arrived(&self) -> Vec<usize> {
        (0..self.arrived_ns.len()).filter(|place| self.arrived_ns[*place].is_some()).collect()
    }

    /// One-way delays above the least of the train, in nanoseconds, of the packets that arrived: place and delay.
    #[must_use]
    pub fn delays_ns(&self) -> Vec<(usize, f64)> {
        let stamps = self.sent_ns.iter().zip(&self.arrived_ns).enumerate();
        let delays: Vec<(usize, i64)> =
            stamps.filter_map(|(place, (sent, arrived))| arrived.map(|arrived| (place, arrived - sent))).collect();
        let least = delays.iter().map(|(_, delay)| *delay).min().unwrap_or(0);
        delays.into_iter().map(|(place, delay)| (place, (delay - least) as f64)).collect()
    }

    /// Gaps between packets as they were sent, in nanoseconds.
    #[must_use]
    pub fn sent_gaps_ns(&self) -> Vec<f64> {
        self.sent_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect()
    }

    /// The rate at which the train was sent; `None` when all left at once.
    #[must_use]
    pub fn generated_bps(&self, framing: Framing) -> Option<f64> {
        let duration = self.sent_ns.last()? - self.sent_ns.first()?;
        let bits = self.plan.bits(framing) - framing.bits(self.plan.packets.first()?.payload);
        (duration > 0).then(|| bits * 1e9 / duration as f64)
    }

    /// The rate at which it arrived, from the first arrival to the last.
    #[must_use]
    pub fn received_bps(&self, framing: Framing) -> Option<f64> {
        let places = self.arrived();
        let (first, last) = (*places.first()?, *places.last()?);
        let duration = self.arrived_ns[last]? - self.arrived_ns[first]?;
        let bits: f64 = places[1..].iter().map(|place| framing.bits(self.plan.packets[*place].payload)).sum();
        (duration > 0).then(|| bits * 1e9 / duration as f64)
    }

    /// Gaps that became so long that the sender must have lost its processor: more than twice the planned gap `T`,
    /// and more than `T + 1 ms`, whichever is more (the rule that Pathload splits streams by). The places of the
    /// packets after them.
    #[must_use]
    pub fn interruptions(&self) -> Vec<usize> {
        let planned = self.plan.packets.windows(2).map(|pair| (pair[1].at_ns - pair[0].at_ns) as f64);
        let pairs = planned.zip(self.sent_gaps_ns()).enumerate();
        pairs
            .filter(|(_, (planned, gap))| *gap > (2.0 * planned).max(planned + 1e6))
            .map(|(place, _)| place + 1)
            .collect()
    }

    /// Mean over all gaps of |sent gap / planned gap - 1|: how distorted the sender's own schedule was (STAB's rule).
    #[must_use]
    pub fn distortion(&self) -> f64 {
        let mut sum = 0.0;
        let mut count = 0_u32;
        for (pair, gap) in self.plan.packets.windows(2).zip(self.sent_gaps_ns()) {
            let planned = (pair[1].at_ns - pair[0].at_ns) as f64;
            if planned > 0.0 {
                sum += (gap / planned - 1.0).abs();
                count += 1;
            }
        }
        if count == 0 {
            0.0
        } else {
            sum / f64::from(count)
        }
    }

    /// The share of arrivals that came in a batch: at most `threshold_ns` and less than a fifth of the gap at which
    /// they were sent after the one before. Interrupt coalescence and generic receive offload make such batches; a
    /// queue does only at five times the rate that was sent.
    #[must_use]
    pub fn batched(&self, threshold_ns: f64) -> f64 {
        let places = self.arrived();
        let gaps = places.windows(2).filter_map(|pair| {
            let gap = (self.arrived_ns[pair[1]]? - self.arrived_ns[pair[0]]?) as f64;
            let sent = (self.sent_ns[pair[1]] - self.sent_ns[pair[0]]) as f64;
            Some(gap <= threshold_ns && gap < sent / 5.0)
        });
        gaps.filter(|batched| *batched).count() as f64 / places.len().saturating_sub(1).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandwidth::framing::Layer;

    fn train() -> Train {
        Train {
            plan: Plan::even(5, 1472, 1000.0),
            sent_ns: vec![0, 1000, 2000, 3000, 4000],
            arrived_ns: vec![Some(500), Some(1700), None, Some(3900), Some(4900)],
            ..Train::default()
        }
    }

    #[test]
    fn delays_are_above_the_least_and_losses_leave_their_place_out() {
        let train = train();
        assert!(train.is_whole() && !train.reordered());
        assert_eq!(train.delays_ns(), [(0, 0.0), (1, 200.0), (3, 400.0), (4, 400.0)]);
        assert_eq!((train.lost(), train.arrived()), (1, vec![0, 1, 3, 4]));
    }

    #[test]
    fn rates_are_of_the_packets_after_the_first() {
        let framing = Framing::new(Layer::Network, false);
        let train = train();
        assert!((train.generated_bps(framing).unwrap() - 12e9).abs() < 1.0);
        assert!((train.received_bps(framing).unwrap() - 3.0 * 12_000.0 / 4.4e-6).abs() < 1.0);
    }

    #[test]
    fn a_sender_that_lost_its_processor_is_seen_in_its_own_gaps() {
        let mut train = train();
        train.sent_ns = vec![0, 1000, 1_500_000, 1_501_000, 1_502_000];
        assert_eq!(train.interruptions(), [2]);
        assert!(train.distortion() > 1.0);
    }

    #[test]
    fn a_batch_is_told_from_a_queue() {
        let mut batched = train();
        batched.arrived_ns = [5000, 5010, 5020, 5030, 5040].into_iter().map(Some).collect();
        assert!((batched.batched(7000.0) - 1.0).abs() < 1e-12);
        assert_eq!(train().batched(7000.0), 0.0);
    }

    fn departures(ns: &[u64]) -> Vec<Time> {
        ns.iter().map(|ns| Time::from_ns(*ns)).collect()
    }

    #[test]
    fn stamps_of_the_kernel_replace_the_times_of_handing_over() {
        let mut train = Train { sent_ns: vec![1_000_000, 2_000_000, 3_000_000], ..Train::default() };
        // A stamp may seem up to 10 us early, by the reading of two clocks; the last is that of a question.
        assert!(train.use_departures(1, &departures(&[1_005_000, 1_995_000, 3_900_000, 4_000_000])));
        assert_eq!(train.sent_ns, [1_005_000, 1_995_000, 3_900_000]);
        assert_eq!(train.handed_over_ns, [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn stamps_that_are_not_those_of_all_packets_are_not_used() {
        let handed_over = vec![1_000_000, 2_000_000, 3_000_000];
        for (what, stamps) in [
            ("none", vec![]),
            ("one is missing", vec![1_005_000, 3_005_000, 4_005_000]),
            ("one is too many", vec![1_005_000, 2_005_000, 3_005_000, 4_005_000, 5_005_000]),
            ("one is of a packet before", vec![1_005_000, 1_900_000, 3_005_000, 4_005_000]),
        ] {
            let mut train = Train { sent_ns: handed_over.clone(), ..Train::default() };
            assert!(!train.use_departures(1, &departures(&stamps)), "{what}");
            assert_eq!((train.sent_ns, train.handed_over_ns.len()), (handed_over.clone(), 0), "{what}");
        }
    }
}
