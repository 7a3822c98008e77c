//! The agent: runs the apps of all hosts on real sockets, in one thread.
//!
//! It holds sockets in every host's network namespace and drives the state machines of `twinnet-apps` with them.
//! There is no process and no thread per host, and what it costs is known ([`Agent::cpu`]).

mod datagrams;
mod error_queue;
mod event_loop;
mod icmp;
mod namespaces;
mod poller;
mod processor_wait;
mod requests;
mod sockets;
mod system;
mod usage;
mod waiting;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;

use event_loop::EventLoop;
use namespaces::Namespaces;
use poller::{Poller, Waker};
use requests::Command;
use sockets::Sockets;
use usage::PublishedUsage;
use waiting::Waiting;

pub use usage::AgentUsage;

use crate::service::{Call, ErrorName, LabError, Service};
use crate::wall::clock::{time_is_virtual, LabClock};
use crate::wall::fidelity::{ThreadUsage, Timeliness};
use crate::wall::scheduling::{take_short_turns, AGENT_THREAD_NAME};

/// Name of the only host of an agent on the machine itself.
pub const MACHINE: &str = "machine";

/// The agent's thread, seen from outside. Dropping it ends the thread and closes all sockets.
pub struct Agent {
    commands: Sender<Command>,
    waker: Waker,
    hosts: Arc<Vec<String>>,
    usage: Arc<PublishedUsage>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    /// Starts the thread, which will run apps in these hosts' network namespaces. Raises the process's limit of open
    /// files as far as it may.
    ///
    /// # Errors
    /// When the kernel refuses a thread or an epoll instance, or is older than Linux 5.11.
    pub fn start(clock: LabClock, hosts: Vec<(String, OwnedFd)>) -> io::Result<Self> {
        let (names, namespaces): (Vec<_>, Vec<_>) = hosts.into_iter().unzip();
        Self::start_in(clock, names, Namespaces::new(namespaces), Waiting::in_lab())
    }

    /// Starts the thread for apps on the machine itself, in the network namespace of the caller. Its only host is
    /// [`MACHINE`]. The thread spins for what is due, at ordinary priority as long as it has a processor to itself.
    ///
    /// # Errors
    /// As [`Agent::start`].
    pub fn start_on_machine(clock: LabClock) -> io::Result<Self> {
        let waiting = if time_is_virtual() { Waiting::in_virtual_time() } else { Waiting::on_machine() };
        Self::start_in(clock, vec![MACHINE.to_owned()], Namespaces::of_machine(), waiting)
    }

    fn start_in(clock: LabClock, names: Vec<String>, namespaces: Namespaces, waiting: Waiting) -> io::Result<Self> {
        let hosts = Arc::new(names);
        let usage = Arc::new(PublishedUsage::default());
        let (mut poller, waker) = Poller::new()?;
        // The one call that an old kernel lacks: found out now rather than in the thread.
        poller.wait(Some(twinnet_units::Duration::ZERO), &mut poller::Found::default(), || clock.now())?;
        system::raise_open_files();
        let (commands, received) = channel();
        let (thread_hosts, thread_usage) = (Arc::clone(&hosts), Arc::clone(&usage));
        let (begins, has_begun) = channel();
        let thread = std::thread::Builder::new().name(AGENT_THREAD_NAME.to_owned()).spawn(move || {
            precise_timers();
            take_short_turns();
            let _ = begins.send(());
            let sockets = Sockets::new(namespaces, poller, clock, waiting.is_on_machine());
            let mut event_loop = EventLoop::new(clock, sockets, thread_hosts, received, thread_usage, waiting);
            if let Err(error) = event_loop.run() {
                // Its replies and its end of the channel are dropped: every request, past and to come, is answered
                // with an error.
                tracing::error!("the agent of the apps ended: {error}");
            }
        })?;
        // Who promotes the lab from outside finds the thread by its name, which it has given itself by then.
        let _ = has_begun.recv();
        Ok(Self { commands, waker, hosts, usage, thread: Some(thread) })
    }

    /// Returns what the thread has cost so far, as it published it: within 10 ms while it is busy.
    #[must_use]
    pub fn cpu(&self) -> AgentUsage {
        self.usage.read()
    }

    /// Ends the thread and closes all sockets. Reports that were not asked for are gone.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            // Both fail only when the thread has ended by itself.
            let _ = self.commands.send(Command::End);
            self.waker.wake();
            let _ = thread.join();
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.end();
    }
}

impl Service for Agent {
    fn submit(&self, call: Call) {
        match requests::command(call, &self.hosts) {
            Err((responder, error)) => responder.send(Err(error)),
            Ok(command) => match self.commands.send(command) {
                Ok(()) => self.waker.wake(),
                Err(refused) => refuse(refused.0),
            },
        }
    }

    fn usage(&self) -> Option<ThreadUsage> {
        let used = self.cpu();
        Some(ThreadUsage {
            cpu_s: (used.user + used.system).as_secs_f64(),
            user_s: used.user.as_secs_f64(),
            involuntary_switches: used.involuntary_switches,
        })
    }

    fn timeliness(&self) -> Option<Timeliness> {
        Some(Timeliness {
            waited_s: self.cpu().waited.as_secs_f64(),
            lateness: self.usage.lateness(),
            overloaded_senders: self.usage.overloaded_senders(),
            unsent_share: self.usage.unsent_share(),
            overflowed_datagrams: self.usage.overflowed_datagrams(),
            pauses: self.usage.pauses(),
        })
    }

    fn forget_pauses(&self) {
        self.usage.forget_pauses();
    }
}

/// Answers a request that came after the thread's end.
fn refuse(command: Command) {
    let (Command::Start { responder, .. }
    | Command::Stop { responder, .. }
    | Command::Report { responder, .. }
    | Command::Wait { responder, .. }) = command
    else {
        return;
    };
    responder.send(Err(LabError::new(
        ErrorName::AgentEnded,
        "the agent that runs apps has ended",
        "stop the lab and start it anew",
    )));
}

/// Timers of this thread fire when they are due, not up to 50 us later.
fn precise_timers() {
    // SAFETY: takes numbers only; a refusal leaves the default.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}
