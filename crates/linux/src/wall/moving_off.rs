//! Programs that wait behind a loop which needs all of its processor are moved to another one.
//!
//! Linux leaves them there. It takes a thread that ran within the last half millisecond for one whose data are in that
//! processor's cache, and such a program runs for a moment in each break of the loop: a receiver was seen to wait for
//! nine tenths of ten seconds while another processor had nothing to do for a third of them.

use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};

/// Moves `thread` off `processor`, if it waits there and may run elsewhere. Where it may run stays as it was: it is
/// changed for two system calls, and a thread that changes it itself just then is the one case that loses.
pub(super) fn move_off(thread: i32, processor: i32) {
    let (Some(thread), Ok(processor)) = (Pid::from_raw(thread), usize::try_from(processor)) else { return };
    // One that has ended, or that belongs to another user, stays as it is.
    let Ok(allowed) = sched_getaffinity(Some(thread)) else { return };
    let mut others = allowed;
    others.unset(processor);
    if allowed.is_set(processor) && others.count() > 0 && sched_setaffinity(Some(thread), &others).is_ok() {
        let _ = sched_setaffinity(Some(thread), &allowed);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::thread::CpuSet;

    use super::*;

    fn processor_of(pid: u32) -> i32 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // The 39th field, of which the first two end with the bracket (proc(5)).
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(36).unwrap().parse().unwrap()
    }

    #[test]
    fn a_busy_program_leaves_the_processor_and_may_return_unless_it_is_bound_to_it() {
        let mut program = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = i32::try_from(program.id()).unwrap();
        let thread = Pid::from_raw(pid);
        let allowed = sched_getaffinity(thread).unwrap();
        if allowed.count() > 1 {
            // Linux may bring it back at any time.
            let left = (0..1000).any(|_| {
                let at = processor_of(program.id());
                move_off(pid, at);
                processor_of(program.id()) != at
            });
            assert!(left);
            assert_eq!(sched_getaffinity(thread).unwrap(), allowed);
        }
        let here = usize::try_from(processor_of(program.id())).unwrap();
        let mut only = CpuSet::new();
        only.set(here);
        sched_setaffinity(thread, &only).unwrap();
        move_off(pid, i32::try_from(here).unwrap());
        assert_eq!(sched_getaffinity(thread).unwrap(), only, "its user has bound it");
        program.kill().unwrap();
        program.wait().unwrap();
        move_off(pid, 0);
    }
}
