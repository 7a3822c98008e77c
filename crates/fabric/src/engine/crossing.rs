//! Parts of a network: several fabrics, each in a thread of its own, that give each other the frames on the links
//! between them.
//!
//! Every fabric is built of the whole network, so that nodes, ports and links have one number in all of them, and keeps
//! a part of the nodes: what happens at the others, others know. A link is cut where one end is kept and the other is
//! not; its lines are described in `line/crossing.rs`. Changes of links are told to every fabric, because all know the
//! topology.

use twinnet_packet::Frame;
use twinnet_units::{Duration, Time};

use super::{Fabric, NodeId, PortId};

impl Fabric {
    /// Has this fabric keep the nodes that `keeps` names, once all links are joined and before any frame was sent.
    /// Frames for the others are given to [`World::cross`](super::World::cross). Returns the ports of kept nodes whose
    /// lines lead to others.
    pub fn keep_part(&mut self, keeps: impl Fn(NodeId) -> bool) -> Vec<PortId> {
        let mut leading_away = Vec::new();
        for link in &self.links {
            for (near, far) in [link.ends, (link.ends.1, link.ends.0)] {
                let [here, there] = [near, far].map(|port| keeps(self.ports[port.0 as usize].node));
                let Some(line) = self.lines[near.0 as usize].as_mut().filter(|_| here != there) else { continue };
                if here {
                    line.lead_away();
                    leading_away.push(near);
                } else {
                    line.lead_here();
                }
            }
        }
        leading_away
    }

    /// Takes a frame that left `port` in another fabric and arrives here at `arrival`; what comes after that arrives
    /// now. Returns by how much it came too late.
    pub fn take_crossing(&mut self, port: PortId, frame: Box<Frame>, arrival: Time) -> Duration {
        let now = self.now;
        let Some(line) = self.lines.get_mut(port.0 as usize).and_then(Option::as_mut) else { return Duration::ZERO };
        let effects = line.take_crossing(frame, arrival, now);
        self.plan(port.0, effects);
        now.since(arrival)
    }
}
