"""Two congestion controls share a line: BBR beside CUBIC, with a short and with a long queue."""

import twinnet as tn


def network(queue_frames: int) -> tn.Network:
    net = tn.Network(seed=5)
    s1, s2 = net.switch("s1"), net.switch("s2")
    for name in ("cubic", "bbr"):
        net.link(net.host(name), s1, rate="100 Mbit")
    net.link(s1, s2, rate="10 Mbit", delay="20 ms", queue=tn.qos.Fifo(limit_frames=queue_frames))
    net.link(s2, net.host("sink"), rate="100 Mbit")
    return net


def bbr_share(queue_frames: int) -> float:
    with network(queue_frames).simulate() as lab:
        flows = [
            lab.start(tn.apps.tcp_bulk(name, "sink", port=port, duration="20 s", congestion_control=name))
            for port, name in ((5001, "cubic"), (5002, "bbr"))
        ]
        lab.wait(flows)
        cubic, bbr = (flow.report().bytes for flow in flows)
        return bbr / (cubic + bbr)


if __name__ == "__main__":
    for frames in (15, 200):
        print(f"a queue of {frames} frames: BBR takes {bbr_share(frames):.0%} of the line")
