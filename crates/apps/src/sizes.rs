//! How large datagrams are: one size, or drawn from a distribution and rounded to whole bytes.

use serde::{Deserialize, Serialize};

use crate::config::ConfigError;
use crate::distribution::Distribution;
use crate::random::Stream;

/// The largest payload of UDP over IPv4.
pub const MOST_PAYLOAD: u32 = 65_507;
/// Sizes that are drawn have room for the whole header.
pub const LEAST_DRAWN: u32 = 16;

/// A datagram of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEntry(
    /// Picoseconds since the datagram before; of the first one, since the beginning.
    pub u64,
    /// Bytes of payload.
    pub u32,
);

/// Refuses an impossible distribution of sizes.
pub(crate) fn check_sizes(kind: &'static str, size: &Distribution) -> Result<(), ConfigError> {
    size.check(kind, "size_bytes", (f64::from(LEAST_DRAWN), f64::from(MOST_PAYLOAD)))
}

/// Where sizes come from.
#[derive(Clone, Debug)]
pub enum Sizes {
    /// One size.
    Constant(u32),
    /// Drawn, from a stream of its own.
    Drawn(Distribution, Stream),
}

impl Sizes {
    /// The size of the next datagram.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn size(&mut self) -> u32 {
        match self {
            Self::Constant(size) => *size,
            Self::Drawn(distribution, stream) => {
                let bounds = (f64::from(LEAST_DRAWN), f64::from(MOST_PAYLOAD));
                distribution.draw(stream, bounds).round() as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Shape;

    #[test]
    fn drawn_sizes_are_whole_and_within_what_a_datagram_can_hold() {
        let shape = Shape::Cauchy { location: 60_000.0, scale: 10_000.0 };
        let mut sizes = Sizes::Drawn(Distribution { shape, least: None, most: None }, Stream::new(3));
        let drawn: Vec<u32> = (0..5000).map(|_| sizes.size()).collect();
        assert!(drawn.iter().all(|size| (LEAST_DRAWN..=MOST_PAYLOAD).contains(size)));
        assert!(drawn.iter().any(|size| *size > 65_000) && drawn.iter().any(|size| *size < 1000));
    }
}
