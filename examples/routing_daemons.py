"""Routing daemons of FRR in the routers of a lab: OSPF inside, BGP to a neighbour; a line fails, and routes follow.

You need FRR (`apt install frr`; its own service need not run).
"""

import re
import tempfile
import time
from pathlib import Path

import twinnet as tn

DAEMONS = Path("/usr/lib/frr")
TIMERS = """\
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 3
"""
"""A failure is seen within seconds; the usual intervals are 10 and 40 s."""
OSPF = """\
router ospf
 redistribute bgp
 network 10.0.0.0/8 area 0
"""
BGP = """\
router bgp {asn}
 no bgp ebgp-requires-policy
 neighbor {neighbour} remote-as {remote}
 neighbor {neighbour} timers connect 1
 neighbor {neighbour} advertisement-interval 1
 address-family ipv4 unicast
  {announce}
"""


def network() -> tn.Network:
    net = tn.Network()
    for name in ("r1", "r2", "r3", "r4"):
        net.router(name)
    net.host("h1", ip="10.1.0.2/24", ip6=False, gateway="10.1.0.1")
    net.host("h2", ip="172.16.0.2/24", ip6=False, gateway="172.16.0.1")
    net.link("h1", "r1", address_b="10.1.0.1/24")
    net.link("r1", "r2", delay="5 ms", address_a="10.12.0.1/30", address_b="10.12.0.2/30")
    net.link("r2", "r3", delay="5 ms", address_a="10.23.0.1/30", address_b="10.23.0.2/30")
    net.link("r1", "r3", delay="1 ms", address_a="10.13.0.1/30", address_b="10.13.0.2/30")
    net.link("r3", "r4", address_a="192.168.34.1/30", address_b="192.168.34.2/30")
    net.link("h2", "r4", address_b="172.16.0.1/24")
    return net


def start(lab: tn.Lab, router: str, folder: Path, **configurations: str) -> None:
    """Start zebra, which sets the kernel's routes, and the daemons of `configurations` in `router`."""
    own = folder / router
    own.mkdir()
    # FRR wants its user to be in the group of its terminals. In a lab all is root, which this file puts there.
    group = own / "group"
    group.write_text(re.sub(r"^(frrvty:.*)$", r"\1,root", Path("/etc/group").read_text(), flags=re.M))
    for name, text in {"zebra": "", **configurations}.items():
        (own / f"{name}.conf").write_text(text)
        files = ["-f", f"{own}/{name}.conf", "-i", f"{own}/{name}.pid", "-z", f"{own}/zserv", "--vty_socket", str(own)]
        daemon = [str(DAEMONS / name), *files, "-P", "0", "-u", "root", "-g", "root"]
        seen = 'mount --bind "$0" /etc/group && exec "$@"'
        words = ["unshare", "--mount", "sh", "-c", seen, str(group), *daemon]
        lab[router].popen(words, stdout=tn.lab.DEVNULL, stderr=tn.lab.DEVNULL)


def ospf(router: str, links: int) -> str:
    """The configuration of ospfd in `router`, which has so many links."""
    return "".join(f"interface {router}-eth{number}\n{TIMERS}" for number in range(links)) + OSPF


def way(lab: tn.Lab, wanted: str) -> str:
    """The next router on the way from r1 to h2, once it is the `wanted` one and h2 answers; else after a minute."""
    found = ""
    for _ in range(120):
        found = lab["r1"].run("ip route get 172.16.0.2").stdout.partition(" via ")[2].partition(" ")[0]
        if found == wanted and lab["h1"].run("ping -c 1 -W 1 172.16.0.2").returncode == 0:
            return found
        time.sleep(0.5)
    return f"{found or 'nobody'}, and h2 does not answer"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch, network().emulate() as lab:
        folder = Path(scratch)
        inner = BGP.format(asn=65001, neighbour="192.168.34.2", remote=65002, announce="redistribute ospf")
        outer = BGP.format(asn=65002, neighbour="192.168.34.1", remote=65001, announce="network 172.16.0.0/24")
        start(lab, "r1", folder, ospfd=ospf("r1", 3))
        start(lab, "r2", folder, ospfd=ospf("r2", 2))
        start(lab, "r3", folder, ospfd=ospf("r3", 2), bgpd=inner)
        start(lab, "r4", folder, bgpd=outer)
        print(f"r1 reaches h2 by {way(lab, '10.13.0.2')}")
        lab.link("r1", "r3").set(up=False)
        print(f"without the line from r1 to r3, by {way(lab, '10.12.0.2')}")
