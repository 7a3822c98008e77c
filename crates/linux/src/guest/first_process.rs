//! The first process of a guest: it builds the hosts inside, as network namespaces with their network cards, and
//! starts, feeds and ends their programs as the lab says over the channel.

mod building;
mod jobs;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::MemfdFlags;
use rustix::net::{socketpair, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use twinnet_lab::guest::Input;

use super::channel::{frames, FromGuest, Incoming, Message, ToGuest, ETHERTYPE};
use super::kernel::{Given, PROCESSOR};
use crate::kernel::interface::{check, interface_index, set_option};
use crate::kernel::netlink::Netlink;
use crate::process::control::message::{self, Received};
use crate::process::programs::host::HostSetUp;
use crate::process::programs::orders::{Order, ProgramOrder};
use crate::process::programs::{names_of_hosts, zygote, Notice};
use crate::process::start_up::{reap, reset_signals, set_title, signal_descriptor, waiting_signals};
use crate::service::{ErrorName, LabError};
use jobs::Jobs;

/// Room for the frames of the channel that wait for this process.
const CHANNEL_BUFFER_BYTES: i32 = 8 << 20;
/// What `/proc/cpuinfo` says: the kernel's own tells of the machine, and of its kernel.
const PROCESSOR_INFORMATION: (&str, &str) =
    ("/run/cpuinfo", "processor\t: 0\nvendor_id\t: User Mode Linux\nmodel name\t: UML\n\n");
/// Hosts are built when the guest's clock shows a multiple of this, in seconds.
const ROUND_S: i64 = 2;
/// `_IO('R', 0x06)` of `linux/random.h`.
const RNDCLEARPOOL: libc::Ioctl = 0x5206;
/// The environment of programs that are given none: the same whoever started the lab.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/root"),
    ("USER", "root"),
    ("LOGNAME", "root"),
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
];

/// Builds the hosts of the network that the file `given` describes, and serves the lab until the guest ends.
pub fn run(given: &Path) -> ! {
    reset_signals();
    set_title("twinnet: guest");
    let channel = building::read(given).and_then(|given| {
        building::furnish()?;
        fs::write(PROCESSOR_INFORMATION.0, PROCESSOR_INFORMATION.1)
            .map_err(|error| building::failed("writing what its processor is", &error))?;
        let channel = open_channel().map_err(|error| building::failed("opening the channel to the lab", &error))?;
        wait_for_a_round_moment();
        begin_random_numbers_anew().map_err(|error| building::failed("beginning its random numbers anew", &error))?;
        Ok((given, channel))
    });
    match channel {
        Ok((given, channel)) => {
            let served = building::hosts(&given.network).and_then(|hosts| serve(&channel, given, hosts));
            if let Err(error) = served {
                say(&channel, &Message::Said(FromGuest::Failed(error)));
            }
        }
        // Nobody hears it but who reads the console.
        Err(error) => eprintln!("twinnet: {}", error.message),
    }
    // The first process of a kernel may not end: the lab ends the kernel.
    loop {
        std::thread::park();
    }
}

/// Waits for the moment at which hosts are built. How long it took to get here depends on where the interpreter is and
/// on the machine's processor; the hosts' timers, and so their frames, must not. Waiting takes no real time.
fn wait_for_a_round_moment() {
    let mut moment = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: plain system calls with valid arguments.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut moment);
        moment = libc::timespec { tv_sec: (moment.tv_sec / ROUND_S + 1) * ROUND_S, tv_nsec: 0 };
        while libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const moment, std::ptr::null_mut())
            == libc::EINTR
        {}
    }
}

/// Begins the kernel's random numbers anew from the seed of the lab. How many the boot has drawn depends on how the
/// interpreter is started; those of the hosts must not.
fn begin_random_numbers_anew() -> io::Result<()> {
    let device = fs::File::open("/dev/urandom")?;
    // SAFETY: a plain system call without an argument.
    check(unsafe { libc::ioctl(device.as_raw_fd(), RNDCLEARPOOL) }).map(drop)
}

/// The network card that leads to the lab: the guest's first.
fn open_channel() -> io::Result<OwnedFd> {
    for scope in ["all", "default"] {
        fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1")?;
    }
    let index = interface_index("eth0")?;
    let mut netlink = Netlink::open()?;
    netlink.up(index, "eth0");
    netlink.commit().map_err(|(_, error)| error)?;
    // SAFETY: a plain system call; the result is checked.
    let socket = check(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
    set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, CHANNEL_BUFFER_BYTES)?;
    // SAFETY: all zeros is a valid `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = ETHERTYPE.to_be();
    address.sll_ifindex = index as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is valid for `length` bytes.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(socket)
}

