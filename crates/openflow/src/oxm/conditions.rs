//! A whole extensible match, and whether a switch may take it.

use super::field::{Field, Prerequisite};
use super::tlv::{refuse, FieldMatch, Flavour, Tlv, UnknownField};
use crate::error::{Fault, Refusal};
use crate::v13::{BadMatch, ErrorKind};
use crate::wire::{pad_to_eight, set_length, Reader, Wire};
use crate::Verbatim;

/// The conditions of a match, all of which must hold; without any, every frame matches.
///
/// Messages to a switch are decoded only when [`Match::check`] passes. Messages from a switch may hold any fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Conditions on known fields, in the order of the message.
    pub fields: Vec<FieldMatch>,
    /// Conditions on other fields, which a switch refuses; written after the known ones.
    pub unknown: Vec<UnknownField>,
}

/// `OFPMT_OXM`.
const OXM: u16 = 1;

impl Match {
    /// A match on `fields`.
    #[must_use]
    pub const fn new(fields: Vec<FieldMatch>) -> Self {
        Self { fields, unknown: Vec::new() }
    }

    /// The condition on `field`.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<&FieldMatch> {
        self.fields.iter().find(|condition| condition.field == field)
    }

    /// Checks that a switch may take the match: known fields only, each once and after those that it needs.
    ///
    /// # Errors
    /// `OFPBMC_BAD_FIELD`, `OFPBMC_DUP_FIELD` or `OFPBMC_BAD_PREREQ`.
    pub fn check(&self) -> Result<(), Refusal> {
        if let Some(unknown) = self.unknown.first() {
            let fault = ErrorKind::BadMatch(BadMatch::BadField).fault();
            return Err(Refusal::new(fault, "the header of a match field", u64::from(unknown.id.0), "a known field"));
        }
        let mut seen = 0_u128;
        for (index, condition) in self.fields.iter().enumerate() {
            let bit = 1 << condition.field as u8;
            if seen & bit != 0 {
                return Err(refuse(BadMatch::DupField, condition.field, 2, "one condition on each field"));
            }
            seen |= bit;
            for prerequisite in condition.field.info().prerequisites {
                let met = |earlier: &FieldMatch| {
                    earlier.field == prerequisite.field() && prerequisite.is_met_by(earlier.value)
                };
                if !self.fields[..index].iter().any(met) && !nicira_meets(*prerequisite, &self.fields[..index]) {
                    let allowed = "this field only after a condition on the one that it is part of";
                    return Err(refuse(BadMatch::BadPrereq, condition.field, 0, allowed));
                }
            }
        }
        Ok(())
    }

    /// Reads `length` bytes of fields.
    pub(crate) fn read_fields(reader: &mut Reader, length: usize) -> Result<Self, Refusal> {
        let mut inner = reader.part(length, BAD_LENGTH)?;
        let mut matching = Self::default();
        while !inner.is_empty() {
            match Tlv::read(&mut inner)? {
                Tlv::Known(known) => matching.fields.push(known),
                Tlv::Unknown(unknown) => matching.unknown.push(unknown),
            }
        }
        Ok(matching)
    }

    pub(crate) fn write_fields(&self, out: &mut Vec<u8>, flavour: Flavour) {
        self.fields.iter().for_each(|field| field.write(out, flavour));
        for unknown in &self.unknown {
            unknown.id.write(out);
            out.extend_from_slice(&unknown.payload);
        }
    }

    /// Reads fields of `length` bytes and their padding, as the Nicira messages of OpenFlow 1.0 carry them.
    pub(crate) fn read_padded(reader: &mut Reader, length: u16) -> Result<Self, Refusal> {
        let matching = Self::read_fields(reader, usize::from(length))?;
        reader.skip_padding(usize::from(length));
        Ok(matching)
    }

    /// Writes the fields in Nicira's numbers with their padding, and says how many bytes they took without.
    pub(crate) fn write_padded(&self, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        self.write_fields(out, Flavour::Nxm);
        let length = out.len() - start;
        pad_to_eight(out, start);
        length
    }
}

impl Verbatim<Match> {
    /// As [`Match::write_padded`]; bytes are the fields without padding.
    pub(crate) fn write_padded(&self, out: &mut Vec<u8>) -> usize {
        match self {
            Self::Value(matching) => matching.write_padded(out),
            Self::Bytes(bytes) => {
                let start = out.len();
                out.extend_from_slice(bytes);
                pad_to_eight(out, start);
                bytes.len()
            }
        }
    }
}

const BAD_LENGTH: Fault = ErrorKind::BadMatch(BadMatch::BadLen).fault();

/// A VLAN tag matched in Nicira's way stands in for `OXM_OF_VLAN_VID`.
fn nicira_meets(prerequisite: Prerequisite, earlier: &[FieldMatch]) -> bool {
    prerequisite.field() == Field::VlanVid
        && earlier.iter().any(|condition| condition.field == Field::VlanTci && condition.value & 0x1000 != 0)
}

