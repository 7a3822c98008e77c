//! The calendar of a guest kernel: who says what time it is, and when the guest may run.
//!
//! User Mode Linux with `time-travel=ext` connects to a socket, and keeps the time in shared memory
//! (`include/uapi/linux/um_timetravel.h`, version 2 of `um_timetravel_schedshm`). It writes there when it wants to run,
//! and how far it has come; we write what time it is, and until when it may go on without asking.
//!
//! By our patch, turns are taken there too: a word says whose turn it is, and who gives the turn away waits for that
//! word to change (a futex). So a turn takes four system calls and two switches of processes on one processor, where
//! messages, each with an answer, took some fifty.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicU8, Ordering};

use rustix::event::Timespec;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::thread::futex;

/// `enum um_timetravel_ops`.
mod op {
    pub const ACK: u32 = 0;
    pub const START: u32 = 1;
    pub const GET: u32 = 4;
    pub const UPDATE: u32 = 5;
    pub const GET_TOD: u32 = 8;
    pub const BROADCAST: u32 = 9;
}

/// Bytes of a message: operation, sequence number, time.
const MESSAGE_BYTES: usize = 16;
/// The version of the shared memory.
const VERSION: u32 = 2;
/// `UM_TIMETRAVEL_SCHEDSHM_CAP_TIME_SHARE`: the participant keeps its requests in the shared memory.
const SHARES_TIME: u32 = 1;
/// `UM_TIMETRAVEL_SCHEDSHM_FLAGS_REQ_RUN`.
const WANTS_TO_RUN: u32 = 1;
/// The words that say whose turn it is: the guest's; ours, for it waits, or has kicked a card; and ours to look for a
/// message, while it may go on.
const ITS_TURN: u32 = 0;
const IT_WAITS: u32 = 1;
const IT_KICKS: u32 = 2;
const IT_SAYS: u32 = 3;
/// Cards that can have something for the guest at once, in what the header leaves free.
const MOST_CALLS: usize = (4096 - 64 - 20) / 4;

/// The numbers of the participants: we, and the guest.
const US: u16 = 0;
const GUEST: u16 = 1;

/// `union um_timetravel_schedshm_client`.
#[repr(C, align(128))]
struct Client {
    abilities: AtomicU32,
    flags: AtomicU32,
    request: AtomicU64,
    name: AtomicU64,
    reserved: [u8; 40],
    /// By our patch: the program that has the processor, and the host that it is in, each with zeros behind it.
    program: [AtomicU8; 16],
    host: [AtomicU8; 48],
}

/// `struct time_travel_turns` of our patch.
#[repr(C)]
struct Turns {
    offered: AtomicU32,
    turn: AtomicU32,
    /// What the guest has kicked.
    card: AtomicU32,
    queue: AtomicU32,
    /// What is to be interrupted when the guest gets the turn: each card's number, and three bits.
    count: AtomicU32,
    calls: [AtomicU32; MOST_CALLS],
}

/// `struct um_timetravel_schedshm`, with two participants.
#[repr(C, align(4096))]
struct Shared {
    version: AtomicU32,
    length: AtomicU32,
    free_until: AtomicU64,
    current_time: AtomicU64,
    running: AtomicU16,
    most_clients: AtomicU16,
    rest: [u8; 64 - 28],
    turns: Turns,
    clients: [Client; 2],
}

const _: () = assert!(std::mem::offset_of!(Shared, running) == 24 && std::mem::offset_of!(Shared, clients) == 4096);
const _: () = assert!(size_of::<Client>() == 128 && std::mem::offset_of!(Client, program) == 64);

/// What the guest said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Something that was answered at once.
    Answered,
    /// It is gone.
    Gone,
}

/// Why the guest has given us the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// It waits for its time.
    Waits,
    /// A queue of a card has something.
    Kicks {
        /// The card.
        card: usize,
        /// The queue.
        queue: usize,
    },
    /// There is a message, at whichever socket: the turn is the guest's again.
    Says,
}

