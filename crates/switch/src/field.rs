//! The names by which flows match and set header fields: as `ovs-ofctl` spells them, with what each needs and how
//! it is written.

use twinnet_packet::Field;

use super::matching::Match;

/// The format in which a field's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Decimal,
    Hexadecimal,
    Mac,
    Ipv4,
    Ipv6,
    Port,
    /// Flags by name (`+syn-ack`) or number.
    TcpFlags,
    /// `no`, `yes`, `first`, `later`, `not_later`.
    Fragment,
    /// The 8-bit type of service whose two low bits do not count.
    TypeOfService,
    /// VLAN identifier; 0xffff means untagged.
    VlanOrNone,
    /// VLAN priority, which implies that there is a tag.
    VlanPriority,
}

/// The conditions that a match must state beside a field for the field to have a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    Mpls,
    Backbone,
    Arp,
    Ipv4,
    Ipv6,
    Ip,
    Ipv4OrArp,
    IpOrArp,
    Tcp,
    Udp,
    Sctp,
    Transport,
    Icmp,
    Icmpv6,
    NeighbourDiscovery,
    NeighbourSolicitation,
    NeighbourAdvertisement,
}

impl Needs {
    /// Returns `true` if `matching` says enough.
    pub(super) fn met(self, matching: &Match) -> bool {
        let eth_type = matching.exact(Field::ETH_TYPE);
        let (v4, v6, arp) =
            (eth_type == Some(0x0800), eth_type == Some(0x86dd), matches!(eth_type, Some(0x0806 | 0x8035)));
        let protocol = matching.exact(Field::NW_PROTO).filter(|_| v4 || v6);
        let kind = matching.exact(Field::TP_SRC).filter(|_| v6 && protocol == Some(58));
        match self {
            Self::Nothing => true,
            Self::Mpls => matches!(eth_type, Some(0x8847 | 0x8848)),
            Self::Backbone => eth_type == Some(0x88e7),
            Self::Arp => arp,
            Self::Ipv4 => v4,
            Self::Ipv6 => v6,
            Self::Ip => v4 || v6,
            Self::Ipv4OrArp => v4 || arp,
            Self::IpOrArp => v4 || v6 || arp,
            Self::Tcp => protocol == Some(6),
            Self::Udp => protocol == Some(17),
            Self::Sctp => protocol == Some(132),
            Self::Transport => matches!(protocol, Some(6 | 17 | 132)),
            Self::Icmp => v4 && protocol == Some(1) || v6 && protocol == Some(58),
            Self::Icmpv6 => v6 && protocol == Some(58),
            Self::NeighbourDiscovery => matches!(kind, Some(135 | 136)),
            Self::NeighbourSolicitation => kind == Some(135),
            Self::NeighbourAdvertisement => kind == Some(136),
        }
    }

    /// Returns what to add to the match.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Mpls => "mpls",
            Self::Backbone => "dl_type=0x88e7",
            Self::Arp => "arp",
            Self::Ipv4 => "ip",
            Self::Ipv6 => "ipv6",
            Self::Ip => "ip or ipv6",
            Self::Ipv4OrArp => "ip or arp",
            Self::IpOrArp => "ip, ipv6 or arp",
            Self::Tcp => "tcp or tcp6",
            Self::Udp => "udp or udp6",
            Self::Sctp => "sctp or sctp6",
            Self::Transport => "tcp, udp or sctp (tcp6, udp6, sctp6)",
            Self::Icmp => "icmp or icmp6",
            Self::Icmpv6 => "icmp6",
            Self::NeighbourDiscovery => "icmp6,icmp_type=135 or icmp6,icmp_type=136",
            Self::NeighbourSolicitation => "icmp6,icmp_type=135",
            Self::NeighbourAdvertisement => "icmp6,icmp_type=136",
        }
    }
}

/// One name of a field.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MatchField {
    pub(super) name: &'static str,
    pub(super) field: Field,
    pub(super) format: Format,
    pub(super) needs: Needs,
    /// A mask may follow the value.
    pub(super) maskable: bool,
    /// `set_field` can change it.
    pub(super) settable: bool,
}

const fn field(name: &'static str, field: Field, format: Format, needs: Needs) -> MatchField {
    MatchField { name, field, format, needs, maskable: true, settable: true }
}

impl MatchField {
    const fn whole(mut self) -> Self {
        self.maskable = false;
        self
    }

    const fn fixed(mut self) -> Self {
        self.settable = false;
        self
    }

    /// The field of that name.
    pub(super) fn by_name(name: &str) -> Option<&'static Self> {
        FIELDS.iter().find(|field| field.name == name)
    }

    /// The largest value that may be written.
    pub(super) fn maximum(&self) -> u128 {
        match self.name {
            "ip_dscp" => 0x3f,
            _ => self.field.maximum(),
        }
    }
}

