//! The pipes and terminals of the programs that run in a guest.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::pty::{ioctl_tiocgptpeer, openpt, unlockpt, OpenptFlags};
use rustix::termios::{tcsetwinsize, Winsize};
use twinnet_lab::guest::{Input, TerminalSize};

use crate::guest::channel::{FromGuest, Message};

/// Bytes that are read from a pipe at once: as many as it holds.
const PIPE_BYTES: usize = 65_536;

/// A pipe of a program: the job's number, and the stream.
pub type Place = (u64, usize);

#[derive(Default)]
struct Job {
    host: String,
    /// Our ends: we write the first and read the others.
    streams: [Option<OwnedFd>; 3],
    /// The first two are one, of a terminal.
    terminal: bool,
    /// What waits to be written, and whether the program is to read nothing after that.
    to_feed: VecDeque<u8>,
    closing: bool,
    ended: bool,
}

/// The programs whose pipes are open.
#[derive(Default)]
pub struct Jobs(BTreeMap<u64, Job>);

impl Jobs {
    /// Opens the pipes of a program, or its terminal; returns its ends.
    pub fn open(&mut self, job: u64, host: &str, input: Input) -> io::Result<Vec<OwnedFd>> {
        if let Input::Terminal(size) = input {
            return self.open_terminal(job, host, size);
        }
        let output = || -> io::Result<(OwnedFd, OwnedFd)> {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&read, true)?;
            Ok((read, write))
        };
        let ((out, their_out), (error, their_error)) = (output()?, output()?);
        let (input, their_input) = if input == Input::Fed {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&write, true)?;
            (Some(write), read)
        } else {
            (None, rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
        };
        let streams = [input, Some(out), Some(error)];
        self.0.insert(job, Job { host: host.to_owned(), streams, ..Job::default() });
        Ok(vec![their_input, their_out, their_error])
    }

    fn open_terminal(&mut self, job: u64, host: &str, size: TerminalSize) -> io::Result<Vec<OwnedFd>> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        unlockpt(&ours)?;
        let theirs = ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        set_size(&ours, size);
        rustix::io::ioctl_fionbio(&ours, true)?;
        let streams = [Some(ours.try_clone()?), Some(ours), None];
        self.0.insert(job, Job { host: host.to_owned(), streams, terminal: true, ..Job::default() });
        Ok(vec![theirs])
    }

    /// The terminal of a program has another size: who runs in it hears of that by a signal.
    pub fn resize(&mut self, job: u64, size: TerminalSize) {
        if let Some(ours) = self.0.get(&job).filter(|job| job.terminal).and_then(|job| job.streams[1].as_ref()) {
            set_size(ours, size);
        }
    }

    /// The host that the program runs in.
    pub fn host(&self, job: u64) -> Option<&str> {
        self.0.get(&job).filter(|job| !job.ended).map(|job| job.host.as_str())
    }

    /// The programs that run in `host`.
    pub fn of_host(&self, host: &str) -> Vec<u64> {
        self.0.iter().filter(|(_, job)| job.host == host && !job.ended).map(|(number, _)| *number).collect()
    }

    /// Closes all pipes of a program.
    pub fn forget(&mut self, job: u64) {
        self.0.remove(&job);
    }

    /// The pipes that something can happen at.
    pub fn watched(&self) -> Vec<(Place, BorrowedFd<'_>, PollFlags)> {
        let mut watched = Vec::new();
        for (number, job) in &self.0 {
            for (stream, descriptor) in job.streams.iter().enumerate() {
                let Some(descriptor) = descriptor else { continue };
                let flags = match stream {
                    0 if job.to_feed.is_empty() => continue,
                    0 => PollFlags::OUT,
                    _ => PollFlags::IN,
                };
                watched.push(((*number, stream), descriptor.as_fd(), flags));
            }
        }
        watched
    }

    /// The program is to read `bytes`; none: there will be no more.
    pub fn feed(&mut self, number: u64, bytes: &[u8]) {
        let Some(job) = self.0.get_mut(&number) else { return };
        job.to_feed.extend(bytes);
        job.closing |= bytes.is_empty();
        job.write();
    }

    /// Something can happen at a pipe.
    pub fn moved(&mut self, (number, stream): Place, say: impl FnMut(Message<FromGuest>)) {
        let Some(job) = self.0.get_mut(&number) else { return };
        if stream == 0 {
            job.write();
        } else {
            job.read(number, stream, say);
        }
        if job.ended && job.streams.iter().all(Option::is_none) {
            self.0.remove(&number);
        }
    }

    /// The program has ended: passes on all that it wrote.
    pub fn drain(&mut self, number: u64, mut say: impl FnMut(Message<FromGuest>)) {
        let Some(job) = self.0.get_mut(&number) else { return };
        job.ended = true;
        job.streams[0] = None;
        for stream in 1..job.streams.len() {
            while job.read(number, stream, &mut say) {}
        }
        // What it left behind may write on.
        if job.streams.iter().all(Option::is_none) {
            self.0.remove(&number);
        }
    }
}

fn set_size(terminal: &OwnedFd, size: TerminalSize) {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    let _ = tcsetwinsize(terminal, size);
}

impl Job {
    fn write(&mut self) {
        let Some(input) = &self.streams[0] else { return };
        while !self.to_feed.is_empty() {
            match rustix::io::write(input, self.to_feed.as_slices().0) {
                Ok(length) => drop(self.to_feed.drain(..length)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                // It reads no more.
                Err(_) => {
                    self.to_feed.clear();
                    // What it wrote to a terminal before is still to be read.
                    self.closing |= !self.terminal;
                }
            }
        }
        if self.closing {
            self.streams[0] = None;
            if self.terminal {
                // The kernel hangs up.
                self.streams[1] = None;
            }
        }
    }

    /// Passes on what the pipe holds; returns whether there may be more now.
    fn read(&mut self, job: u64, stream: usize, mut say: impl FnMut(Message<FromGuest>)) -> bool {
        let Some(output) = &self.streams[stream] else { return false };
        let mut bytes = vec![0; PIPE_BYTES];
        match rustix::io::read(output, &mut bytes) {
            Ok(0) => {
                self.streams[stream] = None;
                false
            }
            Ok(length) => {
                bytes.truncate(length);
                say(Message::Bytes { job, stream: stream as u8, bytes });
                true
            }
            Err(rustix::io::Errno::INTR) => true,
            Err(rustix::io::Errno::AGAIN) => false,
            Err(_) => {
                self.streams[stream] = None;
                false
            }
        }
    }
}
