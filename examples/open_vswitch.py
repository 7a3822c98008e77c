"""The same network with our switch and with Open vSwitch: flows are written once."""

import twinnet as tn


def network(kind: str) -> tn.Network:
    net = tn.Network()
    flows = ["arp,actions=flood", "icmp,actions=normal", "priority=60000,icmp,nw_dst=10.0.0.3,actions=drop"]
    s1 = net.switch("s1", kind=kind, fail_mode="secure", flows=flows)
    for number in (1, 2, 3):
        net.link(net.host(f"h{number}"), s1, rate="100 Mbit")
    return net


if __name__ == "__main__":
    for kind in ("own", "ovs"):
        with network(kind).emulate() as lab:
            reached = [name for name in ("h2", "h3") if lab["h1"].run(f"ping -4 -c 1 -W 1 {name}").returncode == 0]
            print(f"{kind}: h1 reaches {', '.join(reached)}")
