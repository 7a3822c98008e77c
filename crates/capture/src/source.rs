//! Bytes of a capture, in pieces: what is read is held only until it is used.
//!
//! A thread of its own reads ahead - and decompresses ahead, where a source reads another - so that the kernel's
//! copying and the analysis go on at the same time. It holds a few pieces, and ends when the source is dropped or
//! the input ends.

use std::io::{self, Read};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;

/// Bytes read at a time; small enough to stay in a processor's cache.
const PIECE: usize = 256 * 1024;
/// Room before each piece for what is left of the one before it.
const HEAD: usize = 16 * 1024;
/// Pieces that are read ahead.
const AHEAD: usize = 4;

/// The piece that the reading thread hands over: a buffer whose bytes from [`HEAD`] on, as many as told, were read; 0
/// at the end.
type Piece = io::Result<(Vec<u8>, usize)>;

/// A window that moves over the input.
pub(crate) struct Source {
    pieces: Receiver<Piece>,
    used: SyncSender<Vec<u8>>,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// The offset in the (uncompressed) input at which the window begins.
    offset: u64,
    ended: bool,
    damage: Option<String>,
}

impl Source {
    /// A source that begins to read at once.
    ///
    /// # Errors
    /// The system permits no further thread.
    pub(crate) fn new(input: Box<dyn Read + Send>) -> io::Result<Self> {
        let (send_piece, pieces) = sync_channel(AHEAD);
        let (used, buffers) = sync_channel(AHEAD + 2);
        thread::Builder::new().name("capture".to_owned()).spawn(move || read_ahead(input, &send_piece, &buffers))?;
        Ok(Self { pieces, used, buffer: Vec::new(), begin: 0, end: 0, offset: 0, ended: false, damage: None })
    }

    /// Returns whether the next `count` bytes are there; waits for what is missing.
    ///
    /// # Errors
    /// The error of the input, unless it is that compressed bytes are damaged: then the input ends there, and
    /// [`Source::damage`] says why.
    #[inline]
    pub(crate) fn need(&mut self, count: usize) -> io::Result<bool> {
        if self.end - self.begin >= count {
            return Ok(true);
        }
        self.fill(count)
    }

    #[cold]
    fn fill(&mut self, count: usize) -> io::Result<bool> {
        while self.end - self.begin < count && !self.ended {
            let Ok(piece) = self.pieces.recv() else {
                // It tells of the end before it goes; going without a word is a defect, which must not pass for the
                // end.
                self.damage = Some("its reading broke off".to_owned());
                self.ended = true;
                break;
            };
            match piece {
                Ok((_, 0)) => self.ended = true,
                Ok((piece, length)) => self.append(piece, length),
                Err(error) => match error.kind() {
                    io::ErrorKind::UnexpectedEof => self.ended = true,
                    io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                        self.damage = Some(format!("its compression is damaged: {error}"));
                        self.ended = true;
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(self.end - self.begin >= count)
    }

    /// Puts a piece behind what is left.
    fn append(&mut self, mut piece: Vec<u8>, length: usize) {
        let left = self.end - self.begin;
        if left <= HEAD {
            piece[HEAD - left..HEAD].copy_from_slice(&self.buffer[self.begin..self.end]);
            std::mem::swap(&mut self.buffer, &mut piece);
            (self.begin, self.end) = (HEAD - left, HEAD + length);
        } else {
            self.buffer.copy_within(self.begin..self.end, 0);
            self.buffer.truncate(left);
            self.buffer.extend_from_slice(&piece[HEAD..HEAD + length]);
            (self.begin, self.end) = (0, left + length);
        }
        if piece.len() == HEAD + PIECE {
            // Where the thread has ended, nobody needs it.
            let _ = self.used.try_send(piece);
        }
    }

    /// Bytes that are there already, all of them.
    #[inline]
    pub(crate) fn window(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Goes on by `count` bytes, which [`Source::need`] has found.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.begin);
        self.begin += count;
        self.offset += count as u64;
    }

    /// The last `count` bytes that were consumed; nothing was read since.
    #[inline]
    pub(crate) fn consumed(&self, count: usize) -> &[u8] {
        &self.buffer[self.begin.saturating_sub(count)..self.begin]
    }

    /// Goes on by `count` bytes without keeping them; false when the input ends before.
    pub(crate) fn discard(&mut self, mut count: u64) -> io::Result<bool> {
        while count > 0 {
            let step = usize::try_from(count).unwrap_or(usize::MAX).min(PIECE);
            let whole = self.need(step)?;
            let step = step.min(self.end - self.begin);
            self.consume(step);
            if !whole {
                return Ok(false);
            }
            count -= step as u64;
        }
        Ok(true)
    }

    /// Bytes consumed so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns what is wrong with the compression, when the input ended for that.
    pub(crate) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }
}

/// Reads pieces until the input ends, fails, or nobody takes them any more.
fn read_ahead(mut input: Box<dyn Read + Send>, pieces: &SyncSender<Piece>, buffers: &Receiver<Vec<u8>>) {
    loop {
        let mut piece = buffers.try_recv().unwrap_or_else(|_| vec![0; HEAD + PIECE]);
        let mut length = 0;
        let mut failure = None;
        while length < PIECE {
            match input.read(&mut piece[HEAD + length..]) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let ended = length < PIECE;
        if length > 0 && pieces.send(Ok((piece, length))).is_err() {
            return;
        }
        if ended {
            let _ = pieces.send(failure.map_or(Ok((Vec::new(), 0)), Err));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn numbers(count: usize) -> Vec<u8> {
        (0..count).map(|number| (number % 251) as u8).collect()
    }

    #[test]
    fn windows_of_every_size_see_the_input_in_order() {
        let bytes = numbers(3 * PIECE + 17);
        for window in [7, HEAD - 1, HEAD + 1, PIECE + 5] {
            let mut source = Source::new(Box::new(Cursor::new(bytes.clone()))).unwrap();
            let mut at = 0;
            while source.need(window).unwrap() {
                assert_eq!(source.window()[..window], bytes[at..at + window]);
                source.consume(window);
                assert_eq!(source.consumed(window), &bytes[at..at + window]);
                at += window;
            }
            assert_eq!((source.window(), source.offset()), (&bytes[at..], at as u64));
        }
    }

    struct Faulty;

    impl Read for Faulty {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("a defect of a decompressor")
        }
    }

    #[test]
    fn a_reader_that_fails_without_a_word_is_damage_not_the_end() {
        let mut source = Source::new(Box::new(Faulty)).unwrap();
        assert!(!source.need(1).unwrap());
        assert_eq!(source.damage(), Some("its reading broke off"));
    }

    #[test]
    fn what_is_passed_over_is_counted() {
        let bytes = numbers(2 * PIECE);
        let mut source = Source::new(Box::new(Cursor::new(bytes))).unwrap();
        assert!(source.discard(PIECE as u64 + 3).unwrap());
        assert_eq!(source.offset(), PIECE as u64 + 3);
        assert!(!source.discard(PIECE as u64).unwrap());
        assert_eq!(source.offset(), 2 * PIECE as u64);
    }
}
