//! From a port onto its line: queue, serialiser, and what may happen to a frame on the way.

use twinnet_packet::{Fragment, Frame};
use twinnet_units::{Duration, Time};

use super::tunnelling::{corrupt, twin};
use super::{Budget, CountDrops, Fabric, Node, Port, PortId, World};
use crate::event::Class;
use crate::link::Feed;
use twinnet_packet::FramePool;

impl Fabric {
    /// Gives `frame` to `port` to be sent.
    pub(super) fn offer(&mut self, port: u32, frame: Box<Frame>, world: &mut dyn World) {
        let Some(line) = self.line(port) else { return };
        if !line.up {
            line.counters.dropped_down += frame.frames();
            return;
        }
        if longest(&frame) > line.longest_frame {
            line.counters.dropped_oversize += frame.frames();
            return;
        }
        if line.tunnel.is_some() {
            self.offer_tunnelled(port, frame, world);
            return;
        }
        self.offer_to_queue(port, frame, world);
    }

    /// Gives `frame`, as the line carries it, to the queue discipline at `port`.
    pub(super) fn offer_to_queue(&mut self, port: u32, mut frame: Box<Frame>, world: &mut dyn World) {
        let now = self.now;
        let Some(line) = self.line(port) else { return };
        if let Feed::Queue(queue) = &mut line.feed {
            let idle = line.busy_until <= now && line.rest.is_none();
            if idle && queue.lets_pass(&frame) {
                self.send(port, frame, world);
                return;
            }
            if idle && line.config.rate_bps.is_some() && queue.lets_front_pass() {
                // The queue has no room for the whole train, but its front is on the line at once and takes none.
                if let Some(front) = frame.split_front(1) {
                    self.send(port, front, world);
                    return self.offer_to_queue(port, frame, world);
                }
            }
            queue.enqueue(frame, now, &mut CountDrops(&mut line.counters));
            self.something_waits(port, world);
        }
    }

    /// A frame waits at `port`: begins it when the serialiser is idle, and else sees to it that it will be.
    pub(super) fn something_waits(&mut self, port: u32, world: &mut dyn World) {
        let now = self.now;
        let Some(line) = self.directions[port as usize].as_mut() else { return };
        if line.is_idle(now) {
            self.start_next(port, world, Budget::UNLIMITED);
        } else if line.departure_at.is_none() {
            line.departure_at = Some(line.busy_until);
            self.events.push(line.busy_until, Class::Departure, port);
        }
    }

    /// The serialiser of `port` is idle: begins the next frame. Without a line rate frames leave at once, at most `budget` of
    /// them; returns whether the budget was used up.
    pub(super) fn start_next(&mut self, port: u32, world: &mut dyn World, mut budget: Budget) -> bool {
        let now = self.now;
        while !budget.is_spent() {
            let Some(line) = self.directions[port as usize].as_mut() else { return false };
            let next = match (line.rest.take().or_else(|| line.next_outer()), &mut line.feed) {
                (Some(rest), _) => Some(rest),
                (None, Feed::Queue(queue)) => queue.dequeue(now, &mut CountDrops(&mut line.counters)),
                (None, Feed::Interface) => match pull(&mut self.nodes, &self.ports, &mut self.pool, port, now, world) {
                    Some(frame) if !line.up => {
                        line.counters.dropped_down += frame.frames();
                        continue;
                    }
                    Some(frame) if longest(&frame) > line.longest_frame => {
                        line.counters.dropped_oversize += frame.frames();
                        continue;
                    }
                    Some(frame) if line.tunnel.is_some() => {
                        line.enter_tunnel(frame);
                        continue;
                    }
                    pulled => pulled,
                },
            };
            let Some(frame) = next else {
                self.wait_for_queue(port);
                return false;
            };
            budget.spend(&frame);
            if !self.send(port, frame, world) {
                return false;
            }
        }
        true
    }

    /// The serialiser of `port` is idle and begins `frame`. Returns whether it is idle still, having no line rate.
    pub(super) fn send(&mut self, port: u32, mut frame: Box<Frame>, world: &mut dyn World) -> bool {
        let now = self.now;
        let Some(line) = self.directions[port as usize].as_mut() else { return false };
        let Some(rate) = line.config.rate_bps else {
            self.depart(port, frame, now, world);
            return true;
        };
        let at_once = line.frames_at_once(&frame, rate);
        let rest = frame.split_front(at_once).map(|front| std::mem::replace(&mut frame, front));
        line.keep_rest(rest);
        let wire_bytes = frame.wire_bytes(line.config.framing);
        let busy_until = now + rate.serialise(wire_bytes);
        line.busy_until = busy_until;
        let last_bit = now + rate.serialise(wire_bytes - line.config.framing.gap_bytes());
        self.depart(port, frame, last_bit, world);
        let Some(line) = self.directions[port as usize].as_mut() else { return false };
        if line.has_waiting(|| waits(&self.nodes, &self.ports, port)) {
            line.departure_at = Some(busy_until);
            self.events.push(busy_until, Class::Departure, port);
        }
        false
    }

