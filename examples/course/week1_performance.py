"""Week 1, performance: which link sets the rate of a path, and which sets the time of a ping?

Runs with `twinnet mininet week1_performance.py`, and on Mininet with `sudo python3 week1_performance.py`.
"""

import re
import sys
from functools import partial

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import Topo


class Path(Topo):
    """h1 - s1 - s2 - h2, with a narrow link in the middle."""

    def build(self):
        h1, h2 = self.addHost("h1"), self.addHost("h2")
        s1, s2 = self.addSwitch("s1"), self.addSwitch("s2")
        self.addLink(h1, s1, bw=20, delay="5ms")
        self.addLink(s1, s2, bw=10, delay="10ms", max_queue_size=50)
        self.addLink(s2, h2, bw=20, delay="5ms")


def round_trip_ms(client, server):
    client.cmd("ping -c 1", server.IP())  # the first one also asks for the address
    return float(re.search(r"= [\d.]+/([\d.]+)/", client.cmd("ping -c 5 -i 0.2", server.IP())).group(1))


def rate_mbps(client, server, seconds=3):
    server.cmd("iperf -s > /dev/null 2>&1 &")
    server.cmd("until ss -ltn | grep -q :5001; do sleep 0.1; done")
    report = client.cmd("iperf -y C -t", seconds, "-c", server.IP())
    server.cmd("kill %iperf; wait")
    return float(report.strip().splitlines()[-1].split(",")[-1]) / 1e6


def main():
    switch = partial(OVSSwitch, failMode="standalone")
    net = Mininet(topo=Path(), switch=switch, controller=None, link=TCLink)
    net.start()
    h1, h2, s1, s2 = net.get("h1", "h2", "s1", "s2")
    round_trip, rate = round_trip_ms(h1, h2), rate_mbps(h1, h2)
    print(f"round trip {round_trip:.1f} ms, rate {rate:.1f} Mbit/s")
    for end in s1.connectionsTo(s2)[0]:
        end.config(bw=5, delay="10ms", max_queue_size=50)
    narrower = rate_mbps(h1, h2)
    print(f"rate with 5 Mbit/s in the middle: {narrower:.1f} Mbit/s")
    net.stop()
    return {
        "the delays of all links add up, there and back: 40 ms": 40 <= round_trip < 50,
        "the narrowest link sets the rate: below 10 Mbit/s": 7.5 < rate < 10,
        "half of the narrowest link is half of the rate": 0.4 < narrower / rate < 0.6,
    }


if __name__ == "__main__":
    checks = main()
    for sentence, is_so in checks.items():
        print("as expected:" if is_so else "NOT as expected:", sentence)
    sys.exit(0 if all(checks.values()) else 1)
