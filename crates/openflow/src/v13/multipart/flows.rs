//! Statistics of flows and tables.

use crate::layout::record;
use crate::oxm::Match;
use crate::v13::{FlowFlags, Instruction};
use crate::wire::Text;
use crate::Verbatim;

record! {
    /// `ofp_desc`: what the switch is, in words.
    pub struct Description {
        /// Manufacturer.
        pub manufacturer: Text<256>;
        /// Hardware.
        pub hardware: Text<256>;
        /// Software.
        pub software: Text<256>;
        /// Serial number.
        pub serial_number: Text<32>;
        /// The datapath, for people.
        pub datapath: Text<256>;
    }
}

record! {
    /// The flows that are asked about, each or all together.
    pub struct FlowStatsRequest {
        /// Table; [`crate::v13::table_number::ALL`]: every one.
        pub table_id: u8 [3];
        /// Only flows that output here; [`crate::v13::port_number::ANY`]: all.
        pub out_port: u32;
        /// Only flows that use this group; [`crate::v13::group_number::ANY`]: all.
        pub out_group: u32 [4];
        /// Cookie that flows must have in the bits of the mask.
        pub cookie: u64;
        /// Those bits; 0: all flows.
        pub cookie_mask: u64;
        /// Only flows at least as narrow.
        pub matching: Match;
    }
}

record! {
    /// The statistics of a flow.
    pub struct FlowStats sized 0, 56 {
        [2];
        /// Table.
        pub table_id: u8 [1];
        /// Whole seconds that it has lived.
        pub duration_sec: u32;
        /// Nanoseconds beyond them.
        pub duration_nsec: u32;
        /// Priority.
        pub priority: u16;
        /// Idle timeout in seconds.
        pub idle_timeout: u16;
        /// Hard timeout in seconds.
        pub hard_timeout: u16;
        /// Flags.
        pub flags: FlowFlags [4];
        /// Cookie.
        pub cookie: u64;
        /// Frames.
        pub packet_count: u64;
        /// Bytes.
        pub byte_count: u64;
        /// The match: which frames.
        pub matching: Verbatim<Match>;
        /// The instructions for them.
        pub instructions: Verbatim<Vec<Instruction>>;
    }
}

record! {
    /// The statistics of flows all together.
    pub struct AggregateStats {
        /// Frames.
        pub packet_count: u64;
        /// Bytes.
        pub byte_count: u64;
        /// Flows.
        pub flow_count: u32 [4];
    }
}

record! {
    /// The statistics of a table.
    pub struct TableStats {
        /// Number.
        pub table_id: u8 [3];
        /// Flows in it.
        pub active_count: u32;
        /// Frames looked up.
        pub lookup_count: u64;
        /// Frames that matched.
        pub matched_count: u64;
    }
}
