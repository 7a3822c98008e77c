//! Names of labs: a lab's name is the abstract socket address `@twinnet/<uid>/<name>` while it runs, and nothing else.
//!
//! Any user of the machine can listen at any abstract address. So nobody is taken for a lab of ours by its address: the
//! kernel tells who listens (`SO_PEERCRED`, unix(7)) before anything is said. Where a stranger holds the address, the
//! lab listens at `@twinnet/<uid>/<name>/<random number>`, and clients look there, too.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::service::{ErrorName, LabError};

/// Longest name of a lab.
const LONGEST_NAME: usize = 40;
/// Names to try before giving up when a name is generated.
const ATTEMPTS: u32 = 64;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 32;
/// `__SO_ACCEPTCON` and `SOCK_SEQPACKET` in `/proc/net/unix`: a listening socket.
const LISTENING: [&str; 2] = ["00010000", "0005"];
/// The time that listeners have, all together, while more connections wait for them than they wished to have.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two looks at such a listener.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Takes a name: the given one, or a free generated one. The socket listens, so the name is held from here on.
///
/// # Errors
/// `InvalidLabName`, `LabNameTaken`, or what the kernel says.
pub fn claim(name: Option<&str>) -> Result<(String, OwnedFd), LabError> {
    if let Some(name) = name {
        check(name)?;
        return hold(name).map(|listener| (name.to_owned(), listener));
    }
    for _ in 0..ATTEMPTS {
        let name = generated();
        match listen(&name) {
            Ok(listener) => return Ok((name, listener)),
            Err(Errno::ADDRINUSE) => {}
            Err(error) => return Err(refused(&name, error.into())),
        }
    }
    let name = generated();
    hold(&name).map(|listener| (name, listener))
}

fn generated() -> String {
    format!("lab-{:04x}", rand::random::<u16>())
}

/// Listens as `name`, at another address where a stranger has taken that of the name.
fn hold(name: &str) -> Result<OwnedFd, LabError> {
    let is_ours = || Ok(!find(Some(name))?.labs.is_empty());
    if is_ours().map_err(|error| refused(name, error))? {
        return Err(taken(name));
    }
    match listen(name) {
        // A lab of ours may have been started meanwhile.
        Err(Errno::ADDRINUSE) if is_ours().map_err(|error| refused(name, error))? => return Err(taken(name)),
        Err(Errno::ADDRINUSE) => listen(&format!("{name}/{:016x}", rand::random::<u64>())),
        other => other,
    }
    .map_err(|error| refused(name, error.into()))
}

/// The running labs of the caller and those that only look like one, each sorted by name.
#[derive(Debug, Default)]
pub struct Labs {
    /// Names of the caller's.
    pub labs: Vec<String>,
    /// A connection to one of them, over which nothing was said yet.
    pub opened: Option<OwnedFd>,
    /// Listeners at addresses of the caller's labs that are somebody else's, or do not let the caller in.
    pub strangers: Vec<Stranger>,
}

/// A listener that is not known to be a lab of the caller.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stranger {
    /// The name of a lab whose address it has.
    pub name: String,
    /// The user whose it is; `None`: it does not let anybody in, so that the kernel does not tell.
    pub user: Option<u32>,
}

/// Finds the running labs of the caller; `name`: only those of this name.
///
/// # Errors
/// When `/proc/net/unix` cannot be read, or no socket is to be had.
pub fn find(name: Option<&str>) -> io::Result<Labs> {
    let user = rustix::process::geteuid().as_raw();
    let sockets = String::from_utf8_lossy(&fs::read("/proc/net/unix")?).into_owned();
    let mut waiting = addresses_in(&sockets, user);
    waiting.retain(|address| name.is_none_or(|name| name_of(address) == name));
    let mut found = Labs::default();
    let until = Instant::now() + PATIENCE;
    loop {
        let mut busy = Vec::new();
        for address in waiting {
            let name = name_of(&address).to_owned();
            match connect(&address, user) {
                Ok(Peer { user: peer, .. }) if peer != Some(user) => {
                    found.strangers.push(Stranger { name, user: peer })
                }
                Ok(Peer { socket, .. }) => {
                    found.labs.push(name);
                    found.opened = Some(socket);
                }
                Err(Errno::AGAIN) => busy.push(address),
                // It has ended since the list was made.
                Err(Errno::CONNREFUSED) => {}
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)) => return Err(error.into()),
                Err(_) => found.strangers.push(Stranger { name, user: None }),
            }
        }
        waiting = busy;
        if waiting.is_empty() || Instant::now() >= until {
            break;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    let silent = waiting.iter().map(|address| Stranger { name: name_of(address).to_owned(), user: None });
    found.strangers.extend(silent);
    found.labs.sort_unstable();
    found.labs.dedup();
    found.strangers.sort();
    Ok(found)
}

/// Connects to the caller's running lab `name`. Nothing was said over the connection yet.
///
/// # Errors
/// `NotAvailable` when there is none, or what the kernel says.
pub fn open(name: &str) -> Result<OwnedFd, LabError> {
    check(name)?;
    let found = find(Some(name)).map_err(|error| {
        LabError::new(
            ErrorName::NotAvailable,
            format!("lab {name:?} cannot be looked for: {error}"),
            "see what `ulimit -n` says",
        )
    })?;
    if let Some(socket) = found.opened {
        return Ok(socket);
    }
    let instead = match found.strangers.first() {
        Some(Stranger { user: Some(user), .. }) => {
            format!("; user {user} listens at its address, and was sent nothing")
        }
        Some(Stranger { user: None, .. }) => "; who listens at its address lets nobody in".to_owned(),
        None => String::new(),
    };
    Err(LabError::new(
        ErrorName::NotAvailable,
        format!("no lab '{name}' of this user is running{instead}"),
        "see the running ones with: twinnet labs",
    ))
}

