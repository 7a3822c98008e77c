//! The places where a train may be cut, and the lengths of its frames.

use twinnet_packet::Frame;

/// Bytes at the link layer of the first frame of `train` (of all of it when it is one frame).
pub(super) fn first_frame_bytes(train: &Frame) -> u64 {
    match train.offload {
        Some(offload) if train.frames() > 1 => u64::from(offload.header) + u64::from(offload.segment),
        _ => train.link_bytes(),
    }
}

/// Returns the number of whole frames from the front of `train` that fit into `bytes`.
pub(super) fn frames_within(train: &Frame, bytes: u64) -> u64 {
    if train.link_bytes() <= bytes {
        return train.frames();
    }
    (bytes / first_frame_bytes(train).max(1)).min(train.frames() - 1)
}

/// Gives every frame that `train` stands for to `take`, in order. A discipline that judges frames one by one begins
/// with this.
pub(super) fn for_each_frame(train: Box<Frame>, mut take: impl FnMut(Box<Frame>)) {
    if train.offload.is_none() {
        take(train);
    } else {
        train.into_frames().for_each(take);
    }
}
