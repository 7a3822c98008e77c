//! Every message of OpenFlow 1.3.

use super::{
    AsyncConfig, Error, FeaturesReply, FlowMod, FlowRemoved, GroupMod, Hello, MeterMod, Multipart, PacketIn, PacketOut,
    PortMod, PortStatus, QueueConfigReply, QueueConfigRequest, ReplyBody, RequestBody, RoleMessage, SwitchConfig,
};
use crate::error::Refusal;
use crate::layout::{messages, record};

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

messages! {
    /// A message of OpenFlow 1.3.
    pub enum Message: "0 to 29" {
        /// `OFPT_HELLO`.
        0 Hello(hello: Hello);
        /// `OFPT_ERROR`.
        1 Error(error: Error);
        /// `OFPT_ECHO_REQUEST`.
        2 EchoRequest(data: Vec<u8>);
        /// `OFPT_ECHO_REPLY`, with the data of the request.
        3 EchoReply(data: Vec<u8>);
        /// `OFPT_EXPERIMENTER`; Nicira's are read by [`crate::nicira::Message::decode`].
        4 Experimenter(message: Experimenter);
        /// `OFPT_FEATURES_REQUEST`.
        5 FeaturesRequest;
        /// `OFPT_FEATURES_REPLY`.
        6 FeaturesReply(features: FeaturesReply);
        /// `OFPT_GET_CONFIG_REQUEST`.
        7 GetConfigRequest;
        /// `OFPT_GET_CONFIG_REPLY`.
        8 GetConfigReply(config: SwitchConfig);
        /// `OFPT_SET_CONFIG`.
        9 SetConfig(config: SwitchConfig);
        /// `OFPT_PACKET_IN`.
        10 PacketIn(packet: PacketIn);
        /// `OFPT_FLOW_REMOVED`.
        11 FlowRemoved(flow: FlowRemoved);
        /// `OFPT_PORT_STATUS`.
        12 PortStatus(status: PortStatus);
        /// `OFPT_PACKET_OUT`.
        13 PacketOut(packet: PacketOut);
        /// `OFPT_FLOW_MOD`.
        14 FlowMod(change: FlowMod, matches_are_whole);
        /// `OFPT_GROUP_MOD`.
        15 GroupMod(change: GroupMod);
        /// `OFPT_PORT_MOD`.
        16 PortMod(change: PortMod);
        /// `OFPT_TABLE_MOD`.
        17 TableMod(change: TableMod);
        /// `OFPT_MULTIPART_REQUEST`.
        18 MultipartRequest(request: Multipart<RequestBody>);
        /// `OFPT_MULTIPART_REPLY`.
        19 MultipartReply(reply: Multipart<ReplyBody>);
        /// `OFPT_BARRIER_REQUEST`.
        20 BarrierRequest;
        /// `OFPT_BARRIER_REPLY`.
        21 BarrierReply;
        /// `OFPT_QUEUE_GET_CONFIG_REQUEST`.
        22 QueueConfigRequest(request: QueueConfigRequest);
        /// `OFPT_QUEUE_GET_CONFIG_REPLY`.
        23 QueueConfigReply(reply: QueueConfigReply);
        /// `OFPT_ROLE_REQUEST`.
        24 RoleRequest(role: RoleMessage);
        /// `OFPT_ROLE_REPLY`.
        25 RoleReply(role: RoleMessage);
        /// `OFPT_GET_ASYNC_REQUEST`.
        26 GetAsyncRequest;
        /// `OFPT_GET_ASYNC_REPLY`.
        27 GetAsyncReply(config: AsyncConfig);
        /// `OFPT_SET_ASYNC`.
        28 SetAsync(config: AsyncConfig);
        /// `OFPT_METER_MOD`.
        29 MeterMod(change: MeterMod);
    }
}

/// A flow's match may say only what its other fields permit.
fn matches_are_whole(change: &FlowMod) -> Result<(), Refusal> {
    change.matching.check()
}
