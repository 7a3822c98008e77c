//! The bytes that came in: in order for the owner to read, and out of order until the gap before them is filled.

use std::collections::{BTreeMap, VecDeque};

/// SACK blocks remembered; a segment carries at most three of them.
const BLOCKS: usize = 4;

/// Real bytes of one piece at most, so that memory is given back while a slow reader lags behind.
const PIECE_BYTES: usize = 64 * 1024;

/// Real bytes followed by bytes that are only counted.
#[derive(Debug, Default)]
struct Piece {
    bytes: Vec<u8>,
    /// The number of `bytes` that are read already.
    read: usize,
    filler: u64,
}

impl Piece {
    fn length(&self) -> u64 {
        (self.bytes.len() - self.read) as u64 + self.filler
    }

    /// Takes what follows it in, when that leaves its real bytes in front of its filler.
    fn join(&mut self, bytes: &[u8], filler: u64) -> bool {
        if !bytes.is_empty() && (self.filler > 0 || self.bytes.len() >= PIECE_BYTES) {
            return false;
        }
        self.bytes.extend_from_slice(bytes);
        self.filler += filler;
        true
    }

    /// Forgets its first `count` bytes.
    fn skip(&mut self, count: u64) {
        let real = count.min((self.bytes.len() - self.read) as u64);
        self.read += real as usize;
        self.filler -= (count - real).min(self.filler);
    }
}

/// The result of adding a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inserted {
    /// Bytes that came into order by it.
    pub in_order: u64,
    /// It filled (a part of) a gap: data behind it waited.
    pub filled: bool,
    /// The first stretch of it that had come before (RFC 2883).
    pub duplicate: Option<(u64, u64)>,
}

/// The buffer.
#[derive(Debug)]
pub(super) struct ReceiveBuffer {
    ready: VecDeque<Piece>,
    unread: u64,
    /// The number expected next.
    next: u64,
    early: BTreeMap<u64, Piece>,
    early_bytes: u64,
    /// Blocks of early data, the latest to change first (RFC 2018, 4).
    blocks: [Option<(u64, u64)>; BLOCKS],
}

impl ReceiveBuffer {
    /// Nothing yet; the first byte has the number `next`.
    pub fn new(next: u64) -> Self {
        Self { ready: VecDeque::new(), unread: 0, next, early: BTreeMap::new(), early_bytes: 0, blocks: [None; BLOCKS] }
    }

    /// The number expected next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The FIN, which is at [`ReceiveBuffer::next`], is taken.
    pub fn step_over_fin(&mut self) {
        self.next += 1;
    }

    /// Bytes in order that the owner has not read.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Bytes held, in order or early.
    pub fn held(&self) -> u64 {
        self.unread + self.early_bytes
    }

    /// Returns `true` if data waits behind a gap.
    pub fn has_gap(&self) -> bool {
        !self.early.is_empty()
    }

    /// From what is expected next to the end of the last early data; zero without any.
    pub fn early_span(&self) -> u64 {
        self.early.last_key_value().map_or(0, |(start, piece)| start + piece.length() - self.next)
    }

    /// Blocks of early data, the latest to change first.
    pub fn blocks(&self) -> &[Option<(u64, u64)>] {
        &self.blocks
    }

    /// Takes in a segment's payload: `bytes`, then `filler` more, the first of them at `start`.
    pub fn insert(&mut self, start: u64, bytes: &[u8], filler: u64) -> Inserted {
        let end = start + bytes.len() as u64 + filler;
        let mut inserted = Inserted::default();
        if start < self.next {
            inserted.duplicate = Some((start, end.min(self.next)));
        }
        if end <= self.next {
            return inserted;
        }
        let (start, bytes, filler) = clip(start, bytes, filler, self.next, end);
        if start > self.next {
            self.hold(start, bytes, filler, &mut inserted);
            return inserted;
        }
        let before = self.next;
        self.deliver(bytes, filler);
        if !self.early.is_empty() {
            inserted.filled = true;
            self.join_early(&mut inserted);
        }
        inserted.in_order = self.next - before;
        inserted
    }

    /// Appends what comes next to what can be read.
    fn deliver(&mut self, bytes: &[u8], filler: u64) {
        let length = bytes.len() as u64 + filler;
        self.next += length;
        self.unread += length;
        if !self.ready.back_mut().is_some_and(|last| last.join(bytes, filler)) {
            self.ready.push_back(Piece { bytes: bytes.to_vec(), read: 0, filler });
        }
    }

    /// Moves early data that has become contiguous to what can be read.
    fn join_early(&mut self, inserted: &mut Inserted) {
        while let Some(entry) = self.early.first_entry() {
            let start = *entry.key();
            if start > self.next {
                break;
            }
            let mut piece = entry.remove();
            let end = start + piece.length();
            self.early_bytes -= piece.length();
            if start < self.next {
                let known = (start, end.min(self.next));
                inserted.duplicate.get_or_insert(known);
            }
            if end > self.next {
                piece.skip(self.next - start);
                self.deliver(&piece.bytes[piece.read..], piece.filler);
            }
        }
        let next = self.next;
        let mut kept = [None; BLOCKS];
        let live = self.blocks.iter().flatten().filter(|block| block.1 > next);
        for (place, block) in kept.iter_mut().zip(live) {
            *place = Some(*block);
        }
        self.blocks = kept;
    }

