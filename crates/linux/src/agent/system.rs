//! The system calls that sockets need, each as a safe function.

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};
use twinnet_apps::{HostError, TcpInfo};
use twinnet_units::Duration;

/// Turns the C convention (negative and `errno`) into a result.
pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// As [`check`], for calls that return a length.
pub fn check_length(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// An address in the kernel's form.
#[derive(Clone, Copy)]
#[repr(C)]
pub union RawAddress {
    v4: sockaddr_in,
    v6: sockaddr_in6,
}

impl RawAddress {
    /// Space for the kernel to fill.
    pub const EMPTY: Self = {
        // SAFETY: all bit patterns of these plain structures are valid, zero among them, and `v6` has all bytes of the
        // union.
        Self { v6: unsafe { zeroed() } }
    };
    /// Bytes that the kernel may fill.
    #[allow(clippy::cast_possible_truncation)]
    pub const SPACE: socklen_t = size_of::<Self>() as socklen_t;

    /// The address and its length.
    #[allow(clippy::cast_possible_truncation)]
    pub fn new(address: SocketAddr) -> (Self, socklen_t) {
        match address {
            SocketAddr::V4(v4) => {
                let form = sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                    sin_zero: [0; 8],
                };
                // Written into zeros: the bytes beyond the short form are to be initialised, too.
                let mut raw = Self::EMPTY;
                raw.v4 = form;
                (raw, size_of::<sockaddr_in>() as socklen_t)
            }
            SocketAddr::V6(v6) => {
                let form = sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: v6.scope_id(),
                };
                (Self { v6: form }, size_of::<sockaddr_in6>() as socklen_t)
            }
        }
    }

    /// The address; `None` when it is of another family.
    pub fn get(&self) -> Option<SocketAddr> {
        // SAFETY: both forms begin with the family, and in every value the first 16 bytes are initialised.
        let family = unsafe { self.v4.sin_family };
        match c_int::from(family) {
            libc::AF_INET => {
                // SAFETY: the first 16 bytes of every value are initialised, plain numbers.
                let v4 = unsafe { self.v4 };
                let address = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddrV4::new(address, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: all 28 bytes of every value are initialised: `new` writes the short form into zeros, and the
                // kernel fills `EMPTY`.
                let v6 = unsafe { self.v6 };
                let address = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                Some(SocketAddrV6::new(address, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

/// A new socket that never blocks.
pub fn socket(v6: bool, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
    // SAFETY: takes numbers only.
    let fd = check(unsafe { libc::socket(family, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: the descriptor is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets an option.
#[allow(clippy::cast_possible_truncation)]
pub fn set_option<T: Copy>(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: T) -> io::Result<()> {
    let pointer = (&raw const value).cast::<c_void>();
    // SAFETY: the pointer and length describe `value`, which outlives the call.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, pointer, size_of_val(&value) as socklen_t) }).map(drop)
}

/// Sets an option whose value is a name.
pub fn set_text_option(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &str) -> io::Result<()> {
    let length = socklen_t::try_from(value.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // SAFETY: the pointer and length describe `value`, which outlives the call.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), length) }).map(drop)
}

/// Datagrams that a socket had no room for so far, modulo 2^32; `None` where the kernel does not tell (before Linux
/// 4.12).
pub fn overflowed(fd: BorrowedFd<'_>) -> Option<u32> {
    /// `SO_MEMINFO` (asm-generic/socket.h), and the place of `SK_MEMINFO_DROPS` in what it gives (linux/sock_diag.h).
    const SO_MEMINFO: c_int = 55;
    const DROPS: usize = 8;
    let mut told = [0_u32; DROPS + 1];
    let mut length = socklen_t::try_from(size_of_val(&told)).ok()?;
    // SAFETY: the kernel writes at most `length` bytes, which `told` has.
    let done = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, SO_MEMINFO, told.as_mut_ptr().cast(), &raw mut length)
    };
    (done == 0 && length as usize == size_of_val(&told)).then_some(told[DROPS])
}

/// The socket's pending error, which is cleared; `None` when there is none.
pub fn pending_error(fd: BorrowedFd<'_>) -> Option<io::Error> {
    let mut error: c_int = 0;
    #[allow(clippy::cast_possible_truncation)]
    let mut length = size_of::<c_int>() as socklen_t;
    let pointer = (&raw mut error).cast::<c_void>();
    // SAFETY: the pointer and length describe `error`, which outlives the call.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, pointer, &raw mut length) };
    match check(result) {
        Err(error) => Some(error),
        Ok(_) => (error != 0).then(|| io::Error::from_raw_os_error(error)),
    }
}

/// Returns what the kernel tells of a connection's TCP (`TCP_INFO`, tcp(7)).
pub fn tcp_info(fd: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    /// The kernel's word for "no threshold yet" (`TCP_INFINITE_SSTHRESH`).
    const NO_THRESHOLD: u32 = 0x7fff_ffff;
    // SAFETY: zero is a valid `tcp_info`: plain numbers.
    let mut info: libc::tcp_info = unsafe { zeroed() };
    #[allow(clippy::cast_possible_truncation)]
    let mut length = size_of::<libc::tcp_info>() as socklen_t;
    let pointer = (&raw mut info).cast::<c_void>();
    // SAFETY: the pointer and length describe `info`, which outlives the call; a kernel that knows less fills less.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, pointer, &raw mut length) })?;
    Ok(TcpInfo {
        congestion_window: info.tcpi_snd_cwnd,
        slow_start_threshold: Some(info.tcpi_snd_ssthresh).filter(|&threshold| threshold < NO_THRESHOLD),
        smoothed_round_trip: Duration::from_us(u64::from(info.tcpi_rtt)),
        retransmitted: u64::from(info.tcpi_total_retrans),
    })
}

/// Binds to all addresses.
pub fn bind_any(fd: BorrowedFd<'_>, v6: bool, port: u16) -> io::Result<()> {
    let (raw, length) = RawAddress::new(any_address(v6, port));
    // SAFETY: the pointer and length describe an address that outlives the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const raw).cast::<sockaddr>(), length) }).map(drop)
}

/// All addresses of a family.
pub fn any_address(v6: bool, port: u16) -> SocketAddr {
    if v6 {
        SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)
    } else {
        SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)
    }
}

/// Listens with the longest queue that the host allows.
pub fn listen(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::listen(fd.as_raw_fd(), 4096) }).map(drop)
}

/// Begins a connection.
pub fn connect(fd: BorrowedFd<'_>, to: SocketAddr) -> io::Result<()> {
    let (raw, length) = RawAddress::new(to);
    // SAFETY: the pointer and length describe an address that outlives the call.
    let result = check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const raw).cast::<sockaddr>(), length) });
    match result {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        other => other.map(drop),
    }
}

/// Takes a connection from a listener's queue.
pub fn accept(fd: BorrowedFd<'_>) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
    let mut raw = RawAddress::EMPTY;
    let mut length = RawAddress::SPACE;
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the pointers describe space that outlives the call.
    let accepted =
        check(unsafe { libc::accept4(fd.as_raw_fd(), (&raw mut raw).cast::<sockaddr>(), &raw mut length, flags) })?;
    // SAFETY: the descriptor is new and ours.
    Ok((unsafe { OwnedFd::from_raw_fd(accepted) }, raw.get()))
}

type NameCall = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;

fn name(fd: BorrowedFd<'_>, call: NameCall) -> Option<SocketAddr> {
    let mut raw = RawAddress::EMPTY;
    let mut length = RawAddress::SPACE;
    // SAFETY: both calls fill at most `length` bytes of the address, which outlives the call.
    check(unsafe { call(fd.as_raw_fd(), (&raw mut raw).cast::<sockaddr>(), &raw mut length) }).ok()?;
    raw.get()
}

/// The socket's own address.
pub fn local_address(fd: BorrowedFd<'_>) -> Option<SocketAddr> {
    name(fd, libc::getsockname)
}

/// The address of the socket's peer.
pub fn peer_address(fd: BorrowedFd<'_>) -> Option<SocketAddr> {
    name(fd, libc::getpeername)
}

/// Ends the sending half.
pub fn shutdown_send(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) }).map(drop)
}

