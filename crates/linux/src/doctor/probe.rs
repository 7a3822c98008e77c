//! Running a probe in a forked child, in namespaces of its own where wanted.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::{pipe_with, PipeFlags};

/// Longest that a probe may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest answer of a probe, in bytes.
const ANSWER_BYTES: u64 = 16 << 10;
/// The answer that stands for a refusal begins with this.
const REFUSED: char = '!';

/// Runs `probe` in a child and gives its answer. With `namespaces` (`CLONE_NEW*` of unshare) the child first enters new
/// ones, with a user namespace among them in which it is root.
///
/// # Errors
/// The things that the machine did not permit, as text.
pub fn in_child(namespaces: i32, probe: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| error.to_string())?;
    // SAFETY: the child runs the probe and exits. The probe allocates, which glibc's and musl's `fork` permit in
    // the child of a process with threads: they take the allocator's locks before and free them after. No other
    // lock of the parent is used: probes print nothing and read no environment. Should a library hold one all the
    // same, the child waits in vain, and is killed for it.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error().to_string()),
        0 => {
            drop(reader);
            let answer = match enter(namespaces).and_then(|()| probe()) {
                Ok(answer) => answer,
                Err(error) => format!("{REFUSED}{error}"),
            };
            // An answer that cannot be written is missed by the parent, which reports so.
            let _ = File::from(writer).write_all(answer.as_bytes());
            // SAFETY: ends the child without running what belongs to the parent.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(writer);
            let answer = read_answer(reader, PATIENCE);
            // SAFETY: ends the child created above, which has answered or never will, and waits for it.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
            answer
        }
    }
}

fn read_answer(reader: OwnedFd, patience: Duration) -> Result<String, String> {
    let until = Instant::now() + patience;
    let mut answer = Vec::new();
    let mut reader = File::from(reader).take(ANSWER_BYTES);
    loop {
        let left =
            Timespec::try_from(until.saturating_duration_since(Instant::now())).map_err(|error| error.to_string())?;
        let mut watched = [PollFd::new(reader.get_ref(), PollFlags::IN)];
        match poll(&mut watched, Some(&left)) {
            Ok(0) => return Err(format!("the probe did not answer within {} s", patience.as_secs())),
            Err(Errno::INTR) => continue,
            outcome => outcome.map_err(|error| error.to_string())?,
        };
        let mut part = [0; 1024];
        match reader.read(&mut part).map_err(|error| error.to_string())? {
            0 => break,
            length => answer.extend_from_slice(&part[..length]),
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    match answer.strip_prefix(REFUSED) {
        Some(error) => Err(error.to_owned()),
        None if answer.is_empty() => Err("the probe ended without an answer".to_owned()),
        None => Ok(answer.into_owned()),
    }
}

fn enter(namespaces: i32) -> Result<(), String> {
    if namespaces == 0 {
        return Ok(());
    }
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // SAFETY: the child has one thread; its namespaces are its own affair.
    if unsafe { libc::unshare(namespaces | libc::CLONE_NEWUSER) } < 0 {
        return Err(format!("unshare: {}", io::Error::last_os_error()));
    }
    let map = |file: &str, content: String| {
        fs::write(format!("/proc/self/{file}"), content).map_err(|error| format!("{file}: {error}"))
    };
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("0 {user} 1\n"))?;
    map("gid_map", format!("0 {group} 1\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_refusals_cross_from_the_child() {
        assert_eq!(in_child(0, || Ok("well".to_owned())), Ok("well".to_owned()));
        assert_eq!(in_child(0, || Err("no".to_owned())), Err("no".to_owned()));
        assert_eq!(in_child(0, || Ok(String::new())), Err("the probe ended without an answer".to_owned()));
    }

    #[test]
    fn a_probe_that_hangs_is_given_up() {
        let (reader, _writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let answer = read_answer(reader, Duration::from_millis(20));
        assert_eq!(answer, Err("the probe did not answer within 0 s".to_owned()));
    }
}
