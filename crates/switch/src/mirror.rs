//! Mirrors: copies of what comes and goes at ports, for whoever watches at another.
//!
//! As Open vSwitch's table Mirror has them (`ovs-vswitchd.conf.db(5)`): a frame is copied once for each mirror that
//! selects it, as it came in or as it left; the copy leaves by the mirror's port with the tag that frames of its VLAN
//! have there, or by all ports of the mirror's VLAN. A port that mirrors leave by is theirs alone, as far as action
//! `normal` and stand-alone switches go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_packet::{Frame, Layout};
use twinnet_units::Time;

use super::execute::Datapath;
use super::vlans::{check_vlans, identifier_of};
use super::{Output, Switch};

/// The place that the copies of a mirror go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MirrorTo {
    /// This port, by number.
    Port(u32),
    /// All ports of this VLAN.
    Vlan(u16),
}

/// [`MirrorTo`] as it is written: with one of these.
#[derive(JsonSchema)]
#[schemars(rename = "MirrorTo")]
#[allow(dead_code)]
struct Place {
    /// This port, by number.
    port: Option<u32>,
    /// All ports of this VLAN.
    vlan: Option<u16>,
}

/// A mirror.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mirror {
    /// The place that its copies go to.
    #[schemars(with = "Place")]
    pub to: MirrorTo,
    /// `true` if it selects what comes and goes at any port.
    #[serde(default)]
    pub all: bool,
    /// The ports of which it selects what comes in.
    #[serde(default)]
    pub from: Vec<u32>,
    /// The ports of which it selects what leaves.
    #[serde(default)]
    pub towards: Vec<u32>,
    /// The VLANs of which it selects frames; none: all.
    #[serde(default)]
    pub vlans: Vec<u16>,
}

impl Mirror {
    /// Says what is wrong with these settings.
    ///
    /// # Errors
    /// The identifier that no VLAN can have.
    pub fn check(&self) -> Result<(), String> {
        let to = match self.to {
            MirrorTo::Vlan(vlan) => Some(vlan),
            MirrorTo::Port(_) => None,
        };
        check_vlans(self.vlans.iter().copied().chain(to))
    }

    /// The numbers of all ports that it names.
    pub fn ports(&self) -> impl Iterator<Item = u32> + '_ {
        let to = match self.to {
            MirrorTo::Port(port) => Some(port),
            MirrorTo::Vlan(_) => None,
        };
        self.from.iter().chain(&self.towards).copied().chain(to)
    }
}

/// The mirrors of a switch.
#[derive(Debug, Default)]
pub(super) struct Mirrors {
    list: Vec<Mirror>,
}

impl Mirrors {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns `true` if a mirror's copies leave by `port`.
    pub(super) fn reserve(&self, port: u32) -> bool {
        self.list.iter().any(|mirror| mirror.to == MirrorTo::Port(port))
    }
}

impl Datapath {
    /// Adds to `copies` those of a frame at `port`, for the mirrors that are not in `done` yet.
    fn mirror(
        &self,
        selects: impl Fn(&Mirror) -> bool,
        (port, frame): (u32, &Frame),
        done: &mut [bool],
        copies: &mut Vec<Output>,
    ) {
        if self.mirrors.reserve(port) {
            return;
        }
        let Some(vlan) = self.vlans.admit(port, identifier_of(frame)) else { return };
        let layout = Layout::of(&frame.bytes);
        for (mirror, done) in self.mirrors.list.iter().zip(done) {
            if *done || !selects(mirror) || !(mirror.vlans.is_empty() || mirror.vlans.contains(&vlan)) {
                continue;
            }
            *done = true;
            let mut send = |port: u32, vlan: u16| {
                let mut frame = Box::new(Frame { queue: 0, ..frame.clone() });
                self.vlans.tag(port, vlan, &mut frame, layout);
                copies.push(Output { port, frame });
            };
            match mirror.to {
                MirrorTo::Port(port) if self.refusal_of(port).is_none() => send(port, vlan),
                MirrorTo::Port(_) => {}
                // Copies do not enter the VLAN that they are in already.
                MirrorTo::Vlan(to) if to == vlan => {}
                MirrorTo::Vlan(to) => {
                    let ports =
                        self.ports.iter().filter(|port| self.may_use(port) && !self.mirrors.reserve(port.number));
                    for port in ports.filter(|port| self.vlans.carries(port.number, to)) {
                        if self.refusal_of(port.number).is_none() {
                            send(port.number, to);
                        }
                    }
                }
            }
        }
    }
}

