//! One field of an extensible match on the wire, its header alone, and its value alone.

use super::field::{Field, WireNumber, CLASS_EXPERIMENTER};
use crate::error::{Fault, Refusal};
use crate::v13::{BadAction, BadMatch, ErrorKind};
use crate::wire::{Reader, Wire};

/// The numbers that are written where a field has two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// OpenFlow 1.3.
    Oxm,
    /// The Nicira extension of OpenFlow 1.0.
    Nxm,
}

/// A field and what its value must be: equal to `value` in the bits of `mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldMatch {
    /// The field.
    pub field: Field,
    /// Its value; zero where the mask is.
    pub value: u128,
    /// The bits that matter; [`Field::maximum`] for all.
    pub mask: u128,
}

impl FieldMatch {
    /// The field must be equal to `value`.
    #[must_use]
    pub const fn exact(field: Field, value: u128) -> Self {
        Self { field, value, mask: field.maximum() }
    }

    /// The field must be equal to `value` in the bits of `mask`.
    #[must_use]
    pub const fn masked(field: Field, value: u128, mask: u128) -> Self {
        Self { field, value: value & mask, mask }
    }

    /// Returns `true` if every bit matters.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.mask == self.field.maximum()
    }

    /// Writes the field; one whose mask only the other flavour allows is written in that.
    pub(crate) fn write(&self, out: &mut Vec<u8>, flavour: Flavour) {
        let masked = !self.is_exact();
        let Some(number) = self.field.number(flavour, masked) else { return };
        let bytes = self.field.info().bytes;
        header(number, masked, if masked { 2 * bytes } else { bytes }).write(out);
        write_value(out, self.value, bytes);
        if masked {
            write_value(out, self.mask, bytes);
        }
    }
}

/// A field of a class or number that this crate has no name for, or of an experimenter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownField {
    /// The header on the wire.
    pub id: FieldId,
    /// Everything after the header: experimenter, value and mask.
    pub payload: Vec<u8>,
}

/// `ONFOXM_ET_TCP_FLAGS`: class and number of the TCP flags as an experimenter's field, which controllers use in
/// OpenFlow 1.3.
const TCP_FLAGS: u32 = (CLASS_EXPERIMENTER as u32) << 7 | 42;
/// The ONF's number among experimenters.
const ONF: [u8; 4] = [0x4f, 0x4e, 0x46, 0];

/// One field as it was read.
pub(crate) enum Tlv {
    Known(FieldMatch),
    Unknown(UnknownField),
}

impl Tlv {
    /// Reads a field of a match. What is wrong with it in itself is refused; whether it may stand where it does is
    /// not looked at.
    #[inline]
    pub(crate) fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let id = FieldId(reader.get()?);
        let mut payload = reader.take(usize::from(id.length()))?;
        let maskable;
        let field = if let Some(field) = id.field() {
            maskable = field.wire_number(id.class()).is_some_and(|number| number.maskable);
            field
        } else if let (TCP_FLAGS, Some((&ONF, rest))) = (id.0 >> 9, payload.split_first_chunk()) {
            (payload, maskable) = (rest, true);
            Field::TcpFlags
        } else {
            return Ok(Self::Unknown(UnknownField { id, payload: payload.to_vec() }));
        };
        let bytes = usize::from(field.info().bytes);
        let expected = if id.has_mask() { 2 * bytes } else { bytes };
        if payload.len() != expected {
            return Err(refuse(BadMatch::BadLen, field, payload.len() as u64, "the field's bytes, twice with a mask"));
        }
        let value = read_value(&payload[..bytes]);
        if !id.has_mask() {
            let value = field.check(value, fault(BadMatch::BadValue))?;
            return Ok(Self::Known(FieldMatch::exact(field, value)));
        }
        let mask = read_value(&payload[bytes..]);
        if !maskable {
            return Err(refuse(BadMatch::BadMask, field, low_bits(mask), "no mask on this field"));
        }
        let mask = mask & field.maximum();
        if value & !mask != 0 {
            return Err(refuse(BadMatch::BadWildcards, field, low_bits(value), "zero bits wherever the mask has them"));
        }
        Ok(Self::Known(FieldMatch { field, value, mask }))
    }
}

/// A field and a value to write into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldValue {
    /// The field.
    pub field: Field,
    /// The value.
    pub value: u128,
}

