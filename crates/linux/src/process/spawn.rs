//! The owner's side: how a lab process is started from any process, threads or not.

use std::ffi::{c_char, CString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
use rustix::pipe::{pipe_with, PipeFlags};

use super::child::{self, Prepared};
use super::names;
use crate::service::{ErrorName, LabError};

/// The code that Python runs in the lab process: it loads the extension by its path and hands over to it. Neither
/// site-packages nor the environment is looked at (`-I -S`), so that nothing but the extension can go wrong. Code that
/// is brought along later finds it under its own name.
const BOOTSTRAP: &str = "import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
loader = ExtensionFileLoader('_core', sys.argv[3])
core = loader.create_module(ModuleSpec('_core', loader, origin=sys.argv[3]))
loader.exec_module(core)
sys.modules['twinnet._core'] = core
core.lab_main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[4])
";

/// Highest real-time priority that the lab may ask for.
const REAL_TIME_PRIORITY: u64 = 99;
/// Open files that a lab of a real root may have, where the system's own limit permits.
const OPEN_FILES: u64 = 1 << 20;

/// A lab process as its owner holds it. The process ends when `control` is closed.
#[derive(Debug)]
pub struct LabHandle {
    /// Its process identifier.
    pub pid: i32,
    /// A descriptor of the process, to wait on.
    pub pidfd: OwnedFd,
    /// The owner's socket.
    pub control: OwnedFd,
    /// The lab's name.
    pub name: String,
}

/// Starts a lab process: the first process of new user, PID, mount, network, IPC and UTS namespaces. `python` is the
/// interpreter, `module` the file of the extension module.
///
/// # Errors
/// A name that is taken, or what the machine does not permit, with the remedy.
pub fn spawn_lab(name: Option<&str>, python: &Path, module: &Path) -> Result<LabHandle, LabError> {
    let (name, listener) = names::claim(name)?;
    let refuse = |what: &'static str| move |error: io::Error| refused(what, &error);
    let (control, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|error| refused("opening a socket", &error.into()))?;
    let (go, go_writer) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| refused("opening a pipe", &error.into()))?;
    let (status_reader, status) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|error| refused("opening a pipe", &error.into()))?;
    let program = text(python.as_os_str().as_bytes())?;
    let arguments = [
        program.clone(),
        text(b"-I")?,
        text(b"-S")?,
        text(b"-c")?,
        text(BOOTSTRAP.as_bytes())?,
        text(child::CONTROL.to_string().as_bytes())?,
        text(child::LISTENER.to_string().as_bytes())?,
        text(module.as_os_str().as_bytes())?,
        text(name.as_bytes())?,
    ];
    let mut pointers: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let environment = environment()?;
    let mut environment_pointers: Vec<*const c_char> = environment.iter().map(|variable| variable.as_ptr()).collect();
    environment_pointers.push(std::ptr::null());
    let prepared = Prepared {
        program: &program,
        arguments: &pointers,
        environment: environment_pointers.as_ptr(),
        control: there.as_raw_fd(),
        listener: listener.as_raw_fd(),
        go: go.as_raw_fd(),
        go_writer: go_writer.as_raw_fd(),
        status: status.as_raw_fd(),
    };
    let (pid, pidfd) = clone_into_namespaces(&prepared).map_err(|error| namespaces_refused(&error))?;
    drop((there, listener, go, status));
    let finish = || -> Result<(), LabError> {
        write_identity_maps(pid).map_err(refuse("writing the identity maps of the lab's user namespace"))?;
        raise_limits(pid);
        rustix::io::write(&go_writer, &[1]).map_err(|error| refused("starting the lab process", &error.into()))?;
        await_program(&status_reader, python)
    };
    if let Err(error) = finish() {
        // Its end of the pipes tells the child to exit, if it has not.
        drop((go_writer, control));
        // SAFETY: waits for a child that this function created.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) };
        return Err(error);
    }
    Ok(LabHandle { pid, pidfd, control, name })
}

