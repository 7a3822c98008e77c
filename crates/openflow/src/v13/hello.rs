//! The first message: which versions a side speaks.

use crate::error::Refusal;
use crate::wire::{pad_to_eight, set_length, Reader, Wire};

/// `OFPT_HELLO`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Hello {
    /// Elements; without any, the header's version is the highest that is spoken.
    pub elements: Vec<HelloElement>,
}

/// A part of a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum HelloElement {
    /// `OFPHET_VERSIONBITMAP`: bit `n` of word `n / 32` is set when version `n` is spoken.
    Versions(Vec<u32>),
    /// An element of another type.
    Other {
        /// The type.
        #[cfg_attr(any(test, feature = "arbitrary"),
            arbitrary(with = |source: &mut arbitrary::Unstructured| source.int_in_range(2..=9)))]
        kind: u16,
        /// The contents of the element.
        data: Vec<u8>,
    },
}

const VERSION_BITMAP: u16 = 1;

impl Hello {
    /// A hello that offers `versions`, each below 32.
    #[must_use]
    pub fn offering(versions: &[u8]) -> Self {
        let bits = versions.iter().filter(|version| **version < 32).fold(0, |bits, version| bits | 1 << version);
        Self { elements: vec![HelloElement::Versions(vec![bits])] }
    }

    /// Returns `true` if the sender, whose header said `version`, speaks `asked`: by its bitmap, or else any up to its
    /// own.
    #[must_use]
    pub fn speaks(&self, version: u8, asked: u8) -> bool {
        let bitmap = self.elements.iter().find_map(|element| match element {
            HelloElement::Versions(words) => Some(words),
            HelloElement::Other { .. } => None,
        });
        bitmap.map_or(asked <= version, |words| {
            words.get(usize::from(asked / 32)).is_some_and(|word| word & (1 << (asked % 32)) != 0)
        })
    }
}

impl Wire for Hello {
    /// Reads elements up to the first that does not fit. Neither version makes a hello's contents an error: a side
    /// that does not understand them goes by the header.
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let mut elements = Vec::new();
        while let Ok(element) = reader.get() {
            elements.push(element);
        }
        reader.rest();
        Ok(Self { elements })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.elements.write(out);
    }
}

impl Wire for HelloElement {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let kind = reader.peek_u16(0)?;
        let mut inner = reader.sized(2, 4)?;
        reader.skip_padding(inner.remaining());
        inner.skip(4)?;
        if kind != VERSION_BITMAP {
            return Ok(Self::Other { kind, data: inner.get()? });
        }
        inner.get().map(Self::Versions)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Self::Versions(words) => {
                VERSION_BITMAP.write(out);
                0_u16.write(out);
                words.write(out);
            }
            Self::Other { kind, data } => {
                kind.write(out);
                0_u16.write(out);
                data.write(out);
            }
        }
        set_length(out, start, 2);
        pad_to_eight(out, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bitmap_counts_more_than_the_header() {
        let hello = Hello::offering(&[1, 4]);
        assert!(hello.speaks(6, 4) && hello.speaks(6, 1));
        assert!(!hello.speaks(6, 5));
        assert!(Hello::default().speaks(4, 1));
        assert!(!Hello::default().speaks(1, 4));
    }
}
