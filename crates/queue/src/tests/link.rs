//! A link of a given rate behind a discipline, cranked by hand. It checks, at every step, that `next_ready` is honest.

use std::collections::BTreeMap;

use twinnet_packet::{checksum, Checksum, Frame, Offload, Segmentation};
use twinnet_units::{Duration, Rate, Time};

use super::super::{Backlog, DropReason, DropSink, QueueConfig, QueueDiscipline};

/// A frame that has begun to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub at: Time,
    pub queue: u32,
    pub frames: u64,
    pub bytes: u64,
    pub mark: u32,
}

#[derive(Default)]
pub struct Dropped {
    pub total: Backlog,
    pub marks: Vec<u32>,
    pub reasons: Vec<DropReason>,
    pub marked: u64,
}

impl DropSink for Dropped {
    fn dropped(&mut self, frame: Box<Frame>, reason: DropReason) {
        self.total.frames += frame.frames();
        self.total.bytes += frame.link_bytes();
        self.marks.push(mark_of(&frame));
        self.reasons.push(reason);
    }

    fn marked(&mut self, frame: &Frame) {
        self.marked += frame.frames();
    }
}

pub struct Link {
    pub queue: Box<dyn QueueDiscipline>,
    pub now: Time,
    pub sent: Vec<Sent>,
    pub dropped: Dropped,
    pub offered: Backlog,
    rate: Option<Rate>,
    busy_until: Time,
}

/// A frame of `bytes` for `queue`, with a number to know it by.
pub fn frame(queue: u32, bytes: u32, mark: u32) -> Box<Frame> {
    let mut frame = Frame::new(vec![0; 14]);
    frame.bytes[..4].copy_from_slice(&mark.to_be_bytes());
    frame.elided = bytes - 14;
    frame.queue = queue;
    Box::new(frame)
}

/// Ethernet, IPv4 and TCP headers.
const TCP_HEADERS: [u8; 54] = [
    0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet
    0x45, 0, 0, 0, 0, 0, 0x40, 0, 0x40, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 4, // IPv4
    0x9c, 0x40, 0x13, 0x8a, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0x20, 0, 0, 0, 0, 0, // TCP
];

/// A train of `frames` frames of 1514 bytes.
pub fn train(queue: u32, frames: u32, mark: u32) -> Box<Frame> {
    let mut train = Frame::new(TCP_HEADERS.to_vec());
    train.bytes[..4].copy_from_slice(&mark.to_be_bytes());
    train.elided = 1460 * frames;
    train.offload = Some(Offload { kind: Segmentation::Tcp4, segment: 1460, header: 54, ecn: false });
    train.checksum = Checksum::Partial { start: 34, offset: 16 };
    train.queue = queue;
    Box::new(train)
}

/// A UDP datagram over IPv4 of the flow number `flow`, which is its queue number too; its sender understands marks
/// when `ecn` is 1 or 2.
pub fn packet(flow: u32, bytes: u32, mark: u32, ecn: u8) -> Box<Frame> {
    let [_, _, high, low] = flow.to_be_bytes();
    let mut headers = [
        0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet
        0x45, ecn, 0, 0, 0, 0, 0x40, 0, 0x40, 17, 0, 0, 10, 0, high, low, 10, 1, 0, 4, // IPv4
        0x9c, 0x40, 0x13, 0x8a, 0, 0, 0, 0, // UDP
    ];
    let sum = checksum::checksum(&headers[14..34]).to_be_bytes();
    headers[24..26].copy_from_slice(&sum);
    let mut frame = Frame::new(headers.to_vec());
    frame.bytes[..4].copy_from_slice(&mark.to_be_bytes());
    frame.elided = bytes - 42;
    frame.queue = flow;
    Box::new(frame)
}

pub fn mark_of(frame: &Frame) -> u32 {
    frame.bytes.iter().take(4).fold(0, |mark, byte| mark << 8 | u32::from(*byte))
}

pub fn build(json: &str) -> Box<dyn QueueDiscipline> {
    serde_json::from_str::<QueueConfig>(json).unwrap().build().unwrap()
}

