//! The part of a train that counts, and what it says.

use super::super::train::Train;
use super::Hybrid;

/// Arrivals closer than this may be a batch.
const BATCH_NS: f64 = 10_000.0;

/// The sample of one train: the available bandwidth over a time.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) at_ns: i64,
    /// For each packet, how long after the one before it had left the link it could have begun to leave, less the
    /// path's least delay, in nanoseconds. Above zero with that delay, the link may have had nothing to send meanwhile.
    pub(super) after_ns: Vec<f64>,
    pub(super) rate: f64,
    pub(super) strain: f64,
    pub(super) time_ns: f64,
}

impl Sample {
    /// The longest that the link may have been idle, where the path's least delay is `base_ns`: that much
    /// more may have been available.
    pub(super) fn idle_ns(&self, base_ns: f64) -> f64 {
        self.after_ns.iter().map(|after| (after + base_ns).max(0.0)).sum()
    }

    /// Returns what was available if the link was never idle.
    pub(super) fn least(&self, capacity: f64) -> f64 {
        self.rate - capacity * self.strain
    }
}

impl Hybrid {
    /// The delay's floor, and the window.
    pub(super) fn note_delays(&mut self, train: &Train) {
        let stamps = train.sent_ns.iter().zip(&train.arrived_ns);
        let least = stamps.filter_map(|(sent, arrived)| arrived.map(|arrived| arrived - sent)).min();
        if let Some(least) = least.map(|least| least as f64) {
            self.base_ns = Some(self.base_ns.map_or(least, |base| base.min(least)));
        }
        self.begun_ns = self.begun_ns.or(train.sent_ns.first().copied());
        self.ended_ns = train.sent_ns.last().copied().unwrap_or(self.ended_ns);
    }

    /// The part of a train that counts: from the end of the burst to the packet before the queue was empty, the
    /// sender interrupted or a packet lost. `None` where nothing is left.
    pub(super) fn sample(&mut self, train: &Train, capacity: f64) -> Option<Sample> {
        let framing = self.probing.framing;
        let interruptions = train.interruptions();
        self.interrupted += interruptions.len() as u32;
        let batched = train.batched(BATCH_NS) > 0.2;
        self.batched += u32::from(batched);
        // The sender's own link spreads the burst, so the first stamp that means something is that of the packet
        // after it.
        let start = self.shape().0 as usize;
        let payload = train.plan.packets.first().map_or(self.probing.most_payload, |packet| packet.payload);
        let service = framing.gap_ns(payload, capacity);
        let stop = interruptions.first().copied().unwrap_or(usize::MAX).min(train.plan.packets.len());
        let (mut end, mut after_ns) = (None, Vec::new());
        for place in start..stop {
            let Some(arrived) = train.arrived_ns[place] else { break };
            if place > start {
                // What came before this packet had left when the packet before it arrived.
                let before = train.arrived_ns[place - 1].unwrap_or(arrived);
                after_ns.push((train.sent_ns[place] - before) as f64 - service);
            }
            end = Some(place);
        }
        let (mut start, mut end) = (start, end?);
        if batched {
            (start, end) = batch_ends(train, start, end)?;
        }
        let sent = (train.sent_ns[end] - train.sent_ns[start]) as f64;
        let received = (train.arrived_ns[end]? - train.arrived_ns[start]?) as f64;
        if end <= start || sent <= 0.0 {
            return None;
        }
        let bits: f64 = train.plan.packets[start + 1..=end].iter().map(|packet| framing.bits(packet.payload)).sum();
        Some(Sample {
            at_ns: train.sent_ns[start],
            after_ns,
            rate: bits * 1e9 / sent,
            strain: received / sent - 1.0,
            time_ns: sent,
        })
    }
}

/// The last packets of the first and the last batch between `start` and `end`: their arrivals are those of the wire.
fn batch_ends(train: &Train, start: usize, end: usize) -> Option<(usize, usize)> {
    let gap = |place: usize| Some((train.arrived_ns[place + 1]? - train.arrived_ns[place]?) as f64);
    let ends: Vec<usize> = (start..end).filter(|place| gap(*place).is_some_and(|gap| gap > BATCH_NS)).collect();
    Some((*ends.first()?, *ends.last()?)).filter(|(first, last)| first < last)
}
