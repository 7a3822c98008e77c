"""Week 2, TCP: what do its window, losses and its congestion control make of the same link?

Runs with `twinnet mininet week2_tcp.py`, and on Mininet with `sudo python3 week2_tcp.py`.
"""

import sys
from functools import partial

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import SingleSwitchTopo


def rate_mbps(client, server, *options, room=""):
    server.cmd("iperf -s", room, "> /dev/null 2>&1 &")
    server.cmd("until ss -ltn | grep -q :5001; do sleep 0.1; done")
    report = client.cmd("iperf -y C -t 3 -c", server.IP(), *options)
    server.cmd("kill %iperf; wait")
    return float(report.strip().splitlines()[-1].split(",")[-1]) / 1e6


def set_lines(switch, loss):
    for port in switch.intfList():
        if port.link:
            port.config(bw=10, delay="20ms", loss=loss, max_queue_size=100)


def main():
    switch = partial(OVSSwitch, failMode="standalone")
    net = Mininet(topo=SingleSwitchTopo(2), switch=switch, controller=None, link=TCLink)
    net.start()
    h1, h2, s1 = net.get("h1", "h2", "s1")
    for host in (h1, h2):  # frames of one segment each, so that a loss is the loss of one segment
        host.cmd(f"ethtool -K {host.name}-eth0 tso off gso off gro off")
    set_lines(s1, loss=0)  # 20 ms in each direction: a round trip of 40 ms
    clean, small = rate_mbps(h1, h2), rate_mbps(h1, h2, room="-w 8K")  # Linux makes that 16 kByte
    print(f"10 Mbit/s, 40 ms: {clean:.1f} Mbit/s, with room for 16 kByte at h2 {small:.1f} Mbit/s")
    set_lines(s1, loss=2)
    lossy = {}
    known = h1.cmd("cat /proc/sys/net/ipv4/tcp_available_congestion_control").split()
    for control in ("reno", "cubic", "bbr"):
        if control in known:
            lossy[control] = rate_mbps(h1, h2, "-Z", control)
            print(f"2 % of losses, {control}: {lossy[control]:.1f} Mbit/s")
    net.stop()
    return {
        "without losses TCP fills the line": clean > 7.5,
        "a window of 16 kByte each 40 ms is 3.3 Mbit/s at most": small < 4,
        "losses slow Reno down to about 1.2 MSS / (RTT sqrt(p)) = 2.5 Mbit/s": 0.5 < lossy["reno"] < 5,
        "BBR takes no loss for a full queue (where the kernel has it)": lossy.get("bbr", 10) > lossy["reno"],
    }


if __name__ == "__main__":
    checks = main()
    for sentence, is_so in checks.items():
        print("as expected:" if is_so else "NOT as expected:", sentence)
    sys.exit(0 if all(checks.values()) else 1)
