//! What the parts of a lab process share: requests, replies and errors (docs/reference/lab-protocol.md).

use std::os::fd::OwnedFd;

use serde_json::Value;

use crate::wall::fidelity::{ThreadUsage, Timeliness};

pub use twinnet_lab::LabError;

type Answer = dyn FnOnce(Result<Value, LabError>) + Send;

/// Where the answer to one request goes. It may be sent from any thread, once, now or later; a reply that is dropped
/// unsent answers with an error, so that no client waits for ever.
pub struct Reply {
    send: Option<Box<Answer>>,
}

impl Reply {
    /// A reply that is sent by calling `send`.
    pub fn new(send: impl FnOnce(Result<Value, LabError>) + Send + 'static) -> Self {
        Self { send: Some(Box::new(send)) }
    }

    /// Answers the request.
    pub fn send(mut self, result: Result<Value, LabError>) {
        if let Some(send) = self.send.take() {
            send(result);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(send) = self.send.take() {
            send(Err(LabError::new("NoAnswer", "the lab ended before it answered", "")));
        }
    }
}

/// One request: the JSON object as it came (with `"do"`), and the descriptors beside it.
pub struct Request {
    /// The object.
    pub body: Value,
    /// Descriptors that came with it.
    pub descriptors: Vec<OwnedFd>,
    /// Where the answer goes.
    pub reply: Reply,
}

/// A part of the lab process that answers requests: the fabric's loop, the agent of the apps, the keeper of programs.
pub trait Service: Send + Sync {
    /// Takes the request; answers now or later. Never blocks for long.
    fn submit(&self, request: Request);

    /// What the part's own thread has used so far, where it keeps account of that.
    fn usage(&self) -> Option<ThreadUsage> {
        None
    }

    /// How well the part's own thread kept to its timers, where it keeps account of that.
    fn timeliness(&self) -> Option<Timeliness> {
        None
    }
}
