//! Names of fields and actions in other tools, and what they are called here.

/// Names of other tools, each with what it is called here: of iptables and nftables, tcpdump, Wireshark, `OpenFlow`'s
/// OXM fields and their os-ken spelling, and routers. Dots and hyphens are underscores. The likeliest meaning comes
/// first.
static NAMES: &[(&str, &[&str])] = &[
    // Transport ports.
    ("sport", &["tp_src"]),
    ("source_port", &["tp_src"]),
    ("src_port", &["tp_src"]),
    ("srcport", &["tp_src"]),
    ("tcp_port", &["tcp_src", "tcp_dst"]),
    ("tcp_sport", &["tcp_src"]),
    ("tcp_srcport", &["tcp_src"]),
    ("udp_port", &["udp_src", "udp_dst"]),
    ("udp_sport", &["udp_src"]),
    ("udp_srcport", &["udp_src"]),
    ("dport", &["tp_dst"]),
    ("destination_port", &["tp_dst"]),
    ("dst_port", &["tp_dst"]),
    ("dstport", &["tp_dst"]),
    ("tcp_dport", &["tcp_dst"]),
    ("tcp_dstport", &["tcp_dst"]),
    ("udp_dport", &["udp_dst"]),
    ("udp_dstport", &["udp_dst"]),
    ("port", &["in_port", "tp_src", "tp_dst"]),
    ("inport", &["in_port"]),
    ("in_phy_port", &["in_port"]),
    // Addresses.
    ("src", &["nw_src", "dl_src"]),
    ("source", &["nw_src", "dl_src"]),
    ("saddr", &["nw_src"]),
    ("ip_saddr", &["nw_src"]),
    ("ipv4_src", &["nw_src"]),
    ("src_ip", &["nw_src"]),
    ("ip6_src", &["ipv6_src"]),
    ("ip6_saddr", &["ipv6_src"]),
    ("dst", &["nw_dst", "dl_dst"]),
    ("dest", &["nw_dst", "dl_dst"]),
    ("destination", &["nw_dst", "dl_dst"]),
    ("daddr", &["nw_dst"]),
    ("ip_daddr", &["nw_dst"]),
    ("ipv4_dst", &["nw_dst"]),
    ("dst_ip", &["nw_dst"]),
    ("ip6_dst", &["ipv6_dst"]),
    ("ip6_daddr", &["ipv6_dst"]),
    ("host", &["nw_src", "nw_dst"]),
    ("ip_addr", &["nw_src", "nw_dst"]),
    ("net", &["nw_src", "nw_dst"]),
    ("ether_src", &["dl_src"]),
    ("ether_saddr", &["dl_src"]),
    ("mac_src", &["dl_src"]),
    ("mac_source", &["dl_src"]),
    ("src_mac", &["dl_src"]),
    ("ether_dst", &["dl_dst"]),
    ("ether_daddr", &["dl_dst"]),
    ("mac_dst", &["dl_dst"]),
    ("dst_mac", &["dl_dst"]),
    ("mac", &["dl_src", "dl_dst"]),
    ("ether", &["dl_src", "dl_dst", "dl_type"]),
    ("arp_op_code", &["arp_op"]),
    ("arp_opcode", &["arp_op"]),
    ("arp_src_proto_ipv4", &["arp_spa"]),
    ("arp_dst_proto_ipv4", &["arp_tpa"]),
    ("arp_src_hw_mac", &["arp_sha"]),
    ("arp_dst_hw_mac", &["arp_tha"]),
    // Protocols and their headers.
    ("proto", &["nw_proto"]),
    ("protocol", &["nw_proto"]),
    ("ip_protocol", &["nw_proto"]),
    ("ipv6_nxt", &["nw_proto"]),
    ("ether_type", &["dl_type"]),
    ("ether_proto", &["dl_type"]),
    ("ethertype", &["dl_type"]),
    ("icmpv4_type", &["icmp_type"]),
    ("icmpv4_code", &["icmp_code"]),
    ("icmpv6", &["icmp6"]),
    ("tos", &["nw_tos"]),
    ("dscp", &["ip_dscp"]),
    ("dsfield", &["nw_tos"]),
    ("ip_dsfield_dscp", &["ip_dscp"]),
    ("ip_dsfield_ecn", &["nw_ecn"]),
    ("ecn", &["nw_ecn"]),
    ("ttl", &["nw_ttl"]),
    ("ip_ttl", &["nw_ttl"]),
    ("hop_limit", &["nw_ttl"]),
    ("frag", &["nw_frag"]),
    ("flags", &["tcp_flags"]),
    ("flow_label", &["ipv6_label"]),
    ("ipv6_flabel", &["ipv6_label"]),
    ("ipv6_flow", &["ipv6_label"]),
    ("ipv6_nd_target", &["nd_target"]),
    ("ipv6_nd_sll", &["nd_sll"]),
    ("ipv6_nd_tll", &["nd_tll"]),
    ("vlan", &["dl_vlan"]),
    ("vlan_id", &["dl_vlan"]),
    ("vid", &["dl_vlan"]),
    ("pcp", &["dl_vlan_pcp"]),
    ("vlan_prio", &["dl_vlan_pcp"]),
    ("vlan_priority", &["dl_vlan_pcp"]),
    ("label", &["mpls_label"]),
    // Properties of a flow.
    ("prio", &["priority"]),
    ("preference", &["priority"]),
    ("table_id", &["table"]),
    ("timeout", &["idle_timeout", "hard_timeout"]),
    ("instructions", &["actions"]),
    // Actions.
    ("accept", &["normal"]),
    ("allow", &["normal"]),
    ("permit", &["normal"]),
    ("deny", &["drop"]),
    ("reject", &["drop"]),
    ("block", &["drop"]),
    ("discard", &["drop"]),
    ("forward", &["output", "normal"]),
    ("send", &["output"]),
    ("out", &["output"]),
    ("out_port", &["output"]),
    ("fwd", &["output"]),
    ("broadcast", &["flood"]),
    ("queue", &["enqueue", "set_queue"]),
    ("goto", &["goto_table"]),
    ("jump", &["goto_table"]),
    ("set", &["set_field"]),
    ("snat", &["mod_nw_src"]),
    ("dnat", &["mod_nw_dst"]),
    ("set_dl_src", &["mod_dl_src"]),
    ("set_dl_dst", &["mod_dl_dst"]),
    ("set_nw_src", &["mod_nw_src"]),
    ("set_nw_dst", &["mod_nw_dst"]),
    ("set_nw_tos", &["mod_nw_tos"]),
    ("set_tp_src", &["mod_tp_src"]),
    ("set_tp_dst", &["mod_tp_dst"]),
    ("set_vlan_vid", &["mod_vlan_vid"]),
    ("set_vlan_pcp", &["mod_vlan_pcp"]),
    ("untag", &["strip_vlan"]),
    ("dec_nw_ttl", &["dec_ttl"]),
    ("limit", &["meter"]),
    ("police", &["meter"]),
    ("copy", &["move"]),
];

