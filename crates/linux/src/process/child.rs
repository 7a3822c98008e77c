//! The steps of the new process between `clone3` and `execve`. Its memory is a copy of a process whose other threads
//! are gone, so locks may be held for ever: nothing here allocates, locks or unwinds; only raw system calls are made.

use std::ffi::{c_char, CStr};

/// Descriptor of the owner's socket in the new program.
pub const CONTROL: i32 = 3;
/// Descriptor of the listening socket in the new program.
pub const LISTENER: i32 = 4;
/// Descriptor on which a failure is told; closed by a successful `execve`.
const STATUS: i32 = 5;
/// Descriptors are moved above this before they are put in their places, so that no move overwrites another.
const ABOVE: i32 = 16;

/// All that the child needs, prepared before the clone.
pub struct Prepared<'a> {
    /// The program.
    pub program: &'a CStr,
    /// Its arguments, ended by a null pointer.
    pub arguments: &'a [*const c_char],
    /// Its environment, ended by a null pointer.
    pub environment: *const *const c_char,
    /// Becomes [`CONTROL`].
    pub control: i32,
    /// Becomes [`LISTENER`].
    pub listener: i32,
    /// Read end: a byte comes when the identity maps are written; its end means that the owner gave up.
    pub go: i32,
    /// The owner's own end of the pipe `go`, to be closed so that its end can be seen.
    pub go_writer: i32,
    /// Write end: the failure's errno.
    pub status: i32,
}

/// Becomes the new program, or tells why not and exits.
pub fn run(prepared: &Prepared<'_>) -> ! {
    // SAFETY: only system calls with descriptors and pointers that were prepared before the clone and live in the
    // copied memory; every path ends in execve or _exit.
    unsafe {
        libc::close(prepared.go_writer);
        let mut byte = 0_u8;
        loop {
            match libc::read(prepared.go, (&raw mut byte).cast(), 1) {
                1 => break,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => libc::_exit(1),
            }
        }
        // A session of its own: Ctrl-C in the owner's terminal is the owner's to handle.
        libc::setsid();
        let control = step(libc::fcntl(prepared.control, libc::F_DUPFD, ABOVE), prepared.status);
        let listener = step(libc::fcntl(prepared.listener, libc::F_DUPFD, ABOVE), prepared.status);
        let status = step(libc::fcntl(prepared.status, libc::F_DUPFD, ABOVE), prepared.status);
        let null = step(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR), status);
        let null = step(libc::fcntl(null, libc::F_DUPFD, ABOVE), status);
        step(libc::dup2(null, 0), status);
        step(libc::dup2(null, 1), status);
        step(libc::dup2(control, CONTROL), status);
        step(libc::dup2(listener, LISTENER), status);
        step(libc::dup3(status, STATUS, libc::O_CLOEXEC), status);
        let first_to_close = (STATUS + 1) as libc::c_uint;
        step(libc::syscall(libc::SYS_close_range, first_to_close, libc::c_uint::MAX, 0) as i32, STATUS);
        libc::execve(prepared.program.as_ptr(), prepared.arguments.as_ptr(), prepared.environment);
        step(-1, STATUS)
    };
    // SAFETY: ends the process.
    unsafe { libc::_exit(1) }
}

/// Passes a good result on; tells a bad one to the owner and exits.
unsafe fn step(result: i32, status: i32) -> i32 {
    if result >= 0 {
        return result;
    }
    let error: i32 = *libc::__errno_location();
    libc::write(status, (&raw const error).cast(), size_of::<i32>());
    libc::_exit(1)
}
