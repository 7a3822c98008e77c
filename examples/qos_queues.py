"""QoS queues: an OpenFlow queue keeps a tenth of the line for a call while UDP floods it."""

import twinnet as tn


def network(with_queues: bool) -> tn.Network:
    net = tn.Network(seed=1)
    flows = ["priority=9,udp,tp_dst=5004,actions=enqueue:3:1", "actions=normal"] if with_queues else []
    s1 = net.switch("s1", flows=flows)
    for name in ("caller", "flooder"):
        net.link(net.host(name), s1, rate="100 Mbit")
    classes = {0: tn.qos.HtbQueue(max_rate="1.8 Mbit"), 1: tn.qos.HtbQueue(min_rate="200 kbit")}
    queue = tn.qos.Htb(rate="2 Mbit", queues=classes) if with_queues else tn.qos.Fifo(limit_frames=50)
    net.link(s1, net.host("callee"), rate="2 Mbit", queue_a=queue)
    return net


def lost_share(with_queues: bool) -> float:
    with network(with_queues).simulate() as lab:
        call = lab.start(tn.apps.voice("caller", "callee", "G.711", port=5004, duration="10 s"))
        lab.start(tn.apps.udp("flooder", "callee", rate="4 Mbit", port=5005, duration="9 s"), "1 s")
        lab.run_until("11 s")
        report = call.report()
        return report.lost / (report.packets + report.lost)


if __name__ == "__main__":
    for with_queues in (False, True):
        name = "a queue of its own" if with_queues else "one queue for all"
        print(f"{name}: {lost_share(with_queues):.0%} of the call's packets are lost")
