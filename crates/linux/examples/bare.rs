//! The least that any emulator must do, as a yardstick for the benchmarks: run as root.
//!
//! `bare hosts N` creates N network namespaces, each with one TAP that is up, then prints the seconds that took.
//! `bare loop SECONDS` moves frames between two TAPs (`h1-eth0` 10.99.0.1/24 and `h2-eth0` 10.99.0.2/24, each in a namespace
//! of its own) in a plain loop, and prints `READY PID` with the thread that holds each namespace, so that programs can be run
//! in them with `nsenter --net=/proc/PID/ns/net`.
//! `bare send SECONDS ADDRESS` sends datagrams of 18 bytes (frames of 64 bytes with FCS) to port 9000 as fast as plain `send`
//! calls go, and prints how many; `bare receive SECONDS` counts those that arrive in that time from the first, with plain
//! `recv` calls.
//! `bare offer SECONDS ADDRESS PAYLOAD RATE` offers datagrams of PAYLOAD bytes at RATE bit/s of payload, whatever comes of
//! them; `bare lone COUNT ADDRESS PAYLOAD MILLISECONDS` sends single ones that far apart. Each carries its number and the
//! moment it was sent. `bare record SECONDS` writes, for each that arrives, three 64-bit integers to stdout: the number, the
//! moment it was sent and the moment the kernel received it (`SO_TIMESTAMPNS`), in nanoseconds; it ends when nothing has
//! arrived for a second. Receivers say `READY` on stderr.

use std::ffi::CString;
use std::io::{self, Write};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

/// Where datagrams go.
const PORT: u16 = 9000;
/// How long a receiver waits for its first datagram.
const PATIENCE: Duration = Duration::from_secs(10);
const IFF_TAP: i16 = 2;
const IFF_NO_PI: i16 = 0x1000;
const IFF_VNET_HDR: i16 = 0x4000;
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
/// Checksum, TSO for IPv4 and IPv6, ECN.
const OFFLOADS: libc::c_ulong = 1 | 2 | 4 | 8;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn tap(name: &str) -> io::Result<RawFd> {
    let path = CString::new("/dev/net/tun").expect("no zero inside");
    // SAFETY: the path and the requests outlive the calls; results are checked.
    unsafe {
        let descriptor = check(libc::open(path.as_ptr(), libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC))?;
        let mut request = request(name);
        request.ifr_ifru.ifru_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
        check(libc::ioctl(descriptor, TUNSETIFF, &raw mut request))?;
        check(libc::ioctl(descriptor, TUNSETOFFLOAD, OFFLOADS))?;
        Ok(descriptor)
    }
}

/// Brings an interface of the current namespace up, with an IPv4 address when one is given.
fn configure(name: &str, address: Option<[u8; 4]>) -> io::Result<()> {
    // SAFETY: the requests outlive the calls; the address is written into the union as a sockaddr_in, which fits.
    unsafe {
        let socket = check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        if let Some(address) = address {
            for (call, bytes) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, [255, 255, 255, 0])] {
                let mut request = request(name);
                let socket_address: *mut libc::sockaddr_in = (&raw mut request.ifr_ifru).cast();
                (*socket_address).sin_family = libc::AF_INET as libc::sa_family_t;
                (*socket_address).sin_addr.s_addr = u32::from_ne_bytes(bytes);
                check(libc::ioctl(socket, call, &raw mut request))?;
            }
        }
        let mut request = request(name);
        request.ifr_ifru.ifru_flags = libc::IFF_UP as i16;
        check(libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw mut request))?;
        libc::close(socket);
    }
    Ok(())
}

fn new_namespace() -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(|_| ())
}

fn hosts(count: usize) -> io::Result<()> {
    let begin = Instant::now();
    let mut held = Vec::with_capacity(count * 2);
    for _ in 0..count {
        new_namespace()?;
        let path = CString::new("/proc/thread-self/ns/net").expect("no zero inside");
        // SAFETY: the path outlives the call; the result is checked.
        held.push(check(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) })?);
        held.push(tap("h-eth0")?);
        configure("h-eth0", None)?;
        configure("lo", None)?;
    }
    println!("{:.4}", begin.elapsed().as_secs_f64());
    Ok(())
}

