"""Capture both ends of a lossy link, and compare: how many packets were lost, and how long the others took."""

import twinnet as tn
from twinnet.results.captures import match_captures


def network() -> tn.Network:
    net = tn.Network(seed=2)
    s1, s2 = net.switch("s1"), net.switch("s2")
    net.link(net.host("h1"), s1)
    net.link(s1, s2, rate="20 Mbit", delay="5 ms", loss="1 %")
    net.link(s2, net.host("h2"))
    return net


if __name__ == "__main__":
    with network().simulate() as lab:
        with lab.capture("s1-eth1", "before.pcapng"), lab.capture("s2-eth2", "after.pcapng"):
            flow = lab.start(tn.apps.udp("h1", "h2", rate="10 Mbit", packets=1500, payload="1000 B"))
            lab.wait([flow])
            lab.run_until(f"{lab.now() + 0.2:.3f} s")
        print(f"the receiver missed {flow.report().lost} of 1500 packets")
    segment = match_captures(["before.pcapng", "after.pcapng"]).segments.row(0, named=True)
    print(f"the captures say {segment['lost']}")
