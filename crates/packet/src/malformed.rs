//! Why bytes are not the header that they were taken for.

use thiserror::Error;

/// Why bytes are not the header that they were taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// There are fewer bytes than the header (or the length it states) needs.
    #[error("{given} bytes where {needed} are needed")]
    Truncated {
        /// Bytes that there are.
        given: usize,
        /// Bytes that there would have to be.
        needed: usize,
    },
    /// A field has a value that the protocol does not allow.
    #[error("{field} is {value}, which the protocol does not allow")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// The checksum does not verify.
    #[error("the checksum is wrong")]
    Checksum,
}

/// `Ok` when `bytes` holds at least `needed`.
#[inline]
pub(crate) fn need(bytes: &[u8], needed: usize) -> Result<(), Malformed> {
    if bytes.len() < needed {
        return Err(Malformed::Truncated { given: bytes.len(), needed });
    }
    Ok(())
}