/// Says `message` to the lab, which takes each frame at once.
fn say(channel: &OwnedFd, message: &Message<FromGuest>) {
    for frame in frames(&message.to_bytes()) {
        while let Err(error) = rustix::net::send(channel, &frame, SendFlags::empty()) {
            if !matches!(error, rustix::io::Errno::INTR | rustix::io::Errno::NOBUFS | rustix::io::Errno::AGAIN) {
                return;
            }
        }
    }
}

/// A host with the socket to its first process, once it has run a program.
struct Host {
    network: OwnedFd,
    socket: Option<OwnedFd>,
}

struct Served<'a> {
    channel: &'a OwnedFd,
    folder: PathBuf,
    hosts: BTreeMap<String, Host>,
    names: OwnedFd,
    jobs: Jobs,
}

/// Serves the lab for ever.
fn serve(channel: &OwnedFd, given: Given, hosts: Vec<(String, OwnedFd)>) -> Result<(), LabError> {
    let failed = |what: &'static str| move |error: io::Error| building::failed(what, &error);
    let names = names_file(&names_of_hosts::content(&given.network)).map_err(failed("writing the names of hosts"))?;
    let hosts = hosts.into_iter().map(|(name, network)| (name, Host { network, socket: None })).collect();
    let mut served = Served { channel, folder: given.folder, hosts, names, jobs: Jobs::default() };
    let signals = signal_descriptor(&[libc::SIGCHLD]).map_err(failed("watching its processes"))?;
    let mut incoming = Incoming::default();
    let mut buffer = vec![0; message::PACKET_BYTES];
    say(channel, &Message::Said(FromGuest::Ready));
    loop {
        let sockets: Vec<(&String, &OwnedFd)> =
            served.hosts.iter().filter_map(|(name, host)| host.socket.as_ref().map(|socket| (name, socket))).collect();
        let streams = served.jobs.watched();
        let mut watched = vec![PollFd::new(channel, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        watched.extend(sockets.iter().map(|(_, socket)| PollFd::new(*socket, PollFlags::IN)));
        watched.extend(streams.iter().map(|(_, descriptor, flags)| PollFd::new(descriptor, *flags)));
        // An interrupted wait finds nothing ready.
        let _ = rustix::event::poll(&mut watched, None);
        let ready: Vec<bool> = watched.iter().map(|one| !one.revents().is_empty()).collect();
        let (first, rest) = ready.split_at(2);
        let (by_host, by_stream) = rest.split_at(sockets.len());
        let told: Vec<String> =
            sockets.iter().zip(by_host).filter(|(_, ready)| **ready).map(|((name, _), _)| (*name).clone()).collect();
        let moved: Vec<jobs::Place> =
            streams.iter().zip(by_stream).filter(|(_, ready)| **ready).map(|((place, ..), _)| *place).collect();
        drop(watched);
        if first[1] {
            waiting_signals(&signals);
            reap();
        }
        for place in moved {
            served.jobs.moved(place, |message| say(channel, &message));
        }
        for host in told {
            served.listen_to(&host, &mut buffer);
        }
        if first[0] {
            served.take_orders(&mut incoming, &mut buffer)?;
        }
    }
}

impl Served<'_> {
    fn take_orders(&mut self, incoming: &mut Incoming, buffer: &mut [u8]) -> Result<(), LabError> {
        while let Ok((_, length)) = rustix::net::recv(self.channel, &mut *buffer, RecvFlags::DONTWAIT) {
            incoming.take_in(&buffer[..length]);
        }
        loop {
            match incoming.next() {
                Ok(None) => return Ok(()),
                Err(why) => return Err(building::failed("listening to the lab", &why)),
                Ok(Some(Message::Bytes { job, bytes, .. })) => self.jobs.feed(job, &bytes),
                Ok(Some(Message::Said(ToGuest::Signal { job, signal }))) => self.signal(job, signal),
                Ok(Some(Message::Said(ToGuest::Resize { job, size }))) => self.jobs.resize(job, size),
                Ok(Some(Message::Said(ToGuest::Start(program)))) => {
                    let job = program.job;
                    if let Err(error) = self.start(program) {
                        self.refuse(job, error);
                    }
                }
                Ok(Some(Message::Said(_))) => {}
            }
        }
    }

    fn refuse(&mut self, job: u64, error: LabError) {
        self.jobs.forget(job);
        say(self.channel, &Message::Said(FromGuest::Program(Notice::Refused { job, error })));
    }

    fn start(&mut self, program: twinnet_lab::guest::Program) -> Result<(), LabError> {
        let job = program.job;
        let failed = |error: io::Error| {
            LabError::new(ErrorName::ProgramNotStarted, format!("{:?}: {error}", program.argv.first()), "")
        };
        self.wake(&program.host).map_err(failed)?;
        let host = self.hosts.get(&program.host).and_then(|host| host.socket.as_ref());
        let socket =
            host.ok_or_else(|| LabError::new(ErrorName::UnknownHost, "there is no such host in the guest", ""))?;
        let fixed = || ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut env = program.env.clone().unwrap_or_else(fixed);
        env.entry(PROCESSOR.0.to_owned()).or_insert_with(|| PROCESSOR.1.to_owned());
        let folder = || self.folder.is_dir().then(|| self.folder.to_string_lossy().into_owned());
        let order = Order::Spawn(ProgramOrder {
            job,
            argv: program.argv.clone(),
            env: Some(env),
            cwd: program.cwd.clone().or_else(folder),
            terminal: matches!(program.input, Input::Terminal(_)),
            limit_ns: program.limit.map(|limit| limit.as_ps() / 1000),
        });
        let theirs = self.jobs.open(job, &program.host, program.input).map_err(failed)?;
        let text = serde_json::to_vec(&order).map_err(|error| failed(error.into()))?;
        let borrowed: Vec<_> = theirs.iter().map(AsFd::as_fd).collect();
        message::send(socket.as_fd(), &text, &borrowed).map_err(failed)
    }

    fn signal(&mut self, job: u64, signal: i32) {
        let socket = self.jobs.host(job).and_then(|host| self.hosts.get(host)).and_then(|host| host.socket.as_ref());
        if let (Some(socket), Ok(text)) = (socket, serde_json::to_vec(&Order::Signal { job, signal })) {
            let _ = message::send(socket.as_fd(), &text, &[]);
        }
    }

    /// Makes the first process of a host where there is none.
    fn wake(&mut self, name: &str) -> io::Result<()> {
        let Some(host) = self.hosts.get_mut(name).filter(|host| host.socket.is_none()) else { return Ok(()) };
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        zygote::start_host(HostSetUp {
            name: name.to_owned(),
            network: host.network.try_clone()?,
            socket: theirs,
            hosts: self.names.try_clone()?,
            processor: Some(PROCESSOR_INFORMATION.0),
            image: None,
            groups: Vec::new(),
        });
        host.socket = Some(ours);
        Ok(())
    }

    fn listen_to(&mut self, name: &str, buffer: &mut [u8]) {
        let Some(socket) = self.hosts.get(name).and_then(|host| host.socket.as_ref()) else { return };
        let notice = match message::receive(socket.as_fd(), buffer) {
            Ok(Received::Message(received)) => serde_json::from_slice::<Notice>(&received.text).ok(),
            Ok(Received::Nothing | Received::Malformed { .. }) => None,
            Ok(Received::End) | Err(_) => return self.lose(name, None),
        };
        match notice {
            Some(Notice::Failed { error }) => self.lose(name, Some(error)),
            Some(notice @ Notice::Ended { job, .. }) => {
                self.jobs.drain(job, |message| say(self.channel, &message));
                say(self.channel, &Message::Said(FromGuest::Program(notice)));
            }
            Some(Notice::Refused { job, error }) => self.refuse(job, error),
            Some(notice) => say(self.channel, &Message::Said(FromGuest::Program(notice))),
            None => {}
        }
    }

    /// The first process of a host is gone, and so are its programs.
    fn lose(&mut self, name: &str, why: Option<LabError>) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.socket = None;
        }
        let why =
            why.unwrap_or_else(|| LabError::new(ErrorName::HostEnded, format!("the host {name:?} was killed"), ""));
        for job in self.jobs.of_host(name) {
            self.refuse(job, why.clone());
        }
    }
}

/// A file in memory with this content.
fn names_file(content: &str) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("hosts", MemfdFlags::CLOEXEC)?;
    let mut rest = content.as_bytes();
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&file, rest)?..];
    }
    Ok(file)
}
