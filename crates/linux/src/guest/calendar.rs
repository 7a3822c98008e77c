//! The calendar of a guest kernel: who says what time it is, and when the guest may run.
//!
//! User Mode Linux with `time-travel=ext` asks for the time over a socket, and keeps it in shared memory
//! (`include/uapi/linux/um_timetravel.h`, version 2 of `um_timetravel_schedshm`). It writes there when it wants to run,
//! and how far it has come; we write what time it is, and until when it may go on without asking.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicU8, Ordering};

use rustix::fs::MemfdFlags;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

/// `enum um_timetravel_ops`.
mod op {
    pub const ACK: u32 = 0;
    pub const START: u32 = 1;
    pub const WAIT: u32 = 3;
    pub const GET: u32 = 4;
    pub const UPDATE: u32 = 5;
    pub const RUN: u32 = 6;
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

/// `struct um_timetravel_schedshm`, with two participants.
#[repr(C, align(4096))]
struct Shared {
    version: AtomicU32,
    length: AtomicU32,
    free_until: AtomicU64,
    current_time: AtomicU64,
    running: AtomicU16,
    most_clients: AtomicU16,
    rest: [u8; 4096 - 28],
    clients: [Client; 2],
}

const _: () = assert!(std::mem::offset_of!(Shared, running) == 24 && std::mem::offset_of!(Shared, clients) == 4096);
const _: () = assert!(size_of::<Client>() == 128 && std::mem::offset_of!(Client, program) == 64);

/// What the guest said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It waits.
    Waits,
    /// Something that was answered at once.
    Answered,
    /// It is gone.
    Gone,
}

/// The calendar of one guest. Times are nanoseconds of the guest's.
pub struct Calendar {
    socket: OwnedFd,
    memory: OwnedFd,
    shared: *mut Shared,
    /// The time of day at the guest's time zero, in nanoseconds since 1970-01-01.
    begins: u64,
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
        let calendar = Self { socket, memory, shared: place.cast(), begins };
        let shared = calendar.shared();
        shared.version.store(VERSION, Ordering::Relaxed);
        shared.length.store(size_of::<Shared>() as u32, Ordering::Relaxed);
        // It asks before its first step.
        shared.free_until.store(1, Ordering::Relaxed);
        shared.running.store(GUEST, Ordering::Relaxed);
        shared.most_clients.store(2, Ordering::Relaxed);
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
    ///
    /// # Errors
    /// The error of the kernel when it is gone.
    pub fn run(&self, now: u64, until: u64) -> io::Result<()> {
        let shared = self.shared();
        shared.current_time.store(now, Ordering::Relaxed);
        shared.free_until.store(until, Ordering::Relaxed);
        shared.running.store(GUEST, Ordering::Relaxed);
        shared.clients[usize::from(GUEST)].flags.fetch_and(!WANTS_TO_RUN, Ordering::Release);
        self.send(op::RUN, 0, now)
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
            op::WAIT => return Ok(Said::Waits),
            op::ACK => return Ok(Said::Answered),
            op::START => {
                self.start(sequence)?;
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
