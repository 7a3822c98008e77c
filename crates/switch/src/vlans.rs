//! VLANs at the ports of a learning switch: which a port carries, and which tag a frame has there.
//!
//! As Open vSwitch's table Port has them (`ovs-vswitchd.conf.db(5)`, "VLAN Configuration"): they count for action
//! `normal` and for stand-alone switches, and flows that name a port are not asked. Left out: `dot1q-tunnel` and
//! priority tags, so that a frame of VLAN 0 leaves without a tag.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_packet::{Frame, Layout, Rewrite};

use super::Switch;

/// Highest identifier of a VLAN (IEEE 802.1Q, table 9-2: 4095 is reserved).
pub const HIGHEST_VLAN: u16 = 4094;
/// `TPID` of a customer's tag (IEEE 802.1Q, table 9-1).
const CUSTOMER_TAG: u16 = 0x8100;
const PRIORITY_BITS: u16 = 0xe000;
const IDENTIFIER_BITS: u16 = 0x0fff;

/// The treatment of VLANs at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VlanMode {
    /// Carries the VLAN `tag` alone, without tags; frames with a tag are dropped.
    Access,
    /// Carries the VLANs of `trunks` with tags.
    Trunk,
    /// As `trunk`, and frames without a tag are in the VLAN `tag`; its frames leave with one.
    NativeTagged,
    /// As `trunk`, and frames without a tag are in the VLAN `tag`; its frames leave without one.
    NativeUntagged,
}

/// The VLANs of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortVlans {
    /// The treatment of tags.
    pub mode: VlanMode,
    /// The VLAN of frames without a tag; 0 in a trunk.
    #[serde(default)]
    #[schemars(range(min = 0, max = HIGHEST_VLAN))]
    pub tag: u16,
    /// The VLANs of a trunk; none: all. 0 stands for frames without a tag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trunks: Vec<u16>,
}

impl PortVlans {
    /// Says what is wrong with these settings.
    ///
    /// # Errors
    /// The identifier that no VLAN can have.
    pub fn check(&self) -> Result<(), String> {
        check_vlans(self.trunks.iter().copied().chain([self.tag]))
    }

    /// Returns `true` if frames of `vlan` come and go here.
    fn carries(&self, vlan: u16) -> bool {
        let trunks = self.trunks.is_empty() || self.trunks.contains(&vlan);
        match self.mode {
            VlanMode::Access => vlan == self.tag,
            VlanMode::Trunk => trunks,
            // The native VLAN is carried whether `trunks` has it or not.
            VlanMode::NativeTagged | VlanMode::NativeUntagged => trunks || vlan == self.tag,
        }
    }

    /// The VLAN of a frame that comes in with the identifier `tagged` (0: none); `None` when it may not.
    fn admit(&self, tagged: u16) -> Option<u16> {
        let vlan = match self.mode {
            VlanMode::Access if tagged != 0 => return None,
            VlanMode::Access => self.tag,
            VlanMode::NativeTagged | VlanMode::NativeUntagged if tagged == 0 => self.tag,
            _ => tagged,
        };
        self.carries(vlan).then_some(vlan)
    }

    /// The identifier with which a frame of `vlan` leaves; 0: without a tag.
    fn emit(&self, vlan: u16) -> u16 {
        match self.mode {
            VlanMode::Access => 0,
            VlanMode::NativeUntagged if vlan == self.tag => 0,
            _ => vlan,
        }
    }
}

/// Says which of `vlans` no VLAN can be.
pub(super) fn check_vlans(mut vlans: impl Iterator<Item = u16>) -> Result<(), String> {
    match vlans.find(|identifier| *identifier > HIGHEST_VLAN) {
        Some(wrong) => Err(format!("the VLAN {wrong} is not there; VLANs are 0 to {HIGHEST_VLAN}")),
        None => Ok(()),
    }
}

/// The VLANs of all ports that have settings; the others are trunks of all VLANs.
#[derive(Debug, Default)]
pub(super) struct Vlans {
    ports: BTreeMap<u32, PortVlans>,
}

