//! Frames on their way between the loops of two parts: bounded queues, and bells for loops that sleep.
//!
//! A frame is given away when its first bit is on the wire, with the moment of its arrival, so the other loop has it
//! before it is due where the link has a delay or the frame takes its time. That loop is woken only when it would sleep
//! past that moment. Neither ever waits for the other: what a stopped loop does not take stays in its queue, and beyond
//! the queue's bound is lost and counted.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use twinnet_fabric::{Fabric, PortId};
use twinnet_packet::Frame;
use twinnet_units::{Duration, Time};

use crate::wall::fidelity::{HandOvers, Histogram};

/// Frames, or trains of them, that may wait in one queue, and their bytes.
const MOST_WAITING: usize = 1 << 16;
const MOST_WAITING_BYTES: u64 = 64 << 20;
/// A loop that wakes so long before a frame is due need not be woken for it: the longest time that it spins before an
/// event.
const WAKES_BEFORE: Duration = Duration::from_us(300);
/// The longest sleep of a loop that has not been able to hand over everything.
const RETRY: Duration = Duration::from_us(50);

/// A frame that is on its way to another part.
struct Message {
    /// The port that it left.
    port: PortId,
    /// The time when it arrives at the far end of that port's line.
    arrival: Time,
    frame: Box<Frame>,
}

/// The messages that wait for a loop, from one other.
#[derive(Default)]
struct Channel {
    queue: Mutex<Waiting>,
    /// Messages in the queue.
    count: AtomicUsize,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Message>,
    bytes: u64,
}

/// Wakes a loop that sleeps.
struct Bell {
    /// Until when the loop sleeps, in picoseconds of the lab's clock; 0: it does not.
    asleep_until_ps: AtomicU64,
    descriptor: OwnedFd,
}

impl Bell {
    /// Has the loop look before `due`; returns whether it had to be woken.
    fn ring_for(&self, due: Time) -> bool {
        let until = self.asleep_until_ps.load(Ordering::SeqCst);
        if until == 0 || due.as_ps() >= until.saturating_add(WAKES_BEFORE.as_ps()) {
            return false;
        }
        if self.asleep_until_ps.swap(0, Ordering::SeqCst) == 0 {
            return false;
        }
        let one = 1_u64;
        // SAFETY: writes eight readable bytes to an event descriptor; it can only fail when the counter is full, which
        // wakes too.
        unsafe { libc::write(self.descriptor.as_raw_fd(), (&raw const one).cast(), 8) };
        true
    }
}

/// The way to one other part.
struct Outgoing {
    channel: Arc<Channel>,
    bell: Arc<Bell>,
    /// The messages that were given away and are not in the queue yet.
    pending: VecDeque<Message>,
}

/// The messages that crossed between parts since the record began, as one of the parts counted them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CrossingRecord {
    /// Messages to others: a frame, or a train of them, each.
    pub(crate) sent: u64,
    /// Messages from others.
    pub(crate) taken: u64,
    /// Frames that a full queue had no room for.
    pub(crate) dropped: u64,
    /// Times that another loop had to be woken.
    pub(crate) rung: u64,
    /// By how much what came was too late to be on time; 0 where it was not.
    pub(crate) lateness: Histogram,
    /// Messages that came after they were due.
    pub(crate) late: u64,
    /// Events that the fabric had handled when the record began.
    pub(crate) events_before: u64,
}

/// The ways between one part and the others. A network in one part has none.
#[derive(Default)]
pub(crate) struct Crossings {
    outgoing: Vec<Outgoing>,
    /// By port that leads away the place in `outgoing`.
    way: Vec<Option<usize>>,
    incoming: Vec<Arc<Channel>>,
    bell: Option<Arc<Bell>>,
    taken: VecDeque<Message>,
    pub(crate) record: CrossingRecord,
}

impl Crossings {
    /// Returns `true` if no line leads to or from another part.
    pub(crate) fn is_empty(&self) -> bool {
        self.incoming.is_empty() && self.outgoing.is_empty()
    }

