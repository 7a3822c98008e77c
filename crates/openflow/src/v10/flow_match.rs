//! The match of OpenFlow 1.0: twelve fields at fixed offsets, and which of them matter.

use crate::layout::{flags, record};
use crate::MacAddress;

flags! {
    /// `ofp_flow_wildcards`: the fields that do not matter. The IPv4 addresses have six bits each that count the
    /// low bits which do not matter; 32 and more is the whole address.
    pub struct Wildcards: u32 {
        IN_PORT = 1 << 0, "OFPFW_IN_PORT";
        DL_VLAN = 1 << 1, "OFPFW_DL_VLAN";
        DL_SRC = 1 << 2, "OFPFW_DL_SRC";
        DL_DST = 1 << 3, "OFPFW_DL_DST";
        DL_TYPE = 1 << 4, "OFPFW_DL_TYPE";
        NW_PROTO = 1 << 5, "OFPFW_NW_PROTO";
        TP_SRC = 1 << 6, "OFPFW_TP_SRC";
        TP_DST = 1 << 7, "OFPFW_TP_DST";
        NW_SRC_MASK = 0x3f << 8, "OFPFW_NW_SRC_MASK";
        NW_DST_MASK = 0x3f << 14, "OFPFW_NW_DST_MASK";
        DL_VLAN_PCP = 1 << 20, "OFPFW_DL_VLAN_PCP";
        NW_TOS = 1 << 21, "OFPFW_NW_TOS";
    }
}

/// `OFP_VLAN_NONE`: the frame has no VLAN tag.
pub const VLAN_NONE: u16 = 0xffff;
/// `OFP_DL_TYPE_NOT_ETH_TYPE`: the frame is one of IEEE 802.3 without SNAP.
pub const NOT_ETHER_TYPE: u16 = 0x05ff;

record! {
    /// `ofp_match`.
    pub struct Match {
        /// The fields that do not matter.
        pub wildcards: Wildcards;
        /// Port that the frame came in by.
        pub in_port: u16;
        /// Ethernet source.
        pub dl_src: MacAddress;
        /// Ethernet destination.
        pub dl_dst: MacAddress;
        /// VLAN identifier, or [`VLAN_NONE`].
        pub dl_vlan: u16;
        /// VLAN priority.
        pub dl_vlan_pcp: u8 [1];
        /// EtherType, or [`NOT_ETHER_TYPE`].
        pub dl_type: u16;
        /// IPv4 type of service: the DSCP in the upper six bits.
        pub nw_tos: u8;
        /// IPv4 protocol, or the lower eight bits of the ARP operation.
        pub nw_proto: u8 [2];
        /// IPv4 source, or ARP sender.
        pub nw_src: u32;
        /// IPv4 destination, or ARP target.
        pub nw_dst: u32;
        /// TCP or UDP source port, or ICMP type.
        pub tp_src: u16;
        /// TCP or UDP destination port, or ICMP code.
        pub tp_dst: u16;
    }
}

impl Match {
    /// A match of every frame.
    #[must_use]
    pub const fn any() -> Self {
        Self {
            wildcards: Wildcards::ALL,
            in_port: 0,
            dl_src: [0; 6],
            dl_dst: [0; 6],
            dl_vlan: 0,
            dl_vlan_pcp: 0,
            dl_type: 0,
            nw_tos: 0,
            nw_proto: 0,
            nw_src: 0,
            nw_dst: 0,
            tp_src: 0,
            tp_dst: 0,
        }
    }

    /// The bits of the IPv4 source that matter.
    #[must_use]
    pub const fn nw_src_mask(&self) -> u32 {
        address_mask(self.wildcards.0 >> 8)
    }

    /// The bits of the IPv4 destination that matter.
    #[must_use]
    pub const fn nw_dst_mask(&self) -> u32 {
        address_mask(self.wildcards.0 >> 14)
    }
}

const fn address_mask(wildcard_bits: u32) -> u32 {
    match u32::MAX.checked_shl(wildcard_bits & 0x3f) {
        Some(mask) => mask,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_32_and_more_wildcard_bits_matters_not_at_all() {
        for (bits, mask) in [(0, u32::MAX), (8, 0xffff_ff00), (31, 0x8000_0000), (32, 0), (63, 0)] {
            let matching = Match { wildcards: Wildcards(bits << 8 | (63 - bits) << 14), ..Match::any() };
            assert_eq!(matching.nw_src_mask(), mask);
        }
        assert_eq!((Match::any().nw_src_mask(), Match::any().nw_dst_mask()), (0, 0));
    }
}
