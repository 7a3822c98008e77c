//! Model hosts over the public interface: what their apps see of each other through switches, routers and bad links.

mod determinism;
mod errors;
mod fragments;
mod lab;
mod malformed;
mod neighbours;
mod ping;
mod processing;
mod scale;
mod static_neighbours;
mod tcp;
mod udp;
