"""A network card of the machine is part of a lab: h1 talks to a machine outside.

A veth pair stands for the card and its cable, in a namespace of its own: you need neither root nor a second machine.
"""

import subprocess
import sys

import twinnet as tn


def network() -> tn.Network:
    net = tn.Network()
    s1 = net.switch("s1")
    net.link(net.host("h1", ip="10.0.0.1/24"), s1, rate="1 Gbit")
    s1.attach("nic0", rate="100 Mbit", delay="5 ms")
    return net


def outside_machine() -> subprocess.Popen[str]:
    """Make the interface nic0, and at the other end of its cable a machine with the address 10.0.0.2."""
    machine = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo ready; read end"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    machine.stdout.readline()
    inside = f"nsenter --target {machine.pid} --net"
    for command in (
        f"ip link add nic0 type veth peer name eth0 netns {machine.pid}",
        "ip link set nic0 up",
        f"{inside} ip address add 10.0.0.2/24 dev eth0",
        f"{inside} ip link set eth0 up",
    ):
        subprocess.run(command.split(), check=True)
    return machine


if __name__ == "__main__":
    if "inside" not in sys.argv:
        own_namespace = ["unshare", "--user", "--map-root-user", "--net"]
        sys.exit(subprocess.run([*own_namespace, sys.executable, __file__, "inside"]).returncode)
    with outside_machine(), network().emulate() as lab:
        pinged = lab["h1"].run("ping -c 2 -i 0.2 10.0.0.2").stdout
        print(next(line for line in pinged.splitlines() if "received" in line).split(",")[1].strip())
        print(f"{lab.interfaces()[0]['interface']} is {lab.interfaces()[0]['state']}")