impl Link {
    /// `rate_bps` is the line rate, counted at the link layer; `None` is an instant line.
    pub fn new(queue: Box<dyn QueueDiscipline>, rate_bps: Option<u64>) -> Self {
        Self {
            queue,
            now: Time::ZERO,
            sent: Vec::new(),
            dropped: Dropped::default(),
            offered: Backlog::default(),
            rate: rate_bps.and_then(Rate::from_bps),
            busy_until: Time::ZERO,
        }
    }

    pub fn offer(&mut self, frame: Box<Frame>) {
        self.offered.frames += frame.frames();
        self.offered.bytes += frame.link_bytes();
        self.queue.enqueue(frame, self.now, &mut self.dropped);
    }

    /// Frames marked so far.
    pub fn marked(&self) -> u64 {
        self.dropped.marked
    }

    /// Sends what may be sent at this moment, until the line is busy or nothing is ready.
    pub fn send_now(&mut self) -> Option<Sent> {
        if self.busy_until > self.now {
            return None;
        }
        let frame = self.queue.dequeue(self.now, &mut self.dropped)?;
        let bytes = frame.link_bytes();
        let sent = Sent { at: self.now, queue: frame.queue, frames: frame.frames(), bytes, mark: mark_of(&frame) };
        self.sent.push(sent);
        self.busy_until = self.now + self.rate.map_or(Duration::ZERO, |rate| rate.serialise(bytes));
        Some(sent)
    }

    /// Lets time pass until `end`, sending whatever may be sent.
    pub fn run_until(&mut self, end: Time) {
        loop {
            while self.send_now().is_some() {}
            let Some(next) = self.next_step() else { break };
            if next > end {
                break;
            }
            let promised = next > self.busy_until;
            self.now = next;
            if promised {
                assert!(self.send_now().is_some(), "next_ready promised a frame at {next:?}");
            }
        }
        self.now = self.now.max(end);
    }

    /// Returns the time when the line is idle again, or else when the discipline says that it has something.
    fn next_step(&self) -> Option<Time> {
        if self.busy_until > self.now {
            return Some(self.busy_until);
        }
        let ready = self.queue.next_ready(self.now);
        match ready {
            Some(ready) => assert!(ready > self.now, "dequeue gave nothing and next_ready says now"),
            None => assert_eq!(self.queue.backlog(), Backlog::default(), "something waits and next_ready is None"),
        }
        ready
    }

    /// Keeps a few frames waiting for each of `sources` (queue, frame bytes) and sends until `end`.
    pub fn run_greedy(&mut self, sources: &[(u32, u32)], end: Time) {
        self.run_greedy_with(|queue, bytes| frame(queue, bytes, 0), sources, end);
    }

    /// The same with frames that `make` makes of queue and bytes.
    pub fn run_greedy_with(&mut self, mut make: impl FnMut(u32, u32) -> Box<Frame>, sources: &[(u32, u32)], end: Time) {
        let mut waiting: BTreeMap<u32, u64> = sources.iter().map(|(queue, _)| (*queue, 0)).collect();
        while self.now < end {
            for &(queue, bytes) in sources {
                while waiting[&queue] < 4 {
                    self.offer(make(queue, bytes));
                    *waiting.get_mut(&queue).unwrap() += 1;
                }
            }
            if let Some(sent) = self.send_now() {
                if let Some(waiting) = waiting.get_mut(&sent.queue) {
                    *waiting -= 1;
                }
                continue;
            }
            match self.next_step() {
                Some(next) => self.now = next,
                None => break,
            }
        }
    }

    /// Bits sent for `queue` per second, from `begin` until now.
    pub fn rate_of(&self, queue: u32, begin: Time) -> f64 {
        let bytes: u64 = self.sent.iter().filter(|sent| sent.queue == queue && sent.at >= begin).map(|s| s.bytes).sum();
        bytes as f64 * 8.0 / (self.now - begin).as_secs_f64()
    }

    pub fn sent_total(&self) -> Backlog {
        self.sent.iter().map(|sent| Backlog { frames: sent.frames, bytes: sent.bytes }).sum()
    }
}