fn copy_loop(seconds: u64) -> io::Result<()> {
    // Who started it may be killed: nothing is left behind then.
    // SAFETY: no pointers are passed.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    let mut taps = Vec::new();
    for host in 1..=2_u8 {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let name = format!("h{host}-eth0");
            let made = new_namespace()
                .and_then(|()| tap(&name))
                .and_then(|descriptor| configure(&name, Some([10, 99, 0, host])).map(|()| descriptor));
            // SAFETY: no pointers are passed.
            let thread = unsafe { libc::gettid() };
            let _ = sender.send(made.map(|descriptor| (descriptor, thread)));
            std::thread::sleep(Duration::from_secs(seconds + 5));
        });
        taps.push(receiver.recv().map_err(io::Error::other)??);
    }
    println!("READY {} {}", taps[0].1, taps[1].1);
    let mut buffer = vec![0_u8; 70_000];
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut polls = [0, 1].map(|index: usize| libc::pollfd { fd: taps[index].0, events: libc::POLLIN, revents: 0 });
    let mut frames = 0_u64;
    while Instant::now() < end {
        // SAFETY: the array outlives the call.
        unsafe { libc::poll(polls.as_mut_ptr(), 2, 100) };
        for (from, to) in [(0, 1), (1, 0)] {
            if polls[from].revents == 0 {
                continue;
            }
            for _ in 0..64 {
                // SAFETY: the buffer is as long as is said and outlives the calls.
                let length = unsafe { libc::read(taps[from].0, buffer.as_mut_ptr().cast(), buffer.len()) };
                let Ok(length) = usize::try_from(length) else { break };
                // SAFETY: as above; `length` bytes were just written.
                unsafe { libc::write(taps[to].0, buffer.as_ptr().cast(), length) };
                frames += 1;
            }
        }
    }
    println!("{frames}");
    Ok(())
}

fn send(seconds: u64, to: &str) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((to, PORT))?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut sent = 0_u64;
    while Instant::now() < end {
        for _ in 0..16 {
            // A full queue or a receiver that has ended refuses some: the receiver's count is what matters.
            sent += u64::from(socket.send(&[0; 18]).is_ok());
        }
    }
    println!("{sent}");
    Ok(())
}

fn receive(seconds: u64) -> io::Result<()> {
    let socket = UdpSocket::bind(("0.0.0.0", PORT))?;
    eprintln!("READY");
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = [0; 64];
    socket.recv(&mut buffer)?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut received = 1_u64;
    while Instant::now() < end {
        for _ in 0..16 {
            match socket.recv(&mut buffer) {
                Ok(_) => received += 1,
                Err(_) => break,
            }
        }
    }
    println!("{received}");
    Ok(())
}

/// The wall clock, which is what `SO_TIMESTAMPNS` reads.
fn wall_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

fn stamp(payload: &mut [u8], number: u64) {
    payload[..8].copy_from_slice(&number.to_le_bytes());
    payload[8..16].copy_from_slice(&wall_ns().to_le_bytes());
}

/// A socket to `to`, and a datagram of `payload_bytes` for it.
fn stamped_sender(to: &str, payload_bytes: usize) -> io::Result<(UdpSocket, Vec<u8>)> {
    if !(16..=65_507).contains(&payload_bytes) {
        return Err(io::Error::other(format!("the payload is {payload_bytes} bytes; allowed are 16 to 65507")));
    }
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((to, PORT))?;
    Ok((socket, vec![0; payload_bytes]))
}

