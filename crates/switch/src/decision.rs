//! The decision about a frame, made from its flow key alone: the flows it follows and the steps to carry out.

use std::num::NonZeroU32;

use serde::Serialize;
use twinnet_packet::{FlowKey, Glance, Rewrite};

use super::classifier::FlowId;
use super::event::PacketInReason;
use super::flow::Flow;
use super::mac_table::Station;

/// Why a switch did not send a frame on, or not to one of the ports it was meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchDrop {
    /// It came in by a port that does not exist or is down.
    Ingress,
    /// No flow matched (in a secure switch, or in a table after the first).
    NoFlow,
    /// A flow's actions send it nowhere.
    Action,
    /// Its time to live ran out.
    TimeToLive,
    /// A flow resubmitted it too often.
    Resubmit,
    /// It was meant for the controller, and there is none.
    Controller,
    /// It was meant for the switch's own host, and there is none.
    Local,
    /// The port it was meant for does not exist.
    NoPort,
    /// The port it was meant for is down.
    PortDown,
    /// It was meant for the port that it came in by (use `in_port` to send it back).
    ToIngress,
    /// It was to be flooded, and there is no other port.
    Alone,
    /// Its destination address is one that no bridge forwards (IEEE 802.1Q, table 8-1).
    Reserved,
    /// It reports membership in multicast groups, and there is no multicast router to hear it.
    Membership,
    /// A meter's band dropped it.
    Meter,
    /// It is a fragment, and the controller had those dropped.
    Fragment,
    /// Its port does not forward (`OFPPC_NO_FWD`), or does not receive (`OFPPC_NO_RECV`).
    PortConfig,
    /// A group had no bucket for it.
    NoBucket,
    /// The port that it came in by does not carry its VLAN.
    Vlan,
    /// It came in by a port at which a mirror's copies leave, and nothing else comes or goes there.
    Mirror,
}

impl SwitchDrop {
    /// All reasons, in their order.
    pub const ALL: [Self; 19] = [
        Self::Ingress,
        Self::NoFlow,
        Self::Action,
        Self::TimeToLive,
        Self::Resubmit,
        Self::Controller,
        Self::Local,
        Self::NoPort,
        Self::PortDown,
        Self::ToIngress,
        Self::Alone,
        Self::Reserved,
        Self::Membership,
        Self::Meter,
        Self::Fragment,
        Self::PortConfig,
        Self::NoBucket,
        Self::Vlan,
        Self::Mirror,
    ];
}

/// One step of carrying out a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Rewrite(Rewrite),
    Output {
        port: u32,
        queue: u32,
    },
    /// To all ports that flood but the ingress: of the spanning tree alone, where the switch keeps to it.
    Flood {
        queue: u32,
    },
    /// To all ports but the ingress.
    All {
        queue: u32,
    },
    /// Back where it came from.
    InPort {
        queue: u32,
    },
    /// As a learning switch does, with the addresses that the frame has at this point.
    Normal {
        source: Station,
        destination: Station,
        queue: u32,
    },
    Drop(SwitchDrop),
    /// To the controllers; `lookup` is the look-up whose flow sends it.
    Controller {
        max_len: u16,
        /// The number of the controllers that it is for.
        controller: u16,
        lookup: u16,
        reason: PacketInReason,
        missed: bool,
        metadata: u64,
        tunnel: u64,
    },
    /// The next so many steps are for a copy of the frame.
    Fork(u16),
    /// Counts the frame for a look-up that only frames reach that a meter let pass.
    Lookup(u16),
    /// Counts the frame for a group, or one of its buckets.
    Group {
        group: u32,
        bucket: Option<u16>,
    },
    /// Adds the learnt flow with this place in the decision.
    Learn(u16),
    /// Shortens the timeouts of that look-up's flow to these seconds, idle and hard.
    Shorten {
        lookup: u16,
        idle_s: u16,
        hard_s: u16,
    },
    /// Measures the frame: a stop.
    Meter(u32),
    /// The decision depends on headers that the key does not hold: a stop, and the end of the decision until they
    /// are known.
    Reparse,
}

