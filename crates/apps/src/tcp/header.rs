//! The announcement of a flow by our TCP streams: the first 12 bytes of the stream, which count as its payload.
//!
//! ```text
//!  0                               8              12
//! +-------------------------------+---------------+- - - -
//! | "twinnet", version 1          | flow, be      | any bytes
//! +-------------------------------+---------------+- - - -
//! ```
//!
//! A stream that begins otherwise is a foreign sender's: it is counted without a flow number.

const MAGIC: [u8; 8] = *b"twinnet\x01";

/// Bytes of the announcement.
pub const LENGTH: usize = 12;

/// The announcement at the beginning of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// The flow's number.
    pub flow: u32,
}

/// The contents of the first bytes of a stream tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// They may become an announcement: more are needed.
    Partial,
    /// They are one.
    Ours(StreamHeader),
    /// They are not one.
    Foreign,
}

impl StreamHeader {
    /// The announcement as bytes.
    #[must_use]
    pub fn emit(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
        bytes[MAGIC.len()..].copy_from_slice(&self.flow.to_be_bytes());
        bytes
    }
}

impl Opening {
    /// Judges the first bytes of a stream.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let compared = bytes.len().min(MAGIC.len());
        if bytes[..compared] != MAGIC[..compared] {
            return Self::Foreign;
        }
        match bytes.get(MAGIC.len()..LENGTH).and_then(|flow| flow.try_into().ok()) {
            Some(flow) => Self::Ours(StreamHeader { flow: u32::from_be_bytes(flow) }),
            None => Self::Partial,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_is_recognised_byte_by_byte() {
        let bytes = StreamHeader { flow: 0x0102_0304 }.emit();
        for length in 0..LENGTH {
            assert_eq!(Opening::of(&bytes[..length]), Opening::Partial, "{length} bytes");
        }
        assert_eq!(Opening::of(&bytes), Opening::Ours(StreamHeader { flow: 0x0102_0304 }));
    }

    #[test]
    fn another_beginning_is_foreign_at_its_first_wrong_byte() {
        assert_eq!(Opening::of(b"GET"), Opening::Foreign);
        assert_eq!(Opening::of(b"twinnet\x02"), Opening::Foreign);
        assert_eq!(Opening::of(&[0; 40]), Opening::Foreign);
    }
}
