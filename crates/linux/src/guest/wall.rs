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

/// Returns the version of the machine's Landlock; 0 or less: it has none.
fn version() -> i64 {
    // SAFETY: a plain system call with valid arguments.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<Handled>(), 0usize, ASK_FOR_VERSION) }
}

/// What a process may still do on the machine once it has entered.
pub struct Wall(Option<OwnedFd>);

impl Wall {
    /// One in which `programs` may be started, and files in `folders` written.
    ///
    /// # Errors
    /// The error of the machine, which has Landlock.
    pub fn round(programs: &[&Path], folders: &[&Path]) -> io::Result<Self> {
        let (files, length) = match version() {
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
        // SAFETY: a plain system call; the length is within the structure.
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

    /// What `deed`, a system call, comes to in a process of its own, which is behind a wall or is not.
    fn tried(behind: bool, deed: impl Fn() -> i64 + Send + Sync + 'static) -> io::Result<()> {
        let wall = Wall::round(&[Path::new("/bin/true")], &[])?;
        let mut command = Command::new("/bin/true");
        let all = move || {
            if behind {
                wall.enter()?;
            }
            // The error comes out of `spawn`; a deed that is done ends the process as a program that is missing.
            check(i32::try_from(deed()).unwrap_or(-1))?;
            Err(io::Error::from_raw_os_error(libc::ENOEXEC))
        };
        // SAFETY: only system calls are made between fork and exec.
        unsafe { command.pre_exec(all) };
        match command.spawn() {
            Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => unreachable!("the last step always fails"),
        }
    }

    fn denied(name: &str, error: i32, deed: impl Fn() -> i64 + Send + Sync + Copy + 'static) {
        tried(false, deed).unwrap_or_else(|error| panic!("{name} is not possible without a wall either: {error}"));
        assert_eq!(tried(true, deed).expect_err(name).raw_os_error(), Some(error), "{name}");
    }

    /// Calls `with`, `bind` or `connect`, for a new socket of TCP and an address of the loopback interface.
    fn tcp(with: unsafe extern "C" fn(i32, *const libc::sockaddr, u32) -> i32, port: u16) -> i64 {
        let address = libc::sockaddr_in {
            sin_family: libc::AF_INET as u16,
            sin_port: port.to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from(std::net::Ipv4Addr::LOCALHOST).to_be() },
            sin_zero: [0; 8],
        };
        // SAFETY: plain system calls; the address is as long as is said.
        unsafe {
            let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
            with(socket, (&raw const address).cast(), size_of_val(&address) as u32).into()
        }
    }

    #[test]
    fn a_process_inside_opens_no_connection_by_tcp_and_listens_for_none() {
        if version() < 4 {
            return;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let port = listener.local_addr().expect("its address").port();
        denied("connecting", libc::EACCES, move || tcp(libc::connect, port));
        denied("binding", libc::EACCES, || tcp(libc::bind, 0));
    }

    #[test]
    fn a_process_inside_sends_no_signal_outside_and_looks_into_no_process_there() {
        let mut command = Command::new("/bin/sleep");
        // Where only ancestors may look into a process otherwise (Yama), any may into this one.
        // SAFETY: only a system call is made between fork and exec.
        unsafe {
            command
                .arg("60")
                .pre_exec(|| check(libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY)).map(drop).or(Ok(())));
        }
        let mut outside = command.spawn().expect("a process");
        let process = outside.id() as i32;
        if version() >= 6 {
            // SAFETY: as above; the signal does nothing to a process that runs.
            denied("sending a signal", libc::EPERM, move || unsafe { libc::kill(process, libc::SIGCONT).into() });
        }
        if version() >= 1 {
            // SAFETY: as above; whoever ends lets go of what it looks into.
            denied("looking into a process", libc::EPERM, move || unsafe {
                libc::ptrace(libc::PTRACE_SEIZE, process, 0, 0)
            });
        }
        outside.kill().expect("its end");
        outside.wait().expect("its end");
    }

    #[test]
    fn a_process_inside_reaches_no_socket_by_an_abstract_name() {
        if version() < 6 {
            return;
        }
        use std::os::linux::net::SocketAddrExt;
        let name = format!("twinnet-wall-{}", std::process::id());
        let at = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a name");
        let _listener = std::os::unix::net::UnixListener::bind_addr(&at).expect("a listener");
        let length = size_of::<libc::sa_family_t>() + 1 + name.len();
        // SAFETY: an address of zeros is one.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as u16;
        for (place, byte) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        denied("connecting", libc::EPERM, move || {
            // SAFETY: plain system calls; the address is as long as is said.
            unsafe {
                let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
                libc::connect(socket, (&raw const address).cast(), length as u32).into()
            }
        });
    }
}
