//! The parts that the kernel lends: namespaces, interfaces, packet sockets, netlink, Open vSwitch's datapath.

pub mod back_pressure;
pub mod device;
pub mod interface;
pub mod namespace;
pub mod netlink;
pub mod open_vswitch;
pub mod real_interface;
mod vlan_tag;
