//! The network in motion: links, queue disciplines and switches.
//!
//! The fabric does no I/O, reads no clock and starts no threads: it is told what time it is and which frames came in.
//!
//! Two hosts on a line of 10 Mbit/s and 1 ms. Hosts of the caller's own are a [`World`]:
//!
//! ```
//! use twinnet_fabric::{DirectionConfig, Fabric, PortId, Way, World};
//! use twinnet_packet::Frame;
//! use twinnet_units::Time;
//!
//! #[derive(Default)]
//! struct Hosts {
//!     to_send: Vec<Frame>,
//!     arrived: Vec<(PortId, Time)>,
//! }
//! impl World for Hosts {
//!     fn deliver(&mut self, port: PortId, _: Box<Frame>, due: Time) {
//!         self.arrived.push((port, due));
//!     }
//!     fn pull(&mut self, _: PortId) -> Option<Box<Frame>> {
//!         self.to_send.pop().map(Box::new)
//!     }
//!     fn captured(&mut self, _: PortId, _: Way, _: &Frame, _: Time) {}
//!     fn carrier(&mut self, _: PortId, _: bool) {}
//!     fn reconfigured(&mut self, _: PortId, _: &DirectionConfig) {}
//! }
//!
//! let mut fabric = Fabric::new(1);
//! let (h1, h2) = (fabric.add_host(), fabric.add_host());
//! let a = fabric.add_port(h1, "h1-eth0", 0, [2, 0, 0, 0, 0, 1]);
//! let b = fabric.add_port(h2, "h2-eth0", 0, [2, 0, 0, 0, 0, 2]);
//! let line =
//!     DirectionConfig { rate_bps: Some("10 Mbit".parse()?), delay_ps: "1 ms".parse()?, ..DirectionConfig::default() };
//! fabric.join((a, line.clone(), None), (b, line, None), 1500)?;
//!
//! let mut hosts = Hosts { to_send: vec![Frame::new(vec![0; 1000])], ..Hosts::default() };
//! fabric.readable(a, &mut hosts);
//! fabric.advance(Time::from_ns(10_000_000), &mut hosts);
//! // 1000 bytes, preamble 8 and check sequence 4 at 10 Mbit/s: 809.6 us; and 1 ms.
//! assert_eq!(hosts.arrived, [(b, Time::from_ns(1_809_600))]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod engine;
mod event;
mod heap;
mod line;
pub mod theory;
mod tree;
mod tunnel;

pub use event::{Class, Event};

pub use engine::{
    BuildError, Coalescing, ControlOutput, DirectionChange, Fabric, LinkId, NodeId, PortCounters, PortId, Samples, Way,
    World, DEFAULT_QUEUE_FRAMES, HOP_LIMIT, MOST_SAMPLES,
};
pub use line::{
    catch_up, wire_bytes, DeliveryTrace, DeliveryTraceError, DirectionConfig, DirectionCounters, LineRecord,
    LONGEST_TRAIN, MOST_DELIVERIES,
};
pub use tunnel::{TunnelConfig, TunnelError};
