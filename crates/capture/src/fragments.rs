//! Datagrams that travel in fragments: which conversation the later ones belong to, and when a datagram is whole.

use rustc_hash::FxHashMap;

use crate::decode::{Address, Layer};

/// Datagrams that are remembered at once; the oldest make room.
const MOST: usize = 8192;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    source: Address,
    destination: Address,
    identification: u32,
    protocol: u8,
}

/// A datagram of which parts have been seen.
#[derive(Clone, Copy)]
struct Parts {
    /// The head that the first fragment gave.
    head: Option<Head>,
    received: u32,
    /// Bytes in all, known from the last fragment; 0 before.
    whole: u32,
    age: u64,
}

/// The known facts of a datagram from its first fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Source and destination port.
    pub(crate) ports: (u16, u16),
    /// Bytes of UDP payload in the whole datagram.
    pub(crate) payload: u32,
    /// First bytes of that payload; what is not there is zero, and `kept` counts those that are.
    pub(crate) begin: [u8; 64],
    pub(crate) kept: u8,
}

/// The table of datagrams.
#[derive(Default)]
pub(crate) struct Fragments {
    parts: FxHashMap<Key, Parts>,
    age: u64,
    /// Datagrams of which not all fragments were seen.
    pub(crate) incomplete: u64,
}

/// The part of a packet that a fragment holds.
pub(crate) struct Placed {
    /// The head that the first fragment gave, if it was seen.
    pub(crate) head: Option<Head>,
    /// `true` if this fragment makes its datagram whole.
    pub(crate) completes: bool,
}

impl Fragments {
    /// Takes in a fragment.
    pub(crate) fn place(&mut self, layer: &Layer<'_>) -> Placed {
        let Some(fragment) = layer.fragment else { return Placed { head: None, completes: false } };
        let key = Key {
            source: layer.source,
            destination: layer.destination,
            identification: layer.identification,
            protocol: layer.protocol,
        };
        self.age += 1;
        if self.parts.len() >= MOST && !self.parts.contains_key(&key) {
            self.forget_half();
        }
        let age = self.age;
        let parts = self.parts.entry(key).or_insert(Parts { head: None, received: 0, whole: 0, age });
        parts.received = parts.received.saturating_add(layer.payload_length);
        if fragment.offset == 0 {
            parts.head = head(layer);
        }
        if !fragment.more {
            parts.whole = fragment.offset.saturating_add(layer.payload_length);
        }
        let placed = Placed { head: parts.head, completes: parts.whole > 0 && parts.received >= parts.whole };
        if placed.completes {
            self.parts.remove(&key);
        }
        placed
    }

    fn forget_half(&mut self) {
        let mut ages: Vec<u64> = self.parts.values().map(|parts| parts.age).collect();
        let middle = ages.len() / 2;
        let limit = *ages.select_nth_unstable(middle).1;
        let before = self.parts.len();
        self.parts.retain(|_, parts| parts.age > limit);
        self.incomplete += (before - self.parts.len()) as u64;
    }

    /// Datagrams that never became whole.
    pub(crate) fn never_whole(&self) -> u64 {
        self.incomplete + self.parts.len() as u64
    }
}

fn head(layer: &Layer<'_>) -> Option<Head> {
    let (header, payload) = layer.transport.payload()?;
    let bytes = layer.payload.get(header..)?;
    let kept = bytes.len().min(64);
    let mut begin = [0; 64];
    begin[..kept].copy_from_slice(&bytes[..kept]);
    Some(Head { ports: layer.transport.ports(), payload, begin, kept: kept as u8 })
}
