//! Some bits of a field as text: `NXM_NX_REG0[0..15]`, `reg0[]`, `tcp_dst[3]`; in the names of Open vSwitch or in ours.

use twinnet_openflow::oxm::{
    Field as Oxm, CLASS_NXM_NICIRA, CLASS_NXM_OPENFLOW, CLASS_OPENFLOW_BASIC, CLASS_PACKET_REGISTERS,
};

use super::control::fields;
use super::extension::Part;
use super::field::{Format, MatchField, Needs};
use super::matching::Match;
use super::syntax::{FlowSyntaxError, Word};
use super::value;

/// Bits of a field, and the field as messages name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subfield {
    pub(super) wire: Oxm,
    pub(super) part: Part,
}

/// Returns Open vSwitch's name of a field.
fn name(field: Oxm) -> String {
    let info = field.info();
    let prefix = match info.nxm.or(info.oxm).map(|number| number.class) {
        Some(CLASS_NXM_OPENFLOW) => "NXM_OF_",
        Some(CLASS_NXM_NICIRA) => "NXM_NX_",
        Some(CLASS_PACKET_REGISTERS) => {
            return format!("OXM_OF_PKT_{}", info.name.to_ascii_uppercase().replace('X', ""))
        }
        _ => "OXM_OF_",
    };
    let rest = match field {
        Oxm::Ipv4Src => "IP_SRC".to_owned(),
        Oxm::Ipv4Dst => "IP_DST".to_owned(),
        Oxm::Icmpv4Type => "ICMP_TYPE".to_owned(),
        Oxm::Icmpv4Code => "ICMP_CODE".to_owned(),
        Oxm::Ipv6Flabel => "IPV6_LABEL".to_owned(),
        Oxm::Ipv6NdTarget => "ND_TARGET".to_owned(),
        Oxm::Ipv6NdSll => "ND_SLL".to_owned(),
        Oxm::Ipv6NdTll => "ND_TLL".to_owned(),
        Oxm::TunnelId => "TUN_ID".to_owned(),
        Oxm::NxmInPort => "IN_PORT".to_owned(),
        _ => info.name.to_ascii_uppercase(),
    };
    format!("{prefix}{rest}")
}

/// The field with this name, in frames that `matching` matches.
fn named(text: &str, matching: &Match) -> Option<Oxm> {
    let upper = text.to_ascii_uppercase();
    if upper.starts_with("NXM_") || upper.starts_with("OXM_") {
        let basic = |field: &Oxm| field.info().oxm.is_some_and(|number| number.class == CLASS_OPENFLOW_BASIC);
        let by_specification =
            |field: &Oxm| basic(field) && format!("OXM_OF_{}", field.name().to_ascii_uppercase()) == upper;
        return Oxm::ALL.iter().copied().find(|field| name(*field) == upper || by_specification(field));
    }
    match text {
        "in_port" => Some(Oxm::NxmInPort),
        "in_port_oxm" => Some(Oxm::InPort),
        _ => {
            let own = MatchField::by_name(text)?;
            let plain = !matches!(own.format, Format::TypeOfService | Format::VlanOrNone);
            fields::theirs(own, matching).filter(|_| plain)
        }
    }
}

/// Reads bits of a field; without brackets all of them.
pub(super) fn parse(word: Word<'_>, matching: &Match) -> Result<Subfield, FlowSyntaxError> {
    let word = word.trimmed();
    let (field, range) = match word.split_once("[") {
        Some((field, range)) => (field, Some(range)),
        None => (word, None),
    };
    let known = named(field.text, matching).and_then(|wire| Some((wire, fields::ours(wire)?)));
    let Some((wire, own)) = known else {
        let remedy = "write a field that has bits of its own, such as reg0, eth_dst, ip_dscp, vlan_tci or NXM_NX_REG0";
        return Err(field.error("is no field whose bits can be named", remedy));
    };
    let whole = u32::from(wire.info().bits);
    let bad = || {
        let most = whole.min(own.field.bits()) - 1;
        word.error(
            "names no bits of that field",
            format!("write {}[FIRST..LAST] with bits from 0 to {most}", field.text),
        )
    };
    let range = match range.map(|range| range.text.strip_suffix(']')) {
        None => "",
        Some(None) => return Err(bad()),
        Some(Some(range)) => range,
    };
    let bit = |text: &str| value::number(text).and_then(|bit| u16::try_from(bit).ok());
    let (first, last) = match range.split_once("..") {
        None if range.is_empty() => (Some(0), u16::try_from(whole - 1).ok()),
        None => (bit(range), bit(range)),
        Some((first, last)) => (bit(first), bit(last)),
    };
    let (Some(first), Some(last)) = (first, last) else { return Err(bad()) };
    if first > last || u32::from(last) >= whole {
        return Err(bad());
    }
    let bits = fields::bits_in_key(wire, own, first, last - first + 1).ok_or_else(bad)?;
    Ok(Subfield { wire, part: Part { field: own, first_bit: first, bits } })
}

