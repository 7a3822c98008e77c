//! Match fields between the wire and the flow key.

use twinnet_openflow::oxm::{Field as Oxm, FieldMatch, Match as OxmMatch};
use twinnet_openflow::v10;
use twinnet_openflow::v13::{BadAction, BadMatch, ErrorKind};
use twinnet_packet::Field;

use super::super::field::MatchField;
use super::super::matching::Match;
use super::numbers::{from_narrow, to_narrow};

/// Fields of the wire and our names of the same bits.
static NAMES: &[(Oxm, &str)] = &[
    (Oxm::InPort, "in_port"),
    // Every port of this switch is a physical one, and so the port that a frame came in by.
    (Oxm::InPhyPort, "in_port"),
    (Oxm::Metadata, "metadata"),
    (Oxm::TunnelId, "tunnel_id"),
    (Oxm::EthDst, "eth_dst"),
    (Oxm::EthSrc, "eth_src"),
    (Oxm::EthType, "eth_type"),
    (Oxm::VlanVid, "vlan_vid"),
    (Oxm::VlanPcp, "vlan_pcp"),
    (Oxm::IpDscp, "ip_dscp"),
    (Oxm::IpEcn, "ip_ecn"),
    (Oxm::IpProto, "ip_proto"),
    (Oxm::Ipv4Src, "ip_src"),
    (Oxm::Ipv4Dst, "ip_dst"),
    (Oxm::TcpSrc, "tcp_src"),
    (Oxm::TcpDst, "tcp_dst"),
    (Oxm::UdpSrc, "udp_src"),
    (Oxm::UdpDst, "udp_dst"),
    (Oxm::SctpSrc, "sctp_src"),
    (Oxm::SctpDst, "sctp_dst"),
    (Oxm::Icmpv4Type, "icmp_type"),
    (Oxm::Icmpv4Code, "icmp_code"),
    (Oxm::ArpOp, "arp_op"),
    (Oxm::ArpSpa, "arp_spa"),
    (Oxm::ArpTpa, "arp_tpa"),
    (Oxm::ArpSha, "arp_sha"),
    (Oxm::ArpTha, "arp_tha"),
    (Oxm::Ipv6Src, "ipv6_src"),
    (Oxm::Ipv6Dst, "ipv6_dst"),
    (Oxm::Ipv6Flabel, "ipv6_label"),
    (Oxm::Icmpv6Type, "icmpv6_type"),
    (Oxm::Icmpv6Code, "icmpv6_code"),
    (Oxm::Ipv6NdTarget, "nd_target"),
    (Oxm::Ipv6NdSll, "nd_sll"),
    (Oxm::Ipv6NdTll, "nd_tll"),
    (Oxm::MplsLabel, "mpls_label"),
    (Oxm::MplsTc, "mpls_tc"),
    (Oxm::MplsBos, "mpls_bos"),
    (Oxm::PbbIsid, "pbb_isid"),
    (Oxm::Ipv6Exthdr, "ipv6_exthdr"),
    (Oxm::VlanTci, "vlan_tci"),
    (Oxm::IpFrag, "ip_frag"),
    (Oxm::IpTtl, "nw_ttl"),
    (Oxm::TcpFlags, "tcp_flags"),
    (Oxm::NxmInPort, "in_port"),
    (Oxm::Reg0, "reg0"),
    (Oxm::Reg1, "reg1"),
    (Oxm::Reg2, "reg2"),
    (Oxm::Reg3, "reg3"),
    (Oxm::Reg4, "reg4"),
    (Oxm::Reg5, "reg5"),
    (Oxm::Reg6, "reg6"),
    (Oxm::Reg7, "reg7"),
    (Oxm::Reg8, "reg8"),
    (Oxm::Reg9, "reg9"),
    (Oxm::Reg10, "reg10"),
    (Oxm::Reg11, "reg11"),
    (Oxm::Reg12, "reg12"),
    (Oxm::Reg13, "reg13"),
    (Oxm::Reg14, "reg14"),
    (Oxm::Reg15, "reg15"),
    (Oxm::Xreg0, "xreg0"),
    (Oxm::Xreg1, "xreg1"),
    (Oxm::Xreg2, "xreg2"),
    (Oxm::Xreg3, "xreg3"),
    (Oxm::Xreg4, "xreg4"),
    (Oxm::Xreg5, "xreg5"),
    (Oxm::Xreg6, "xreg6"),
    (Oxm::Xreg7, "xreg7"),
    (Oxm::Xxreg0, "xxreg0"),
    (Oxm::Xxreg1, "xxreg1"),
    (Oxm::Xxreg2, "xxreg2"),
    (Oxm::Xxreg3, "xxreg3"),
];