impl Wire for Match {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let kind = reader.get::<u16>()?;
        let length = reader.get::<u16>()?;
        if kind != OXM {
            let fault = ErrorKind::BadMatch(BadMatch::BadType).fault();
            return Err(Refusal::new(fault, "the type of a match", u64::from(kind), "1 (OFPMT_OXM)"));
        }
        let Some(fields) = usize::from(length).checked_sub(4) else {
            return Err(Refusal::new(BAD_LENGTH, "the length of a match", u64::from(length), "4 or more"));
        };
        let matching = Self::read_fields(reader, fields)?;
        reader.skip_padding(usize::from(length));
        Ok(matching)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        OXM.write(out);
        0_u16.write(out);
        self.write_fields(out, Flavour::Oxm);
        set_length(out, start, 2);
        pad_to_eight(out, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Match, Refusal> {
        Match::read(&mut Reader::new(bytes, Fault::BAD_LENGTH))
    }

    fn code(result: Result<impl Sized, Refusal>) -> Option<ErrorKind> {
        result.err().map(|refusal| refusal.fault.into())
    }

    #[test]
    fn the_padding_is_not_part_of_the_length() {
        // OXM_OF_IN_PORT = 7: 4 + 8 bytes, padded to 16.
        let bytes = [0, 1, 0, 12, 0x80, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 0];
        let matching = read(&bytes).expect("a match");
        assert_eq!(matching.fields, [FieldMatch::exact(Field::InPort, 7)]);
        let mut out = Vec::new();
        matching.write(&mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn each_fault_of_a_field_has_its_code() {
        use BadMatch::*;
        let cases: [(&[u8], BadMatch); 6] = [
            (&[0, 0, 0, 8, 0, 0, 0, 0], BadType),
            (&[0, 1, 0, 3, 0, 0, 0, 0], BadLen),
            (&[0, 1, 0, 10, 0x80, 0, 0x00, 2, 0, 1, 0, 0, 0, 0, 0, 0], BadLen),
            // OXM_OF_ETH_TYPE has no mask.
            (&[0, 1, 0, 12, 0x80, 0, 0x0b, 4, 8, 0, 0xff, 0xff, 0, 0, 0, 0], BadMask),
            // OXM_OF_VLAN_VID = 0x1005/0x1000.
            (&[0, 1, 0, 12, 0x80, 0, 0x0d, 4, 0x10, 5, 0x10, 0, 0, 0, 0, 0], BadWildcards),
            // OXM_OF_IP_DSCP = 64.
            (&[0, 1, 0, 9, 0x80, 0, 0x10, 1, 64, 0, 0, 0, 0, 0, 0, 0], BadValue),
        ];
        for (bytes, expected) in cases {
            assert_eq!(code(read(bytes)), Some(ErrorKind::BadMatch(expected)), "{bytes:?}");
        }
    }

    #[test]
    fn a_switch_takes_a_field_only_once_and_after_what_it_needs() {
        let ether_type = FieldMatch::exact(Field::EthType, 0x0800);
        let protocol = FieldMatch::exact(Field::IpProto, 6);
        let port = FieldMatch::exact(Field::TcpDst, 80);
        let check = |fields: &[FieldMatch]| code(Match::new(fields.to_vec()).check());
        assert_eq!(check(&[ether_type, protocol, port]), None);
        assert_eq!(check(&[port, protocol, ether_type]), Some(ErrorKind::BadMatch(BadMatch::BadPrereq)));
        let udp = FieldMatch::exact(Field::UdpDst, 80);
        assert_eq!(check(&[ether_type, protocol, udp]), Some(ErrorKind::BadMatch(BadMatch::BadPrereq)));
        assert_eq!(check(&[ether_type, ether_type]), Some(ErrorKind::BadMatch(BadMatch::DupField)));
    }

    #[test]
    fn an_unknown_field_is_kept_for_a_controller_and_refused_for_a_switch() {
        let bytes = [0, 1, 0, 13, 0xff, 0xff, 0x56, 5, 0x4f, 0x4e, 0x46, 0, 9, 0, 0, 0];
        let matching = read(&bytes).expect("an experimenter's field");
        assert_eq!(code(matching.check()), Some(ErrorKind::BadMatch(BadMatch::BadField)));
        let mut out = Vec::new();
        matching.write(&mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn the_tcp_flags_of_the_onf_are_those_of_nicira() {
        // SYN without ACK: 0x002/0x012.
        let bytes = [0, 1, 0, 16, 0xff, 0xff, 0x55, 8, 0x4f, 0x4e, 0x46, 0, 0, 2, 0, 0x12];
        let matching = read(&bytes).expect("the TCP flags");
        assert_eq!(matching, Match::new(vec![FieldMatch::masked(Field::TcpFlags, 0x002, 0x012)]));
    }
}
