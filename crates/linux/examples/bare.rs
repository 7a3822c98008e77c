//! The least that any emulator must do, as a yardstick for the benchmarks: run as root.
//!
//! `bare hosts N` creates N network namespaces, each with one TAP that is up, then prints the seconds that took.
//! `bare loop SECONDS` moves frames between two TAPs (`h1-eth0` 10.99.0.1/24 and `h2-eth0` 10.99.0.2/24, each in a
//! namespace of its own) in a plain loop, and prints `READY PID` with the thread that holds each namespace, so that
//! programs can be run in them with `nsenter --net=/proc/PID/ns/net`. `bare send SECONDS ADDRESS` sends datagrams
//! of 18 bytes (frames of 64 bytes with FCS) to port 9000 as fast as plain `send` calls go, and prints how many;
//! `bare receive SECONDS` counts those that arrive in that time from the first, with plain `recv` calls.
//! `bare offer SECONDS ADDRESS PAYLOAD RATE` offers datagrams of PAYLOAD bytes at RATE bit/s of payload, whatever
//! comes of them; `bare lone COUNT ADDRESS PAYLOAD MILLISECONDS` sends single ones that far apart. Each carries its
//! number and the moment it was sent. `bare record SECONDS` writes, for each that arrives, three 64-bit integers to
//! stdout: the number, the moment it was sent and the moment the kernel received it, by a packet socket's stamp, in
//! nanoseconds; it ends when nothing has arrived for a second. `bare watch SECONDS PORT` writes the moment and the
//! payload's length of each datagram to PORT likewise, in the same way. Receivers say `READY` on stderr.
//! `bare blast SECONDS ADDRESS PAYLOAD` sends datagrams to port 5003 by `sendmmsg` of 64, as fast as that goes, and
//! prints how many; each begins with its number and flow 1, as twinnet's do. `bare train` sends the same as
//! messages of 64 datagrams that the kernel cuts (`UDP_SEGMENT`).

use std::ffi::CString;
use std::io::{self, Write};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

/// The port that datagrams go to.
const PORT: u16 = 9000;
/// The time that a receiver waits for its first datagram.
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
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) })?;
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

/// Datagrams in one call of `blast`.
const BLAST: usize = 64;

fn blast(seconds: u64, to: &str, payload_bytes: usize) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((to, 5003))?;
    let mut payloads = vec![vec![0_u8; payload_bytes.max(16)]; BLAST];
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut sent = 0_u64;
    while Instant::now() < end {
        let mut parts: Vec<libc::iovec> = Vec::with_capacity(BLAST);
        for (payload, number) in payloads.iter_mut().zip(sent..) {
            payload[..4].copy_from_slice(&(number as u32).to_be_bytes());
            payload[4..8].copy_from_slice(&1_u32.to_be_bytes());
            parts.push(libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() });
        }
        // SAFETY: zero is a valid header of a message; each points to a part that points to a payload, all of which
        // outlive the call, and the kernel only reads them.
        let taken = unsafe {
            let mut messages: [libc::mmsghdr; BLAST] = std::mem::zeroed();
            for (message, part) in messages.iter_mut().zip(&mut parts) {
                message.msg_hdr.msg_iov = part;
                message.msg_hdr.msg_iovlen = 1;
            }
            libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), BLAST as u32, 0)
        };
        // A refusal is of an earlier datagram, to which nobody listened.
        sent += u64::try_from(taken).unwrap_or(0);
    }
    println!("{sent}");
    Ok(())
}

/// As [`blast`], but the kernel cuts each batch from one message.
fn train(seconds: u64, to: &str, payload_bytes: usize) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((to, 5003))?;
    let length = payload_bytes.max(16);
    let segment = libc::c_int::try_from(length).map_err(io::Error::other)?;
    // SAFETY: the pointer and the length describe `segment`, which outlives the call.
    let set = unsafe {
        let value = (&raw const segment).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, value, size_of_val(&segment) as u32)
    };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut message = vec![0_u8; length * BLAST];
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut sent = 0_u64;
    while Instant::now() < end {
        for (payload, number) in message.chunks_exact_mut(length).zip(sent..) {
            payload[..4].copy_from_slice(&(number as u32).to_be_bytes());
            payload[4..8].copy_from_slice(&1_u32.to_be_bytes());
        }
        // A refusal is of an earlier datagram, to which nobody listened.
        sent += socket.send(&message).map_or(0, |taken| (taken / length) as u64);
    }
    println!("{sent}");
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

/// Frames that a packet socket takes note of in memory of its own: no receiving program takes part, so none can be
/// late.
struct Ring {
    memory: *const u8,
    next: usize,
}

impl Ring {
    const BLOCK_BYTES: usize = 1 << 20;
    const BLOCKS: usize = 32;
    /// Room for the ring's own header and the headers and stamps of a frame.
    const SLOT_BYTES: usize = 128;
    const SLOTS: usize = Self::BLOCK_BYTES * Self::BLOCKS / Self::SLOT_BYTES;

