//! The relation of a controller to the switch: its role, and which messages it gets unasked.

use super::error::{ErrorKind, RoleRequestFailed};
use crate::layout::{closed_enum, record};

closed_enum! {
    /// Role of a controller.
    pub enum Role: u32, ErrorKind::RoleRequestFailed(RoleRequestFailed::BadRole).fault(), "the role", "0 to 3" {
        NoChange = 0 "OFPCR_ROLE_NOCHANGE", Equal = 1 "OFPCR_ROLE_EQUAL", Master = 2 "OFPCR_ROLE_MASTER",
            Slave = 3 "OFPCR_ROLE_SLAVE",
    }
}

record! {
    /// `OFPT_ROLE_REQUEST` and `OFPT_ROLE_REPLY`.
    pub struct RoleMessage {
        /// The role.
        pub role: Role [4];
        /// Number of the election that gave it.
        pub generation_id: u64;
    }
}

record! {
    /// Bits of reasons (bit `n` for reason `n`), by the role of the controller.
    pub struct ReasonMasks {
        /// For an equal or master.
        pub master: u32;
        /// For a slave.
        pub slave: u32;
    }
}

record! {
    /// `OFPT_SET_ASYNC` and `OFPT_GET_ASYNC_REPLY`: which messages are sent unasked.
    pub struct AsyncConfig {
        /// Packet-ins, by [`super::PacketInReason`].
        pub packet_in: ReasonMasks;
        /// Port status, by [`super::PortReason`].
        pub port_status: ReasonMasks;
        /// Flow-removed, by [`super::FlowRemovedReason`].
        pub flow_removed: ReasonMasks;
    }
}