impl Vlans {
    /// Returns `true` if no port has settings: frames keep the tags that they have.
    pub(super) fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    pub(super) fn admit(&self, port: u32, tagged: u16) -> Option<u16> {
        self.ports.get(&port).map_or(Some(tagged), |vlans| vlans.admit(tagged))
    }

    pub(super) fn carries(&self, port: u32, vlan: u16) -> bool {
        self.ports.get(&port).is_none_or(|vlans| vlans.carries(vlan))
    }

    /// Gives `frame` the tag that frames of `vlan` have at `port`; its priority stays.
    pub(super) fn tag(&self, port: u32, vlan: u16, frame: &mut Frame, mut layout: Layout) {
        let identifier = self.ports.get(&port).map_or(vlan, |vlans| vlans.emit(vlan));
        let change = match (frame.vlan_control(), identifier) {
            (None, 0) => return,
            (Some(_), 0) => Rewrite::PopVlan,
            (Some(control), _) => Rewrite::VlanTci(control & PRIORITY_BITS | identifier),
            (None, _) => Rewrite::PushVlan { protocol: CUSTOMER_TAG, tci: identifier },
        };
        change.apply(frame, &mut layout);
    }
}

/// The identifier of the outermost tag of `frame`; 0 without one.
pub(super) fn identifier_of(frame: &Frame) -> u16 {
    frame.vlan_control().map_or(0, |control| control & IDENTIFIER_BITS)
}

