//! Hosts as the kernel knows them: two are built, their interfaces are joined by a thread that copies frames, and a
//! datagram crosses. The caller must be allowed to create namespaces itself (a lab process is: it stands in a user
//! namespace of its own); else the tests fail unless `TWINNET_LACKS` says `namespaces`.

mod means;

use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};
use serde_json::{json, Value};
use twinnet_lab::network::NetworkSpec;
use twinnet_linux::kernel::interface::{HostInterface, InterfaceKind};
use twinnet_linux::kernel::namespace::{build, Built};

/// Longest that anything here may take.
const PATIENCE: Duration = Duration::from_secs(10);

fn two_hosts() -> Value {
    let host = |number: u32| {
        json!({"kind": "host", "name": format!("h{number}"), "ports": [{"name": format!("h{number}-eth0"),
            "mac": format!("00:00:00:00:00:0{number}"),
            "addresses": [format!("10.0.0.{number}/8"), format!("fd00::{number}/64")]}]})
    };
    json!({"nodes": [host(1), host(2)], "links": [{"a": {"node": "h1", "port": 0}, "b": {"node": "h2", "port": 0}}]})
}

/// Builds the network, or tells why this machine does not let us and gives nothing. Everything happens in a
/// namespace that stands for the lab's own, so that the caller's is left alone.
fn built(network: &Value, kind: InterfaceKind) -> Option<Built> {
    let network = NetworkSpec::from_json(network).unwrap();
    let outcome = std::thread::spawn(move || {
        // SAFETY: only the network namespace of this thread changes.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
            .map_err(|error| error.to_string())?;
        build(&network, Some(kind)).map_err(|error| error.message)
    });
    match outcome.join().unwrap() {
        Ok(built) => Some(built),
        Err(why) => {
            means::lacking("namespaces", &why);
            None
        }
    }
}

/// Runs `work` in a host's network.
fn within<T: Send + 'static>(
    network: &OwnedFd,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    let network = network.try_clone().unwrap();
    std::thread::spawn(move || {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    })
}

/// Copies frames, headers and all, between two interfaces until it is told to stop.
fn join(interfaces: Vec<HostInterface>, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let [a, b] = <[HostInterface; 2]>::try_from(interfaces).unwrap();
        let mut buffer = vec![0; 70_000];
        let tick = Timespec::try_from(Duration::from_millis(20)).unwrap();
        while !stop.load(Ordering::Relaxed) {
            let mut watched = [PollFd::new(&a.fd, PollFlags::IN), PollFd::new(&b.fd, PollFlags::IN)];
            poll(&mut watched, Some(&tick)).unwrap();
            for (from, to) in [(&a.fd, &b.fd), (&b.fd, &a.fd)] {
                while let Ok(length) = rustix::io::read(from, &mut buffer) {
                    rustix::io::write(to, &buffer[..length]).unwrap();
                }
            }
        }
    })
}

fn a_datagram_crosses(kind: InterfaceKind, address: &'static str) {
    let Some(built) = built(&two_hosts(), kind) else { return };
    assert_eq!(built.kind, kind);
    assert_eq!(
        built.interfaces.iter().map(|interface| (interface.node, interface.port)).collect::<Vec<_>>(),
        [(0, 0), (1, 0)]
    );
    let stop = Arc::new(AtomicBool::new(false));
    let wire = join(built.interfaces, Arc::clone(&stop));
    let receiver = within(&built.hosts[1].network, move || {
        let socket = UdpSocket::bind((address, 5000)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    })
    .join()
    .unwrap();
    let sender = within(&built.hosts[0].network, move || {
        let socket = UdpSocket::bind(if address.contains(':') { "[::]:0" } else { "0.0.0.0:0" }).unwrap();
        socket.send_to(b"across", (address, 5000)).unwrap();
    });
    let mut buffer = [0; 100];
    let length = receiver.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"across");
    sender.join().unwrap();
    stop.store(true, Ordering::Relaxed);
    wire.join().unwrap();
}

#[test]
fn a_datagram_crosses_between_taps() {
    a_datagram_crosses(InterfaceKind::Tap, "10.0.0.2");
    a_datagram_crosses(InterfaceKind::Tap, "fd00::2");
}

#[test]
fn a_datagram_crosses_between_packet_sockets() {
    a_datagram_crosses(InterfaceKind::Packet, "10.0.0.2");
    a_datagram_crosses(InterfaceKind::Packet, "fd00::2");
}

#[test]
fn hosts_are_given_in_the_order_of_the_nodes_whoever_built_them() {
    let mut network = two_hosts();
    let nodes: Vec<Value> = (1..=9)
        .map(|number| {
            json!({"kind": "host", "name": format!("h{number}"),
            "ports": [{"name": format!("h{number}-eth0"), "mac": format!("00:00:00:00:00:0{number}")}]})
        })
        .collect();
    network["nodes"] = nodes.into();
    network["links"] = json!([]);
    let Some(built) = built(&network, InterfaceKind::Tap) else { return };
    assert_eq!(built.hosts.iter().map(|host| host.node).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
    assert_eq!(built.interfaces.iter().map(|interface| interface.node).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
}

#[test]
fn a_gateway_out_of_reach_is_refused_with_the_host_and_the_route() {
    if built(&two_hosts(), InterfaceKind::Tap).is_none() {
        return;
    }
    let mut network = two_hosts();
    network["nodes"][0]["routes"] = json!([{"to": "0.0.0.0/0", "via": "192.0.2.1"}]);
    let network = NetworkSpec::from_json(&network).unwrap();
    let error = build(&network, Some(InterfaceKind::Tap)).unwrap_err();
    assert!(
        error.message.starts_with("host \"h1\": adding the route to 0.0.0.0/0 via 192.0.2.1: Network"),
        "{error:?}"
    );
    assert!(error.remedy.contains("gateway"), "{error:?}");
}
