//! Frames that pass a port under capture, shown to the world one by one, each at the moment its last bit passed.

use twinnet_packet::{Frame, Framing};
use twinnet_units::{Duration, Time};

use super::{Fabric, PortId, Way, World};
use crate::event::Class;

impl Fabric {
    /// Turns capturing at `port` on or off.
    pub fn set_capture(&mut self, port: PortId, on: bool) {
        self.ports[port.0 as usize].captured = on;
    }

    /// A train goes onto the serialiser of a captured port: shows it when its last bit has left.
    pub(super) fn show_departing(&mut self, port: u32, frame: &Frame, last_bit: Time, world: &mut dyn World) {
        if let Some(fragment) = &frame.fragment {
            // A port shows what its node sent: the carried frame, when the last of it has left.
            if let Some(carried) = fragment.departed() {
                self.show_departing(port, &carried, last_bit, world);
            }
            return;
        }
        if last_bit <= self.now {
            self.show_train(port, Way::Out, frame, last_bit, world);
            return;
        }
        self.departing.insert(port, (last_bit, Box::new(frame.clone())));
        self.events.push(last_bit, Class::Departure, port);
    }

    /// Shows the train that has left `port` by now.
    pub(super) fn show_departed(&mut self, port: u32, world: &mut dyn World) {
        if self.departing.get(&port).is_some_and(|(last_bit, _)| *last_bit <= self.now) {
            if let Some((last_bit, frame)) = self.departing.remove(&port) {
                self.show_train(port, Way::Out, &frame, last_bit, world);
            }
        }
    }

    /// Shows a train under capture as the frames it stands for, each at the moment its last bit passed.
    pub(super) fn show_train(&self, port: u32, way: Way, frame: &Frame, last: Time, world: &mut dyn World) {
        if frame.frames() == 1 {
            world.captured(PortId(port), way, frame, last);
            return;
        }
        let own = self.directions[port as usize].as_ref();
        let sender = match way {
            Way::Out => own,
            Way::In => own.and_then(|line| self.directions[line.to as usize].as_ref()),
        };
        let (rate, framing) = sender.map_or((None, Framing::None), |line| (line.config.rate_bps, line.config.framing));
        let mut rest = frame.clone();
        let mut before = Duration::ZERO;
        let duration = |frame: &Frame| rate.map_or(Duration::ZERO, |rate| rate.serialise(frame.wire_bytes(framing)));
        let first = Time::from_ps(last.as_ps().saturating_sub(duration(frame).as_ps()));
        while let Some(single) = rest.split_front(1) {
            before += duration(&single);
            world.captured(PortId(port), way, &single, first + before);
        }
        world.captured(PortId(port), way, &rest, last);
    }
}
