//! The zygote: a process with one thread, forked before the lab starts any other, from which the first process of each
//! host is made when it is needed. A process with threads could not safely do that.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};

use super::host::{self, HostSetUp};
use super::orders::HostOrder;
use crate::process::control::message::{self, Received};
use crate::process::start_up::{reap, set_title, signal_descriptor, waiting_signals};

/// The zygote as the lab holds it.
#[derive(Debug)]
pub struct Zygote {
    /// Its process.
    pub pid: i32,
    /// The socket that it takes orders from; its end is the zygote's end.
    pub socket: OwnedFd,
}

/// Forks the zygote. `close` are descriptors of the lab that it must not hold.
///
/// # Errors
/// The error of the kernel.
///
/// # Safety
/// The process must have one thread only.
pub unsafe fn fork(close: &[&OwnedFd]) -> io::Result<Zygote> {
    let (socket, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // SAFETY: the caller vouches that there is one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            for descriptor in close.iter().copied().chain([&socket]) {
                // SAFETY: this process never returns to the owners of these descriptors.
                unsafe { libc::close(descriptor.as_raw_fd()) };
            }
            let served = serve(&there);
            // SAFETY: ends the process without running what belongs to the lab.
            unsafe { libc::_exit(i32::from(served.is_err())) }
        }
        pid => Ok(Zygote { pid, socket }),
    }
}

/// Takes orders until the lab closes its end.
fn serve(socket: &OwnedFd) -> io::Result<()> {
    set_title("twinnet: programs");
    let signals = signal_descriptor(&[libc::SIGCHLD])?;
    let mut buffer = vec![0; message::PACKET_BYTES];
    loop {
        let mut watched = [PollFd::new(socket, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        // An interrupted wait finds nothing ready.
        let _ = rustix::event::poll(&mut watched, None);
        let (order, child) = (!watched[0].revents().is_empty(), !watched[1].revents().is_empty());
        if child {
            waiting_signals(&signals);
            reap();
        }
        if !order {
            continue;
        }
        match message::receive(socket.as_fd(), &mut buffer)? {
            Received::End => return Ok(()),
            Received::Nothing | Received::Malformed { .. } => {}
            Received::Message(received) => {
                let Ok(order) = serde_json::from_slice::<HostOrder>(&received.text) else { continue };
                let Ok([network, socket_of_host, hosts]) = <[OwnedFd; 3]>::try_from(received.descriptors) else {
                    continue;
                };
                start_host(HostSetUp {
                    name: order.host,
                    network,
                    socket: socket_of_host,
                    hosts,
                    processor: None,
                    image: order.image,
                    groups: order.groups,
                });
            }
        }
    }
}

/// Makes the first process of a host, in new PID, mount and UTS namespaces.
pub(crate) fn start_host(set_up: HostSetUp) {
    // SAFETY: all zeros is a valid `clone_args`.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = (libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWUTS) as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: this process has one thread, so the child may go on as after a fork. What `fork` does beside the
    // system call is not missed: no lock can be held by another thread, nothing here registers fork handlers, and
    // the thread's number that glibc remembers is used by neither mutexes of the kinds in use nor by signals that
    // processes send each other.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) } {
        -1 => host::tell_failure(&set_up, &io::Error::last_os_error()),
        0 => host::run(set_up),
        _ => {}
    }
}

/// Keeps `socket` and the standard descriptors of this process and closes all others.
///
/// # Errors
/// The error of the kernel.
pub fn keep_only(socket: OwnedFd) -> io::Result<OwnedFd> {
    const PLACE: i32 = 3;
    // SAFETY: nothing in this process uses the descriptors that are closed: it is a fork that never returns.
    unsafe {
        let descriptor = std::os::fd::IntoRawFd::into_raw_fd(socket);
        if descriptor != PLACE && libc::dup3(descriptor, PLACE, libc::O_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::close_range(PLACE as libc::c_uint + 1, libc::c_uint::MAX, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(PLACE))
    }
}
