//! Reading and writing with checked lengths. Nothing is reserved for a length that the bytes have not shown to be
//! there.

use std::borrow::Cow;
use std::fmt;

use crate::error::{Fault, Refusal, TextTooLong};

/// Bytes of a message that are still to be read, and the fault that too few of them are.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    short: Fault,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8], short: Fault) -> Self {
        Self { bytes, short }
    }

    pub(crate) const fn remaining(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The fault of a length that does not fit, with the bytes that there are.
    #[cold]
    pub(crate) const fn short(&self, given: usize) -> Refusal {
        Refusal::new(self.short, "the length", given as u64, "what the type takes, within what contains it")
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Refusal> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else { return Err(self.short(self.bytes.len())) };
        self.bytes = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), Refusal> {
        self.take(count).map(drop)
    }

    /// Takes what is left of the padding to a multiple of eight after `length` bytes; senders that leave out the
    /// last one are heard.
    #[inline]
    pub(crate) fn skip_padding(&mut self, length: usize) {
        let padding = (length.next_multiple_of(8) - length).min(self.bytes.len());
        self.bytes = &self.bytes[padding..];
    }

    pub(crate) const fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes;
        self.bytes = &[];
        rest
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let Some((taken, rest)) = self.bytes.split_first_chunk() else { return Err(self.short(self.bytes.len())) };
        self.bytes = rest;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn get<T: Wire>(&mut self) -> Result<T, Refusal> {
        T::read(self)
    }

    /// The big-endian number of 16 bits at `offset`, which stays unread.
    #[inline]
    pub(crate) fn peek_u16(&self, offset: usize) -> Result<u16, Refusal> {
        match self.bytes.get(offset..offset + 2) {
            Some(pair) => Ok(u16::from_be_bytes([pair[0], pair[1]])),
            None => Err(self.short(self.bytes.len())),
        }
    }

    /// The next `count` bytes, whose own lengths fail with `short`.
    #[inline]
    pub(crate) fn part(&mut self, count: usize, short: Fault) -> Result<Self, Refusal> {
        let within = Reader::new(self.bytes, short);
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else { return Err(within.short(count)) };
        self.bytes = rest;
        Ok(Self { bytes: taken, short })
    }

    /// The next structure, whose own length stands at `offset` and is at least `minimum`.
    #[inline]
    pub(crate) fn sized(&mut self, offset: usize, minimum: usize) -> Result<Self, Refusal> {
        let length = usize::from(self.peek_u16(offset)?);
        if length < minimum {
            return Err(self.short(length));
        }
        self.part(length, self.short)
    }

    /// `Ok` when everything was read.
    #[inline]
    pub(crate) const fn finish(&self) -> Result<(), Refusal> {
        if self.is_empty() {
            return Ok(());
        }
        Err(Refusal::new(self.short, "bytes after the end of the structure", self.bytes.len() as u64, "none"))
    }
}

/// A value with a place on the wire.
pub(crate) trait Wire: Sized {
    fn read(reader: &mut Reader) -> Result<Self, Refusal>;
    fn write(&self, out: &mut Vec<u8>);

    /// Values until the reader is empty. Every type takes at least one byte, so this ends.
    fn read_all(reader: &mut Reader) -> Result<Vec<Self>, Refusal> {
        let mut all = Vec::new();
        while !reader.is_empty() {
            all.push(Self::read(reader)?);
        }
        Ok(all)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            #[inline]
            fn read(reader: &mut Reader) -> Result<Self, Refusal> {
                reader.array().map(Self::from_be_bytes)
            }
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    )*};
}
numbers!(u16, u32, u64);

impl Wire for u8 {
    #[inline]
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        reader.array().map(|[byte]| byte)
    }
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
    fn read_all(reader: &mut Reader) -> Result<Vec<Self>, Refusal> {
        Ok(reader.rest().to_vec())
    }
}

impl<T: Wire + Copy + Default, const N: usize> Wire for [T; N] {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let mut all = [T::default(); N];
        for one in &mut all {
            *one = T::read(reader)?;
        }
        Ok(all)
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|one| one.write(out));
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        T::read_all(reader)
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|one| one.write(out));
    }
}

impl<T: Wire> Wire for Box<T> {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        T::read(reader).map(Self::new)
    }
    fn write(&self, out: &mut Vec<u8>) {
        T::write(self, out);
    }
}

/// Appends `count` zeros.
pub(crate) fn pad(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, 0);
}

/// Appends zeros until what began at `start` takes a multiple of eight bytes.
pub(crate) fn pad_to_eight(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    pad(out, length.next_multiple_of(8) - length);
}

/// Writes the length of what began at `start` into its length field at `offset`. A length above 16 bits makes the
/// message too long too, which is found when the message ends.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn set_length(out: &mut [u8], start: usize, offset: usize) {
    let length = (out.len() - start) as u16;
    out[start + offset..start + offset + 2].copy_from_slice(&length.to_be_bytes());
}

/// A text of at most `N - 1` bytes in a field of `N`, filled up with zeros.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// `text` in a field of `N` bytes.
    ///
    /// # Errors
    /// When `text` takes `N` bytes or more.
    pub fn new(text: &str) -> Result<Self, TextTooLong> {
        if text.len() >= N {
            return Err(TextTooLong { given: text.len(), allowed: N });
        }
        let mut bytes = [0; N];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(bytes))
    }

    /// The text up to the first zero; bytes that are not UTF-8 are shown as replacement characters.
    #[must_use]
    pub fn as_text(&self) -> Cow<'_, str> {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(N);
        String::from_utf8_lossy(&self.0[..end])
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_text(), formatter)
    }
}

impl<const N: usize> Wire for Text<N> {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        reader.array().map(Self)
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fills_its_field_is_refused() {
        assert_eq!(Text::<4>::new("four"), Err(TextTooLong { given: 4, allowed: 4 }));
        assert_eq!(Text::<5>::new("four").map(|text| text.as_text().into_owned()), Ok("four".to_owned()));
    }

    #[test]
    fn a_structure_that_claims_more_than_its_container_is_refused() {
        let mut reader = Reader::new(&[0, 9, 0, 0, 0, 0, 0, 0], Fault::BAD_LENGTH);
        assert_eq!(reader.sized(0, 4).map(|_| ()).map_err(|refusal| refusal.given), Err(9));
    }

    #[test]
    fn a_structure_that_claims_less_than_its_header_is_refused() {
        let mut reader = Reader::new(&[0, 3, 0, 0, 0, 0, 0, 0], Fault::BAD_LENGTH);
        assert_eq!(reader.sized(0, 4).map(|_| ()).map_err(|refusal| refusal.fault), Err(Fault::BAD_LENGTH));
    }
}
