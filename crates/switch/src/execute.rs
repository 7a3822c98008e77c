//! Carrying out a decision on a frame: rewriting, learning, sending.

use twinnet_packet::{Frame, Layout};
use twinnet_units::Time;

use super::decision::{Step, SwitchDrop};
use super::mac_table::{MacTable, Station};
use super::membership::Routers;
use super::mirror::Mirrors;
use super::port::{Port, Ports, NO_FORWARD, NO_RECEIVE};
use super::value::PORT_LOCAL;
use super::vlans::Vlans;
use super::Output;

/// The part of a switch that frames change: ports, learnt addresses, drop counters.
#[derive(Debug)]
pub(super) struct Datapath {
    pub(super) ports: Ports,
    pub(super) macs: MacTable,
    pub(super) routers: Routers,
    pub(super) vlans: Vlans,
    pub(super) mirrors: Mirrors,
    /// Flooding and learning use only ports of the spanning tree.
    pub(super) keeps_to_tree: bool,
    /// By reason, in the order of [`SwitchDrop::ALL`].
    pub(super) drops: [u64; SwitchDrop::ALL.len()],
}

/// A frame that is copied for every port but the last it goes to.
pub(super) struct Sender<'a> {
    pub(super) frame: Option<Box<Frame>>,
    pub(super) out: &'a mut Vec<Output>,
}

impl Sender<'_> {
    /// Sends the frame; `last`: it is not needed any more.
    fn send(&mut self, port: u32, queue: u32, last: bool) {
        let frame = if last { self.frame.take() } else { self.frame.clone() };
        if let Some(mut frame) = frame {
            frame.queue = queue;
            self.out.push(Output { port, frame });
        }
    }

    /// Sends the frame to all of `ports`; `false` when there are none.
    fn send_to_all(&mut self, ports: impl Iterator<Item = u32>, queue: u32, last: bool) -> bool {
        let mut ports = ports.peekable();
        let any = ports.peek().is_some();
        while let Some(port) = ports.next() {
            self.send(port, queue, last && ports.peek().is_none());
        }
        any
    }
}

