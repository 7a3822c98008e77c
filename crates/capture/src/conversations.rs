//! Who spoke with whom: packets and bytes of each direction, from when to when.

use std::hash::{BuildHasher, RandomState};

use rustc_hash::FxSeededState;
use std::collections::HashMap;

use crate::decode::{address, Address, Layer, TCP, UDP};
use crate::table::{Table, MISSING};

/// The key of a conversation: both ends, the smaller first, so that both directions meet in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    low: (Address, u16),
    high: (Address, u16),
    protocol: u8,
    v6: bool,
}

/// The traffic that passed between two ends; index 0 is the direction of the first packet.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) v6: bool,
    pub(crate) a: (Address, u16),
    pub(crate) b: (Address, u16),
    pub(crate) protocol: u8,
    pub(crate) packets: [u64; 2],
    pub(crate) bytes: [u64; 2],
    pub(crate) payload: [u64; 2],
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    /// Index of the host pair; its own for a host pair.
    pub(crate) pair: u32,
    /// Index of the TCP connection's state, or `u32::MAX`.
    pub(crate) tcp: u32,
    /// Index of the RTP search of each direction, or `u32::MAX`.
    pub(crate) rtp: [u32; 2],
}

/// The most conversations, and host pairs, that are kept apart unless more are asked for.
pub(crate) const MOST: usize = 1 << 18;

/// A table of conversations.
pub(crate) struct Conversations {
    index: HashMap<Key, u32, FxSeededState>,
    pub(crate) all: Vec<Conversation>,
    last: Option<(Key, u32)>,
    limit: usize,
    /// Packets of conversations beyond the limit.
    pub(crate) not_kept: u64,
}

/// The conversation that a packet is of, and the direction in it.
pub(crate) type Place = (usize, usize);

impl Conversations {
    pub(crate) fn new(limit: usize) -> Self {
        // Addresses choose the bucket, and whoever sent the packets chose the addresses.
        let seed = RandomState::new().hash_one(0_u64) as usize;
        Self {
            index: HashMap::with_hasher(FxSeededState::with_seed(seed)),
            all: Vec::new(),
            last: None,
            limit,
            not_kept: 0,
        }
    }

    /// The place of a packet; `None` when there are too many conversations already.
    #[inline]
    pub(crate) fn place(&mut self, layer: &Layer<'_>, protocol: u8, ports: (u16, u16)) -> Option<Place> {
        let (from, to) = ((layer.source, ports.0), (layer.destination, ports.1));
        let (low, high) = if from <= to { (from, to) } else { (to, from) };
        let key = Key { low, high, protocol, v6: layer.v6 };
        let index = match self.last {
            Some((last, index)) if last == key => index,
            _ => {
                let index = match self.index.get(&key) {
                    Some(&index) => index,
                    None => self.begin(key, from, to)?,
                };
                self.last = Some((key, index));
                index
            }
        };
        let index = index as usize;
        Some((index, usize::from(self.all[index].a != from)))
    }

    #[cold]
    fn begin(&mut self, key: Key, from: (Address, u16), to: (Address, u16)) -> Option<u32> {
        if self.all.len() >= self.limit {
            self.not_kept += 1;
            return None;
        }
        let index = self.all.len() as u32;
        self.all.push(Conversation {
            v6: key.v6,
            a: from,
            b: to,
            protocol: key.protocol,
            packets: [0; 2],
            bytes: [0; 2],
            payload: [0; 2],
            first_ns: MISSING,
            last_ns: MISSING,
            pair: u32::MAX,
            tcp: u32::MAX,
            rtp: [u32::MAX; 2],
        });
        self.index.insert(key, index);
        Some(index)
    }

    /// Begins a new conversation between the ends of one that is over: its ports are used again.
    pub(crate) fn renew(&mut self, place: Place) -> Option<Place> {
        let old = &self.all[place.0];
        let (from, to) = if place.1 == 0 { (old.a, old.b) } else { (old.b, old.a) };
        let (low, high) = if from <= to { (from, to) } else { (to, from) };
        let (key, pair) = (Key { low, high, protocol: old.protocol, v6: old.v6 }, old.pair);
        let index = self.begin(key, from, to)?;
        self.last = Some((key, index));
        self.all[index as usize].pair = pair;
        Some((index as usize, 0))
    }
}

impl Conversation {
    /// Counts a packet.
    #[inline]
    pub(crate) fn count(&mut self, direction: usize, bytes: u32, payload: u32, time_ns: Option<i64>) {
        self.packets[direction] += 1;
        self.bytes[direction] += u64::from(bytes);
        self.payload[direction] += u64::from(payload);
        if let Some(time) = time_ns {
            if self.first_ns == MISSING {
                (self.first_ns, self.last_ns) = (time, time);
            } else {
                self.first_ns = self.first_ns.min(time);
                self.last_ns = self.last_ns.max(time);
            }
        }
    }

    fn duration_ns(&self) -> i64 {
        if self.first_ns == MISSING {
            MISSING
        } else {
            self.last_ns.saturating_sub(self.first_ns)
        }
    }
}

/// A protocol's name, or its number.
pub(crate) fn protocol_name(protocol: u8) -> String {
    match protocol {
        1 => "icmp",
        2 => "igmp",
        4 => "ipip",
        TCP => "tcp",
        UDP => "udp",
        41 => "ipv6",
        47 => "gre",
        50 => "esp",
        58 => "icmpv6",
        89 => "ospf",
        132 => "sctp",
        other => return other.to_string(),
    }
    .to_owned()
}

/// The table of conversations, or of host pairs where `ports` is false.
pub(crate) fn table(all: &[Conversation], ports: bool) -> Table {
    let mut table = Table::default();
    if ports {
        table.text("protocol", all.iter().map(|one| protocol_name(one.protocol)));
    }
    table.text("a_address", all.iter().map(|one| address(one.v6, one.a.0).to_string()));
    if ports {
        table.whole("a_port", all.iter().map(|one| i64::from(one.a.1)));
    }
    table.text("b_address", all.iter().map(|one| address(one.v6, one.b.0).to_string()));
    if ports {
        table.whole("b_port", all.iter().map(|one| i64::from(one.b.1)));
    }
    table.count("packets", all.iter().map(|one| one.packets[0] + one.packets[1]));
    table.count("bytes", all.iter().map(|one| one.bytes[0] + one.bytes[1]));
    for (direction, packets, bytes, payload) in [
        (0, "packets_a_to_b", "bytes_a_to_b", "payload_bytes_a_to_b"),
        (1, "packets_b_to_a", "bytes_b_to_a", "payload_bytes_b_to_a"),
    ] {
        table.count(packets, all.iter().map(|one| one.packets[direction]));
        table.count(bytes, all.iter().map(|one| one.bytes[direction]));
        table.count(payload, all.iter().map(|one| one.payload[direction]));
    }
    table.whole("start_ns", all.iter().map(|one| one.first_ns));
    table.whole("duration_ns", all.iter().map(Conversation::duration_ns));
    table
}
