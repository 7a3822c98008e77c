//! Datagrams: a source, and a sink that counts by sender and flow.

pub(crate) mod header;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod source_config;
