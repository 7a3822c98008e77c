//! The hosts of a network as the kernel knows them: a network namespace each, held by a descriptor and by nothing else.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use twinnet_lab::network::{Attachment, HostSpec, NetworkSpec, NodeSpec};
use twinnet_packet::{Framing, Prefix};

use crate::kernel::back_pressure::{most_segments, TokenBucket};
use crate::kernel::interface::{
    bind_packet_socket, open_packet_socket, open_tap, transmit_queue_frames, HostInterface, InterfaceKind,
    VNET_HEADER_BYTES,
};
use crate::kernel::netlink::{LinkSettings, Netlink, Pair, LOOPBACK};
use crate::kernel::open_vswitch;
use crate::service::{ErrorName, LabError};

/// Threads that build at the same time: two are a quarter faster than one on two cores; the kernel does most of the
/// work under few locks, so more gain little.
const BUILDERS: usize = 2;
/// Index of the first interface of a host when we choose it; above the tunnels that some kernels put in every
/// namespace.
const FIRST_INDEX: u32 = 100;
/// The number of times that the kernel repeats what an ended program's TCP connection has left to say
/// (net.ipv4.tcp_orphan_retries). Such a connection keeps its namespace, also when the lab is gone and nobody can
/// answer any more: by Linux's own value, 8, for 100 s; by this one for less than 10 s.
pub(crate) const ORPHAN_RETRIES: &str = "4";
/// Bits of the link-local network (RFC 4291 section 2.5.6).
pub(crate) const LINK_LOCAL_BITS: u8 = 64;

/// A host that has been built.
#[derive(Debug)]
pub struct HostNamespace {
    /// Index among the network's nodes.
    pub node: usize,
    /// Its name.
    pub name: String,
    /// Its network namespace.
    pub network: OwnedFd,
}

/// The result of building: the hosts in the order of the nodes, their interfaces, and what these are.
#[derive(Debug)]
pub struct Built {
    /// The hosts.
    pub hosts: Vec<HostNamespace>,
    /// Their interfaces, by node, then port.
    pub interfaces: Vec<HostInterface>,
    /// The kind of the interfaces.
    pub kind: InterfaceKind,
}

/// The things that are needed to give hosts interfaces of one kind.
enum Plan {
    Tap,
    Packet { lab: OwnedFd },
}

/// One host to build; packet sockets and their indices, one a port, were prepared in the lab's own namespace.
struct Task<'a> {
    node: usize,
    host: &'a HostSpec,
    packet_sockets: Vec<(OwnedFd, u32)>,
    /// `true` if its kernel is to say nothing by itself: it is a place for Open vSwitch, no host.
    silent: bool,
}

type BuiltHost = (HostNamespace, Vec<HostInterface>);
type Attachments<'a> = HashMap<(&'a str, usize), Attachment>;

/// Builds all hosts of `network`. `wanted` is `None` for TAPs where they can be had and packet sockets otherwise.
///
/// # Errors
/// The first step that failed, with the host it was for; what was built is gone then.
pub fn build(network: &NetworkSpec, wanted: Option<InterfaceKind>) -> Result<Built, LabError> {
    let kind = match wanted {
        Some(kind) => kind,
        None if tap_can_be_opened() => InterfaceKind::Tap,
        None => InterfaceKind::Packet,
    };
    let plan = match kind {
        InterfaceKind::Tap => Plan::Tap,
        InterfaceKind::Packet => {
            silence_own_ipv6();
            Plan::Packet {
                lab: own_network_namespace()
                    .map_err(|error| refusal("", "opening the lab's network namespace", &error))?,
            }
        }
    };
    let (tasks, next_index) = prepare(network, kind)?;
    let (mut hosts, mut interfaces) = (Vec::new(), Vec::new());
    for share in built_side_by_side(tasks, &plan, &network.attachments()) {
        for (host, its_interfaces) in share? {
            hosts.push(host);
            interfaces.extend(its_interfaces);
        }
    }
    if let Some(instance) = open_vswitch::Instance::of(network) {
        let (host, its_interfaces) = build_instance(&instance, kind, next_index, &plan)?;
        hosts.push(host);
        interfaces.extend(its_interfaces);
    }
    Ok(Built { hosts, interfaces, kind })
}

