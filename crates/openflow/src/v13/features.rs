//! The identity, abilities and configuration of the switch.

use super::error::{ErrorKind, SwitchConfigFailed};
use crate::layout::{closed_enum, flags, record};

flags! {
    /// The abilities of a switch.
    pub struct Capabilities: u32 {
        FLOW_STATS = 1 << 0, "OFPC_FLOW_STATS";
        TABLE_STATS = 1 << 1, "OFPC_TABLE_STATS";
        PORT_STATS = 1 << 2, "OFPC_PORT_STATS";
        GROUP_STATS = 1 << 3, "OFPC_GROUP_STATS";
        IP_REASM = 1 << 5, "OFPC_IP_REASM";
        QUEUE_STATS = 1 << 6, "OFPC_QUEUE_STATS";
        PORT_BLOCKED = 1 << 8, "OFPC_PORT_BLOCKED";
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
        pub n_tables: u8;
        /// 0 on the main connection.
        pub auxiliary_id: u8 [2];
        /// Capabilities.
        pub capabilities: Capabilities;
        /// Reserved.
        pub reserved: u32;
    }
}

closed_enum! {
    /// The treatment of IP fragments.
    pub enum FragmentHandling: u16, ErrorKind::SwitchConfigFailed(SwitchConfigFailed::BadFlags).fault(),
        "the handling of fragments", "0 (normal), 1 (drop) or 2 (reassemble)" {
        Normal = 0 "OFPC_FRAG_NORMAL", Drop = 1 "OFPC_FRAG_DROP", Reassemble = 2 "OFPC_FRAG_REASM",
    }
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
