//! Datagrams by many a system call, in buffers that are used again.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_int, c_void, iovec, mmsghdr, msghdr, timespec};
use twinnet_apps::Chunk;
use twinnet_units::Time;

use super::system::{check, RawAddress};
use crate::wall::clock::LabClock;

/// Datagrams in one system call.
pub const BATCH: usize = 64;
/// Messages in one system call on a socket that may get several datagrams in one message.
const MERGED: usize = 8;
/// Space for such a message.
const MERGED_BYTES: usize = 65_536;
/// Bytes of a received datagram that are looked at; the rest is only counted.
pub const LOOKED_AT: usize = 128;
/// Space for the control messages: arrival time (in two forms, where departures are stamped), drops, length of the
/// datagrams in a message.
const CONTROL: usize = 160;
/// Datagrams that may wait in a socket's queue for the kernel to take them.
const MOST_QUEUED: usize = 256;
/// Payload of one message that the kernel is to cut: what fits in a datagram of IPv4 or IPv6.
const MOST_RUN_BYTES: usize = 65_000;
/// `UDP_SEGMENT` of `linux/udp.h`.
const UDP_SEGMENT: c_int = 103;
/// `UDP_GRO` of `linux/udp.h`: a socket that has it gets a train of datagrams as one message.
pub const UDP_GRO: c_int = 104;
/// The content of padding; no datagram is longer.
static ZEROS: [u8; 65_536] = [0; 65_536];

struct Queued {
    to: SocketAddr,
    /// The offset of its real bytes in the queue's `bytes`.
    start: usize,
    end: usize,
    padding: usize,
}

impl Queued {
    fn length(&self) -> usize {
        self.end - self.start + self.padding
    }
}

/// Datagrams that an app has sent and the kernel has not taken yet.
pub struct SendQueue {
    bytes: Vec<u8>,
    queued: Vec<Queued>,
    /// `true` if the kernel is asked to cut runs of datagrams of one size out of one message, which costs it one way
    /// through the stack for all (`UDP_SEGMENT`). Not any more once it has refused.
    segments: bool,
    /// `true` if the kernel took less than it was offered: its buffer was full.
    refused: bool,
}

impl Default for SendQueue {
    fn default() -> Self {
        Self { bytes: Vec::new(), queued: Vec::new(), segments: true, refused: false }
    }
}

impl SendQueue {
    /// Returns how many datagrams from `place` on can be one message: equal in size and receiver, but for a shorter
    /// last one.
    fn run(&self, place: usize, most: usize) -> usize {
        let first = &self.queued[place];
        let each = first.length();
        if !self.segments || each == 0 {
            return 1;
        }
        let most = most.min(MOST_RUN_BYTES / each).max(1);
        let mut number = 1;
        while number < most {
            let next = &self.queued[place + number];
            if next.to != first.to || next.length() > each || next.length() == 0 {
                break;
            }
            number += 1;
            if next.length() < each {
                break;
            }
        }
        number
    }

    /// Takes a datagram; `false` when the queue is full.
    ///
    /// # Errors
    /// The length of one that no datagram can have: padding is read from [`ZEROS`] by the kernel, which must have
    /// so many.
    pub fn push(&mut self, to: SocketAddr, chunk: Chunk<'_>) -> Result<bool, usize> {
        fits(chunk)?;
        if self.queued.len() >= MOST_QUEUED {
            return Ok(false);
        }
        let (bytes, padding) = match chunk {
            Chunk::Bytes(bytes) => (bytes, 0),
            Chunk::Padded(bytes, padding) => (bytes, padding as usize),
            Chunk::Filler(length) => (&[][..], usize::try_from(length).unwrap_or(usize::MAX)),
        };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.queued.push(Queued { to, start, end: self.bytes.len(), padding });
        Ok(true)
    }

    /// Returns `true` if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// Returns `true` if the kernel's buffer had no room for all when it was last offered.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    fn drop_first(&mut self, number: usize) {
        self.queued.drain(..number);
        if self.queued.is_empty() {
            self.bytes.clear();
        }
    }
}