/// The calendar of one guest. Times are nanoseconds of the guest's.
pub struct Calendar {
    socket: OwnedFd,
    memory: OwnedFd,
    shared: *mut Shared,
    /// The time of day at the guest's time zero, in nanoseconds since 1970-01-01.
    begins: u64,
    /// The guest has the shared memory.
    started: Cell<bool>,
    /// What the cards have for the guest, by their numbers: bits for the two queues and the configuration.
    calls: RefCell<BTreeMap<usize, u32>>,
}

// SAFETY: the pointer is to a mapping that this owns, and what lies there is atomic.
unsafe impl Send for Calendar {}

impl Calendar {
    /// The calendar for the guest at the other end of `socket`.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn new(socket: OwnedFd, begins: u64) -> io::Result<Self> {
        let memory = rustix::fs::memfd_create("twinnet-calendar", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&memory, size_of::<Shared>() as u64)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a file that is as long as `Shared`; the result is checked.
        let place = unsafe {
            libc::mmap(std::ptr::null_mut(), size_of::<Shared>(), protection, libc::MAP_SHARED, memory.as_raw_fd(), 0)
        };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let calendar =
            Self { socket, memory, shared: place.cast(), begins, started: Cell::new(false), calls: RefCell::default() };
        let shared = calendar.shared();
        shared.version.store(VERSION, Ordering::Relaxed);
        shared.length.store(size_of::<Shared>() as u32, Ordering::Relaxed);
        // It asks before its first step.
        shared.free_until.store(1, Ordering::Relaxed);
        shared.running.store(GUEST, Ordering::Relaxed);
        shared.most_clients.store(2, Ordering::Relaxed);
        shared.turns.offered.store(1, Ordering::Relaxed);
        shared.clients[usize::from(US)].abilities.store(SHARES_TIME, Ordering::Relaxed);
        Ok(calendar)
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the mapping is as long as `Shared`, lives as long as this, and all its fields are atomic.
        unsafe { &*self.shared }
    }

    /// The socket, for waiting on it.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// The guest's time.
    pub fn now(&self) -> u64 {
        self.shared().current_time.load(Ordering::Acquire)
    }

    /// The time at which the guest wants to run.
    pub fn request(&self) -> Option<u64> {
        let guest = &self.shared().clients[usize::from(GUEST)];
        let wants = guest.flags.load(Ordering::Acquire) & WANTS_TO_RUN != 0;
        // It asks for the end of time when it has nothing to do.
        wants.then(|| guest.request.load(Ordering::Acquire)).filter(|time| *time < u64::MAX >> 2)
    }

    /// The host and the name of the program that has the guest's processor, as its kernel said last; `None` if it does
    /// not tell.
    pub fn computing(&self) -> Option<(String, String)> {
        let guest = &self.shared().clients[usize::from(GUEST)];
        let text = |bytes: &[AtomicU8]| {
            let bytes = bytes.iter().map(|byte| byte.load(Ordering::Relaxed)).take_while(|byte| *byte != 0);
            String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
        };
        let (host, program) = (text(&guest.host), text(&guest.program));
        (!host.is_empty() && !program.is_empty()).then_some((host, program))
    }

    /// Whether the guest takes turns by the shared memory: before, it only sends messages.
    pub fn has_started(&self) -> bool {
        self.started.get()
    }

    /// Waits until the guest gives us the turn, for one `look`; `None` if it does not. The guest keeps still then,
    /// until [`run`](Self::run) or [`give`](Self::give).
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn turn(&self, look: &Timespec) -> io::Result<Option<Given>> {
        let turns = &self.shared().turns;
        loop {
            match turns.turn.load(Ordering::Acquire) {
                ITS_TURN => match futex::wait(&turns.turn, futex::Flags::empty(), ITS_TURN, Some(look)) {
                    Ok(()) | Err(Errno::AGAIN) => {}
                    Err(Errno::TIMEDOUT | Errno::INTR) => return Ok(None),
                    Err(error) => return Err(error.into()),
                },
                IT_WAITS => return Ok(Some(Given::Waits)),
                IT_KICKS => {
                    let card = turns.card.load(Ordering::Relaxed) as usize;
                    return Ok(Some(Given::Kicks { card, queue: turns.queue.load(Ordering::Relaxed) as usize }));
                }
                // It goes on meanwhile, and may have given the turn away for another reason.
                IT_SAYS => {
                    let taken = turns.turn.compare_exchange(IT_SAYS, ITS_TURN, Ordering::AcqRel, Ordering::Acquire);
                    if taken.is_ok() {
                        return Ok(Some(Given::Says));
                    }
                }
                other => return Err(io::Error::other(format!("the guest gave its turn for the reason {other}"))),
            }
        }
    }

    /// Gives the guest the turn back, which it has given us.
    pub fn give(&self) {
        let turns = &self.shared().turns;
        turns.turn.store(ITS_TURN, Ordering::Release);
        let _ = futex::wake(&turns.turn, futex::Flags::empty(), 1);
    }

    /// The card has something for the guest, which hears of it when it runs.
    pub fn call(&self, card: usize, bits: u32) {
        *self.calls.borrow_mut().entry(card).or_default() |= bits;
    }

    /// While the guest waits: it is to run at `now`.
    pub fn ask(&self, now: u64) {
        let guest = &self.shared().clients[usize::from(GUEST)];
        guest.request.store(now, Ordering::Relaxed);
        guest.flags.fetch_or(WANTS_TO_RUN, Ordering::Release);
    }

    /// While the guest waits: it is `now`.
    pub fn set(&self, now: u64) {
        let shared = self.shared();
        shared.running.store(US, Ordering::Relaxed);
        shared.current_time.store(now, Ordering::Release);
    }

    /// While the guest runs: from `until` on it has to ask.
    pub fn hold_back(&self, until: u64) {
        self.shared().free_until.fetch_min(until, Ordering::AcqRel);
    }

    /// Lets the guest, which waits, run at `now`; from `until` on it has to ask.
    pub fn run(&self, now: u64, until: u64) {
        let shared = self.shared();
        shared.current_time.store(now, Ordering::Relaxed);
        shared.free_until.store(until, Ordering::Relaxed);
        shared.running.store(GUEST, Ordering::Relaxed);
        shared.clients[usize::from(GUEST)].flags.fetch_and(!WANTS_TO_RUN, Ordering::Release);
        let calls = std::mem::take(&mut *self.calls.borrow_mut());
        // A guest has fewer cards than there are places.
        shared.turns.count.store(calls.len().min(MOST_CALLS) as u32, Ordering::Relaxed);
        for (place, (card, bits)) in shared.turns.calls.iter().zip(calls) {
            place.store((card as u32) << 3 | bits, Ordering::Relaxed);
        }
        self.give();
    }

    fn send(&self, op: u32, sequence: u32, time: u64) -> io::Result<()> {
        rustix::net::send(&self.socket, &message(op, sequence, time), SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Takes one message of the guest, and answers it where it waits for that.
    ///
    /// # Errors
    /// The error of the kernel, or a message that the protocol does not know.
    pub fn hear(&self) -> io::Result<Said> {
        let mut bytes = [0; MESSAGE_BYTES];
        let (_, length) = match rustix::net::recv(&self.socket, &mut bytes, RecvFlags::WAITALL) {
            Err(rustix::io::Errno::CONNRESET) => return Ok(Said::Gone),
            received => received?,
        };
        if length == 0 {
            return Ok(Said::Gone);
        }
        if length != MESSAGE_BYTES {
            return Err(io::Error::other(format!("the guest's calendar got {length} bytes of a message")));
        }
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (operation, sequence) = (word(0), word(4));
        let time = u64::from(word(8)) | u64::from(word(12)) << 32;
        let answer = match operation {
            op::ACK => return Ok(Said::Answered),
            op::START => {
                self.start(sequence)?;
                self.started.set(true);
                return Ok(Said::Answered);
            }
            op::GET => self.now(),
            op::UPDATE => {
                self.shared().current_time.store(time, Ordering::Release);
                0
            }
            op::GET_TOD => self.begins + self.now(),
            op::BROADCAST => 0,
            other => return Err(io::Error::other(format!("the guest's calendar got the operation {other}"))),
        };
        self.send(op::ACK, sequence, answer)?;
        Ok(Said::Answered)
    }

    /// Answers the guest's first message: its number, and the shared memory, which is given for its log too.
    fn start(&self, sequence: u32) -> io::Result<()> {
        let answer = message(op::ACK, sequence, u64::from(GUEST));
        let descriptors = [self.memory.as_fd(), self.memory.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        beside.push(SendAncillaryMessage::ScmRights(&descriptors));
        rustix::net::sendmsg(&self.socket, &[io::IoSlice::new(&answer)], &mut beside, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

impl Drop for Calendar {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.shared.cast(), size_of::<Shared>()) };
    }
}

fn message(op: u32, sequence: u32, time: u64) -> [u8; MESSAGE_BYTES] {
    let mut bytes = [0; MESSAGE_BYTES];
    bytes[..4].copy_from_slice(&op.to_ne_bytes());
    bytes[4..8].copy_from_slice(&sequence.to_ne_bytes());
    bytes[8..].copy_from_slice(&time.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    const SOON: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
    const LONG: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

    fn calendar() -> (Calendar, UnixStream) {
        let (ours, its) = UnixStream::pair().unwrap();
        (Calendar::new(ours.into(), 0).unwrap(), its)
    }

    /// What the guest's kernel does: gives the turn away, and waits until it is back.
    fn give_away(calendar: &Calendar, why: u32) {
        let turn = &calendar.shared().turns.turn;
        turn.store(why, Ordering::Release);
        futex::wake(turn, futex::Flags::empty(), 1).unwrap();
        while turn.load(Ordering::Acquire) == why {
            let _ = futex::wait(turn, futex::Flags::empty(), why, Some(&SOON));
        }
    }

    #[test]
    fn turns_go_to_and_fro_with_what_the_cards_have() {
        let (calendar, _its) = calendar();
        assert_eq!(calendar.turn(&SOON).unwrap(), None, "the guest has it");
        calendar.shared().turns.card.store(3, Ordering::Relaxed);
        calendar.shared().turns.queue.store(1, Ordering::Relaxed);
        // The guest is another process, which maps the same memory.
        let guest = {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let (length, file) = (size_of::<Shared>(), calendar.memory.as_raw_fd());
            // SAFETY: a new mapping of a file that is as long as `Shared`.
            let place = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, file, 0) };
            assert_ne!(place, libc::MAP_FAILED);
            let (socket, _) = UnixStream::pair().unwrap();
            let memory = calendar.memory.try_clone().unwrap();
            let (started, calls) = (Cell::new(true), RefCell::default());
            Calendar { socket: socket.into(), memory, shared: place.cast(), begins: 0, started, calls }
        };
        let it_runs = std::thread::spawn(move || {
            for _ in 0..1000 {
                give_away(&guest, IT_KICKS);
                guest.shared().turns.turn.store(IT_SAYS, Ordering::Release);
                give_away(&guest, IT_WAITS);
            }
            let turns = &guest.shared().turns;
            let told = turns.calls[..turns.count.load(Ordering::Relaxed) as usize].iter();
            let told: Vec<u32> = told.map(|one| one.load(Ordering::Relaxed)).collect();
            (told, guest.request(), guest.now())
        });
        let given = |calendar: &Calendar| loop {
            // Where the guest was quicker, its message is not told of by itself.
            match calendar.turn(&LONG).unwrap() {
                Some(Given::Says) => {}
                given => return given,
            }
        };
        for _ in 0..1000 {
            assert_eq!(given(&calendar), Some(Given::Kicks { card: 3, queue: 1 }));
            calendar.give();
            assert_eq!(given(&calendar), Some(Given::Waits));
            calendar.call(699, 0b10);
            calendar.call(2, 0b01);
            calendar.call(2, 0b100);
            calendar.set(41);
            calendar.ask(41);
            assert_eq!(calendar.request(), Some(41));
            calendar.run(42, 50);
        }
        assert_eq!(it_runs.join().unwrap(), (vec![2 << 3 | 0b101, 699 << 3 | 0b10], None, 42));
        assert_eq!(calendar.turn(&SOON).unwrap(), None);
        calendar.shared().turns.turn.store(9, Ordering::Relaxed);
        assert!(calendar.turn(&SOON).unwrap_err().to_string().contains("for the reason 9"));
    }
}
