//! Questions about the state of the switch, and their answers in one or several messages.

mod flows;
mod groups;
mod meters;
mod ports;
mod table_features;

pub use crate::parted::Parted as Multipart;
pub use flows::{AggregateStats, Description, FlowStats, FlowStatsRequest, TableStats};
pub use groups::{BucketCounter, GroupCapabilities, GroupDescription, GroupFeatures, GroupStats, GroupStatsRequest};
pub use meters::{MeterBandCounter, MeterConfig, MeterFeatures, MeterRequest, MeterStats};
pub use ports::{PortStats, PortStatsRequest, QueueStats, QueueStatsRequest};
pub use table_features::{FieldListing, TableFeatures, TableProperty, TypeId};

use super::{BadRequest, ErrorKind, Experimenter, Port};
use crate::error::{Fault, Refusal};
use crate::parted::bodies;

const BAD_MULTIPART: Fault = ErrorKind::BadRequest(BadRequest::BadMultipart).fault();

bodies! {
    /// `OFPT_MULTIPART_REQUEST`.
    pub enum RequestBody [4], BAD_MULTIPART, "the type of a multipart message", "0 to 13, or 0xffff" {
        /// `OFPMP_DESC`.
        0 Description;
        /// `OFPMP_FLOW`.
        1 Flow(request: FlowStatsRequest, matches_are_whole);
        /// `OFPMP_AGGREGATE`.
        2 Aggregate(request: FlowStatsRequest, matches_are_whole);
        /// `OFPMP_TABLE`.
        3 Table;
        /// `OFPMP_PORT_STATS`.
        4 PortStats(request: PortStatsRequest);
        /// `OFPMP_QUEUE`.
        5 Queue(request: QueueStatsRequest);
        /// `OFPMP_GROUP`.
        6 Group(request: GroupStatsRequest);
        /// `OFPMP_GROUP_DESC`.
        7 GroupDescription;
        /// `OFPMP_GROUP_FEATURES`.
        8 GroupFeatures;
        /// `OFPMP_METER`.
        9 Meter(request: MeterRequest);
        /// `OFPMP_METER_CONFIG`.
        10 MeterConfig(request: MeterRequest);
        /// `OFPMP_METER_FEATURES`.
        11 MeterFeatures;
        /// `OFPMP_TABLE_FEATURES`: empty to read, else what all tables shall be from now on.
        12 TableFeatures(tables: Vec<TableFeatures>);
        /// `OFPMP_PORT_DESC`.
        13 PortDescription;
        /// `OFPMP_EXPERIMENTER`.
        0xffff Experimenter(experimenter: Experimenter);
    }
}

bodies! {
    /// `OFPT_MULTIPART_REPLY`.
    pub enum ReplyBody [4], BAD_MULTIPART, "the type of a multipart message", "0 to 13, or 0xffff" {
        /// `OFPMP_DESC`.
        0 Description(description: Box<Description>);
        /// `OFPMP_FLOW`.
        1 Flow(flows: Vec<FlowStats>);
        /// `OFPMP_AGGREGATE`.
        2 Aggregate(flows: AggregateStats);
        /// `OFPMP_TABLE`.
        3 Table(tables: Vec<TableStats>);
        /// `OFPMP_PORT_STATS`.
        4 PortStats(ports: Vec<PortStats>);
        /// `OFPMP_QUEUE`.
        5 Queue(queues: Vec<QueueStats>);
        /// `OFPMP_GROUP`.
        6 Group(groups: Vec<GroupStats>);
        /// `OFPMP_GROUP_DESC`.
        7 GroupDescription(groups: Vec<GroupDescription>);
        /// `OFPMP_GROUP_FEATURES`.
        8 GroupFeatures(features: GroupFeatures);
        /// `OFPMP_METER`.
        9 Meter(meters: Vec<MeterStats>);
        /// `OFPMP_METER_CONFIG`.
        10 MeterConfig(meters: Vec<MeterConfig>);
        /// `OFPMP_METER_FEATURES`.
        11 MeterFeatures(features: MeterFeatures);
        /// `OFPMP_TABLE_FEATURES`.
        12 TableFeatures(tables: Vec<TableFeatures>);
        /// `OFPMP_PORT_DESC`.
        13 PortDescription(ports: Vec<Port>);
        /// `OFPMP_EXPERIMENTER`.
        0xffff Experimenter(experimenter: Experimenter);
    }
}

/// A switch takes no question about flows whose match it cannot understand.
fn matches_are_whole(request: &FlowStatsRequest) -> Result<(), Refusal> {
    request.matching.check()
}
