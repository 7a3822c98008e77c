//! Fragments: cutting packets that are longer than a link takes, and putting them together (RFC 791, RFC 8200, 4.5).

use std::collections::BTreeMap;
use std::net::IpAddr;

use twinnet_packet::{checksum, Frame};
use twinnet_units::{Duration, Time};

use super::packet::Packet;
use super::path::{L3, V4_HEADERS, V6_HEADERS};
use super::stack::{Arrival, Stack, Turn};
use super::timers::{Alarm, Owner};

/// The time that fragments wait for the rest (Linux's `ipfrag_time`).
const LIFETIME_V4: Duration = Duration::from_secs(30);
/// The same for IPv6 (RFC 8200, 4.5).
const LIFETIME_V6: Duration = Duration::from_secs(60);
/// Bytes of fragments that one host keeps, headers included; the oldest packets make room (Linux's
/// `ipfrag_high_thresh`).
const MOST_BYTES: usize = 4 << 20;
/// The bytes that a fragment is charged beyond its payload.
const FRAGMENT_OVERHEAD: usize = 128;
/// The longest payload of an IP packet.
const LONGEST: u32 = 65_535;

/// The place of an arrived fragment in its packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    pub(super) identification: u32,
    /// Of its first byte in the whole.
    pub(super) offset: u32,
    /// `true` if others follow it.
    pub(super) more: bool,
    /// The end of its headers in the frame.
    pub(super) header_end: usize,
    /// IPv6: where the fragment header is in the frame.
    pub(super) fragment_header: Option<usize>,
}

/// The fields that tell packets apart (RFC 791, 3.2; RFC 8200, 4.5).
type Key = (IpAddr, IpAddr, u8, u32);

/// A piece of a payload.
#[derive(Debug)]
struct Piece {
    stored: Vec<u8>,
    elided: u32,
}

impl Piece {
    fn length(&self) -> u32 {
        self.stored.len() as u32 + self.elided
    }
}

/// A packet that is not whole yet.
#[derive(Debug)]
struct Partial {
    until: Time,
    /// By offset.
    pieces: BTreeMap<u32, Piece>,
    /// Length of the whole, once the last fragment has come.
    whole: Option<u32>,
    /// The frame of the first fragment up to the end of its headers, and what its header said.
    first: Option<(Vec<u8>, Packet, Fragment)>,
    bytes: usize,
}

/// The packets of a host that are not whole yet.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    partial: BTreeMap<Key, Partial>,
    bytes: usize,
    alarm: Alarm,
}

impl Reassembly {
    fn remove(&mut self, key: &Key) -> Option<Partial> {
        let removed = self.partial.remove(key)?;
        self.bytes -= removed.bytes;
        Some(removed)
    }

    fn deadline(&self) -> Option<Time> {
        self.partial.values().map(|partial| partial.until).min()
    }
}

impl Partial {
    /// Takes a fragment's payload in. `false` when it contradicts the others: an overlap (RFC 5722), or two ends.
    fn add(&mut self, fragment: Fragment, piece: Piece) -> bool {
        let end = fragment.offset + piece.length();
        if end > LONGEST || (fragment.more && piece.length() % 8 != 0) {
            return false;
        }
        let highest = self.pieces.last_key_value().map_or(0, |(offset, last)| offset + last.length());
        if !fragment.more {
            if self.whole.is_some_and(|whole| whole != end) || highest > end {
                return false;
            }
            self.whole = Some(end);
        } else if self.whole.is_some_and(|whole| end > whole) {
            return false;
        }
        let before = self.pieces.range(..=fragment.offset).next_back();
        if let Some((offset, before)) = before {
            if *offset == fragment.offset && before.length() == piece.length() {
                // The same once more: duplicated on the way.
                return true;
            }
            if offset + before.length() > fragment.offset {
                return false;
            }
        }
        let after = self.pieces.range(fragment.offset..).next();
        if after.is_some_and(|(offset, _)| *offset < end) {
            return false;
        }
        self.bytes += piece.stored.len() + FRAGMENT_OVERHEAD;
        self.pieces.insert(fragment.offset, piece);
        true
    }

