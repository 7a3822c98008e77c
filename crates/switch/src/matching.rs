//! The match of a flow: values and masks over the flow key, and how they are written.

use std::fmt;

use twinnet_packet::{Field, FlowKey};
use twinnet_units::impossible;

use super::field::{Format, MatchField};
use super::value;

/// Values of those bits of the flow key that the mask has; bits outside of the mask are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) value: FlowKey,
    pub(super) mask: FlowKey,
}

impl Match {
    /// The value of a field of which all bits are matched.
    pub(super) fn exact(&self, field: Field) -> Option<u128> {
        (self.mask.get(field) == field.maximum()).then(|| self.value.get(field))
    }

    /// Adds a condition. `false`, and nothing changes, when it contradicts what is matched already.
    pub(super) fn restrict(&mut self, field: Field, value: u128, mask: u128) -> bool {
        let (old_value, old_mask) = (self.value.get(field), self.mask.get(field));
        let value = value & mask;
        if (old_value ^ value) & old_mask & mask != 0 {
            return false;
        }
        self.value.set(field, old_value | value);
        self.mask.set(field, old_mask | mask);
        true
    }

    /// Returns `true` if a frame with this key matches.
    #[cfg(test)]
    pub(super) fn matches(&self, key: &FlowKey) -> bool {
        key.masked(&self.mask) == self.value
    }

    /// Returns `true` if this matches only what `wider` matches too.
    pub(super) fn is_within(&self, wider: &Self) -> bool {
        self.mask.masked(&wider.mask) == wider.mask && self.value.masked(&wider.mask) == wider.value
    }

    /// Returns `true` if some frame could match both.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let both = self.mask.masked(&other.mask);
        self.value.masked(&both) == other.value.masked(&both)
    }

    fn show(&self, parts: &mut Vec<String>, name: &str) {
        let Some(field) = MatchField::by_name(name) else { return impossible!("a field of the key without a name") };
        let mask = self.mask.get(field.field);
        if mask != 0 {
            let value = self.value.get(field.field);
            let text = match field.format {
                Format::Hexadecimal if name == "dl_type" => format!("{value:#06x}"),
                Format::Hexadecimal if name == "ipv6_label" && mask == field.field.maximum() => format!("{value:#07x}"),
                _ => value::show_masked(field, value, mask),
            };
            parts.push(format!("{name}={text}"));
        }
    }

    fn show_vlan(&self, parts: &mut Vec<String>) {
        let (tci, mask) = (self.value.get(Field::VLAN_TCI), self.mask.get(Field::VLAN_TCI));
        let (vid, pcp) = (mask & 0x0fff, mask & 0xe000);
        let plain = matches!(vid, 0 | 0x0fff) && matches!(pcp, 0 | 0xe000) && vid | pcp != 0;
        if tci & mask & 0x1000 != 0 && plain {
            if vid != 0 {
                parts.push(format!("dl_vlan={}", tci & 0x0fff));
            }
            if pcp != 0 {
                parts.push(format!("dl_vlan_pcp={}", tci >> 13));
            }
        } else if mask == 0xffff {
            parts.push(format!("vlan_tci={tci:#06x}"));
        } else if mask != 0 {
            parts.push(format!("vlan_tci={tci:#06x}/{mask:#06x}"));
        }
    }

    /// The conditions in the order and form of `ovs-ofctl dump-flows`.
    pub(super) fn parts(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let (eth_type, protocol) = (self.exact(Field::ETH_TYPE), self.exact(Field::NW_PROTO));
        let (word, protocol_said) = match (eth_type, protocol) {
            (Some(0x0800), Some(1)) => ("icmp", true),
            (Some(0x0800), Some(6)) => ("tcp", true),
            (Some(0x0800), Some(17)) => ("udp", true),
            (Some(0x0800), Some(132)) => ("sctp", true),
            (Some(0x0800), _) => ("ip", false),
            (Some(0x86dd), Some(58)) => ("icmp6", true),
            (Some(0x86dd), Some(6)) => ("tcp6", true),
            (Some(0x86dd), Some(17)) => ("udp6", true),
            (Some(0x86dd), Some(132)) => ("sctp6", true),
            (Some(0x86dd), _) => ("ipv6", false),
            (Some(0x0806), _) => ("arp", false),
            (Some(0x8035), _) => ("rarp", false),
            (Some(0x8847), _) => ("mpls", false),
            (Some(0x8848), _) => ("mplsm", false),
            _ => ("", false),
        };
        let arp = matches!(eth_type, Some(0x0806 | 0x8035));
        if !word.is_empty() {
            parts.push(word.to_owned());
        }
        for number in 0..16 {
            self.show(&mut parts, &format!("reg{number}"));
        }
        for name in ["tun_id", "metadata", "in_port"] {
            self.show(&mut parts, name);
        }
        self.show_vlan(&mut parts);
        for name in ["dl_src", "dl_dst"] {
            self.show(&mut parts, name);
        }
        if word.is_empty() {
            self.show(&mut parts, "dl_type");
        }
        let addresses: &[&str] = match arp {
            _ if eth_type == Some(0x88e7) => &["pbb_isid"],
            true => &["arp_spa", "arp_tpa", "arp_op", "arp_sha", "arp_tha"],
            false => &["nw_src", "nw_dst", "ipv6_src", "ipv6_dst", "ipv6_label", "ipv6_exthdr"],
        };
        for name in addresses {
            self.show(&mut parts, name);
        }
        if !arp && !protocol_said {
            self.show(&mut parts, "nw_proto");
        }
        let rest: &[&str] = match word {
            "arp" | "rarp" => &[],
            "mpls" | "mplsm" => &["mpls_label", "mpls_tc", "mpls_ttl", "mpls_bos"],
            "icmp" => &["nw_tos", "nw_ecn", "nw_ttl", "nw_frag", "icmp_type", "icmp_code"],
            "icmp6" => {
                &["nw_tos", "nw_ecn", "nw_ttl", "nw_frag", "icmp_type", "icmp_code", "nd_target", "nd_sll", "nd_tll"]
            }
            _ => &["nw_tos", "nw_ecn", "nw_ttl", "nw_frag", "tp_src", "tp_dst", "tcp_flags"],
        };
        for name in rest {
            self.show(&mut parts, name);
        }
        parts
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts().join(","))
    }
}
