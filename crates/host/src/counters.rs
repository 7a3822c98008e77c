//! Counters of packets that a host let go no further.

use serde::Serialize;

/// Counters of a model host, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostCounters {
    /// Frames that were for another hardware address or of a kind that hosts do not speak.
    pub ignored: u64,
    /// Frames that contradict themselves.
    pub malformed: u64,
    /// Frames whose checksum is wrong.
    pub corrupted: u64,
    /// Packets for which there is no route, or whose next hop did not answer.
    pub unreachable: u64,
    /// Packets whose time to live ran out here.
    pub expired: u64,
    /// Packets that were too long for the next link and might not be fragmented.
    pub too_big: u64,
    /// Datagrams and segments for which nobody waits.
    pub unwanted: u64,
    /// Frames that found the interface's queue, or the queue of a neighbour that is asked for, full; requests for
    /// connections that find no room.
    pub overflowed: u64,
    /// Packets put together from fragments.
    pub reassembled: u64,
    /// Fragments that were thrown away: too late, too many, or overlapping.
    pub fragments_dropped: u64,
    /// Packets that were forwarded.
    pub forwarded: u64,
    /// ICMP errors that were not sent, for the limit on their rate.
    pub errors_limited: u64,
}
