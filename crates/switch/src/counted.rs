//! The groups and meters of a switch as people read them, with what they have counted.

use schemars::JsonSchema;
use serde::Serialize;
use twinnet_units::{Duration, Time};

use super::action::List;
use super::group::{Bucket, GroupKind, NOTHING_WATCHED};
use super::meter::{Band, Effect, PACKETS};
use super::Switch;

/// A group and what it has counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GroupRow {
    /// Its number.
    pub group: u32,
    /// Which of its buckets a frame takes.
    pub kind: GroupKind,
    /// Frames that came to it.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time since it was added.
    pub age_ps: Duration,
    /// Its ways.
    pub buckets: Vec<BucketRow>,
}

/// A way through a group and what it has counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BucketRow {
    /// Its actions in the syntax of flows.
    pub actions: String,
    /// Its share among those of a group of the kind `select`.
    pub weight: u16,
    /// The port that must be up for it to be used; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch_port: Option<u32>,
    /// The group that must have a live bucket for it to be used; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch_group: Option<u32>,
    /// True if a frame may take it now.
    pub live: bool,
    /// Frames that took it.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A meter and what it has counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MeterRow {
    /// Its number.
    pub meter: u32,
    /// The unit of the rates of its bands.
    pub unit: MeterUnit,
    /// Frames that were measured.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time since it was added.
    pub age_ps: Duration,
    /// Its bands.
    pub bands: Vec<BandRow>,
}

/// A unit of a meter's rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeterUnit {
    /// kbit/s.
    Kbps,
    /// Frames a second.
    Pktps,
}

/// A band of a meter and what it has counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BandRow {
    /// Its rate in the meter's unit.
    pub rate: u32,
    /// How many steps the drop precedence of frames above the rate is raised by; absent: they are dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raises: Option<u8>,
    /// Frames above the rate.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Switch {
    /// The groups with their counters, by number.
    #[must_use]
    pub fn groups(&self, now: Time) -> Vec<GroupRow> {
        let watched = |number: u32| (number != NOTHING_WATCHED).then_some(number);
        let groups = &self.pipeline.groups;
        let bucket = |bucket: &Bucket| BucketRow {
            actions: List(&bucket.actions).to_string(),
            weight: bucket.weight,
            watch_port: watched(bucket.watch_port),
            watch_group: watched(bucket.watch_group),
            live: groups.is_bucket_live(bucket, 0),
            frames: bucket.frames,
            bytes: bucket.bytes,
        };
        groups
            .iter()
            .map(|(number, group)| GroupRow {
                group: number,
                kind: group.kind,
                frames: group.frames,
                bytes: group.bytes,
                age_ps: now.since(group.added),
                buckets: group.buckets.iter().map(bucket).collect(),
            })
            .collect()
    }

    /// The meters with their counters, by number.
    #[must_use]
    pub fn meters(&self, now: Time) -> Vec<MeterRow> {
        let band = |band: &Band| BandRow {
            rate: band.rate,
            raises: match band.effect {
                Effect::Drop => None,
                Effect::Remark(steps) => Some(steps),
            },
            frames: band.frames,
            bytes: band.bytes,
        };
        let meters = self.pipeline.meters.meters.iter();
        meters
            .map(|(number, meter)| MeterRow {
                meter: *number,
                unit: if meter.flags & PACKETS != 0 { MeterUnit::Pktps } else { MeterUnit::Kbps },
                frames: meter.frames,
                bytes: meter.bytes,
                age_ps: now.since(meter.added),
                bands: meter.bands.iter().map(band).collect(),
            })
            .collect()
    }
}
