//! Why bytes are not a message, and what a switch answers to whoever sent them.

use thiserror::Error;

/// The type and code of the OpenFlow error that answers a message, as numbers of the message's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// `ofp_error_type`.
    pub error_type: u16,
    /// One of the codes of that type.
    pub code: u16,
}

impl Fault {
    pub(crate) const fn new(error_type: u16, code: u16) -> Self {
        Self { error_type, code }
    }

    /// `OFPBRC_BAD_VERSION`, the same numbers in every version.
    pub const BAD_VERSION: Self = Self::new(1, 0);
    /// `OFPBRC_BAD_TYPE`, the same numbers in every version.
    pub const BAD_TYPE: Self = Self::new(1, 1);
    /// `OFPBRC_BAD_LEN`, the same numbers in every version.
    pub const BAD_LENGTH: Self = Self::new(1, 6);
    /// `OFPBAC_BAD_TYPE`, the same numbers in every version.
    pub const BAD_ACTION_TYPE: Self = Self::new(2, 0);
    /// `OFPBAC_BAD_LEN`, the same numbers in every version.
    pub const BAD_ACTION_LENGTH: Self = Self::new(2, 1);
    /// `OFPBAC_BAD_ARGUMENT`, the same numbers in every version.
    pub const BAD_ACTION_ARGUMENT: Self = Self::new(2, 5);
}

/// The fault in a part of a message; the message's decoder adds the transaction to make it a [`DecodeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what} is {given}; allowed is {allowed}")]
pub struct Refusal {
    /// The error that a switch answers.
    pub fault: Fault,
    /// The field or part that is wrong.
    pub what: &'static str,
    /// Its value.
    pub given: u64,
    /// The values that it may have.
    pub allowed: &'static str,
}

impl Refusal {
    pub(crate) const fn new(fault: Fault, what: &'static str, given: u64, allowed: &'static str) -> Self {
        Self { fault, what, given, allowed }
    }
}

/// Why bytes are not a message. A switch answers with `refusal.fault` under the same `xid`; a controller logs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{refusal} (answered with error type {}, code {}, for transaction {xid})", refusal.fault.error_type,
    refusal.fault.code)]
pub struct DecodeError {
    /// Version in the message's header.
    pub version: u8,
    /// Transaction that the answer belongs to; 0 when the header itself is cut short.
    pub xid: u32,
    /// The refusal of the message.
    pub refusal: Refusal,
}

/// A message needs more bytes than its length field can say. Split it: a multipart reply into several, a group into
/// fewer buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the message takes {bytes} bytes; allowed are {}: split it", crate::MAXIMUM_MESSAGE_BYTES)]
pub struct TooLong {
    /// Bytes that the message would take.
    pub bytes: usize,
}

/// A text needs more bytes than its field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the text takes {given} bytes; allowed are {allowed} with the zero that ends it: shorten it")]
pub struct TextTooLong {
    /// Bytes of the text.
    pub given: usize,
    /// Bytes of the field.
    pub allowed: usize,
}
