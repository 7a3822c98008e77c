//! The layer at which rates are told, and what a datagram counts for at it.

pub use crate::account::bandwidth_report::Layer;

/// Bytes of the headers of IPv4 and UDP.
const HEADERS_V4: u32 = 28;
/// Bytes of the headers of IPv6 and UDP.
const HEADERS_V6: u32 = 48;
/// Bytes of the Ethernet header and the frame check sequence (IEEE 802.3, 3.1.1).
const ETHERNET: u32 = 18;
/// The shortest frame.
const SHORTEST_FRAME: u32 = 64;
/// Preamble, start-of-frame delimiter and interpacket gap.
const BETWEEN_FRAMES: u32 = 20;

/// The number of bits of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    layer: Layer,
    headers: u32,
}

impl Framing {
    /// At `layer`, over IPv6 or IPv4.
    #[must_use]
    pub const fn new(layer: Layer, v6: bool) -> Self {
        Self { layer, headers: if v6 { HEADERS_V6 } else { HEADERS_V4 } }
    }

    /// The same datagrams as they count on the wire.
    #[must_use]
    pub const fn wire(self) -> Self {
        Self { layer: Layer::Wire, headers: self.headers }
    }

    /// Bits of a datagram of `payload` bytes.
    #[must_use]
    pub fn bits(self, payload: u32) -> f64 {
        let packet = payload + self.headers;
        let bytes = match self.layer {
            Layer::Network => packet,
            Layer::Wire => (packet + ETHERNET).max(SHORTEST_FRAME) + BETWEEN_FRAMES,
        };
        f64::from(bytes) * 8.0
    }

    /// The payload whose datagram has `bits`; zero when the headers alone have more.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn payload(self, bits: f64) -> u32 {
        (bits / 8.0 - self.bits(SHORTEST_FRAME) / 8.0 + f64::from(SHORTEST_FRAME)).clamp(0.0, 65_507.0) as u32
    }

    /// Nanoseconds from one datagram of `payload` bytes to the next at `rate_bps`.
    #[must_use]
    pub fn gap_ns(self, payload: u32, rate_bps: f64) -> f64 {
        self.bits(payload) * 1e9 / rate_bps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_datagram_takes_1538_bytes_of_an_ethernet_line() {
        let wire = Framing::new(Layer::Wire, false);
        assert!((wire.bits(1472) - 1538.0 * 8.0).abs() < 1e-9);
        assert!((wire.bits(1) - 84.0 * 8.0).abs() < 1e-9, "the shortest frame, preamble and gap");
        assert_eq!(wire.payload(wire.bits(1000)), 1000);
        assert!((Framing::new(Layer::Network, false).gap_ns(1472, 1e9) - 12_000.0).abs() < 1e-9);
        assert!((Framing::new(Layer::Network, true).bits(1452) - 12_000.0).abs() < 1e-9);
    }
}
