//! OpenFlow 1.0.2 (wire version 1).

mod action;
mod error;
mod features;
mod flow;
mod flow_match;
mod message;
mod packet;
mod port;
pub mod statistics;

pub use action::Action;
pub use error::{BadAction, BadRequest, Error, ErrorKind, FlowModFailed, HelloFailed, PortModFailed, QueueOpFailed};
pub use features::{
    Capabilities, FeaturesReply, FragmentHandling, PacketQueue, QueueConfigReply, QueueConfigRequest, SwitchConfig,
};
pub use flow::{FlowFlags, FlowMod, FlowModCommand, FlowRemoved, FlowRemovedReason};
pub use flow_match::{Match, Wildcards, NOT_ETHER_TYPE, VLAN_NONE};
pub use message::{Message, Vendor};
pub use packet::{PacketIn, PacketInReason, PacketOut};
pub use port::{port_number, Port, PortConfig, PortFeatures, PortMod, PortReason, PortState, PortStatus};
pub use statistics::{ReplyBody, RequestBody, Statistics};

/// The version in the header.
pub const VERSION: u8 = 1;