fn clone_into_namespaces(prepared: &Prepared<'_>) -> io::Result<(i32, OwnedFd)> {
    let mut pidfd: i32 = -1;
    // SAFETY: all zeros is a valid `clone_args`.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    let namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    arguments.flags = (namespaces | libc::CLONE_PIDFD) as u64;
    arguments.pidfd = (&raw mut pidfd) as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    // Until the new program has taken them over, no signal reaches the child: its copy of the owner's handlers
    // would act on what both share, Python's on the pipe that wakes its main thread. The program begins with all
    // blocked; `start_up::signal_descriptor` sets its own mask.
    let before = block_signals();
    // SAFETY: without CLONE_VM this is a fork; the child runs only what is safe after one (see `child`): it neither
    // allocates nor locks, so that the fork handlers which the bare system call passes over have nothing to
    // prepare.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
    if pid == 0 {
        child::run(prepared);
    }
    let outcome = if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) };
    // SAFETY: the mask is the one that this thread had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    let pid = outcome?;
    // SAFETY: the kernel has just opened this descriptor for us.
    Ok((pid as i32, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// Blocks all signals in this thread, and gives the mask that it had.
pub(crate) fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are initialised before they are read: by sigfillset, and by the call that gives the old one.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

/// Maps identities into the lab: all of them where the caller may (programs can then change user), or else the caller
/// alone, as root of the lab.
fn write_identity_maps(pid: i32) -> io::Result<()> {
    let place = |file: &str| format!("/proc/{pid}/{file}");
    let identity = |file: &str| -> io::Result<String> {
        let own = fs::read_to_string(format!("/proc/self/{file}"))?;
        let ranges = own.lines().filter_map(|line| {
            let mut fields = line.split_whitespace();
            let (first, _, count) = (fields.next()?, fields.next()?, fields.next()?);
            Some(format!("{first} {first} {count}\n"))
        });
        Ok(ranges.collect())
    };
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if user == 0 && fs::write(place("uid_map"), identity("uid_map")?).is_ok() {
        return fs::write(place("gid_map"), identity("gid_map")?);
    }
    fs::write(place("setgroups"), "deny")?;
    fs::write(place("uid_map"), format!("0 {user} 1\n"))?;
    fs::write(place("gid_map"), format!("0 {group} 1\n"))
}

/// Raises limits while it can still be done: inside the user namespace nobody has the right to. What is refused is left
/// as it is; `doctor` and the lab's own start tell what follows.
fn raise_limits(pid: i32) {
    let highest =
        fs::read_to_string("/proc/sys/fs/nr_open").ok().and_then(|text| text.trim().parse().ok()).unwrap_or(OPEN_FILES);
    for (resource, wanted) in
        [(libc::RLIMIT_RTPRIO, REAL_TIME_PRIORITY), (libc::RLIMIT_NOFILE, OPEN_FILES.min(highest))]
    {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is valid for the kernel to fill and to read.
        unsafe {
            if libc::prlimit(pid, resource, std::ptr::null(), &raw mut limit) != 0 || limit.rlim_max >= wanted {
                continue;
            }
            // Programs inherit the soft limit of open files, so it stays: many walk through all numbers below it.
            let soft = if resource == libc::RLIMIT_NOFILE { limit.rlim_cur } else { wanted };
            let raised = libc::rlimit { rlim_cur: soft, rlim_max: wanted };
            libc::prlimit(pid, resource, &raw const raised, std::ptr::null_mut());
        }
    }
}

/// Waits until the child has become `python`, or has told why not.
fn await_program(status: &OwnedFd, python: &Path) -> Result<(), LabError> {
    let mut error = [0; 4];
    loop {
        match rustix::io::read(status, &mut error) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(4) => {
                let error = io::Error::from_raw_os_error(i32::from_ne_bytes(error));
                let message = format!("starting {} in the lab process: {error}", python.display());
                return Err(LabError::new(
                    ErrorName::LabNotStarted,
                    message,
                    "the interpreter must be a file that its user can execute",
                ));
            }
            _ => return Ok(()),
        }
    }
}

fn environment() -> Result<Vec<CString>, LabError> {
    std::env::vars_os().map(|(name, value)| text(&[name.as_bytes(), b"=", value.as_bytes()].concat())).collect()
}

fn text(bytes: &[u8]) -> Result<CString, LabError> {
    CString::new(bytes).map_err(|_| LabError::new(ErrorName::LabNotStarted, "a path or variable holds a zero byte", ""))
}

fn refused(what: &str, error: &io::Error) -> LabError {
    LabError::new(
        ErrorName::LabNotStarted,
        format!("{what}: {error}"),
        "run `twinnet doctor` to see what this machine permits",
    )
}

fn namespaces_refused(error: &io::Error) -> LabError {
    let remedy = match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EUSERS) => {
            "raise the limits user.max_user_namespaces and user.max_net_namespaces (sysctl)"
        }
        Some(libc::EPERM | libc::EACCES) => {
            "let users create user namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian), \
             kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, a seccomp profile that permits \
             clone3 and unshare"
        }
        _ => "run `twinnet doctor` to see what this machine permits",
    };
    LabError::new(ErrorName::NamespacesRefused, format!("creating the lab's namespaces: {error}"), remedy)
}
