//! The kernel parameters that a model host understands.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::tcp::congestion::Algorithm;
use super::tcp::{Ecn, TcpConfig};
use crate::config::{HostConfig, HostConfigError};

/// The settings of a host; the defaults are Linux's.
#[derive(Clone, Debug)]
pub(super) struct Parameters {
    /// `net.ipv4.ip_forward`.
    pub(super) forwarding_v4: bool,
    /// `net.ipv6.conf.all.forwarding`.
    pub(super) forwarding_v6: bool,
    /// `net.ipv6.conf.all.disable_ipv6`: it loses its IPv6 addresses and routes.
    pub(super) without_v6: bool,
    /// `net.ipv4.ip_default_ttl`, used for IPv6 as well.
    pub(super) hop_limit: u8,
    /// TCP.
    pub(super) tcp: TcpConfig,
}

type Setter = fn(&mut Parameters, &str) -> Result<(), &'static str>;

/// The parameters that are known, with what they set.
const KNOWN: [(&str, Setter); 12] = [
    ("net.ipv4.ip_default_ttl", |p, text| {
        p.hop_limit = text.parse().ok().filter(|ttl| *ttl > 0).ok_or("a number from 1 to 255")?;
        Ok(())
    }),
    ("net.ipv4.ip_forward", |p, text| flag(text).map(|on| p.forwarding_v4 = on)),
    ("net.ipv4.tcp_congestion_control", |p, text| {
        p.tcp.congestion_control = Algorithm::by_name(text).ok_or("cubic, reno or bbr")?;
        Ok(())
    }),
    ("net.ipv4.tcp_ecn", |p, text| {
        p.tcp.ecn = match text {
            "0" => Ecn::Never,
            "1" => Ecn::Ask,
            "2" => Ecn::WhenAsked,
            _ => return Err("0, 1 or 2"),
        };
        Ok(())
    }),
    ("net.ipv4.tcp_rmem", |p, text| sizes(text).map(|sizes| p.tcp.receive_buffer = sizes)),
    ("net.ipv4.tcp_sack", |p, text| flag(text).map(|on| p.tcp.sack = on)),
    ("net.ipv4.tcp_timestamps", |p, text| flag(text).map(|on| p.tcp.timestamps = on)),
    ("net.ipv4.tcp_window_scaling", |p, text| flag(text).map(|on| p.tcp.window_scaling = on)),
    ("net.ipv4.tcp_wmem", |p, text| sizes(text).map(|sizes| p.tcp.send_buffer = sizes)),
    ("net.ipv6.conf.all.disable_ipv6", |p, text| flag(text).map(|on| p.without_v6 = on)),
    ("net.ipv6.conf.all.forwarding", |p, text| flag(text).map(|on| p.forwarding_v6 = on)),
    // Of interfaces to come, and a model has none such.
    ("net.ipv6.conf.default.disable_ipv6", |_, text| flag(text).map(drop)),
];

fn flag(text: &str) -> Result<bool, &'static str> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("0 or 1"),
    }
}

fn sizes(text: &str) -> Result<[u64; 3], &'static str> {
    const ALLOWED: &str = "three sizes in bytes, each at least 1024, from the least to the most";
    let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
    let sizes: [u64; 3] = numbers.ok().and_then(|numbers| numbers.try_into().ok()).ok_or(ALLOWED)?;
    let sound = sizes.is_sorted() && sizes[0] >= 1024 && sizes[2] <= u64::from(u32::MAX);
    sound.then_some(sizes).ok_or(ALLOWED)
}

impl Parameters {
    /// The parameters of a described host.
    ///
    /// # Errors
    /// For a parameter that a model does not know, or a value that it cannot have.
    pub(super) fn of(described: &HostConfig) -> Result<Arc<Self>, HostConfigError> {
        /// Most hosts have the same, and there may be very many.
        static PLAIN: OnceLock<Arc<Parameters>> = OnceLock::new();
        let plain = PLAIN.get_or_init(|| {
            let tcp = TcpConfig::default();
            Arc::new(Self { forwarding_v4: false, forwarding_v6: false, without_v6: false, hop_limit: 64, tcp })
        });
        if described.sysctls.is_empty() && !described.forwarding {
            return Ok(Arc::clone(plain));
        }
        let mut parameters = Self::clone(plain);
        (parameters.forwarding_v4, parameters.forwarding_v6) = (described.forwarding, described.forwarding);
        parameters.set_all(&described.name, &described.sysctls)?;
        Ok(Arc::new(parameters))
    }

    fn set_all(&mut self, host: &str, given: &BTreeMap<String, Value>) -> Result<(), HostConfigError> {
        for (key, value) in given {
            // sysctl(8) takes both spellings.
            let name = key.replace('/', ".");
            let Some((_, set)) = KNOWN.iter().find(|(known, _)| *known == name) else {
                let known = KNOWN.map(|(known, _)| known).join(", ");
                let (host, parameter) = (host.to_owned(), key.clone());
                return Err(HostConfigError::UnknownParameter { host, parameter, known });
            };
            let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
            set(self, &text).map_err(|allowed| {
                let (host, parameter) = (host.to_owned(), key.clone());
                HostConfigError::BadParameter { host, parameter, given: text, allowed }
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parameters(given: &[(&str, Value)]) -> Result<Arc<Parameters>, HostConfigError> {
        let described = HostConfig {
            name: "h1".to_owned(),
            sysctls: given.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
            ..HostConfig::default()
        };
        Parameters::of(&described)
    }

    #[test]
    fn known_parameters_are_set() {
        let set = parameters(&[
            ("net.ipv4.ip_default_ttl", json!(9)),
            ("net.ipv4.ip_forward", json!("1")),
            ("net.ipv4.tcp_congestion_control", json!("reno")),
            ("net.ipv4.tcp_ecn", json!(1)),
            ("net.ipv4.tcp_rmem", json!("4096 10000  20000")),
            ("net.ipv4.tcp_sack", json!(0)),
        ])
        .unwrap();
        assert_eq!((set.hop_limit, set.forwarding_v4, set.forwarding_v6), (9, true, false));
        assert_eq!(set.tcp.congestion_control, Algorithm::Reno);
        assert_eq!((set.tcp.ecn, set.tcp.sack, set.tcp.receive_buffer), (Ecn::Ask, false, [4096, 10_000, 20_000]));
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_those_that_are_known() {
        let error = parameters(&[("net.core.somaxconn", json!(1))]).unwrap_err();
        assert!(matches!(error, HostConfigError::UnknownParameter { .. }));
        let message = error.to_string();
        assert!(message.contains("\"net.core.somaxconn\"") && message.contains("net.ipv4.tcp_rmem"));
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_what_is_allowed() {
        for (key, value, allowed) in [
            ("net.ipv4.ip_default_ttl", json!(0), "1 to 255"),
            ("net.ipv4.tcp_congestion_control", json!("vegas"), "cubic, reno or bbr"),
            ("net.ipv4.tcp_wmem", json!("4096 2000 9000"), "three sizes"),
            ("net.ipv4.tcp_wmem", json!("4096"), "three sizes"),
            ("net.ipv4.tcp_sack", json!(2), "0 or 1"),
        ] {
            let error = parameters(&[(key, value)]).unwrap_err();
            assert!(error.to_string().contains(allowed), "{error}");
        }
    }
}
