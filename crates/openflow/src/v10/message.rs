//! Every message of OpenFlow 1.0.

use super::{
    Error, FeaturesReply, FlowMod, FlowRemoved, PacketIn, PacketOut, PortMod, PortStatus, QueueConfigReply,
    QueueConfigRequest, ReplyBody, RequestBody, Statistics, SwitchConfig,
};
use crate::layout::{messages, record};

record! {
    /// `OFPT_VENDOR`.
    pub struct Vendor {
        /// Who.
        pub vendor: u32;
        /// The data.
        pub data: Vec<u8>;
    }
}

messages! {
    /// A message of OpenFlow 1.0.
    pub enum Message: "0 to 21" {
        /// `OFPT_HELLO`, whose contents nobody reads.
        0 Hello(data: Vec<u8>);
        /// `OFPT_ERROR`.
        1 Error(error: Error);
        /// `OFPT_ECHO_REQUEST`.
        2 EchoRequest(data: Vec<u8>);
        /// `OFPT_ECHO_REPLY`, with the data of the request.
        3 EchoReply(data: Vec<u8>);
        /// `OFPT_VENDOR`; Nicira's are read by [`crate::nicira::Message::decode`].
        4 Vendor(vendor: Vendor);
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
        14 FlowMod(change: FlowMod);
        /// `OFPT_PORT_MOD`.
        15 PortMod(change: PortMod);
        /// `OFPT_STATS_REQUEST`.
        16 StatsRequest(request: Statistics<RequestBody>);
        /// `OFPT_STATS_REPLY`.
        17 StatsReply(reply: Statistics<ReplyBody>);
        /// `OFPT_BARRIER_REQUEST`.
        18 BarrierRequest;
        /// `OFPT_BARRIER_REPLY`.
        19 BarrierReply;
        /// `OFPT_QUEUE_GET_CONFIG_REQUEST`.
        20 QueueConfigRequest(request: QueueConfigRequest);
        /// `OFPT_QUEUE_GET_CONFIG_REPLY`.
        21 QueueConfigReply(reply: QueueConfigReply);
    }
}
