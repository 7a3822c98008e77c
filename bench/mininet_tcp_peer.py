"""TCP through one switch of a Mininet script, in Gbit/s: run by the Python that has Mininet, or by twinnet.

``mininet_tcp_peer.py 3 5``: two hosts, one `OVSSwitch` without a controller, links without limits; iperf3 for 3
seconds, 5 times. Prints what arrived, the median. On Mininet the switch is Open vSwitch's user-space datapath, whose
ports have to leave checksums to the hosts: without ``--checksums`` TCP would not pass. On twinnet it runs as any script
of Mininet (:mod:`bench.mininet_tcp`).
"""

import json
import statistics
import sys

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import SingleSwitchTopo


class StandaloneSwitch(OVSSwitch):
    """Open vSwitch that forwards in user space and learns by itself, as no controller is needed."""

    def __init__(self, name, **settings):
        super().__init__(name, failMode="standalone", datapath="user", **settings)


def main():
    """Build, measure, stop."""
    setLogLevel("error")
    net = Mininet(topo=SingleSwitchTopo(2), switch=StandaloneSwitch, controller=None)
    net.start()
    first, second = net.hosts
    if "--checksums" in sys.argv:
        for host in net.hosts:
            host.cmd(f"ethtool -K {host.name}-eth0 tx off")
    first.cmd("ping -c 3 -i 0.2", second.IP())
    second.cmd("iperf3 -s -D")
    # It listens when a connection is taken.
    first.cmd(f"until iperf3 -c {second.IP()} -n 1M >/dev/null; do sleep 0.1; done")
    found = []
    for _ in range(int(sys.argv[2])):
        said = json.loads(first.cmd(f"iperf3 -J -c {second.IP()} -t {sys.argv[1]}"))
        found.append(said["end"]["sum_received"]["bits_per_second"] / 1e9)
    second.cmd("pkill -f 'iperf3 -s -D'")
    net.stop()
    print(statistics.median(found))


if __name__ == "__main__":
    main()