/// The outcome of a stop, when the frame came to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The meter let the frame pass as it is.
    Passed,
    /// The meter raised the drop precedence by so many steps.
    Remarked(u8),
    /// The frame's headers as they are now.
    Parsed(FlowKey),
}

impl Step {
    /// Returns `true` if the frame may be sent by this step.
    pub(super) fn sends(&self) -> bool {
        !self.stays_inside() && !matches!(self, Self::Rewrite(_) | Self::Drop(_))
    }

    /// Returns `true` if it touches neither frame nor ports.
    pub(super) fn stays_inside(&self) -> bool {
        matches!(self, Self::Lookup(_) | Self::Group { .. } | Self::Learn(_) | Self::Shorten { .. })
    }

    /// Returns `true` if what follows depends on more than the flow key.
    pub(super) fn is_stop(&self) -> bool {
        matches!(self, Self::Meter(_) | Self::Reparse)
    }

    /// Returns `true` if carrying it out takes more than the frame and the ports.
    pub(super) fn is_involved(&self) -> bool {
        self.stays_inside() || self.is_stop() || matches!(self, Self::Controller { .. } | Self::Fork(_))
    }
}

/// A look-up in a table and the flow that it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lookup {
    pub(super) table: u8,
    pub(super) flow: Option<FlowId>,
}

/// What most decisions are: one look-up or two, each of which found a flow, and one port to send to. So short that it
/// lies beside the glance that finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Straight {
    /// The flow of each look-up; the second may be [`NO_FLOW`].
    flows: [FlowId; 2],
    pub(super) port: NonZeroU32,
    pub(super) queue: u16,
    tables: [u8; 2],
}

/// No flow has this place.
const NO_FLOW: FlowId = FlowId::MAX;

impl Straight {
    /// `decision`, if it is as short as that.
    pub(super) fn of(decision: &Decision) -> Option<Self> {
        let Decision { lookups, steps, certain, involved, .. } = decision;
        let [Step::Output { port, queue }] = steps.as_slice() else { return None };
        if *involved || *certain != lookups.len() {
            return None;
        }
        let (flows, tables) = match lookups.as_slice() {
            [one] => ([one.flow?, NO_FLOW], [one.table, 0]),
            [one, other] => ([one.flow?, other.flow?], [one.table, other.table]),
            _ => return None,
        };
        let fits = flows[0] != NO_FLOW && (lookups.len() == 1 || flows[1] != NO_FLOW);
        let (port, queue) = (NonZeroU32::new(*port)?, u16::try_from(*queue).ok()?);
        fits.then_some(Self { flows, port, queue, tables })
    }

    /// Its look-ups.
    #[inline]
    pub(super) fn lookups(self) -> impl Iterator<Item = (u8, FlowId)> {
        self.tables.into_iter().zip(self.flows).filter(|(_, flow)| *flow != NO_FLOW)
    }
}

/// All that is to be done with frames of one flow key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Decision {
    pub(super) lookups: Vec<Lookup>,
    pub(super) steps: Vec<Step>,
    /// Flows that frames teach.
    pub(super) learnt: Vec<Flow>,
    /// Look-ups that every frame reaches: those before a stop.
    pub(super) certain: usize,
    /// `true` if some step [is involved](Step::is_involved).
    pub(super) involved: bool,
    /// The bits of a glance at the frame that actions read, beside those that flows match.
    pub(super) reads: Glance,
}

impl Decision {
    /// The place after so many stops; its end, if it has fewer.
    pub(super) fn after_stop(&self, stops: usize) -> usize {
        let mut places = self.steps.iter().enumerate().filter(|(_, step)| step.is_stop()).map(|(place, _)| place + 1);
        stops.checked_sub(1).and_then(|last| places.nth(last)).unwrap_or(self.steps.len())
    }
}