    fn new() -> io::Result<Self> {
        let protocol = (libc::ETH_P_IP as u16).to_be();
        let request = libc::tpacket_req {
            tp_block_size: Self::BLOCK_BYTES as u32,
            tp_block_nr: Self::BLOCKS as u32,
            tp_frame_size: Self::SLOT_BYTES as u32,
            tp_frame_nr: Self::SLOTS as u32,
        };
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        // SAFETY: the options outlive the calls, with their true sizes; the mapping, never undone, is as large as
        // the ring.
        unsafe {
            let socket =
                check(libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(protocol)))?;
            let set = |option, value: *const libc::c_void, size: usize| {
                check(libc::setsockopt(socket, libc::SOL_PACKET, option, value, size as libc::socklen_t))
            };
            set(libc::PACKET_VERSION, (&raw const version).cast(), size_of_val(&version))?;
            set(libc::PACKET_RX_RING, (&raw const request).cast(), size_of_val(&request))?;
            let bytes = Self::SLOTS * Self::SLOT_BYTES;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let memory = libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, socket, 0);
            if memory == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { memory: memory.cast(), next: 0 })
        }
    }

    /// The next frame with the moment of its arrival. Slots are not given back: what does not fit is an error.
    fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        if self.next == Self::SLOTS {
            return Err(io::Error::other(format!(
                "more than {} frames arrived; record for a shorter time",
                Self::SLOTS
            )));
        }
        // SAFETY: the slot lies in the mapping and is aligned; the kernel writes the status last and lets go of the
        // slot then.
        unsafe {
            let slot = self.memory.add(self.next * Self::SLOT_BYTES);
            let header: *const libc::tpacket2_hdr = slot.cast();
            if (&raw const (*header).tp_status).read_volatile() & libc::TP_STATUS_USER == 0 {
                return Ok(None);
            }
            std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
            self.next += 1;
            let (start, length) = (usize::from((*header).tp_mac), (*header).tp_snaplen as usize);
            let arrived = u64::from((*header).tp_sec) * 1_000_000_000 + u64::from((*header).tp_nsec);
            let length = length.min(Self::SLOT_BYTES.saturating_sub(start));
            Ok(Some((arrived, std::slice::from_raw_parts(slot.add(start), length))))
        }
    }
}

fn record(seconds: u64) -> io::Result<()> {
    // Nobody reads this socket; it keeps the kernel from answering that there is no receiver.
    let _receiver = UdpSocket::bind(("0.0.0.0", PORT))?;
    let mut ring = Ring::new()?;
    eprintln!("READY");
    let begin = Instant::now();
    let mut last = begin;
    let mut records = Vec::new();
    while last.elapsed() < if records.is_empty() { PATIENCE } else { Duration::from_secs(1) } {
        while let Some((arrived, frame)) = ring.next()? {
            if let Some([number, sent]) = stamps(frame) {
                last = Instant::now();
                records.extend([number, sent, arrived].iter().flat_map(|value| value.to_le_bytes()));
            }
        }
        if begin.elapsed() > PATIENCE + Duration::from_secs(seconds) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    io::stdout().write_all(&records)
}

fn watch(seconds: u64, port: u16) -> io::Result<()> {
    let mut ring = Ring::new()?;
    eprintln!("READY");
    let begin = Instant::now();
    let mut last = begin;
    let mut records = Vec::new();
    while last.elapsed() < if records.is_empty() { PATIENCE } else { Duration::from_secs(1) } {
        while let Some((arrived, frame)) = ring.next()? {
            if frame.len() >= 42 && frame[23] == libc::IPPROTO_UDP as u8 && frame[36..38] == port.to_be_bytes() {
                last = Instant::now();
                let length = u64::from(u16::from_be_bytes([frame[16], frame[17]])).saturating_sub(28);
                records.extend([arrived, length].iter().flat_map(|value| value.to_le_bytes()));
            }
        }
        if begin.elapsed() > PATIENCE + Duration::from_secs(seconds) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    io::stdout().write_all(&records)
}

/// The number and the moment of sending, of a datagram that was sent to us.
fn stamps(frame: &[u8]) -> Option<[u64; 2]> {
    let port = frame.get(36..38)?;
    let value = |at: usize| frame.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    if frame[23] != libc::IPPROTO_UDP as u8 || port != PORT.to_be_bytes() {
        return None;
    }
    Some([value(42)?, value(50)?])
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
        (Some("watch"), Some(seconds), ..) => {
            watch(seconds, number(3).and_then(|port| port.try_into().ok()).unwrap_or(PORT))
        }
        (Some("blast"), Some(seconds), Some(payload_bytes), _) => blast(seconds, to, payload_bytes),
        (Some("train"), Some(seconds), Some(payload_bytes), _) => train(seconds, to, payload_bytes),
        (Some("offer"), Some(seconds), Some(payload_bytes), Some(rate_bps)) => {
            offer(seconds, to, payload_bytes, rate_bps)
        }
        (Some("lone"), Some(count), Some(payload_bytes), Some(interval_ms)) => {
            lone(count, to, payload_bytes, interval_ms)
        }
        _ => Err(io::Error::other(
            "usage: bare hosts N | loop SECONDS | send SECONDS ADDRESS | receive SECONDS | record SECONDS \
             | watch SECONDS PORT | blast SECONDS ADDRESS PAYLOAD | train SECONDS ADDRESS PAYLOAD | offer SECONDS \
             ADDRESS PAYLOAD RATE | lone COUNT ADDRESS PAYLOAD MILLISECONDS",
        )),
    }
}
