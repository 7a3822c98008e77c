"""Week 3, bufferbloat: what does a long queue do to a ping beside a download?

Runs with `twinnet mininet week3_bufferbloat.py`, and on Mininet with `sudo python3 week3_bufferbloat.py`.
"""

import re
import sys
from functools import partial

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import SingleSwitchTopo


def ping_ms(client, server):
    report = client.cmd("ping -c 10 -i 0.2", server.IP())
    return float(re.search(r"= [\d.]+/[\d.]+/([\d.]+)/", report).group(1))  # the longest


def ping_beside_download(server, home):
    """The longest ping in ms beside a transfer of 4 s, and the rate of the transfer in Mbit/s.

    Reno fills a queue within seconds; CUBIC, the default, takes longer.
    """
    home.cmd("iperf -s > /dev/null 2>&1 &")
    home.cmd("until ss -ltn | grep -q :5001; do sleep 0.1; done")
    server.cmd("iperf -y C -Z reno -t 4 -c", home.IP(), "> /tmp/week3.csv 2> /dev/null &")
    home.cmd("sleep 1.5")  # the queue needs a moment to fill
    longest = ping_ms(home, server)
    server.cmd("wait")
    home.cmd("kill %iperf; wait")
    return longest, float(server.cmd("cat /tmp/week3.csv").strip().split(",")[-1]) / 1e6


def main():
    switch = partial(OVSSwitch, failMode="standalone")
    net = Mininet(topo=SingleSwitchTopo(2), switch=switch, controller=None, link=TCLink)
    net.start()
    server, home, s1 = net.get("h1", "h2", "s1")
    for host in (server, home):  # a queue of so many frames, none of which is larger than on a real wire
        host.cmd(f"ethtool -K {host.name}-eth0 tso off gso off gro off")
    ping_ms(home, server)  # they learn each other's address
    line = s1.connectionsTo(home)[0][0]  # the port of the switch to the home
    seen = {}
    for frames in (200, 20):
        line.config(bw=5, delay="10ms", max_queue_size=frames)
        quiet = ping_ms(home, server)
        loaded, rate = ping_beside_download(server, home)
        seen[frames] = loaded
        print(f"queue of {frames} frames: ping {quiet:.0f} ms, beside a download of {rate:.1f} Mbit/s {loaded:.0f} ms")
    net.stop()
    return {
        "a queue of 200 frames is up to 200 * 12112 bit / 5 Mbit/s = 484 ms": 150 < seen[200] < 600,
        "a queue of 20 frames is up to 48 ms": seen[20] < 100,
        "the line is as fast with the short queue": rate > 3.5,
    }


if __name__ == "__main__":
    checks = main()
    for sentence, is_so in checks.items():
        print("as expected:" if is_so else "NOT as expected:", sentence)
    sys.exit(0 if all(checks.values()) else 1)
