//! A wall round the process of a guest's kernel: on the machine it writes in its own folder only, and starts nothing.
//!
//! The kernel itself refuses each write to a file of the machine, and no program in it asks the machine for anything
//! else. This is for the program that finds a fault in the kernel, whose process has the rights of the lab's owner. It
//! is Landlock (`landlock(7)`, Linux 5.13), which needs no rights. A machine without it has the first wall alone.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::kernel::interface::check;

/// `LANDLOCK_CREATE_RULESET_VERSION`.
const ASK_FOR_VERSION: u32 = 1;
/// `LANDLOCK_RULE_PATH_BENEATH`.
const BENEATH: u32 = 1;

/// `LANDLOCK_ACCESS_FS_…`.
mod right {
    pub const EXECUTE: u64 = 1;
    pub const WRITE_FILE: u64 = 1 << 1;
    /// Removing, and making files of each kind.
    pub const CHANGE_FOLDERS: u64 = 0x1ff << 4;
    /// Since version 2.
    pub const REFER: u64 = 1 << 13;
    /// Since version 3.
    pub const TRUNCATE: u64 = 1 << 14;
}
/// Binding and connecting sockets of TCP, since version 4.
const TCP: u64 = 0b11;
/// Sockets with abstract names, and signals to processes outside, since version 6.
const OUTSIDE: u64 = 0b11;

/// `struct landlock_ruleset_attr`.
#[repr(C)]
struct Handled {
    files: u64,
    network: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Rule {
    allowed: u64,
    parent: i32,
}

/// What a process may still do on the machine once it has entered.
pub struct Wall(Option<OwnedFd>);

impl Wall {
    /// One in which `programs` may be started, and files in `folders` written.
    ///
    /// # Errors
    /// The error of the machine, which has Landlock.
    pub fn round(programs: &[&Path], folders: &[&Path]) -> io::Result<Self> {
        // SAFETY: plain system calls with valid arguments; the results are checked.
        let version = unsafe {
            libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<Handled>(), 0usize, ASK_FOR_VERSION)
        };
        let (files, length) = match version {
            ..=0 => {
                tracing::debug!("this machine has no Landlock");
                return Ok(Self(None));
            }
            1 => (0, 8),
            2 => (right::REFER, 8),
            3 => (right::REFER | right::TRUNCATE, 8),
            4..=5 => (right::REFER | right::TRUNCATE, 16),
            6.. => (right::REFER | right::TRUNCATE, 24),
        };
        let writing = files | right::WRITE_FILE | right::CHANGE_FOLDERS;
        let handled = Handled { files: writing | right::EXECUTE, network: TCP, scoped: OUTSIDE };
        // SAFETY: as above; the length is within the structure.
        let rules = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, length, 0u32) };
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        let rules = unsafe { OwnedFd::from_raw_fd(check(i32::try_from(rules).unwrap_or(-1))?) };
        let allow = |path: &Path, allowed: u64| {
            let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            let rule = Rule { allowed, parent: place.as_raw_fd() };
            // SAFETY: as above; the descriptors are open.
            let added = unsafe {
                libc::syscall(libc::SYS_landlock_add_rule, rules.as_raw_fd(), BENEATH, &raw const rule, 0u32)
            };
            check(i32::try_from(added).unwrap_or(-1)).map(drop)
        };
        for program in programs {
            allow(program, right::EXECUTE)?;
        }
        // Its consoles swallow what they are told.
        allow(Path::new("/dev/null"), right::WRITE_FILE)?;
        for folder in folders {
            allow(folder, writing)?;
        }
        Ok(Self(Some(rules)))
    }

    /// The calling process, and all that it starts, is inside from now on, and gets no rights by starting programs. It
    /// only makes system calls, so it may be called between fork and exec.
    ///
    /// # Errors
    /// The error of the machine.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: plain system calls with valid arguments.
        unsafe {
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            if let Some(rules) = &self.0 {
                let entered = libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0u32);
                check(i32::try_from(entered).unwrap_or(-1))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_inside_writes_in_its_folder_only_and_starts_no_other_program() {
        let all = std::env::temp_dir().join(format!("twinnet-wall-{}", std::process::id()));
        let own = all.join("own");
        fs::create_dir_all(&own).expect("a folder");
        fs::write(all.join("there"), "before\n").expect("a file");
        let wall = || Wall::round(&[Path::new("/bin/sh"), Path::new("/lib64/ld-linux-x86-64.so.2")], &[&own]);
        if wall().expect("a wall").0.is_none() {
            return;
        }
        let done = |script: &str| {
            let wall = wall().expect("a wall");
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).current_dir(&all).stderr(std::process::Stdio::null());
            // SAFETY: only system calls are made between fork and exec.
            unsafe { command.pre_exec(move || wall.enter()) };
            command.status().expect("a shell").success()
        };
        assert!(done("echo inside >own/file && echo nothing >/dev/null && read word <there"));
        for outside in ["echo outside >there", "echo outside >>there", "echo outside >new", "/bin/true"] {
            assert!(!done(outside), "{outside}");
        }
        assert_eq!(fs::read_to_string(all.join("there")).expect("the file"), "before\n");
        fs::remove_dir_all(&all).expect("the folder");
    }
}
