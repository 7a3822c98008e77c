//! Ports: their numbers, what is said of one, and how it is changed.

use crate::layout::{flags, open_enum, record};
use crate::ports::port_messages;
use crate::wire::Text;
use crate::MacAddress;

/// Port numbers that stand for something else than one port.
pub mod port_number {
    /// `OFPP_MAX`: the highest number of a port.
    pub const MAX: u32 = 0xffff_ff00;
    /// `OFPP_IN_PORT`: back by the port that the frame came in by.
    pub const IN_PORT: u32 = 0xffff_fff8;
    /// `OFPP_TABLE`: through the flow tables (packet-out only).
    pub const TABLE: u32 = 0xffff_fff9;
    /// `OFPP_NORMAL`: as a switch without OpenFlow does.
    pub const NORMAL: u32 = 0xffff_fffa;
    /// `OFPP_FLOOD`: as a switch without OpenFlow floods.
    pub const FLOOD: u32 = 0xffff_fffb;
    /// `OFPP_ALL`: by all ports but the one that the frame came in by.
    pub const ALL: u32 = 0xffff_fffc;
    /// `OFPP_CONTROLLER`: to the controller.
    pub const CONTROLLER: u32 = 0xffff_fffd;
    /// `OFPP_LOCAL`: the switch's own port.
    pub const LOCAL: u32 = 0xffff_fffe;
    /// `OFPP_ANY`: any port, where a port restricts something.
    pub const ANY: u32 = 0xffff_ffff;
}

flags! {
    /// The configuration of a port.
    pub struct PortConfig: u32 {
        PORT_DOWN = 1 << 0, "OFPPC_PORT_DOWN";
        NO_RECV = 1 << 2, "OFPPC_NO_RECV";
        NO_FWD = 1 << 5, "OFPPC_NO_FWD";
        NO_PACKET_IN = 1 << 6, "OFPPC_NO_PACKET_IN";
    }
}

flags! {
    /// The state that a port is in.
    pub struct PortState: u32 {
        LINK_DOWN = 1 << 0, "OFPPS_LINK_DOWN";
        BLOCKED = 1 << 1, "OFPPS_BLOCKED";
        LIVE = 1 << 2, "OFPPS_LIVE";
    }
}

flags! {
    /// The features that a port can do, does, or is told to advertise.
    pub struct PortFeatures: u32 {
        RATE_10MB_HD = 1 << 0, "OFPPF_10MB_HD";
        RATE_10MB_FD = 1 << 1, "OFPPF_10MB_FD";
        RATE_100MB_HD = 1 << 2, "OFPPF_100MB_HD";
        RATE_100MB_FD = 1 << 3, "OFPPF_100MB_FD";
        RATE_1GB_HD = 1 << 4, "OFPPF_1GB_HD";
        RATE_1GB_FD = 1 << 5, "OFPPF_1GB_FD";
        RATE_10GB_FD = 1 << 6, "OFPPF_10GB_FD";
        RATE_40GB_FD = 1 << 7, "OFPPF_40GB_FD";
        RATE_100GB_FD = 1 << 8, "OFPPF_100GB_FD";
        RATE_1TB_FD = 1 << 9, "OFPPF_1TB_FD";
        RATE_OTHER = 1 << 10, "OFPPF_OTHER";
        COPPER = 1 << 11, "OFPPF_COPPER";
        FIBER = 1 << 12, "OFPPF_FIBER";
        AUTONEG = 1 << 13, "OFPPF_AUTONEG";
        PAUSE = 1 << 14, "OFPPF_PAUSE";
        PAUSE_ASYM = 1 << 15, "OFPPF_PAUSE_ASYM";
    }
}

port_messages! {
    /// `ofp_port`: what a switch says of a port.
    Port: u32 [4], MacAddress [2],
    /// Present rate in kbit/s.
    current_kbps: u32,
    /// Greatest rate in kbit/s.
    maximum_kbps: u32
}
