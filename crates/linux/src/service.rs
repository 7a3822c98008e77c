//! The things that the parts of a lab process share: calls, who is to be answered, and errors
//! (docs/reference/lab-protocol.md).

use std::os::fd::OwnedFd;

use twinnet_lab::protocol::{Answer, CodeBring, Request};

use crate::wall::fidelity::{ThreadUsage, Timeliness};

pub use twinnet_lab::{ErrorName, LabError};

/// Makes code of the user's known to the apps of a lab process.
pub type BringCode = dyn Fn(&CodeBring) -> Result<(), LabError> + Send + Sync;

/// The destination of the answer to one request. It may be sent from any thread, once, now or later; a reply that is
/// dropped unsent answers with an error, so that no client waits for ever.
pub struct Responder {
    send: Option<Box<dyn FnOnce(Answer) + Send>>,
}

impl Responder {
    /// A reply that is sent by calling `send`.
    pub fn new(send: impl FnOnce(Answer) + Send + 'static) -> Self {
        Self { send: Some(Box::new(send)) }
    }

    /// Answers the request.
    pub fn send(mut self, answer: Answer) {
        if let Some(send) = self.send.take() {
            send(answer);
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if let Some(send) = self.send.take() {
            send(Err(LabError::new(ErrorName::NoAnswer, "the lab ended before it answered", "")));
        }
    }
}

/// One request as it came, with the descriptors beside it.
pub struct Call {
    /// The request.
    pub request: Request,
    /// Descriptors that came with it.
    pub descriptors: Vec<OwnedFd>,
    /// The destination of the answer.
    pub responder: Responder,
}

/// A part of the lab process that answers requests: the fabric's loop, the agent of the apps, the keeper of programs.
pub trait Service: Send + Sync {
    /// Takes the call; answers now or later. Never blocks for long.
    fn submit(&self, call: Call);

    /// Returns what the part's own thread has used so far, where it keeps account of that.
    fn usage(&self) -> Option<ThreadUsage> {
        None
    }

    /// Returns how well the part's own thread kept to its timers, where it keeps account of that.
    fn timeliness(&self) -> Option<Timeliness> {
        None
    }

    /// Begins the pauses in that account anew.
    fn forget_pauses(&self) {}
}
