"""Week 4, routing: is the way over fewer routers the faster one?

Runs with `twinnet mininet week4_routing.py`, and on Mininet with `sudo python3 week4_routing.py`.
"""

import re
import sys

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import Node
from mininet.topo import Topo


class Router(Node):
    """A host that forwards."""

    def config(self, **params):
        super().config(**params)
        self.cmd("sysctl -w net.ipv4.ip_forward=1")


class Triangle(Topo):
    """h1 at r1, h2 at r2; r1 and r2 have a slow line, and a fast way over r3."""

    def build(self):
        for number in (1, 2, 3):
            self.addNode(f"r{number}", cls=Router, ip=None)
        for number in (1, 2):
            net = f"10.0.{number}"
            host = self.addHost(f"h{number}", ip=net + ".10/24", defaultRoute=f"via {net}.1")
            self.addLink(host, f"r{number}", params2={"ip": net + ".1/24"})
        for one, other, delay in ((1, 2, "30ms"), (1, 3, "5ms"), (3, 2, "5ms")):
            net = f"10.1.{one}{other}."
            ends = {"params1": {"ip": net + f"{one}/24"}, "params2": {"ip": net + f"{other}/24"}}
            self.addLink(f"r{one}", f"r{other}", delay=delay, **ends)


def ping(client, server):
    """The hops that a reply has passed, and the shortest round trip in ms."""
    report = client.cmd("ping -c 4 -i 0.2", server.IP())
    return 64 - int(re.search(r"ttl=(\d+)", report).group(1)), float(re.search(r"= ([\d.]+)/", report).group(1))


def main():
    net = Mininet(topo=Triangle(), controller=None, link=TCLink)
    net.start()
    h1, h2, r1, r2, r3 = net.get("h1", "h2", "r1", "r2", "r3")
    r3.cmd("ip route add 10.0.1.0/24 via 10.1.13.1; ip route add 10.0.2.0/24 via 10.1.32.2")
    r1.cmd("ip route add 10.0.2.0/24 via 10.1.12.2")
    r2.cmd("ip route add 10.0.1.0/24 via 10.1.12.1")
    direct = ping(h1, h2)
    print(f"r1 - r2: {direct[0]} routers, {direct[1]:.1f} ms")
    r1.cmd("ip route replace 10.0.2.0/24 via 10.1.13.3")
    mixed = ping(h1, h2)
    print(f"there over r3, back by r2 - r1: {mixed[0]} routers back, {mixed[1]:.1f} ms")
    r2.cmd("ip route replace 10.0.1.0/24 via 10.1.32.3")
    round_about = ping(h1, h2)
    print(f"r1 - r3 - r2: {round_about[0]} routers, {round_about[1]:.1f} ms")
    net.stop()
    return {
        "two routers and 30 ms each way": direct[0] == 2 and 60 <= direct[1] < 70,
        "a route is of one direction: 10 ms there, 30 ms back": mixed[0] == 2 and 40 <= mixed[1] < 50,
        "three routers and 10 ms each way": round_about[0] == 3 and 20 <= round_about[1] < 30,
    }


if __name__ == "__main__":
    checks = main()
    for sentence, is_so in checks.items():
        print("as expected:" if is_so else "NOT as expected:", sentence)
    sys.exit(0 if all(checks.values()) else 1)
