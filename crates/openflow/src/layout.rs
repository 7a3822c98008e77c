//! The shapes that most of both specifications is made of, said once: records with fixed offsets, numbers with
//! names, and bits with names.

/// A structure whose fields stand on the wire in the order in which they are declared; `[N]` are bytes of padding.
///
/// With `sized OFFSET, MINIMUM` the structure states its own length in 16 bits at `OFFSET` (which the declaration
/// counts as padding).
macro_rules! record {
    ($(#[$meta:meta])* pub struct $name:ident {
        $([$lead:literal];)? $($(#[$field_meta:meta])* pub $field:ident : $kind:ty $([$pad:literal])?;)*
    }) => {
        record!(@type $(#[$meta])* $name { $($(#[$field_meta])* $field: $kind;)* });
        impl crate::wire::Wire for $name {
            #[inline]
            fn read(reader: &mut crate::wire::Reader) -> Result<Self, crate::error::Refusal> {
                $(reader.skip($lead)?;)?
                $(let $field = reader.get::<$kind>()?; $(reader.skip($pad)?;)?)*
                Ok(Self { $($field),* })
            }
            fn write(&self, out: &mut Vec<u8>) {
                $(crate::wire::pad(out, $lead);)?
                $(self.$field.write(out); $(crate::wire::pad(out, $pad);)?)*
            }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident sized $offset:literal, $minimum:literal {
        $([$lead:literal];)? $($(#[$field_meta:meta])* pub $field:ident : $kind:ty $([$pad:literal])?;)*
    }) => {
        record!(@type $(#[$meta])* $name { $($(#[$field_meta])* $field: $kind;)* });
        impl crate::wire::Wire for $name {
            fn read(reader: &mut crate::wire::Reader) -> Result<Self, crate::error::Refusal> {
                let mut inner = reader.sized($offset, $minimum)?;
                $(inner.skip($lead)?;)?
                $(let $field = inner.get::<$kind>()?; $(inner.skip($pad)?;)?)*
                inner.finish()?;
                Ok(Self { $($field),* })
            }
            fn write(&self, out: &mut Vec<u8>) {
                let start = out.len();
                $(crate::wire::pad(out, $lead);)?
                $(self.$field.write(out); $(crate::wire::pad(out, $pad);)?)*
                crate::wire::set_length(out, start, $offset);
            }
        }
    };
    (@type $(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident : $kind:ty;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
        pub struct $name { $($(#[$field_meta])* pub $field: $kind),* }
    };
}

/// A number of which some values have names; the others are kept.
macro_rules! open_enum {
    ($(#[$meta:meta])* pub enum $name:ident : $number:ty {
        $($variant:ident = $value:literal $text:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`.")] $variant,)*
            /// A value without a name in the specification.
            Unknown($number),
        }
        impl $name {
            /// The value with this number.
            #[must_use]
            pub const fn from_number(number: $number) -> Self {
                match number { $($value => Self::$variant,)* other => Self::Unknown(other) }
            }
            /// The number on the wire.
            #[must_use]
            pub const fn number(self) -> $number {
                match self { $(Self::$variant => $value,)* Self::Unknown(other) => other }
            }
            /// The specification's name, when it has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self { $(Self::$variant => Some($text),)* Self::Unknown(_) => None }
            }
        }
        impl crate::wire::Wire for $name {
            fn read(reader: &mut crate::wire::Reader) -> Result<Self, crate::error::Refusal> {
                reader.get().map(Self::from_number)
            }
            fn write(&self, out: &mut Vec<u8>) {
                self.number().write(out);
            }
        }
        #[cfg(any(test, feature = "arbitrary"))]
        impl<'a> arbitrary::Arbitrary<'a> for $name {
            fn arbitrary(source: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
                if source.ratio(1, 8)? { return source.arbitrary().map(Self::from_number); }
                source.choose(&[$($value),*]).map(|number| Self::from_number(*number))
            }
        }
    };
}

/// A number of which only some values are allowed; another one is refused with `fault`.
macro_rules! closed_enum {
    ($(#[$meta:meta])* pub enum $name:ident : $number:ty, $fault:expr, $what:literal, $allowed:literal
        { $($variant:ident = $value:literal $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
        pub enum $name { $(#[doc = concat!("`", $text, "`.")] $variant,)* }
        impl $name {
            /// The number on the wire.
            #[must_use]
            pub const fn number(self) -> $number {
                match self { $(Self::$variant => $value,)* }
            }
        }
        impl crate::wire::Wire for $name {
            #[inline]
            fn read(reader: &mut crate::wire::Reader) -> Result<Self, crate::error::Refusal> {
                match reader.get::<$number>()? {
                    $($value => Ok(Self::$variant),)*
                    other => Err(crate::error::Refusal::new($fault, $what, u64::from(other), $allowed)),
                }
            }
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                self.number().write(out);
            }
        }
    };
}

/// Bits with names; those without are kept, or refused with `fault` when there is one.
macro_rules! flags {
    ($(#[$meta:meta])* pub struct $name:ident : $number:ty $(, $fault:expr, $what:literal, $allowed:literal)?
        { $($bit:ident = $value:expr, $text:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $number);
        impl $name {
            $(#[doc = concat!("`", $text, "`.")] pub const $bit: Self = Self($value);)*
            /// Every bit with a name.
            pub const ALL: Self = Self(0 $(| $value)*);
            /// Returns `true` if all bits of `other` are set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }
        impl std::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
        impl crate::wire::Wire for $name {
            #[inline]
            fn read(reader: &mut crate::wire::Reader) -> Result<Self, crate::error::Refusal> {
                let bits = reader.get::<$number>()?;
                $(if bits & !Self::ALL.0 != 0 {
                    return Err(crate::error::Refusal::new($fault, $what, u64::from(bits), $allowed));
                })?
                Ok(Self(bits))
            }
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                self.0.write(out);
            }
        }
        #[cfg(any(test, feature = "arbitrary"))]
        impl<'a> arbitrary::Arbitrary<'a> for $name {
            fn arbitrary(source: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
                source.arbitrary::<$number>().map(|bits| Self(bits & Self::ALL.0))
            }
        }
    };
}

/// All error types of a version and all their codes, and the message that carries them.
macro_rules! error_kinds {
    ($($kind:ident = $number:literal $kind_text:literal {
        $($variant:ident = $value:literal $text:literal),* $(,)?
    })*) => {
        $(open_enum! {
            #[doc = concat!("Codes of `", $kind_text, "`.")]
            pub enum $kind: u16 { $($variant = $value $text),* }
        })*
        /// Type and code of an error message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorKind {
            $(#[doc = concat!("`", $kind_text, "`.")] $kind($kind),)*
            /// A type without a name in the specification, and its code (with type 0xffff that is the
            /// experimenter's type).
            Unknown(u16, u16),
        }
        impl ErrorKind {
            /// The type and code as numbers.
            #[must_use]
            pub const fn fault(self) -> crate::error::Fault {
                let (error_type, code) = match self {
                    $(Self::$kind(code) => ($number, code.number()),)*
                    Self::Unknown(error_type, code) => (error_type, code),
                };
                crate::error::Fault { error_type, code }
            }
            /// The specification's name of the code, when it has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self { $(Self::$kind(code) => code.name(),)* Self::Unknown(..) => None }
            }
        }
        impl From<crate::error::Fault> for ErrorKind {
            fn from(fault: crate::error::Fault) -> Self {
                match fault.error_type {
                    $($number => Self::$kind($kind::from_number(fault.code)),)*
                    other => Self::Unknown(other, fault.code),
                }
            }
        }
        impl crate::wire::Wire for ErrorKind {
            fn read(reader: &mut crate::wire::Reader) -> Result<Self, crate::error::Refusal> {
                Ok(crate::error::Fault { error_type: reader.get()?, code: reader.get()? }.into())
            }
            fn write(&self, out: &mut Vec<u8>) {
                let crate::error::Fault { error_type, code } = self.fault();
                error_type.write(out);
                code.write(out);
            }
        }
        record! {
            /// `OFPT_ERROR`.
            pub struct Error {
                /// Type and code.
                pub kind: ErrorKind;
                /// The beginning of the message that is answered, at least 64 bytes of it (less when it is shorter); a
                /// text with [`ErrorKind::HelloFailed`]. With type 0xffff (1.3) the experimenter in four bytes comes
                /// first.
                pub data: Vec<u8>;
            }
        }
        impl Error {
            /// The error that answers `request`, of which it carries 64 bytes.
            #[must_use]
            pub fn answering(kind: ErrorKind, request: &[u8]) -> Self {
                Self { kind, data: request[..request.len().min(64)].to_vec() }
            }
            /// The error that answers `request`, which could not be decoded.
            #[must_use]
            pub fn refusing(error: &crate::DecodeError, request: &[u8]) -> Self {
                Self::answering(error.refusal.fault.into(), request)
            }
        }
        #[cfg(any(test, feature = "arbitrary"))]
        impl<'a> arbitrary::Arbitrary<'a> for ErrorKind {
            fn arbitrary(source: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
                let error_type = source.int_in_range(0..=20)?;
                Ok(crate::error::Fault { error_type, code: source.int_in_range(0..=20)? }.into())
            }
        }
    };
}

/// All messages of a version by their `ofp_type`: those without contents, and those with a body, which may have a check
/// of its own beyond its layout.
macro_rules! messages {
    ($(#[$meta:meta])* pub enum Message: $allowed:literal {
        $($(#[$doc:meta])* $kind:literal $name:ident $(($field:ident : $body:ty $(, $check:path)?))?;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
        pub enum Message { $($(#[$doc])* $name $(($body))?,)* }

        impl Message {
            /// Reads one whole message. A hello may be of any version, which the header then says.
            ///
            /// # Errors
            /// The answer that the specification demands of a switch.
            pub fn decode(bytes: &[u8]) -> Result<(crate::Header, Self), crate::DecodeError> {
                crate::header::decode(bytes, super::VERSION, Self::read)
            }

            /// Appends the message to `out`.
            ///
            /// # Errors
            /// When it takes more than [`crate::MAXIMUM_MESSAGE_BYTES`]; `out` is as it was.
            pub fn encode(&self, xid: u32, out: &mut Vec<u8>) -> Result<(), crate::TooLong> {
                crate::header::encode(out, super::VERSION, self.kind(), xid, |out| self.write(out))
            }

            /// `ofp_type`.
            #[must_use]
            pub const fn kind(&self) -> u8 {
                match self { $(Self::$name { .. } => $kind,)* }
            }

            /// The name of an `ofp_type`, as this type has it; `None` where there is none.
            #[must_use]
            pub const fn name_of(kind: u8) -> Option<&'static str> {
                match kind {
                    $($kind => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            fn read(kind: u8, reader: &mut crate::wire::Reader) -> Result<Self, crate::Refusal> {
                Ok(match kind {
                    $($kind => Self::$name $(({
                        let $field = reader.get::<$body>()?;
                        $($check(&$field)?;)?
                        $field
                    }))?,)*
                    other => {
                        let fault = crate::Fault::BAD_TYPE;
                        return Err(crate::Refusal::new(fault, "the type of a message", u64::from(other), $allowed));
                    }
                })
            }

            fn write(&self, out: &mut Vec<u8>) {
                use crate::wire::Wire;
                match self { $(Self::$name $(($field))? => { $($field.write(out);)? })* }
            }
        }
    };
}

pub(crate) use {closed_enum, error_kinds, flags, messages, open_enum, record};