/// Sends bytes on a stream.
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length describe `bytes`.
    check_length(unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) })
}

/// Sends a datagram.
pub fn send_to(fd: BorrowedFd<'_>, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
    let (raw, length) = RawAddress::new(to);
    let address = (&raw const raw).cast::<sockaddr>();
    let (pointer, size) = (bytes.as_ptr().cast(), bytes.len());
    // SAFETY: the pointers and lengths describe `bytes` and an address that outlive the call.
    check_length(unsafe { libc::sendto(fd.as_raw_fd(), pointer, size, libc::MSG_NOSIGNAL, address, length) })
}

/// Receives bytes of a stream.
pub fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length describe `buffer`.
    check_length(unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

/// Receives bytes of a TCP stream and throws them away without copying (`MSG_TRUNC`, tcp(7)).
pub fn discard(fd: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC on a TCP socket the kernel writes nothing, so no buffer is needed.
    check_length(unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), most, libc::MSG_TRUNC) })
}

/// Lets this process open as many files as it may.
pub fn raise_open_files() {
    // SAFETY: zero is a valid limit, which the first call fills and the second reads. A refusal leaves the limit as
    // it was.
    unsafe {
        let mut limit: libc::rlimit = zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// An error of a socket call in an app's terms; `address` is the one that was to be used.
pub fn host_error(error: &io::Error, address: Option<SocketAddr>) -> HostError {
    match (error.raw_os_error(), address) {
        (Some(libc::EADDRINUSE), Some(address)) => HostError::AddressInUse(address),
        (Some(libc::ECONNREFUSED), _) => HostError::Refused,
        (Some(libc::ECONNRESET | libc::EPIPE), _) => HostError::Reset,
        (Some(libc::ETIMEDOUT), _) => HostError::TimedOut,
        (Some(libc::EHOSTUNREACH | libc::ENETUNREACH | libc::ENETDOWN | libc::EADDRNOTAVAIL), to) => {
            let to = to.map(|to| format!("{to}: ")).unwrap_or_default();
            HostError::Unreachable(format!("{to}{error}"))
        }
        (Some(libc::EAGAIN | libc::ENOBUFS), _) => HostError::Full,
        (Some(libc::EMFILE | libc::ENFILE), _) => HostError::Other(
            "the lab has too many open files for another socket: raise the limit of open files (ulimit -Hn, sysctl \
             fs.file-max) or run fewer connections at once"
                .to_owned(),
        ),
        _ => HostError::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_back_and_all_its_bytes_are_initialised() {
        for text in ["10.1.2.3:80", "[fe80::1%7]:443", "[::]:0"] {
            let address: SocketAddr = text.parse().unwrap();
            let (raw, length) = RawAddress::new(address);
            assert_eq!(raw.get(), Some(address));
            // SAFETY: that they are is what Miri judges here (`tools/fuzz.sh` and CONTRIBUTING tell how it is run).
            let bytes: [u8; RawAddress::SPACE as usize] = unsafe { std::mem::transmute(raw) };
            assert!(bytes[length as usize..].iter().all(|byte| *byte == 0), "{text}");
        }
        assert_eq!(RawAddress::EMPTY.get(), None);
    }
}