    fn is_whole(&self) -> bool {
        let have: u32 = self.pieces.values().map(Piece::length).sum();
        self.first.is_some() && self.whole == Some(have)
    }
}

impl Stack {
    /// Keeps a fragment; when it was the last that was missing, the whole packet goes up.
    pub(super) fn reassemble(
        &mut self,
        frame: Box<Frame>,
        packet: Packet,
        fragment: Fragment,
        turn: &mut Turn<'_>,
    ) -> Option<Arrival> {
        let v6 = packet.source.is_ipv6();
        let reassembly = self.reassembly.get_or_insert_default();
        let key = (packet.source, packet.destination, packet.protocol, fragment.identification);
        let lifetime = if v6 { LIFETIME_V6 } else { LIFETIME_V4 };
        let until = turn.now + lifetime;
        let partial = reassembly.partial.entry(key).or_insert_with(|| Partial {
            until,
            pieces: BTreeMap::new(),
            whole: None,
            first: None,
            bytes: 0,
        });
        let stored = frame.bytes.get(packet.l4..packet.end).unwrap_or_default().to_vec();
        let elided = packet.length.saturating_sub(stored.len()) as u32;
        let before = partial.bytes;
        let sound = partial.add(fragment, Piece { stored, elided });
        if fragment.offset == 0 && partial.first.is_none() {
            partial.first = Some((frame.bytes[..fragment.header_end].to_vec(), packet, fragment));
        }
        turn.pool.recycle(frame);
        reassembly.bytes += partial.bytes - before;
        if !sound {
            reassembly.remove(&key);
            self.counters.fragments_dropped += 1;
            return None;
        }
        if partial.is_whole() {
            let whole = reassembly.remove(&key)?;
            self.counters.reassembled += 1;
            let (frame, packet) = join(whole)?;
            return self.deliver(frame, &packet, turn);
        }
        while reassembly.bytes > MOST_BYTES {
            let oldest = reassembly.partial.iter().min_by_key(|(_, partial)| partial.until).map(|(key, _)| *key);
            if oldest.and_then(|oldest| reassembly.remove(&oldest)).is_none() {
                break;
            }
            self.counters.fragments_dropped += 1;
        }
        reassembly.alarm.set(Some(until), Owner::Reassembly, &mut self.timers);
        None
    }

    /// The timer of fragments: gives up on packets whose rest has not come.
    pub(super) fn serve_reassembly(&mut self, rung: Time, turn: &mut Turn<'_>) {
        let Some(mut reassembly) = self.reassembly.take() else { return };
        reassembly.alarm.rings(rung);
        let late: Vec<Key> =
            reassembly.partial.iter().filter(|(_, partial)| partial.until <= turn.now).map(|(key, _)| *key).collect();
        for key in late {
            self.counters.fragments_dropped += 1;
            // Only whoever has the first fragment can say what it was about (RFC 792; RFC 8200, 4.5).
            if let Some((bytes, packet, _)) = reassembly.remove(&key).and_then(|partial| partial.first) {
                let mut about = turn.pool.take();
                about.bytes.extend_from_slice(&bytes);
                let packet = Packet { end: bytes.len(), length: 0, ..packet };
                self.reassembly_timed_out(about, &packet, turn);
            }
        }
        reassembly.alarm.set(reassembly.deadline(), Owner::Reassembly, &mut self.timers);
        self.reassembly = Some(reassembly);
    }
}

