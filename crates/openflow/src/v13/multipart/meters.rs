//! Statistics, configuration and features of meters.

use crate::layout::record;
use crate::v13::{MeterBand, MeterFlags};
use crate::Verbatim;

record! {
    /// The meter that is asked about.
    pub struct MeterRequest {
        /// Number; [`crate::v13::meter_number::ALL`]: every one.
        pub meter_id: u32 [4];
    }
}

record! {
    /// The frames and bytes that a band was applied to.
    pub struct MeterBandCounter {
        /// Frames.
        pub packet_count: u64;
        /// Bytes.
        pub byte_count: u64;
    }
}

record! {
    /// The statistics of a meter.
    pub struct MeterStats sized 4, 40 {
        /// Number.
        pub meter_id: u32 [8];
        /// Flows that use it.
        pub flow_count: u32;
        /// Frames that it measured.
        pub packet_in_count: u64;
        /// Bytes that it measured.
        pub byte_in_count: u64;
        /// Whole seconds that it has lived.
        pub duration_sec: u32;
        /// Nanoseconds beyond them.
        pub duration_nsec: u32;
        /// Its bands.
        pub bands: Vec<MeterBandCounter>;
    }
}

record! {
    /// A meter as it was added.
    pub struct MeterConfig sized 0, 8 {
        [2];
        /// The way it measures.
        pub flags: MeterFlags;
        /// Number.
        pub meter_id: u32;
        /// Bands.
        pub bands: Verbatim<Vec<MeterBand>>;
    }
}

record! {
    /// The features of a switch's meters.
    pub struct MeterFeatures {
        /// Greatest number of meters.
        pub max_meter: u32;
        /// Bit `n` for bands of type `n`.
        pub band_types: u32;
        /// Bits of [`MeterFlags`].
        pub capabilities: u32;
        /// Greatest number of bands of a meter.
        pub max_bands: u8;
        /// Greatest colour value.
        pub max_color: u8 [2];
    }
}
