//! How busy the lines were: what a pause does to a queue depends on it.
//!
//! What a pause held up comes at once afterwards, and has to leave through a queue that goes on being filled. A line
//! that is busy for the share *u* of its time needs 1 / (1 - *u*) times the pause until its queue is as it would have
//! been, and all that leaves meanwhile is late. A line whose queue is never empty knows no such time: what comes late
//! waits no longer than it would have.

use twinnet_fabric::{Fabric, PortId};
use twinnet_units::{Duration, Time};

/// The time over which a share is taken.
const WINDOW: Duration = Duration::from_secs(1);
/// A line that is busy for more of its time always has a queue.
const SATURATED: f64 = 0.98;
/// Lines looked at in one turn of the loop, which each takes some ten nanoseconds.
const AT_ONCE: usize = 64;

/// What a line had sent at one moment, in bytes on the wire.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Time,
    wire_bytes: u64,
}

/// The busiest line that did not always have a queue, in any second since the record began.
#[derive(Clone, Debug, Default)]
pub struct BusyLines {
    looks: Vec<Option<Look>>,
    /// The port that is next.
    next: usize,
    /// When its round began.
    begun: Time,
    busiest: Option<(PortId, f64)>,
}

impl BusyLines {
    /// Looks at some lines, if it is time; called once a turn.
    #[inline]
    pub fn look(&mut self, fabric: &Fabric, ports: usize, now: Time) {
        if self.next == 0 {
            if !self.looks.is_empty() && now.since(self.begun) < WINDOW {
                return;
            }
            self.begun = now;
        }
        self.look_at_some(fabric, ports, now);
    }

    fn look_at_some(&mut self, fabric: &Fabric, ports: usize, now: Time) {
        self.looks.resize(ports.max(1), None);
        let end = (self.next + AT_ONCE).min(ports);
        for port in self.next..end {
            self.look_at(fabric, port, now);
        }
        self.next = if end >= ports { 0 } else { end };
    }

    #[allow(clippy::cast_precision_loss)]
    fn look_at(&mut self, fabric: &Fabric, port: usize, now: Time) {
        let id = PortId(u32::try_from(port).unwrap_or(u32::MAX));
        let Some((wire_bytes, rate_bps)) = fabric.sent_at_rate(id) else { return };
        let Some(before) = self.looks[port].replace(Look { at: now, wire_bytes }) else { return };
        let seconds = now.since(before.at).as_ps() as f64 / 1e12;
        let share = wire_bytes.saturating_sub(before.wire_bytes) as f64 * 8.0 / (rate_bps as f64 * seconds);
        if share <= SATURATED && self.busiest.is_none_or(|(_, known)| share > known) {
            self.busiest = Some((id, share));
        }
    }

    /// The line by its port, and its share.
    pub(crate) const fn busiest(&self) -> Option<(PortId, f64)> {
        self.busiest
    }
}
