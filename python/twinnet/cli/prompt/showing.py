"""Prompt commands that show nodes, links, ports, flows and jobs, and write the network as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twinnet.cli.prompt.answer import Answer
from twinnet.errors import BadValue, reason
from twinnet.lab.lab import Lab
from twinnet.lab.network_now import network_now
from twinnet.lab.standing import standings
from twinnet.network.link_settings import describe_direction
from twinnet.network.written_file import written_network
from twinnet.report.text_table import table

__all__ = ["dump", "export", "flows", "intfs", "links", "net", "nodes", "ports", "tunnels"]


_ALWAYS = ("frames", "link_bytes", "received_frames", "received_bytes", "backlog_frames")


def nodes(lab: Lab, arguments: Sequence[str]) -> Answer:
    """List the nodes."""
    del arguments
    names = list(lab.layout.nodes)
    return Answer(names, "available nodes are:\n" + " ".join(names))


def net(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Show which interface leads to which."""
    del arguments
    wires: dict[str, list[str]] = {name: [] for name in lab.layout.nodes}
    for link in lab.layout.links:
        a, b = _interface(lab, link["a"]), _interface(lab, link["b"])
        wires[link["a"]["node"]].append(f"{a}:{b}")
        wires[link["b"]["node"]].append(f"{b}:{a}")
    return Answer(wires, "\n".join(f"{name} {' '.join(ends)}" for name, ends in wires.items()))


def intfs(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Show the interfaces of each node."""
    del arguments
    names = {name: [port["name"] for port in node.get("ports", ())] for name, node in lab.layout.nodes.items()}
    return Answer(names, "\n".join(f"{name}: {','.join(ports)}" for name, ports in names.items()))


def dump(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Show every node with its interfaces and addresses, and how switches stand with their controllers."""
    del arguments
    lines: list[str] = []
    controlled = {one.switch: one for one in standings(lab)}
    for name, node in lab.layout.nodes.items():
        if node["kind"] == "switch":
            ports = ", ".join(f"{port['number']}:{port['name']}" for port in node["ports"])
            kind = f"Open vSwitch ({node['datapath']})" if node.get("datapath", "own") != "own" else "switch"
            lines.append(f"{name}: {kind} dpid {node['dpid']:016x}, {node['fail_mode']}; {ports}")
            if name in controlled:
                standing = controlled[name]
                lines.append(f"  {'controller: ' if standing.joined else ''}{standing.state}")
        elif node["kind"] == "interface":
            lines.append(f"{name}: interface {node['interface']} of the machine")
        elif node["kind"] == "tunnel":
            lines.append(f"{name}: tunnel to {node['remote']}; {', '.join(port['name'] for port in node['ports'])}")
        else:
            kind = "router" if node.get("forwarding") else "host"
            ports = "; ".join(
                f"{port['name']} {' '.join(port.get('addresses') or ())} {port.get('mac') or ''}".rstrip()
                for port in node["ports"]
            )
            lines.append(f"{name}: {kind}; {ports}")
    return Answer(list(lab.layout.nodes.values()), "\n".join(lines))


def tunnels(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Show the tunnels to other speakers: what they carried, dropped and refused."""
    del arguments
    rows = lab.tunnels()
    lines: list[str] = []
    for row in rows:
        tunnel = row["tunnel"]
        kind = tunnel["kind"]
        name = f"vni {tunnel['vni']}" if kind == "vxlan" else f"key {tunnel['key']}"
        counts = {**row["counters"], **{f"refused {why}": number for why, number in row["refused"].items()}}
        said = ", ".join(f"{what.replace('_', ' ')} {number}" for what, number in counts.items() if number)
        lines.append(f"{row['node']}: {kind} {name} to {row['remote']}, mtu {row['inner_mtu']} inside; {said}")
    return Answer(rows, "\n".join(lines) or "there is no tunnel to another speaker")


def links(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Show the links as they are now, each direction."""
    del arguments
    now = lab.links()
    lines: list[str] = []
    for index, link in enumerate(now):
        described = lab.layout.links[index]
        a, b = _interface(lab, described["a"]), _interface(lab, described["b"])
        state = "up" if link["ab"].get("up") and link["ba"].get("up") else "DOWN"
        ab, ba = (describe_direction(link[way].get("config") or {}) for way in ("ab", "ba"))
        both = ab if ab == ba else f"-> {ab}, <- {ba}"
        lines.append(f"{a}<->{b} {state}: {both}")
    return Answer(now, "\n".join(lines))


def ports(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Show the counters of the ports, of all or of the nodes and interfaces named."""
    wanted = set(arguments)
    rows = [
        one for one in lab.ports() if not wanted or wanted & {str(one["port"]), lab.layout.port(str(one["port"]))[0]}
    ]
    if wanted and not rows:
        raise BadValue(f"no port or node is called {' '.join(sorted(wanted))}", "see the names with: net")
    counters = [dict(one.get("counters") or {}) for one in rows]
    # Of the many reasons for a drop, those that happened are shown.
    happened = {key for one in counters for key, value in one.items() if isinstance(value, int) and value}
    heads = [key for key in (counters[0] if counters else {}) if key in happened or key in _ALWAYS]
    heads.sort(key=lambda key: _ALWAYS.index(key) if key in _ALWAYS else len(_ALWAYS))
    cells = [[one["port"], *(c.get(key, 0) for key in heads)] for one, c in zip(rows, counters, strict=True)]

    def shown(columns: int | None) -> str:
        return table(["port", *heads], cells, columns)

    return Answer(rows, shown(None), fitted=shown)


def flows(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Show the flows of one switch, or of all."""
    names = list(arguments) or lab.layout.names("switch")
    found = {name: lab.switch(name).dump_flows() for name in names}
    if len(names) == 1:
        return Answer(found, "\n".join(found[names[0]]), verbatim=True)
    return Answer(
        found,
        "\n".join(f"*** {name}\n" + "\n".join(f" {line}" for line in found[name]) for name in names),
        verbatim=True,
    )


def _interface(lab: Lab, end: Mapping[str, Any]) -> str:
    return lab.layout.nodes[end["node"]]["ports"][end["port"]]["name"]


def export(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Write the network as it is now into a network file."""
    if len(arguments) != 1:
        raise BadValue("export needs a file", "write for example: export network.yaml")
    head = [f"The network of a lab as it was at {lab.now():.3f} s."]
    text = written_network(network_now(lab), head)
    try:
        Path(arguments[0]).write_text(text)
    except OSError as error:
        raise BadValue(f"{arguments[0]} cannot be written: {reason(error)}", "name another file") from None
    return Answer({"file": arguments[0]}, f"wrote {arguments[0]}")
