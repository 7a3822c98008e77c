"""Week 5, spanning tree: what does a loop of switches do with a broadcast, and with a link that fails?

Runs with `twinnet mininet week5_spanning_tree.py`, and on Mininet with `sudo python3 week5_spanning_tree.py`.
"""

import sys
import time
from functools import partial

from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import Topo


class Ring(Topo):
    """Three switches in a ring, a host at each."""

    def build(self):
        for number in (1, 2, 3):
            self.addLink(self.addHost(f"h{number}"), self.addSwitch(f"s{number}"))
        for one, other in (("s1", "s2"), ("s2", "s3"), ("s3", "s1")):
            self.addLink(one, other)


def seconds_until(client, servers):
    """The seconds until all `servers` answer."""
    begin = time.time()
    while time.time() - begin < 120:
        if all(" 0% packet loss" in client.cmd("ping -c 1 -W 1", server.IP()) for server in servers):
            break
    return time.time() - begin


def frames_of(host):
    return int(host.cmd(f"cat /sys/class/net/{host.name}-eth0/statistics/rx_packets"))


def main():
    switch = partial(OVSSwitch, failMode="standalone", stp=True)
    net = Mininet(topo=Ring(), switch=switch, controller=None)
    net.start()
    h1, h2, h3 = net.get("h1", "h2", "h3")
    tree = seconds_until(h1, (h2, h3))
    print(f"the tree is there after {tree:.0f} s")
    before = frames_of(h3)
    h1.cmd("ping -b -c 10 -i 0.2 10.255.255.255")
    copies = frames_of(h3) - before
    print(f"10 broadcasts of h1 came to h3 as {copies} frames")
    lost = net.pingAll(timeout="1")
    net.configLinkStatus("s1", "s2", "down")
    healed = seconds_until(h1, (h2, h3))
    print(f"without s1 - s2 the network is whole again after {healed:.0f} s")
    net.stop()
    return {
        "the switches find a tree": tree < 120,
        "each broadcast comes once: no storm (a few frames are of the spanning tree itself)": 10 <= copies < 40,
        "all hosts reach each other": lost == 0,
        "another tree is found when a link fails": healed < 120,
    }


if __name__ == "__main__":
    checks = main()
    for sentence, is_so in checks.items():
        print("as expected:" if is_so else "NOT as expected:", sentence)
    sys.exit(0 if all(checks.values()) else 1)
