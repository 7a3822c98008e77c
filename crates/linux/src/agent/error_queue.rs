//! The error queue of a UDP socket: what came back of datagrams (`IP_RECVERR`), and when datagrams left
//! (`SO_TIMESTAMPING`).

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_uint, timespec};
use twinnet_apps::HostError;

use super::system::{check_length, host_error, set_option};

/// Entries that are read in one turn. What comes in meanwhile has its turn later.
const MOST_READ: usize = 256;

/// One entry.
enum Entry {
    /// Somebody on the way told this error by ICMP.
    Returned(HostError),
    /// A datagram went to the interface at this time of `CLOCK_REALTIME`.
    Left(timespec),
    /// This machine made it itself.
    Local,
}

/// What was read.
#[derive(Default)]
pub struct Told {
    /// Errors that others told by ICMP, with their number.
    pub returned: Vec<(HostError, u64)>,
    /// The times at which datagrams went to the interface, in the order in which they went.
    pub left: Vec<timespec>,
}

/// Asks for the time at which the interface's driver takes each datagram of a socket. A driver that stamps nothing
/// makes no entries.
///
/// # Errors
/// That of the kernel when it cannot.
pub fn stamp_departures(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags: c_uint =
        libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags)
}

/// Reads what is in the queue.
pub fn read(fd: BorrowedFd<'_>) -> Told {
    let mut told = Told::default();
    for _ in 0..MOST_READ {
        match next(fd) {
            None => break,
            Some(Entry::Local) => {}
            Some(Entry::Left(stamp)) => told.left.push(stamp),
            Some(Entry::Returned(error)) => match told.returned.iter_mut().find(|(known, _)| *known == error) {
                Some((_, number)) => *number += 1,
                None => told.returned.push((error, 1)),
            },
        }
    }
    told
}

/// The next entry; `None` when the queue is empty.
fn next(fd: BorrowedFd<'_>) -> Option<Entry> {
    let mut control = [0_u64; 48];
    let (mut error, mut stamp) = (None, None);
    // SAFETY: zero is a valid message header. The control space is described with its true length and outlives the
    // call; the kernel puts whole control messages in it, each of which is read, unaligned, only when it is long
    // enough.
    unsafe {
        let mut header: libc::msghdr = zeroed();
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        check_length(libc::recvmsg(fd.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)).ok()?;
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(entry) = message.as_ref() {
            let holds = |size: usize| entry.cmsg_len >= libc::CMSG_LEN(u32::try_from(size).unwrap_or(0)) as _;
            match (entry.cmsg_level, entry.cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
                    if holds(size_of::<libc::sock_extended_err>()) =>
                {
                    error = Some(libc::CMSG_DATA(message).cast::<libc::sock_extended_err>().read_unaligned());
                }
                // Three times: by software, one that is not used any more, by the interface's hardware.
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) if holds(3 * size_of::<timespec>()) => {
                    stamp = Some(libc::CMSG_DATA(message).cast::<timespec>().read_unaligned());
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    let Some(error) = error else { return Some(Entry::Local) };
    if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING {
        return Some(stamp.map_or(Entry::Local, Entry::Left));
    }
    if error.ee_origin == libc::SO_EE_ORIGIN_LOCAL {
        return Some(Entry::Local);
    }
    let number = i32::try_from(error.ee_errno).unwrap_or(0);
    Some(Entry::Returned(match number {
        libc::EMSGSIZE => HostError::Other(format!("the MTU of the way is {}", error.ee_info)),
        _ => host_error(&io::Error::from_raw_os_error(number), None),
    }))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    fn now_ns() -> i128 {
        let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid timespec for the call to fill.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
        ns(now)
    }

    fn ns(stamp: timespec) -> i128 {
        i128::from(stamp.tv_sec) * 1_000_000_000 + i128::from(stamp.tv_nsec)
    }

    #[test]
    fn each_datagram_on_the_loopback_interface_has_a_stamp_between_before_and_after_its_call() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        stamp_departures(sender.as_fd()).unwrap();
        for _ in 0..20 {
            let before = now_ns();
            sender.send_to(&[7; 100], receiver.local_addr().unwrap()).unwrap();
            let after = now_ns();
            let left = read(sender.as_fd()).left;
            assert_eq!(left.len(), 1);
            assert!((before..=after).contains(&ns(left[0])), "{before} {} {after}", ns(left[0]));
        }
    }

    #[test]
    fn stamps_and_errors_that_others_told_are_kept_apart() {
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_option::<libc::c_int>(sender.as_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, 1).unwrap();
        stamp_departures(sender.as_fd()).unwrap();
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        sender.send_to(&[7; 100], nobody).unwrap();
        let told = read(sender.as_fd());
        assert_eq!((told.left.len(), told.returned), (1, vec![(HostError::Refused, 1)]));
    }

    #[test]
    fn a_socket_that_did_not_ask_has_no_stamps() {
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(&[7; 100], sender.local_addr().unwrap()).unwrap();
        let told = read(sender.as_fd());
        assert!(told.left.is_empty() && told.returned.is_empty());
    }
}
