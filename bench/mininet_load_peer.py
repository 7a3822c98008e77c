"""What pairs of hosts carry in Mininet: run by the Python that has Mininet, in an arena with Open vSwitch.

``mininet_load_peer.py 10 20000000 10 1470 4``: 10 pairs behind one switch, each offered 20 Mbit/s of datagrams of 1470
bytes, before links of 10 Mbit/s (``TCLink``: HTB) to the receivers, for 4 s. Prints the bits per second that each
receiver's link carried, without framing.
"""

import sys
import time

from mininet.link import TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import OVSSwitch

SETTLED_S = 1.0


def received(net, count):
    """Return the bytes that have arrived at each receiver."""
    path = "/sys/class/net/b{0}-eth0/statistics/rx_bytes"
    return [int(net[f"b{number}"].cmd("cat", path.format(number))) for number in range(count)]


def main():
    """Build, drive, measure."""
    count, offered_bps, link_mbit, payload, seconds = map(int, sys.argv[1:])
    setLogLevel("error")
    net = Mininet(switch=OVSSwitch, controller=None, link=TCLink)
    switch = net.addSwitch("s1", failMode="standalone", datapath="user")
    for number in range(count):
        net.addLink(net.addHost(f"a{number}"), switch)
        net.addLink(switch, net.addHost(f"b{number}"), bw=link_mbit)
    net.start()
    try:
        senders = []
        for number in range(count):
            target = net[f"b{number}"].IP()
            command = ["iperf", "-u", "-c", target, "-b", str(offered_bps), "-l", str(payload)]
            senders.append(net[f"a{number}"].popen([*command, "-t", str(seconds + 3 * SETTLED_S)]))
        time.sleep(SETTLED_S)
        before, begin = received(net, count), time.monotonic()
        time.sleep(seconds)
        after, elapsed = received(net, count), time.monotonic() - begin
        print(*((last - first) * 8 / elapsed for first, last in zip(before, after, strict=True)))
        for sender in senders:
            sender.kill()
            sender.wait()
    finally:
        net.stop()


if __name__ == "__main__":
    main()