/// Builds the hosts by several threads, each of which does a share of the `tasks`; the shares are in their order.
fn built_side_by_side(
    tasks: Vec<Task<'_>>,
    plan: &Plan,
    attachments: &Attachments<'_>,
) -> Vec<Result<Vec<BuiltHost>, LabError>> {
    let ipv6 = Path::new("/proc/sys/net/ipv6").exists();
    let mut shares: Vec<Vec<Task<'_>>> = (0..BUILDERS).map(|_| Vec::new()).collect();
    let share_length = tasks.len().div_ceil(BUILDERS).max(1);
    for (index, task) in tasks.into_iter().enumerate() {
        shares[index / share_length].push(task);
    }
    std::thread::scope(|scope| {
        let builders: Vec<_> = shares
            .into_iter()
            .filter(|share| !share.is_empty())
            .map(|share| {
                let lab_netlink = Netlink::open();
                scope.spawn(move || {
                    let mut lab_netlink =
                        lab_netlink.map_err(|error| refusal("", "opening a netlink socket", &error))?;
                    share.into_iter().map(|task| build_host(task, plan, attachments, ipv6, &mut lab_netlink)).collect()
                })
            })
            .collect();
        builders
            .into_iter()
            .map(|builder| {
                builder
                    .join()
                    .unwrap_or_else(|_| Err(LabError::new(ErrorName::Internal, "a builder of hosts panicked", "")))
            })
            .collect()
    })
}

/// Builds the namespace of the lab's Open vSwitch, in a thread of its own: the thread stands in it afterwards.
fn build_instance(
    instance: &open_vswitch::Instance,
    kind: InterfaceKind,
    mut next_index: u32,
    plan: &Plan,
) -> Result<BuiltHost, LabError> {
    let host = &instance.host;
    let packet_sockets = packet_sockets(host, kind, &mut next_index)?;
    let attachments = instance.attachments();
    let task = Task { node: usize::MAX, host, packet_sockets, silent: true };
    let mut lab_netlink = Netlink::open().map_err(|error| refusal("", "opening a netlink socket", &error))?;
    let built = std::thread::scope(|scope| {
        let build = scope.spawn(|| build_host(task, plan, &attachments, false, &mut lab_netlink));
        build
            .join()
            .unwrap_or_else(|_| Err(LabError::new(ErrorName::Internal, "the builder of Open vSwitch panicked", "")))
    });
    let (host, interfaces) = built?;
    Ok((host, instance.as_ports_of_switches(interfaces)))
}

/// The tasks, and the first index that is free for the lab's own ends of pairs.
fn prepare(network: &NetworkSpec, kind: InterfaceKind) -> Result<(Vec<Task<'_>>, u32), LabError> {
    let mut tasks = Vec::new();
    let mut next_index = FIRST_INDEX;
    for (node, spec) in network.nodes.iter().enumerate() {
        // A model host has no namespace: it lives in the fabric.
        let NodeSpec::Host(host) = spec else { continue };
        if host.model {
            continue;
        }
        tasks.push(Task { node, host, packet_sockets: packet_sockets(host, kind, &mut next_index)?, silent: false });
    }
    Ok((tasks, next_index))
}

/// The packet sockets of a host's ports, where its interfaces are of that kind.
fn packet_sockets(host: &HostSpec, kind: InterfaceKind, next_index: &mut u32) -> Result<Vec<(OwnedFd, u32)>, LabError> {
    let mut sockets = Vec::new();
    if kind == InterfaceKind::Packet {
        for _ in &host.ports {
            let socket =
                open_packet_socket().map_err(|error| refusal(&host.name, "opening a packet socket", &error))?;
            sockets.push((socket, *next_index));
            *next_index += 1;
        }
    }
    Ok(sockets)
}

