//! The sizes of datagrams, echo requests and writes to a stream: one size, or drawn from a distribution and
//! rounded to whole bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{check_range, ConfigError};
use crate::schedule::distribution::Distribution;
use crate::schedule::random::Stream;

/// The largest payload of UDP over IPv4.
pub const MOST_PAYLOAD: u32 = 65_507;
/// Sizes that are drawn have room for the whole header.
pub const LEAST_DRAWN: u32 = 16;

/// A datagram of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEntry(
    /// Picoseconds since the datagram before; of the first one, since the beginning.
    pub u64,
    /// Bytes of payload.
    pub u32,
);

/// The size that is asked for, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Size {
    /// One size.
    Constant(u32),
    /// Drawn.
    Drawn(Distribution),
}

impl Size {
    /// Refuses one size outside of `constant`, and a distribution that has little within `drawn`.
    pub(crate) fn check(&self, kind: &'static str, constant: (u32, u32), drawn: (u32, u32)) -> Result<(), ConfigError> {
        match self {
            Self::Constant(payload) => check_range(kind, "payload_bytes", *payload, constant.0, constant.1),
            Self::Drawn(size) => size.check(kind, "size_bytes", (f64::from(drawn.0), f64::from(drawn.1))),
        }
    }

    /// The sizes, from a stream of their own and within `bounds`.
    pub(crate) fn sizes(self, seed: u64, bounds: (u32, u32)) -> Sizes {
        match self {
            Self::Constant(size) => Sizes::Constant(size),
            Self::Drawn(distribution) => Sizes::Drawn(distribution, Stream::new(seed), bounds),
        }
    }

    /// The fields that ask for it: `payload_bytes` and `size_bytes`.
    pub(crate) const fn fields(self) -> (Option<u32>, Option<Distribution>) {
        match self {
            Self::Constant(payload) => (Some(payload), None),
            Self::Drawn(size) => (None, Some(size)),
        }
    }
}

/// The source of sizes.
#[derive(Clone, Debug)]
pub enum Sizes {
    /// One size.
    Constant(u32),
    /// Drawn, from a stream of its own; the smallest and the largest that can be sent.
    Drawn(Distribution, Stream, (u32, u32)),
}

impl Sizes {
    /// The size of the next datagram.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn size(&mut self) -> u32 {
        match self {
            Self::Constant(size) => *size,
            Self::Drawn(distribution, stream, (least, most)) => {
                let bounds = (f64::from(*least), f64::from(*most));
                distribution.draw(stream, bounds).round() as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::distribution::Shape;

    #[test]
    fn drawn_sizes_are_whole_and_within_what_a_datagram_can_hold() {
        let shape = Shape::Cauchy { location: 60_000.0, scale: 10_000.0 };
        let distribution = Distribution { shape, least: None, most: None };
        let mut sizes = Sizes::Drawn(distribution, Stream::new(3), (LEAST_DRAWN, MOST_PAYLOAD));
        let drawn: Vec<u32> = (0..5000).map(|_| sizes.size()).collect();
        assert!(drawn.iter().all(|size| (LEAST_DRAWN..=MOST_PAYLOAD).contains(size)));
        assert!(drawn.iter().any(|size| *size > 65_000) && drawn.iter().any(|size| *size < 1000));
    }
}
