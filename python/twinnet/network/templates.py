"""Topologies with a name: ``single``, ``linear``, ``tree``, ``dumbbell``, ``fat-tree``, ``mesh``, ``leaf-spine``,
``ring``, ``client-tree``.

Each function returns a :class:`twinnet.Network` whose links have the settings given by keyword, as
:meth:`twinnet.Network.link` takes them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Unpack

from twinnet.errors import BadTemplate, did_you_mean
from twinnet.network.client_tree import client_tree
from twinnet.network.link_settings import LinkOptions
from twinnet.network.network import Network
from twinnet.network.nodes import Switch

__all__ = [
    "NODE_LIMIT",
    "TEMPLATES",
    "client_tree",
    "dumbbell",
    "fat_tree",
    "from_text",
    "leaf_spine",
    "linear",
    "mesh",
    "ring",
    "single",
    "tree",
]

NODE_LIMIT = 20_000
"""The most nodes that a template makes."""


def single(hosts: int = 2, seed: int = 1, **link: Unpack[LinkOptions]) -> Network:
    """Return one switch s1 with `hosts` hosts h1, h2, ...

    Examples
    --------
    >>> len(single(4).hosts)
    4
    """
    _check("single", "hosts", hosts, 1)
    _check_nodes("single", hosts + 1)
    net = Network(seed)
    _hosts(net, net.switch("s1"), hosts, link)
    return net


def linear(switches: int = 2, hosts_per_switch: int = 1, seed: int = 1, **link: Unpack[LinkOptions]) -> Network:
    """Return `switches` switches in a row, each with `hosts_per_switch` hosts."""
    _check("linear", "switches", switches, 1)
    _check("linear", "hosts_per_switch", hosts_per_switch, 0)
    _check_nodes("linear", switches * (1 + hosts_per_switch))
    net = Network(seed)
    previous: Switch | None = None
    for number in range(1, switches + 1):
        switch = net.switch(f"s{number}")
        _hosts(net, switch, hosts_per_switch, link)
        if previous is not None:
            net.link(previous, switch, **link)
        previous = switch
    return net


def tree(depth: int = 1, fanout: int = 2, seed: int = 1, **link: Unpack[LinkOptions]) -> Network:
    """Return a tree of switches of `depth` levels, `fanout` children each; the lowest switches have hosts."""
    _check("tree", "depth", depth, 1)
    _check("tree", "fanout", fanout, 1)
    nodes, level = 0, 1
    for _ in range(depth + 1):
        nodes, level = nodes + level, level * fanout
        _check_nodes("tree", nodes)
    net = Network(seed)
    _grow(net, net.switch("s1"), depth, fanout, link)
    return net


def _grow(net: Network, switch: Switch, depth: int, fanout: int, link: LinkOptions) -> None:
    if depth == 1:
        _hosts(net, switch, fanout, link)
        return
    for _ in range(fanout):
        child = net.switch(f"s{len(net.nodes) - net.host_count + 1}")
        net.link(switch, child, **link)
        _grow(net, child, depth - 1, fanout, link)


def dumbbell(
    left: int = 2,
    right: int | None = None,
    seed: int = 1,
    bottleneck: LinkOptions | None = None,
    **link: Unpack[LinkOptions],
) -> Network:
    """Return two switches joined by a bottleneck, with `left` hosts at s1 and `right` (as many) hosts at s2.

    Parameters
    ----------
    left, right
        Numbers of hosts.
    seed
        The network's seed.
    bottleneck
        Settings of the link between the switches that differ from the others'.
    link
        Settings of all links.
    """
    right = left if right is None else right
    _check("dumbbell", "left", left, 1)
    _check("dumbbell", "right", right, 1)
    _check_nodes("dumbbell", left + right + 2)
    net = Network(seed)
    s1, s2 = net.switch("s1"), net.switch("s2")
    _hosts(net, s1, left, link)
    _hosts(net, s2, right, link)
    middle = LinkOptions(**link)
    middle.update(bottleneck or {})
    net.link(s1, s2, **middle)
    return net


def fat_tree(k: int = 4, seed: int = 1, **link: Unpack[LinkOptions]) -> Network:
    """Return the fat tree of `k`-port switches (Al-Fares, Loukissas and Vahdat 2008): k pods, k^3/4 hosts.

    Core switches come first (s1 to s(k/2)^2), then each pod's aggregation and edge switches. The topology has
    loops; how switches that stand alone keep frames from circling is told in docs/explanation.
    """
    _check("fat-tree", "k", k, 2)
    if k % 2:
        raise BadTemplate(f"fat-tree: k is {k}; it must be even", f"use fat-tree:{k + 1}")
    half = k // 2
    _check_nodes("fat-tree", half * half + k * k + k * half * half)
    net = Network(seed)
    cores = [net.switch(f"s{n}") for n in range(1, half * half + 1)]
    for pod in range(k):
        first = half * half + pod * k + 1
        aggregation = [net.switch(f"s{first + i}") for i in range(half)]
        edge = [net.switch(f"s{first + half + i}") for i in range(half)]
        for i, upper in enumerate(aggregation):
            for j in range(half):
                net.link(cores[i * half + j], upper, **link)
            for lower in edge:
                net.link(upper, lower, **link)
        for lower in edge:
            _hosts(net, lower, half, link)
    return net


def mesh(switches: int = 3, hosts_per_switch: int = 1, seed: int = 1, **link: Unpack[LinkOptions]) -> Network:
    """Return `switches` switches, each linked with every other, each with `hosts_per_switch` hosts."""
    _check("mesh", "switches", switches, 1)
    _check("mesh", "hosts_per_switch", hosts_per_switch, 0)
    _check_nodes("mesh", switches * (1 + hosts_per_switch))
    if switches > 200:
        raise BadTemplate(f"mesh: {switches} switches would need {switches * (switches - 1) // 2} links; at most 200")
    net = Network(seed)
    made = [net.switch(f"s{n}") for n in range(1, switches + 1)]
    for switch in made:
        _hosts(net, switch, hosts_per_switch, link)
    for a, b in combinations(made, 2):
        net.link(a, b, **link)
    return net


def leaf_spine(
    leaves: int = 4, spines: int = 2, hosts_per_leaf: int = 2, seed: int = 1, **link: Unpack[LinkOptions]
) -> Network:
    """Return `spines` switches s1, s2, ..., each linked with every one of `leaves` further switches, which have the
    hosts: a Clos network of two stages."""
    _check("leaf-spine", "leaves", leaves, 1)
    _check("leaf-spine", "spines", spines, 1)
    _check("leaf-spine", "hosts_per_leaf", hosts_per_leaf, 0)
    _check_nodes("leaf-spine", spines + leaves * (1 + hosts_per_leaf))
    net = Network(seed)
    upper = [net.switch(f"s{n}") for n in range(1, spines + 1)]
    for n in range(spines + 1, spines + leaves + 1):
        leaf = net.switch(f"s{n}")
        for spine in upper:
            net.link(spine, leaf, **link)
        _hosts(net, leaf, hosts_per_leaf, link)
    return net


def ring(switches: int = 4, hosts_per_switch: int = 1, seed: int = 1, **link: Unpack[LinkOptions]) -> Network:
    """Return `switches` switches, at least three, each linked with the next and the last with the first."""
    _check("ring", "switches", switches, 3)
    net = linear(switches, hosts_per_switch, seed, **link)
    net.link(f"s{switches}", "s1", **link)
    return net


TEMPLATES: Mapping[str, Callable[..., Network]] = {
    "single": single,
    "linear": linear,
    "tree": tree,
    "dumbbell": dumbbell,
    "fat-tree": fat_tree,
    "mesh": mesh,
    "leaf-spine": leaf_spine,
    "ring": ring,
    "client-tree": client_tree,
}
"""The templates by the name that :func:`from_text` takes."""


def from_text(text: str, seed: int = 1, **link: Unpack[LinkOptions]) -> Network:
    """Return the network that `text`, such as ``single:4``, ``single,4`` or ``tree:2,3``, stands for.

    Raises
    ------
    BadTemplate
        When there is no such template, or its numbers are wrong.

    Examples
    --------
    >>> len(from_text("tree:2,3", rate="1 Gbit").hosts)
    9
    """
    name, *numbers = [part.strip() for part in re.split(r"[:,]", text)]
    make = TEMPLATES.get(name.lower().replace("_", "-"))
    if make is None:
        raise BadTemplate(f"{text!r}: there is no topology template {name!r}", did_you_mean(name, TEMPLATES))
    parameters = [
        p for p in inspect.signature(make).parameters if p not in ("seed", "bottleneck", "server_link", "link")
    ]
    form = f"{name}:{','.join(parameters)}"
    if len(numbers) > len(parameters):
        raise BadTemplate(f"{text!r}: too many numbers", f"write {form}")
    for number in numbers:
        if not re.fullmatch(r"[0-9]{1,9}", number):
            raise BadTemplate(f"{text!r}: {number!r} is not a whole number", f"write {form}")
    return make(*(int(number) for number in numbers), seed=seed, **link)


def is_template(text: str) -> bool:
    """Return whether `text` names a template rather than a file."""
    return re.split(r"[:,]", text)[0].strip().lower().replace("_", "-") in TEMPLATES


def _hosts(net: Network, switch: Switch, count: int, link: LinkOptions) -> None:
    first = net.host_count + 1
    for number in range(first, first + count):
        net.link(net.host(f"h{number}"), switch, **link)


def _check(template: str, name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadTemplate(f"{template}: {name} is {value!r}; allowed are whole numbers from {least}")


def _check_nodes(template: str, nodes: int) -> None:
    if nodes > NODE_LIMIT:
        raise BadTemplate(f"{template}: that would be {nodes} nodes or more; at most {NODE_LIMIT} are allowed")
