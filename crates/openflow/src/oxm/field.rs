//! Every match field: its width, its numbers on the wire, where a mask is allowed, and what must be matched before it.
//!
//! The fields of OpenFlow 1.3 are those of table 12 of the specification. The Nicira fields that mean the same as
//! one of them are that field with a second number; those that mean something else (a port of 16 bits, the whole
//! VLAN tag, the whole type of service) are fields of their own.

use crate::error::{Fault, Refusal};

/// `OFPXMC_OPENFLOW_BASIC`.
pub const CLASS_OPENFLOW_BASIC: u16 = 0x8000;
/// `OFPXMC_EXPERIMENTER`: four bytes with the experimenter follow the header.
pub const CLASS_EXPERIMENTER: u16 = 0xffff;
/// The class of packet registers, as Open vSwitch takes it from OpenFlow 1.5.
pub const CLASS_PACKET_REGISTERS: u16 = 0x8001;
/// `NXM_OF_*`.
pub const CLASS_NXM_OPENFLOW: u16 = 0;
/// `NXM_NX_*`.
pub const CLASS_NXM_NICIRA: u16 = 1;

/// A field's number in one class, and whether that class allows it a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireNumber {
    /// The class.
    pub class: u16,
    /// The field's number in the class, 0 to 127.
    pub number: u8,
    /// `true` if a mask is allowed.
    pub maskable: bool,
}

/// The condition that a match must contain, before the field that asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prerequisite {
    /// The field, matched in any way.
    Present(Field),
    /// The field, with one of these values.
    OneOf(Field, &'static [u128]),
    /// The field, with a value other than this one.
    Not(Field, u128),
}

impl Prerequisite {
    /// The field that must be matched.
    #[must_use]
    pub const fn field(self) -> Field {
        match self {
            Self::Present(field) | Self::OneOf(field, _) | Self::Not(field, _) => field,
        }
    }

    /// Returns `true` if `value` of the field is one that this asks for.
    #[must_use]
    pub fn is_met_by(self, value: u128) -> bool {
        match self {
            Self::Present(_) => true,
            Self::OneOf(_, values) => values.contains(&value),
            Self::Not(_, excluded) => value != excluded,
        }
    }
}

/// The known facts of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// The name, as `ovs-ofctl` and os-ken write it.
    pub name: &'static str,
    /// Bits that the value may have.
    pub bits: u8,
    /// Bytes that the value takes on the wire.
    pub bytes: u8,
    /// Its number among the OXM fields.
    pub oxm: Option<WireNumber>,
    /// Its number among the Nicira fields.
    pub nxm: Option<WireNumber>,
    /// The conditions that must be matched before it.
    pub prerequisites: &'static [Prerequisite],
}

macro_rules! fields {
    ($($variant:ident $name:literal $spec:literal $bits:literal/$bytes:literal $oxm:expr, $nxm:expr,
     $prerequisites:expr;)*) => {
        /// A match field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Field { $(#[doc = concat!("`", $spec, "`, ", $bits, " bits.")] $variant,)* }

        impl Field {
            /// Every field.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The field's name, as `ovs-ofctl` and os-ken write it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                self.info().name
            }

            /// Returns what is known of the field.
            #[must_use]
            pub const fn info(self) -> &'static FieldInfo {
                static TABLE: [FieldInfo; Field::ALL.len()] = INFO;
                &TABLE[self as usize]
            }
        }

        const INFO: [FieldInfo; Field::ALL.len()] = {
            use Field::*;
            [$(FieldInfo {
                name: $name, bits: $bits, bytes: $bytes, oxm: $oxm, nxm: $nxm, prerequisites: &$prerequisites,
            }),*]
        };
    };
}

const fn wire(class: u16, number: u8, maskable: bool) -> Option<WireNumber> {
    Some(WireNumber { class, number, maskable })
}
const fn present(field: Field) -> Prerequisite {
    Prerequisite::Present(field)
}
const fn is(field: Field, values: &'static [u128]) -> Prerequisite {
    Prerequisite::OneOf(field, values)
}
const fn is_not(field: Field, value: u128) -> Prerequisite {
    Prerequisite::Not(field, value)
}

