//! Starting one program in the host that the calling process stands in.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::loader::loader_of;
use super::orders::ProgramOrder;
use crate::service::{ErrorName, LabError};

/// Starts the program with `descriptors` as its standard ones (or the one as its terminal); gives its process.
///
/// # Errors
/// `ProgramNotFound` (a shell's status 127), `ProgramNotExecutable` (126), `NoSuchDirectory`, `BadDescriptors`.
pub fn start(order: &ProgramOrder, descriptors: Vec<OwnedFd>) -> Result<i32, LabError> {
    let Some((name, arguments)) = order.argv.split_first().filter(|(name, _)| !name.is_empty()) else {
        return Err(LabError::new(ErrorName::ProgramNotFound, "argv is empty", "name a program"));
    };
    if let Some(directory) = order.cwd.as_deref().filter(|directory| !Path::new(directory).is_dir()) {
        return Err(LabError::new(
            ErrorName::NoSuchDirectory,
            format!("{directory:?} is not a directory"),
            "a host sees the files of the machine, or those of its image",
        ));
    }
    let mut command = Command::new(name);
    command.args(arguments);
    if let Some(variables) = &order.env {
        command.env_clear().envs(variables);
    }
    if let Some(directory) = &order.cwd {
        command.current_dir(directory);
    }
    let terminal = order.terminal;
    connect(&mut command, terminal, descriptors)?;
    if !terminal {
        command.process_group(0);
    }
    let prepare = move || {
        for signal in 1..=libc::SIGRTMAX() {
            // SAFETY: setting a disposition to the default is safe after a fork; the kernel refuses what cannot be set.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        if terminal {
            // SAFETY: both calls are safe after a fork; descriptor 0 is the terminal.
            unsafe {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        // Last, when what a signal does is what it does to the program: nothing of this process runs for it.
        // SAFETY: the set is initialised by sigemptyset; both calls are safe after a fork.
        unsafe {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        }
        Ok(())
    };
    // SAFETY: `prepare` makes system calls only, and this process has one thread.
    unsafe { command.pre_exec(prepare) };
    match command.spawn() {
        Ok(child) => Ok(child.id() as i32),
        Err(error) => Err(refusal(name, file_of(name, order), &error)),
    }
}

fn connect(command: &mut Command, terminal: bool, descriptors: Vec<OwnedFd>) -> Result<(), LabError> {
    let expected = if terminal { 1 } else { 3 };
    let came = descriptors.len();
    let refuse = || {
        let message = format!("{came} descriptors came with the program; {expected} are needed");
        LabError::new(
            ErrorName::BadDescriptors,
            message,
            "send stdin, stdout and stderr, or with \"terminal\" the terminal alone",
        )
    };
    let mut descriptors = descriptors.into_iter();
    let first = descriptors.next().ok_or_else(refuse)?;
    let (second, third) = if terminal {
        let copy = || first.try_clone().map_err(|error| refusal("the terminal", None, &error));
        (copy()?, copy()?)
    } else {
        (descriptors.next().ok_or_else(refuse)?, descriptors.next().ok_or_else(refuse)?)
    };
    if descriptors.next().is_some() {
        return Err(refuse());
    }
    command.stdin(Stdio::from(first)).stdout(Stdio::from(second)).stderr(Stdio::from(third));
    Ok(())
}

/// The file that a program of that name would be, in the folders of `PATH` when it is a bare name.
fn file_of(name: &str, order: &ProgramOrder) -> Option<PathBuf> {
    if name.contains('/') {
        let folder = order.cwd.as_deref().unwrap_or(".");
        return Some(Path::new(folder).join(name)).filter(|file| file.is_file());
    }
    let given = order.env.as_ref().and_then(|variables| variables.get("PATH").cloned());
    let folders = given.or_else(|| std::env::var("PATH").ok())?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn refusal(name: &str, file: Option<PathBuf>, error: &io::Error) -> LabError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) if file.is_some() => match file.as_deref().and_then(loader_of) {
            Some(loader) => LabError::new(
                ErrorName::ProgramNotExecutable,
                format!("{name:?}: its loader {} is not here: it is built for another C library", loader.display()),
                "install that C library, or a program that is built for this machine's",
            ),
            None => LabError::new(
                ErrorName::ProgramNotExecutable,
                format!("{name:?}: its interpreter is not found"),
                "look at the first line of the script",
            ),
        },
        Some(libc::ENOENT | libc::ENOTDIR) => LabError::new(
            ErrorName::ProgramNotFound,
            format!("{name:?}: no such program"),
            "install it, or give its path; a host sees the machine's files, or those of its image",
        ),
        Some(libc::EACCES | libc::ENOEXEC) => LabError::new(
            ErrorName::ProgramNotExecutable,
            format!("{name:?}: cannot be executed: {error}"),
            "check its permissions and its format",
        ),
        _ => LabError::new(ErrorName::ProgramNotStarted, format!("{name:?}: {error}"), ""),
    }
}
