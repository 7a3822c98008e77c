//! Names of labs: a lab's name is the abstract socket address `@twinnet/<uid>/<name>` while it runs, and nothing else.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::service::LabError;

/// Longest name of a lab.
const LONGEST_NAME: usize = 40;
/// Names to try before giving up when a name is generated.
const ATTEMPTS: u32 = 64;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 32;
/// `__SO_ACCEPTCON` in `/proc/net/unix`: a listening socket.
const LISTENING: &str = "00010000";

/// Takes a name: the given one, or a free generated one. The socket listens, so the name is held from here on.
///
/// # Errors
/// `InvalidLabName`, `LabNameTaken`, or what the kernel says.
pub fn claim(name: Option<&str>) -> Result<(String, OwnedFd), LabError> {
    if let Some(name) = name {
        check(name)?;
        return match listen(name) {
            Ok(listener) => Ok((name.to_owned(), listener)),
            Err(rustix::io::Errno::ADDRINUSE) => Err(LabError::new(
                "LabNameTaken",
                format!("a lab of yours named {name:?} is running"),
                "choose another name, or none, or end that lab",
            )),
            Err(error) => Err(refused(name, error.into())),
        };
    }
    for _ in 0..ATTEMPTS {
        let name = format!("lab-{:04x}", rand::random::<u16>());
        match listen(&name) {
            Ok(listener) => return Ok((name, listener)),
            Err(rustix::io::Errno::ADDRINUSE) => {}
            Err(error) => return Err(refused(&name, error.into())),
        }
    }
    Err(LabError::new(
        "LabNameTaken",
        "no free name of the form lab-xxxx was found",
        "end labs that are not needed, or give the lab a name",
    ))
}

/// Names of the caller's running labs, sorted.
///
/// # Errors
/// When `/proc/net/unix` cannot be read.
pub fn list() -> io::Result<Vec<String>> {
    let sockets = fs::read_to_string("/proc/net/unix")?;
    Ok(names_in(&sockets, rustix::process::geteuid().as_raw()))
}

fn names_in(sockets: &str, user: u32) -> Vec<String> {
    let prefix = format!("@twinnet/{user}/");
    let listening = sockets.lines().filter(|line| line.split_whitespace().nth(3) == Some(LISTENING));
    let mut names: Vec<String> =
        listening.filter_map(|line| line.split_whitespace().nth(7)?.strip_prefix(&prefix).map(str::to_owned)).collect();
    names.sort_unstable();
    names
}

fn check(name: &str) -> Result<(), LabError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(allowed) {
        let shown: String = name.chars().take(80).collect();
        let message = format!(
            "{shown:?} cannot be a lab's name; 1 to {LONGEST_NAME} letters, digits, \"_\", \".\" and \"-\" can"
        );
        return Err(LabError::new("InvalidLabName", message, ""));
    }
    Ok(())
}

fn listen(name: &str) -> rustix::io::Result<OwnedFd> {
    let address = SocketAddrUnix::new_abstract_name(
        format!("twinnet/{}/{name}", rustix::process::geteuid().as_raw()).as_bytes(),
    )?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn refused(name: &str, error: io::Error) -> LabError {
    LabError::new("LabNotStarted", format!("listening for lab {name:?}: {error}"), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_held_while_the_socket_lives() {
        let (name, listener) = claim(None).unwrap();
        assert!(list().unwrap().contains(&name));
        assert_eq!(claim(Some(&name)).unwrap_err().name, "LabNameTaken");
        drop(listener);
        assert!(!list().unwrap().contains(&name));
    }

    #[test]
    fn only_the_callers_listening_sockets_are_labs() {
        let sockets = "Num RefCount Protocol Flags Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 100 @twinnet/7/b\n\
            0000000000000000: 00000003 00000000 00000000 0005 03 101 @twinnet/7/b\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 102 @twinnet/77/c\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 103\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 104 @twinnet/7/a\n";
        assert_eq!(names_in(sockets, 7), ["a", "b"]);
    }

    #[test]
    fn a_name_that_would_confuse_the_address_is_refused() {
        assert_eq!(claim(Some("a/b")).unwrap_err().name, "InvalidLabName");
        assert_eq!(claim(Some("")).unwrap_err().name, "InvalidLabName");
    }
}
