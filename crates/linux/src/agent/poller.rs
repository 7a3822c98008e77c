//! Waiting for sockets: at once for most, by the batch for those that carry bulk traffic.
//!
//! Bulk sockets stand in an epoll instance of their own, which is watched through the first one. While they are
//! busy (ready again within [`GATHER`]) the first one does not watch them: the thread then looks at them every
//! [`GATHER`], so that datagrams gather in the sockets and one wake-up serves many. Arrival times are the kernel's,
//! so nothing that is measured changes. All other sockets wake the thread at once at any time.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use libc::{c_int, epoll_event};
use twinnet_units::{Duration, Time};

use super::system::check;

/// The time that bulk traffic may gather.
const GATHER: Duration = Duration::from_us(200);
/// Looks at the bulk sockets without finding one ready after which they are watched again.
const QUIET_LOOKS: u32 = 8;
/// Events taken at once.
const MOST_EVENTS: usize = 128;
const WAKE: u64 = u64::MAX;
const BULK: u64 = u64::MAX - 1;

/// The urgency of a socket: whether it wakes the thread or may wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Wakes the thread at once.
    Urgent,
    /// May gather.
    Bulk,
}

/// The result of a wait.
#[derive(Default)]
pub struct Found {
    /// Sockets with their epoll events.
    pub ready: Vec<(u32, u32)>,
    /// `true` if [`Waker::wake`] was called.
    pub woken: bool,
}