/// Writes bits of a field, as `ovs-ofctl` does.
pub(super) fn show(field: Oxm, first_bit: u16, bits: u16) -> String {
    let name = name(field);
    match bits {
        1 if field.info().bits > 1 => format!("{name}[{first_bit}]"),
        _ if first_bit == 0 && bits == u16::from(field.info().bits) => format!("{name}[]"),
        _ => format!("{name}[{first_bit}..{}]", first_bit + bits.saturating_sub(1)),
    }
}

/// Writes bits of one of our fields.
pub(super) fn show_own(field: &'static MatchField, first_bit: u16, bits: u16) -> String {
    match fields::named(field) {
        // The field of 16 bits is the one that Open vSwitch calls so.
        Some(Oxm::InPort) if first_bit + bits <= 16 => show(Oxm::NxmInPort, first_bit, bits),
        Some(wire) => show(wire, first_bit, fields::bits_on_wire(wire, field, first_bit, bits)),
        None => format!("{}[{first_bit}..{}]", field.name, first_bit + bits.saturating_sub(1)),
    }
}

impl Subfield {
    /// Returns what a match must say for the field to have a meaning.
    pub(super) fn needs(&self) -> Needs {
        self.part.field.needs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_wire_that_is_ours_reads_back_from_its_name() {
        for field in Oxm::ALL.iter().copied().filter(|field| fields::ours(*field).is_some()) {
            if field == Oxm::InPhyPort {
                continue;
            }
            assert_eq!(named(&name(field), &Match::default()), Some(field), "{}", name(field));
        }
    }

    #[test]
    fn bits_are_written_as_ovs_ofctl_writes_them() {
        for (text, expected) in [
            ("reg0", "NXM_NX_REG0[]"),
            ("reg0[3]", "NXM_NX_REG0[3]"),
            ("OXM_OF_ETH_DST[0..15]", "NXM_OF_ETH_DST[0..15]"),
            ("ip_dst[]", "NXM_OF_IP_DST[]"),
            ("xreg1[]", "OXM_OF_PKT_REG1[]"),
            ("metadata[0..31]", "OXM_OF_METADATA[0..31]"),
            ("in_port", "NXM_OF_IN_PORT[]"),
            ("mpls_bos", "OXM_OF_MPLS_BOS[]"),
            ("NXM_OF_ARP_OP[]", "NXM_OF_ARP_OP[]"),
            ("arp_op", "NXM_OF_ARP_OP[]"),
            ("NXM_OF_ARP_OP[0..15]", "NXM_OF_ARP_OP[]"),
            ("NXM_OF_ARP_OP[0..3]", "NXM_OF_ARP_OP[0..3]"),
            ("NXM_NX_ARP_SHA[]", "NXM_NX_ARP_SHA[]"),
        ] {
            let found = parse(Word::whole(text), &Match::default()).unwrap();
            assert_eq!(show_own(found.part.field, found.part.first_bit, found.part.bits), expected, "{text}");
        }
    }

    #[test]
    fn bits_that_a_field_has_not_are_refused() {
        for text in
            ["reg0[32]", "reg0[5..3]", "reg0[", "reg0[1..]", "nw_tos[]", "dl_vlan[]", "nothing[]", "arp_op[8..15]", ""]
        {
            assert!(parse(Word::whole(text), &Match::default()).is_err(), "{text}");
        }
    }
}
