//! The identity, abilities and configuration of the switch, and its queues.

use super::port::Port;
use crate::layout::{flags, open_enum, record};
use crate::v13::QueueProperty;

flags! {
    /// The abilities of a switch.
    pub struct Capabilities: u32 {
        FLOW_STATS = 1 << 0, "OFPC_FLOW_STATS";
        TABLE_STATS = 1 << 1, "OFPC_TABLE_STATS";
        PORT_STATS = 1 << 2, "OFPC_PORT_STATS";
        STP = 1 << 3, "OFPC_STP";
        IP_REASM = 1 << 5, "OFPC_IP_REASM";
        QUEUE_STATS = 1 << 6, "OFPC_QUEUE_STATS";
        ARP_MATCH_IP = 1 << 7, "OFPC_ARP_MATCH_IP";
    }
}

record! {
    /// `OFPT_FEATURES_REPLY`.
    pub struct FeaturesReply {
        /// The switch: its address in the lower 48 bits, the implementer's choice above.
        pub datapath_id: u64;
        /// Frames that it can keep for the controller.
        pub n_buffers: u32;
        /// Flow tables.
        pub n_tables: u8 [3];
        /// Capabilities.
        pub capabilities: Capabilities;
        /// Bit `n` for actions of type `n`.
        pub actions: u32;
        /// Ports.
        pub ports: Vec<Port>;
    }
}

open_enum! {
    /// The treatment of IP fragments. The version has no error for other values.
    pub enum FragmentHandling: u16 { Normal = 0 "OFPC_FRAG_NORMAL", Drop = 1 "OFPC_FRAG_DROP",
        Reassemble = 2 "OFPC_FRAG_REASM" }
}

record! {
    /// `OFPT_SET_CONFIG` and `OFPT_GET_CONFIG_REPLY`.
    pub struct SwitchConfig {
        /// The treatment of IP fragments.
        pub fragments: FragmentHandling;
        /// Bytes of a frame that go to the controller when no action says how many.
        pub miss_send_len: u16;
    }
}

record! {
    /// `OFPT_QUEUE_GET_CONFIG_REQUEST`.
    pub struct QueueConfigRequest {
        /// Port.
        pub port: u16 [2];
    }
}

record! {
    /// `OFPT_QUEUE_GET_CONFIG_REPLY`.
    pub struct QueueConfigReply {
        /// Port that was asked for.
        pub port: u16 [6];
        /// Its queues.
        pub queues: Vec<PacketQueue>;
    }
}

record! {
    /// A queue.
    pub struct PacketQueue sized 4, 8 {
        /// Number.
        pub queue_id: u32 [4];
        /// Properties; the version itself knows the minimum rate only, and `OFPQT_NONE`, which is one of type 0.
        pub properties: Vec<QueueProperty>;
    }
}