impl Switch {
    /// Gives the switch these mirrors, in place of those that it had.
    pub fn set_mirrors(&mut self, mirrors: Vec<Mirror>) {
        for mirror in &mirrors {
            if let MirrorTo::Port(port) = mirror.to {
                self.datapath.macs.forget_port(port);
            }
        }
        self.datapath.mirrors.list = mirrors;
    }

    /// [`Switch::receive`] of a switch with mirrors.
    pub(super) fn receive_and_mirror(&mut self, in_port: u32, frame: Box<Frame>, now: Time, out: &mut Vec<Output>) {
        let mut done = vec![false; self.datapath.mirrors.list.len()];
        let mut copies = Vec::new();
        if self.datapath.ports.get(in_port).is_some_and(super::Port::is_live) {
            let selects = |mirror: &Mirror| mirror.all || mirror.from.contains(&in_port);
            self.datapath.mirror(selects, (in_port, &frame), &mut done, &mut copies);
        }
        let first = out.len();
        self.forward(in_port, frame, now, out);
        self.mirror_what_leaves(&out[first..], &mut done, &mut copies);
        out.append(&mut copies);
    }

    /// Adds the copies of what leaves, for the mirrors that are not in `done` yet.
    fn mirror_what_leaves(&self, leaving: &[Output], done: &mut [bool], copies: &mut Vec<Output>) {
        for output in leaving {
            let selects = |mirror: &Mirror| mirror.all || mirror.towards.contains(&output.port);
            self.datapath.mirror(selects, (output.port, &output.frame), done, copies);
        }
    }

