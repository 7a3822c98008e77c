//! What arrives at ports between switches, written to the interfaces that stand for their senders, so that programs of
//! the machine see it there: captures, and the kernel's counters.
//!
//! A thread of its own writes, behind all that moves the network. What it has no time for is left out and counted.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

use twinnet_fabric::PortId;
use twinnet_packet::Frame;

use crate::kernel::device::{describe, VirtioNetHeader};

/// Name of the thread, by which an owner finds it.
const THREAD_NAME: &str = "shown";
/// Bytes that may wait for the thread; frames beyond are left out.
const WAITING_BYTES: u64 = 8 << 20;
/// Frames that are given to the thread, and by it to the kernel, together at most.
const BATCH: usize = 64;
/// The thread gives way to each other thread.
const NICENESS: i32 = 19;

/// A frame, and where it is to be seen: the number of a socket, and the index of an interface there.
struct Copied {
    socket: usize,
    index: u32,
    frame: Frame,
}

/// What the thread is told.
enum Told {
    /// It has one socket more.
    Socket(OwnedFd),
    Frames(Vec<Copied>),
}

/// What both sides count.
#[derive(Default)]
struct Counts {
    waiting_bytes: AtomicU64,
    frames: AtomicU64,
    left_out: AtomicU64,
}

/// The loop's side.
#[derive(Default)]
pub(crate) struct Shown {
    /// The socket and the interface for what arrives at a port.
    of_port: HashMap<PortId, (usize, u32)>,
    sockets: usize,
    thread: Option<Sender<Told>>,
    batch: Vec<Copied>,
    counts: Arc<Counts>,
}

impl Shown {
    /// Writes what arrives at each of `ports` to the interface with the index beside it, by `socket`: a packet socket
    /// with headers of offloads.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn add(&mut self, ports: impl Iterator<Item = (PortId, u32)>, socket: OwnedFd) -> io::Result<()> {
        let thread = match &self.thread {
            Some(thread) => thread,
            None => self.thread.insert(start(Arc::clone(&self.counts))?),
        };
        self.of_port.extend(ports.map(|(port, index)| (port, (self.sockets, index))));
        self.sockets += 1;
        // A thread that has failed is seen by what it leaves out.
        let _ = thread.send(Told::Socket(socket));
        Ok(())
    }

    /// `frame` has arrived at `port`.
    pub(crate) fn see(&mut self, port: PortId, frame: &Frame) {
        let Some((socket, index)) = self.of_port.get(&port).copied() else { return };
        let bytes = frame.bytes.len() as u64;
        if self.counts.waiting_bytes.load(Ordering::Relaxed) + bytes > WAITING_BYTES {
            self.counts.left_out.fetch_add(frame.frames(), Ordering::Relaxed);
            return;
        }
        self.counts.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.batch.push(Copied { socket, index, frame: frame.clone() });
        if self.batch.len() >= BATCH {
            self.flush();
        }
    }

    /// Gives the thread what was gathered. Called by the loop before it sleeps.
    pub(crate) fn flush(&mut self) {
        if let (false, Some(thread)) = (self.batch.is_empty(), &self.thread) {
            let next = Vec::with_capacity(self.batch.len());
            let _ = thread.send(Told::Frames(std::mem::replace(&mut self.batch, next)));
        }
    }

    /// How many frames were written, and how many were not.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counts.frames.load(Ordering::Relaxed), self.counts.left_out.load(Ordering::Relaxed))
    }
}

fn start(counts: Arc<Counts>) -> io::Result<Sender<Told>> {
    let (tell, told) = channel();
    std::thread::Builder::new().name(THREAD_NAME.into()).spawn(move || run(&told, &counts))?;
    Ok(tell)
}

fn run(told: &Receiver<Told>, counts: &Counts) {
    // SAFETY: no pointers are passed; 0 stands for this thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
    let mut sockets = Vec::new();
    for one in told {
        match one {
            Told::Socket(socket) => sockets.push(socket),
            Told::Frames(mut frames) => {
                for Copied { frame, .. } in &mut frames {
                    let filled = frame.bytes.len() + std::mem::take(&mut frame.elided) as usize;
                    counts.waiting_bytes.fetch_sub(frame.bytes.len() as u64, Ordering::Relaxed);
                    frame.bytes.resize(filled, 0);
                    // A program that captures is to see what is on the wire.
                    if frame.frames() == 1 {
                        frame.finish_checksum();
                    }
                }
                for same in frames.chunk_by(|one, other| one.socket == other.socket) {
                    let Some(socket) = sockets.get(same[0].socket) else { continue };
                    write(socket, same, counts);
                }
            }
        }
    }
}

/// Writes `frames`. What the kernel refuses, for an interface that is down or gone, is left out.
fn write(socket: &OwnedFd, frames: &[Copied], counts: &Counts) {
    let headers: Vec<VirtioNetHeader> = frames.iter().map(|one| describe(&one.frame)).collect();
    let mut places: Vec<libc::sockaddr_ll> = frames.iter().map(|one| place(one.index)).collect();
    let part = |base: *const u8, length: usize| libc::iovec { iov_base: base.cast_mut().cast(), iov_len: length };
    let mut parts: Vec<[libc::iovec; 2]> = headers
        .iter()
        .zip(frames)
        .map(|(header, Copied { frame, .. })| {
            let header = part(ptr::from_ref(header).cast(), size_of::<VirtioNetHeader>());
            [header, part(frame.bytes.as_ptr(), frame.bytes.len())]
        })
        .collect();
    let mut messages: Vec<libc::mmsghdr> = parts
        .iter_mut()
        .zip(&mut places)
        .map(|(parts, place)| {
            // SAFETY: all zeros is a valid `mmsghdr`.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_name = ptr::from_mut(place).cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (parts.as_mut_ptr(), parts.len() as _);
            message
        })
        .collect();
    let mut done = 0;
    while done < messages.len() {
        let rest = &mut messages[done..];
        // SAFETY: each message points to an address, a header and a frame that outlive the call.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), rest.as_mut_ptr(), rest.len() as _, 0) };
        let sent = usize::try_from(sent).unwrap_or(0);
        let count = |counter: &AtomicU64, frames: &[Copied]| {
            counter.fetch_add(frames.iter().map(|one| one.frame.frames()).sum(), Ordering::Relaxed);
        };
        count(&counts.frames, &frames[done..done + sent]);
        done += sent;
        if sent == 0 {
            count(&counts.left_out, &frames[done..=done]);
            done += 1;
        }
    }
}

fn place(index: u32) -> libc::sockaddr_ll {
    // SAFETY: all zeros is a valid `sockaddr_ll`.
    let mut place: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    place.sll_family = libc::AF_PACKET as libc::c_ushort;
    place.sll_ifindex = index as i32;
    place
}
