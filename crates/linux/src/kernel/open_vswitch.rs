//! The place of the lab's own Open vSwitch: one network namespace for all switches that are Open vSwitch, with an
//! interface for each of their ports, whose other end the fabric holds. Its processes are started there as programs
//! of a host are (docs/reference/lab-protocol.md, "Open vSwitch").

use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::path::Path;

use rustix::mount::{mount, MountFlags};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use twinnet_lab::network::{Attachment, HostPortSpec, HostSpec, NetworkSpec};
use twinnet_lab::outside::Datapath;
use twinnet_packet::Framing;

use crate::kernel::interface::HostInterface;
use crate::service::{ErrorName, LabError};

/// The name under which programs are started in the place of Open vSwitch. No node can have it.
pub const HOST: &str = ".ovs";
/// The directory that holds its database and its sockets: a file system of its own, in memory, that ends with the lab.
pub const DIRECTORY: &str = "/run";
/// MTU of a port without a link.
const ETHERNET_MTU: u32 = 1500;

/// The namespace to build, as if it were a host.
#[derive(Debug)]
pub struct Instance {
    /// The host that is to be built.
    pub host: HostSpec,
    places: Vec<Place>,
}

/// Whose port an interface is.
#[derive(Clone, Copy, Debug)]
struct Place {
    node: usize,
    port: usize,
    mtu: u32,
    whole_frames: bool,
}

impl Instance {
    /// Returns what the switches of `network` need; `None` when none is Open vSwitch.
    #[must_use]
    pub fn of(network: &NetworkSpec) -> Option<Self> {
        let attachments = network.attachments();
        let (mut ports, mut places) = (Vec::new(), Vec::new());
        let mut any = false;
        for (node, switch) in network.open_vswitches() {
            any = true;
            for (port, described) in switch.ports.iter().enumerate() {
                let attachment = attachments.get(&(switch.name.as_str(), port));
                ports.push(HostPortSpec {
                    name: described.name.clone(),
                    mac: switch.port_mac(described),
                    addresses: Vec::new(),
                    queue: None,
                });
                places.push(Place {
                    node,
                    port,
                    mtu: attachment.map_or(ETHERNET_MTU, |link| link.mtu),
                    // The userspace datapath reads frames by packet sockets that tell nothing of offloads.
                    whole_frames: switch.datapath == Datapath::Netdev,
                });
            }
        }
        let host = HostSpec {
            name: HOST.to_owned(),
            model: false,
            processing: None,
            coalescing: None,
            forwarding: false,
            ports,
            routes: Vec::new(),
            sysctls: std::collections::BTreeMap::new(),
            image: None,
            limits: None,
        };
        any.then_some(Self { host, places })
    }

    /// Returns what its interfaces need to know of the links. Their rates are the fabric's affair: its queues stand
    /// before the links.
    #[must_use]
    pub fn attachments(&self) -> HashMap<(&str, usize), Attachment> {
        let attachment =
            |mtu| Attachment { mtu, rate: None, follows_trace: false, framing: Framing::Ethernet, tunnel: None };
        let of = |(index, place): (usize, &Place)| ((HOST, index), attachment(place.mtu));
        self.places.iter().enumerate().map(of).collect()
    }

    /// The interfaces that were built, as what they are: ports of switches.
    #[must_use]
    pub fn as_ports_of_switches(&self, built: Vec<HostInterface>) -> Vec<HostInterface> {
        let of = |interface: HostInterface| {
            let place = self.places.get(interface.port)?;
            let (node, port, whole_frames) = (place.node, place.port, place.whole_frames);
            Some(HostInterface { node, port, whole_frames, ..interface })
        };
        built.into_iter().filter_map(of).collect()
    }
}

/// Gives the place of Open vSwitch its directory, in the mount namespace of the calling process.
///
/// # Errors
/// The error of the kernel.
pub fn mount_directory() -> Result<(), LabError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("ovs", Path::new(DIRECTORY), "tmpfs", flags, Some(c"mode=0755,size=256m")).map_err(|error| {
        let message = format!("mounting a directory for Open vSwitch over {DIRECTORY}: {error}");
        LabError::new(ErrorName::HostNotReady, message, "run `twinnet doctor` to see what this machine permits")
    })
}

/// Returns `true` if the kernel has Open vSwitch's datapath. Asking for it loads its module where the machine permits
/// that.
#[must_use]
pub fn kernel_has_datapath() -> bool {
    generic_netlink_family(c"ovs_datapath").is_ok()
}

/// Asks the kernel for a family of generic netlink.
fn generic_netlink_family(name: &CStr) -> io::Result<()> {
    const HEADER_BYTES: usize = 16;
    const GENERIC_HEADER_BYTES: usize = 4;
    const GET_FAMILY: u8 = 3;
    const FAMILY_NAME: u16 = 2;
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(rustix::net::netlink::GENERIC),
    )?;
    let name = name.to_bytes_with_nul();
    let attribute_bytes = 4 + name.len();
    let length = HEADER_BYTES + GENERIC_HEADER_BYTES + attribute_bytes.next_multiple_of(4);
    let mut request = vec![0_u8; length];
    request[..4].copy_from_slice(&u32::try_from(length).unwrap_or(0).to_ne_bytes());
    request[4..6].copy_from_slice(&(libc::GENL_ID_CTRL as u16).to_ne_bytes());
    request[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
    request[16..18].copy_from_slice(&[GET_FAMILY, 1]);
    request[20..22].copy_from_slice(&u16::try_from(attribute_bytes).unwrap_or(0).to_ne_bytes());
    request[22..24].copy_from_slice(&FAMILY_NAME.to_ne_bytes());
    request[24..24 + name.len()].copy_from_slice(name);
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    let mut answer = [0_u8; 4096];
    let (received, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let kind = u16::from_ne_bytes([answer[4], answer[5]]);
    if received < HEADER_BYTES + 4 || i32::from(kind) == libc::NLMSG_ERROR {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_family_that_every_kernel_has_is_found_and_others_are_not() {
        assert!(generic_netlink_family(c"nlctrl").is_ok());
        assert!(generic_netlink_family(c"no_such_family").is_err());
    }

    #[test]
    fn a_network_without_open_vswitch_needs_no_place_for_it() {
        let network = NetworkSpec::from_json(&json!({"nodes": [{"kind": "switch", "name": "s1", "dpid": 1}]})).unwrap();
        assert!(Instance::of(&network).is_none());
    }

    #[test]
    fn every_port_has_an_interface_of_the_link_s_mtu() {
        let network = NetworkSpec::from_json(&json!({
            "nodes": [
                {"kind": "switch", "name": "s1", "dpid": 1, "datapath": "netdev",
                 "ports": [{"name": "s1-eth1", "number": 1}]},
                {"kind": "switch", "name": "s2", "dpid": 2, "datapath": "system",
                 "ports": [{"name": "s2-eth7", "number": 7}]},
            ],
            "links": [{"a": {"node": "s1", "port": 0}, "b": {"node": "s2", "port": 0}, "mtu": 9000}],
        }))
        .unwrap();
        let instance = Instance::of(&network).unwrap();
        let ports: Vec<_> = instance.host.ports.iter().map(|port| (port.name.as_str(), port.mac.to_string())).collect();
        assert_eq!(ports, [("s1-eth1", "02:00:00:01:00:01".to_owned()), ("s2-eth7", "02:00:00:02:00:07".to_owned())]);
        assert_eq!(instance.attachments()[&(HOST, 1)].mtu, 9000);
    }
}