fields! {
    InPort "in_port" "OXM_OF_IN_PORT" 32/4 wire(0x8000, 0, false), None, [];
    InPhyPort "in_phy_port" "OXM_OF_IN_PHY_PORT" 32/4 wire(0x8000, 1, false), None, [present(InPort)];
    Metadata "metadata" "OXM_OF_METADATA" 64/8 wire(0x8000, 2, true), None, [];
    EthDst "eth_dst" "OXM_OF_ETH_DST" 48/6 wire(0x8000, 3, true), wire(0x0000, 1, true), [];
    EthSrc "eth_src" "OXM_OF_ETH_SRC" 48/6 wire(0x8000, 4, true), wire(0x0000, 2, true), [];
    EthType "eth_type" "OXM_OF_ETH_TYPE" 16/2 wire(0x8000, 5, false), wire(0x0000, 3, false), [];
    VlanVid "vlan_vid" "OXM_OF_VLAN_VID" 13/2 wire(0x8000, 6, true), None, [];
    VlanPcp "vlan_pcp" "OXM_OF_VLAN_PCP" 3/1 wire(0x8000, 7, false), None, [is_not(VlanVid, 0)];
    IpDscp "ip_dscp" "OXM_OF_IP_DSCP" 6/1 wire(0x8000, 8, false), None, [is(EthType, &[0x0800, 0x86dd])];
    IpEcn "ip_ecn" "OXM_OF_IP_ECN" 2/1 wire(0x8000, 9, false), wire(0x0001, 28, false),
        [is(EthType, &[0x0800, 0x86dd])];
    IpProto "ip_proto" "OXM_OF_IP_PROTO" 8/1 wire(0x8000, 10, false), wire(0x0000, 6, false),
        [is(EthType, &[0x0800, 0x86dd])];
    Ipv4Src "ipv4_src" "OXM_OF_IPV4_SRC" 32/4 wire(0x8000, 11, true), wire(0x0000, 7, true), [is(EthType, &[0x0800])];
    Ipv4Dst "ipv4_dst" "OXM_OF_IPV4_DST" 32/4 wire(0x8000, 12, true), wire(0x0000, 8, true), [is(EthType, &[0x0800])];
    TcpSrc "tcp_src" "OXM_OF_TCP_SRC" 16/2 wire(0x8000, 13, false), wire(0x0000, 9, true), [is(IpProto, &[6])];
    TcpDst "tcp_dst" "OXM_OF_TCP_DST" 16/2 wire(0x8000, 14, false), wire(0x0000, 10, true), [is(IpProto, &[6])];
    UdpSrc "udp_src" "OXM_OF_UDP_SRC" 16/2 wire(0x8000, 15, false), wire(0x0000, 11, true), [is(IpProto, &[17])];
    UdpDst "udp_dst" "OXM_OF_UDP_DST" 16/2 wire(0x8000, 16, false), wire(0x0000, 12, true), [is(IpProto, &[17])];
    SctpSrc "sctp_src" "OXM_OF_SCTP_SRC" 16/2 wire(0x8000, 17, false), None, [is(IpProto, &[132])];
    SctpDst "sctp_dst" "OXM_OF_SCTP_DST" 16/2 wire(0x8000, 18, false), None, [is(IpProto, &[132])];
    Icmpv4Type "icmpv4_type" "OXM_OF_ICMPV4_TYPE" 8/1 wire(0x8000, 19, false), wire(0x0000, 13, false),
        [is(IpProto, &[1])];
    Icmpv4Code "icmpv4_code" "OXM_OF_ICMPV4_CODE" 8/1 wire(0x8000, 20, false), wire(0x0000, 14, false),
        [is(IpProto, &[1])];
    ArpOp "arp_op" "OXM_OF_ARP_OP" 16/2 wire(0x8000, 21, false), wire(0x0000, 15, false),
        [is(EthType, &[0x0806, 0x8035])];
    ArpSpa "arp_spa" "OXM_OF_ARP_SPA" 32/4 wire(0x8000, 22, true), wire(0x0000, 16, true),
        [is(EthType, &[0x0806, 0x8035])];
    ArpTpa "arp_tpa" "OXM_OF_ARP_TPA" 32/4 wire(0x8000, 23, true), wire(0x0000, 17, true),
        [is(EthType, &[0x0806, 0x8035])];
    ArpSha "arp_sha" "OXM_OF_ARP_SHA" 48/6 wire(0x8000, 24, true), wire(0x0001, 17, true),
        [is(EthType, &[0x0806, 0x8035])];
    ArpTha "arp_tha" "OXM_OF_ARP_THA" 48/6 wire(0x8000, 25, true), wire(0x0001, 18, true),
        [is(EthType, &[0x0806, 0x8035])];
    Ipv6Src "ipv6_src" "OXM_OF_IPV6_SRC" 128/16 wire(0x8000, 26, true), wire(0x0001, 19, true),
        [is(EthType, &[0x86dd])];
    Ipv6Dst "ipv6_dst" "OXM_OF_IPV6_DST" 128/16 wire(0x8000, 27, true), wire(0x0001, 20, true),
        [is(EthType, &[0x86dd])];
    Ipv6Flabel "ipv6_flabel" "OXM_OF_IPV6_FLABEL" 20/4 wire(0x8000, 28, true), wire(0x0001, 27, true),
        [is(EthType, &[0x86dd])];
    Icmpv6Type "icmpv6_type" "OXM_OF_ICMPV6_TYPE" 8/1 wire(0x8000, 29, false), wire(0x0001, 21, false),
        [is(IpProto, &[58])];
    Icmpv6Code "icmpv6_code" "OXM_OF_ICMPV6_CODE" 8/1 wire(0x8000, 30, false), wire(0x0001, 22, false),
        [is(IpProto, &[58])];
    Ipv6NdTarget "ipv6_nd_target" "OXM_OF_IPV6_ND_TARGET" 128/16 wire(0x8000, 31, false), wire(0x0001, 23, true),
        [is(Icmpv6Type, &[135, 136])];
    Ipv6NdSll "ipv6_nd_sll" "OXM_OF_IPV6_ND_SLL" 48/6 wire(0x8000, 32, false), wire(0x0001, 24, true),
        [is(Icmpv6Type, &[135])];
    Ipv6NdTll "ipv6_nd_tll" "OXM_OF_IPV6_ND_TLL" 48/6 wire(0x8000, 33, false), wire(0x0001, 25, true),
        [is(Icmpv6Type, &[136])];
    MplsLabel "mpls_label" "OXM_OF_MPLS_LABEL" 20/4 wire(0x8000, 34, false), None, [is(EthType, &[0x8847, 0x8848])];
    MplsTc "mpls_tc" "OXM_OF_MPLS_TC" 3/1 wire(0x8000, 35, false), None, [is(EthType, &[0x8847, 0x8848])];
    MplsBos "mpls_bos" "OXM_OF_MPLS_BOS" 1/1 wire(0x8000, 36, false), None, [is(EthType, &[0x8847, 0x8848])];
    PbbIsid "pbb_isid" "OXM_OF_PBB_ISID" 24/3 wire(0x8000, 37, true), None, [is(EthType, &[0x88e7])];
    TunnelId "tunnel_id" "OXM_OF_TUNNEL_ID" 64/8 wire(0x8000, 38, true), wire(0x0001, 16, true), [];
    Ipv6Exthdr "ipv6_exthdr" "OXM_OF_IPV6_EXTHDR" 9/2 wire(0x8000, 39, true), None, [is(EthType, &[0x86dd])];
    NxmInPort "nxm_in_port" "NXM_OF_IN_PORT" 16/2 None, wire(0x0000, 0, false), [];
    VlanTci "vlan_tci" "NXM_OF_VLAN_TCI" 16/2 None, wire(0x0000, 4, true), [];
    IpTos "ip_tos" "NXM_OF_IP_TOS" 8/1 None, wire(0x0000, 5, false), [is(EthType, &[0x0800, 0x86dd])];
    IpFrag "ip_frag" "NXM_NX_IP_FRAG" 2/1 None, wire(0x0001, 26, true), [is(EthType, &[0x0800, 0x86dd])];
    IpTtl "ip_ttl" "NXM_NX_IP_TTL" 8/1 None, wire(0x0001, 29, false), [is(EthType, &[0x0800, 0x86dd])];
    Cookie "cookie" "NXM_NX_COOKIE" 64/8 None, wire(0x0001, 30, true), [];
    TunIpv4Src "tun_ipv4_src" "NXM_NX_TUN_IPV4_SRC" 32/4 None, wire(0x0001, 31, true), [];
    TunIpv4Dst "tun_ipv4_dst" "NXM_NX_TUN_IPV4_DST" 32/4 None, wire(0x0001, 32, true), [];
    PktMark "pkt_mark" "NXM_NX_PKT_MARK" 32/4 None, wire(0x0001, 33, true), [];
    TcpFlags "tcp_flags" "NXM_NX_TCP_FLAGS" 12/2 None, wire(0x0001, 34, true), [is(IpProto, &[6])];
    ConjId "conj_id" "NXM_NX_CONJ_ID" 32/4 None, wire(0x0001, 37, false), [];
    Reg0 "reg0" "NXM_NX_REG0" 32/4 None, wire(0x0001, 0, true), [];
    Reg1 "reg1" "NXM_NX_REG1" 32/4 None, wire(0x0001, 1, true), [];
    Reg2 "reg2" "NXM_NX_REG2" 32/4 None, wire(0x0001, 2, true), [];
    Reg3 "reg3" "NXM_NX_REG3" 32/4 None, wire(0x0001, 3, true), [];
    Reg4 "reg4" "NXM_NX_REG4" 32/4 None, wire(0x0001, 4, true), [];
    Reg5 "reg5" "NXM_NX_REG5" 32/4 None, wire(0x0001, 5, true), [];
    Reg6 "reg6" "NXM_NX_REG6" 32/4 None, wire(0x0001, 6, true), [];
    Reg7 "reg7" "NXM_NX_REG7" 32/4 None, wire(0x0001, 7, true), [];
    Reg8 "reg8" "NXM_NX_REG8" 32/4 None, wire(0x0001, 8, true), [];
    Reg9 "reg9" "NXM_NX_REG9" 32/4 None, wire(0x0001, 9, true), [];
    Reg10 "reg10" "NXM_NX_REG10" 32/4 None, wire(0x0001, 10, true), [];
    Reg11 "reg11" "NXM_NX_REG11" 32/4 None, wire(0x0001, 11, true), [];
    Reg12 "reg12" "NXM_NX_REG12" 32/4 None, wire(0x0001, 12, true), [];
    Reg13 "reg13" "NXM_NX_REG13" 32/4 None, wire(0x0001, 13, true), [];
    Reg14 "reg14" "NXM_NX_REG14" 32/4 None, wire(0x0001, 14, true), [];
    Reg15 "reg15" "NXM_NX_REG15" 32/4 None, wire(0x0001, 15, true), [];
    Xreg0 "xreg0" "OXM_OF_PKT_REG0" 64/8 wire(0x8001, 0, true), None, [];
    Xreg1 "xreg1" "OXM_OF_PKT_REG1" 64/8 wire(0x8001, 1, true), None, [];
    Xreg2 "xreg2" "OXM_OF_PKT_REG2" 64/8 wire(0x8001, 2, true), None, [];
    Xreg3 "xreg3" "OXM_OF_PKT_REG3" 64/8 wire(0x8001, 3, true), None, [];
    Xreg4 "xreg4" "OXM_OF_PKT_REG4" 64/8 wire(0x8001, 4, true), None, [];
    Xreg5 "xreg5" "OXM_OF_PKT_REG5" 64/8 wire(0x8001, 5, true), None, [];
    Xreg6 "xreg6" "OXM_OF_PKT_REG6" 64/8 wire(0x8001, 6, true), None, [];
    Xreg7 "xreg7" "OXM_OF_PKT_REG7" 64/8 wire(0x8001, 7, true), None, [];
    Xxreg0 "xxreg0" "NXM_NX_XXREG0" 128/16 None, wire(0x0001, 111, true), [];
    Xxreg1 "xxreg1" "NXM_NX_XXREG1" 128/16 None, wire(0x0001, 112, true), [];
    Xxreg2 "xxreg2" "NXM_NX_XXREG2" 128/16 None, wire(0x0001, 113, true), [];
    Xxreg3 "xxreg3" "NXM_NX_XXREG3" 128/16 None, wire(0x0001, 114, true), [];
}

