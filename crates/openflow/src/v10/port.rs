//! Ports: their numbers, what is said of one, and how it is changed.

use crate::layout::{flags, open_enum, record};
use crate::ports::port_messages;
use crate::wire::Text;
use crate::MacAddress;

/// Port numbers that stand for something else than one port.
pub mod port_number {
    /// `OFPP_MAX`: the highest number of a port.
    pub const MAX: u16 = 0xff00;
    /// `OFPP_IN_PORT`: back by the port that the frame came in by.
    pub const IN_PORT: u16 = 0xfff8;
    /// `OFPP_TABLE`: through the flow table (packet-out only).
    pub const TABLE: u16 = 0xfff9;
    /// `OFPP_NORMAL`: as a switch without OpenFlow does.
    pub const NORMAL: u16 = 0xfffa;
    /// `OFPP_FLOOD`: by all ports but the one it came in by and those that the spanning tree has closed.
    pub const FLOOD: u16 = 0xfffb;
    /// `OFPP_ALL`: by all ports but the one that it came in by.
    pub const ALL: u16 = 0xfffc;
    /// `OFPP_CONTROLLER`: to the controller.
    pub const CONTROLLER: u16 = 0xfffd;
    /// `OFPP_LOCAL`: the switch's own port.
    pub const LOCAL: u16 = 0xfffe;
    /// `OFPP_NONE`: no port, or any where a port restricts something.
    pub const NONE: u16 = 0xffff;
}

flags! {
    /// The configuration of a port.
    pub struct PortConfig: u32 {
        PORT_DOWN = 1 << 0, "OFPPC_PORT_DOWN";
        NO_STP = 1 << 1, "OFPPC_NO_STP";
        NO_RECV = 1 << 2, "OFPPC_NO_RECV";
        NO_RECV_STP = 1 << 3, "OFPPC_NO_RECV_STP";
        NO_FLOOD = 1 << 4, "OFPPC_NO_FLOOD";
        NO_FWD = 1 << 5, "OFPPC_NO_FWD";
        NO_PACKET_IN = 1 << 6, "OFPPC_NO_PACKET_IN";
    }
}

flags! {
    /// The state that a port is in. Bits 8 and 9 are the spanning tree's: 0 listening, 1 learning, 2 forwarding, 3
    /// blocked.
    pub struct PortState: u32 {
        LINK_DOWN = 1 << 0, "OFPPS_LINK_DOWN";
        STP_LEARN = 1 << 8, "OFPPS_STP_LEARN";
        STP_FORWARD = 2 << 8, "OFPPS_STP_FORWARD";
        STP_BLOCK = 3 << 8, "OFPPS_STP_BLOCK";
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
        COPPER = 1 << 7, "OFPPF_COPPER";
        FIBER = 1 << 8, "OFPPF_FIBER";
        AUTONEG = 1 << 9, "OFPPF_AUTONEG";
        PAUSE = 1 << 10, "OFPPF_PAUSE";
        PAUSE_ASYM = 1 << 11, "OFPPF_PAUSE_ASYM";
    }
}

port_messages! {
    /// `ofp_phy_port`: what a switch says of a port.
    Port: u16, MacAddress
}
