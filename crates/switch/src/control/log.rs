//! What was said on a connection: how many messages of each type, and the newest ones.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use twinnet_openflow::{v10, v13};
use twinnet_units::Time;

/// Messages of a connection that are kept.
const KEPT: usize = 32;

/// What was said on a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Messages {
    /// How many messages came, by type: the name in the specification without `OFPT_`.
    pub received: BTreeMap<String, u64>,
    /// How many were sent, by type.
    pub sent: BTreeMap<String, u64>,
    /// The newest ones, the oldest of them first; 32 at most.
    pub newest: Vec<Message>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Message {
    /// When it came or was sent.
    pub at_ps: Time,
    /// `true`: the switch sent it.
    pub sent: bool,
    /// Its type.
    pub r#type: String,
    /// Its transaction.
    pub xid: u32,
    /// Its length with the header.
    pub bytes: u16,
}

/// The header of a message, when it passed, and its direction.
#[derive(Clone, Copy, Debug)]
struct Said {
    at: Time,
    sent: bool,
    version: u8,
    kind: u8,
    bytes: u16,
    xid: u32,
}

/// What is kept of what was said.
#[derive(Debug, Default)]
pub(super) struct Log {
    newest: VecDeque<Said>,
    /// By direction, version and type.
    counts: BTreeMap<(bool, u8, u8), u64>,
}

impl Log {
    /// Notes whole messages that came, or were sent, at a time.
    pub(super) fn note(&mut self, at: Time, sent: bool, mut messages: &[u8]) {
        while let Some(([version, kind, high, low, xid @ ..], _)) = messages.split_first_chunk::<8>() {
            let bytes = u16::from_be_bytes([*high, *low]);
            *self.counts.entry((sent, *version, *kind)).or_default() += 1;
            if self.newest.len() == KEPT {
                self.newest.pop_front();
            }
            let (version, kind, xid) = (*version, *kind, u32::from_be_bytes(*xid));
            self.newest.push_back(Said { at, sent, version, kind, bytes, xid });
            messages = messages.get(usize::from(bytes).max(8)..).unwrap_or_default();
        }
    }

    pub(super) fn told(&self) -> Messages {
        let mut told = Messages::default();
        for (&(sent, version, kind), count) in &self.counts {
            let by_type = if sent { &mut told.sent } else { &mut told.received };
            // A hello may have been of another version.
            *by_type.entry(name(version, kind)).or_default() += count;
        }
        let message = |one: &Said| Message {
            at_ps: one.at,
            sent: one.sent,
            r#type: name(one.version, one.kind),
            xid: one.xid,
            bytes: one.bytes,
        };
        told.newest = self.newest.iter().map(message).collect();
        told
    }
}

/// A type by its name in the specification of a wire version.
fn name(version: u8, kind: u8) -> String {
    let known = if version == v10::VERSION { v10::Message::name_of(kind) } else { v13::Message::name_of(kind) };
    let Some(known) = known else { return format!("type {kind}") };
    let mut name = String::with_capacity(2 * known.len());
    for letter in known.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_type_and_the_newest_are_kept() {
        let mut log = Log::default();
        let mut out = Vec::new();
        for xid in 0..40 {
            v13::Message::BarrierRequest.encode(xid, &mut out).unwrap();
        }
        log.note(Time::from_ns(1), false, &out);
        out.clear();
        v10::Message::EchoReply(vec![1, 2, 3]).encode(7, &mut out).unwrap();
        v13::Message::GetConfigRequest.encode(8, &mut out).unwrap();
        log.note(Time::from_ns(2), true, &out);
        // Of a type that there is not, and one whose length is none.
        log.note(Time::from_ns(3), false, &[4, 99, 0, 8, 0, 0, 0, 9]);
        log.note(Time::from_ns(3), false, &[4, 0, 0, 0, 0, 0, 0, 9]);
        let told = log.told();
        let counts = |of: &BTreeMap<String, u64>| of.iter().map(|(name, n)| (name.clone(), *n)).collect::<Vec<_>>();
        let expected = [("BARRIER_REQUEST", 40), ("HELLO", 1), ("type 99", 1)].map(|(name, n)| (name.to_owned(), n));
        assert_eq!(counts(&told.received), expected);
        let expected = [("ECHO_REPLY", 1), ("GET_CONFIG_REQUEST", 1)].map(|(name, n)| (name.to_owned(), n));
        assert_eq!(counts(&told.sent), expected);
        assert_eq!(told.newest.len(), KEPT);
        let [first, .., echo, config, _, last] = &told.newest[..] else { panic!() };
        assert_eq!((first.xid, first.sent, first.bytes), (12, false, 8));
        assert_eq!((echo.r#type.as_str(), echo.xid, echo.bytes, echo.sent), ("ECHO_REPLY", 7, 11, true));
        assert_eq!((config.xid, config.at_ps), (8, Time::from_ns(2)));
        assert_eq!((last.r#type.as_str(), last.xid), ("HELLO", 9));
    }
}
