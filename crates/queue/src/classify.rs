//! Classes chosen by the bytes of a frame's network header, as by the kernel's `u32` filter (Linux
//! `net/sched/cls_u32.c`): it gives frames the queue number by which the discipline inside chooses its class.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_packet::Frame;
use twinnet_units::Time;

use super::config::Site;
use super::ecn::network_header;
use super::ranges::{check_at_most, check_range, QueueError};
use super::{Backlog, ClassRates, DropSink, QueueConfig, QueueDiscipline};

const MOST_RULES: usize = 1024;
const MOST_MATCHES: usize = 16;
/// Matches look at whole words of 32 bits within the first 256 bytes.
const LAST_WORD: u64 = 252;
/// The lowest `EtherType` (IEEE 802.3, 3.2.6).
const LEAST_ETHER_TYPE: u64 = 1536;

/// `{"kind": "classify", ...}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassifyConfig {
    /// The first rule that matches a frame gives it its number.
    pub rules: Vec<ClassifyRule>,
    /// The number of a frame that no rule matches; null keeps the number that a switch has given it.
    #[serde(default)]
    pub otherwise: Option<u32>,
    /// The discipline whose classes are chosen.
    pub queue: Box<QueueConfig>,
}

/// What frames get a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassifyRule {
    /// The queue number, by which the discipline inside chooses its class.
    pub number: u32,
    /// `EtherType` behind VLAN tags: 0x0800 is IPv4. Null: any.
    #[serde(default)]
    #[schemars(range(min = LEAST_ETHER_TYPE))]
    pub ether_type: Option<u16>,
    /// All of these must hold.
    #[serde(default)]
    pub header: Vec<HeaderMatch>,
}

/// One word of the header: `value` where `mask` has bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderMatch {
    /// Where the word of 32 bits begins, in bytes from the begin of the network header.
    #[schemars(range(max = LAST_WORD))]
    pub at: u32,
    /// The bits that count.
    pub mask: u32,
    /// What they are.
    pub value: u32,
}

impl HeaderMatch {
    /// A word that the frame does not have, or has not kept, does not match.
    fn holds(self, header: &[u8]) -> bool {
        let at = self.at as usize;
        matches!(header.get(at..at + 4), Some(&[a, b, c, d])
            if (u32::from_be_bytes([a, b, c, d]) ^ self.value) & self.mask == 0)
    }
}

impl ClassifyRule {
    fn holds(&self, frame: &Frame) -> bool {
        let Some((at, kind)) = network_header(&frame.bytes) else { return false };
        self.ether_type.is_none_or(|wanted| wanted == kind)
            && self.header.iter().all(|one| one.holds(frame.bytes.get(at..).unwrap_or_default()))
    }
}

impl ClassifyConfig {
    pub(super) fn build_at(
        &self,
        path: &str,
        depth: usize,
        site: Site<'_>,
    ) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        check_at_most(&format!("{path}.rules"), self.rules.len(), MOST_RULES)?;
        for (index, rule) in self.rules.iter().enumerate() {
            let path = format!("{path}.rules.{index}");
            if let Some(kind) = rule.ether_type {
                check_range(&format!("{path}.ether_type"), u64::from(kind), LEAST_ETHER_TYPE, u64::from(u16::MAX))?;
            }
            check_at_most(&format!("{path}.header"), rule.header.len(), MOST_MATCHES)?;
            for (index, one) in rule.header.iter().enumerate() {
                check_range(&format!("{path}.header.{index}.at"), u64::from(one.at), 0, LAST_WORD)?;
            }
        }
        let inside = self.queue.build_at(&format!("{path}.queue"), depth + 1, site)?;
        Ok(Box::new(Classify { rules: self.rules.clone(), otherwise: self.otherwise, inside }))
    }
}

/// The discipline. All frames of a train have one header, and so one class.
pub struct Classify {
    rules: Vec<ClassifyRule>,
    otherwise: Option<u32>,
    inside: Box<dyn QueueDiscipline>,
}

impl QueueDiscipline for Classify {
    fn enqueue(&mut self, mut frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        let chosen = self.rules.iter().find(|rule| rule.holds(&frame)).map(|rule| rule.number);
        frame.queue = chosen.or(self.otherwise).unwrap_or(frame.queue);
        self.inside.enqueue(frame, now, drops);
    }

    fn dequeue(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        self.inside.dequeue(now, drops)
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.inside.next_ready(now)
    }

    fn backlog(&self) -> Backlog {
        self.inside.backlog()
    }

    fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    fn rests_while_empty(&self) -> bool {
        self.inside.rests_while_empty()
    }

    fn hold(&mut self, held: Backlog) {
        self.inside.hold(held);
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        self.inside.drain()
    }

    fn class_counters(&self) -> Value {
        self.inside.class_counters()
    }

    fn class_rates(&self) -> Vec<ClassRates> {
        self.inside.class_rates()
    }
}
