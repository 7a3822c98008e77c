//! Two connections over a path held in memory.

mod path;
mod transfer;
