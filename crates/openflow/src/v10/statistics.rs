//! Questions about the state of the switch, and their answers in one or several messages.

use super::action::Action;
use super::error::{BadRequest, ErrorKind};
use super::flow_match::{Match, Wildcards};
use super::port::Port;
use crate::error::Fault;
use crate::layout::record;
use crate::parted::bodies;
use crate::ports::port_statistics;
use crate::v13::multipart::{AggregateStats, Description};
use crate::wire::Text;
use crate::Verbatim;

pub use crate::parted::Parted as Statistics;

const BAD_STAT: Fault = ErrorKind::BadRequest(BadRequest::BadStat).fault();

record! {
    /// The flows that are asked about, each or all together.
    pub struct FlowStatsRequest {
        /// Only flows at least as narrow.
        pub matching: Match;
        /// Table; 0xff: every one, 0xfe: the emergency one.
        pub table_id: u8 [1];
        /// Only flows that output here; [`super::port_number::NONE`]: all.
        pub out_port: u16;
    }
}

record! {
    /// The statistics of a flow.
    pub struct FlowStats sized 0, 88 {
        [2];
        /// Table.
        pub table_id: u8 [1];
        /// The match: which frames.
        pub matching: Verbatim<Match>;
        /// Whole seconds that it has lived.
        pub duration_sec: u32;
        /// Nanoseconds beyond them.
        pub duration_nsec: u32;
        /// Priority.
        pub priority: u16;
        /// Idle timeout in seconds.
        pub idle_timeout: u16;
        /// Hard timeout in seconds.
        pub hard_timeout: u16 [6];
        /// Cookie.
        pub cookie: u64;
        /// Frames.
        pub packet_count: u64;
        /// Bytes.
        pub byte_count: u64;
        /// The actions on them.
        pub actions: Verbatim<Vec<Action>>;
    }
}

record! {
    /// The statistics of a table.
    pub struct TableStats {
        /// Number.
        pub table_id: u8 [3];
        /// Name.
        pub name: Text<32>;
        /// Fields that its flows may leave out.
        pub wildcards: Wildcards;
        /// Flows that fit.
        pub max_entries: u32;
        /// Flows in it.
        pub active_count: u32;
        /// Frames looked up.
        pub lookup_count: u64;
        /// Frames that matched.
        pub matched_count: u64;
    }
}

port_statistics! {
    PortStats: u16 [6], "[`super::port_number::NONE`]",
    QueueStats: u16 [2], "[`super::port_number::ALL`]"
}

record! {
    /// `OFPST_VENDOR`; Nicira's are read by [`crate::nicira::StatsRequest::decode`] and
    /// [`crate::nicira::StatsReply::decode`].
    pub struct VendorStats {
        /// Who.
        pub vendor: u32;
        /// The data.
        pub data: Vec<u8>;
    }
}

bodies! {
    /// `OFPT_STATS_REQUEST`.
    pub enum RequestBody [0], BAD_STAT, "the type of a statistics message", "0 to 5, 13, or 0xffff" {
        /// `OFPST_DESC`.
        0 Description;
        /// `OFPST_FLOW`.
        1 Flow(request: FlowStatsRequest);
        /// `OFPST_AGGREGATE`.
        2 Aggregate(request: FlowStatsRequest);
        /// `OFPST_TABLE`.
        3 Table;
        /// `OFPST_PORT`.
        4 Port(request: PortStatsRequest);
        /// `OFPST_QUEUE`.
        5 Queue(request: QueueStatsRequest);
        /// `OFPST_PORT_DESC`, which 1.3 has, and Open vSwitch in 1.0, too.
        13 PortDescription;
        /// `OFPST_VENDOR`.
        0xffff Vendor(vendor: VendorStats);
    }
}

bodies! {
    /// `OFPT_STATS_REPLY`.
    pub enum ReplyBody [0], BAD_STAT, "the type of a statistics message", "0 to 5, 13, or 0xffff" {
        /// `OFPST_DESC`.
        0 Description(description: Box<Description>);
        /// `OFPST_FLOW`.
        1 Flow(flows: Vec<FlowStats>);
        /// `OFPST_AGGREGATE`.
        2 Aggregate(flows: AggregateStats);
        /// `OFPST_TABLE`.
        3 Table(tables: Vec<TableStats>);
        /// `OFPST_PORT`.
        4 Port(ports: Vec<PortStats>);
        /// `OFPST_QUEUE`.
        5 Queue(queues: Vec<QueueStats>);
        /// `OFPST_PORT_DESC`.
        13 PortDescription(ports: Vec<Port>);
        /// `OFPST_VENDOR`.
        0xffff Vendor(vendor: VendorStats);
    }
}
