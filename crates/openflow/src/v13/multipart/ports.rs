//! Statistics of ports and queues.

use crate::layout::record;
use crate::ports::port_statistics;

port_statistics! {
    PortStats: u32 [4], "[`crate::v13::port_number::ANY`]",
    QueueStats: u32, "[`crate::v13::port_number::ANY`]",
    /// Whole seconds that it has been there.
    duration_sec: u32,
    /// Nanoseconds beyond them.
    duration_nsec: u32
}
