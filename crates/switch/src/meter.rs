//! Meters (OpenFlow 1.3, 5.7): a token bucket for each band, exact to the picosecond. A band is exceeded by a frame
//! that its bucket does not hold; of the exceeded bands the one with the highest rate applies.
//!
//! Without `OFPMF_BURST` a bucket is as deep as its rate fills in one second, as in Open vSwitch.

use std::collections::BTreeMap;
use std::sync::Arc;

use twinnet_packet::Frame;
use twinnet_queue::TokenBucket;
use twinnet_units::Time;

/// `OFPMF_PKTPS`.
pub(super) const PACKETS: u16 = 1 << 1;
/// `OFPMF_BURST`.
pub(super) const BURST: u16 = 1 << 2;
/// Meters that a switch holds at most.
pub(super) const MOST_METERS: usize = 65_536;
/// Bands of a meter at most.
pub(super) const MOST_BANDS: usize = 16;

/// The treatment of frames above a band's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Drop,
    /// Raises the drop precedence by so many steps.
    Remark(u8),
}

/// A rate and what happens above it.
#[derive(Clone, Debug)]
pub(super) struct Band {
    /// kbit/s, or frames a second.
    pub(super) rate: u32,
    pub(super) effect: Effect,
    pub(super) frames: u64,
    pub(super) bytes: u64,
    bucket: TokenBucket,
}

impl Band {
    /// A band of a meter with these flags; its bucket is full.
    pub(super) fn new(rate: u32, burst: u32, effect: Effect, flags: u16) -> Self {
        let depth = u64::from(if flags & BURST != 0 { burst } else { rate });
        // A frame counts as one byte where frames are measured; a kbit is 125 bytes.
        let bucket = if flags & PACKETS != 0 {
            TokenBucket::new(u64::from(rate) * 8, depth)
        } else {
            TokenBucket::new(u64::from(rate) * 1000, depth * 125)
        };
        Self { rate, effect, frames: 0, bytes: 0, bucket }
    }
}

/// A meter and what it counted.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    pub(super) flags: u16,
    pub(super) bands: Vec<Band>,
    /// The bands as the controller wrote them.
    pub(super) written: Arc<[u8]>,
    pub(super) added: Time,
    pub(super) frames: u64,
    pub(super) bytes: u64,
}

/// All meters of a switch.
#[derive(Debug, Default)]
pub(super) struct Meters {
    pub(super) meters: BTreeMap<u32, Meter>,
}

impl Meters {
    /// Measures one frame: what is done with it, if anything.
    pub(super) fn measure(&mut self, id: u32, frame: &Frame, now: Time) -> Option<Effect> {
        let meter = self.meters.get_mut(&id)?;
        let bytes = frame.link_bytes();
        meter.frames += 1;
        meter.bytes += bytes;
        let cost = if meter.flags & PACKETS != 0 { 1 } else { bytes };
        let mut exceeded: Option<usize> = None;
        for index in 0..meter.bands.len() {
            if meter.bands[index].bucket.holds(cost, now) {
                meter.bands[index].bucket.charge(cost, now);
            } else if exceeded.is_none_or(|other| meter.bands[index].rate > meter.bands[other].rate) {
                exceeded = Some(index);
            }
        }
        let band = &mut meter.bands[exceeded?];
        band.frames += 1;
        band.bytes += bytes;
        Some(band.effect)
    }
}

/// The DSCP with its drop precedence raised: only the assured forwarding classes have one (RFC 2597, 6), up to 3.
pub(super) fn raised_precedence(dscp: u8, steps: u8) -> u8 {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    if !(1..=4).contains(&class) || precedence == 0 || dscp & 1 != 0 {
        return dscp;
    }
    class << 3 | precedence.saturating_add(steps).min(3) << 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinnet_units::Duration;

    fn meter(flags: u16, bands: Vec<Band>) -> Meters {
        let meter = Meter { flags, bands, written: Arc::default(), added: Time::ZERO, frames: 0, bytes: 0 };
        Meters { meters: BTreeMap::from([(1, meter)]) }
    }

    #[test]
    fn a_rate_in_frames_lets_exactly_so_many_through() {
        let mut meters = meter(PACKETS | BURST, vec![Band::new(10, 5, Effect::Drop, PACKETS | BURST)]);
        let frame = Frame::new(vec![0; 64]);
        let passed = (0..1000)
            .filter(|step| meters.measure(1, &frame, Time::ZERO + Duration::from_ms(step * 10)).is_none())
            .count();
        // 5 at once and 10 a second for 9.99 s.
        assert_eq!(passed, 104);
        assert_eq!(meters.meters[&1].bands[0].frames, 896);
    }

    #[test]
    fn of_two_exceeded_bands_the_faster_one_applies() {
        let bands =
            vec![Band::new(1, 1, Effect::Remark(1), PACKETS | BURST), Band::new(2, 2, Effect::Drop, PACKETS | BURST)];
        let mut meters = meter(PACKETS | BURST, bands);
        let frame = Frame::new(vec![0; 64]);
        let effects: Vec<_> = (0..3).map(|_| meters.measure(1, &frame, Time::ZERO)).collect();
        assert_eq!(effects, [None, Some(Effect::Remark(1)), Some(Effect::Drop)]);
    }

    #[test]
    fn only_assured_forwarding_has_a_precedence_to_raise() {
        assert_eq!(raised_precedence(10, 1), 12);
        assert_eq!(raised_precedence(14, 1), 14);
        assert_eq!(raised_precedence(46, 1), 46);
        assert_eq!(raised_precedence(0, 3), 0);
    }
}