    /// Adds to `out` the copies of what left for a controller, from place `first` on.
    pub(super) fn mirror_sent(&self, first: usize, out: &mut Vec<Output>) {
        if self.datapath.mirrors.is_empty() {
            return;
        }
        let mut copies = Vec::new();
        let mut done = vec![false; self.datapath.mirrors.list.len()];
        self.mirror_what_leaves(&out[first..], &mut done, &mut copies);
        out.append(&mut copies);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::frames::{arp, tagged, tcp};
    use super::super::tests::{ports, send_at};
    use super::super::vlans::{PortVlans, VlanMode};
    use super::super::{FailMode, SwitchConfig, SwitchDrop};
    use super::*;

    fn mirror(to: MirrorTo) -> Mirror {
        Mirror { to, all: false, from: vec![], towards: vec![], vlans: vec![] }
    }

    /// A learning switch with ports 1 to 4.
    fn switch(mirrors: Vec<Mirror>) -> Switch {
        let mut switch = Switch::new(SwitchConfig { dpid: 1, fail_mode: FailMode::Standalone, seed: 7 });
        for number in 1..=4 {
            switch.add_port(number, &format!("s1-eth{number}"), [0, 0, 0, 0, 1, number as u8]);
        }
        switch.set_mirrors(mirrors);
        switch
    }

    fn send(switch: &mut Switch, in_port: u32, frame: &Frame) -> Vec<Output> {
        send_at(switch, in_port, frame, Time::ZERO)
    }

    fn with_access(switch: &mut Switch, port: u32, tag: u16) {
        switch.set_port_vlans(port, Some(PortVlans { mode: VlanMode::Access, tag, trunks: vec![] }));
    }

    #[test]
    fn all_that_comes_and_goes_is_copied_once() {
        let mut switch = switch(vec![Mirror { all: true, ..mirror(MirrorTo::Port(4)) }]);
        assert_eq!(ports(&send(&mut switch, 1, &arp(1, 2))), [2, 3, 4]);
        assert_eq!(ports(&send(&mut switch, 2, &tcp(2, 1, 80))), [1, 4]);
    }

    #[test]
    fn a_port_is_watched_in_one_direction_or_the_other() {
        let from = Mirror { from: vec![1], ..mirror(MirrorTo::Port(4)) };
        let towards = Mirror { towards: vec![1], ..mirror(MirrorTo::Port(3)) };
        let mut switch = switch(vec![from, towards]);
        assert_eq!(ports(&send(&mut switch, 1, &arp(1, 2))), [2, 4]);
        assert_eq!(ports(&send(&mut switch, 2, &tcp(2, 1, 80))), [1, 3]);
    }

    #[test]
    fn the_port_of_a_mirror_is_its_own() {
        let mut switch = switch(vec![Mirror { from: vec![1], ..mirror(MirrorTo::Port(4)) }]);
        assert_eq!(ports(&send(&mut switch, 2, &arp(2, 9))), [1, 3]);
        assert_eq!(ports(&send(&mut switch, 4, &arp(4, 9))), [0_u32; 0]);
        assert_eq!(switch.counters().drops[&SwitchDrop::Mirror], 1);
        switch.set_mirrors(vec![]);
        assert_eq!(ports(&send(&mut switch, 4, &arp(4, 9))), [1, 2, 3]);
    }

    #[test]
    fn a_vlan_is_watched_and_its_copies_carry_its_tag() {
        let mut switch = switch(vec![Mirror { all: true, vlans: vec![10], ..mirror(MirrorTo::Port(4)) }]);
        with_access(&mut switch, 1, 10);
        with_access(&mut switch, 2, 20);
        let out = send(&mut switch, 1, &arp(1, 9));
        assert_eq!(ports(&out), [3, 4]);
        assert_eq!(out[1].frame.bytes, tagged(&arp(1, 9), 10).bytes);
        assert_eq!(ports(&send(&mut switch, 2, &arp(2, 9))), [3]);
    }

    #[test]
    fn copies_may_travel_in_a_vlan_of_their_own() {
        let mut switch = switch(vec![Mirror { from: vec![1], ..mirror(MirrorTo::Vlan(99)) }]);
        for port in [1, 2] {
            with_access(&mut switch, port, 10);
        }
        with_access(&mut switch, 3, 99);
        let out = send(&mut switch, 1, &arp(1, 2));
        // To port 2 and the trunk 4 as itself; copies to the ports of VLAN 99.
        assert_eq!(ports(&out), [2, 4, 3, 4]);
        assert_eq!(out[2].frame.vlan_control(), None);
        assert_eq!(out[3].frame.vlan_control(), Some(99));
    }

    #[test]
    fn what_flows_send_is_copied_too() {
        let mut switch = switch(vec![Mirror { towards: vec![2], ..mirror(MirrorTo::Port(4)) }]);
        switch.add_flow("in_port=1,ip,actions=mod_nw_tos:4,output:2", Time::ZERO).unwrap();
        let out = send(&mut switch, 1, &tcp(1, 2, 80));
        assert_eq!(ports(&out), [2, 4]);
        assert_eq!(out[0].frame.bytes, out[1].frame.bytes);
    }

    #[test]
    fn a_port_that_is_down_gets_no_copies() {
        let mut switch = switch(vec![Mirror { all: true, ..mirror(MirrorTo::Port(4)) }]);
        switch.set_port_up(4, false);
        assert_eq!(ports(&send(&mut switch, 1, &arp(1, 2))), [2, 3]);
    }
}
