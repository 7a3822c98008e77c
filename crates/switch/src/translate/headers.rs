//! Changes of a frame's headers: what becomes of the key, and the step that does the same to the frame.

use twinnet_packet::{mac_of, Field, FlowKey, Rewrite};

use super::{Halt, Walk};
use crate::decision::Step;
use crate::field::MatchField;

impl Walk<'_> {
    /// The new entry has the fields of the one that it covers, or label 0 and IP's time to live; fields that there
    /// is nothing to copy from are 0 (5.11.1).
    pub(super) fn push_mpls(&mut self, protocol: u16) {
        let covered = self.key.get(Field::MPLS_LSE) as u32;
        let entry = match self.key.eth_type() {
            0x8847 | 0x8848 => covered & !0x100,
            0x0800 | 0x86dd => 0x100 | self.key.get(Field::NW_TTL) as u32,
            _ => 0x100,
        };
        self.push(Step::Rewrite(Rewrite::PushMpls { eth_type: protocol, entry }));
        let mut key = FlowKey::ZERO;
        let kept = [Field::IN_PORT, Field::ETH_SRC, Field::ETH_DST, Field::METADATA, Field::TUNNEL_ID];
        let registers = (0..4).map(Field::widest_register);
        for field in kept.into_iter().chain(registers) {
            key.set(field, self.key.get(field));
        }
        key.set(Field::ETH_TYPE, u128::from(protocol));
        key.set(Field::MPLS_LSE, u128::from(entry));
        self.key = key;
    }

    pub(super) fn set_mpls_ttl(&mut self, ttl: u128) {
        if matches!(self.key.eth_type(), 0x8847 | 0x8848) {
            self.key.set(Field::MPLS_TTL, ttl);
            self.push(Step::Rewrite(Rewrite::MplsEntry(self.key.get(Field::MPLS_LSE) as u32)));
        }
    }

    pub(super) fn push_vlan(&mut self, protocol: u16) {
        let outer = self.key.get(Field::VLAN_TCI);
        if outer != 0 {
            self.key.set(Field::INNER_VLAN_TCI, outer);
        }
        // "Existing fields that may be copied into new fields on a push action": identifier and priority (OpenFlow
        // 1.3, 5.12.1). A frame without a tag gets zeros.
        self.key.set(Field::VLAN_TCI, outer | 0x1000);
        self.push(Step::Rewrite(Rewrite::PushVlan { protocol, tci: outer as u16 & 0xefff }));
    }

    pub(super) fn pop_vlan(&mut self) {
        if self.key.get(Field::VLAN_PRESENT) == 1 {
            let inner = self.key.get(Field::INNER_VLAN_TCI);
            self.key.set(Field::VLAN_TCI, inner);
            self.key.set(Field::INNER_VLAN_TCI, 0);
            self.push(Step::Rewrite(Rewrite::PopVlan));
        }
    }

    /// RFC 1812, 5.3.1: a packet whose time to live would become zero is not forwarded.
    pub(super) fn decrement_ttl(&mut self) -> Result<(), Halt> {
        if !matches!(self.key.eth_type(), 0x0800 | 0x86dd) {
            return Ok(());
        }
        let ttl = self.key.get(Field::NW_TTL);
        if ttl <= 1 {
            return Err(Halt::TimeToLive);
        }
        self.key.set(Field::NW_TTL, ttl - 1);
        self.push(Step::Rewrite(Rewrite::TimeToLive((ttl - 1) as u8)));
        Ok(())
    }

    /// Sets those bits of a field that the mask has, where the frame has the field.
    pub(super) fn set(&mut self, field: &MatchField, value: u128, mask: u128) {
        let at = field.field;
        let vlan = matches!(at, Field::VLAN_VID_PRESENT | Field::VLAN_PCP);
        if vlan && self.key.get(Field::VLAN_PRESENT) == 0 {
            self.push_vlan(0x8100);
        }
        let before = self.key;
        self.key.set(at, self.key.get(at) & !mask | value & mask);
        if vlan {
            self.key.set(Field::VLAN_PRESENT, 1);
        }
        if matches!(at, Field::METADATA | Field::TUNNEL_ID) || at.is_register() {
            return;
        }
        match rewrite_of(&self.key, at) {
            Some(rewrite) => {
                self.push(Step::Rewrite(rewrite));
                // What follows is another header now.
                let ip = matches!(self.key.eth_type(), 0x0800 | 0x86dd);
                self.stale |= at == Field::ETH_TYPE || at == Field::NW_PROTO && ip;
            }
            // A later fragment, or a header cut short: the frame has no such field.
            None => self.key = before,
        }
    }
}

