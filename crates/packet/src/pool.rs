//! Frames for use again: what model hosts send and receive costs no allocation in the steady state.

use crate::Frame;

/// Frames kept; more are given back to the allocator.
const KEPT: usize = 4096;
/// Room for the headers of a model's frame and the little of a payload that is real.
const ROOM: usize = 160;
/// Buffers longer than this are not kept: a few large frames must not hold memory for ever.
const LARGEST_KEPT: usize = 2048;

/// A stack of frames that are not in use.
#[derive(Debug, Default)]
pub struct FramePool {
    // Boxes are what is kept: handing one out costs no allocation.
    #[allow(clippy::vec_box)]
    frames: Vec<Box<Frame>>,
}

impl FramePool {
    /// An empty frame with room for headers.
    pub fn take(&mut self) -> Box<Frame> {
        self.frames.pop().unwrap_or_else(|| Box::new(Frame::new(Vec::with_capacity(ROOM))))
    }

    /// Takes back a frame that is no longer needed.
    pub fn recycle(&mut self, mut frame: Box<Frame>) {
        let capacity = frame.bytes.capacity();
        if self.frames.len() < KEPT && (ROOM..=LARGEST_KEPT).contains(&capacity) {
            let mut bytes = std::mem::take(&mut frame.bytes);
            bytes.clear();
            *frame = Frame::new(bytes);
            self.frames.push(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_as_new_with_its_buffer() {
        let mut pool = FramePool::default();
        let mut frame = pool.take();
        frame.bytes.extend_from_slice(&[1, 2, 3]);
        (frame.elided, frame.queue, frame.hops) = (7, 2, 9);
        let buffer = frame.bytes.as_ptr();
        pool.recycle(frame);
        let again = pool.take();
        assert_eq!((again.length(), again.queue, again.hops, again.bytes.as_ptr()), (0, 0, 0, buffer));
    }
}