/// The fields that this switch matches, in the numbers of OpenFlow 1.3 where there are such.
pub(super) fn supported() -> impl Iterator<Item = (Oxm, &'static MatchField)> {
    NAMES.iter().filter_map(|(oxm, name)| Some((*oxm, MatchField::by_name(name)?)))
}

/// Our field for one of the wire.
pub(crate) fn ours(field: Oxm) -> Option<&'static MatchField> {
    NAMES.iter().find(|(oxm, _)| *oxm == field).and_then(|(_, name)| MatchField::by_name(name))
}

/// How many bits of ours those of a field of the wire are: operations of ARP have 16 bits there, and 8 in a key.
pub(crate) fn bits_in_key(wire: Oxm, own: &MatchField, first_bit: u16, bits: u16) -> Option<u16> {
    let known = u16::try_from(own.field.bits()).unwrap_or(u16::MAX);
    let whole = first_bit == 0 && bits == u16::from(wire.info().bits);
    match first_bit.checked_add(bits) {
        Some(end) if end <= known => Some(bits),
        _ => whole.then_some(known),
    }
}

/// How many bits of a field of the wire those of ours are: the reverse of `bits_in_key`.
pub(crate) fn bits_on_wire(wire: Oxm, own: &MatchField, first_bit: u16, bits: u16) -> u16 {
    let whole = first_bit == 0 && u32::from(bits) == own.field.bits();
    if whole {
        bits.max(u16::from(wire.info().bits))
    } else {
        bits
    }
}

/// The wire's field that has our field's name, whatever frames match.
pub(crate) fn named(field: &MatchField) -> Option<Oxm> {
    NAMES.iter().find(|(_, name)| *name == field.name).map(|(oxm, _)| *oxm)
}

/// The wire's field for one of ours, for frames that `matching` matches.
pub(crate) fn theirs(field: &MatchField, matching: &Match) -> Option<Oxm> {
    let protocol = matching.exact(Field::NW_PROTO);
    let v6 = matching.exact(Field::ETH_TYPE) == Some(0x86dd);
    let arp = matching.exact(Field::ETH_TYPE) == Some(0x0806);
    let by_protocol = |tcp, udp, sctp, icmp, icmpv6| match protocol {
        Some(17) => udp,
        Some(132) => sctp,
        Some(1) => icmp,
        Some(58) if v6 => icmpv6,
        _ => tcp,
    };
    Some(match field.field {
        Field::TP_SRC => by_protocol(Oxm::TcpSrc, Oxm::UdpSrc, Oxm::SctpSrc, Oxm::Icmpv4Type, Oxm::Icmpv6Type),
        Field::TP_DST => by_protocol(Oxm::TcpDst, Oxm::UdpDst, Oxm::SctpDst, Oxm::Icmpv4Code, Oxm::Icmpv6Code),
        Field::NW_SRC if arp => Oxm::ArpSpa,
        Field::NW_DST if arp => Oxm::ArpTpa,
        Field::NW_PROTO if arp => Oxm::ArpOp,
        Field::ARP_SHA if v6 => Oxm::Ipv6NdSll,
        Field::ARP_THA if v6 => Oxm::Ipv6NdTll,
        // Fields that share bits with another are told apart by name.
        wanted => {
            NAMES
                .iter()
                .find(|(_, name)| *name == field.name)
                .or_else(|| {
                    NAMES.iter().find(|(_, name)| MatchField::by_name(name).is_some_and(|own| own.field == wanted))
                })?
                .0
        }
    })
}

fn refused<T>(code: BadMatch) -> Result<T, ErrorKind> {
    Err(ErrorKind::BadMatch(code))
}

