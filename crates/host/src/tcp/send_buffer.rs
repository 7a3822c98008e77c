//! The bytes that the owner gave and the peer has not acknowledged: a rope of real bytes and of runs that are only
//! counted.

use std::collections::VecDeque;

/// Real bytes of one run at most, so that memory is given back in steps while a long write is acknowledged.
const RUN_BYTES: usize = 64 * 1024;

/// Neighbouring bytes of one kind.
#[derive(Debug)]
struct Run {
    start: u64,
    length: u64,
    /// As many as `length` says, or none: filler.
    bytes: Vec<u8>,
}

impl Run {
    fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// The rope. Positions are sequence numbers.
#[derive(Debug)]
pub(super) struct SendBuffer {
    runs: VecDeque<Run>,
    start: u64,
    end: u64,
}

impl SendBuffer {
    /// Nothing yet; the first byte will have the number `start`.
    pub fn new(start: u64) -> Self {
        Self { runs: VecDeque::new(), start, end: start }
    }

    /// The number after the last byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of bytes that it holds.
    pub fn held(&self) -> u64 {
        self.end - self.start
    }

    /// Appends real bytes.
    pub fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = match self.runs.back() {
                Some(last) if !last.bytes.is_empty() && last.bytes.len() < RUN_BYTES => RUN_BYTES - last.bytes.len(),
                _ => {
                    self.runs.push_back(Run { start: self.end, length: 0, bytes: Vec::new() });
                    RUN_BYTES
                }
            };
            let (taken, rest) = bytes.split_at(bytes.len().min(room));
            if let Some(last) = self.runs.back_mut() {
                last.bytes.extend_from_slice(taken);
                last.length += taken.len() as u64;
            }
            self.end += taken.len() as u64;
            bytes = rest;
        }
    }

    /// Appends `length` bytes that are only counted.
    pub fn append_filler(&mut self, length: u64) {
        if length == 0 {
            return;
        }
        match self.runs.back_mut() {
            Some(last) if last.bytes.is_empty() => last.length += length,
            _ => self.runs.push_back(Run { start: self.end, length, bytes: Vec::new() }),
        }
        self.end += length;
    }

    /// Forgets everything before `to`.
    pub fn release(&mut self, to: u64) {
        self.start = self.start.max(to.min(self.end));
        while self.runs.front().is_some_and(|run| run.end() <= self.start) {
            self.runs.pop_front();
        }
    }

    /// Appends the real bytes of the `length` bytes from `from` on to `bytes`; gives how many follow that are only
    /// counted. Filler in front of real bytes is written as zeros, for a segment is real bytes first.
    pub fn copy(&self, from: u64, length: u32, bytes: &mut Vec<u8>) -> u32 {
        let end = (from + u64::from(length)).min(self.end);
        let mut at = from;
        let mut filler = 0;
        let first = self.runs.partition_point(|run| run.end() <= from);
        for run in self.runs.range(first..) {
            if at >= end {
                break;
            }
            let span = run.end().min(end) - at;
            if run.bytes.is_empty() {
                filler += span;
            } else {
                bytes.resize(bytes.len() + filler as usize, 0);
                filler = 0;
                let offset = (at - run.start) as usize;
                bytes.extend_from_slice(&run.bytes[offset..offset + span as usize]);
            }
            at += span;
        }
        filler as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_real_bytes_first_and_filler_last() {
        let mut buffer = SendBuffer::new(100);
        buffer.append(b"head");
        buffer.append_filler(10);
        buffer.append(b"tail");
        buffer.append_filler(5);
        let copy = |from, length| {
            let mut bytes = Vec::new();
            let elided = buffer.copy(from, length, &mut bytes);
            (bytes, elided)
        };
        assert_eq!(copy(100, 8), (b"head".to_vec(), 4));
        assert_eq!(copy(110, 6), (b"\0\0\0\0ta".to_vec(), 0));
        assert_eq!(copy(102, 21), (b"ad\0\0\0\0\0\0\0\0\0\0tail".to_vec(), 5));
    }

    #[test]
    fn what_is_acknowledged_is_forgotten_and_the_rest_stays() {
        let mut buffer = SendBuffer::new(0);
        buffer.append(&vec![7; 3 * RUN_BYTES]);
        buffer.release(2 * RUN_BYTES as u64 + 1);
        assert_eq!((buffer.held(), buffer.runs.len()), (RUN_BYTES as u64 - 1, 1));
        let mut bytes = Vec::new();
        assert_eq!(buffer.copy(2 * RUN_BYTES as u64 + 1, 3, &mut bytes), 0);
        assert_eq!(bytes, [7; 3]);
    }
}