/// A listener that was connected to.
struct Peer {
    socket: OwnedFd,
    user: Option<u32>,
}

/// Connects to `address` of the labs of `user`, without waiting: `AGAIN` when too many wait there already.
fn connect(address: &str, user: u32) -> rustix::io::Result<Peer> {
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    rustix::net::connect(&socket, &place(address, user)?)?;
    rustix::io::ioctl_fionbio(&socket, false)?;
    Ok(Peer { user: peer_user(&socket), socket })
}

/// The user at the other end of a connected socket: of the listener, the one that began to listen. (Its process may
/// stand outside of this PID namespace and have no number here.)
pub fn peer_user(socket: &OwnedFd) -> Option<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = std::mem::size_of_val(&peer) as libc::socklen_t;
    let place = (&raw mut peer).cast();
    // SAFETY: `peer` is valid for `length` bytes, which the kernel fills.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut length) };
    (result == 0).then_some(peer.uid)
}

/// The addresses of labs of `user` that are listened at, without what all of them begin with. Anybody may have chosen
/// them: what cannot be a lab's is left out.
fn addresses_in(sockets: &str, user: u32) -> Vec<String> {
    let prefix = format!("@twinnet/{user}/");
    let listening = sockets.lines().filter(|line| line.split_whitespace().skip(3).take(2).eq(LISTENING));
    let paths = listening.filter_map(|line| line.split_whitespace().nth(7)?.strip_prefix(&prefix));
    let mut addresses: Vec<String> = paths.filter(|path| is_address(path)).map(str::to_owned).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// Whether a lab may listen there: its name, or its name and a number.
fn is_address(path: &str) -> bool {
    let (name, number) = path.split_once('/').unwrap_or((path, "0"));
    check(name).is_ok() && !number.is_empty() && number.chars().all(|c| c.is_ascii_hexdigit())
}

fn name_of(address: &str) -> &str {
    address.split_once('/').map_or(address, |(name, _)| name)
}

fn place(address: &str, user: u32) -> rustix::io::Result<SocketAddrUnix> {
    SocketAddrUnix::new_abstract_name(format!("twinnet/{user}/{address}").as_bytes())
}

fn taken(name: &str) -> LabError {
    LabError::new(
        ErrorName::LabNameTaken,
        format!("a lab of yours named {name:?} is running"),
        "choose another name, or none, or end that lab",
    )
}

fn check(name: &str) -> Result<(), LabError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(allowed) {
        let shown: String = name.chars().take(80).collect();
        let message = format!(
            "{shown:?} cannot be a lab's name; 1 to {LONGEST_NAME} letters, digits, \"_\", \".\" and \"-\" can"
        );
        return Err(LabError::new(ErrorName::InvalidLabName, message, ""));
    }
    Ok(())
}

fn listen(address: &str) -> rustix::io::Result<OwnedFd> {
    let address = place(address, rustix::process::geteuid().as_raw())?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn refused(name: &str, error: io::Error) -> LabError {
    LabError::new(ErrorName::LabNotStarted, format!("listening for lab {name:?}: {error}"), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_held_while_the_socket_lives() {
        let names = || find(None).unwrap().labs;
        let (name, listener) = claim(None).unwrap();
        assert!(names().contains(&name));
        assert!(open(&name).is_ok());
        assert_eq!(claim(Some(&name)).unwrap_err().name, "LabNameTaken");
        drop(listener);
        assert!(!names().contains(&name));
        assert_eq!(open(&name).unwrap_err().name, "NotAvailable");
    }

    #[test]
    fn a_lab_at_another_address_holds_its_name_too() {
        let name = format!("elsewhere-{}", std::process::id());
        let _elsewhere = listen(&format!("{name}/7f")).unwrap();
        assert_eq!(claim(Some(&name)).unwrap_err().name, "LabNameTaken");
        assert!(open(&name).is_ok());
    }

    #[test]
    fn a_listener_that_takes_nobody_is_waited_for_a_limited_time() {
        let name = format!("full-{}", std::process::id());
        let listener = listen(&name).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let mut waiting = Vec::new();
        while let Ok(peer) = connect(&name, user) {
            waiting.push(peer);
        }
        let found = find(Some(&name)).unwrap();
        assert!(found.labs.is_empty());
        assert_eq!(found.strangers, [Stranger { name: name.clone(), user: None }]);
        let (_, held) = claim(Some(&name)).unwrap();
        assert!(open(&name).is_ok());
        drop(held);
        assert!(open(&name).unwrap_err().message.contains("lets nobody in"));
    }

    #[test]
    fn only_addresses_of_the_callers_labs_that_are_listened_at_are_looked_at() {
        let sockets = "Num RefCount Protocol Flags Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 100 @twinnet/7/b\n\
            0000000000000000: 00000003 00000000 00000000 0005 03 101 @twinnet/7/b\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 102 @twinnet/77/c\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 103\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 104 @twinnet/7/a/0f\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 105 @twinnet/7/a/../b\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 106 @twinnet/7/\u{1b}[31m\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 107 @twinnet/7/stream\n";
        assert_eq!(addresses_in(sockets, 7), ["a/0f", "b"]);
        assert_eq!(name_of("a/0f"), "a");
    }

    #[test]
    fn a_name_that_would_confuse_the_address_is_refused() {
        assert_eq!(claim(Some("a/b")).unwrap_err().name, "InvalidLabName");
        assert_eq!(claim(Some("")).unwrap_err().name, "InvalidLabName");
    }
}