    /// Keeps data that lies behind a gap; of what is there already, the first to come stays.
    fn hold(&mut self, start: u64, bytes: &[u8], filler: u64, inserted: &mut Inserted) {
        let end = start + bytes.len() as u64 + filler;
        let mut at = start;
        while at < end {
            let before = self.early.range(..=at).next_back().map(|(first, piece)| first + piece.length());
            if let Some(covered) = before.filter(|covered| *covered > at) {
                let known = (at, covered.min(end));
                let duplicate = inserted.duplicate.get_or_insert(known);
                if duplicate.1 == known.0 {
                    duplicate.1 = known.1;
                }
                at = covered;
                continue;
            }
            let until = self.early.range(at..end).next().map_or(end, |(first, _)| *first);
            let (_, part, part_filler) = clip(start, bytes, filler, at, until);
            self.early_bytes += until - at;
            let joined = before == Some(at)
                && self.early.range_mut(..at).next_back().is_some_and(|(_, piece)| piece.join(part, part_filler));
            if !joined {
                self.early.insert(at, Piece { bytes: part.to_vec(), read: 0, filler: part_filler });
            }
            at = until;
        }
        self.remember(start, end);
    }

    /// Puts the block of `start` to `end` first, grown by those that it touches.
    fn remember(&mut self, start: u64, end: u64) {
        let mut latest = (start, end);
        let mut kept = [None; BLOCKS];
        let mut count = 1;
        for block in self.blocks.iter().flatten() {
            if block.0 <= latest.1 && latest.0 <= block.1 {
                latest = (latest.0.min(block.0), latest.1.max(block.1));
            } else if count < BLOCKS {
                kept[count] = Some(*block);
                count += 1;
            }
        }
        kept[0] = Some(latest);
        self.blocks = kept;
    }

    /// Reads into `buffer`; filler as zeros. Gives how many.
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buffer.len() {
            let Some(piece) = self.ready.front_mut() else { break };
            let rest = &mut buffer[done..];
            let real = (piece.bytes.len() - piece.read).min(rest.len());
            rest[..real].copy_from_slice(&piece.bytes[piece.read..piece.read + real]);
            let zeros = usize::try_from(piece.filler).unwrap_or(usize::MAX).min(rest.len() - real);
            rest[real..real + zeros].fill(0);
            piece.skip((real + zeros) as u64);
            done += real + zeros;
            if piece.length() == 0 {
                self.ready.pop_front();
            }
        }
        self.unread -= done as u64;
        done
    }

    /// Throws up to `most` bytes away; gives how many.
    pub fn discard(&mut self, most: u64) -> u64 {
        let mut done = 0;
        while done < most {
            let Some(piece) = self.ready.front_mut() else { break };
            let count = piece.length().min(most - done);
            piece.skip(count);
            done += count;
            if piece.length() == 0 {
                self.ready.pop_front();
            }
        }
        self.unread -= done;
        done
    }

    /// Forgets everything that the owner has not read.
    pub fn clear(&mut self) {
        self.ready.clear();
        self.early.clear();
        self.unread = 0;
        self.early_bytes = 0;
        self.blocks = [None; BLOCKS];
    }
}

/// The part from `from` to `to` of a payload that begins at `start`.
fn clip(start: u64, bytes: &[u8], filler: u64, from: u64, to: u64) -> (u64, &[u8], u64) {
    let first = start.max(from);
    let real_end = start + bytes.len() as u64;
    let last = to.min(real_end + filler).max(first);
    let real = |at: u64| (at.clamp(start, real_end) - start) as usize;
    let part = &bytes[real(first)..real(last)];
    (first, part, last - first - part.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_are_told_latest_first_and_go_when_the_gap_is_filled() {
        let mut buffer = ReceiveBuffer::new(0);
        buffer.insert(10, b"abcde", 0);
        buffer.insert(20, b"", 5);
        buffer.insert(15, b"", 2);
        assert_eq!(buffer.blocks()[..3], [Some((10, 17)), Some((20, 25)), None]);
        let inserted = buffer.insert(0, b"", 10);
        assert_eq!(inserted, Inserted { in_order: 17, filled: true, duplicate: None });
        assert_eq!((buffer.blocks()[0], buffer.held()), (Some((20, 25)), 22));
        assert_eq!(buffer.early_span(), 25 - 17);
        assert_eq!(buffer.insert(19, b"", 3).duplicate, Some((20, 22)));
        assert_eq!(buffer.insert(3, b"", 4).duplicate, Some((3, 7)));
    }

    proptest! {
        #[test]
        fn any_pieces_in_any_order_give_the_stream(pieces in prop::collection::vec((0_u64..300, 1_usize..60,
            0_u64..30), 1..80)) {
            let byte = |at: u64| (at % 251) as u8 + 1;
            let mut buffer = ReceiveBuffer::new(1000);
            let mut got = Vec::new();
            for (start, length, filler) in pieces {
                let bytes: Vec<_> = (start..start + length as u64).map(byte).collect();
                buffer.insert(1000 + start, &bytes, filler);
                let mut out = [0xff; 37];
                let count = buffer.read(&mut out);
                got.extend_from_slice(&out[..count]);
            }
            let mut rest = vec![0xff; 2000];
            let count = buffer.read(&mut rest);
            got.extend_from_slice(&rest[..count]);
            prop_assert_eq!(got.len() as u64, buffer.next() - 1000);
            prop_assert_eq!(buffer.unread(), 0);
            let wrong = got.iter().enumerate().find(|(at, value)| **value != 0 && **value != byte(*at as u64));
            prop_assert_eq!(wrong, None);
        }
    }
}
