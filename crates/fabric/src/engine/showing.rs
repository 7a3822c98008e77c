//! Frames that pass a port under capture, shown to the world one by one, each at the moment its last bit passed.

use twinnet_packet::{Frame, Framing};
use twinnet_units::{Duration, Rate, Time};

use super::{Fabric, PortId, Way, World};
use crate::line::DirectionConfig;

/// The line on which a train is shown: what tells when each of its frames passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Showing {
    rate: Option<Rate>,
    framing: Framing,
}

impl Showing {
    /// On a line with `config`.
    pub(super) const fn of(config: &DirectionConfig) -> Self {
        Self { rate: config.rate_bps, framing: config.framing }
    }

    fn duration(self, frame: &Frame) -> Duration {
        self.rate.map_or(Duration::ZERO, |rate| rate.serialise(frame.wire_bytes(self.framing)))
    }
}

impl Fabric {
    /// Turns capturing at `port` on or off.
    pub fn set_capture(&mut self, port: PortId, on: bool) {
        self.ports[port.0 as usize].captured = on;
    }

    /// Has the world see each frame that arrives at `port`, or no longer.
    pub fn set_shown(&mut self, port: PortId, on: bool) {
        self.ports[port.0 as usize].shown = on;
    }

    /// Shows the train that has left `port` by now.
    pub(super) fn show_departed(&mut self, port: u32, world: &mut dyn World) {
        if self.departing.get(&port).is_some_and(|(last_bit, _)| *last_bit <= self.now) {
            if let Some((last_bit, frame)) = self.departing.remove(&port) {
                show_train(port, Way::Out, &frame, last_bit, self.showing(port), world);
            }
        }
    }

    /// The line into which `port` sends, as far as showing a train needs it.
    pub(super) fn showing(&self, port: u32) -> Showing {
        let line = self.lines[port as usize].as_ref();
        line.map_or(Showing { rate: None, framing: Framing::None }, |line| Showing::of(line.config()))
    }
}

/// Shows a train under capture as the frames it stands for, each at the moment its last bit passed; that of the train
/// at `last`.
pub(super) fn show_train(port: u32, way: Way, frame: &Frame, last: Time, showing: Showing, world: &mut dyn World) {
    if frame.frames() == 1 {
        world.captured(PortId(port), way, frame, last);
        return;
    }
    let mut rest = frame.clone();
    let mut before = Duration::ZERO;
    let first = Time::from_ps(last.as_ps().saturating_sub(showing.duration(frame).as_ps()));
    while let Some(single) = rest.split_front(1) {
        before += showing.duration(&single);
        world.captured(PortId(port), way, &single, first + before);
    }
    world.captured(PortId(port), way, &rest, last);
}
