//! A thread beside the loop, for what would hold the loop up.

use std::io;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

type Work = Box<dyn FnOnce() + Send>;

/// Does one thing after the other in a thread of its own, which ends when this is dropped and all is done.
#[derive(Debug)]
pub(crate) struct Aside {
    work: Sender<Work>,
}

impl Aside {
    /// Starts the thread, which calls `look` now and then: first at once, and again after the time that it returns.
    ///
    /// # Errors
    /// When the kernel gives no thread.
    pub(crate) fn start(look: impl Fn() -> Duration + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = channel::<Work>();
        let mut next = Instant::now();
        let run = move || loop {
            match receiver.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(work) => work(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if Instant::now() >= next {
                let after = look();
                next = Instant::now() + after;
            }
        };
        std::thread::Builder::new().name("aside".into()).spawn(run)?;
        Ok(Self { work: sender })
    }

    /// Has `work` done. What it holds is dropped undone should the thread have panicked: a reply among it then tells
    /// the client that there is no answer.
    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) {
        let _ = self.work.send(Box::new(work));
    }
}
