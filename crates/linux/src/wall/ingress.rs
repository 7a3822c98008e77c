//! Frames that were lost between a host and the fabric, asked of the kernel outside of the loop.
//!
//! Such a loss means that the loop did not read in time, and counts against the run. On a link with a rate the host's
//! interface holds frames back at that rate, so that its ring does not fill while the loop reads: there it is told by
//! port.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::kernel::netlink::Netlink;
use crate::wall::fidelity::steal_s;

/// One interface that is asked for its losses.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The name of its port.
    pub port: String,
    /// The counter of the lost frames.
    pub counter: Counter,
    /// `true` if its link has a line rate, for which the interface holds frames back.
    pub rated: bool,
}

/// The counter of the frames that an interface lost.
#[derive(Clone, Debug)]
pub enum Counter {
    /// The interface, by its index in its host and a socket to the routing subsystem there.
    Interface(u32, Arc<Mutex<Netlink>>, Arc<WhileDown>),
    /// The packet socket that listens at it.
    Socket(Arc<SocketLosses>),
}

impl Counter {
    fn total(&self) -> u64 {
        match self {
            Self::Interface(_, _, down) => {
                let dropped = self.dropped();
                dropped.saturating_sub(down.of(dropped))
            }
            Self::Socket(socket) => socket.total(),
        }
    }

    /// The link of the interface comes `up` or goes down now.
    pub(crate) fn follow(&self, up: bool) {
        if let Self::Interface(_, _, down) = self {
            down.follow(up, self.dropped());
        }
    }

    /// The number of the kernel; 0 for an interface that is gone.
    fn dropped(&self) -> u64 {
        let Self::Interface(index, routing, _) = self else { return 0 };
        let mut routing = routing.lock().unwrap_or_else(PoisonError::into_inner);
        routing.transmit_drops(*index).unwrap_or(0)
    }
}

/// Frames that a host sent while its link was down. The kernel drops and counts them, and nothing read too late.
#[derive(Debug)]
pub struct WhileDown {
    /// Of earlier times.
    before: AtomicU64,
    /// The kernel's count when the link went down, or [`UP`].
    since: AtomicU64,
}

/// No count of the kernel's.
const UP: u64 = u64::MAX;

impl Default for WhileDown {
    fn default() -> Self {
        Self { before: AtomicU64::new(0), since: AtomicU64::new(UP) }
    }
}

impl WhileDown {
    fn follow(&self, up: bool, dropped: u64) {
        if up {
            let since = self.since.swap(UP, Ordering::Relaxed);
            self.before.fetch_add(dropped.saturating_sub(since), Ordering::Relaxed);
        } else {
            // A link that is down already stays so.
            let _ = self.since.compare_exchange(UP, dropped, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Returns how many of `dropped` frames were sent while the link was down.
    fn of(&self, dropped: u64) -> u64 {
        let since = self.since.load(Ordering::Relaxed);
        self.before.load(Ordering::Relaxed) + dropped.saturating_sub(since)
    }
}

/// Frames that a packet socket had no room for. The kernel forgets its count when it tells it.
#[derive(Debug)]
pub struct SocketLosses {
    socket: OwnedFd,
    told: AtomicU64,
}

impl SocketLosses {
    /// Counts at `socket`.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn of(socket: &OwnedFd) -> io::Result<Self> {
        Ok(Self { socket: socket.try_clone()?, told: AtomicU64::new(0) })
    }

    fn total(&self) -> u64 {
        let mut told = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        let place = (&raw mut told).cast();
        // SAFETY: `told` is valid for `length` bytes, which the kernel fills. Where it refuses, nothing was lost that
        // it tells.
        unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                place,
                &raw mut length,
            );
        }
        let more = u64::from(told.tp_drops);
        self.told.fetch_add(more, Ordering::Relaxed) + more
    }
}

/// Losses so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// On links without a rate.
    pub unrated: u64,
    /// On links with a rate, by port.
    pub rated: BTreeMap<String, u64>,
}

impl Losses {
    /// Asks all `interfaces`. One that is gone has lost nothing that can still be known.
    #[must_use]
    pub fn of(interfaces: &[Watched]) -> Self {
        let mut losses = Self::default();
        for interface in interfaces {
            let lost = interface.counter.total();
            if interface.rated {
                losses.rated.insert(interface.port.clone(), lost);
            } else {
                losses.unrated += lost;
            }
        }
        losses
    }

    /// Returns what came after `before`; of links with a rate the ports that lost something.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let grown = |(port, lost): (&String, &u64)| {
            let grown = lost.saturating_sub(before.rated.get(port).copied().unwrap_or(0));
            (grown > 0).then(|| (port.clone(), grown))
        };
        let rated = self.rated.iter().filter_map(grown).collect();
        Self { unrated: self.unrated.saturating_sub(before.unrated), rated }
    }
}

/// The counters of the kernel so far.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// At the hosts' interfaces.
    pub losses: Losses,
    /// Time that a hypervisor took from the machine, in seconds over all CPUs.
    pub steal_s: f64,
}

impl Counted {
    /// As it is now.
    #[must_use]
    pub fn of(interfaces: &[Watched]) -> Self {
        Self { losses: Losses::of(interfaces), steal_s: steal_s() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_sends_while_its_link_is_down_is_no_loss() {
        let down = WhileDown::default();
        assert_eq!(down.of(3), 0, "lost while the link was up");
        down.follow(false, 3);
        assert_eq!(down.of(10), 7);
        down.follow(false, 12);
        assert_eq!(down.of(13), 10, "down already");
        down.follow(true, 15);
        assert_eq!(down.of(20), 12);
        down.follow(true, 20);
        down.follow(false, 21);
        assert_eq!(down.of(22), 13);
    }
}
