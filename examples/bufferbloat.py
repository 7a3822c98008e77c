"""Bufferbloat: one download makes every ping wait for a long queue; CoDel keeps the line busy and the queue short."""

import twinnet as tn


def network(queue: tn.qos.Queue) -> tn.Network:
    net = tn.Network(seed=3)
    s1 = net.switch("s1")
    net.link(net.host("server"), s1, rate="1 Gbit", delay="10 ms")
    net.link(s1, net.host("client"), rate="10 Mbit", delay="10 ms", queue_a=queue)
    return net


def median_ping_ms(queue: tn.qos.Queue) -> float:
    with network(queue).simulate() as lab:
        download = lab.start(tn.apps.tcp_bulk("server", "client", duration="10 s", congestion_control="cubic"))
        pings = lab.start(tn.apps.ping("client", "server", count=90, interval="100 ms", timeout="5 s"))
        lab.wait([download, pings])
        return pings.report().rtt.p50 / 1e9


if __name__ == "__main__":
    long_queue = median_ping_ms(tn.qos.Fifo(limit_frames=1000))
    codel = median_ping_ms(tn.qos.Codel())
    print(f"1000 frames, first in first out: a ping takes {long_queue:.0f} ms")
    print(f"CoDel: a ping takes {codel:.0f} ms")