impl Switch {
    /// Gives a port VLANs, or takes its settings away; what was learnt at it is forgotten.
    pub fn set_port_vlans(&mut self, number: u32, vlans: Option<PortVlans>) {
        match vlans {
            Some(vlans) => self.datapath.vlans.ports.insert(number, vlans),
            None => self.datapath.vlans.ports.remove(&number),
        };
        self.datapath.macs.forget_port(number);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::frames::{arp, tagged, tcp, tcp_train};
    use super::super::tests::{ports, send_at};
    use super::super::{FailMode, Output, SwitchConfig, SwitchDrop};
    use super::*;
    use twinnet_units::Time;

    /// A learning switch whose ports 1, 2, ... have these VLANs.
    fn switch(vlans: &[Option<PortVlans>]) -> Switch {
        let mut switch = Switch::new(SwitchConfig { dpid: 1, fail_mode: FailMode::Standalone, seed: 7 });
        for (number, vlans) in (1..).zip(vlans) {
            switch.add_port(number, &format!("s1-eth{number}"), [0, 0, 0, 0, 1, number as u8]);
            switch.set_port_vlans(number, vlans.clone());
        }
        switch
    }

    fn port(mode: VlanMode, tag: u16, trunks: &[u16]) -> Option<PortVlans> {
        Some(PortVlans { mode, tag, trunks: trunks.to_vec() })
    }

    fn access(tag: u16) -> Option<PortVlans> {
        port(VlanMode::Access, tag, &[])
    }

    fn send(switch: &mut Switch, in_port: u32, frame: &Frame) -> Vec<Output> {
        send_at(switch, in_port, frame, Time::ZERO)
    }

    /// Ports and identifiers, 0 for frames without a tag.
    fn sent(outputs: &[Output]) -> Vec<(u32, u16)> {
        outputs.iter().map(|output| (output.port, identifier_of(&output.frame))).collect()
    }

    #[test]
    fn a_flood_stays_in_its_vlan_and_is_tagged_on_trunks_alone() {
        let trunk = port(VlanMode::Trunk, 0, &[10, 30]);
        let mut switch = switch(&[access(10), access(10), access(20), trunk, None]);
        let out = send(&mut switch, 1, &arp(1, 9));
        assert_eq!(sent(&out), [(2, 0), (4, 10), (5, 10)]);
        assert_eq!(out[0].frame.bytes, arp(1, 9).bytes);
        assert_eq!(out[1].frame.bytes, tagged(&arp(1, 9), 10).bytes);
        assert_eq!(sent(&send(&mut switch, 3, &arp(3, 9))), [(5, 20)]);
    }

    #[test]
    fn a_station_is_found_in_its_vlan_alone() {
        let mut switch = switch(&[access(10), access(10), access(20), None]);
        send(&mut switch, 4, &tagged(&arp(4, 9), 10));
        assert_eq!(sent(&send(&mut switch, 1, &tcp(1, 4, 80))), [(4, 10)]);
        assert_eq!(sent(&send(&mut switch, 4, &tagged(&tcp(4, 1, 80), 10))), [(1, 0)]);
        // In VLAN 20 nobody has seen station 1.
        assert_eq!(sent(&send(&mut switch, 3, &tcp(3, 1, 80))), [(4, 20)]);
    }

    #[test]
    fn a_port_drops_what_it_does_not_carry() {
        let mut switch = switch(&[access(10), port(VlanMode::Trunk, 0, &[10]), None]);
        for (in_port, frame) in [(1, tagged(&arp(1, 9), 10)), (2, tagged(&arp(1, 9), 20)), (2, arp(1, 9))] {
            assert_eq!(ports(&send(&mut switch, in_port, &frame)), [0_u32; 0]);
        }
        assert_eq!(switch.counters().drops[&SwitchDrop::Vlan], 3);
        assert_eq!(switch.counters().stations, 0);
    }

    #[test]
    fn a_native_vlan_is_carried_without_a_tag_inwards_and_as_its_mode_says_outwards() {
        let native = |mode| port(mode, 7, &[10]);
        let mut switch = switch(&[native(VlanMode::NativeTagged), native(VlanMode::NativeUntagged), access(7)]);
        assert_eq!(sent(&send(&mut switch, 3, &arp(3, 9))), [(1, 7), (2, 0)]);
        assert_eq!(sent(&send(&mut switch, 1, &arp(1, 9))), [(2, 0), (3, 0)]);
        assert_eq!(sent(&send(&mut switch, 2, &tagged(&arp(2, 9), 10))), [(1, 10)]);
        assert_eq!(sent(&send(&mut switch, 2, &tagged(&arp(2, 9), 11))), []);
    }

    #[test]
    fn a_priority_is_kept_and_a_train_is_tagged_whole() {
        let mut switch = switch(&[port(VlanMode::Trunk, 0, &[]), None, access(5)]);
        let mut urgent = tagged(&arp(1, 9), 5);
        urgent.bytes[14] |= 0xa0;
        let out = send(&mut switch, 1, &urgent);
        assert_eq!(out[0].frame.vlan_control(), Some(0xa005));
        let train = tcp_train(3, 9, 80, 14_480);
        let out = send(&mut switch, 3, &train);
        assert_eq!((out[0].frame.frames(), out[0].frame.link_bytes()), (10, train.link_bytes() + 40));
    }

    #[test]
    fn flows_that_name_a_port_are_not_asked_for_vlans_and_normal_is() {
        let mut switch = switch(&[access(10), access(20), access(10)]);
        switch.add_flow("priority=2,arp,actions=output:2,normal", Time::ZERO).unwrap();
        let out = send(&mut switch, 1, &arp(1, 9));
        assert_eq!(sent(&out), [(2, 0), (3, 0)]);
    }

    #[test]
    fn settings_that_go_leave_a_trunk_and_nothing_learnt() {
        let mut switch = switch(&[access(10), None]);
        send(&mut switch, 1, &arp(1, 9));
        switch.set_port_vlans(1, None);
        assert_eq!(switch.counters().stations, 0);
        assert_eq!(sent(&send(&mut switch, 1, &tagged(&arp(1, 9), 11))), [(2, 11)]);
    }

    #[test]
    fn a_vlan_beyond_the_last_is_refused() {
        let refused = port(VlanMode::Trunk, 0, &[1, 4095]).unwrap().check();
        assert_eq!(refused.unwrap_err(), "the VLAN 4095 is not there; VLANs are 0 to 4094");
        assert_eq!(access(4094).unwrap().check(), Ok(()));
    }
}
