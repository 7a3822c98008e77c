//! Frames handed to hosts by a second thread while the loop has too much to do.
//!
//! Writing a frame to a host's interface runs the host's whole network stack: its TCP takes the segment, acknowledges
//! it, wakes a program. Under load that is half of what a frame costs the loop. While the loop works for more than
//! half of its time, and the machine has another processor, this thread writes in its place; the loop goes on with
//! the schedule. Otherwise the loop writes itself, which is sooner by a wake-up. Each host's frames keep their order:
//! the loop writes again only when this thread has nothing left.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use twinnet_fabric::PortId;
use twinnet_packet::{Coalesced, Frame};
use twinnet_units::{Duration, Time};

use crate::kernel::device::Writer;
use crate::wall::clock::LabClock;
use crate::wall::fidelity::HandOvers;
use crate::wall::scheduling::{become_realtime, Breaks};

/// Name of the thread, by which an owner finds it.
pub(crate) const THREAD_NAME: &str = "delivery";

/// The share of the time that hand-overs must take for giving them away, and half of it for going on so. Those of a
/// fast line of datagrams take less: then the thread would save the loop little, and take a part of its processor from
/// the hosts' programs, for it looks for more before it sleeps.
const WORTH: f64 = 0.4;
/// Of so many hand-overs by the loop one is timed.
const TIMED: u64 = 16;
/// Shares of its time above which the loop gives hand-overs away, and below which it takes them back: less than half
/// of the first, because giving them away halves what it has to do.
const SHARES: (f64, f64) = (0.5, 0.2);
/// The time that the thread looks for more before it sleeps: a wake-up costs the loop some microseconds.
const PATIENCE: Duration = Duration::from_us(30);
/// The interval at which that is decided.
const PERIOD: Duration = Duration::from_ms(20);
/// Frames that the loop gives away at once.
const BATCH: usize = 8;
/// Frames that wait for the thread at most, but for those of hosts of which some wait already: the loop writes others
/// itself, so that both share the work by what each can do.
const ENOUGH: usize = 128;
/// Frames kept to be used again.
const KEPT: usize = 1024;

/// A frame to be handed over.
struct Job {
    port: PortId,
    due: Time,
    /// `None` once it was handed over with another.
    frame: Option<Box<Frame>>,
}

/// The state that loop and thread share.
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    /// Frames that were given away and are not written yet: all, and by the port of the host.
    outstanding: AtomicUsize,
    of_port: Vec<AtomicUsize>,
    /// The time that the thread has taken to hand over, in nanoseconds.
    busy_ns: AtomicU64,
    /// The frames that the thread handed over since the record began.
    done: Mutex<HandOvers>,
    /// Frames that were handed over and can be used again.
    // Boxes are what is kept: handing one out costs no allocation.
    #[allow(clippy::vec_box)]
    used: Mutex<Vec<Box<Frame>>>,
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    asleep: bool,
    ended: bool,
}

/// The loop's side: decides who hands over, and gives frames away. The thread ends when this is dropped.
pub(crate) struct Delivery {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// `true` if frames are given away at present.
    active: bool,
    /// Frames to be given away with the next ones.
    batch: Vec<Job>,
    share: Share,
    written: u64,
    /// The time that the loop's own hand-overs took in this period, as far as those that are timed show.
    own: Duration,
}

