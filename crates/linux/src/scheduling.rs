//! Real-time scheduling of the fabric's thread: asked for, watched and given up.

use std::io;

use crate::agent;

/// Name of the loop's thread, by which an owner finds it.
pub(crate) const THREAD_NAME: &str = "fabric";

/// Niceness of the agent: the programs of hosts have 0.
const AGENT_NICENESS: i32 = -10;

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
/// lab's user namespace can; returns whether that was granted. The agent, whose apps send and receive by the clock too, goes before
/// ordinary programs from then on, but behind the fabric.
#[must_use]
pub fn promote(pid: i32) -> bool {
    // Should the fabric ever have to give up real-time scheduling, it keeps the highest share of an ordinary thread.
    let promoted = |thread: libc::pid_t| {
        favour(thread, -20);
        schedule_fifo(thread).is_ok()
    };
    threads_of(pid, agent::THREAD_NAME).for_each(|thread| favour(thread, AGENT_NICENESS));
    threads_of(pid, THREAD_NAME).any(promoted)
}

/// The threads of the process `pid` that have this name.
fn threads_of(pid: i32, name: &'static str) -> impl Iterator<Item = libc::pid_t> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok);
    threads
        .filter(move |thread| {
            std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
        })
        .filter_map(|thread| thread.file_name().to_str()?.parse().ok())
}

/// Sets the niceness of `thread`; where that is refused it stays as it is.
fn favour(thread: libc::pid_t, niceness: i32) {
    // SAFETY: no pointers are passed.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, niceness) };
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
