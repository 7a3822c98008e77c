"""An os-ken application drives the switches of a tree; the lab starts it, waits until it has joined, and pings."""

import sys
from pathlib import Path

import twinnet as tn

CONTROLLER = Path(__file__).with_name("learning_switch.py")


def network() -> tn.Network:
    net = tn.templates.tree(2, 2, rate="100 Mbit")
    for switch in net.switches:
        switch.fail_mode = "secure"
    net.controller(run=[sys.executable, str(CONTROLLER), "{port}"])
    return net


if __name__ == "__main__":
    with network().emulate() as lab:
        lab.wait_for_controllers("30 s")
        lab["h1"].run("ping -c 1 -W 5 h4")
        print(lab["h1"].run("ping -c 2 -i 0.2 h4").stdout.splitlines()[-2].split(",")[1].strip())
