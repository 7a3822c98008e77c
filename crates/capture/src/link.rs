//! Link layers: where the network packet begins in a record.

/// A link type of the registry of captures (draft-ietf-opsawg-pcaplinktype) that can be looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// BSD loopback: the address family in the capturing machine's byte order (0).
    Null,
    /// IEEE 802.3 Ethernet (1).
    Ethernet,
    /// IPv4 or IPv6 without a link layer (101, and 12 and 14 as old systems wrote it; 228 and 229 for one of the two).
    Raw,
    /// OpenBSD loopback: the address family in network byte order (108).
    Loop,
    /// Linux "cooked", first form (113).
    Cooked,
    /// Linux "cooked", second form (276).
    Cooked2,
}

/// Names of link types, for messages.
pub(crate) const SUPPORTED: &str =
    "Ethernet (1), raw IP (101, 228, 229), Linux cooked (113, 276) and loopback (0, 108)";

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

impl LinkType {
    /// The link type of a number in a file; `None` for one that is not looked into.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Null),
            1 => Some(Self::Ethernet),
            12 | 14 | 101 | 228 | 229 => Some(Self::Raw),
            108 => Some(Self::Loop),
            113 => Some(Self::Cooked),
            276 => Some(Self::Cooked2),
            _ => None,
        }
    }

    /// `EtherType` and offset of what the link layer carries.
    #[inline]
    pub(crate) fn payload(self, bytes: &[u8]) -> Option<(u16, usize)> {
        match self {
            Self::Ethernet => ethernet(bytes, 0),
            Self::Raw => ip_version(bytes, 0),
            Self::Null | Self::Loop => {
                let family: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
                // Both byte orders are told apart by where the small number stands.
                let family = u32::from_be_bytes(family).min(u32::from_le_bytes(family));
                match family {
                    2 => Some((IPV4, 4)),
                    // IPv6 is 10 on Linux, 24, 28 or 30 on the BSDs and macOS.
                    10 | 24 | 28 | 30 => Some((IPV6, 4)),
                    _ => None,
                }
            }
            Self::Cooked => vlan(bytes, u16_at(bytes, 14)?, 16),
            Self::Cooked2 => vlan(bytes, u16_at(bytes, 0)?, 20),
        }
    }
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

fn ip_version(bytes: &[u8], at: usize) -> Option<(u16, usize)> {
    match bytes.get(at)? >> 4 {
        4 => Some((IPV4, at)),
        6 => Some((IPV6, at)),
        _ => None,
    }
}

/// Returns what an Ethernet frame at `at` carries.
#[inline]
pub(crate) fn ethernet(bytes: &[u8], at: usize) -> Option<(u16, usize)> {
    let kind = u16_at(bytes, at + 12)?;
    if kind == IPV4 {
        return Some((kind, at + 14));
    }
    vlan(bytes, kind, at + 14)
}

/// Steps over VLAN tags, MPLS labels and an 802.3 length with SNAP.
fn vlan(bytes: &[u8], mut kind: u16, mut at: usize) -> Option<(u16, usize)> {
    for _ in 0..8 {
        match kind {
            0x8100 | 0x88a8 | 0x9100 => {
                kind = u16_at(bytes, at + 2)?;
                at += 4;
            }
            0x8847 | 0x8848 => {
                let bottom = bytes.get(at + 2)? & 1 == 1;
                at += 4;
                if bottom {
                    return ip_version(bytes, at);
                }
            }
            // PPPoE session (RFC 2516): six bytes, then PPP's protocol.
            0x8864 => {
                return match u16_at(bytes, at + 6)? {
                    0x0021 => Some((IPV4, at + 8)),
                    0x0057 => Some((IPV6, at + 8)),
                    _ => None,
                }
            }
            0..0x0600 => {
                if bytes.get(at..at + 6)? != [0xaa, 0xaa, 3, 0, 0, 0] {
                    return None;
                }
                kind = u16_at(bytes, at + 6)?;
                at += 8;
                if kind < 0x0600 {
                    return None;
                }
            }
            _ => return Some((kind, at)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_layer_leads_to_its_packet() {
        let tagged = [&[0; 12][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 8, 0, 0x45]].concat();
        assert_eq!(LinkType::Ethernet.payload(&tagged), Some((0x0800, 22)));
        assert_eq!(LinkType::Raw.payload(&[0x60]), Some((0x86dd, 0)));
        assert_eq!(LinkType::Null.payload(&[2, 0, 0, 0]), Some((0x0800, 4)));
        assert_eq!(LinkType::Null.payload(&[0, 0, 0, 30]), Some((0x86dd, 4)));
        assert_eq!(LinkType::Loop.payload(&[0, 0, 0, 2]), Some((0x0800, 4)));
        let mut cooked = [0; 20];
        cooked[14..16].copy_from_slice(&[8, 0]);
        assert_eq!(LinkType::Cooked.payload(&cooked), Some((0x0800, 16)));
        assert_eq!(LinkType::Cooked2.payload(&[&[0x86, 0xdd][..], &[0; 18]].concat()), Some((0x86dd, 20)));
        let labelled = [&[0; 12][..], &[0x88, 0x47, 0, 1, 0, 64, 0, 1, 1, 64, 0x45]].concat();
        assert_eq!(LinkType::Ethernet.payload(&labelled), Some((0x0800, 22)));
        let snap = [&[0; 12][..], &[0, 30, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat();
        assert_eq!(LinkType::Ethernet.payload(&snap), Some((0x0800, 22)));
    }

    #[test]
    fn short_records_lead_nowhere() {
        for link in [LinkType::Ethernet, LinkType::Cooked, LinkType::Cooked2, LinkType::Null, LinkType::Raw] {
            assert_eq!(link.payload(&[]), None);
        }
        assert_eq!(LinkType::Ethernet.payload(&[&[0; 12][..], &[0x81, 0, 0]].concat()), None);
        assert_eq!(LinkType::of(127), None);
    }
}
