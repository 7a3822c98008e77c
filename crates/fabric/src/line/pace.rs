//! The times that frames take at a line's rate: most are as long as the one before, and a division is dear.

use twinnet_packet::Framing;
use twinnet_units::{Duration, Rate};

use super::LONGEST_TRAIN;

/// The times of the last length that was asked for, and of a whole train.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    rate: Option<Rate>,
    framing: Framing,
    longest_train: u64,
    wire_bytes: u64,
    times: Times,
}

/// The times that a frame takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// Until the next one may begin: with the inter-frame gap.
    pub(super) whole: Duration,
    /// Until its last bit has left.
    pub(super) to_last_bit: Duration,
}

impl Pace {
    /// The times of a frame, or a train, of `wire_bytes` at `rate` with `framing`.
    #[inline]
    pub(super) fn of(&mut self, wire_bytes: u64, rate: Rate, framing: Framing) -> Times {
        if self.rate != Some(rate) || self.framing != framing {
            self.turn_to(rate, framing);
        }
        if self.wire_bytes != wire_bytes {
            self.wire_bytes = wire_bytes;
            self.times = Times {
                whole: rate.serialise(wire_bytes),
                to_last_bit: rate.serialise(wire_bytes.saturating_sub(framing.gap_bytes())),
            };
        }
        self.times
    }

    /// The bytes that pass in [`LONGEST_TRAIN`] at `rate`.
    #[inline]
    pub(super) fn longest_train(&mut self, rate: Rate) -> u64 {
        if self.rate != Some(rate) {
            self.turn_to(rate, self.framing);
        }
        self.longest_train
    }

    #[cold]
    fn turn_to(&mut self, rate: Rate, framing: Framing) {
        // No frame is as long as that: its times are not known yet.
        let wire_bytes = u64::MAX;
        let longest_train = rate.bytes_in(LONGEST_TRAIN);
        *self = Self { rate: Some(rate), framing, longest_train, wire_bytes, times: Times::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_times_are_those_of_the_rate_whatever_was_asked_before(
            asked in prop::collection::vec((0..4_u64, 1..4_u64, any::<bool>()), 1..20))
        {
            let mut pace = Pace::default();
            for (length, rate, ethernet) in asked {
                let (wire_bytes, rate) = (84 + 727 * length, Rate::from_bps(rate * 10_000_000).unwrap());
                let framing = if ethernet { Framing::Ethernet } else { Framing::None };
                let gap = if ethernet { 12 } else { 0 };
                let times = pace.of(wire_bytes, rate, framing);
                prop_assert_eq!(times.whole, rate.serialise(wire_bytes));
                prop_assert_eq!(times.to_last_bit, rate.serialise(wire_bytes - gap));
                prop_assert_eq!(pace.longest_train(rate), rate.bytes_in(LONGEST_TRAIN));
            }
        }
    }
}
