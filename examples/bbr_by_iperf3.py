"""BBR beside CUBIC by iperf3 and Linux's own TCP, in virtual time: with a short and with a long queue.

You need iperf3 and the kernel for programs in virtual time (`twinnet kernel show`).
"""

import json

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
    with network(queue_frames).simulate(hosts="programs") as lab:
        for port in (5001, 5002):
            lab["sink"].popen(f"iperf3 -s -1 -p {port}", stdout=tn.lab.DEVNULL)
        lab.run_until("1 s")
        jobs = [
            lab[name].popen(f"iperf3 -c sink -p {port} -C {name} -t 20 --json")
            for port, name in ((5001, "cubic"), (5002, "bbr"))
        ]
        reports = [json.loads(job.communicate()[0]) for job in jobs]
        cubic, bbr = (report["end"]["sum_received"]["bytes"] for report in reports)
        return bbr / (cubic + bbr)


if __name__ == "__main__":
    for frames in (15, 200):
        # BBR draws at random where in its cycle it begins: another seed gives 20 to 26 % for the long queue.
        share = bbr_share(frames)
        said = "more than nine tenths" if share > 0.9 else "less than a third" if share < 1 / 3 else f"{share:.0%}"
        print(f"a queue of {frames} frames: BBR takes {said} of the line")