/// Returns what `given` of another tool is called here, the likeliest first; nothing if no tool calls anything so.
/// `given` is in the form of [`spelt`].
pub(super) fn names_here(given: &str) -> &'static [&'static str] {
    NAMES.iter().find(|(name, _)| *name == given).map_or(&[], |(_, ours)| ours)
}

/// Returns `given` as names are spelt here: `ip.src` and `--ip-src` are `ip_src`.
pub(super) fn spelt(given: &str) -> String {
    given.trim_start_matches('-').to_ascii_lowercase().replace(['.', '-'], "_")
}

#[cfg(test)]
mod tests {
    use super::{names_here, spelt, NAMES};
    use crate::{action::ACTION_NAMES, field::FIELDS, field::SHORTHANDS};
    use std::collections::BTreeSet;

    #[test]
    fn every_name_leads_to_one_that_is_known_and_is_none_itself() {
        let fields: BTreeSet<&str> =
            FIELDS.iter().map(|field| field.name).chain(SHORTHANDS.iter().map(|shorthand| shorthand.0)).collect();
        let properties = ["table", "priority", "idle_timeout", "hard_timeout", "actions"];
        let actions: BTreeSet<&str> =
            ACTION_NAMES.split(", ").map(|name| name.split([':', '(', ' ']).next().unwrap_or(name)).collect();
        for (given, ours) in NAMES {
            assert_eq!(*given, spelt(given));
            assert!(!ours.is_empty(), "{given}");
            for name in *ours {
                assert!(
                    fields.contains(name) || properties.contains(name) || actions.contains(name),
                    "{given}: {name} is not known here"
                );
            }
            assert!(!fields.contains(given), "{given} is a name of ours");
        }
    }

    #[test]
    fn no_name_stands_twice() {
        let names: BTreeSet<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), NAMES.len());
    }

    #[test]
    fn a_name_is_found_in_the_spelling_of_its_tool() {
        assert_eq!(names_here(&spelt("--dport")), ["tp_dst"]);
        assert_eq!(names_here(&spelt("tcp.dstport")), ["tcp_dst"]);
        assert_eq!(names_here(&spelt("IPV4_SRC")), ["nw_src"]);
        assert!(names_here("nonsense").is_empty());
    }
}
