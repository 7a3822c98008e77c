"""Bufferbloat with a real web server, in virtual time: pages wait behind one download, unless the queue parts flows.

You need curl and the kernel for programs in virtual time (`twinnet kernel show`).
"""

from statistics import median

import twinnet as tn


def network(queue: tn.qos.Queue) -> tn.Network:
    net = tn.Network(seed=3)
    s1 = net.switch("s1")
    net.link(net.host("server"), s1, rate="1 Gbit", delay="10 ms")
    net.link(s1, net.host("client"), rate="10 Mbit", delay="10 ms", queue_a=queue)
    return net


def page_time(queue: tn.qos.Queue) -> float:
    """The median time that a page of 50 kB takes, in seconds."""
    with network(queue).simulate(hosts="programs") as lab:
        server, client = lab["server"], lab["client"]
        for name, thousands in (("page", 50), ("download", 40_000)):
            server.run(f"dd if=/dev/zero of=/tmp/{name} bs=1000 count={thousands}", check=True)
        server.popen("python3 -m http.server 80 --directory /tmp", stdout=tn.lab.DEVNULL, stderr=tn.lab.DEVNULL)
        lab.run_until("2 s")
        client.popen("curl -s -o /dev/null http://server/download", stdout=tn.lab.DEVNULL)
        lab.run_until("6 s")
        page = ["curl", "-s", "-o", "/dev/null", "-w", "%{time_total}", "http://server/page"]
        return median(float(client.run(page, check=True).stdout) for _ in range(5))


if __name__ == "__main__":
    print(f"1000 frames, first in first out: a page takes {page_time(tn.qos.Fifo(limit_frames=1000)):.2f} s")
    print(f"FQ-CoDel: a page takes {page_time(tn.qos.FqCodel()):.2f} s")
