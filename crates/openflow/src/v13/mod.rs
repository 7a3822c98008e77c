//! OpenFlow 1.3.5 (wire version 4).

mod action;
mod controller;
mod error;
mod features;
mod flow;
mod group;
mod hello;
mod instruction;
mod message;
mod meter;
pub mod multipart;
mod packet;
mod port;
mod queue;

pub use action::{Action, MAXIMUM_OUTPUT_BYTES, WHOLE_FRAME};
pub use controller::{AsyncConfig, ReasonMasks, Role, RoleMessage};
pub use error::{
    BadAction, BadInstruction, BadMatch, BadRequest, Error, ErrorKind, FlowModFailed, GroupModFailed, HelloFailed,
    MeterModFailed, PortModFailed, QueueOpFailed, RoleRequestFailed, SwitchConfigFailed, TableFeaturesFailed,
    TableModFailed,
};
pub use features::{Capabilities, FeaturesReply, FragmentHandling, SwitchConfig};
pub use flow::{table_number, FlowFlags, FlowMod, FlowModCommand, FlowRemoved, FlowRemovedReason};
pub use group::{group_number, Bucket, GroupMod, GroupModCommand, GroupType};
pub use hello::{Hello, HelloElement};
pub use instruction::Instruction;
pub use message::{Experimenter, Message, TableMod};
pub use meter::{meter_number, MeterBand, MeterEffect, MeterFlags, MeterMod, MeterModCommand};
pub use multipart::{Multipart, ReplyBody, RequestBody};
pub use packet::{PacketIn, PacketInReason, PacketOut};
pub use port::{port_number, Port, PortConfig, PortFeatures, PortMod, PortReason, PortState, PortStatus};
pub use queue::{PacketQueue, QueueConfigReply, QueueConfigRequest, QueueProperty, ALL_QUEUES};

pub(crate) use action::{next_action, EXPERIMENTER};

/// The version in the header.
pub const VERSION: u8 = 4;
