//! The flow statistics of OpenFlow 1.0 with an extensible match, inside its vendor statistics.

use super::flow::write_match_with_length;
use super::{in_message, BAD_SUBTYPE};
use crate::error::{Fault, Refusal};
use crate::oxm::Match;
use crate::v10::Action;
use crate::v13::multipart::AggregateStats;
use crate::wire::{pad, set_length, Reader, Wire};
use crate::Verbatim;

/// The flows that are asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct FlowStatsRequest {
    /// Only flows that output here; [`crate::v10::port_number::NONE`]: all.
    pub out_port: u16,
    /// Table; 0xff: every one.
    pub table_id: u8,
    /// Only flows at least as narrow.
    pub matching: Match,
}

impl Wire for FlowStatsRequest {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (out_port, length, table_id) = (reader.get()?, reader.get()?, reader.get()?);
        reader.skip(3)?;
        let matching = Match::read_padded(reader, length)?;
        matching.check()?;
        Ok(Self { out_port, table_id, matching })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.out_port.write(out);
        let length_at = out.len();
        write_match_with_length(|out| self.matching.write_padded(out), out, 4, &[]);
        out[length_at + 2] = self.table_id;
    }
}

/// The statistics of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct FlowStats {
    /// Table.
    pub table_id: u8,
    /// Whole seconds that it has lived.
    pub duration_sec: u32,
    /// Nanoseconds beyond them.
    pub duration_nsec: u32,
    /// Priority.
    pub priority: u16,
    /// Idle timeout in seconds.
    pub idle_timeout: u16,
    /// Hard timeout in seconds.
    pub hard_timeout: u16,
    /// One more than the seconds since its last frame; 0 when it is not told.
    pub idle_age: u16,
    /// One more than the seconds since it was changed; 0 when it is not told.
    pub hard_age: u16,
    /// Cookie.
    pub cookie: u64,
    /// Frames.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
    /// The match: which frames.
    pub matching: Verbatim<Match>,
    /// The actions on them.
    pub actions: Verbatim<Vec<Action>>,
}

impl Wire for FlowStats {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let mut inner = reader.sized(0, 48)?;
        inner.skip(2)?;
        let table_id = inner.get()?;
        inner.skip(1)?;
        let (duration_sec, duration_nsec, priority) = (inner.get()?, inner.get()?, inner.get()?);
        let (idle_timeout, hard_timeout, length) = (inner.get()?, inner.get()?, inner.get()?);
        let (idle_age, hard_age) = (inner.get()?, inner.get()?);
        let (cookie, packet_count, byte_count) = (inner.get()?, inner.get()?, inner.get()?);
        let matching = Verbatim::Value(Match::read_padded(&mut inner, length)?);
        let actions = inner.get()?;
        Ok(Self {
            table_id,
            duration_sec,
            duration_nsec,
            priority,
            idle_timeout,
            hard_timeout,
            idle_age,
            hard_age,
            cookie,
            packet_count,
            byte_count,
            matching,
            actions,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        pad(out, 2);
        [self.table_id, 0].write(out);
        self.duration_sec.write(out);
        self.duration_nsec.write(out);
        self.priority.write(out);
        self.idle_timeout.write(out);
        self.hard_timeout.write(out);
        let ages_at = out.len() + 2;
        let numbers = [self.cookie, self.packet_count, self.byte_count];
        write_match_with_length(|out| self.matching.write_padded(out), out, 4, &numbers);
        out[ages_at..ages_at + 2].copy_from_slice(&self.idle_age.to_be_bytes());
        out[ages_at + 2..ages_at + 4].copy_from_slice(&self.hard_age.to_be_bytes());
        self.actions.write(out);
        set_length(out, start, 0);
    }
}

/// The questions that [`crate::v10::statistics::VendorStats`] of Nicira ask.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum StatsRequest {
    /// `NXST_FLOW`.
    Flow(FlowStatsRequest),
    /// `NXST_AGGREGATE`.
    Aggregate(FlowStatsRequest),
}

/// The answers that [`crate::v10::statistics::VendorStats`] of Nicira answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum StatsReply {
    /// `NXST_FLOW`.
    Flow(Vec<FlowStats>),
    /// `NXST_AGGREGATE`.
    Aggregate(AggregateStats),
}

const FLOW: u32 = 0;
const AGGREGATE: u32 = 1;

fn body(data: &[u8]) -> Result<(u32, Reader<'_>), Refusal> {
    let mut reader = Reader::new(data, Fault::BAD_LENGTH);
    let kind = reader.get()?;
    reader.skip(4)?;
    Ok((kind, reader))
}

fn unknown<T>(kind: u32) -> Result<T, Refusal> {
    Err(Refusal::new(BAD_SUBTYPE, "the type of Nicira statistics", u64::from(kind), "0 (flows) or 1 (aggregate)"))
}

impl StatsRequest {
    /// Reads the data of vendor statistics.
    ///
    /// # Errors
    /// The answer of a switch.
    pub fn decode(data: &[u8]) -> Result<Self, Refusal> {
        let (kind, mut reader) = body(data)?;
        let request = match kind {
            FLOW => reader.get().map(Self::Flow),
            AGGREGATE => reader.get().map(Self::Aggregate),
            other => unknown(other),
        };
        let request = request.map_err(in_message)?;
        reader.finish()?;
        Ok(request)
    }

    /// The data of vendor statistics.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let (Self::Flow(request) | Self::Aggregate(request)) = self;
        if matches!(self, Self::Flow(_)) { FLOW } else { AGGREGATE }.write(&mut out);
        pad(&mut out, 4);
        request.write(&mut out);
        out
    }
}

impl StatsReply {
    /// Reads the data of vendor statistics.
    ///
    /// # Errors
    /// When it is not what Nicira's switches send.
    pub fn decode(data: &[u8]) -> Result<Self, Refusal> {
        let (kind, mut reader) = body(data)?;
        let reply = match kind {
            FLOW => reader.get().map(Self::Flow),
            AGGREGATE => reader.get().map(Self::Aggregate),
            other => unknown(other),
        };
        let reply = reply.map_err(in_message)?;
        reader.finish()?;
        Ok(reply)
    }

    /// The data of vendor statistics.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Flow(flows) => {
                FLOW.write(&mut out);
                pad(&mut out, 4);
                flows.write(&mut out);
            }
            Self::Aggregate(flows) => {
                AGGREGATE.write(&mut out);
                pad(&mut out, 4);
                flows.write(&mut out);
            }
        }
        out
    }
}
