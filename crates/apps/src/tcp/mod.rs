//! Streams: a source, as fast as it goes or by a schedule, and a sink that counts by connection.

pub(crate) mod header;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod source_config;
pub(crate) mod writes;