/// Builds one host; the calling thread stands in its namespace afterwards.
fn build_host(
    task: Task<'_>,
    plan: &Plan,
    attachments: &Attachments<'_>,
    ipv6: bool,
    lab_netlink: &mut Netlink,
) -> Result<BuiltHost, LabError> {
    let Task { node, host, packet_sockets, silent } = task;
    let name = host.name.as_str();
    let network = enter_new_namespace(name, silent, ipv6)?;
    let mut netlink = Netlink::open().map_err(|error| refusal(name, "opening a netlink socket", &error))?;
    netlink.up(LOOPBACK, "lo");
    let mut packet_sockets = packet_sockets.into_iter();
    let mut interfaces = Vec::with_capacity(host.ports.len());
    let mut buckets = Vec::new();
    for (port, spec) in host.ports.iter().enumerate() {
        let attachment = attachments.get(&(name, port)).copied().unwrap_or(Attachment {
            mtu: 1500,
            rate: None,
            follows_trace: false,
            framing: Framing::Ethernet,
            tunnel: None,
        });
        let Attachment { mtu, rate, .. } = attachment;
        let settings =
            LinkSettings { mac: Some(spec.mac), mtu, transmit_queue_frames: transmit_queue_frames(rate, mtu), ipv6 };
        let (fd, index, kind) = match plan {
            Plan::Tap => {
                let (fd, index) = open_tap(&spec.name)
                    .map_err(|error| refusal(name, &format!("opening the TAP {}", spec.name), &error))?;
                (fd, index, InterfaceKind::Tap)
            }
            Plan::Packet { lab } => {
                let (socket, peer_index) = packet_sockets
                    .next()
                    .ok_or_else(|| LabError::new(ErrorName::Internal, "a port has no packet socket", ""))?;
                let index = FIRST_INDEX + u32::try_from(port).unwrap_or(0);
                let peer_name = format!("v{peer_index}");
                let (peer_namespace, peer_name) = (lab, peer_name.as_str());
                let pair = Pair { name: &spec.name, index, peer_name, peer_index, peer_namespace, mtu };
                join_to_fabric(name, &pair, &settings, &mut netlink, lab_netlink)?;
                bind_packet_socket(&socket, peer_index)
                    .map_err(|error| refusal(name, "binding a packet socket", &error))?;
                (socket, index, InterfaceKind::Packet)
            }
        };
        netlink.configure(index, &spec.name, &settings);
        netlink.up(index, &spec.name);
        for prefix in &spec.addresses {
            netlink.add_address(index, &spec.name, *prefix);
        }
        if ipv6 {
            let link_local = Prefix { address: spec.mac.link_local().into(), length: LINK_LOCAL_BITS };
            if !spec.addresses.contains(&link_local) {
                netlink.add_address(index, &spec.name, link_local);
            }
        }
        let bucket =
            TokenBucket::of(rate, attachment.wire_bytes(u64::from(mtu) + 14), mtu).filter(|_| spec.queue.is_none());
        buckets.extend(bucket.map(|bucket| (index, spec.name.as_str(), bucket)));
        if rate.is_some() {
            netlink.limit_segments(index, &spec.name, most_segments(rate, mtu));
        }
        let (vnet_header_bytes, routing, whole_frames, watch) = (VNET_HEADER_BYTES, None, false, None);
        let interface =
            HostInterface { node, port, kind, fd, vnet_header_bytes, mtu, index, routing, whole_frames, watch };
        interfaces.push(interface);
    }
    for route in &host.routes {
        netlink.add_route(route.to, route.via);
    }
    netlink.commit().map_err(|(what, error)| refusal(name, &what, &error))?;
    set_parameters(host, ipv6)?;
    for (index, interface, bucket) in buckets {
        netlink.hold_back(index, interface, Some(bucket));
    }
    netlink.commit().map_err(|(what, error)| refusal(name, &what, &error))?;
    let routing = Arc::new(Mutex::new(netlink));
    for interface in &mut interfaces {
        interface.routing = Some(Arc::clone(&routing));
    }
    Ok((HostNamespace { node, name: name.to_owned(), network }, interfaces))
}

/// Moves the calling thread into a new network namespace for the host `name`, with what every host's has.
fn enter_new_namespace(name: &str, silent: bool, ipv6: bool) -> Result<OwnedFd, LabError> {
    let failed = |what: &'static str| move |error: io::Error| refusal(name, what, &error);
    // SAFETY: only the network namespace of this thread changes; no descriptor table or memory is unshared.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
        .map_err(|error| refusal(name, "creating its network namespace", &error.into()))?;
    let network = own_network_namespace().map_err(failed("opening its network namespace"))?;
    if silent {
        silence_own_ipv6();
    }
    if ipv6 {
        // No router on our networks advertises anything; without this every interface would solicit one, for ever.
        fs::write("/proc/sys/net/ipv6/conf/default/accept_ra", "0")
            .map_err(failed("turning off router solicitations"))?;
    }
    fs::write("/proc/sys/net/ipv4/tcp_orphan_retries", ORPHAN_RETRIES)
        .map_err(failed("limiting the life of connections that nobody holds"))?;
    Ok(network)
}

