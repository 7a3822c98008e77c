//! Where packets may go.

use std::net::{Ipv4Addr, SocketAddrV4};

/// The port of name servers (RFC 1035, 4.2).
const DOMAIN: u16 = 53;

/// The network that the interface is in, and who answers for names there.
#[derive(Clone, Copy, Debug)]
pub struct Destinations {
    /// The translation's own address, the gateway of the network.
    pub gateway: Ipv4Addr,
    /// The bits of the addresses that belong to the interface's network.
    pub prefix: u8,
    /// The address in that network that stands for `resolver`.
    pub names: Ipv4Addr,
    /// The name server of the machine, where there is one.
    pub resolver: Option<SocketAddrV4>,
}

impl Destinations {
    /// Where what is meant for `to` goes; `None` where nothing may go: the machine's own loopback network, addresses
    /// of many hosts, and what is in the interface's network.
    pub fn of(&self, to: SocketAddrV4) -> Option<SocketAddrV4> {
        let ip = *to.ip();
        if ip == self.names && to.port() == DOMAIN {
            return self.resolver;
        }
        let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
        let of_the_interface = (ip.to_bits() ^ self.gateway.to_bits()) & mask == 0;
        // 0.0.0.0/8 is "this host on this network" (RFC 1122, 3.2.1.3), which Linux takes for itself.
        let nobody = ip.octets()[0] == 0 || ip.is_loopback() || ip.is_multicast() || ip.is_broadcast();
        (!nobody && !of_the_interface).then_some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Destinations = Destinations {
        gateway: Ipv4Addr::new(198, 18, 53, 2),
        prefix: 24,
        names: Ipv4Addr::new(198, 18, 53, 3),
        resolver: Some(SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 53), 53)),
    };

    fn of(text: &str) -> Option<String> {
        HERE.of(text.parse().expect("an address")).map(|to| to.to_string())
    }

    #[test]
    fn the_name_server_stands_for_that_of_the_machine_and_for_nothing_else_of_it() {
        assert_eq!(of("198.18.53.3:53").as_deref(), Some("127.0.0.53:53"));
        assert_eq!(of("198.18.53.3:80"), None);
    }

    #[test]
    fn nothing_goes_to_the_machine_itself_or_to_many_hosts() {
        for refused in ["127.0.0.1:80", "0.0.0.0:80", "224.0.0.1:80", "255.255.255.255:67", "198.18.53.2:80"] {
            assert_eq!(of(refused), None, "{refused}");
        }
        assert_eq!(of("192.0.2.1:80").as_deref(), Some("192.0.2.1:80"));
    }
}
