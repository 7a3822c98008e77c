//! Frames that were lost between a host and the fabric, asked of the kernel outside of the loop.
//!
//! On a link without a rate such a loss means that the loop did not read in time: it counts against the run. On a link with a
//! rate it is what an interface does whose ring is full, and is told for information.

use std::sync::{Arc, Mutex, PoisonError};

use crate::netlink::Netlink;

/// One interface that is asked for its losses.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its index in its host.
    pub index: u32,
    /// A socket to the routing subsystem of its host.
    pub routing: Arc<Mutex<Netlink>>,
    /// Whether its link has a line rate.
    pub rated: bool,
}

/// Losses so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// On links without a rate.
    pub unrated: u64,
    /// On links with a rate.
    pub rated: u64,
}

impl Losses {
    /// Asks all `interfaces`. One that is gone has lost nothing that can still be known.
    #[must_use]
    pub fn of(interfaces: &[Watched]) -> Self {
        let mut losses = Self::default();
        for interface in interfaces {
            let mut routing = interface.routing.lock().unwrap_or_else(PoisonError::into_inner);
            let lost = routing.transmit_drops(interface.index).unwrap_or(0);
            *(if interface.rated { &mut losses.rated } else { &mut losses.unrated }) += lost;
        }
        losses
    }

    /// What came after `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { unrated: self.unrated.saturating_sub(before.unrated), rated: self.rated.saturating_sub(before.rated) }
    }
}
