//! Statistics, descriptions and features of groups.

use crate::layout::{flags, record};
use crate::v13::{Bucket, GroupType};
use crate::Verbatim;

record! {
    /// The group that is asked about.
    pub struct GroupStatsRequest {
        /// Number; [`crate::v13::group_number::ALL`]: every one.
        pub group_id: u32 [4];
    }
}

record! {
    /// The frames and bytes that a bucket carried.
    pub struct BucketCounter {
        /// Frames.
        pub packet_count: u64;
        /// Bytes.
        pub byte_count: u64;
    }
}

record! {
    /// The statistics of a group.
    pub struct GroupStats sized 0, 40 {
        [4];
        /// Number.
        pub group_id: u32;
        /// Flows and groups that refer to it.
        pub ref_count: u32 [4];
        /// Frames.
        pub packet_count: u64;
        /// Bytes.
        pub byte_count: u64;
        /// Whole seconds that it has lived.
        pub duration_sec: u32;
        /// Nanoseconds beyond them.
        pub duration_nsec: u32;
        /// Its buckets.
        pub buckets: Vec<BucketCounter>;
    }
}

record! {
    /// A group as it was added.
    pub struct GroupDescription sized 0, 8 {
        [2];
        /// The rule for which buckets are used.
        pub group_type: GroupType [1];
        /// Number.
        pub group_id: u32;
        /// Buckets.
        pub buckets: Verbatim<Vec<Bucket>>;
    }
}

flags! {
    /// The abilities of a switch's groups.
    pub struct GroupCapabilities: u32 {
        SELECT_WEIGHT = 1 << 0, "OFPGFC_SELECT_WEIGHT";
        SELECT_LIVENESS = 1 << 1, "OFPGFC_SELECT_LIVENESS";
        CHAINING = 1 << 2, "OFPGFC_CHAINING";
        CHAINING_CHECKS = 1 << 3, "OFPGFC_CHAINING_CHECKS";
    }
}

record! {
    /// The features of a switch's groups.
    pub struct GroupFeatures {
        /// Bit `n` for groups of type `n`.
        pub types: u32;
        /// Capabilities.
        pub capabilities: GroupCapabilities;
        /// Greatest number of groups of each type.
        pub max_groups: [u32; 4];
        /// Bit `n` for actions of type `n`, for each type of group.
        pub actions: [u32; 4];
    }
}