/// Checks whether `chunk` fits in a datagram at all.
pub fn fits(chunk: Chunk<'_>) -> Result<(), usize> {
    let length = match chunk {
        Chunk::Bytes(bytes) => bytes.len(),
        Chunk::Padded(bytes, padding) => bytes.len().saturating_add(padding as usize),
        Chunk::Filler(length) => usize::try_from(length).unwrap_or(usize::MAX),
    };
    if length < ZEROS.len() {
        Ok(())
    } else {
        Err(length)
    }
}

/// The outcome of a flush.
pub enum Flushed {
    /// All was taken.
    All,
    /// The kernel's buffer is full; the rest waits.
    Waiting,
}

/// A received message: one datagram, or several of one length.
pub struct Received<'a> {
    /// Its first bytes; of a message with several datagrams all.
    bytes: &'a [u8],
    /// Its whole length.
    length: usize,
    /// Length of each of its datagrams but the last.
    each: usize,
    /// Its sender.
    pub from: SocketAddr,
    /// The time when the kernel got it from the interface.
    pub arrived: Time,
    /// Datagrams that the socket has dropped so far for lack of room, modulo 2^32.
    pub dropped: Option<u32>,
}

impl Received<'_> {
    /// The first bytes of datagram `place` and its length; `None` after the last.
    pub fn datagram(&self, place: usize) -> Option<(&[u8], usize)> {
        let start = place.checked_mul(self.each)?;
        // A datagram without payload is one, too.
        if start >= self.length && place > 0 {
            return None;
        }
        let length = (self.length - start).min(self.each);
        let stored = self.bytes.get(start..).unwrap_or_default();
        Some((&stored[..stored.len().min(length).min(LOOKED_AT)], length))
    }
}

/// Buffers for both directions, shared by all sockets of a thread. They point into each other, so they never move.
pub struct Buffers {
    headers: Box<[mmsghdr; BATCH]>,
    /// Two for each datagram: its bytes and its padding. Those of a run stand one after the other.
    vectors: Box<[[iovec; 2]; BATCH]>,
    /// Datagrams in each message of the last layout.
    runs: [usize; BATCH],
    addresses: Box<[RawAddress; BATCH]>,
    contents: Box<[[u8; LOOKED_AT]; BATCH]>,
    /// Contents of messages that may hold several datagrams, one after the other; made when there is the first such
    /// socket.
    merged: Vec<u8>,
    /// `true` if the last messages are in `merged`.
    are_merged: bool,
    /// In words, because control messages are aligned.
    controls: Box<[[u64; CONTROL / 8]; BATCH]>,
}

impl Buffers {
    /// New buffers.
    pub fn new() -> Self {
        const EMPTY: iovec = iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Self {
            // SAFETY: zero is a valid message header: no address, no content.
            headers: Box::new([const { unsafe { zeroed::<mmsghdr>() } }; BATCH]),
            vectors: Box::new([[EMPTY; 2]; BATCH]),
            runs: [1; BATCH],
            addresses: Box::new([RawAddress::EMPTY; BATCH]),
            contents: Box::new([[0; LOOKED_AT]; BATCH]),
            merged: Vec::new(),
            are_merged: false,
            controls: Box::new([[0; CONTROL / 8]; BATCH]),
        }
    }

