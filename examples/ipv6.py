"""IPv6: hosts have addresses of both kinds; a host with IPv6 alone is reached by it."""

import twinnet as tn


def network() -> tn.Network:
    net = tn.Network()
    s1 = net.switch("s1")
    net.link(net.host("h1"), s1, rate="100 Mbit")
    net.link(net.host("h2", ip=False, ip6="fd00::2/64"), s1, rate="100 Mbit")
    return net


if __name__ == "__main__":
    with network().simulate() as lab:
        ping = lab.start(tn.apps.ping("h1", "fd00::2", count=3, interval="100 ms"))
        lab.wait([ping])
        print(f"{ping.report().packets} answers from fd00::2")