/// Creates the `pair` of an interface of the host `name` and the lab's own end, and sets that up.
fn join_to_fabric(
    name: &str,
    pair: &Pair<'_>,
    settings: &LinkSettings,
    netlink: &mut Netlink,
    lab_netlink: &mut Netlink,
) -> Result<(), LabError> {
    netlink.create_pair(pair);
    netlink.commit().map_err(|(what, error)| refusal(name, &what, &error))?;
    lab_netlink.configure(pair.peer_index, pair.peer_name, &LinkSettings { mac: None, ..settings.clone() });
    lab_netlink.up(pair.peer_index, pair.peer_name);
    lab_netlink.commit().map_err(|(what, error)| refusal(name, &what, &error))
}

/// Sets the kernel parameters of the namespace that the calling thread stands in.
pub(crate) fn set_parameters(host: &HostSpec, ipv6: bool) -> Result<(), LabError> {
    let set = |path: &str, value: &str| {
        fs::write(path, value).map_err(|error| {
            let message = format!("host {:?}: setting {path} to {value:?}: {error}", host.name);
            LabError::new(
                ErrorName::ParameterRefused,
                message,
                "see whether the kernel has this parameter, knows this value, and lets a user namespace set it",
            )
        })
    };
    if host.forwarding {
        set("/proc/sys/net/ipv4/ip_forward", "1")?;
        if ipv6 {
            set("/proc/sys/net/ipv6/conf/all/forwarding", "1")?;
        }
    }
    for (key, value) in &host.sysctls {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        set(&parameter_path(key), &value)?;
    }
    Ok(())
}

/// The file of a kernel parameter, as sysctl(8) reads its name: dots part, and a slash stands for a dot within a part.
fn parameter_path(key: &str) -> String {
    let path: String = key
        .chars()
        .map(|c| {
            if c == '.' {
                '/'
            } else if c == '/' {
                '.'
            } else {
                c
            }
        })
        .collect();
    format!("/proc/sys/{path}")
}

/// A descriptor of the network namespace that the calling thread stands in.
///
/// # Errors
/// The error of the kernel.
pub fn own_network_namespace() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Returns `true` if `/dev/net/tun` lets a TAP be made, seen by making one in a namespace that is then dropped.
#[must_use]
pub fn tap_can_be_opened() -> bool {
    std::thread::spawn(|| {
        // SAFETY: only the network namespace of this thread changes, and the thread ends.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.is_ok()
            && open_tap("probe").is_ok()
    })
    .join()
    .unwrap_or(false)
}

/// Keeps the interfaces of the namespace that the calling thread stands in from speaking IPv6: the lab's own ends
/// of virtual Ethernet pairs, and Open vSwitch's. A kernel without IPv6 has nothing to silence.
fn silence_own_ipv6() {
    for scope in ["all", "default"] {
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
    }
}

fn refusal(host: &str, what: &str, error: &io::Error) -> LabError {
    let remedy = match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files (ulimit -n): a host needs four",
        Some(libc::ENOSPC) => "raise user.max_net_namespaces (sysctl): a host needs one",
        Some(libc::EPERM | libc::EACCES) => "run `twinnet doctor` to see what this machine permits",
        Some(libc::ENOENT) if what.contains("token bucket") => {
            "load the kernel module sch_tbf, or give the port a queue of its own"
        }
        Some(libc::EBUSY | libc::EEXIST) => "give every interface of a host its own name and addresses",
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => {
            "a route's gateway must be in a network of one of the host's addresses"
        }
        _ => "",
    };
    let place = if host.is_empty() { String::new() } else { format!("host {host:?}: ") };
    LabError::new(ErrorName::HostNotBuilt, format!("{place}{what}: {error}"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_with_a_dot_in_an_interface_name_has_a_file() {
        assert_eq!(parameter_path("net.ipv4.conf.eth0/1.rp_filter"), "/proc/sys/net/ipv4/conf/eth0.1/rp_filter");
    }
}