    /// The ways between parts: `lines` has for each part the ports whose lines lead away, with the parts that they lead
    /// to, and `wakes` what wakes its loop.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub(crate) fn between(lines: &[Vec<(PortId, usize)>], wakes: &[OwnedFd]) -> io::Result<Vec<Self>> {
        let bells = wakes
            .iter()
            .map(|wake| Ok(Arc::new(Bell { asleep_until_ps: AtomicU64::new(0), descriptor: wake.try_clone()? })));
        let bells = bells.collect::<io::Result<Vec<_>>>()?;
        let mut all: Vec<Self> =
            bells.iter().map(|bell| Self { bell: Some(Arc::clone(bell)), ..Self::default() }).collect();
        for (from, lines) in lines.iter().enumerate() {
            let mut places: Vec<Option<usize>> = vec![None; bells.len()];
            for (port, to) in lines {
                let place = if let Some(place) = places[*to] {
                    place
                } else {
                    let channel = Arc::new(Channel::default());
                    all[*to].incoming.push(Arc::clone(&channel));
                    let bell = Arc::clone(&bells[*to]);
                    all[from].outgoing.push(Outgoing { channel, bell, pending: VecDeque::new() });
                    *places[*to].insert(all[from].outgoing.len() - 1)
                };
                let way = &mut all[from].way;
                let port = port.0 as usize;
                if way.len() <= port {
                    way.resize(port + 1, None);
                }
                way[port] = Some(place);
            }
        }
        Ok(all)
    }

    /// Gives away `frame`, which left `port`; [`Crossings::flush`] hands it over.
    pub(crate) fn give(&mut self, port: PortId, frame: Box<Frame>, arrival: Time) {
        let Some(place) = self.way.get(port.0 as usize).copied().flatten() else { return };
        self.record.sent += 1;
        self.outgoing[place].pending.push_back(Message { port, arrival, frame });
    }

    /// Hands over what was given away, and wakes those who would sleep too long. A queue that its loop has at this very
    /// moment is left for the next time.
    pub(crate) fn flush(&mut self) {
        for way in &mut self.outgoing {
            let Some(earliest) = way.pending.iter().map(|message| message.arrival).min() else { continue };
            let mut queue = match way.channel.queue.try_lock() {
                Ok(queue) => queue,
                // What the lock guards is whole between any two statements.
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if way.pending.len() < MOST_WAITING => continue,
                Err(TryLockError::WouldBlock) => {
                    self.record.dropped += way.pending.drain(..).map(|message| message.frame.lose()).sum::<u64>();
                    continue;
                }
            };
            for message in way.pending.drain(..) {
                let length = message.frame.length();
                if queue.messages.len() >= MOST_WAITING || queue.bytes + length > MOST_WAITING_BYTES {
                    self.record.dropped += message.frame.lose();
                    continue;
                }
                queue.bytes += length;
                queue.messages.push_back(message);
            }
            way.channel.count.store(queue.messages.len(), Ordering::SeqCst);
            drop(queue);
            self.record.rung += u64::from(way.bell.ring_for(earliest));
        }
    }

    /// Has `fabric` take what came from others, and `hand_overs` how late that was on each line; returns how many
    /// messages those were.
    pub(crate) fn take(&mut self, fabric: &mut Fabric, hand_overs: &mut HandOvers) -> u64 {
        for channel in &self.incoming {
            if channel.count.load(Ordering::SeqCst) == 0 {
                continue;
            }
            let mut queue = match channel.queue.try_lock() {
                Ok(queue) => queue,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            if self.taken.is_empty() {
                std::mem::swap(&mut self.taken, &mut queue.messages);
            } else {
                self.taken.append(&mut queue.messages);
            }
            queue.bytes = 0;
            channel.count.store(0, Ordering::SeqCst);
        }
        let count = self.taken.len() as u64;
        for Message { port, arrival, frame } in self.taken.drain(..) {
            let late = fabric.take_crossing(port, frame, arrival);
            if let Some(far) = fabric.far_end(port) {
                hand_overs.came_over(far, late);
            }
            self.record.lateness.record(late.as_ns(), 1);
            self.record.late += u64::from(late > Duration::ZERO);
        }
        self.record.taken += count;
        count
    }

    /// Returns how long the loop may sleep that would sleep for `wait` from `now` on. Others wake it from then on,
    /// until it is [`awake`](Self::awake).
    pub(crate) fn before_sleep(&mut self, wait: Duration, now: Time) -> Duration {
        // Controllers may have sent something since the last turn.
        self.flush();
        let Some(bell) = self.bell.as_ref().filter(|_| wait > Duration::ZERO) else { return wait };
        let unsent = self.outgoing.iter().any(|way| !way.pending.is_empty());
        let wait = if unsent { wait.min(RETRY) } else { wait };
        bell.asleep_until_ps.store((now + wait).as_ps().max(1), Ordering::SeqCst);
        // Whoever came between the last look and this word has seen no sleeper.
        if self.incoming.iter().any(|channel| channel.count.load(Ordering::SeqCst) > 0) {
            self.awake();
            return Duration::ZERO;
        }
        wait
    }

    /// The loop does not sleep any more.
    pub(crate) fn awake(&self) {
        if let Some(bell) = &self.bell {
            bell.asleep_until_ps.store(0, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;

    fn descriptor() -> OwnedFd {
        // SAFETY: no pointers are passed; the result is checked, and belongs to nobody else.
        unsafe {
            let descriptor = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            assert!(descriptor >= 0);
            OwnedFd::from_raw_fd(descriptor)
        }
    }

    /// Two parts, with a line from port 0 of the first to the second, and what rings the second's bell.
    fn two() -> (Crossings, Crossings, OwnedFd) {
        let wakes = [descriptor(), descriptor()];
        let mut both = Crossings::between(&[vec![(PortId(0), 1)], vec![]], &wakes).unwrap();
        let second = both.pop().unwrap();
        let [_, bell] = wakes;
        (both.pop().unwrap(), second, bell)
    }

    fn rung(bell: &OwnedFd) -> bool {
        let mut count = 0_u64;
        // SAFETY: reads eight bytes into a writable integer.
        unsafe { libc::read(bell.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_us(us)
    }

    fn give(from: &mut Crossings, arrival: Time) {
        from.give(PortId(0), Box::new(Frame::new(vec![0; 60])), arrival);
        from.flush();
    }

    #[test]
    fn a_loop_is_woken_only_when_it_would_sleep_past_what_is_due() {
        let (mut first, mut second, bell) = two();
        give(&mut first, at(10));
        assert!(!rung(&bell), "nobody sleeps");
        let mut fabric = Fabric::new(1);
        assert_eq!(second.take(&mut fabric, &mut HandOvers::default()), 1);
        assert_eq!(second.before_sleep(Duration::from_ms(1), at(0)), Duration::from_ms(1));
        give(&mut first, at(1000) + WAKES_BEFORE);
        assert!(!rung(&bell), "it wakes by itself in time");
        give(&mut first, at(999));
        assert!(rung(&bell));
        give(&mut first, at(5));
        assert!(!rung(&bell), "it is woken once");
        assert_eq!((first.record.sent, first.record.rung), (4, 1));
    }

    #[test]
    fn a_loop_that_something_waits_for_does_not_sleep() {
        let (mut first, mut second, _bell) = two();
        give(&mut first, at(10_000));
        assert_eq!(second.before_sleep(Duration::from_secs(1), at(0)), Duration::ZERO);
    }

    #[test]
    fn a_loop_that_takes_nothing_costs_others_no_wait_and_no_memory() {
        let (mut first, mut second, _bell) = two();
        for _ in 0..MOST_WAITING + 5 {
            give(&mut first, at(1));
        }
        assert_eq!(first.record.dropped, 5);
        // Also while it holds the lock, as one that was stopped in the middle of a look does.
        let channel = Arc::clone(&second.incoming[0]);
        let held = channel.queue.lock().unwrap();
        give(&mut first, at(1));
        assert_eq!(first.before_sleep(Duration::from_secs(1), at(0)), RETRY);
        drop(held);
        let take = |second: &mut Crossings| second.take(&mut Fabric::new(1), &mut HandOvers::default());
        assert_eq!(take(&mut second), MOST_WAITING as u64);
        first.flush();
        assert_eq!(take(&mut second), 1);
        assert_eq!((first.record.dropped, first.record.sent), (5, MOST_WAITING as u64 + 6));
    }
}
