//! Video over RTP: a source and a sink.

pub(crate) mod frames;
pub(crate) mod header;
pub(crate) mod sink;
pub(crate) mod source;
