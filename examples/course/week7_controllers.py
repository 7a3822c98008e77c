"""Week 7, controllers and queues: what does a controller tell a switch, and how is a rate promised?

Runs with `twinnet mininet week7_controllers.py`, and on Mininet with `sudo python3 week7_controllers.py`.
"""

import sys
from functools import partial

from mininet.net import Mininet
from mininet.node import DefaultController, OVSSwitch
from mininet.topo import SingleSwitchTopo


def rates_mbps(server, clients):
    """The rates at which UDP of `clients`, 8 Mbit/s each at the same time, arrives at `server`, in Mbit/s."""
    server.cmd("iperf -s -u -i 1 -y C > /tmp/week7.csv 2> /dev/null &")
    server.cmd("until ss -lun | grep -q :5001; do sleep 0.1; done")
    for client in clients:
        client.cmd("iperf -u -b 8M -t 3 -c", server.IP(), "> /dev/null 2>&1 &")
    for client in clients:
        client.cmd("wait")
    server.cmd("sleep 2; kill %iperf; wait")  # what waits in the queue is not of the next measurement
    seconds = [line.split(",") for line in server.cmd("cat /tmp/week7.csv").split()]
    # The second in which both send for certain. One of the fields 2 and 4 is the client, 7 the interval, 9 the rate.
    return [
        float(line[8]) / 1e6
        for client in clients
        for line in seconds
        if client.IP() in (line[1], line[3]) and line[6] == "1.0-2.0"
    ]


def main():
    switch = partial(OVSSwitch, protocols="OpenFlow10")
    net = Mininet(topo=SingleSwitchTopo(3), switch=switch, controller=DefaultController, waitConnected=True)
    net.start()
    h1, h2, h3, s1 = net.get("h1", "h2", "h3", "s1")
    before = s1.cmd("ovs-ofctl dump-flows s1").count("actions=")
    net.ping([h1, h3])
    learned = s1.cmd("ovs-ofctl dump-flows s1").count("actions=")
    print(f"flows before a ping: {before}, after it: {learned}")

    to_h3 = s1.connectionsTo(h3)[0][0]
    s1.cmd(
        "ovs-vsctl set port", to_h3, "qos=@qos --",
        "--id=@qos create qos type=linux-htb other-config:max-rate=10000000 queues:0=@rest queues:1=@call --",
        "--id=@rest create queue other-config:min-rate=1000000 other-config:max-rate=10000000 --",
        "--id=@call create queue other-config:min-rate=7000000 other-config:max-rate=10000000",
    )  # fmt: skip
    shared = rates_mbps(h3, (h1, h2))
    print(f"h1 and h2 in one queue: {shared[0]:.1f} and {shared[1]:.1f} Mbit/s")
    s1.cmd(f"ovs-ofctl add-flow s1 priority=65535,udp,nw_src={h1.IP()},actions=set_queue:1,output:3")
    apart = rates_mbps(h3, (h1, h2))
    print(f"h1 in a queue of at least 7 Mbit/s: {apart[0]:.1f} and {apart[1]:.1f} Mbit/s")
    s1.cmd("ovs-vsctl clear port", to_h3, "qos -- --all destroy qos -- --all destroy queue")
    net.stop()
    return {
        "the switch knows nothing at first": before == 0,
        "a ping leaves flows in it": learned >= 2,
        "one queue keeps the line's rate": sum(shared) < 10.5,
        "h1 has what its queue promises": apart[0] > 6,
        "h2 has what is left": 0.8 < apart[1] < 3.5,
    }


if __name__ == "__main__":
    checks = main()
    for sentence, is_so in checks.items():
        print("as expected:" if is_so else "NOT as expected:", sentence)
    sys.exit(0 if all(checks.values()) else 1)
