//! Every message of OpenFlow 1.3.

use super::{
    AsyncConfig, Error, FeaturesReply, FlowMod, FlowRemoved, GroupMod, Hello, MeterMod, Multipart, PacketIn, PacketOut,
    PortMod, PortStatus, QueueConfigReply, QueueConfigRequest, ReplyBody, RequestBody, RoleMessage, SwitchConfig,
    VERSION,
};
use crate::error::{DecodeError, Fault, Refusal, TooLong};
use crate::header::{self, Header};
use crate::layout::record;
use crate::wire::{Reader, Wire};

record! {
    /// `OFPT_EXPERIMENTER`, and the multipart messages of that type.
    pub struct Experimenter {
        /// Who.
        pub experimenter: u32;
        /// The type of the experimenter's message.
        pub experimenter_type: u32;
        /// The data.
        pub data: Vec<u8>;
    }
}

record! {
    /// `OFPT_TABLE_MOD`, without effect in 1.3.
    pub struct TableMod {
        /// Table; [`super::table_number::ALL`]: every one.
        pub table_id: u8 [3];
        /// `ofp_table_config`.
        pub config: u32;
    }
}

/// A message of OpenFlow 1.3.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Message {
    /// `OFPT_HELLO`.
    Hello(Hello),
    /// `OFPT_ERROR`.
    Error(Error),
    /// `OFPT_ECHO_REQUEST`.
    EchoRequest(Vec<u8>),
    /// `OFPT_ECHO_REPLY`, with the data of the request.
    EchoReply(Vec<u8>),
    /// `OFPT_EXPERIMENTER`; Nicira's are read by [`crate::nicira::Message::decode`].
    Experimenter(Experimenter),
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
    /// `OFPT_GROUP_MOD`.
    GroupMod(GroupMod),
    /// `OFPT_PORT_MOD`.
    PortMod(PortMod),
    /// `OFPT_TABLE_MOD`.
    TableMod(TableMod),
    /// `OFPT_MULTIPART_REQUEST`.
    MultipartRequest(Multipart<RequestBody>),
    /// `OFPT_MULTIPART_REPLY`.
    MultipartReply(Multipart<ReplyBody>),
    /// `OFPT_BARRIER_REQUEST`.
    BarrierRequest,
    /// `OFPT_BARRIER_REPLY`.
    BarrierReply,
    /// `OFPT_QUEUE_GET_CONFIG_REQUEST`.
    QueueConfigRequest(QueueConfigRequest),
    /// `OFPT_QUEUE_GET_CONFIG_REPLY`.
    QueueConfigReply(QueueConfigReply),
    /// `OFPT_ROLE_REQUEST`.
    RoleRequest(RoleMessage),
    /// `OFPT_ROLE_REPLY`.
    RoleReply(RoleMessage),
    /// `OFPT_GET_ASYNC_REQUEST`.
    GetAsyncRequest,
    /// `OFPT_GET_ASYNC_REPLY`.
    GetAsyncReply(AsyncConfig),
    /// `OFPT_SET_ASYNC`.
    SetAsync(AsyncConfig),
    /// `OFPT_METER_MOD`.
    MeterMod(MeterMod),
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
            Self::Experimenter(_) => 4,
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
            Self::GroupMod(_) => 15,
            Self::PortMod(_) => 16,
            Self::TableMod(_) => 17,
            Self::MultipartRequest(_) => 18,
            Self::MultipartReply(_) => 19,
            Self::BarrierRequest => 20,
            Self::BarrierReply => 21,
            Self::QueueConfigRequest(_) => 22,
            Self::QueueConfigReply(_) => 23,
            Self::RoleRequest(_) => 24,
            Self::RoleReply(_) => 25,
            Self::GetAsyncRequest => 26,
            Self::GetAsyncReply(_) => 27,
            Self::SetAsync(_) => 28,
            Self::MeterMod(_) => 29,
        }
    }

    fn read(kind: u8, reader: &mut Reader) -> Result<Self, Refusal> {
        Ok(match kind {
            0 => Self::Hello(Hello::read_tolerantly(reader)),
            1 => Self::Error(reader.get()?),
            2 => Self::EchoRequest(reader.get()?),
            3 => Self::EchoReply(reader.get()?),
            4 => Self::Experimenter(reader.get()?),
            5 => Self::FeaturesRequest,
            6 => Self::FeaturesReply(reader.get()?),
            7 => Self::GetConfigRequest,
            8 => Self::GetConfigReply(reader.get()?),
            9 => Self::SetConfig(reader.get()?),
            10 => Self::PacketIn(reader.get()?),
            11 => Self::FlowRemoved(reader.get()?),
            12 => Self::PortStatus(reader.get()?),
            13 => Self::PacketOut(reader.get()?),
            14 => {
                let change = reader.get::<FlowMod>()?;
                change.matching.check()?;
                Self::FlowMod(change)
            }
            15 => Self::GroupMod(reader.get()?),
            16 => Self::PortMod(reader.get()?),
            17 => Self::TableMod(reader.get()?),
            18 => Self::MultipartRequest(reader.get()?),
            19 => Self::MultipartReply(reader.get()?),
            20 => Self::BarrierRequest,
            21 => Self::BarrierReply,
            22 => Self::QueueConfigRequest(reader.get()?),
            23 => Self::QueueConfigReply(reader.get()?),
            24 => Self::RoleRequest(reader.get()?),
            25 => Self::RoleReply(reader.get()?),
            26 => Self::GetAsyncRequest,
            27 => Self::GetAsyncReply(reader.get()?),
            28 => Self::SetAsync(reader.get()?),
            29 => Self::MeterMod(reader.get()?),
            other => {
                return Err(Refusal::new(Fault::BAD_TYPE, "the type of a message", u64::from(other), "0 to 29"));
            }
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::FeaturesRequest
            | Self::GetConfigRequest
            | Self::BarrierRequest
            | Self::BarrierReply
            | Self::GetAsyncRequest => {}
            Self::Hello(hello) => hello.elements.write(out),
            Self::Error(error) => error.write(out),
            Self::EchoRequest(data) | Self::EchoReply(data) => data.write(out),
            Self::Experimenter(message) => message.write(out),
            Self::FeaturesReply(features) => features.write(out),
            Self::GetConfigReply(config) | Self::SetConfig(config) => config.write(out),
            Self::PacketIn(packet) => packet.write(out),
            Self::FlowRemoved(flow) => flow.write(out),
            Self::PortStatus(status) => status.write(out),
            Self::PacketOut(packet) => packet.write(out),
            Self::FlowMod(change) => change.write(out),
            Self::GroupMod(change) => change.write(out),
            Self::PortMod(change) => change.write(out),
            Self::TableMod(change) => change.write(out),
            Self::MultipartRequest(request) => request.write(out),
            Self::MultipartReply(reply) => reply.write(out),
            Self::QueueConfigRequest(request) => request.write(out),
            Self::QueueConfigReply(reply) => reply.write(out),
            Self::RoleRequest(role) | Self::RoleReply(role) => role.write(out),
            Self::GetAsyncReply(config) | Self::SetAsync(config) => config.write(out),
            Self::MeterMod(change) => change.write(out),
        }
    }
}
