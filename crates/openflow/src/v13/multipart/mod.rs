//! Questions about the state of the switch, and their answers in one or several messages.

mod flows;
mod groups;
mod meters;
mod ports;
mod table_features;

pub use flows::{AggregateStats, Description, FlowStats, FlowStatsRequest, TableStats};
pub use groups::{BucketCounter, GroupCapabilities, GroupDescription, GroupFeatures, GroupStats, GroupStatsRequest};
pub use meters::{MeterBandCounter, MeterConfig, MeterFeatures, MeterRequest, MeterStats};
pub use ports::{PortStats, PortStatsRequest, QueueStats, QueueStatsRequest};
pub use table_features::{FieldListing, TableFeatures, TableProperty, TypeId};

use super::{BadRequest, ErrorKind, Experimenter, Port};
use crate::error::{Fault, Refusal};
use crate::wire::{pad, Reader, Wire};

const BAD_MULTIPART: Fault = ErrorKind::BadRequest(BadRequest::BadMultipart).fault();
const EXPERIMENTER: u16 = 0xffff;
/// `OFPMPF_REQ_MORE` and `OFPMPF_REPLY_MORE`.
const MORE: u16 = 1;

/// A part of a question or answer; the last part has `more` unset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Multipart<B> {
    /// `true` if another part with the same transaction follows.
    pub more: bool,
    /// The body: what it is about.
    pub body: B,
}

/// `OFPT_MULTIPART_REQUEST`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum RequestBody {
    /// `OFPMP_DESC`.
    Description,
    /// `OFPMP_FLOW`.
    Flow(FlowStatsRequest),
    /// `OFPMP_AGGREGATE`.
    Aggregate(FlowStatsRequest),
    /// `OFPMP_TABLE`.
    Table,
    /// `OFPMP_PORT_STATS`.
    PortStats(PortStatsRequest),
    /// `OFPMP_QUEUE`.
    Queue(QueueStatsRequest),
    /// `OFPMP_GROUP`.
    Group(GroupStatsRequest),
    /// `OFPMP_GROUP_DESC`.
    GroupDescription,
    /// `OFPMP_GROUP_FEATURES`.
    GroupFeatures,
    /// `OFPMP_METER`.
    Meter(MeterRequest),
    /// `OFPMP_METER_CONFIG`.
    MeterConfig(MeterRequest),
    /// `OFPMP_METER_FEATURES`.
    MeterFeatures,
    /// `OFPMP_TABLE_FEATURES`: empty to read, else what all tables shall be from now on.
    TableFeatures(Vec<TableFeatures>),
    /// `OFPMP_PORT_DESC`.
    PortDescription,
    /// `OFPMP_EXPERIMENTER`.
    Experimenter(Experimenter),
}

/// `OFPT_MULTIPART_REPLY`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum ReplyBody {
    /// `OFPMP_DESC`.
    Description(Box<Description>),
    /// `OFPMP_FLOW`.
    Flow(Vec<FlowStats>),
    /// `OFPMP_AGGREGATE`.
    Aggregate(AggregateStats),
    /// `OFPMP_TABLE`.
    Table(Vec<TableStats>),
    /// `OFPMP_PORT_STATS`.
    PortStats(Vec<PortStats>),
    /// `OFPMP_QUEUE`.
    Queue(Vec<QueueStats>),
    /// `OFPMP_GROUP`.
    Group(Vec<GroupStats>),
    /// `OFPMP_GROUP_DESC`.
    GroupDescription(Vec<GroupDescription>),
    /// `OFPMP_GROUP_FEATURES`.
    GroupFeatures(GroupFeatures),
    /// `OFPMP_METER`.
    Meter(Vec<MeterStats>),
    /// `OFPMP_METER_CONFIG`.
    MeterConfig(Vec<MeterConfig>),
    /// `OFPMP_METER_FEATURES`.
    MeterFeatures(MeterFeatures),
    /// `OFPMP_TABLE_FEATURES`.
    TableFeatures(Vec<TableFeatures>),
    /// `OFPMP_PORT_DESC`.
    PortDescription(Vec<Port>),
    /// `OFPMP_EXPERIMENTER`.
    Experimenter(Experimenter),
}

/// The body of a question or an answer: its type, and how it is read and written.
pub(crate) trait Body: Sized {
    fn kind(&self) -> u16;
    fn read(kind: u16, reader: &mut Reader) -> Result<Self, Refusal>;
    fn write(&self, out: &mut Vec<u8>);
}

impl<B: Body> Wire for Multipart<B> {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (kind, flags) = (reader.get()?, reader.get::<u16>()?);
        reader.skip(4)?;
        Ok(Self { more: flags & MORE != 0, body: B::read(kind, reader)? })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.body.kind().write(out);
        u16::from(self.more).write(out);
        pad(out, 4);
        self.body.write(out);
    }
}