/// A match of the wire as one over the flow key.
pub(super) fn read_match(wire: &OxmMatch) -> Result<Match, ErrorKind> {
    let mut matching = Match::default();
    for condition in &wire.fields {
        let FieldMatch { field, mut value, mut mask } = *condition;
        let key = match field {
            Oxm::IpTos => {
                (value, mask) = (value >> 2, mask >> 2);
                Field::IP_DSCP
            }
            _ => match ours(field) {
                Some(own) => own.field,
                None => return refused(BadMatch::BadField),
            },
        };
        if field == Oxm::NxmInPort {
            value = u128::from(from_narrow(value as u16));
        }
        if field == Oxm::VlanVid && value == 0 && mask == Oxm::VlanVid.maximum() {
            // OFPVID_NONE: no tag at all.
            (value, mask) = (0, Field::VLAN_TCI.maximum());
            if !matching.restrict(Field::VLAN_TCI, value, mask) {
                return refused(BadMatch::BadValue);
            }
            continue;
        }
        if condition.is_exact() {
            mask = key.maximum();
        }
        // ARP operations above 255 are in no key.
        if value > key.maximum() || !matching.restrict(key, value, mask) {
            return refused(BadMatch::BadValue);
        }
    }
    Ok(matching)
}

fn push(out: &mut Vec<FieldMatch>, matching: &Match, key: Field, field: Oxm) {
    let mask = matching.mask.get(key);
    if mask != 0 {
        let value = matching.value.get(key);
        let whole = mask == key.maximum();
        out.push(if whole { FieldMatch::exact(field, value) } else { FieldMatch::masked(field, value, mask) });
    }
}

/// A match over the flow key as one of the wire.
pub(super) fn write_match(matching: &Match) -> OxmMatch {
    let mut out = Vec::new();
    for (key, field) in [
        (Field::IN_PORT, Oxm::InPort),
        (Field::METADATA, Oxm::Metadata),
        (Field::TUNNEL_ID, Oxm::TunnelId),
        (Field::ETH_DST, Oxm::EthDst),
        (Field::ETH_SRC, Oxm::EthSrc),
        (Field::ETH_TYPE, Oxm::EthType),
    ] {
        push(&mut out, matching, key, field);
    }
    write_vlan(matching, &mut out);
    let eth_type = matching.exact(Field::ETH_TYPE);
    let protocol = matching.exact(Field::NW_PROTO);
    let ip: &[(Field, Oxm)] = &[
        (Field::IP_DSCP, Oxm::IpDscp),
        (Field::IP_ECN, Oxm::IpEcn),
        (Field::NW_TTL, Oxm::IpTtl),
        (Field::NW_FRAG, Oxm::IpFrag),
        (Field::NW_PROTO, Oxm::IpProto),
    ];
    let network: &[(Field, Oxm)] = match eth_type {
        Some(0x0800) => &[(Field::NW_SRC, Oxm::Ipv4Src), (Field::NW_DST, Oxm::Ipv4Dst)],
        Some(0x86dd) => &[
            (Field::IPV6_SRC, Oxm::Ipv6Src),
            (Field::IPV6_DST, Oxm::Ipv6Dst),
            (Field::IPV6_LABEL, Oxm::Ipv6Flabel),
            (Field::IPV6_EXTENSIONS, Oxm::Ipv6Exthdr),
        ],
        Some(0x0806 | 0x8035) => &[
            (Field::NW_PROTO, Oxm::ArpOp),
            (Field::NW_SRC, Oxm::ArpSpa),
            (Field::NW_DST, Oxm::ArpTpa),
            (Field::ARP_SHA, Oxm::ArpSha),
            (Field::ARP_THA, Oxm::ArpTha),
        ],
        Some(0x8847 | 0x8848) => {
            &[(Field::MPLS_LABEL, Oxm::MplsLabel), (Field::MPLS_TC, Oxm::MplsTc), (Field::MPLS_BOS, Oxm::MplsBos)]
        }
        Some(0x88e7) => &[(Field::PBB_ISID, Oxm::PbbIsid)],
        _ => &[],
    };
    let is_ip = matches!(eth_type, Some(0x0800 | 0x86dd));
    let transport: &[(Field, Oxm)] = match protocol {
        Some(6) => &[(Field::TP_SRC, Oxm::TcpSrc), (Field::TP_DST, Oxm::TcpDst), (Field::TCP_FLAGS, Oxm::TcpFlags)],
        Some(17) => &[(Field::TP_SRC, Oxm::UdpSrc), (Field::TP_DST, Oxm::UdpDst)],
        Some(132) => &[(Field::TP_SRC, Oxm::SctpSrc), (Field::TP_DST, Oxm::SctpDst)],
        Some(1) => &[(Field::TP_SRC, Oxm::Icmpv4Type), (Field::TP_DST, Oxm::Icmpv4Code)],
        Some(58) => &[
            (Field::TP_SRC, Oxm::Icmpv6Type),
            (Field::TP_DST, Oxm::Icmpv6Code),
            (Field::ND_TARGET, Oxm::Ipv6NdTarget),
            (Field::ARP_SHA, Oxm::Ipv6NdSll),
            (Field::ARP_THA, Oxm::Ipv6NdTll),
        ],
        _ => &[],
    };
    let pieces = [if is_ip { ip } else { &[] }, network, if is_ip { transport } else { &[] }];
    for (key, field) in pieces.into_iter().flatten() {
        push(&mut out, matching, *key, *field);
    }
    for number in 0..16 {
        if let Some(field) = Oxm::named(&format!("reg{number}")) {
            push(&mut out, matching, Field::register(number), field);
        }
    }
    OxmMatch::new(out)
}

