//! Parts of a message that go out as the bytes that somebody wrote.

use std::sync::Arc;

use crate::error::Refusal;
use crate::wire::{Reader, Wire};

/// A part of a message: a value, or the bytes of one that a controller wrote, which a switch tells back as they are.
///
/// Values cannot stand in for those bytes: a mask of all ones may be written or left out, fields have numbers of
/// several classes, and fields that a match does not look at may hold anything. Reading always gives
/// [`Verbatim::Value`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verbatim<T> {
    /// A value.
    Value(T),
    /// Bytes that were read as such a value in the same version.
    Bytes(Arc<[u8]>),
}

impl<T> Verbatim<T> {
    /// The value; bytes have none.
    #[must_use]
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Bytes(_) => None,
        }
    }
}

impl<T: Wire> Wire for Verbatim<T> {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        T::read(reader).map(Self::Value)
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Value(value) => value.write(out),
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
        }
    }
}

#[cfg(any(test, feature = "arbitrary"))]
impl<'a, T: arbitrary::Arbitrary<'a>> arbitrary::Arbitrary<'a> for Verbatim<T> {
    fn arbitrary(source: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        source.arbitrary().map(Self::Value)
    }
}

/// The bytes of `message` from `start` on; none where it is shorter.
pub(crate) fn from(message: &[u8], start: usize) -> Arc<[u8]> {
    message.get(start..).unwrap_or_default().into()
}

/// The first `length` of those bytes, filled up with zeros to a multiple of eight: senders may leave the last
/// padding out.
pub(crate) fn padded(bytes: &[u8], length: usize) -> Arc<[u8]> {
    let whole = length.next_multiple_of(8);
    let mut part = bytes.get(..whole.min(bytes.len())).unwrap_or_default().to_vec();
    part.resize(whole, 0);
    part.into()
}