impl Datapath {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            ports: Ports::default(),
            macs: MacTable::new(seed),
            routers: Routers::default(),
            vlans: Vlans::default(),
            mirrors: Mirrors::default(),
            keeps_to_tree: false,
            drops: [0; SwitchDrop::ALL.len()],
        }
    }

    pub(super) fn count_drop(&mut self, reason: SwitchDrop, frames: u64) {
        self.drops[reason as usize] += frames;
    }

    /// Carries out `steps` on a frame whose headers lie as `layout` says.
    pub(super) fn execute(
        &mut self,
        steps: &[Step],
        in_port: u32,
        frame: Box<Frame>,
        mut layout: Layout,
        now: Time,
        out: &mut Vec<Output>,
    ) {
        let frames = frame.frames();
        let last_send = steps.iter().rposition(Step::sends);
        let mut sender = Sender { frame: Some(frame), out };
        for (index, step) in steps.iter().enumerate() {
            let last = Some(index) == last_send;
            let failed = self.step(*step, &mut sender, &mut layout, in_port, last, now);
            if let Some(reason) = failed {
                self.count_drop(reason, frames);
            }
        }
    }

    /// Carries out one step; `last`: the frame is not needed after it. Gives the reason when nothing could be sent.
    #[inline]
    pub(super) fn step(
        &mut self,
        step: Step,
        sender: &mut Sender<'_>,
        layout: &mut Layout,
        in_port: u32,
        last: bool,
        now: Time,
    ) -> Option<SwitchDrop> {
        match step {
            Step::Rewrite(rewrite) => {
                if let Some(frame) = &mut sender.frame {
                    rewrite.apply(frame, layout);
                }
                return None;
            }
            Step::Normal { source, destination, .. } => {
                if let Some(frame) = &sender.frame {
                    self.routers.observe(destination, frame, layout, in_port, now);
                }
                if let Ok(vlan) = self.admit(in_port, source, destination) {
                    if self.ports.get(in_port).is_some_and(|port| self.may_use(port)) {
                        self.macs.learn(source.within(vlan), in_port, now);
                    }
                }
            }
            _ => {}
        }
        self.send(step, sender, layout, (in_port, now), last)
    }

    /// Sends the frame where one step says, and changes nothing else; `last`: it is not needed after it. Gives the
    /// reason when nothing could be sent.
    #[inline]
    pub(super) fn send(
        &self,
        step: Step,
        sender: &mut Sender<'_>,
        layout: &Layout,
        (in_port, now): (u32, Time),
        last: bool,
    ) -> Option<SwitchDrop> {
        match step {
            Step::Output { port, queue } => self.output(sender, port, queue, last),
            Step::InPort { queue } => self.output(sender, in_port, queue, last),
            Step::Flood { queue } => {
                self.flood(sender, in_port, queue, last, |port| port.floods() && self.may_use(port))
            }
            Step::All { queue } => self.flood(sender, in_port, queue, last, |_| true),
            Step::Normal { source, destination, queue } => {
                self.normal(sender, layout, (in_port, now), (source, destination), queue, last)
            }
            Step::Drop(reason) => Some(reason),
            // The others are involved: `carry_out` has them.
            _ => None,
        }
    }

    /// Returns why nothing is taken from `port`; `None` when it is.
    pub(super) fn refusal_from(&self, port: u32) -> Option<SwitchDrop> {
        match self.ports.get(port) {
            Some(port) if !port.is_live() => Some(SwitchDrop::Ingress),
            Some(port) if port.config & NO_RECEIVE != 0 => Some(SwitchDrop::PortConfig),
            Some(_) => None,
            None => Some(SwitchDrop::Ingress),
        }
    }

    fn output(&self, sender: &mut Sender<'_>, port: u32, queue: u32, last: bool) -> Option<SwitchDrop> {
        let refused = self.refusal_of(port);
        if refused.is_none() {
            sender.send(port, queue, last);
        }
        refused
    }

    /// Returns why nothing can be sent by `port`; `None` when it can.
    #[inline]
    pub(super) fn refusal_of(&self, port: u32) -> Option<SwitchDrop> {
        match self.ports.get(port) {
            None if port == PORT_LOCAL => Some(SwitchDrop::Local),
            None => Some(SwitchDrop::NoPort),
            Some(port) if !port.is_live() => Some(SwitchDrop::PortDown),
            Some(port) if port.config & NO_FORWARD != 0 => Some(SwitchDrop::PortConfig),
            Some(_) => None,
        }
    }

    /// Returns `true` if the spanning tree does not keep the switch from flooding to `port` and learning from it.
    #[inline]
    pub(super) fn may_use(&self, port: &Port) -> bool {
        port.in_tree || !self.keeps_to_tree
    }

    fn flood(
        &self,
        sender: &mut Sender<'_>,
        in_port: u32,
        queue: u32,
        last: bool,
        floods: impl Fn(&Port) -> bool,
    ) -> Option<SwitchDrop> {
        let wanted = self
            .ports
            .iter()
            .filter(|port| port.is_live() && port.config & NO_FORWARD == 0 && port.number != in_port && floods(port));
        let any = sender.send_to_all(wanted.map(|port| port.number), queue, last);
        (!any).then_some(SwitchDrop::Alone)
    }

    /// The VLAN to which a learning switch counts a frame, or why it forwards none such: IEEE 802.1Q, 8.6.
    fn admit(&self, in_port: u32, source: Station, destination: Station) -> Result<u16, SwitchDrop> {
        if destination.is_reserved() {
            return Err(SwitchDrop::Reserved);
        }
        if self.mirrors.reserve(in_port) {
            return Err(SwitchDrop::Mirror);
        }
        self.vlans.admit(in_port, source.vlan()).ok_or(SwitchDrop::Vlan)
    }

    /// A learning switch that has learnt: IEEE 802.1Q, 8.6 and 8.7, with the tree given from outside.
    fn normal(
        &self,
        sender: &mut Sender<'_>,
        layout: &Layout,
        (in_port, now): (u32, Time),
        (source, destination): (Station, Station),
        queue: u32,
        last: bool,
    ) -> Option<SwitchDrop> {
        let vlan = match self.admit(in_port, source, destination) {
            Ok(vlan) => vlan,
            Err(reason) => return Some(reason),
        };
        let first = sender.out.len();
        let refused = self.normal_in_vlan(sender, (in_port, now), (vlan, destination.within(vlan)), queue, last);
        if !self.vlans.is_empty() {
            for output in &mut sender.out[first..] {
                self.vlans.tag(output.port, vlan, &mut output.frame, *layout);
            }
        }
        refused
    }

    /// Sends a frame that belongs to `vlan` where its destination is.
    fn normal_in_vlan(
        &self,
        sender: &mut Sender<'_>,
        (in_port, now): (u32, Time),
        (vlan, destination): (u16, Station),
        queue: u32,
        last: bool,
    ) -> Option<SwitchDrop> {
        let carries = |port: u32| self.vlans.carries(port, vlan) && !self.mirrors.reserve(port);
        if Routers::is_report(destination) {
            let routers = self.routers.ports(now).filter(|port| *port != in_port && carries(*port));
            let any = sender.send_to_all(routers, queue, last);
            return (!any).then_some(SwitchDrop::Membership);
        }
        match self.macs.find(destination, now) {
            Some(port) if port == in_port => Some(SwitchDrop::ToIngress),
            Some(port) => self.output(sender, port, queue, last),
            None => {
                let wanted = |port: &Port| port.floods() && self.may_use(port) && carries(port.number);
                self.flood(sender, in_port, queue, last, wanted)
            }
        }
    }
}