fn write_vlan(matching: &Match, out: &mut Vec<FieldMatch>) {
    let (value, mask) = (matching.value.get(Field::VLAN_TCI), matching.mask.get(Field::VLAN_TCI));
    match mask {
        0 => {}
        0xffff if value == 0 => out.push(FieldMatch::exact(Oxm::VlanVid, 0)),
        _ if mask & 0xe000 == 0 || (mask & 0xe000 == 0xe000 && mask & 0x1fff != 0) => {
            push(out, matching, Field::VLAN_VID_PRESENT, Oxm::VlanVid);
            push(out, matching, Field::VLAN_PCP, Oxm::VlanPcp);
        }
        _ => out.push(FieldMatch::masked(Oxm::VlanTci, value, mask)),
    }
}

/// A match of OpenFlow 1.0. What has no meaning without another condition is not looked at, as the version has it.
pub(super) fn read_match_v10(wire: &v10::Match) -> Match {
    let mut matching = Match::default();
    let matters = |bit: v10::Wildcards| !wire.wildcards.contains(bit);
    let mut restrict = |field: Field, value: u128, mask: u128| {
        matching.restrict(field, value, mask);
    };
    let mac = |address| twinnet_packet::mac_value(address);
    if matters(v10::Wildcards::IN_PORT) {
        restrict(Field::IN_PORT, u128::from(from_narrow(wire.in_port)), Field::IN_PORT.maximum());
    }
    if matters(v10::Wildcards::DL_SRC) {
        restrict(Field::ETH_SRC, mac(wire.dl_src), Field::ETH_SRC.maximum());
    }
    if matters(v10::Wildcards::DL_DST) {
        restrict(Field::ETH_DST, mac(wire.dl_dst), Field::ETH_DST.maximum());
    }
    let vlan = matters(v10::Wildcards::DL_VLAN);
    if vlan && wire.dl_vlan == v10::VLAN_NONE {
        restrict(Field::VLAN_TCI, 0, Field::VLAN_TCI.maximum());
    } else {
        if vlan {
            restrict(Field::VLAN_VID_PRESENT, 0x1000 | u128::from(wire.dl_vlan & 0xfff), 0x1fff);
        }
        if matters(v10::Wildcards::DL_VLAN_PCP) {
            restrict(Field::VLAN_TCI, 0x1000 | u128::from(wire.dl_vlan_pcp & 7) << 13, 0xf000);
        }
    }
    if !matters(v10::Wildcards::DL_TYPE) {
        return matching;
    }
    // "Use Ethernet type following VLAN header": behind one tag the version looks at its type alone (1.0, figure 4).
    if wire.dl_type == VLAN_TYPE {
        restrict(Field::INNER_VLAN_PRESENT, 1, 1);
        return matching;
    }
    restrict(Field::INNER_VLAN_PRESENT, 0, 1);
    restrict(Field::ETH_TYPE, u128::from(wire.dl_type), Field::ETH_TYPE.maximum());
    let (v4, v6, arp) = (wire.dl_type == 0x0800, wire.dl_type == 0x86dd, wire.dl_type == 0x0806);
    if (v4 || v6) && matters(v10::Wildcards::NW_TOS) {
        restrict(Field::IP_DSCP, u128::from(wire.nw_tos >> 2), Field::IP_DSCP.maximum());
    }
    if v4 || arp {
        restrict(Field::NW_SRC, u128::from(wire.nw_src), u128::from(wire.nw_src_mask()));
        restrict(Field::NW_DST, u128::from(wire.nw_dst), u128::from(wire.nw_dst_mask()));
    }
    if (v4 || v6 || arp) && matters(v10::Wildcards::NW_PROTO) {
        restrict(Field::NW_PROTO, u128::from(wire.nw_proto), Field::NW_PROTO.maximum());
        let icmp = v4 && wire.nw_proto == 1 || v6 && wire.nw_proto == 58;
        // SCTP has the ports of the other transports, though the version does not name it.
        if icmp || (v4 || v6) && matches!(wire.nw_proto, 6 | 17 | 132) {
            if matters(v10::Wildcards::TP_SRC) {
                restrict(Field::TP_SRC, u128::from(wire.tp_src), Field::TP_SRC.maximum());
            }
            if matters(v10::Wildcards::TP_DST) {
                restrict(Field::TP_DST, u128::from(wire.tp_dst), Field::TP_DST.maximum());
            }
        }
    }
    matching
}

