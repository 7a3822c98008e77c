//! The events that a switch tells its controllers unasked. They wait here, within bounds, until the agent takes them.

use twinnet_openflow::v13::PortReason;
use twinnet_units::{Duration, Time};

use super::flow::Flow;
use super::port::Port;

/// Packet-ins that wait at most; more are dropped and counted.
pub(super) const MOST_PACKET_INS: usize = 1024;

/// Why a frame goes to the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketInReason {
    NoMatch,
    Action,
    InvalidTtl,
}

/// A frame for the controllers.
#[derive(Clone, Debug)]
pub(super) struct PacketInEvent {
    pub(super) reason: PacketInReason,
    /// Connections with this number get it (`NXT_SET_CONTROLLER_ID`; 0 unless they say otherwise).
    pub(super) controller: u16,
    /// No flow sent it: it missed every one.
    pub(super) missed: bool,
    pub(super) table: u8,
    pub(super) cookie: u64,
    pub(super) in_port: u32,
    pub(super) metadata: u64,
    pub(super) tunnel: u64,
    /// Bytes asked for.
    pub(super) max_len: u16,
    /// The whole frame.
    pub(super) bytes: Vec<u8>,
}

/// Why a flow went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemovalReason {
    Idle,
    Hard,
    Delete,
    GroupDelete,
}

/// A flow that went and had asked to be told of.
#[derive(Clone, Debug)]
pub(super) struct FlowRemovedEvent {
    pub(super) flow: Flow,
    pub(super) reason: RemovalReason,
    pub(super) lived: Duration,
    pub(super) frames: u64,
    pub(super) bytes: u64,
}

/// An event that controllers are told of.
#[derive(Clone, Debug)]
pub(super) enum SwitchEvent {
    PacketIn(Box<PacketInEvent>),
    FlowRemoved(Box<FlowRemovedEvent>),
    /// A port came to be, or its state or configuration changed: how it is since.
    Port(PortReason, Box<Port>),
}

/// The events that wait to be told.
#[derive(Debug, Default)]
pub(super) struct Events {
    waiting: Vec<SwitchEvent>,
    packet_ins: usize,
    /// `true` if anybody will take what waits.
    pub(super) heard: bool,
}

impl Events {
    pub(super) fn push(&mut self, event: SwitchEvent) {
        if self.heard {
            self.waiting.push(event);
        }
    }

    /// Takes a frame for the controllers, if there is room; says whether.
    pub(super) fn push_packet_in(&mut self, event: PacketInEvent) -> bool {
        let room = self.heard && self.packet_ins < MOST_PACKET_INS;
        if room {
            self.packet_ins += 1;
            self.waiting.push(SwitchEvent::PacketIn(Box::new(event)));
        }
        room
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<SwitchEvent> {
        self.packet_ins = 0;
        std::mem::take(&mut self.waiting)
    }
}

/// Whole seconds and nanoseconds beyond them from `start` to `now`.
pub(super) fn seconds_and_nanoseconds(lived: Duration) -> (u32, u32) {
    let nanoseconds = lived.as_ns();
    (u32::try_from(nanoseconds / 1_000_000_000).unwrap_or(u32::MAX), (nanoseconds % 1_000_000_000) as u32)
}

/// Returns the time since `start`.
pub(super) fn lived(start: Time, now: Time) -> Duration {
    now.since(start)
}
