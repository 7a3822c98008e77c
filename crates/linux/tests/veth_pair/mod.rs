//! Two network namespaces joined by a veth pair: 10.9.0.1 and fd09::1 in the one, 10.9.0.2 and fd09::2 in the other.

use std::fs::File;
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_EXCL: u16 = 0x200;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

/// Makes the pair; the reason when this machine does not let us.
pub fn make() -> Result<[OwnedFd; 2], String> {
    let [first, second] = [0, 1].map(|_| in_new_thread(new_namespace));
    let namespaces = [first.map_err(why)?, second.map_err(why)?];
    let descriptors = namespaces.each_ref().map(AsRawFd::as_raw_fd);
    in_new_thread(move || {
        enter(descriptors[0])?;
        add_veth(descriptors[1])
    })
    .map_err(why)?;
    bring_up(descriptors).expect("the pair was made and can be used");
    Ok(namespaces)
}

/// Gives addresses and waits until both ends reach each other.
fn bring_up(descriptors: [i32; 2]) -> io::Result<()> {
    for (descriptor, number) in descriptors.into_iter().zip(1..) {
        in_new_thread(move || {
            enter(descriptor)?;
            set_up("lo", None)?;
            set_up("veth", Some([10, 9, 0, number]))
        })?;
    }
    for (descriptor, number) in descriptors.into_iter().zip(1..) {
        in_new_thread(move || {
            enter(descriptor)?;
            wait_until_operational()?;
            // This takes the lock under which the kernel activates the interface, so it comes after that.
            add_ipv6(number)
        })?;
    }
    // Once a connection was made the neighbours know each other: until then datagrams beyond the first hundred are
    // dropped.
    for listen in ["0.0.0.0:9", "[::]:9"] {
        let listener = in_new_thread(move || {
            enter(descriptors[1])?;
            TcpListener::bind(listen)
        })?;
        in_new_thread(move || {
            enter(descriptors[0])?;
            let to = listen.replace("0.0.0.0", "10.9.0.2").replace("[::]", "[fd09::2]").parse().unwrap();
            TcpStream::connect_timeout(&to, Duration::from_secs(10))
        })?;
        drop(listener);
    }
    Ok(())
}

fn why(error: io::Error) -> String {
    format!("network namespaces with a veth pair cannot be made: {error}")
}

fn in_new_thread<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    std::thread::spawn(work).join().expect("the thread panicked")
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn new_namespace() -> io::Result<OwnedFd> {
    // SAFETY: takes a number only.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

fn enter(namespace: i32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::setns(namespace, libc::CLONE_NEWNET) }).map(drop)
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only; the descriptor is new and ours.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol))?)) }
}

fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + content.len()).unwrap();
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Sends one rtnetlink request; the first message of the answer.
fn exchange(kind: u16, flags: u16, content: &[u8]) -> io::Result<Vec<u8>> {
    let netlink = socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
    let mut message = u32::try_from(16 + content.len()).unwrap().to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend((flags | NLM_F_REQUEST).to_ne_bytes());
    message.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    message.extend_from_slice(content);
    let mut answer = vec![0_u8; 8192];
    // SAFETY: the pointers and lengths describe `message` and `answer`.
    let received = unsafe {
        libc::send(netlink.as_raw_fd(), message.as_ptr().cast(), message.len(), 0);
        libc::recv(netlink.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0)
    };
    if received < 20 {
        return Err(io::Error::last_os_error());
    }
    answer.truncate(usize::try_from(received).unwrap());
    Ok(answer)
}