/// As [`read_match_v10`], to choose among flows: also those of an EtherType that others wrote, whose frames may have
/// a second tag.
pub(super) fn read_filter_v10(wire: &v10::Match) -> Match {
    let mut matching = read_match_v10(wire);
    if matching.value.get(Field::INNER_VLAN_PRESENT) == 0 {
        matching.mask.set(Field::INNER_VLAN_PRESENT, 0);
    }
    matching
}

/// A match over the flow key as one of OpenFlow 1.0; what that has no field for is left out.
pub(super) fn write_match_v10(matching: &Match) -> v10::Match {
    let mut wire = v10::Match::any();
    let mut wildcards = wire.wildcards.0;
    let mut exact = |field: Field, bit: v10::Wildcards| {
        let value = matching.exact(field);
        if value.is_some() {
            wildcards &= !bit.0;
        }
        value.unwrap_or(0)
    };
    wire.in_port = to_narrow(exact(Field::IN_PORT, v10::Wildcards::IN_PORT) as u32);
    wire.dl_src = twinnet_packet::mac_of(exact(Field::ETH_SRC, v10::Wildcards::DL_SRC));
    wire.dl_dst = twinnet_packet::mac_of(exact(Field::ETH_DST, v10::Wildcards::DL_DST));
    wire.dl_type = exact(Field::ETH_TYPE, v10::Wildcards::DL_TYPE) as u16;
    if matching.value.get(Field::INNER_VLAN_PRESENT) == 1 {
        exact(Field::INNER_VLAN_PRESENT, v10::Wildcards::DL_TYPE);
        wire.dl_type = VLAN_TYPE;
    }
    wire.nw_tos = (exact(Field::IP_DSCP, v10::Wildcards::NW_TOS) as u8) << 2;
    wire.nw_proto = exact(Field::NW_PROTO, v10::Wildcards::NW_PROTO) as u8;
    wire.tp_src = exact(Field::TP_SRC, v10::Wildcards::TP_SRC) as u16;
    wire.tp_dst = exact(Field::TP_DST, v10::Wildcards::TP_DST) as u16;
    wire.dl_vlan = exact(Field::VLAN_VID_PRESENT, v10::Wildcards::DL_VLAN) as u16 & 0xfff;
    if matching.mask.get(Field::VLAN_TCI) == 0xffff && matching.value.get(Field::VLAN_TCI) == 0 {
        wire.dl_vlan = v10::VLAN_NONE;
    } else {
        wire.dl_vlan_pcp = exact(Field::VLAN_PCP, v10::Wildcards::DL_VLAN_PCP) as u8;
    }
    for (field, shift) in [(Field::NW_SRC, 8), (Field::NW_DST, 14)] {
        let mask = matching.mask.get(field) as u32;
        wildcards = wildcards & !(0x3f << shift) | (mask.trailing_zeros()) << shift;
        let value = matching.value.get(field) as u32;
        if field == Field::NW_SRC {
            wire.nw_src = value;
        } else {
            wire.nw_dst = value;
        }
    }
    wire.wildcards = v10::Wildcards(wildcards);
    wire
}