/// The fields of one class by their numbers.
type ByNumber = [Option<Field>; 128];

const fn by_number(class: u16) -> ByNumber {
    let mut table = [None; 128];
    let mut index = 0;
    while index < INFO.len() {
        let FieldInfo { oxm, nxm, .. } = INFO[index];
        if let Some(number) = oxm {
            if number.class == class {
                table[number.number as usize] = Some(Field::ALL[index]);
            }
        }
        if let Some(number) = nxm {
            if number.class == class {
                table[number.number as usize] = Some(Field::ALL[index]);
            }
        }
        index += 1;
    }
    table
}

static BASIC: ByNumber = by_number(CLASS_OPENFLOW_BASIC);
static REGISTERS: ByNumber = by_number(CLASS_PACKET_REGISTERS);
static NXM_OPENFLOW: ByNumber = by_number(CLASS_NXM_OPENFLOW);
static NXM_NICIRA: ByNumber = by_number(CLASS_NXM_NICIRA);

impl Field {
    /// The field with `number` in `class`.
    #[must_use]
    pub fn of(class: u16, number: u8) -> Option<Self> {
        let table = match class {
            CLASS_OPENFLOW_BASIC => &BASIC,
            CLASS_PACKET_REGISTERS => &REGISTERS,
            CLASS_NXM_OPENFLOW => &NXM_OPENFLOW,
            CLASS_NXM_NICIRA => &NXM_NICIRA,
            _ => return None,
        };
        table.get(usize::from(number)).copied().flatten()
    }

