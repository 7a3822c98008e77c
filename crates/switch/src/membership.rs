//! Reports of multicast membership go to multicast routers only (RFC 4541, sections 2.1.1 and 3): every host of a
//! network sends some when it starts, and flooding them costs the square of the number of hosts.

use twinnet_packet::{Frame, Layout};
use twinnet_units::{Duration, Time};

use super::mac_table::Station;

/// The time that a port counts as a router's after a query (RFC 3376, section 8.5: other querier present interval).
const ROUTER_PRESENT: Duration = Duration::from_secs(255);
/// 224.0.0.22 and ff02::16, where IGMPv3 (RFC 3376, section 4.2.14) and MLDv2 (RFC 3810, section 5.2.14) reports go.
const REPORTS: [[u8; 6]; 2] = [[0x01, 0, 0x5e, 0, 0, 0x16], [0x33, 0x33, 0, 0, 0, 0x16]];
/// 224.0.0.1 and ff02::1, where general queries go.
const ALL_SYSTEMS: [[u8; 6]; 2] = [[0x01, 0, 0x5e, 0, 0, 0x01], [0x33, 0x33, 0, 0, 0, 0x01]];
const IGMP: (u8, u8) = (2, 0x11);
const ICMPV6: (u8, u8) = (58, 130);

/// The ports behind which a multicast router is.
#[derive(Debug, Default)]
pub(super) struct Routers {
    ports: Vec<(u32, Time)>,
}

impl Routers {
    /// Returns `true` if frames to `destination` are reports of membership.
    pub(super) fn is_report(destination: Station) -> bool {
        REPORTS.iter().any(|mac| destination.has_address(*mac))
    }

    /// Notes the port of a router when `frame` is its query.
    pub(super) fn observe(&mut self, destination: Station, frame: &Frame, layout: &Layout, in_port: u32, now: Time) {
        if !ALL_SYSTEMS.iter().any(|mac| destination.has_address(*mac)) {
            return;
        }
        let kind = layout.l4().and_then(|start| frame.bytes.get(start)).map(|kind| (layout.protocol(), *kind));
        if kind != Some(IGMP) && kind != Some(ICMPV6) {
            return;
        }
        self.ports.retain(|(port, seen)| *port != in_port && now - *seen < ROUTER_PRESENT);
        self.ports.push((in_port, now));
    }

    /// The ports that reports go to at `now`.
    pub(super) fn ports(&self, now: Time) -> impl Iterator<Item = u32> + '_ {
        self.ports.iter().filter(move |(_, seen)| now - *seen < ROUTER_PRESENT).map(|(port, _)| *port)
    }
}
