"""Week 6, VLANs: who hears whom on switches that carry two networks?

Runs with `twinnet mininet week6_vlans.py`, and on Mininet with `sudo python3 week6_vlans.py`.
"""

import sys
from functools import partial

from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import LinearTopo


def reaches(client, server):
    return " 0% packet loss" in client.cmd("ping -c 1 -W 1", server.IP())


def main():
    switch = partial(OVSSwitch, failMode="standalone")
    net = Mininet(topo=LinearTopo(k=2, n=2), switch=switch, controller=None)
    net.start()
    red1, blue1, red2, blue2 = net.get("h1s1", "h2s1", "h1s2", "h2s2")
    s1, s2 = net.get("s1", "s2")
    plain = net.pingAll(timeout="1")
    for host, near, vlan in ((red1, s1, 10), (blue1, s1, 20), (red2, s2, 10), (blue2, s2, 20)):
        near.cmd("ovs-vsctl set port", near.connectionsTo(host)[0][0], f"tag={vlan}")
    parted = net.pingAll(timeout="1")
    inside = reaches(red1, red2) and reaches(blue1, blue2)
    between = reaches(red1, blue1) or reaches(red1, blue2)
    trunk = s1.connectionsTo(s2)[0][0]
    s1.cmd("ovs-vsctl set port", trunk, "trunks=10")
    narrow = reaches(red1, red2), reaches(blue1, blue2)
    print(f"the trunk carries VLAN 10 alone: red {narrow[0]}, blue {narrow[1]}")
    s1.cmd("ovs-vsctl set port", trunk, "trunks=10,20")
    s2.cmd("ovs-vsctl set port", s2.connectionsTo(blue2)[0][0], "tag=10")
    moved = reaches(red1, blue2), reaches(blue1, blue2)
    print(f"h2s2 moved to VLAN 10: from VLAN 10 {moved[0]}, from VLAN 20 {moved[1]}")
    net.stop()
    return {
        "without VLANs all reach all": plain == 0,
        "with two VLANs 4 of 12 pairs are left": 66 < parted < 67,
        "these are the pairs within a VLAN": inside and not between,
        "a trunk carries the VLANs that it names": narrow == (True, False),
        "a host belongs to the VLAN of its port": moved == (True, False),
    }


if __name__ == "__main__":
    checks = main()
    for sentence, is_so in checks.items():
        print("as expected:" if is_so else "NOT as expected:", sentence)
    sys.exit(0 if all(checks.values()) else 1)