/// Wakes a [`Poller`] from another thread.
#[derive(Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Makes the poller's next or present wait return.
    pub fn wake(&self) {
        let one = 1_u64;
        // SAFETY: writes the eight bytes of `one` to an eventfd. It can only fail by being full, when a wake-up is
        // pending anyway.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

/// Both epoll instances.
pub struct Poller {
    urgent: OwnedFd,
    bulk: OwnedFd,
    wake: Arc<OwnedFd>,
    /// `true` if the bulk sockets are looked at rather than watched.
    gathering: bool,
    quiet_looks: u32,
    /// The time when a bulk socket was last found ready.
    last_bulk: Option<Time>,
    events: Vec<epoll_event>,
}

fn new_epoll() -> io::Result<OwnedFd> {
    // SAFETY: takes a number only; the descriptor is new and ours.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?)) }
}

fn control(epoll: &OwnedFd, operation: c_int, fd: BorrowedFd<'_>, events: c_int, token: u64) -> io::Result<()> {
    #[allow(clippy::cast_sign_loss)]
    let mut event = epoll_event { events: events as u32, u64: token };
    // SAFETY: `event` outlives the call, which copies it.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event) }).map(drop)
}

impl Poller {
    /// A poller without sockets, and what wakes it.
    pub fn new() -> io::Result<(Self, Waker)> {
        use std::os::fd::AsFd;
        // SAFETY: takes numbers only; the descriptor is new and ours.
        let wake = unsafe { OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?) };
        let wake = Arc::new(wake);
        let (urgent, bulk) = (new_epoll()?, new_epoll()?);
        control(&urgent, libc::EPOLL_CTL_ADD, wake.as_fd(), libc::EPOLLIN, WAKE)?;
        control(&urgent, libc::EPOLL_CTL_ADD, bulk.as_fd(), libc::EPOLLIN, BULK)?;
        // SAFETY: an all-zero event is valid.
        let events = vec![unsafe { std::mem::zeroed() }; MOST_EVENTS];
        let waker = Waker(Arc::clone(&wake));
        Ok((Self { urgent, bulk, wake, gathering: false, quiet_looks: 0, last_bulk: None, events }, waker))
    }

    fn of(&self, urgency: Urgency) -> &OwnedFd {
        match urgency {
            Urgency::Urgent => &self.urgent,
            Urgency::Bulk => &self.bulk,
        }
    }

    /// Watches a socket for `events`, edge-triggered.
    pub fn add(&self, fd: BorrowedFd<'_>, socket: u32, events: c_int, urgency: Urgency) -> io::Result<()> {
        control(self.of(urgency), libc::EPOLL_CTL_ADD, fd, events | libc::EPOLLET, u64::from(socket))
    }

    /// Changes what a socket is watched for.
    pub fn modify(&self, fd: BorrowedFd<'_>, socket: u32, events: c_int, urgency: Urgency) -> io::Result<()> {
        control(self.of(urgency), libc::EPOLL_CTL_MOD, fd, events | libc::EPOLLET, u64::from(socket))
    }

    /// Makes an urgent socket a bulk one.
    pub fn make_bulk(&self, fd: BorrowedFd<'_>, socket: u32, events: c_int) -> io::Result<()> {
        control(&self.urgent, libc::EPOLL_CTL_DEL, fd, 0, 0)?;
        self.add(fd, socket, events, Urgency::Bulk)
    }

    /// Waits until a socket is ready or `timeout` is over (`None`: for ever) and puts what it found in `found`.
    pub fn wait(&mut self, timeout: Option<Duration>, found: &mut Found, now: impl Fn() -> Time) -> io::Result<()> {
        found.ready.clear();
        found.woken = false;
        let timeout =
            if self.gathering { Some(timeout.map_or(GATHER, |timeout| timeout.min(GATHER))) } else { timeout };
        let number = poll(&self.urgent, &mut self.events, timeout)?;
        let mut bulk_ready = false;
        for event in &self.events[..number] {
            let (events, token) = (event.events, event.u64);
            match token {
                WAKE => found.woken = true,
                BULK => bulk_ready = true,
                socket => found.ready.push((u32::try_from(socket).unwrap_or(0), events)),
            }
        }
        if found.woken {
            let mut count = 0_u64;
            // SAFETY: reads eight bytes of an eventfd into `count`; when it is empty nothing is written.
            unsafe { libc::read(self.wake.as_raw_fd(), (&raw mut count).cast(), 8) };
        }
        if bulk_ready || self.gathering {
            self.look_at_bulk(found, now())?;
        }
        Ok(())
    }

    fn look_at_bulk(&mut self, found: &mut Found, now: Time) -> io::Result<()> {
        let number = poll(&self.bulk, &mut self.events, Some(Duration::ZERO))?;
        for event in &self.events[..number] {
            let (events, token) = (event.events, event.u64);
            found.ready.push((u32::try_from(token).unwrap_or(0), events));
        }
        if number == 0 {
            self.quiet_looks += 1;
            if self.gathering && self.quiet_looks >= QUIET_LOOKS {
                return self.gather(false);
            }
            return Ok(());
        }
        self.quiet_looks = 0;
        let busy = self.last_bulk.is_some_and(|last| now.since(last) < GATHER);
        self.last_bulk = Some(now);
        if busy && !self.gathering {
            return self.gather(true);
        }
        Ok(())
    }

    fn gather(&mut self, gathering: bool) -> io::Result<()> {
        use std::os::fd::AsFd;
        self.gathering = gathering;
        self.quiet_looks = 0;
        let events = if gathering { 0 } else { libc::EPOLLIN };
        control(&self.urgent, libc::EPOLL_CTL_MOD, self.bulk.as_fd(), events, BULK)
    }
}

/// Waits with a resolution of nanoseconds; how many events there are.
fn poll(epoll: &OwnedFd, events: &mut [epoll_event], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: i64::try_from(timeout.as_ns() / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(timeout.as_ns() % 1_000_000_000).unwrap_or(0),
    });
    let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel fills at most `events.len()` events; the timeout outlives the call; no signal mask is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            events.len(),
            pointer,
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    match usize::try_from(result) {
        Ok(number) => Ok(number),
        Err(_) => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EINTR) => Ok(0),
            error if error.raw_os_error() == Some(libc::ENOSYS) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel has no epoll_pwait2: Linux 5.11 or later is needed",
            )),
            error => Err(error),
        },
    }
}