impl FieldValue {
    /// Reads what a Set-Field action carries.
    pub(crate) fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let action = |code: BadAction, given, allowed| {
            Refusal::new(ErrorKind::BadAction(code).fault(), "the field of a set-field action", given, allowed)
        };
        let id = FieldId(reader.get()?);
        let settable = id.field().filter(|field| field.is_settable() && !id.has_mask());
        let Some(field) = settable else {
            return Err(action(
                BadAction::BadSetType,
                u64::from(id.0),
                "a known field that can be set, without a mask",
            ));
        };
        if id.length() != field.info().bytes {
            return Err(action(BadAction::BadSetLen, u64::from(id.length()), "the field's bytes"));
        }
        let bytes = reader.take(usize::from(id.length()))?;
        let value = field.check(read_value(bytes), ErrorKind::BadAction(BadAction::BadSetArgument).fault())?;
        Ok(Self { field, value })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        FieldMatch::exact(self.field, self.value).write(out, Flavour::Oxm);
    }
}

/// The header of a field: class, number, mask bit and length. It names a field in table features and in Nicira actions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct FieldId(pub u32);

impl FieldId {
    /// `field` in the numbers of OpenFlow 1.3 (in Nicira's when it has no others), without or with a mask.
    #[must_use]
    pub fn oxm(field: Field, masked: bool) -> Self {
        Self::with(field, Flavour::Oxm, masked)
    }

    /// `field` in Nicira's numbers (in those of OpenFlow 1.3 when it has no others), without or with a mask.
    #[must_use]
    pub fn nxm(field: Field, masked: bool) -> Self {
        Self::with(field, Flavour::Nxm, masked)
    }

    fn with(field: Field, flavour: Flavour, masked: bool) -> Self {
        let bytes = field.info().bytes;
        let header = |number| header(number, masked, if masked { 2 * bytes } else { bytes });
        field.number(flavour, masked).map_or(Self(0), |number| Self(header(number)))
    }

    /// The field, when it is known.
    #[must_use]
    pub fn field(self) -> Option<Field> {
        Field::of(self.class(), self.number())
    }

    /// The class.
    #[must_use]
    pub const fn class(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The field's number in the class.
    #[must_use]
    pub const fn number(self) -> u8 {
        (self.0 >> 9) as u8 & 0x7f
    }

    /// Returns `true` if a mask follows the value.
    #[must_use]
    pub const fn has_mask(self) -> bool {
        self.0 & 0x100 != 0
    }

    /// Bytes that follow the header.
    #[must_use]
    pub const fn length(self) -> u8 {
        self.0 as u8
    }

    /// Returns `true` if four bytes with an experimenter follow the header.
    #[must_use]
    pub const fn is_experimenter(self) -> bool {
        self.class() == CLASS_EXPERIMENTER
    }
}

impl std::fmt::Debug for FieldId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.field() {
            Some(field) => write!(formatter, "FieldId({:#010x}, {})", self.0, field.name()),
            None => write!(formatter, "FieldId({:#010x})", self.0),
        }
    }
}

impl Wire for FieldId {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        reader.get().map(Self)
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

impl Field {
    /// The numbers to write: the flavour's own unless it has none, or allows no mask where the other one does.
    fn number(self, flavour: Flavour, masked: bool) -> Option<WireNumber> {
        let info = self.info();
        let (first, second) = if flavour == Flavour::Oxm { (info.oxm, info.nxm) } else { (info.nxm, info.oxm) };
        let fits = |number: &WireNumber| number.maskable || !masked;
        first.filter(fits).or(second.filter(fits)).or(first).or(second)
    }

    fn wire_number(self, class: u16) -> Option<WireNumber> {
        let info = self.info();
        [info.oxm, info.nxm].into_iter().flatten().find(|number| number.class == class)
    }
}

const fn fault(code: BadMatch) -> Fault {
    ErrorKind::BadMatch(code).fault()
}

pub(super) const fn refuse(code: BadMatch, field: Field, given: u64, allowed: &'static str) -> Refusal {
    Refusal::new(fault(code), field.name(), given, allowed)
}

/// Returns the bits of a value that are shown in an error.
const fn low_bits(value: u128) -> u64 {
    value as u64
}

const fn header(number: WireNumber, masked: bool, length: u8) -> u32 {
    (number.class as u32) << 16 | (number.number as u32) << 9 | (masked as u32) << 8 | length as u32
}

/// The number in at most sixteen bytes.
#[inline]
fn read_value(bytes: &[u8]) -> u128 {
    match *bytes {
        [a] => u128::from(a),
        [a, b] => u128::from(u16::from_be_bytes([a, b])),
        [a, b, c, d] => u128::from(u32::from_be_bytes([a, b, c, d])),
        [a, b, c, d, e, f] => u128::from(u64::from_be_bytes([0, 0, a, b, c, d, e, f])),
        _ => bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte)),
    }
}

fn write_value(out: &mut Vec<u8>, value: u128, bytes: u8) {
    out.extend_from_slice(&value.to_be_bytes()[16 - usize::from(bytes)..]);
}
