//! Back pressure: it makes a real sender feel the queue of its own slow link as on hardware.
//!
//! A TAP (and a packet socket) takes a frame away from the socket that sent it at once, so TCP small queues (the
//! limit on what a flow keeps below the transport) and a datagram socket's send buffer are never felt, and a greedy
//! TCP flow fills the interface's ring at the cost of every other sender of the host. A token bucket above the
//! interface holds the frames back while they still belong to their sockets. It runs a hair below the line rate, so
//! that the ring stays nearly empty and the fabric's own serialiser decides when each frame leaves.

use netlink_packet_core::DefaultNla;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use twinnet_units::{Duration, Rate};

/// Share of the line rate at which the bucket runs: half a thousandth below, within what the long-run rate is
/// promised to.
const SHARE_PER_100_000: u128 = 99_950;
/// Data that the bucket lets through at once, and what it makes good for when the kernel's timer is late: with
/// less, a late timer loses rate. The interface's ring holds twice as much.
const BURST: Duration = Duration::from_ms(3);
/// The time of data that a super-segment may hold: TCP keeps two of them below itself, however slow the link.
const LONGEST_SUPER_SEGMENT: Duration = Duration::from_ms(1);
/// Frames in a super-segment where nothing is said (`GSO_MAX_SEGS`).
const MOST_SEGMENTS: u32 = 65_535;
/// Frames that wait above the bucket, as in the kernel's default for Ethernet.
const WAITING_FRAMES: u64 = 1000;
/// Above this rate the bucket is left out: the ring empties faster than a sender is scheduled.
const HIGHEST_RATE_BPS: u64 = 2_500_000_000;

const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_BURST: u16 = 6;
/// `TC_H_ROOT`.
const ROOT: u32 = 0xffff_ffff;

/// A token bucket of the kernel's `tbf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Rate in bytes per second at the link layer (without framing).
    bytes_per_second: u32,
    /// Depth in bytes.
    burst_bytes: u32,
    /// Bytes that may wait.
    limit_bytes: u32,
}

impl TokenBucket {
    /// The bucket above an interface on a link of `rate`; `None` where none is of use.
    ///
    /// `full_frame_on_wire` is what a frame that fills the MTU occupies there. The kernel counts a frame's bytes
    /// without framing, so the rate is that of full-size frames; shorter ones, whose framing weighs more, are held
    /// back by the fabric and the interface's ring alone.
    #[must_use]
    pub fn of(rate: Option<Rate>, full_frame_on_wire: u64, mtu: u32) -> Option<Self> {
        let rate = rate.filter(|rate| rate.as_bps() <= HIGHEST_RATE_BPS)?;
        let frame = u64::from(mtu) + 14;
        let share = u128::from(rate.as_bps()) * u128::from(frame) * SHARE_PER_100_000;
        let bytes_per_second = share / (u128::from(full_frame_on_wire) * 100_000 * 8);
        let whole = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Some(Self {
            bytes_per_second: u32::try_from(bytes_per_second).unwrap_or(u32::MAX).max(1),
            burst_bytes: whole(rate.bytes_in(BURST).max(2 * frame)),
            limit_bytes: whole(WAITING_FRAMES * frame),
        })
    }

    /// The request that puts the bucket on the interface with `index`, in place of what is there.
    #[must_use]
    pub fn request(&self, index: i32) -> TcMessage {
        let mut message = root_of(index);
        // struct tc_tbf_qopt: rate and peak rate (struct tc_ratespec, 12 bytes each, the rate in its last four),
        // limit, buffer, mtu.
        let mut parameters = [0_u8; 36];
        parameters[8..12].copy_from_slice(&self.bytes_per_second.to_ne_bytes());
        parameters[24..28].copy_from_slice(&self.limit_bytes.to_ne_bytes());
        let mut options = Vec::with_capacity(48);
        attribute(&mut options, TCA_TBF_PARMS, &parameters);
        attribute(&mut options, TCA_TBF_BURST, &self.burst_bytes.to_ne_bytes());
        message.attributes =
            vec![TcAttribute::Kind("tbf".to_owned()), TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options))];
        message
    }
}

/// Frames that a sender may put into one super-segment on a link of `rate`: as long as the link takes 1 ms for
/// them. Linux makes super-segments large when round trips are short, and would keep 128 KB, 100 ms, below a flow
/// over 10 Mbit/s.
#[must_use]
pub fn most_segments(rate: Option<Rate>, mtu: u32) -> u32 {
    let Some(rate) = rate else { return MOST_SEGMENTS };
    let frames = rate.bytes_in(LONGEST_SUPER_SEGMENT) / (u64::from(mtu) + 38);
    u32::try_from(frames).unwrap_or(MOST_SEGMENTS).clamp(1, MOST_SEGMENTS)
}

/// The request that takes away what is on the interface with `index`, so that the kernel's default is back.
#[must_use]
pub fn removal(index: i32) -> TcMessage {
    root_of(index)
}

fn root_of(index: i32) -> TcMessage {
    let mut message = TcMessage::default();
    message.header.index = index;
    message.header.parent = TcHandle::from(ROOT);
    message
}

fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
    to.extend_from_slice(&length.to_ne_bytes());
    to.extend_from_slice(&kind.to_ne_bytes());
    to.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_size_frames_leave_the_bucket_just_below_the_line_rate() {
        for bps in [10_000_000, 100_000_000, 1_000_000_000] {
            let bucket = TokenBucket::of(Rate::from_bps(bps), 1538, 1500).unwrap();
            let on_the_wire = u64::from(bucket.bytes_per_second) * 8 * 1538 / 1514;
            let share = on_the_wire as f64 / bps as f64;
            assert!((0.9990..0.9997).contains(&share), "{share}");
        }
    }

    #[test]
    fn two_frames_always_fit_into_the_bucket() {
        let bucket = TokenBucket::of(Rate::from_bps(64_000), 9038, 9000).unwrap();
        assert_eq!(bucket.burst_bytes, 2 * 9014);
    }

    #[test]
    fn a_super_segment_takes_a_slow_link_no_longer_than_a_millisecond() {
        let segments = |bps| most_segments(Rate::from_bps(bps), 1500);
        assert_eq!([segments(1_000_000), segments(100_000_000), segments(1_000_000_000)], [1, 8, 81]);
        assert_eq!(most_segments(None, 1500), MOST_SEGMENTS);
    }

    #[test]
    fn a_link_without_a_rate_has_no_bucket() {
        assert_eq!(TokenBucket::of(None, 1538, 1500), None);
        assert_eq!(TokenBucket::of(Rate::from_bps(10_000_000_000), 1538, 1500), None);
    }
}
