//! A program in a network and a mount namespace of its own, as nodes of Mininet's scripts are. The process that starts
//! it is neither copied for that, nor does a thread of it go there first.

use std::convert::Infallible;
use std::ffi::{c_char, c_int, c_void, CString};
use std::io;
use std::os::fd::RawFd;

use rustix::mount::{mount, mount_change, MountFlags, MountPropagationFlags};

use super::kernel_files::keep_sys;
use crate::kernel::interface::check;
use crate::process::spawn::block_signals;

/// Room for the steps before the program begins.
const STACK_BYTES: usize = 256 << 10;
/// The first descriptor that the program does not have.
const FIRST_CLOSED: c_int = 3;

/// A program to start.
pub struct Program {
    /// The files that it may be, of which the first that exists is taken: `bash` in each folder of `PATH`.
    pub files: Vec<CString>,
    /// Its arguments, its own name before them.
    pub arguments: Vec<CString>,
    /// Its environment, `NAME=VALUE`.
    pub environment: Vec<CString>,
    /// What its standard input, output and error are. It has no other descriptors.
    pub descriptors: [RawFd; 3],
    /// Whether it is to be in a session of its own.
    pub own_session: bool,
}

/// What the child reads, and where it tells what was refused: it shares this memory until the program begins.
struct Order<'a> {
    program: &'a Program,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    mask: libc::sigset_t,
    refusal: Option<io::Error>,
}

impl Program {
    /// Starts it; gives its number. It is the caller's child, and begins where the calling thread is.
    ///
    /// # Errors
    /// What the kernel says to the namespaces, their mounts or the program.
    pub fn start(&self) -> io::Result<i32> {
        let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        let mut order = Order {
            program: self,
            arguments: pointers(&self.arguments),
            environment: pointers(&self.environment),
            mask: block_signals(),
            refusal: None,
        };
        let mut stack: Vec<u128> = Vec::with_capacity(STACK_BYTES / size_of::<u128>());
        let namespaces = libc::CLONE_NEWNET | libc::CLONE_NEWNS;
        // SAFETY: the child has a stack of its own, which grows down from its end, and this thread waits until it has
        // left this memory (CLONE_VFORK), so that all it is given outlives it. With all signals blocked, no handler of
        // this process runs in the child.
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(stack.capacity()).cast();
            let flags = namespaces | libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            libc::clone(child, top, flags, (&raw mut order).cast())
        };
        let failure = io::Error::last_os_error();
        // SAFETY: the mask is the one that this thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const order.mask, std::ptr::null_mut()) };
        if pid < 0 {
            return Err(failure);
        }
        if let Some(refusal) = order.refusal {
            // SAFETY: waits for the child that this function has made, and that ends.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            return Err(refusal);
        }
        Ok(pid)
    }
}

/// Becomes the program. It may not unwind into what is not its own, and an `extern "C"` function does not.
extern "C" fn child(order: *mut c_void) -> c_int {
    // SAFETY: `Program::start` gives a valid order and waits, so that nobody else uses it.
    let order = unsafe { &mut *order.cast::<Order<'_>>() };
    let Err(refusal) = become_program(order);
    order.refusal = Some(refusal);
    // SAFETY: ends this process, and leaves what it shares as it is.
    unsafe { libc::_exit(1) }
}

fn become_program(order: &Order<'_>) -> io::Result<Infallible> {
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
    keep_sys()?;
    let program = order.program;
    // SAFETY: system calls with pointers that live in the order; what signals do is the child's own.
    unsafe {
        if program.own_session {
            libc::setsid();
        }
        reset_signals();
        for (place, &descriptor) in (0..).zip(&program.descriptors) {
            // From above its place, so that it survives the program's beginning where it is at its place already.
            let above = check(libc::fcntl(descriptor, libc::F_DUPFD, FIRST_CLOSED))?;
            check(libc::dup2(above, place))?;
        }
        libc::syscall(libc::SYS_close_range, FIRST_CLOSED as libc::c_uint, libc::c_uint::MAX, 0);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const order.mask, std::ptr::null_mut());
        let mut refusal = io::Error::from_raw_os_error(libc::ENOENT);
        for file in &program.files {
            libc::execve(file.as_ptr(), order.arguments.as_ptr(), order.environment.as_ptr());
            let failure = io::Error::last_os_error();
            // As a shell looks for programs: what is not there is looked for in the next folder.
            if !matches!(failure.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR)) {
                refusal = failure;
            }
        }
        Err(refusal)
    }
}

/// Has signals do what they do in a new program: handlers of this process are none of it, and what Python ignores for
/// itself is not ignored.
unsafe fn reset_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        let mut action: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0;
        let own = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGINT].contains(&signal);
        if known && (own || action.sa_sigaction != libc::SIG_IGN) {
            action.sa_sigaction = libc::SIG_DFL;
            action.sa_flags = 0;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}
