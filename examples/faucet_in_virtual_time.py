"""Faucet, an operators' controller, in virtual time: it learns hosts, forgets them by its own timers, and learns again.

You need Faucet, ping, and the kernel for programs in virtual time (`twinnet kernel show`).
"""

import os
import shutil
from pathlib import Path

import twinnet as tn

CONFIG = """
vlans: {office: {vid: 100}}
dps:
  s1:
    dp_id: 1
    hardware: Open vSwitch
    timeout: 300
    interfaces: {1: {native_vlan: office}, 2: {native_vlan: office}, 3: {native_vlan: office}}
"""
HOSTS = ("h1", "h2", "h3")


def network() -> tn.Network:
    net = tn.Network(seed=3)
    s1 = net.switch("s1", dpid=1, fail_mode="secure", protocols=["OpenFlow13"])
    for number, name in enumerate(HOSTS, start=1):
        net.link(net.host(name, ip6=False), s1, port_b=number, rate="100 Mbit", delay="1 ms")
    net.host("c0")
    faucet = Path(os.environ.get("TWINNET_FAUCET") or shutil.which("faucet") or "faucet").absolute()
    settings = {
        # Faucet starts osken-manager of its own environment.
        "PATH": f"{faucet.parent}:{os.environ['PATH']}",
        "FAUCET_CONFIG": Path("faucet.yaml").absolute(),
        "FAUCET_LOG": "/tmp/faucet.log",
        "FAUCET_EXCEPTION_LOG": "/tmp/exception.log",
        "FAUCET_EVENT_SOCK": 0,
        "FAUCET_PROMETHEUS_PORT": 0,
    }
    listen = ["--ryu-ofp-listen-host", "127.0.0.1", "--ryu-ofp-tcp-listen-port", "{port}"]
    run = ["env", *(f"{name}={value}" for name, value in settings.items()), str(faucet), *listen]
    net.controller(run=run, host="c0")
    return net


def learned(lab: tn.Lab) -> str:
    """The hosts whose addresses stand in the switch's flows."""
    flows = "\n".join(lab.switch("s1").dump_flows())
    address = {name: lab[name].run(f"cat /sys/class/net/{name}-eth0/address", check=True).stdout for name in HOSTS}
    return ", ".join(name for name in HOSTS if address[name].strip() in flows) or "nobody"


if __name__ == "__main__":
    Path("faucet.yaml").write_text(CONFIG)
    with network().simulate(hosts="programs") as lab:
        lab.wait_for_controllers("60 s")
        for other in ("h1", "h2"):
            lab["h3"].run(f"ping -c 2 {other}", check=True)
        print(f"after two pings Faucet knows {learned(lab)}")
        lab.run_until("30 min")
        print(f"after half an hour it knows {learned(lab)}")
        lab["h1"].run("ping -c 2 h2", check=True)
        print(f"after a ping it knows {learned(lab)}")
