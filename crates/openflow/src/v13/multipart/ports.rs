//! Statistics of ports and queues.

use crate::layout::record;

record! {
    /// The port that is asked about.
    pub struct PortStatsRequest {
        /// Number; [`crate::v13::port_number::ANY`]: all.
        pub port_no: u32 [4];
    }
}

record! {
    /// The statistics of a port. A counter that the switch does not have is all ones.
    pub struct PortStats {
        /// Number.
        pub port_no: u32 [4];
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
        /// Whole seconds that the port has been there.
        pub duration_sec: u32;
        /// Nanoseconds beyond them.
        pub duration_nsec: u32;
    }
}

record! {
    /// The queue that is asked about.
    pub struct QueueStatsRequest {
        /// Port; [`crate::v13::port_number::ANY`]: all.
        pub port_no: u32;
        /// Queue; [`crate::v13::ALL_QUEUES`]: all.
        pub queue_id: u32;
    }
}

record! {
    /// The statistics of a queue.
    pub struct QueueStats {
        /// Port.
        pub port_no: u32;
        /// Queue.
        pub queue_id: u32;
        /// Bytes sent.
        pub tx_bytes: u64;
        /// Frames sent.
        pub tx_packets: u64;
        /// Frames dropped because the queue was full.
        pub tx_errors: u64;
        /// Whole seconds that the queue has been there.
        pub duration_sec: u32;
        /// Nanoseconds beyond them.
        pub duration_nsec: u32;
    }
}