fn unknown<T>(kind: u16) -> Result<T, Refusal> {
    Err(Refusal::new(BAD_MULTIPART, "the type of a multipart message", u64::from(kind), "0 to 13, or 0xffff"))
}

/// A question about flows, as a switch takes it: with a match that it can understand.
fn checked(reader: &mut Reader) -> Result<FlowStatsRequest, Refusal> {
    let request = reader.get::<FlowStatsRequest>()?;
    request.matching.check()?;
    Ok(request)
}

impl Body for RequestBody {
    fn kind(&self) -> u16 {
        match self {
            Self::Description => 0,
            Self::Flow(_) => 1,
            Self::Aggregate(_) => 2,
            Self::Table => 3,
            Self::PortStats(_) => 4,
            Self::Queue(_) => 5,
            Self::Group(_) => 6,
            Self::GroupDescription => 7,
            Self::GroupFeatures => 8,
            Self::Meter(_) => 9,
            Self::MeterConfig(_) => 10,
            Self::MeterFeatures => 11,
            Self::TableFeatures(_) => 12,
            Self::PortDescription => 13,
            Self::Experimenter(_) => EXPERIMENTER,
        }
    }

    fn read(kind: u16, reader: &mut Reader) -> Result<Self, Refusal> {
        Ok(match kind {
            0 => Self::Description,
            1 => Self::Flow(checked(reader)?),
            2 => Self::Aggregate(checked(reader)?),
            3 => Self::Table,
            4 => Self::PortStats(reader.get()?),
            5 => Self::Queue(reader.get()?),
            6 => Self::Group(reader.get()?),
            7 => Self::GroupDescription,
            8 => Self::GroupFeatures,
            9 => Self::Meter(reader.get()?),
            10 => Self::MeterConfig(reader.get()?),
            11 => Self::MeterFeatures,
            12 => Self::TableFeatures(reader.get()?),
            13 => Self::PortDescription,
            EXPERIMENTER => Self::Experimenter(reader.get()?),
            other => return unknown(other),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Description
            | Self::Table
            | Self::GroupDescription
            | Self::GroupFeatures
            | Self::MeterFeatures
            | Self::PortDescription => {}
            Self::Flow(request) | Self::Aggregate(request) => request.write(out),
            Self::PortStats(request) => request.write(out),
            Self::Queue(request) => request.write(out),
            Self::Group(request) => request.write(out),
            Self::Meter(request) | Self::MeterConfig(request) => request.write(out),
            Self::TableFeatures(tables) => tables.write(out),
            Self::Experimenter(experimenter) => experimenter.write(out),
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
            Self::PortStats(_) => 4,
            Self::Queue(_) => 5,
            Self::Group(_) => 6,
            Self::GroupDescription(_) => 7,
            Self::GroupFeatures(_) => 8,
            Self::Meter(_) => 9,
            Self::MeterConfig(_) => 10,
            Self::MeterFeatures(_) => 11,
            Self::TableFeatures(_) => 12,
            Self::PortDescription(_) => 13,
            Self::Experimenter(_) => EXPERIMENTER,
        }
    }

    fn read(kind: u16, reader: &mut Reader) -> Result<Self, Refusal> {
        Ok(match kind {
            0 => Self::Description(reader.get()?),
            1 => Self::Flow(reader.get()?),
            2 => Self::Aggregate(reader.get()?),
            3 => Self::Table(reader.get()?),
            4 => Self::PortStats(reader.get()?),
            5 => Self::Queue(reader.get()?),
            6 => Self::Group(reader.get()?),
            7 => Self::GroupDescription(reader.get()?),
            8 => Self::GroupFeatures(reader.get()?),
            9 => Self::Meter(reader.get()?),
            10 => Self::MeterConfig(reader.get()?),
            11 => Self::MeterFeatures(reader.get()?),
            12 => Self::TableFeatures(reader.get()?),
            13 => Self::PortDescription(reader.get()?),
            EXPERIMENTER => Self::Experimenter(reader.get()?),
            other => return unknown(other),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Description(description) => description.write(out),
            Self::Flow(flows) => flows.write(out),
            Self::Aggregate(flows) => flows.write(out),
            Self::Table(tables) => tables.write(out),
            Self::PortStats(ports) => ports.write(out),
            Self::Queue(queues) => queues.write(out),
            Self::Group(groups) => groups.write(out),
            Self::GroupDescription(groups) => groups.write(out),
            Self::GroupFeatures(features) => features.write(out),
            Self::Meter(meters) => meters.write(out),
            Self::MeterConfig(meters) => meters.write(out),
            Self::MeterFeatures(features) => features.write(out),
            Self::TableFeatures(tables) => tables.write(out),
            Self::PortDescription(ports) => ports.write(out),
            Self::Experimenter(experimenter) => experimenter.write(out),
        }
    }
}
