//! The content of `/etc/hosts` in every host.

use std::fmt::Write as _;

use twinnet_lab::network::{NetworkSpec, NodeSpec};

/// One line for each address of each host; a host's first address of a family is the one that its name resolves to.
#[must_use]
pub fn content(network: &NetworkSpec) -> String {
    let mut lines = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
    for node in &network.nodes {
        let NodeSpec::Host(host) = node else { continue };
        for prefix in host.ports.iter().flat_map(|port| &port.addresses) {
            let link_local = matches!(prefix.address, std::net::IpAddr::V6(address) if address.is_unicast_link_local());
            if !link_local {
                // Writing to a String cannot fail.
                let _ = writeln!(lines, "{} {}", prefix.address, host.name);
            }
        }
    }
    for (name, addresses) in &network.elsewhere {
        for address in addresses {
            let _ = writeln!(lines, "{address} {name}");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_address_of_a_host_is_named_in_order() {
        let network = NetworkSpec::from_json(&json!({"nodes": [
            {"kind": "host", "name": "h1", "ports": [{"name": "h1-eth0", "mac": "00:00:00:00:00:01",
             "addresses": ["10.0.0.1/8", "fd00::1/64"]}]},
            {"kind": "switch", "name": "s1", "dpid": 1},
            {"kind": "host", "name": "h2", "ports": [{"name": "h2-eth0", "mac": "00:00:00:00:00:02",
             "addresses": ["10.0.0.2/8", "fe80::2/64"]}]},
        ], "elsewhere": {"h3": ["10.0.0.3"]}}))
        .unwrap();
        assert_eq!(
            content(&network),
            "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n10.0.0.1 h1\nfd00::1 h1\n10.0.0.2 h2\n\
             10.0.0.3 h3\n"
        );
    }
}