    /// The field with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.name() == name)
    }

    /// The largest value of the field: all its bits set.
    #[must_use]
    pub const fn maximum(self) -> u128 {
        u128::MAX >> (128 - self.info().bits as u32)
    }

    /// Returns `true` if the specification allows a Set-Field action to write it: all but the ports that a frame came
    /// in by and the metadata (and what only a match can ask for).
    #[must_use]
    pub const fn is_settable(self) -> bool {
        !matches!(
            self,
            Self::InPort | Self::InPhyPort | Self::Metadata | Self::Cookie | Self::ConjId | Self::Ipv6Exthdr
        )
    }

    /// `value` when the field has room for it.
    pub(crate) const fn check(self, value: u128, fault: Fault) -> Result<u128, Refusal> {
        if value > self.maximum() {
            return Err(Refusal::new(fault, self.name(), value as u64, "what the field's bits hold"));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_basic_class_has_the_forty_fields_of_the_specification_without_a_gap() {
        let known = (0..128).filter(|number| Field::of(CLASS_OPENFLOW_BASIC, *number).is_some()).count();
        assert_eq!(known, 40);
        assert!((0..40).all(|number| Field::of(CLASS_OPENFLOW_BASIC, number).is_some()));
    }

    #[test]
    fn every_field_is_found_by_its_numbers_and_its_name() {
        for field in Field::ALL {
            let info = field.info();
            for number in [info.oxm, info.nxm].into_iter().flatten() {
                assert_eq!(Field::of(number.class, number.number), Some(*field));
            }
            assert_eq!(Field::named(info.name), Some(*field));
            assert!(info.oxm.is_some() || info.nxm.is_some());
            assert!(u32::from(info.bits) <= 8 * u32::from(info.bytes));
        }
    }

    #[test]
    fn masks_are_allowed_where_table_12_allows_them() {
        use Field::*;
        let maskable: Vec<Field> = (0..40)
            .filter_map(|number| Field::of(CLASS_OPENFLOW_BASIC, number))
            .filter(|field| field.info().oxm.is_some_and(|number| number.maskable))
            .collect();
        let expected = [
            Metadata, EthDst, EthSrc, VlanVid, Ipv4Src, Ipv4Dst, ArpSpa, ArpTpa, ArpSha, ArpTha, Ipv6Src, Ipv6Dst,
            Ipv6Flabel, PbbIsid, TunnelId, Ipv6Exthdr,
        ];
        assert_eq!(maskable, expected);
    }
}
