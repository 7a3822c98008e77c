use twinnet_host::ModelHost;
use twinnet_lab::network::{HostSpec, NodeSpec};

use crate::lab::host;

fn spec() -> HostSpec {
    match serde_json::from_value(host("h1", 1, &["10.0.0.1/8", "fd00::1/64"])).unwrap() {
        NodeSpec::Host(host) => host,
        NodeSpec::Switch(_) | NodeSpec::Interface(_) | NodeSpec::Tunnel(_) => panic!("a host was described"),
    }
}

#[test]
fn a_hundred_thousand_idle_hosts_are_built() {
    let config = spec().config(&[1500]);
    let hosts: Vec<ModelHost> = (0..100_000).map(|_| ModelHost::new(&config, 1).unwrap()).collect();
    assert_eq!(hosts.len(), 100_000);
    // What is kept for each beside is one interface with its addresses and routes: some 300 bytes.
    assert!(std::mem::size_of::<ModelHost>() <= 640, "{}", std::mem::size_of::<ModelHost>());
}
