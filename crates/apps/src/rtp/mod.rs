//! Video over RTP: a source and a sink.

pub(crate) mod frames;
pub(crate) mod mark;
pub(crate) mod sink;
pub(crate) mod source;