/// The change that gives a frame the field as `key` has it; `None` where frames with such a key have no such field.
#[allow(clippy::cast_possible_truncation)]
fn rewrite_of(key: &FlowKey, field: Field) -> Option<Rewrite> {
    let value = key.get(field);
    let (word, byte, mac) = (value as u16, value as u8, mac_of(value));
    let v4_address = (value as u32).to_be_bytes();
    let v6_address = value.to_be_bytes();
    let eth_type = key.eth_type();
    let (v4, v6, arp) = (eth_type == 0x0800, eth_type == 0x86dd, matches!(eth_type, 0x0806 | 0x8035));
    let first = (v4 || v6) && key.get(Field::NW_FRAG) & 2 == 0;
    let protocol = key.ip_proto();
    let ports = first && matches!(protocol, 6 | 17 | 132);
    let icmp = first && (v4 && protocol == 1 || v6 && protocol == 58);
    let kind = if first && v6 && protocol == 58 { key.get(Field::TP_SRC) } else { 0 };
    Some(match field {
        Field::ETH_SRC => Rewrite::EthSrc(mac),
        Field::ETH_DST => Rewrite::EthDst(mac),
        Field::ETH_TYPE => Rewrite::EthType(word),
        Field::VLAN_VID_PRESENT | Field::VLAN_PCP => Rewrite::VlanTci(key.vlan_tci()),
        Field::MPLS_LABEL | Field::MPLS_TC | Field::MPLS_BOS | Field::MPLS_TTL
            if matches!(eth_type, 0x8847 | 0x8848) =>
        {
            Rewrite::MplsEntry(key.get(Field::MPLS_LSE) as u32)
        }
        Field::PBB_ISID if eth_type == 0x88e7 => Rewrite::BackboneService(value as u32),
        Field::NW_SRC if v4 => Rewrite::Ipv4Src(v4_address),
        Field::NW_DST if v4 => Rewrite::Ipv4Dst(v4_address),
        Field::NW_SRC if arp => Rewrite::ArpSpa(v4_address),
        Field::NW_DST if arp => Rewrite::ArpTpa(v4_address),
        Field::NW_PROTO if arp => Rewrite::ArpOperation(word),
        Field::NW_PROTO if v4 || v6 => Rewrite::Protocol(byte),
        Field::ARP_SHA if arp => Rewrite::ArpSha(mac),
        Field::ARP_THA if arp => Rewrite::ArpTha(mac),
        Field::ARP_SHA if kind == 135 => Rewrite::NdSourceLink(mac),
        Field::ARP_THA if kind == 136 => Rewrite::NdTargetLink(mac),
        Field::ND_TARGET if matches!(kind, 135 | 136) => Rewrite::NdTarget(v6_address),
        Field::IPV6_SRC if v6 => Rewrite::Ipv6Src(v6_address),
        Field::IPV6_DST if v6 => Rewrite::Ipv6Dst(v6_address),
        Field::IPV6_LABEL if v6 => Rewrite::FlowLabel(value as u32),
        Field::IP_DSCP | Field::IP_ECN if v4 || v6 => Rewrite::TrafficClass(key.get(Field::NW_TOS) as u8),
        Field::NW_TTL if v4 || v6 => Rewrite::TimeToLive(byte),
        Field::TP_SRC if ports => Rewrite::SourcePort(word),
        Field::TP_DST if ports => Rewrite::DestinationPort(word),
        Field::TP_SRC if icmp => Rewrite::IcmpType(byte),
        Field::TP_DST if icmp => Rewrite::IcmpCode(byte),
        _ => return None,
    })
}
