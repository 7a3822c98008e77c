//! Frames that the switch keeps while a controller thinks about them.

use std::collections::VecDeque;

use twinnet_openflow::v13::{BadRequest, ErrorKind};

/// Frames that are kept; the oldest goes when one more comes.
pub(super) const BUFFERS: u32 = 256;

/// The frames, by number.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    kept: VecDeque<(u32, u32, Vec<u8>)>,
    next: u32,
}

impl Buffers {
    /// Keeps a frame that came in by `in_port`; gives its number.
    pub(super) fn keep(&mut self, in_port: u32, bytes: &[u8]) -> u32 {
        if self.kept.len() >= BUFFERS as usize {
            self.kept.pop_front();
        }
        // 1 to 2^31: neither 0 nor OFP_NO_BUFFER.
        self.next = self.next % (1 << 31) + 1;
        self.kept.push_back((self.next, in_port, bytes.to_vec()));
        self.next
    }

    /// Takes a frame out, and the port that it came in by.
    pub(super) fn take(&mut self, number: u32) -> Result<(u32, Vec<u8>), ErrorKind> {
        let place = self.kept.iter().position(|(kept, ..)| *kept == number);
        let found = place.and_then(|place| self.kept.remove(place));
        let given_out = (1..=self.next).contains(&number);
        let code = if given_out { BadRequest::BufferEmpty } else { BadRequest::BufferUnknown };
        found.map(|(_, in_port, bytes)| (in_port, bytes)).ok_or(ErrorKind::BadRequest(code))
    }
}