/// The whole packet of its pieces.
fn join(partial: Partial) -> Option<(Box<Frame>, Packet)> {
    let length = partial.whole?;
    let (mut bytes, packet, fragment) = partial.first?;
    let l4 = bytes.len();
    let mut elided = 0_usize;
    for piece in partial.pieces.into_values() {
        if !piece.stored.is_empty() {
            // What was elided before these bytes is zeros.
            bytes.resize(bytes.len() + std::mem::take(&mut elided), 0);
            bytes.extend_from_slice(&piece.stored);
        }
        elided += piece.elided as usize;
    }
    // The header tells of the whole from now on, so that an error about it quotes a packet and no fragment.
    if let Some(ip) = fragment.fragment_header.is_none().then(|| bytes.get_mut(L3..l4)).flatten() {
        let total = u16::try_from(length as usize + l4 - L3).unwrap_or(u16::MAX);
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        ip[6..8].fill(0);
        ip[10..12].fill(0);
        let sum = checksum::checksum(ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    let packet = Packet { l4, end: bytes.len(), length: length as usize, ..packet };
    let frame = Frame { bytes, elided: elided as u32, ..Frame::default() };
    Some((Box::new(frame), packet))
}

/// Payload of `frame` after `header` bytes, `from..to`, as the bytes that are stored and the number of those that
/// are not.
fn slice(frame: &Frame, header: usize, from: usize, to: usize) -> (&[u8], u32) {
    let stored = frame.bytes.get(header..).unwrap_or_default();
    let (first, last) = (from.min(stored.len()), to.min(stored.len()));
    (&stored[first..last], ((to - from) - (last - first)) as u32)
}

/// Cuts an IPv4 packet into pieces of at most `mtu` bytes, which may themselves be fragments of a longer one. None
/// when the MTU has no room for eight bytes of payload.
pub(super) fn cut_v4(frame: &Frame, mtu: u32) -> Vec<Frame> {
    let Some(&first) = frame.bytes.get(L3) else { return Vec::new() };
    let header = L3 + usize::from(first & 0x0f) * 4;
    let room = (mtu as usize + L3).saturating_sub(header) / 8 * 8;
    if room == 0 || frame.bytes.len() < header.max(V4_HEADERS) {
        return Vec::new();
    }
    let place = u16::from_be_bytes([frame.bytes[L3 + 6], frame.bytes[L3 + 7]]);
    let (flags, offset) = (place & 0xe000, usize::from(place & 0x1fff));
    let total = usize::from(u16::from_be_bytes([frame.bytes[L3 + 2], frame.bytes[L3 + 3]]));
    let payload = (total + L3).saturating_sub(header);
    let mut pieces = Vec::with_capacity(payload.div_ceil(room));
    let mut from = 0;
    while from < payload {
        let to = (from + room).min(payload);
        let (stored, elided) = slice(frame, header, from, to);
        let mut piece = Frame { bytes: frame.bytes[..header].to_vec(), elided, ..Frame::default() };
        piece.bytes.extend_from_slice(stored);
        let ip = &mut piece.bytes[L3..header];
        let more = if to < payload { 0x2000 } else { 0 };
        let place = flags | more | (offset + from / 8) as u16 & 0x1fff;
        ip[2..4].copy_from_slice(&((header - L3 + to - from) as u16).to_be_bytes());
        ip[6..8].copy_from_slice(&place.to_be_bytes());
        ip[10..12].fill(0);
        let sum = checksum::checksum(ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        pieces.push(piece);
        from = to;
    }
    pieces
}

/// Cuts an IPv6 packet without extension headers into pieces of at most `mtu` bytes.
pub(super) fn cut_v6(frame: &Frame, mtu: u32, identification: u32) -> Vec<Frame> {
    /// Next header: fragment header.
    const FRAGMENT: u8 = 44;
    let room = (mtu as usize).saturating_sub(V6_HEADERS - L3 + 8) / 8 * 8;
    if room == 0 || frame.bytes.len() < V6_HEADERS {
        return Vec::new();
    }
    let payload = (frame.length() as usize).saturating_sub(V6_HEADERS);
    let mut pieces = Vec::with_capacity(payload.div_ceil(room));
    let mut from = 0;
    while from < payload {
        let to = (from + room).min(payload);
        let (stored, elided) = slice(frame, V6_HEADERS, from, to);
        let mut piece = Frame { bytes: frame.bytes[..V6_HEADERS].to_vec(), elided, ..Frame::default() };
        let protocol = std::mem::replace(&mut piece.bytes[L3 + 6], FRAGMENT);
        piece.bytes[L3 + 4..L3 + 6].copy_from_slice(&((8 + to - from) as u16).to_be_bytes());
        let place = (from as u16 & 0xfff8) | u16::from(to < payload);
        piece.bytes.extend_from_slice(&[protocol, 0]);
        piece.bytes.extend_from_slice(&place.to_be_bytes());
        piece.bytes.extend_from_slice(&identification.to_be_bytes());
        piece.bytes.extend_from_slice(stored);
        pieces.push(piece);
        from = to;
    }
    pieces
}
