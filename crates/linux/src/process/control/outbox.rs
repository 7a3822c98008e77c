//! Answers on their way from the parts of the lab to the thread that writes to clients. Any thread puts them here
//! without ever waiting for a client.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{json, Value};
use twinnet_lab::protocol::Answer;

use crate::service::Responder;

/// The answer to one request.
pub struct Answered {
    /// The client that asked.
    pub client: u64,
    /// The `id` of the request, as it came.
    pub id: Value,
    /// The answer.
    pub answer: Answer,
}

impl Answered {
    /// The text of the reply.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        let reply = match &self.answer {
            Ok(reply) => json!({"id": self.id, "ok": reply}),
            Err(error) => json!({"id": self.id, "error": error}),
        };
        reply.to_string().into_bytes()
    }
}

/// The place where answers wait.
pub struct Outbox {
    answers: Mutex<Vec<Answered>>,
    wake: OwnedFd,
}

impl Outbox {
    /// An empty outbox.
    ///
    /// # Errors
    /// When the kernel gives no eventfd.
    pub fn new() -> std::io::Result<Arc<Self>> {
        let wake =
            rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self { answers: Mutex::new(Vec::new()), wake }))
    }

    /// A reply to the request `id` of `client` that ends up here.
    #[must_use]
    pub fn reply(self: &Arc<Self>, client: u64, id: Value) -> Responder {
        let outbox = Arc::clone(self);
        Responder::new(move |answer| outbox.put(Answered { client, id, answer }))
    }

    fn put(&self, answer: Answered) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        // A full counter has woken the reader already.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Readable when there may be answers.
    #[must_use]
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// All that waits, in the order it was put.
    #[must_use]
    pub fn take(&self) -> Vec<Answered> {
        let mut counter = [0; 8];
        // Nothing to read means that nobody has woken us since.
        let _ = rustix::io::read(&self.wake, &mut counter);
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