fn offer(seconds: u64, to: &str, payload_bytes: usize, rate_bps: u64) -> io::Result<()> {
    let (socket, mut payload) = stamped_sender(to, payload_bytes)?;
    let gap = Duration::from_nanos(payload_bytes as u64 * 8_000_000_000 / rate_bps.max(1));
    let begin = Instant::now();
    let (mut number, mut sent) = (0_u64, 0_u64);
    while begin.elapsed() < Duration::from_secs(seconds) {
        let due = gap.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX));
        let early = due.saturating_sub(begin.elapsed());
        // A sleep takes some 60 us longer than asked for; what became due meanwhile is sent at once.
        if early > Duration::from_micros(100) {
            std::thread::sleep(early);
        }
        stamp(&mut payload, number);
        sent += u64::from(socket.send(&payload).is_ok());
        number += 1;
    }
    println!("{number} {sent}");
    Ok(())
}

fn lone(count: u64, to: &str, payload_bytes: usize, interval_ms: u64) -> io::Result<()> {
    let (socket, mut payload) = stamped_sender(to, payload_bytes)?;
    for number in 0..count {
        // Spinning at last: what it costs a processor to wake up is no property of the link.
        let due = Instant::now() + Duration::from_millis(interval_ms);
        std::thread::sleep(Duration::from_millis(interval_ms.saturating_sub(1)));
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        stamp(&mut payload, number);
        socket.send(&payload)?;
    }
    Ok(())
}

fn record(seconds: u64) -> io::Result<()> {
    let socket = UdpSocket::bind(("0.0.0.0", PORT))?;
    for (option, value) in [(libc::SO_TIMESTAMPNS, 1_i32), (libc::SO_RCVBUFFORCE, 32 << 20)] {
        // SAFETY: the value outlives the call. A buffer that may not be forced keeps its default size.
        unsafe {
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), 4);
        }
    }
    eprintln!("READY");
    socket.set_read_timeout(Some(PATIENCE))?;
    let end = Instant::now() + PATIENCE + Duration::from_secs(seconds);
    let mut records = Vec::with_capacity(1 << 20);
    while let Some(triple) = receive_stamped(&socket)? {
        if records.is_empty() {
            socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        }
        records.extend(triple.iter().flat_map(|value| value.to_le_bytes()));
        if Instant::now() > end {
            break;
        }
    }
    io::stdout().write_all(&records)
}

/// The number, the moment of sending and the moment of arrival of the next datagram; nothing when none comes in time.
fn receive_stamped(socket: &UdpSocket) -> io::Result<Option<[u64; 3]>> {
    let mut payload = [0_u8; 16];
    let mut control = [0_u64; 16];
    let mut piece = libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() };
    // SAFETY: an all-zero msghdr is valid; what it points to outlives the call, which checks lengths; the control messages
    // are walked as the kernel laid them, and a timestamp is a timespec.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        if libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_TIMESTAMPNS {
                let time: libc::timespec = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                let arrived = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                let [number, sent] =
                    [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| payload[at + byte])));
                return Ok(Some([number, sent, arrived]));
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Err(io::Error::other("the kernel gave no receive timestamp"))
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<u64>().ok());
    let size = |index: usize| number(index).and_then(|value| usize::try_from(value).ok());
    let to = arguments.get(3).map_or("10.99.0.2", String::as_str);
    match (arguments.get(1).map(String::as_str), number(2), size(4), number(5)) {
        (Some("hosts"), Some(count), ..) => hosts(usize::try_from(count).unwrap_or(usize::MAX)),
        (Some("loop"), Some(seconds), ..) => copy_loop(seconds),
        (Some("send"), Some(seconds), ..) => send(seconds, to),
        (Some("receive"), Some(seconds), ..) => receive(seconds),
        (Some("record"), Some(seconds), ..) => record(seconds),
        (Some("offer"), Some(seconds), Some(payload_bytes), Some(rate_bps)) => {
            offer(seconds, to, payload_bytes, rate_bps)
        }
        (Some("lone"), Some(count), Some(payload_bytes), Some(interval_ms)) => {
            lone(count, to, payload_bytes, interval_ms)
        }
        _ => Err(io::Error::other(
            "usage: bare hosts N | loop SECONDS | send SECONDS ADDRESS | receive SECONDS | record SECONDS \
             | offer SECONDS ADDRESS PAYLOAD RATE | lone COUNT ADDRESS PAYLOAD MILLISECONDS",
        )),
    }
}
