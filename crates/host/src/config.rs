//! A model host as it is to be built.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use twinnet_impair::ImpairError;
use twinnet_packet::{MacAddress, Prefix};

use crate::ProcessingConfig;

/// Interfaces that one host can have.
pub const MOST_INTERFACES: usize = 4096;

/// A model host: its interfaces, routes and parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostConfig {
    /// Its name, which is part of the name of its random stream.
    pub name: String,
    /// `true` if it forwards packets between its interfaces.
    pub forwarding: bool,
    /// Its interfaces, in the order of their numbers.
    pub interfaces: Vec<InterfaceConfig>,
    /// Its routes beyond those that its addresses imply.
    pub routes: Vec<RouteConfig>,
    /// Kernel parameters below `net.`, by their dotted name.
    pub sysctls: BTreeMap<String, Value>,
    /// The time that it takes for each frame that arrives; `None`: no time.
    pub processing: Option<ProcessingConfig>,
}

/// An interface of a model host.
#[derive(Clone, Debug, PartialEq)]
pub struct InterfaceConfig {
    /// Hardware address.
    pub mac: MacAddress,
    /// Largest packet in bytes.
    pub mtu: u32,
    /// Addresses with their prefix lengths.
    pub addresses: Vec<Prefix>,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// The destination.
    #[schemars(with = "String")]
    pub to: Prefix,
    /// The next hop.
    pub via: IpAddr,
}

/// Something that a model host cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostConfigError {
    /// Describe fewer interfaces.
    #[error("host {host:?} has {given} interfaces; there are at most {MOST_INTERFACES}")]
    TooManyInterfaces {
        /// The host.
        host: String,
        /// The number that was given.
        given: usize,
    },
    /// Leave the parameter out, or use a real host.
    #[error("host {host:?}: a model host does not know the kernel parameter {parameter:?}; it knows {known}")]
    UnknownParameter {
        /// The host.
        host: String,
        /// The parameter's name.
        parameter: String,
        /// The names that are known.
        known: String,
    },
    /// Give a value that is allowed.
    #[error("host {host:?}: the kernel parameter {parameter:?} is {given:?}; allowed is {allowed}")]
    BadParameter {
        /// The host.
        host: String,
        /// The parameter's name.
        parameter: String,
        /// The value that it was set to.
        given: String,
        /// The values that it may be set to.
        allowed: &'static str,
    },
    /// Name a router that has an address in one of the host's networks.
    #[error("host {host:?}: the route to {to} goes via {via}, which is in none of its interfaces' networks")]
    BadRoute {
        /// The host.
        host: String,
        /// The destination of the route.
        to: Prefix,
        /// Its next hop.
        via: IpAddr,
    },
    /// Change the processing time.
    #[error("host {host:?}: processing: {error}")]
    Processing {
        /// The host.
        host: String,
        /// The fault in it.
        error: ImpairError,
    },
}
