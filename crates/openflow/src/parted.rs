//! Questions about the state of the switch and their answers, which come in one or several messages: statistics of
//! 1.0, multipart messages of 1.3.

use crate::error::Refusal;
use crate::wire::{pad, Reader, Wire};

/// A part of a question or answer; the last part has `more` unset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Parted<B> {
    /// `true` if another part with the same transaction follows.
    pub more: bool,
    /// The body: what it is about.
    pub body: B,
}

/// `OFPSF_REPLY_MORE`, `OFPMPF_REQ_MORE` and `OFPMPF_REPLY_MORE`.
const MORE: u16 = 1;

/// The body of a question or an answer: its type, and how it is read and written.
pub(crate) trait Body: Sized {
    /// Bytes of padding between the flags and the body.
    const PADDING: usize;

    fn kind(&self) -> u16;
    fn read(kind: u16, reader: &mut Reader) -> Result<Self, Refusal>;
    fn write(&self, out: &mut Vec<u8>);
}

impl<B: Body> Wire for Parted<B> {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (kind, flags) = (reader.get()?, reader.get::<u16>()?);
        reader.skip(B::PADDING)?;
        Ok(Self { more: flags & MORE != 0, body: B::read(kind, reader)? })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.body.kind().write(out);
        u16::from(self.more).write(out);
        pad(out, B::PADDING);
        self.body.write(out);
    }
}

/// All questions or answers of a version by their type: those without contents, and those with some, which may have a
/// check of their own beyond their layout. Another type is refused with `fault`.
macro_rules! bodies {
    ($(#[$meta:meta])* pub enum $name:ident [$padding:literal], $fault:expr, $what:literal, $allowed:literal {
        $($(#[$doc:meta])* $kind:literal $variant:ident $(($field:ident : $body:ty $(, $check:path)?))?;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
        pub enum $name { $($(#[$doc])* $variant $(($body))?,)* }

        impl crate::parted::Body for $name {
            const PADDING: usize = $padding;

            fn kind(&self) -> u16 {
                match self { $(Self::$variant { .. } => $kind,)* }
            }

            fn read(kind: u16, reader: &mut crate::wire::Reader) -> Result<Self, crate::Refusal> {
                Ok(match kind {
                    $($kind => Self::$variant $(({
                        let $field = reader.get::<$body>()?;
                        $($check(&$field)?;)?
                        $field
                    }))?,)*
                    other => return Err(crate::Refusal::new($fault, $what, u64::from(other), $allowed)),
                })
            }

            fn write(&self, out: &mut Vec<u8>) {
                use crate::wire::Wire;
                match self { $(Self::$variant $(($field))? => { $($field.write(out);)? })* }
            }
        }
    };
}

pub(crate) use bodies;
