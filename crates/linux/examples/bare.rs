//! The least that any emulator must do, as a yardstick for the benchmarks: run as root.
//!
//! `bare hosts N` creates N network namespaces, each with one TAP that is up, then prints the seconds that took.
//! `bare loop SECONDS` moves frames between two TAPs (`h1-eth0` 10.99.0.1/24 and `h2-eth0` 10.99.0.2/24, each in a namespace
//! of its own) in a plain loop, and prints `READY PID` with the thread that holds each namespace, so that programs can be run
//! in them with `nsenter --net=/proc/PID/ns/net`.
//! `bare send SECONDS ADDRESS` sends datagrams of 18 bytes (frames of 64 bytes with FCS) to port 9000 as fast as plain `send`
//! calls go, and prints how many; `bare receive SECONDS` counts those that arrive, with plain `recv` calls.

use std::ffi::CString;
use std::io;
use std::net::UdpSocket;
use std::os::fd::RawFd;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Where datagrams go.
const PORT: u16 = 9000;
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
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut received = 0_u64;
    let mut buffer = [0; 64];
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

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let number = arguments.get(2).and_then(|text| text.parse().ok());
    match (arguments.get(1).map(String::as_str), number) {
        (Some("hosts"), Some(count)) => hosts(usize::try_from(count).unwrap_or(usize::MAX)),
        (Some("loop"), Some(seconds)) => copy_loop(seconds),
        (Some("send"), Some(seconds)) => send(seconds, arguments.get(3).map_or("10.99.0.2", String::as_str)),
        (Some("receive"), Some(seconds)) => receive(seconds),
        _ => Err(io::Error::other("usage: bare hosts N | loop SECONDS | send SECONDS ADDRESS | receive SECONDS")),
    }
}
