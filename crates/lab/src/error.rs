//! Refusals, as the user gets them.

use std::fmt;

use serde::{Deserialize, Serialize};
use twinnet_host::HostConfigError;

/// Defines [`ErrorName`].
macro_rules! names {
    ($($name:ident),* $(,)?) => {
        /// What tells a refusal from others, for programs: `docs/how-to/troubleshooting.md` says of each what it means
        /// and what to do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[allow(missing_docs)]
        pub enum ErrorName { $($name),* }

        impl ErrorName {
            /// All that there are.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name in the lab protocol.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

names! {
    AgentEnded, AgentFailed, AlreadyStarted, AmbiguousLink, BadApp, BadDescriptors, BadFlow, BadFrame, BadLink,
    BadParameter, BadQueue, BadRequest, BadRoute, CaptureFailed, ControllerFailed, FabricFailed, GuestEnded,
    GuestNotBuilt, GuestNotStarted, GuestStands, HostBusy, HostEnded, HostNotBuilt, HostNotReady, InterfaceFailed,
    InterfaceNotOffered, Internal, InvalidLabName, InvalidNetwork, InvalidOption, LabNameTaken, LabNotStarted,
    LabStopped, MalformedRequest, ModelHost, MtuTooLarge, NamespacesRefused, NoAnswer, NoGuestKernel, NoRate,
    NoSuchDirectory, NoSuchInterface, NoSuchSignal, NotALabProcess, NotASwitch, NotAvailable,
    NotEthernet, NotStarted, OpenFilesExhausted, OpenVswitch, OwnCodeFailed, PacketSocketRefused, ParameterRefused,
    ProcNotMounted, ProgramNotExecutable, ProgramNotFound, ProgramNotStarted, ProgramSpins, ProgramsEnded,
    ProtocolMismatch, RealHost, TooManyApps, TooManyClients, TooManyInterfaces, TraceFailed, TunnelFailed,
    UnknownApp, UnknownCapture, UnknownConnection, UnknownHost, UnknownJob, UnknownLink, UnknownNode,
    UnknownParameter, UnknownPort, UnknownRequest, UnknownSampler, WallClockOnly,
}

impl fmt::Display for ErrorName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl PartialEq<&str> for ErrorName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

/// A refusal: a stable name, what was given and what is allowed, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct LabError {
    /// Stable name.
    pub name: ErrorName,
    /// The fault, with what was given and what is allowed.
    pub message: String,
    /// The remedy; empty when the message says all.
    pub remedy: String,
}

impl LabError {
    /// An error with a remedy.
    pub fn new(name: ErrorName, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, message: message.into(), remedy: remedy.into() }
    }
}

impl From<HostConfigError> for LabError {
    fn from(error: HostConfigError) -> Self {
        let message = error.to_string();
        match error {
            HostConfigError::TooManyInterfaces { .. } => {
                LabError::new(ErrorName::InvalidNetwork, message, "describe fewer interfaces")
            }
            HostConfigError::UnknownParameter { .. } => LabError::new(
                ErrorName::UnknownParameter,
                message,
                "leave it out, or run the lab on the wall clock with real hosts",
            ),
            HostConfigError::BadParameter { .. } => {
                LabError::new(ErrorName::BadParameter, message, "give a value that is allowed")
            }
            HostConfigError::BadRoute { .. } => {
                LabError::new(ErrorName::BadRoute, message, "name a router that has an address in one of them")
            }
            HostConfigError::Processing { .. } => LabError::new(ErrorName::InvalidNetwork, message, "change it"),
        }
    }
}