/// The EtherType of a VLAN tag.
const VLAN_TYPE: u16 = 0x8100;
/// Why a field cannot be set.
pub(super) const BAD_SET_TYPE: ErrorKind = ErrorKind::BadAction(BadAction::BadSetType);

#[cfg(test)]
mod tests {
    use super::super::super::parse;
    use super::*;

    #[test]
    fn every_field_of_the_specification_is_ours_too() {
        let unknown: Vec<_> =
            (0..40).filter_map(|number| Oxm::of(0x8000, number)).filter(|field| ours(*field).is_none()).collect();
        assert_eq!(unknown, []);
    }

    #[test]
    fn a_match_comes_back_from_the_wire_as_it_was() {
        for line in [
            "in_port=3,dl_src=00:00:00:00:00:01,tcp,nw_dst=10.0.0.0/24,tp_dst=80",
            "dl_vlan=5,dl_vlan_pcp=3,udp6,ipv6_src=fd00::/64,tp_src=53",
            "vlan_tci=0x1000/0x1000",
            "dl_vlan=0xffff,arp,arp_op=1,arp_spa=10.0.0.1",
            "icmp6,icmp_type=135,nd_target=fe80::1,nd_sll=00:00:00:00:00:02",
            "mpls,mpls_label=16,mpls_bos=1",
            "metadata=5/7,reg3=9,ip,nw_tos=8,nw_ecn=1",
            "dl_type=0x88e7,pbb_isid=0x123456",
        ] {
            let matching = parse::selection(line).unwrap().matching;
            let wire = write_match(&matching);
            assert_eq!(wire.check(), Ok(()), "{line}");
            assert_eq!(read_match(&wire), Ok(matching), "{line}");
        }
    }

    #[test]
    fn a_match_of_version_1_0_comes_back_as_it_was() {
        for line in [
            "in_port=3,tcp,nw_dst=10.0.0.0/24,tp_dst=80",
            "dl_vlan=0xffff",
            "dl_vlan=5,dl_vlan_pcp=3",
            "arp,arp_op=2",
            "tcp6,nw_tos=32,tp_src=11111,tp_dst=2222",
            "icmp6,icmp_type=128,icmp_code=0",
            "",
        ] {
            let matching = parse::selection(line).unwrap().matching;
            assert_eq!(read_filter_v10(&write_match_v10(&matching)), matching, "{line}");
        }
    }

    #[test]
    fn an_ethertype_of_version_1_0_is_that_behind_the_outer_tag() {
        let of_type = |dl_type| {
            let mut wire = v10::Match { dl_type, ..v10::Match::any() };
            wire.wildcards.0 &= !v10::Wildcards::DL_TYPE.0;
            wire
        };
        let frame = |tags: &[u16]| {
            let mut bytes = vec![0; 12];
            for tag in tags {
                bytes.extend([VLAN_TYPE.to_be_bytes(), tag.to_be_bytes()].concat());
            }
            bytes.extend([0x88, 0xb5, 0, 0, 0, 0, 0, 0, 0, 0]);
            twinnet_packet::FlowKey::extract(1, &bytes)
        };
        let met = |dl_type, tags: &[u16]| read_match_v10(&of_type(dl_type)).matches(&frame(tags));
        assert_eq!([met(0x88b5, &[]), met(0x88b5, &[5]), met(0x88b5, &[5, 6])], [true, true, false]);
        assert_eq!([met(VLAN_TYPE, &[]), met(VLAN_TYPE, &[5]), met(VLAN_TYPE, &[5, 6])], [false, false, true]);
        assert!(met(VLAN_TYPE, &[5, 6, 7]));
        for dl_type in [0x88b5, 0x0800, VLAN_TYPE] {
            let back = write_match_v10(&read_match_v10(&of_type(dl_type)));
            assert_eq!((back.dl_type, back.wildcards.contains(v10::Wildcards::DL_TYPE)), (dl_type, false));
        }
        // Questions and deletions are about the flows of all versions.
        let others = parse::selection("ip").unwrap().matching;
        assert!(others.is_within(&read_filter_v10(&of_type(0x0800))));
        assert!(read_match_v10(&of_type(0x0800)).is_within(&read_filter_v10(&of_type(0x0800))));
    }
}
