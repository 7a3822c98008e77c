//! Every message of OpenFlow 1.0.

use super::{
    Error, FeaturesReply, FlowMod, FlowRemoved, PacketIn, PacketOut, PortMod, PortStatus, QueueConfigReply,
    QueueConfigRequest, ReplyBody, RequestBody, Statistics, SwitchConfig, VERSION,
};
use crate::error::{DecodeError, Fault, Refusal, TooLong};
use crate::header::{self, Header};
use crate::layout::record;
use crate::wire::{Reader, Wire};

record! {
    /// `OFPT_VENDOR`.
    pub struct Vendor {
        /// Who.
        pub vendor: u32;
        /// The data.
        pub data: Vec<u8>;
    }
}

/// A message of OpenFlow 1.0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Message {
    /// `OFPT_HELLO`, whose contents nobody reads.
    Hello(Vec<u8>),
    /// `OFPT_ERROR`.
    Error(Error),
    /// `OFPT_ECHO_REQUEST`.
    EchoRequest(Vec<u8>),
    /// `OFPT_ECHO_REPLY`, with the data of the request.
    EchoReply(Vec<u8>),
    /// `OFPT_VENDOR`; Nicira's are read by [`crate::nicira::Message::decode`].
    Vendor(Vendor),
    /// `OFPT_FEATURES_REQUEST`.
    FeaturesRequest,
    /// `OFPT_FEATURES_REPLY`.
    FeaturesReply(FeaturesReply),
    /// `OFPT_GET_CONFIG_REQUEST`.
    GetConfigRequest,
    /// `OFPT_GET_CONFIG_REPLY`.
    GetConfigReply(SwitchConfig),
    /// `OFPT_SET_CONFIG`.
    SetConfig(SwitchConfig),
    /// `OFPT_PACKET_IN`.
    PacketIn(PacketIn),
    /// `OFPT_FLOW_REMOVED`.
    FlowRemoved(FlowRemoved),
    /// `OFPT_PORT_STATUS`.
    PortStatus(PortStatus),
    /// `OFPT_PACKET_OUT`.
    PacketOut(PacketOut),
    /// `OFPT_FLOW_MOD`.
    FlowMod(FlowMod),
    /// `OFPT_PORT_MOD`.
    PortMod(PortMod),
    /// `OFPT_STATS_REQUEST`.
    StatsRequest(Statistics<RequestBody>),
    /// `OFPT_STATS_REPLY`.
    StatsReply(Statistics<ReplyBody>),
    /// `OFPT_BARRIER_REQUEST`.
    BarrierRequest,
    /// `OFPT_BARRIER_REPLY`.
    BarrierReply,
    /// `OFPT_QUEUE_GET_CONFIG_REQUEST`.
    QueueConfigRequest(QueueConfigRequest),
    /// `OFPT_QUEUE_GET_CONFIG_REPLY`.
    QueueConfigReply(QueueConfigReply),
}

impl Message {
    /// Reads one whole message. A hello may be of any version, which the header then says.
    ///
    /// # Errors
    /// The answer that the specification demands of a switch.
    pub fn decode(bytes: &[u8]) -> Result<(Header, Self), DecodeError> {
        header::decode(bytes, VERSION, Self::read)
    }

    /// Appends the message to `out`.
    ///
    /// # Errors
    /// When it takes more than [`crate::MAXIMUM_MESSAGE_BYTES`]; `out` is as it was.
    pub fn encode(&self, xid: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
        header::encode(out, VERSION, self.kind(), xid, |out| self.write(out))
    }

    /// `ofp_type`.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => 0,
            Self::Error(_) => 1,
            Self::EchoRequest(_) => 2,
            Self::EchoReply(_) => 3,
            Self::Vendor(_) => 4,
            Self::FeaturesRequest => 5,
            Self::FeaturesReply(_) => 6,
            Self::GetConfigRequest => 7,
            Self::GetConfigReply(_) => 8,
            Self::SetConfig(_) => 9,
            Self::PacketIn(_) => 10,
            Self::FlowRemoved(_) => 11,
            Self::PortStatus(_) => 12,
            Self::PacketOut(_) => 13,
            Self::FlowMod(_) => 14,
            Self::PortMod(_) => 15,
            Self::StatsRequest(_) => 16,
            Self::StatsReply(_) => 17,
            Self::BarrierRequest => 18,
            Self::BarrierReply => 19,
            Self::QueueConfigRequest(_) => 20,
            Self::QueueConfigReply(_) => 21,
        }
    }

    fn read(kind: u8, reader: &mut Reader) -> Result<Self, Refusal> {
        Ok(match kind {
            0 => Self::Hello(reader.get()?),
            1 => Self::Error(reader.get()?),
            2 => Self::EchoRequest(reader.get()?),
            3 => Self::EchoReply(reader.get()?),
            4 => Self::Vendor(reader.get()?),
            5 => Self::FeaturesRequest,
            6 => Self::FeaturesReply(reader.get()?),
            7 => Self::GetConfigRequest,
            8 => Self::GetConfigReply(reader.get()?),
            9 => Self::SetConfig(reader.get()?),
            10 => Self::PacketIn(reader.get()?),
            11 => Self::FlowRemoved(reader.get()?),
            12 => Self::PortStatus(reader.get()?),
            13 => Self::PacketOut(reader.get()?),
            14 => Self::FlowMod(reader.get()?),
            15 => Self::PortMod(reader.get()?),
            16 => Self::StatsRequest(reader.get()?),
            17 => Self::StatsReply(reader.get()?),
            18 => Self::BarrierRequest,
            19 => Self::BarrierReply,
            20 => Self::QueueConfigRequest(reader.get()?),
            21 => Self::QueueConfigReply(reader.get()?),
            other => {
                return Err(Refusal::new(Fault::BAD_TYPE, "the type of a message", u64::from(other), "0 to 21"));
            }
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::FeaturesRequest | Self::GetConfigRequest | Self::BarrierRequest | Self::BarrierReply => {}
            Self::Hello(data) | Self::EchoRequest(data) | Self::EchoReply(data) => data.write(out),
            Self::GetConfigReply(config) | Self::SetConfig(config) => config.write(out),
            Self::Error(error) => error.write(out),
            Self::Vendor(vendor) => vendor.write(out),
            Self::FeaturesReply(features) => features.write(out),
            Self::PacketIn(packet) => packet.write(out),
            Self::FlowRemoved(flow) => flow.write(out),
            Self::PortStatus(status) => status.write(out),
            Self::PacketOut(packet) => packet.write(out),
            Self::FlowMod(change) => change.write(out),
            Self::PortMod(change) => change.write(out),
            Self::StatsRequest(request) => request.write(out),
            Self::StatsReply(reply) => reply.write(out),
            Self::QueueConfigRequest(request) => request.write(out),
            Self::QueueConfigReply(reply) => reply.write(out),
        }
    }
}
