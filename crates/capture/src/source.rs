//! Bytes of a capture, in pieces: what is read is held only until it is used.

use std::io::{self, Read};

/// Bytes read at a time; small enough to stay in a processor's cache.
const CHUNK: usize = 256 * 1024;

/// A window that moves over the input.
pub(crate) struct Source {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Where in the (uncompressed) input the window begins.
    offset: u64,
    ended: bool,
    damage: Option<String>,
}

impl Source {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input, buffer: vec![0; CHUNK], begin: 0, end: 0, offset: 0, ended: false, damage: None }
    }

    /// Whether the next `count` bytes are there; reads what is missing.
    ///
    /// # Errors
    /// What the input says, unless it is that compressed bytes are damaged: then the input ends there, and [`Source::damage`] says why.
    #[inline]
    pub(crate) fn need(&mut self, count: usize) -> io::Result<bool> {
        if self.end - self.begin >= count {
            return Ok(true);
        }
        self.fill(count)
    }

    #[cold]
    fn fill(&mut self, count: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        if count > self.buffer.len() {
            self.buffer.resize(count.next_multiple_of(CHUNK), 0);
        }
        while self.end < count && !self.ended {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::UnexpectedEof => self.ended = true,
                    io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                        self.damage = Some(format!("its compression is damaged: {error}"));
                        self.ended = true;
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(self.end >= count)
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
            let step = usize::try_from(count).unwrap_or(usize::MAX).min(CHUNK);
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

    /// What is wrong with the compression, when the input ended for that.
    pub(crate) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }
}
