//! Real-time scheduling of the fabric's thread: asked for, watched and given up.

use std::io;

/// Name of the loop's thread, by which an owner finds it.
pub(crate) const THREAD_NAME: &str = "fabric";

/// Asks for `SCHED_FIFO` at the lowest priority for the calling thread. Inside a user namespace the kernel grants it only below
/// `RLIMIT_RTPRIO`; where that cannot be raised, the owner asks for it from outside: see [`promote`].
pub(crate) fn become_realtime() {
    // A refusal is seen by `is_realtime`, and told in the record of fidelity.
    let _ = schedule_fifo(0);
}

/// Whether the calling thread has real-time scheduling.
pub(crate) fn is_realtime() -> bool {
    // SAFETY: no pointers are passed; 0 means the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO
}

/// Gives up real-time scheduling. The thread keeps the highest share that an ordinary one has, where its owner gave it that.
pub(crate) fn give_up_realtime() {
    let parameter = libc::sched_param { sched_priority: 0 };
    // The flag stays: an ordinary thread may give up its policy, but not that flag.
    let policy = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter is valid and outlives the call; giving up is always granted then.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) };
}

/// Gives the fabric's thread of the lab process `pid` real-time scheduling, as a caller with the right to do so outside of the
/// lab's user namespace can; returns whether that was granted.
#[must_use]
pub fn promote(pid: i32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let promoted = |thread: libc::pid_t| {
        // Should it ever have to give up real-time scheduling, it keeps the highest share of an ordinary thread.
        // SAFETY: no pointers are passed.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, -20) };
        schedule_fifo(thread).is_ok()
    };
    threads
        .filter_map(Result::ok)
        .filter(|thread| {
            std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim_end() == THREAD_NAME)
        })
        .filter_map(|thread| thread.file_name().to_str()?.parse().ok())
        .any(promoted)
}

fn schedule_fifo(thread: libc::pid_t) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: 1 };
    // What the thread starts itself (the writers of captures) is not to run ahead of the hosts' programs.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter is valid and outlives the call.
    match unsafe { libc::sched_setscheduler(thread, policy, &raw const parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
