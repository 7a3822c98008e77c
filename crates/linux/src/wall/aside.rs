//! A thread beside the loop, for what would hold the loop up.

use std::io;
use std::sync::mpsc::{channel, Sender};

type Work = Box<dyn FnOnce() + Send>;

/// Does one thing after the other in a thread of its own, which ends when this is dropped and all is done.
#[derive(Debug)]
pub(crate) struct Aside {
    work: Sender<Work>,
}

impl Aside {
    /// # Errors
    /// When the kernel gives no thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, receiver) = channel::<Work>();
        std::thread::Builder::new().name("aside".into()).spawn(move || receiver.into_iter().for_each(|work| work()))?;
        Ok(Self { work: sender })
    }

    /// Has `work` done. What it holds is dropped undone should the thread have panicked: a reply among it then tells the client
    /// that there is no answer.
    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) {
        let _ = self.work.send(Box::new(work));
    }
}