impl Delivery {
    /// A delivery to the interfaces with `writers`, by port; without a thread on a machine with a single processor.
    /// The thread asks for real-time scheduling where `realtime` is set.
    ///
    /// # Errors
    /// When the kernel gives no thread.
    pub(crate) fn start(writers: Vec<Option<Writer>>, clock: LabClock, realtime: bool) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            filled: Condvar::new(),
            outstanding: AtomicUsize::new(0),
            of_port: writers.iter().map(|_| AtomicUsize::new(0)).collect(),
            busy_ns: AtomicU64::new(0),
            done: Mutex::default(),
            used: Mutex::default(),
        });
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let thread = if processors > 1 && writers.iter().any(Option::is_some) {
            let theirs = Arc::clone(&shared);
            let work = move || {
                if realtime {
                    become_realtime();
                }
                run(&theirs, &writers, clock);
            };
            Some(std::thread::Builder::new().name(THREAD_NAME.into()).spawn(work)?)
        } else {
            None
        };
        Ok(Self {
            shared,
            thread,
            active: false,
            batch: Vec::with_capacity(BATCH),
            share: Share::default(),
            written: 0,
            own: Duration::ZERO,
        })
    }

    /// Gives `frame` away, or back where the loop is to hand it over itself: when it has little to do, or the thread
    /// has enough.
    pub(crate) fn take(&mut self, port: PortId, frame: Box<Frame>, due: Time) -> Option<Box<Frame>> {
        let Some(of_port) = self.shared.of_port.get(port.0 as usize) else { return Some(frame) };
        let waiting = self.batch.len() + self.shared.outstanding.load(Ordering::Acquire);
        // A host's frames keep their order: while the thread has one of them, the next goes there too.
        if (!self.active || waiting >= ENOUGH) && of_port.load(Ordering::Acquire) == 0 {
            return Some(frame);
        }
        of_port.fetch_add(1, Ordering::Release);
        self.batch.push(Job { port, due, frame: Some(frame) });
        if self.batch.len() >= BATCH {
            self.flush();
        }
        None
    }

    /// Returns `true` if frames are given away at present.
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Returns `true` if the next frame for the host behind `port` is given away, as far as can be known.
    pub(crate) fn gives_away(&self, port: PortId) -> bool {
        self.active || self.shared.of_port.get(port.0 as usize).is_some_and(|of| of.load(Ordering::Acquire) > 0)
    }

    /// Lets the thread begin with what was given away.
    pub(crate) fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        self.shared.outstanding.fetch_add(self.batch.len(), Ordering::Release);
        let mut queue = lock(&self.shared.queue);
        queue.jobs.append(&mut self.batch);
        if std::mem::take(&mut queue.asleep) {
            drop(queue);
            self.shared.filled.notify_one();
        }
    }

    /// The loop has worked from `begin` to `end`, or only looked (`worked` is false).
    pub(crate) fn observe(&mut self, begin: Time, end: Time, worked: bool) {
        if let Some((share, elapsed)) = self.share.observe(begin, end, worked) {
            let theirs = Duration::from_ns(self.shared.busy_ns.swap(0, Ordering::Relaxed));
            let handing_over = (std::mem::take(&mut self.own) + theirs).as_secs_f64() / elapsed.as_secs_f64();
            let (busy, worth) = if self.active { (SHARES.1, WORTH / 2.0) } else { (SHARES.0, WORTH) };
            self.active = self.thread.is_some() && share > busy && handing_over > worth;
        }
    }

    /// Does `hand_over`, by the loop, and notes what such take.
    #[inline]
    pub(crate) fn timed<R>(&mut self, clock: LabClock, hand_over: impl FnOnce() -> R) -> R {
        self.written += 1;
        if self.written % TIMED != 0 {
            return hand_over();
        }
        let begin = clock.now();
        let result = hand_over();
        self.own += Duration::from_ns((clock.now() - begin).as_ns() * TIMED);
        result
    }

    /// Gives `recycle` the frames that were handed over and can be used again.
    pub(crate) fn take_used(&self, recycle: impl FnMut(Box<Frame>)) {
        if let Ok(mut used) = self.shared.used.try_lock() {
            used.drain(..).for_each(recycle);
        }
    }

    /// Returns what the thread handed over since the record began.
    pub(crate) fn hand_overs(&self) -> HandOvers {
        lock(&self.shared.done).clone()
    }

    /// Begins that record anew.
    pub(crate) fn forget(&self) {
        *lock(&self.shared.done) = HandOvers::default();
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        lock(&self.shared.queue).ended = true;
        self.shared.filled.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

/// The share of its time that the loop works.
#[derive(Debug, Default)]
struct Share {
    since: Time,
    worked: Duration,
}

impl Share {
    /// Returns the share of a period that is over, and how long it was.
    fn observe(&mut self, begin: Time, end: Time, worked: bool) -> Option<(f64, Duration)> {
        if worked {
            self.worked += end - begin;
        }
        let elapsed = end - self.since;
        if elapsed < PERIOD {
            return None;
        }
        let share = self.worked.as_secs_f64() / elapsed.as_secs_f64();
        *self = Self { since: end, worked: Duration::ZERO };
        Some((share, elapsed))
    }
}

/// A lock that a panic elsewhere does not close: what it guards is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread: hands over what comes, to each host in its order.
fn run(shared: &Shared, writers: &[Option<Writer>], clock: LabClock) {
    let mut breaks = Breaks::begin(clock.now());
    let mut waiting = Vec::new();
    let mut chains = Chains::of_ports(writers.len());
    let mut together = Together::default();
    let mut used = Vec::new();
    while await_jobs(shared, &mut waiting, clock) {
        let begin = clock.now();
        breaks.look(begin);
        chains.link(&waiting);
        {
            let mut done = lock(&shared.done);
            for at in 0..waiting.len() {
                together.hand_over_from(at, &mut waiting, &chains, writers, clock, &mut done);
                used.append(&mut together.frames);
            }
        }
        shared.busy_ns.fetch_add((clock.now() - begin).as_ns(), Ordering::Relaxed);
        for job in waiting.drain(..) {
            if let Some(of_port) = shared.of_port.get(job.port.0 as usize) {
                of_port.fetch_sub(1, Ordering::Release);
            }
            shared.outstanding.fetch_sub(1, Ordering::Release);
        }
        let mut kept = lock(&shared.used);
        used.truncate(KEPT.saturating_sub(kept.len()));
        kept.append(&mut used);
    }
}

/// For each job the next one of the same port. Kept from batch to batch, so that it costs no allocation.
struct Chains {
    next: Vec<Option<usize>>,
    /// While jobs are linked, from the last on: the first of each port that was linked. Nothing between batches.
    first_of_port: Vec<Option<usize>>,
}

impl Chains {
    fn of_ports(ports: usize) -> Self {
        Self { next: Vec::new(), first_of_port: vec![None; ports] }
    }

    fn link(&mut self, jobs: &[Job]) {
        self.next.clear();
        self.next.resize(jobs.len(), None);
        for (at, job) in jobs.iter().enumerate().rev() {
            if let Some(first) = self.first_of_port.get_mut(job.port.0 as usize) {
                self.next[at] = first.replace(at);
            }
        }
        // Only what was set: a large lab has many more ports than a batch has jobs.
        for job in jobs {
            if let Some(first) = self.first_of_port.get_mut(job.port.0 as usize) {
                *first = None;
            }
        }
    }

    fn behind(&self, at: usize) -> Option<usize> {
        self.next.get(at).copied().flatten()
    }
}

/// Frames that are handed over in one step, and when each was due.
#[derive(Default)]
struct Together {
    // Boxes are what waits: taking one costs no allocation.
    #[allow(clippy::vec_box)]
    frames: Vec<Box<Frame>>,
    dues: Vec<Time>,
}

impl Together {
    /// Hands over job `at` of `waiting`, if it has its frame still. Frames of one connection that wait behind it for
    /// the same host go with it, as Linux joins what it finds waiting at a network card (GRO): what comes late costs
    /// the less the later it is. The frames are left here.
    fn hand_over_from(
        &mut self,
        at: usize,
        waiting: &mut [Job],
        chains: &Chains,
        writers: &[Option<Writer>],
        clock: LabClock,
        done: &mut HandOvers,
    ) {
        let Some(Job { port, due, frame }) = waiting.get_mut(at) else { return };
        let (port, due) = (*port, *due);
        let Some(frame) = frame.take() else { return };
        self.frames.push(frame);
        let Some(Some(writer)) = writers.get(port.0 as usize) else { return };
        self.dues.clear();
        self.dues.push(due);
        let now = clock.now();
        let mut behind = chains.behind(at);
        let dues = &mut self.dues;
        let answer = write_joined(writer, &mut self.frames, behind.is_some(), |whole| {
            let next = behind?;
            let job = waiting.get_mut(next)?;
            behind = chains.behind(next);
            dues.push(job.due);
            job.frame.take_if(|next| whole.join(next))
        });
        for (due, frame) in self.dues.iter().zip(&self.frames) {
            done.hand_over(port, now - *due);
            done.written(frame, &answer);
        }
    }
}

/// Hands the one frame of `joined` over, with those that `next` finds to join it, in one step where the host takes
/// that. What cannot be joined is not overtaken, either: the first for which `next` gives nothing ends it. Without
/// `others` that wait for the host there is nothing to be looked for.
#[allow(clippy::vec_box)]
pub(crate) fn write_joined(
    writer: &Writer,
    joined: &mut Vec<Box<Frame>>,
    others: bool,
    mut next: impl FnMut(&mut Coalesced) -> Option<Box<Frame>>,
) -> io::Result<()> {
    let Some(first) = joined.first() else { return Ok(()) };
    let whole = if others && writer.joins() { Coalesced::begin(first) } else { None };
    let Some(mut whole) = whole else { return writer.write(first) };
    while let Some(frame) = next(&mut whole) {
        joined.push(frame);
    }
    match &joined[..] {
        [single] => writer.write(single),
        several => writer.write_joined(whole, several.iter().map(|frame| &**frame)),
    }
}

/// Waits until there are frames and takes them all; false when there will be none any more.
fn await_jobs(shared: &Shared, batch: &mut Vec<Job>, clock: LabClock) -> bool {
    let patience = clock.now() + PATIENCE;
    while shared.outstanding.load(Ordering::Acquire) == 0 && clock.now() < patience {
        std::hint::spin_loop();
    }
    let mut queue = lock(&shared.queue);
    while queue.jobs.is_empty() {
        if queue.ended {
            return false;
        }
        queue.asleep = true;
        queue = shared.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
    queue.asleep = false;
    std::mem::swap(&mut queue.jobs, batch);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    /// A delivery to one socket, and its other end.
    fn delivery() -> (Delivery, UnixStream, LabClock) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let clock = LabClock::start();
        let writer = Writer::new(Arc::new(OwnedFd::from(ours)), false);
        (Delivery::start(vec![Some(writer)], clock, false).unwrap(), theirs, clock)
    }

    fn frame(mark: u8) -> Box<Frame> {
        Box::new(Frame::new(vec![mark; 60]))
    }

    #[test]
    fn a_loop_with_little_to_do_hands_over_itself() {
        let (mut delivery, _theirs, clock) = delivery();
        assert!(delivery.take(PortId(0), frame(1), clock.now()).is_some());
    }

    #[test]
    fn frames_that_were_given_away_arrive_in_order_and_are_counted() {
        let (mut delivery, mut theirs, clock) = delivery();
        if delivery.thread.is_none() {
            return; // A single processor: there is nobody to give frames to.
        }
        delivery.active = true;
        for mark in 0..20 {
            assert!(delivery.take(PortId(0), frame(mark), clock.now()).is_none());
        }
        delivery.flush();
        let mut bytes = vec![0; 20 * 70];
        theirs.read_exact(&mut bytes).unwrap();
        // Ten bytes of the header before each frame.
        let marks: Vec<u8> = bytes.chunks(70).map(|frame| frame[10]).collect();
        assert_eq!(marks, (0..20).collect::<Vec<u8>>());
        // What was read is counted as soon as the thread has put its pen down.
        while delivery.shared.outstanding.load(Ordering::Acquire) > 0 {
            std::hint::spin_loop();
        }
        assert_eq!(delivery.hand_overs().handed_over, 20);
        assert!(delivery.take(PortId(7), frame(0), clock.now()).is_some(), "there is no such port");
        delivery.forget();
        assert_eq!(delivery.hand_overs().handed_over, 0);
        let mut used = 0;
        delivery.take_used(|_| used += 1);
        assert_eq!(used, 20);
    }

    #[test]
    fn each_job_knows_the_next_of_its_port_in_every_batch_anew() {
        let clock = LabClock::start();
        let jobs = |ports: &[u32]| -> Vec<Job> {
            let job = |port: &u32| Job { port: PortId(*port), due: clock.now(), frame: None };
            ports.iter().map(job).collect()
        };
        let mut chains = Chains::of_ports(3);
        // Port 7 is none that the delivery has a writer for.
        chains.link(&jobs(&[0, 2, 0, 7, 2, 0, 7]));
        let next: Vec<_> = (0..7).map(|at| chains.behind(at)).collect();
        assert_eq!(next, [Some(2), Some(4), Some(5), None, None, None, None]);
        chains.link(&jobs(&[2, 1]));
        assert_eq!((chains.behind(0), chains.behind(1), chains.behind(2)), (None, None, None));
    }

    #[test]
    fn the_loop_writes_what_is_too_much_for_the_thread_but_never_overtakes_it() {
        let (mut delivery, _theirs, clock) = delivery();
        if delivery.thread.is_none() {
            return; // A single processor: there is nobody to give frames to.
        }
        delivery.active = true;
        let shared = Arc::clone(&delivery.shared);
        shared.outstanding.fetch_add(ENOUGH, Ordering::Release);
        assert!(delivery.take(PortId(0), frame(1), clock.now()).is_some());
        shared.of_port[0].fetch_add(1, Ordering::Release);
        assert!(delivery.take(PortId(0), frame(2), clock.now()).is_none());
    }

    #[test]
    fn the_share_decides_and_does_not_flutter() {
        let (mut delivery, _theirs, _) = delivery();
        if delivery.thread.is_none() {
            return; // A single processor: there is nobody to give frames to.
        }
        let at = |ms| Time::ZERO + Duration::from_ms(ms);
        // Periods of 20 ms in which the loop works for so many, and it or the thread hands over for so many.
        let mut period = 0;
        let mut observe = |delivery: &mut Delivery, works, own, theirs: u64| {
            let begin = at(period);
            period += 20;
            delivery.own = Duration::from_ms(own);
            delivery.shared.busy_ns.store(theirs * 1_000_000, Ordering::Relaxed);
            delivery.observe(begin, begin + Duration::from_ms(works), true);
            delivery.observe(begin + Duration::from_ms(works), at(period), false);
            delivery.active
        };
        assert!(!observe(&mut delivery, 12, 7, 0), "the loop has much to do, but hand-overs are not what it does");
        assert!(observe(&mut delivery, 12, 9, 0), "60 % of the time, most of it for hand-overs");
        assert!(observe(&mut delivery, 6, 0, 5), "30 %: giving hand-overs away may have halved it");
        assert!(!observe(&mut delivery, 6, 0, 3), "the thread has next to nothing to do");
        assert!(observe(&mut delivery, 12, 9, 0));
        assert!(!observe(&mut delivery, 2, 0, 9), "10 %");
    }

    #[test]
    fn one_hand_over_of_many_is_timed_for_all() {
        let (mut delivery, _theirs, clock) = delivery();
        for _ in 0..TIMED {
            delivery.timed(clock, || std::thread::sleep(std::time::Duration::from_millis(1)));
        }
        assert!(delivery.own >= Duration::from_ms(TIMED));
    }
}
