//! The messages between the keeper of programs and the first process of a host, over a socket of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use twinnet_lab::network::ImageSpec;

use crate::service::LabError;

/// The order to the zygote: make the first process of a host. Beside it: the host's network namespace, the
/// process's end of its socket, and a memfd with the content of `/etc/hosts`.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostOrder {
    /// Name of the host.
    pub host: String,
    /// The image whose files it has.
    pub image: Option<Box<ImageSpec>>,
    /// The files that take it into the control groups of its limits.
    pub groups: Vec<String>,
}

/// An order to the first process of a host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Start a program; its descriptors come beside the order.
    Spawn(ProgramOrder),
    /// Send a signal to a job's process group.
    Signal {
        /// The job.
        job: u64,
        /// The signal's number.
        signal: i32,
    },
}

/// A program to start.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProgramOrder {
    /// The job's number.
    pub job: u64,
    /// The program, by path or by name on `PATH`, and its arguments.
    pub argv: Vec<String>,
    /// The whole environment; `None`: that of the lab's owner.
    pub env: Option<BTreeMap<String, String>>,
    /// Working directory; `None`: that of the lab's owner.
    pub cwd: Option<String>,
    /// `true` if the one descriptor that came is a terminal, to be the program's controlling one.
    pub terminal: bool,
    /// Time after which the program's group is ended.
    pub limit_ns: Option<u64>,
}

/// A notice from the first process of a host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// The host could not be set up; the process ends.
    Failed {
        /// Why.
        error: LabError,
    },
    /// The program runs.
    Started {
        /// The job.
        job: u64,
        /// Its process, as the host's own programs see it.
        pid: i32,
    },
    /// The program could not be started.
    Refused {
        /// The job.
        job: u64,
        /// Why.
        error: LabError,
    },
    /// The program was stopped by a signal.
    Stopped {
        /// The job.
        job: u64,
    },
    /// The program goes on after it was stopped.
    Continued {
        /// The job.
        job: u64,
        /// The time for which it stood still.
        stopped_ns: u64,
    },
    /// The program has ended.
    Ended {
        /// The job.
        job: u64,
        /// The way it ended.
        outcome: Outcome,
    },
}

/// The way a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its exit status, when it exited.
    pub status: Option<i32>,
    /// The signal that ended it otherwise.
    pub signal: Option<i32>,
    /// `true` if it was ended because its time was over.
    pub limit: bool,
    /// The time that it ran.
    pub elapsed_ns: u64,
}
