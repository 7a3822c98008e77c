"""What Mininet takes to create and stop a network: run by the Python that has Mininet, in an arena with Open vSwitch.

``mininet_peer.py single 200``, ``linear 100``, ``tree 4 4``; prints the seconds of creating with starting, of stopping
until Mininet returns, and until all interfaces are gone. ``--commands`` has each host run a first command, which counts
as a part of starting. On twinnet it runs as any script of Mininet (:mod:`bench.mininet_start`).
"""

import socket
import sys
import time

from interfaces_gone import Sentinel
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import LinearTopo, SingleSwitchTopo
from mininet.topolib import TreeTopo

TOPOLOGIES = {"single": SingleSwitchTopo, "linear": LinearTopo, "tree": TreeTopo}

KEPT = {"ovs-netdev"}
"""Open vSwitch's own, which stays when no switch is left."""


class StandaloneSwitch(OVSSwitch):
    """Open vSwitch that forwards in user space and learns by itself, as no controller is needed."""

    def __init__(self, name, **settings):
        super().__init__(name, failMode="standalone", datapath="user", **settings)


def main():
    """Create, start, stop."""
    setLogLevel("error")
    before = {name for _, name in socket.if_nameindex()}
    sentinel = Sentinel()
    begin = time.perf_counter()
    words = [word for word in sys.argv[1:] if word != "--commands"]
    net = Mininet(topo=TOPOLOGIES[words[0]](*map(int, words[1:])), switch=StandaloneSwitch, controller=None)
    net.start()
    for host in net.hosts if "--commands" in sys.argv else ():
        host.cmd("true")
    started = time.perf_counter()
    net.stop()
    returned = time.perf_counter()
    sentinel.wait()
    # Its switches are in the namespace of this program.
    while {name for _, name in socket.if_nameindex()} - before - KEPT:
        time.sleep(0.001)
    print(started - begin, returned - started, time.perf_counter() - started)


if __name__ == "__main__":
    main()