    /// Hands the queue to the kernel. A datagram that the kernel refuses is dropped and told to `refused`.
    pub fn flush(
        &mut self,
        fd: BorrowedFd<'_>,
        queue: &mut SendQueue,
        mut refused: impl FnMut(&io::Error, SocketAddr, usize),
    ) -> Flushed {
        let mut told_of_earlier = false;
        while !queue.is_empty() {
            let number = self.lay_out(queue);
            // SAFETY: the first `number` headers point to addresses and vectors of this call, and these to bytes of
            // `queue` and `ZEROS`, none of which change before the call returns; the kernel only reads them.
            let result = unsafe {
                libc::sendmmsg(
                    fd.as_raw_fd(),
                    self.headers.as_mut_ptr(),
                    number,
                    libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
                )
            };
            match check(result) {
                Ok(taken) => queue.drop_first(self.runs[..usize::try_from(taken).unwrap_or(0)].iter().sum()),
                Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN)) => {
                    queue.refused = true;
                    return Flushed::Waiting;
                }
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                // The device cannot, or a datagram exceeds the MTU and needs fragments: each by itself from now on.
                Err(_) if self.runs[0] > 1 => queue.segments = false,
                // What became of an earlier datagram is told once, at the next call, and is no refusal of this one.
                Err(error) if !told_of_earlier && is_of_earlier(&error) => told_of_earlier = true,
                Err(error) => {
                    refused(&error, queue.queued[0].to, queue.queued[0].length());
                    queue.drop_first(1);
                }
            }
        }
        queue.refused = false;
        Flushed::All
    }

    /// Describes the first datagrams of the queue; in how many messages.
    #[allow(clippy::cast_possible_truncation)]
    fn lay_out(&mut self, queue: &SendQueue) -> u32 {
        let number = queue.queued.len().min(BATCH);
        for (place, datagram) in queue.queued[..number].iter().enumerate() {
            let bytes = &queue.bytes[datagram.start..datagram.end];
            self.vectors[place] = [
                iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() },
                iovec { iov_base: ZEROS.as_ptr().cast_mut().cast(), iov_len: datagram.padding },
            ];
        }
        let (mut messages, mut place) = (0, 0);
        while place < number {
            let run = queue.run(place, number - place);
            let datagram = &queue.queued[place];
            let (address, length) = RawAddress::new(datagram.to);
            self.addresses[messages] = address;
            // SAFETY: zero is a valid message header.
            let mut header: msghdr = unsafe { zeroed() };
            header.msg_name = (&raw mut self.addresses[messages]).cast::<c_void>();
            header.msg_namelen = length;
            header.msg_iov = self.vectors[place..].as_mut_ptr().cast::<iovec>();
            let parts: usize = if run > 1 || datagram.padding > 0 { 2 * run } else { 1 };
            header.msg_iovlen = parts as _;
            if run > 1 {
                header.msg_control = self.controls[messages].as_mut_ptr().cast();
                ask_for_segments(&mut header, datagram.length() as u16);
            }
            self.headers[messages].msg_hdr = header;
            self.runs[messages] = run;
            place += run;
            messages += 1;
        }
        messages as u32
    }

    /// Receives as many messages as one call brings; how many, and whether there may be more. [`Buffers::received`]
    /// gives them. `merged`: whether one may hold several datagrams.
    #[allow(clippy::cast_possible_truncation)]
    pub fn receive(&mut self, fd: BorrowedFd<'_>, merged: bool) -> io::Result<(usize, bool)> {
        let most = if merged { MERGED } else { BATCH };
        self.are_merged = merged;
        if merged {
            self.merged.resize(MERGED * MERGED_BYTES, 0);
        }
        for place in 0..most {
            let content = if merged {
                &mut self.merged[place * MERGED_BYTES..(place + 1) * MERGED_BYTES]
            } else {
                &mut self.contents[place][..]
            };
            self.vectors[place][0] = iovec { iov_base: content.as_mut_ptr().cast(), iov_len: content.len() };
            // SAFETY: zero is a valid message header.
            let mut header: msghdr = unsafe { zeroed() };
            header.msg_name = (&raw mut self.addresses[place]).cast::<c_void>();
            header.msg_namelen = RawAddress::SPACE;
            header.msg_iov = self.vectors[place].as_mut_ptr();
            header.msg_iovlen = 1;
            header.msg_control = self.controls[place].as_mut_ptr().cast();
            header.msg_controllen = CONTROL as _;
            self.headers[place].msg_hdr = header;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: every header points to space of `self` with its true length, and `self` outlives the call.
        let result = unsafe {
            libc::recvmmsg(fd.as_raw_fd(), self.headers.as_mut_ptr(), most as u32, flags as _, std::ptr::null_mut())
        };
        let number = check(result).map(|number| usize::try_from(number).unwrap_or(0))?;
        Ok((number, number == most))
    }

    /// Message `place` of the last [`Buffers::receive`]; `None` when its sender has no address.
    pub fn received(&self, place: usize, times: &ArrivalClock) -> Option<Received<'_>> {
        let header = &self.headers[place];
        let length = header.msg_len as usize;
        let notes = Notes::of(&header.msg_hdr);
        let content = if self.are_merged {
            &self.merged[place * MERGED_BYTES..(place + 1) * MERGED_BYTES]
        } else {
            &self.contents[place][..]
        };
        Some(Received {
            bytes: &content[..length.min(content.len())],
            length,
            each: notes.each.unwrap_or(length).max(1),
            from: self.addresses[place].get()?,
            arrived: notes.stamp.map_or(times.now, |stamp| times.at(stamp)),
            dropped: notes.dropped,
        })
    }
}

