//! Hardware addresses and network prefixes, in the way that people write them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A hardware address, written `00:00:00:00:00:01`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// The IPv6 link-local address that this hardware address implies (RFC 4291 appendix A, modified EUI-64).
    #[must_use]
    pub fn link_local(self) -> std::net::Ipv6Addr {
        let [a, b, c, d, e, f] = self.0;
        let pair = |high: u8, low: u8| u16::from_be_bytes([high, low]);
        std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, pair(a ^ 2, b), pair(c, 0xff), pair(0xfe, d), pair(e, f))
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MacAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("{text:?} is not a hardware address; write for example \"00:00:00:00:00:01\"");
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(refuse)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| refuse())?;
        }
        if parts.next().is_some() {
            return Err(refuse());
        }
        if bytes[0] & 1 == 1 || bytes == [0; 6] {
            return Err(format!("{text:?} cannot be an interface's address: it is a multicast address or all zeros"));
        }
        Ok(Self(bytes))
    }
}

/// An address and the length of its network's prefix, written `10.0.0.1/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// The address.
    pub address: IpAddr,
    /// Bits of the network.
    pub length: u8,
}

impl Prefix {
    /// The address with all bits behind the prefix cleared.
    #[must_use]
    pub fn network(self) -> IpAddr {
        let length = u32::from(self.length);
        match self.address {
            IpAddr::V4(address) => {
                IpAddr::V4((address.to_bits() & (!0_u32).checked_shl(32 - length).unwrap_or(0)).into())
            }
            IpAddr::V6(address) => {
                IpAddr::V6((address.to_bits() & (!0_u128).checked_shl(128 - length).unwrap_or(0)).into())
            }
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "{text:?} is not an address with its prefix length; write for example \"10.0.0.1/8\" or \"fd00::1/64\""
            )
        };
        let (address, length) = text.split_once('/').ok_or_else(refuse)?;
        let address = address.parse::<IpAddr>().map_err(|_| refuse())?;
        let length = length.parse::<u8>().map_err(|_| refuse())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if length > most {
            return Err(format!("{text:?} has a prefix of {length} bits; at most {most} are possible"));
        }
        Ok(Self { address, length })
    }
}

macro_rules! serialise_as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

serialise_as_text!(MacAddress);
serialise_as_text!(Prefix);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_network_prefix_clears_the_host_bits() {
        assert_eq!("10.1.2.3/8".parse::<Prefix>().unwrap().network().to_string(), "10.0.0.0");
        assert_eq!("10.1.2.3/0".parse::<Prefix>().unwrap().network().to_string(), "0.0.0.0");
        assert_eq!("fd00::1/64".parse::<Prefix>().unwrap().network().to_string(), "fd00::");
        assert!("10.0.0.1/33".parse::<Prefix>().is_err());
    }

    #[test]
    fn the_link_local_address_follows_from_the_hardware_address() {
        let mac: MacAddress = "00:00:00:00:00:01".parse().unwrap();
        assert_eq!(mac.link_local().to_string(), "fe80::200:ff:fe00:1");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = (text.parse::<Prefix>(), text.parse::<MacAddress>());
        }
    }
}
