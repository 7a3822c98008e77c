//! The chunked transfer coding, read piece by piece without keeping the content (RFC 9112, 7.1).

use thiserror::Error;

/// Bytes of a chunk's size line or of all trailers that are read.
const MOST_LINE: usize = 4096;

/// The coding was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the chunked body is malformed: {0}")]
pub struct ChunkError(&'static str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a size line; whether a digit has come, and whether the digits are over.
    Size {
        size: u64,
        digits: bool,
        extension: bool,
    },
    /// In a chunk with so many bytes left.
    Data(u64),
    /// In the line end after a chunk.
    DataEnd,
    /// In the trailers; whether the present line is empty so far.
    Trailer {
        empty: bool,
    },
    Done,
}

const SIZE: State = State::Size { size: 0, digits: false, extension: false };

/// Reads one body.
#[derive(Clone, Debug)]
pub struct ChunkedReader {
    state: State,
    /// Bytes of the present line, or of all trailers.
    line: usize,
}

impl ChunkedReader {
    /// At the beginning of a body.
    pub const fn new() -> Self {
        Self { state: SIZE, line: 0 }
    }

    /// Returns `true` if the body has ended.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Bytes of content that certainly come next, and may be thrown away unseen if [`ChunkedReader::skip`] is told.
    pub const fn content_ahead(&self) -> u64 {
        match self.state {
            State::Data(left) => left,
            _ => 0,
        }
    }

    /// Notes that `bytes`, at most [`ChunkedReader::content_ahead`], were thrown away.
    pub fn skip(&mut self, bytes: u64) {
        if let State::Data(left) = self.state {
            self.state = if bytes < left { State::Data(left - bytes) } else { State::DataEnd };
        }
    }

    /// Reads `bytes` up to their end or the body's: bytes of content, and bytes taken.
    ///
    /// # Errors
    /// When they break the coding.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(u64, usize), ChunkError> {
        let (mut content, mut taken) = (0, 0);
        while taken < bytes.len() && self.state != State::Done {
            if let State::Data(left) = self.state {
                let piece = left.min((bytes.len() - taken) as u64);
                self.skip(piece);
                content += piece;
                taken += usize::try_from(piece).unwrap_or(usize::MAX);
            } else {
                self.state = self.next(bytes[taken])?;
                taken += 1;
            }
        }
        Ok((content, taken))
    }

    fn next(&mut self, byte: u8) -> Result<State, ChunkError> {
        self.line += 1;
        if self.line > MOST_LINE {
            return Err(ChunkError("a line is too long"));
        }
        match self.state {
            State::Size { digits: false, .. } if !byte.is_ascii_hexdigit() => Err(ChunkError("a chunk has no size")),
            State::Size { size, .. } if byte == b'\n' => {
                self.line = 0;
                Ok(if size == 0 { State::Trailer { empty: true } } else { State::Data(size) })
            }
            State::Size { size, extension: false, .. } if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                let size = size.checked_mul(16).and_then(|size| size.checked_add(u64::from(digit)));
                let size = size.ok_or(ChunkError("a chunk is too large"))?;
                Ok(State::Size { size, digits: true, extension: false })
            }
            State::Size { extension: false, .. } if !b"\r; \t".contains(&byte) => {
                Err(ChunkError("a chunk's size is no hexadecimal number"))
            }
            State::Size { size, digits, .. } => Ok(State::Size { size, digits, extension: true }),
            State::DataEnd if byte == b'\r' && self.line == 1 => Ok(State::DataEnd),
            State::DataEnd if byte == b'\n' => {
                self.line = 0;
                Ok(SIZE)
            }
            State::DataEnd => Err(ChunkError("a chunk is longer than its size")),
            State::Trailer { empty } => Ok(match byte {
                b'\n' if empty => State::Done,
                b'\n' => State::Trailer { empty: true },
                b'\r' => State::Trailer { empty },
                _ => State::Trailer { empty: false },
            }),
            State::Data(_) | State::Done => Ok(self.state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_body_is_read_to_its_end_and_no_further() {
        let body = b"4\r\nWiki\r\n1A;name=\"x\"\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nExpires: never\r\n\r\nHTTP/1.1";
        let mut reader = ChunkedReader::new();
        assert_eq!(reader.read(body), Ok((30, body.len() - 8)));
        assert!(reader.is_done());
    }

    #[test]
    fn what_breaks_the_coding_is_refused() {
        for body in ["\r\n", "x\r\n", "4 \r\nWikix", "5g\r\n", "fffffffffffffffff\r\n", "1\r\na\r\r\n", ";x\r\n"] {
            assert!(ChunkedReader::new().read(body.as_bytes()).is_err(), "{body:?}");
        }
        assert!(ChunkedReader::new().read(&[b'0'; MOST_LINE + 1]).is_err());
    }

    proptest! {
        #[test]
        fn any_body_reads_alike_however_it_is_cut(
            sizes in prop::collection::vec(1_usize..200, 0..8), cuts in prop::collection::vec(1_usize..60, 1..60)
        ) {
            let mut body = Vec::new();
            for size in &sizes {
                body.extend(format!("{size:x}\r\n").bytes());
                body.extend(vec![b'0'; *size]);
                body.extend(b"\r\n");
            }
            body.extend(b"0\r\n\r\n");
            let mut reader = ChunkedReader::new();
            let (mut content, mut place) = (0, 0);
            for cut in cuts.iter().cycle() {
                if place == body.len() {
                    break;
                }
                let end = (place + cut).min(body.len());
                let (more, taken) = reader.read(&body[place..end]).unwrap();
                content += more;
                place += taken;
            }
            prop_assert!(reader.is_done());
            prop_assert_eq!(content, sizes.iter().sum::<usize>() as u64);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok((content, taken)) = ChunkedReader::new().read(&bytes) {
                prop_assert!(taken <= bytes.len() && content <= taken as u64);
            }
        }
    }
}
