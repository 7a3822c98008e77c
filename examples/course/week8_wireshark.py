"""Week 8, Wireshark: what is on the wire when a page is fetched, and where do you look?

Runs with `twinnet mininet week8_wireshark.py`, and on Mininet with `sudo python3 week8_wireshark.py`.
"""

import sys
from functools import partial

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import SingleSwitchTopo

HERE = "/tmp/week8_%s.pcap"  # open them in Wireshark afterwards


def capture(node, port):
    """Have `node` capture TCP at `port`, and return when the capture has begun."""
    said = f"/tmp/week8_{port}.log"
    node.cmd("rm -f", said, HERE % port)
    node.cmd(f"tshark -q -F pcap -f 'tcp port 80' -i {port} -w", HERE % port, "2>", said, "&")
    node.cmd("until grep -q Capturing", said, "; do sleep 0.1; done")


def times_s(node, port, wanted):
    """The times of the frames at `port` that `wanted` names, in seconds from the first frame."""
    report = node.cmd("tshark -r", HERE % port, f"-Y '{wanted}' -T fields -e frame.time_relative 2> /dev/null")
    return [float(line) for line in report.split()]


def main():
    switch = partial(OVSSwitch, failMode="standalone")
    net = Mininet(topo=SingleSwitchTopo(2), switch=switch, controller=None, link=TCLink)
    net.start()
    h1, h2, s1 = net.get("h1", "h2", "s1")
    for host in (h1, h2):  # 25 ms from the switch to each host: there and back 50 ms
        s1.connectionsTo(host)[0][0].config(delay="25ms")
    h2.cmd("cd /usr/share/doc; python3 -m http.server 80 > /dev/null 2>&1 &")
    h2.cmd("until ss -ltn | grep -q :80; do sleep 0.1; done")
    places = {"h1-eth0": h1, "h2-eth0": h2, "s1-eth1": s1}
    for port, node in places.items():
        capture(node, port)
    h1.cmd(f"wget -q -O /dev/null http://{h2.IP()}/")
    h1.cmd("sleep 1")  # the captures write what they have
    for node in places.values():
        node.cmd("kill %tshark; wait %tshark")
    h2.cmd("kill %python3; wait")
    asked = {}
    for port in places:
        asked[port] = times_s(h1, port, "http.request")[0]
        print(f"{port}: the request {1000 * asked[port]:.1f} ms after the first frame")
    answer = "tcp.flags.syn == 1 && tcp.flags.ack == 1"
    client, server = times_s(h1, "h1-eth0", answer)[0], times_s(h1, "h2-eth0", answer)[0]
    print(f"SYN, ACK after {1000 * client:.1f} ms at the client, after {1000 * server:.1f} ms at the server")
    net.stop()
    return {
        "a handshake before the request takes one round trip, wherever you look": (
            all(0.05 <= time < 0.08 for time in asked.values())
        ),
        "the client waits one round trip for SYN, ACK": 0.05 <= client < 0.07,
        "the server answers at once": server < 0.01,
    }


if __name__ == "__main__":
    checks = main()
    for sentence, is_so in checks.items():
        print("as expected:" if is_so else "NOT as expected:", sentence)
    sys.exit(0 if all(checks.values()) else 1)
