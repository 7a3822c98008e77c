//! The eight bytes that begin every message of every version.

use crate::error::{DecodeError, Fault, Refusal, TooLong};
use crate::wire::{set_length, Reader, Wire};
use crate::MAXIMUM_MESSAGE_BYTES;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 8;

/// The contents of the header of a decoded message beside the message's type and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version: 1 for OpenFlow 1.0, 4 for OpenFlow 1.3.
    pub version: u8,
    /// Transaction: an answer carries its request's.
    pub xid: u32,
}

/// Reads the header of `bytes`, which must be one whole message of `version` (a hello may be of any), and hands
/// type and body to `body`.
pub(crate) fn decode<M>(
    bytes: &[u8],
    version: u8,
    body: impl FnOnce(u8, &mut Reader) -> Result<M, Refusal>,
) -> Result<(Header, M), DecodeError> {
    let Some(([given, kind, high, low, xid @ ..], rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        let short = Refusal::new(Fault::BAD_LENGTH, "the length of a message", bytes.len() as u64, "8 to 65535");
        return Err(DecodeError { version: bytes.first().copied().unwrap_or(0), xid: 0, refusal: short });
    };
    let header = Header { version: *given, xid: u32::from_be_bytes(*xid) };
    let read = || {
        if *given != version && *kind != HELLO {
            let allowed = if version == 1 { "1" } else { "4" };
            return Err(Refusal::new(Fault::BAD_VERSION, "the version", u64::from(*given), allowed));
        }
        let length = u16::from_be_bytes([*high, *low]);
        if usize::from(length) != bytes.len() {
            let allowed = "the number of bytes that the message has";
            return Err(Refusal::new(Fault::BAD_LENGTH, "the header's length", u64::from(length), allowed));
        }
        let mut reader = Reader::new(rest, Fault::BAD_LENGTH);
        let message = body(*kind, &mut reader)?;
        reader.finish()?;
        Ok(message)
    };
    read().map(|message| (header, message)).map_err(|refusal| DecodeError { version: *given, xid: header.xid, refusal })
}

/// `OFPT_HELLO` of every version.
const HELLO: u8 = 0;

/// Appends a message to `out`, or leaves `out` as it was when the message is too long.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    version: u8,
    kind: u8,
    xid: u32,
    body: impl FnOnce(&mut Vec<u8>),
) -> Result<(), TooLong> {
    let start = out.len();
    out.extend_from_slice(&[version, kind, 0, 0]);
    xid.write(out);
    body(out);
    let bytes = out.len() - start;
    if bytes > MAXIMUM_MESSAGE_BYTES {
        out.truncate(start);
        return Err(TooLong { bytes });
    }
    set_length(out, start, 2);
    Ok(())
}
