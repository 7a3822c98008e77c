//! The hosts' network namespaces, and in which of them the agent's thread stands.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::system::check;

/// Every host's namespace; none for the machine itself, whose namespace the thread never leaves. A socket belongs
/// to the namespace in which its thread stood when it was made, and stays there.
pub struct Namespaces {
    hosts: Vec<OwnedFd>,
    entered: Option<usize>,
}

impl Namespaces {
    /// The namespaces of hosts 0, 1, ...
    pub fn new(hosts: Vec<OwnedFd>) -> Self {
        Self { hosts, entered: None }
    }

    /// The machine itself as host 0.
    pub fn of_machine() -> Self {
        Self { hosts: Vec::new(), entered: Some(0) }
    }

    /// Puts this thread in a host's namespace, unless it stands there.
    pub fn enter(&mut self, host: usize) -> io::Result<()> {
        if self.entered == Some(host) {
            return Ok(());
        }
        let namespace = self.hosts.get(host).ok_or_else(|| io::Error::other("the host has no network namespace"))?;
        // SAFETY: takes numbers only; a network namespace may be entered by a single thread (setns(2)).
        check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })?;
        self.entered = Some(host);
        Ok(())
    }
}