/// Notes beside a message that the kernel is to cut it into datagrams of `each` bytes.
fn ask_for_segments(header: &mut msghdr, each: u16) {
    // SAFETY: the control space of the header holds `CONTROL` bytes, aligned for control messages, which is more
    // than one message with a number of two bytes needs; the kernel only reads it.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(2) as _;
        let message = libc::CMSG_FIRSTHDR(header);
        (*message).cmsg_level = libc::IPPROTO_UDP;
        (*message).cmsg_type = UDP_SEGMENT;
        (*message).cmsg_len = libc::CMSG_LEN(2) as _;
        libc::CMSG_DATA(message).cast::<u16>().write_unaligned(each);
    }
}

/// Returns `true` if an error of a send may be of a datagram that was sent before (ICMP).
fn is_of_earlier(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EPROTO | libc::EACCES)
    )
}

/// The notes that the kernel makes beside a datagram, as control messages.
#[derive(Default)]
struct Notes {
    /// `SO_TIMESTAMPNS`.
    stamp: Option<timespec>,
    /// `SO_RXQ_OVFL`.
    dropped: Option<u32>,
    /// `UDP_GRO`.
    each: Option<usize>,
}

impl Notes {
    fn of(header: &msghdr) -> Self {
        let mut notes = Self::default();
        // SAFETY: the header was filled by the kernel, so its control messages lie within their space; each is
        // read, unaligned, only when its length is that of what is read.
        unsafe {
            let mut message = libc::CMSG_FIRSTHDR(header);
            while let Some(control) = message.as_ref() {
                let holds = |size: usize| control.cmsg_len >= libc::CMSG_LEN(u32::try_from(size).unwrap_or(0)) as _;
                match (control.cmsg_level, control.cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if holds(size_of::<timespec>()) => {
                        notes.stamp = Some(libc::CMSG_DATA(message).cast::<timespec>().read_unaligned());
                    }
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) if holds(size_of::<u32>()) => {
                        notes.dropped = Some(libc::CMSG_DATA(message).cast::<u32>().read_unaligned());
                    }
                    (libc::IPPROTO_UDP, UDP_GRO) if holds(size_of::<c_int>()) => {
                        let each = libc::CMSG_DATA(message).cast::<c_int>().read_unaligned();
                        notes.each = usize::try_from(each).ok().filter(|each| *each > 0);
                    }
                    _ => {}
                }
                message = libc::CMSG_NXTHDR(header, message);
            }
        }
        notes
    }
}

/// A change of the offset between two readings that no slewing brings about: 500 us.
const STEP_NS: i128 = 500_000;

/// Turns kernel stamps into the lab's time, by the offset between the clocks as it was when this was made: once per
/// batch.
pub struct ArrivalClock {
    clock: LabClock,
    /// `CLOCK_REALTIME` - `CLOCK_MONOTONIC`.
    offset_ns: i128,
    now: Time,
    /// `true` if the kernel's stamps cannot be used: the clock was set since the last reading.
    stepped: bool,
    /// Stamps from before this are of a clock that was set since, and cannot be used either.
    from: Time,
}

impl ArrivalClock {
    /// Reads both clocks. `before` is the offset at the last reading; where the new one is another by more than
    /// [`STEP_NS`] the clock was set in between, and datagrams that arrived meanwhile have no stamp that could be
    /// trusted. `from` is when the clock was last found set: other sockets may still hold datagrams from before.
    pub fn read(clock: LabClock, before: Option<i128>, from: Time) -> Self {
        // Between the two readings of one clock that lie nearest to each other, of a few.
        let (_, offset_ns) = (0..3)
            .map(|_| {
                let before = read(libc::CLOCK_MONOTONIC);
                let real = read(libc::CLOCK_REALTIME);
                let after = read(libc::CLOCK_MONOTONIC);
                (after - before, real - (before + after) / 2)
            })
            .min()
            .unwrap_or((0, 0));
        let stepped = before.is_some_and(|before| (offset_ns - before).abs() > STEP_NS);
        Self { clock, offset_ns, now: clock.now(), stepped, from }
    }

    /// The offset between both clocks, for the next reading.
    pub fn offset_ns(&self) -> i128 {
        self.offset_ns
    }