/// Sends one rtnetlink request and waits for its acknowledgement.
fn request(kind: u16, flags: u16, content: &[u8]) -> io::Result<()> {
    let answer = exchange(kind, flags | NLM_F_ACK, content)?;
    match i32::from_ne_bytes(answer[16..20].try_into().unwrap()) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

fn add_veth(peer_namespace: i32) -> io::Result<()> {
    let link = [0_u8; 16];
    let mut peer = link.to_vec();
    peer.extend(attribute(IFLA_IFNAME, b"veth\0"));
    peer.extend(attribute(IFLA_NET_NS_FD, &peer_namespace.to_ne_bytes()));
    let data = attribute(IFLA_INFO_DATA, &attribute(VETH_INFO_PEER, &peer));
    let information = [attribute(IFLA_INFO_KIND, b"veth\0"), data].concat();
    let content = [&link[..], &attribute(IFLA_IFNAME, b"veth\0"), &attribute(IFLA_LINKINFO, &information)].concat();
    request(libc::RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &content)
}

fn add_ipv6(number: u8) -> io::Result<()> {
    const IFA_F_NODAD: u8 = 2;
    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    // SAFETY: the name ends with a zero byte.
    let index = unsafe { libc::if_nametoindex(c"veth".as_ptr()) };
    let mut address = [0_u8; 16];
    (address[0], address[1], address[15]) = (0xfd, 0x09, number);
    let mut content = vec![u8::try_from(libc::AF_INET6).unwrap(), 64, IFA_F_NODAD, 0];
    content.extend(index.to_ne_bytes());
    content.extend(attribute(IFA_LOCAL, &address));
    content.extend(attribute(IFA_ADDRESS, &address));
    request(libc::RTM_NEWADDR, NLM_F_CREATE, &content)
}

/// An end that was set up before its peer drops all that is sent until the kernel has noticed the carrier, which it
/// looks for once a second at most.
fn wait_until_operational() -> io::Result<()> {
    const IF_OPER_UP: u8 = 6;
    let started = Instant::now();
    while started.elapsed().as_secs() < 10 {
        if operational_state()? == Some(IF_OPER_UP) {
            return Ok(());
        }
        std::thread::yield_now();
    }
    Err(io::Error::other("the interface has no carrier after 10 s"))
}

/// `IFLA_OPERSTATE` of the end in this namespace.
fn operational_state() -> io::Result<Option<u8>> {
    const IFLA_OPERSTATE: u16 = 16;
    const HEADERS: usize = 32;
    // SAFETY: the name ends with a zero byte.
    let index = unsafe { libc::if_nametoindex(c"veth".as_ptr()) };
    let mut link = [0_u8; 16];
    link[4..8].copy_from_slice(&index.to_ne_bytes());
    let answer = exchange(libc::RTM_GETLINK, 0, &link)?;
    let mut rest = answer.get(HEADERS..).unwrap_or(&[]);
    while let Some(&[low, high, kind_low, kind_high]) = rest.first_chunk() {
        let length = usize::from(u16::from_ne_bytes([low, high])).max(4);
        if u16::from_ne_bytes([kind_low, kind_high]) == IFLA_OPERSTATE {
            return Ok(rest.get(4).copied());
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(None)
}

fn set_up(name: &str, address: Option<[u8; 4]>) -> io::Result<()> {
    let control = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: zero is a valid `ifreq`.
    let mut interface: libc::ifreq = unsafe { zeroed() };
    for (place, byte) in interface.ifr_name.iter_mut().zip(name.bytes()) {
        *place = i8::from_ne_bytes([byte]);
    }
    if let Some(octets) = address {
        for (call, octets) in [(libc::SIOCSIFADDR, octets), (libc::SIOCSIFNETMASK, [255, 255, 255, 0])] {
            // SAFETY: zero is a valid `sockaddr_in`, which is as large as the `sockaddr` in the request.
            unsafe {
                let mut raw: libc::sockaddr_in = zeroed();
                raw.sin_family = u16::try_from(libc::AF_INET).unwrap();
                raw.sin_addr.s_addr = u32::from_ne_bytes(octets);
                assert_eq!(size_of::<libc::sockaddr_in>(), size_of::<libc::sockaddr>());
                interface.ifr_ifru.ifru_addr = (&raw const raw).cast::<libc::sockaddr>().read();
                check(libc::ioctl(control.as_raw_fd(), call as _, &raw mut interface))?;
            }
        }
    }
    interface.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP).unwrap();
    // SAFETY: the request is initialised and outlives the call.
    check(unsafe { libc::ioctl(control.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut interface) }).map(drop)
}
