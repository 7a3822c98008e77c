//! What becomes of a frame, decided from its flow key alone: the flows it follows and the steps to carry out.

use serde::Serialize;
use twinnet_packet::Rewrite;

use super::classifier::FlowId;
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
}

impl SwitchDrop {
    /// All reasons, in their order.
    pub const ALL: [Self; 13] = [
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
    /// To all ports of the spanning tree but the ingress.
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
}

impl Step {
    /// Whether the frame may be sent by this step.
    pub(super) fn sends(&self) -> bool {
        !matches!(self, Self::Rewrite(_) | Self::Drop(_))
    }
}

/// A look-up in a table and the flow that it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lookup {
    pub(super) table: u8,
    pub(super) flow: Option<FlowId>,
}

/// All that is to be done with frames of one flow key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Decision {
    pub(super) lookups: Vec<Lookup>,
    pub(super) steps: Vec<Step>,
}
