"""A network that is cut between two machines, and a lab that is their underlay: the beginning of programs that run
beside the machines of `ssh_machines`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ssh_machines import SshMachines

__all__ = ["NETWORK", "unbridged"]

NETWORK = """
import json, os, sys
import twinnet as tn
def network(delay="2 ms", place=True, **settings):
    net = tn.Network()
    s1, s2 = net.switch("s1"), net.switch("s2")
    net.link(net.host("h1"), s1)
    net.link(net.host("h2"), s2)
    net.link(s1, s2, rate="1 Gbit", delay=delay, **settings)
    if place:
        net.place({f"s{n}": {"ssh": f"m{n}", "address": f"10.8.0.{n}"} for n in (1, 2)})
    return net
def underlay(delay, jitter=None, **settings):
    under = tn.Network()
    under.link(under.interface("lan1"), under.interface("lan2"), delay=delay, jitter=jitter, **settings)
    return under.emulate()
"""


@contextmanager
def unbridged(machines: SshMachines) -> Generator[SshMachines]:
    """The machines without the bridge that joins them, so that a lab can stand between them."""
    for near in ("lan1", "lan2"):
        machines.here.run("ip", "link", "set", near, "nomaster")
    yield machines
    for near in ("lan1", "lan2"):
        machines.here.run("ip", "link", "set", near, "master", "lan")