    /// Returns `true` if the clock was set.
    pub fn stepped(&self) -> bool {
        self.stepped
    }

    /// The lab's time at `stamp`; now, where the stamp cannot be used.
    pub fn at(&self, stamp: timespec) -> Time {
        if self.stepped {
            return self.now;
        }
        let monotonic = i128::from(stamp.tv_sec) * 1_000_000_000 + i128::from(stamp.tv_nsec) - self.offset_ns;
        let arrived = self.clock.at_monotonic_ns(u64::try_from(monotonic).unwrap_or(0));
        if arrived < self.from {
            return self.now;
        }
        arrived.min(self.now)
    }
}

fn read(clock: c_int) -> i128 {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec for the call to fill; these clocks always exist.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(datagrams: &[(u16, u32)]) -> SendQueue {
        let mut queue = SendQueue::default();
        for &(port, length) in datagrams {
            let to = SocketAddr::from(([10, 0, 0, 2], port));
            assert_eq!(queue.push(to, Chunk::Padded(&[1, 2], length - 2)), Ok(true));
        }
        queue
    }

    #[test]
    fn what_no_datagram_can_hold_is_not_taken_whoever_asks() {
        let mut queue = SendQueue::default();
        let to = SocketAddr::from(([10, 0, 0, 2], 1));
        assert_eq!(queue.push(to, Chunk::Filler(1 << 16)), Err(1 << 16));
        assert_eq!(queue.push(to, Chunk::Padded(&[1, 2], u32::MAX)), Err(u32::MAX as usize + 2));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_run_has_one_size_and_one_receiver_and_may_end_with_a_shorter_one() {
        let lengths = |datagrams: &[(u16, u32)]| {
            let queue = queue(datagrams);
            queue.run(0, datagrams.len())
        };
        assert_eq!(lengths(&[(1, 100), (1, 100), (1, 100)]), 3);
        assert_eq!(lengths(&[(1, 100), (1, 100), (2, 100)]), 2);
        assert_eq!(lengths(&[(1, 100), (1, 60), (1, 60)]), 2);
        assert_eq!(lengths(&[(1, 100), (1, 101)]), 1);
        assert_eq!(lengths(&[(1, 30_000); 4]), 2);
    }

    #[test]
    fn a_kernel_that_has_refused_runs_is_given_single_datagrams() {
        let mut queue = queue(&[(1, 100), (1, 100)]);
        let mut buffers = Buffers::new();
        assert_eq!((buffers.lay_out(&queue), buffers.runs[0]), (1, 2));
        queue.segments = false;
        assert_eq!((buffers.lay_out(&queue), buffers.runs[0]), (2, 1));
    }

    #[test]
    fn a_message_of_several_datagrams_is_taken_apart() {
        let message = Received {
            bytes: &[1, 1, 2, 2, 3],
            length: 5,
            each: 2,
            from: SocketAddr::from(([10, 0, 0, 1], 1)),
            arrived: Time::ZERO,
            dropped: None,
        };
        let parts: Vec<_> = (0..).map_while(|place| message.datagram(place)).collect();
        assert_eq!(parts, [(&[1, 1][..], 2), (&[2, 2][..], 2), (&[3][..], 1)]);
        let empty = Received { bytes: &[], length: 0, each: 1, ..message };
        assert_eq!((empty.datagram(0), empty.datagram(1)), (Some((&[][..], 0)), None));
    }

    #[test]
    fn stamps_of_a_clock_that_was_set_are_not_used() {
        let clock = LabClock::of_machine();
        let before = ArrivalClock::read(clock, None, Time::ZERO);
        assert!(!before.stepped() && !ArrivalClock::read(clock, Some(before.offset_ns()), Time::ZERO).stepped());
        let set = ArrivalClock::read(clock, Some(before.offset_ns() + 2 * STEP_NS), Time::ZERO);
        assert!(set.stepped());
        let long_ago = timespec { tv_sec: 1, tv_nsec: 0 };
        assert_eq!(set.at(long_ago), set.now);
        // Nor is one that waited in another socket when the clock was found set.
        let later = ArrivalClock::read(clock, Some(set.offset_ns()), set.now);
        assert!(!later.stepped());
        assert_eq!(later.at(long_ago), later.now);
    }
}
