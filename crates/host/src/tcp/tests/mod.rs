//! Two connections over a path held in memory.

mod acks;
mod closing;
mod handshake;
mod path;
mod recovery;
mod robustness;
mod speed;
mod transfer;
mod windows;