/// Every name that is known, the preferred one of a field first.
pub(super) static FIELDS: &[MatchField] = &[
    field("in_port", Field::IN_PORT, Format::Port, Needs::Nothing).whole().fixed(),
    field("metadata", Field::METADATA, Format::Hexadecimal, Needs::Nothing),
    field("tun_id", Field::TUNNEL_ID, Format::Hexadecimal, Needs::Nothing),
    field("tunnel_id", Field::TUNNEL_ID, Format::Hexadecimal, Needs::Nothing),
    field("dl_src", Field::ETH_SRC, Format::Mac, Needs::Nothing),
    field("eth_src", Field::ETH_SRC, Format::Mac, Needs::Nothing),
    field("dl_dst", Field::ETH_DST, Format::Mac, Needs::Nothing),
    field("eth_dst", Field::ETH_DST, Format::Mac, Needs::Nothing),
    field("dl_type", Field::ETH_TYPE, Format::Hexadecimal, Needs::Nothing).whole().fixed(),
    field("eth_type", Field::ETH_TYPE, Format::Hexadecimal, Needs::Nothing).whole(),
    field("dl_vlan", Field::VLAN_VID_PRESENT, Format::VlanOrNone, Needs::Nothing).whole().fixed(),
    field("vlan_vid", Field::VLAN_VID_PRESENT, Format::Hexadecimal, Needs::Nothing),
    field("dl_vlan_pcp", Field::VLAN_PCP, Format::VlanPriority, Needs::Nothing).whole().fixed(),
    field("vlan_pcp", Field::VLAN_PCP, Format::VlanPriority, Needs::Nothing).whole(),
    field("vlan_tci", Field::VLAN_TCI, Format::Hexadecimal, Needs::Nothing).fixed(),
    field("mpls_label", Field::MPLS_LABEL, Format::Decimal, Needs::Mpls).whole(),
    field("mpls_tc", Field::MPLS_TC, Format::Decimal, Needs::Mpls).whole(),
    field("mpls_bos", Field::MPLS_BOS, Format::Decimal, Needs::Mpls).whole(),
    field("mpls_ttl", Field::MPLS_TTL, Format::Decimal, Needs::Mpls).whole(),
    field("nw_src", Field::NW_SRC, Format::Ipv4, Needs::Ipv4OrArp),
    field("ip_src", Field::NW_SRC, Format::Ipv4, Needs::Ipv4),
    field("nw_dst", Field::NW_DST, Format::Ipv4, Needs::Ipv4OrArp),
    field("ip_dst", Field::NW_DST, Format::Ipv4, Needs::Ipv4),
    field("ipv6_src", Field::IPV6_SRC, Format::Ipv6, Needs::Ipv6),
    field("ipv6_dst", Field::IPV6_DST, Format::Ipv6, Needs::Ipv6),
    field("ipv6_label", Field::IPV6_LABEL, Format::Hexadecimal, Needs::Ipv6),
    field("arp_op", Field::NW_PROTO, Format::Decimal, Needs::Arp).whole(),
    field("arp_spa", Field::NW_SRC, Format::Ipv4, Needs::Arp),
    field("arp_tpa", Field::NW_DST, Format::Ipv4, Needs::Arp),
    field("nw_proto", Field::NW_PROTO, Format::Decimal, Needs::IpOrArp).whole().fixed(),
    field("ip_proto", Field::NW_PROTO, Format::Decimal, Needs::Ip).whole(),
    field("arp_sha", Field::ARP_SHA, Format::Mac, Needs::Arp),
    field("arp_tha", Field::ARP_THA, Format::Mac, Needs::Arp),
    field("nw_tos", Field::IP_DSCP, Format::TypeOfService, Needs::Ip).whole(),
    field("ip_dscp", Field::IP_DSCP, Format::Decimal, Needs::Ip).whole(),
    field("nw_ecn", Field::IP_ECN, Format::Decimal, Needs::Ip).whole(),
    field("ip_ecn", Field::IP_ECN, Format::Decimal, Needs::Ip).whole(),
    field("nw_ttl", Field::NW_TTL, Format::Decimal, Needs::Ip).whole(),
    field("nw_frag", Field::NW_FRAG, Format::Fragment, Needs::Ip).fixed(),
    field("ip_frag", Field::NW_FRAG, Format::Fragment, Needs::Ip).fixed(),
    field("icmp_type", Field::TP_SRC, Format::Decimal, Needs::Icmp).whole(),
    field("icmp_code", Field::TP_DST, Format::Decimal, Needs::Icmp).whole(),
    field("icmpv6_type", Field::TP_SRC, Format::Decimal, Needs::Icmpv6).whole(),
    field("icmpv6_code", Field::TP_DST, Format::Decimal, Needs::Icmpv6).whole(),
    field("nd_target", Field::ND_TARGET, Format::Ipv6, Needs::NeighbourDiscovery),
    field("nd_sll", Field::ARP_SHA, Format::Mac, Needs::NeighbourSolicitation),
    field("nd_tll", Field::ARP_THA, Format::Mac, Needs::NeighbourAdvertisement),
    field("tp_src", Field::TP_SRC, Format::Decimal, Needs::Transport),
    field("tp_dst", Field::TP_DST, Format::Decimal, Needs::Transport),
    field("tcp_src", Field::TP_SRC, Format::Decimal, Needs::Tcp),
    field("tcp_dst", Field::TP_DST, Format::Decimal, Needs::Tcp),
    field("udp_src", Field::TP_SRC, Format::Decimal, Needs::Udp),
    field("udp_dst", Field::TP_DST, Format::Decimal, Needs::Udp),
    field("sctp_src", Field::TP_SRC, Format::Decimal, Needs::Sctp),
    field("sctp_dst", Field::TP_DST, Format::Decimal, Needs::Sctp),
    field("ipv6_exthdr", Field::IPV6_EXTENSIONS, Format::Hexadecimal, Needs::Ipv6).fixed(),
    field("pbb_isid", Field::PBB_ISID, Format::Hexadecimal, Needs::Backbone),
    field("tcp_flags", Field::TCP_FLAGS, Format::TcpFlags, Needs::Tcp).fixed(),
    field("reg0", Field::register(0), Format::Hexadecimal, Needs::Nothing),
    field("reg1", Field::register(1), Format::Hexadecimal, Needs::Nothing),
    field("reg2", Field::register(2), Format::Hexadecimal, Needs::Nothing),
    field("reg3", Field::register(3), Format::Hexadecimal, Needs::Nothing),
    field("reg4", Field::register(4), Format::Hexadecimal, Needs::Nothing),
    field("reg5", Field::register(5), Format::Hexadecimal, Needs::Nothing),
    field("reg6", Field::register(6), Format::Hexadecimal, Needs::Nothing),
    field("reg7", Field::register(7), Format::Hexadecimal, Needs::Nothing),
    field("reg8", Field::register(8), Format::Hexadecimal, Needs::Nothing),
    field("reg9", Field::register(9), Format::Hexadecimal, Needs::Nothing),
    field("reg10", Field::register(10), Format::Hexadecimal, Needs::Nothing),
    field("reg11", Field::register(11), Format::Hexadecimal, Needs::Nothing),
    field("reg12", Field::register(12), Format::Hexadecimal, Needs::Nothing),
    field("reg13", Field::register(13), Format::Hexadecimal, Needs::Nothing),
    field("reg14", Field::register(14), Format::Hexadecimal, Needs::Nothing),
    field("reg15", Field::register(15), Format::Hexadecimal, Needs::Nothing),
    field("xreg0", Field::wide_register(0), Format::Hexadecimal, Needs::Nothing),
    field("xreg1", Field::wide_register(1), Format::Hexadecimal, Needs::Nothing),
    field("xreg2", Field::wide_register(2), Format::Hexadecimal, Needs::Nothing),
    field("xreg3", Field::wide_register(3), Format::Hexadecimal, Needs::Nothing),
    field("xreg4", Field::wide_register(4), Format::Hexadecimal, Needs::Nothing),
    field("xreg5", Field::wide_register(5), Format::Hexadecimal, Needs::Nothing),
    field("xreg6", Field::wide_register(6), Format::Hexadecimal, Needs::Nothing),
    field("xreg7", Field::wide_register(7), Format::Hexadecimal, Needs::Nothing),
    field("xxreg0", Field::widest_register(0), Format::Hexadecimal, Needs::Nothing),
    field("xxreg1", Field::widest_register(1), Format::Hexadecimal, Needs::Nothing),
    field("xxreg2", Field::widest_register(2), Format::Hexadecimal, Needs::Nothing),
    field("xxreg3", Field::widest_register(3), Format::Hexadecimal, Needs::Nothing),
];

/// Words that stand for an EtherType and perhaps a protocol.
pub(super) static SHORTHANDS: &[(&str, u16, Option<u8>)] = &[
    ("ip", 0x0800, None),
    ("ipv4", 0x0800, None),
    ("ipv6", 0x86dd, None),
    ("ip6", 0x86dd, None),
    ("icmp", 0x0800, Some(1)),
    ("icmp6", 0x86dd, Some(58)),
    ("tcp", 0x0800, Some(6)),
    ("tcp6", 0x86dd, Some(6)),
    ("udp", 0x0800, Some(17)),
    ("udp6", 0x86dd, Some(17)),
    ("sctp", 0x0800, Some(132)),
    ("sctp6", 0x86dd, Some(132)),
    ("arp", 0x0806, None),
    ("rarp", 0x8035, None),
    ("mpls", 0x8847, None),
    ("mplsm", 0x8848, None),
];