    /// A queue that gave nothing may give something later without a further frame: remembers when.
    pub(super) fn wait_for_queue(&mut self, port: u32) {
        let now = self.now;
        let Some(line) = self.directions[port as usize].as_mut() else { return };
        let Feed::Queue(queue) = &line.feed else { return };
        // A discipline that names a moment not after now would be asked again and again: the next picosecond will do.
        let ready = queue.next_ready(now).map(|at| at.max(now + Duration::from_ps(1)));
        if ready.is_some() && ready != line.ready_at {
            line.ready_at = ready;
            self.events.push(ready.unwrap_or(now), Class::QueueReady, port);
        }
    }

    /// The last bit of `frame` leaves `port` at `last_bit`, now or soon.
    pub(super) fn depart(&mut self, port: u32, mut frame: Box<Frame>, last_bit: Time, world: &mut dyn World) {
        let now = self.now;
        if self.ports[port as usize].captured {
            self.show_departing(port, &frame, last_bit, world);
        }
        let Some(line) = self.directions[port as usize].as_mut() else { return };
        line.leaves(&frame, last_bit, now);
        if line.impairments.is_transparent() {
            let (at, first) = line.in_flight.push(last_bit + line.config.delay_ps, false, frame);
            if first {
                self.events.push(at, Class::Arrival, port);
            }
            return;
        }
        while let Some(single) = frame.split_front(1) {
            self.suffer(port, single, last_bit);
        }
        self.suffer(port, frame, last_bit);
    }

    /// Sends a single frame over an impaired line.
    pub(super) fn suffer(&mut self, port: u32, mut frame: Box<Frame>, last_bit: Time) {
        let Some(line) = self.directions[port as usize].as_mut() else { return };
        let fate = line.impairments.fate();
        if fate.lost {
            line.counters.lost += frame.lose();
            return;
        }
        let twin = fate.duplicated.then(|| twin(&frame));
        if let Some(bit) = fate.corrupted_bit {
            line.counters.corrupted += 1;
            if !corrupt(&mut frame, bit) {
                line.counters.lost += frame.lose();
                return;
            }
        }
        let reorder = line.config.impair.reorder;
        let delay = line.impairments.delay(line.config.delay_ps);
        let (at, first) = line.in_flight.push(last_bit + delay, reorder, frame);
        if first {
            self.events.push(at, Class::Arrival, port);
        }
        if let Some(twin) = twin {
            line.counters.duplicated += u64::from(twin.fragment.as_ref().is_none_or(Fragment::is_whole));
            let delay = line.impairments.delay(line.config.delay_ps);
            let (at, first) = line.in_flight.push(last_bit + delay, reorder, twin);
            if first {
                self.events.push(at, Class::Arrival, port);
            }
        }
    }
}

/// The next frame that the host behind `port` wants to send.
fn pull(
    nodes: &mut [Node],
    ports: &[Port],
    pool: &mut FramePool,
    port: u32,
    now: Time,
    world: &mut dyn World,
) -> Option<Box<Frame>> {
    let at = &ports[port as usize];
    match &mut nodes[at.node.0 as usize] {
        Node::Model(model) => model.host.pull(at.number as usize, now, pool),
        Node::Host | Node::Switch(_) => world.pull(PortId(port)),
    }
}

/// Whether the host behind `port` has a frame to send. A real host has to be asked for one to find out.
fn waits(nodes: &[Node], ports: &[Port], port: u32) -> bool {
    let at = &ports[port as usize];
    match &nodes[at.node.0 as usize] {
        Node::Model(model) => model.host.has_frames(at.number as usize),
        Node::Host | Node::Switch(_) => true,
    }
}

/// Length of the longest frame of a train, in bytes at the link layer.
fn longest(frame: &Frame) -> u64 {
    match frame.offload {
        Some(offload) if frame.frames() > 1 => u64::from(offload.header) + u64::from(offload.segment),
        _ => frame.length(),
    }
}
