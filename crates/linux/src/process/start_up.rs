//! The first steps of a lab process: it makes itself at home in its namespaces.

use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::mount::{mount, mount_change, MountFlags, MountPropagationFlags};

use crate::service::{ErrorName, LabError};

/// Makes mounts private and gives the PID namespace its own `/proc`.
///
/// # Errors
/// `ProcNotMounted` where something lies over parts of the machine's `/proc`, as container engines do.
pub fn mount_own_proc() -> Result<(), LabError> {
    let refuse = |what: &str, error: rustix::io::Errno| {
        let remedy = "container engines mask parts of /proc, and the kernel then permits no fresh one: \
            start the container with --security-opt systempaths=unconfined (Docker, Podman: unmask=ALL), or run \
            outside of it";
        LabError::new(ErrorName::ProcNotMounted, format!("{what}: {error}"), remedy)
    };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| refuse("making the lab's mounts private", error))?;
    mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
        .map_err(|error| refuse("mounting /proc in the lab's PID namespace", error))
}

/// Forgets how the interpreter handles signals: all are as in a fresh process, save those that the lab ignores.
pub fn reset_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: setting a disposition to the default; the kernel refuses what cannot be set.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    for signal in [libc::SIGINT, libc::SIGPIPE, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: as above.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Blocks `signals` in this thread and those it starts, and gives a descriptor that tells them.
///
/// # Errors
/// The error of the kernel.
pub fn signal_descriptor(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is used; the descriptor is fresh.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// The signals that wait in a descriptor of [`signal_descriptor`].
pub fn waiting_signals(descriptor: &OwnedFd) -> Vec<i32> {
    let mut record = [0; size_of::<libc::signalfd_siginfo>()];
    let mut signals = Vec::new();
    while let Ok(length) = rustix::io::read(descriptor, &mut record) {
        if length < record.len() {
            break;
        }
        signals.push(i32::from_ne_bytes([record[0], record[1], record[2], record[3]]));
    }
    signals
}

/// Children of this process that have ended, with their wait status; none is left waiting.
pub fn reap() -> Vec<(i32, i32)> {
    wait_for_children(libc::WNOHANG)
}

/// Takes the news of children: those that ended, with their status, and those that were stopped or go on.
pub fn news_of_children() -> Vec<(i32, i32)> {
    wait_for_children(libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED)
}

fn wait_for_children(options: i32) -> Vec<(i32, i32)> {
    let mut news = Vec::new();
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid for the kernel to fill.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, options) };
        if pid <= 0 {
            return news;
        }
        news.push((pid, status));
    }
}

/// Lets the process have as many files open as it is permitted to.
pub fn raise_open_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for the kernel to fill and to read.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Shows `title` as the name and the command line of this process.
pub fn set_title(title: &str) {
    let mut short: Vec<u8> = title.bytes().take(15).collect();
    short.push(0);
    // SAFETY: the text ends with a zero byte.
    unsafe { libc::prctl(libc::PR_SET_NAME, short.as_ptr()) };
    let Some((start, length)) = command_line_place() else { return };
    let shown = title.len().min(length - 1);
    // SAFETY: the kernel says that our command line lies there; it is writable memory of the first stack frame that
    // nobody else reads in this process, since the interpreter has copied it.
    unsafe {
        let place = start as *mut u8;
        std::ptr::write_bytes(place, 0, length);
        std::ptr::copy_nonoverlapping(title.as_ptr(), place, shown);
    }
}

/// Returns where the kernel reads the command line from: fields 48 and 49 of `/proc/self/stat`.
fn command_line_place() -> Option<(usize, usize)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.get(stat.rfind(')')? + 2..)?.split_whitespace().skip(45);
    let start: usize = fields.next()?.parse().ok()?;
    let end: usize = fields.next()?.parse().ok()?;
    (start > 0 && end > start + 1).then_some((start, end - start))
}
