//! Questions about the state of the switch, and their answers in one or several messages.

use super::action::Action;
use super::error::{BadRequest, ErrorKind};
use super::flow_match::{Match, Wildcards};
use crate::error::{Fault, Refusal};
use crate::layout::record;
use crate::v13::multipart::{AggregateStats, Body, Description};
use crate::wire::{Reader, Text, Wire};
use crate::Verbatim;

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

record! {
    /// The port that is asked about.
    pub struct PortStatsRequest {
        /// Number; [`super::port_number::NONE`]: all.
        pub port_no: u16 [6];
    }
}

record! {
    /// The statistics of a port. A counter that the switch does not have is all ones.
    pub struct PortStats {
        /// Number.
        pub port_no: u16 [6];
        /// Frames received.
        pub rx_packets: u64;
        /// Frames sent.
        pub tx_packets: u64;
        /// Bytes received.
        pub rx_bytes: u64;
        /// Bytes sent.
        pub tx_bytes: u64;
        /// Received frames that were dropped.
        pub rx_dropped: u64;
        /// Frames to send that were dropped.
        pub tx_dropped: u64;
        /// Errors in receiving.
        pub rx_errors: u64;
        /// Errors in sending.
        pub tx_errors: u64;
        /// Frame alignment errors.
        pub rx_frame_errors: u64;
        /// Frames that overran.
        pub rx_over_errors: u64;
        /// Check sequence errors.
        pub rx_crc_errors: u64;
        /// Collisions.
        pub collisions: u64;
    }
}

record! {
    /// The queue that is asked about.
    pub struct QueueStatsRequest {
        /// Port; [`super::port_number::ALL`]: all.
        pub port_no: u16 [2];
        /// Queue; [`crate::v13::ALL_QUEUES`]: all.
        pub queue_id: u32;
    }
}

record! {
    /// The statistics of a queue.
    pub struct QueueStats {
        /// Port.
        pub port_no: u16 [2];
        /// Queue.
        pub queue_id: u32;
        /// Bytes sent.
        pub tx_bytes: u64;
        /// Frames sent.
        pub tx_packets: u64;
        /// Frames dropped because the queue was full.
        pub tx_errors: u64;
    }
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

/// A part of a question or answer; the last part has `more` unset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Statistics<B> {
    /// `true` if another part with the same transaction follows.
    pub more: bool,
    /// The body: what it is about.
    pub body: B,
}

/// `OFPT_STATS_REQUEST`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum RequestBody {
    /// `OFPST_DESC`.
    Description,
    /// `OFPST_FLOW`.
    Flow(FlowStatsRequest),
    /// `OFPST_AGGREGATE`.
    Aggregate(FlowStatsRequest),
    /// `OFPST_TABLE`.
    Table,
    /// `OFPST_PORT`.
    Port(PortStatsRequest),
    /// `OFPST_QUEUE`.
    Queue(QueueStatsRequest),
    /// `OFPST_VENDOR`.
    Vendor(VendorStats),
}

/// `OFPT_STATS_REPLY`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum ReplyBody {
    /// `OFPST_DESC`.
    Description(Box<Description>),
    /// `OFPST_FLOW`.
    Flow(Vec<FlowStats>),
    /// `OFPST_AGGREGATE`.
    Aggregate(AggregateStats),
    /// `OFPST_TABLE`.
    Table(Vec<TableStats>),
    /// `OFPST_PORT`.
    Port(Vec<PortStats>),
    /// `OFPST_QUEUE`.
    Queue(Vec<QueueStats>),
    /// `OFPST_VENDOR`.
    Vendor(VendorStats),
}

const BAD_STAT: Fault = ErrorKind::BadRequest(BadRequest::BadStat).fault();
const VENDOR: u16 = 0xffff;

impl<B: Body> Wire for Statistics<B> {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (kind, flags) = (reader.get()?, reader.get::<u16>()?);
        Ok(Self { more: flags & 1 != 0, body: B::read(kind, reader)? })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.body.kind().write(out);
        u16::from(self.more).write(out);
        self.body.write(out);
    }
}

fn unknown<T>(kind: u16) -> Result<T, Refusal> {
    Err(Refusal::new(BAD_STAT, "the type of a statistics message", u64::from(kind), "0 to 5, or 0xffff"))
}

impl Body for RequestBody {
    fn kind(&self) -> u16 {
        match self {
            Self::Description => 0,
            Self::Flow(_) => 1,
            Self::Aggregate(_) => 2,
            Self::Table => 3,
            Self::Port(_) => 4,
            Self::Queue(_) => 5,
            Self::Vendor(_) => VENDOR,
        }
    }

    fn read(kind: u16, reader: &mut Reader) -> Result<Self, Refusal> {
        Ok(match kind {
            0 => Self::Description,
            1 => Self::Flow(reader.get()?),
            2 => Self::Aggregate(reader.get()?),
            3 => Self::Table,
            4 => Self::Port(reader.get()?),
            5 => Self::Queue(reader.get()?),
            VENDOR => Self::Vendor(reader.get()?),
            other => return unknown(other),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Description | Self::Table => {}
            Self::Flow(request) | Self::Aggregate(request) => request.write(out),
            Self::Port(request) => request.write(out),
            Self::Queue(request) => request.write(out),
            Self::Vendor(vendor) => vendor.write(out),
        }
    }
}

impl Body for ReplyBody {
    fn kind(&self) -> u16 {
        match self {
            Self::Description(_) => 0,
            Self::Flow(_) => 1,
            Self::Aggregate(_) => 2,
            Self::Table(_) => 3,
            Self::Port(_) => 4,
            Self::Queue(_) => 5,
            Self::Vendor(_) => VENDOR,
        }
    }

    fn read(kind: u16, reader: &mut Reader) -> Result<Self, Refusal> {
        Ok(match kind {
            0 => Self::Description(reader.get()?),
            1 => Self::Flow(reader.get()?),
            2 => Self::Aggregate(reader.get()?),
            3 => Self::Table(reader.get()?),
            4 => Self::Port(reader.get()?),
            5 => Self::Queue(reader.get()?),
            VENDOR => Self::Vendor(reader.get()?),
            other => return unknown(other),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Description(description) => description.write(out),
            Self::Flow(flows) => flows.write(out),
            Self::Aggregate(flows) => flows.write(out),
            Self::Table(tables) => tables.write(out),
            Self::Port(ports) => ports.write(out),
            Self::Queue(queues) => queues.write(out),
            Self::Vendor(vendor) => vendor.write(out),
        }
    }
}
