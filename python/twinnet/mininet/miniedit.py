"""Files of MiniEdit (``.mn``): a network that was drawn, as Mininet's nodes and links with the prompt."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from twinnet.errors import BadFile
from twinnet.given_files import read_given
from twinnet.mininet.cli import CLI
from twinnet.mininet.link import TCLink
from twinnet.mininet.log import info, setLogLevel, warn
from twinnet.mininet.net import Mininet
from twinnet.mininet.node import (
    Controller,
    CPULimitedHost,
    Host,
    IVSSwitch,
    Node,
    OVSController,
    OVSSwitch,
    RemoteController,
    UserSwitch,
)
from twinnet.mininet.util import ipAdd, netParse

__all__ = ["network", "read", "run"]

_PARTS = ("hosts", "switches", "links")
_SWITCHES: dict[str, Any] = {"user": UserSwitch, "userns": UserSwitch, "ivs": IVSSwitch}
_CONTROLLERS: dict[str, Any] = {"remote": RemoteController, "inband": RemoteController, "ovsc": OVSController}
_VERSIONS = {"ovsOf10": "OpenFlow10", "ovsOf11": "OpenFlow11", "ovsOf12": "OpenFlow12", "ovsOf13": "OpenFlow13"}
_LEFT_OUT = ("externalInterfaces", "vlanInterfaces", "netflow", "sflow", "switchIP")
_REMEDY = "open it in MiniEdit and save it again (File, Save)"
_MOST_BYTES = 16 << 20


def read(path: Path) -> dict[str, Any]:
    """Return the content of the file at `path`; raises `BadFile` when it is none of MiniEdit's."""
    try:
        content = json.loads(read_given(path, _MOST_BYTES))
    except RecursionError:
        raise BadFile(f"{path} is no file of MiniEdit: its lists are too deep", _REMEDY) from None
    except OSError as refused:
        raise BadFile(f"{path} cannot be read: {refused.strerror}", "name a file that you may read") from None
    except ValueError as fault:
        raise BadFile(f"{path} is no file of MiniEdit: {fault}", _REMEDY) from None
    given = cast("dict[str, Any]", content if isinstance(content, dict) else {})
    if any(not isinstance(given.get(part), list) for part in _PARTS):
        raise BadFile(f"{path} is no file of MiniEdit: it lacks a list of {', '.join(_PARTS)}", _REMEDY)
    return given


def network(content: dict[str, Any], name: str) -> Mininet:
    """Return the network that `content` describes, built and not started; raises `BadFile`, which calls it `name`."""
    wishes = content.get("application", {})
    listen = str(wishes.get("dpctl") or "")
    net = Mininet(
        topo=None,
        build=False,
        ipBase=wishes.get("ipBase") or "10.0.0.0/8",
        listenPort=int(listen) if listen.isdigit() else None,
    )
    part = ""
    try:
        for part, opts in _named(content, "controllers", "c"):
            _add_controller(net, part, opts)
        for part, opts in _named(content, "switches", "s"):
            _add_switch(net, part, opts, wishes)
        for part, opts in _named(content, "hosts", "h"):
            _add_host(net, part, opts)
        for link in content["links"]:
            part = f"the link {link.get('src')} - {link.get('dest')}"
            given: dict[str, Any] = link.get("opts") or {}
            settings: dict[str, Any] = {key: value for key, value in given.items() if value not in ("", None)}
            if settings:
                settings["cls"] = TCLink
            net.addLink(link["src"], link["dest"], **settings)
    except Exception as fault:
        # Mininet's own refusals have no class of theirs.
        raise BadFile(f"{name}: {part}: {type(fault).__name__}: {fault}", _REMEDY) from None
    net.build()
    return net


def _named(content: dict[str, Any], part: str, letter: str) -> list[tuple[str, dict[str, Any]]]:
    """Return names and settings of the nodes of `part`; the first version of files names controllers by keys."""
    given = content.get(part, [])
    if isinstance(given, dict):
        return [(str(name), dict(opts)) for name, opts in cast("dict[str, Any]", given).items()]
    return [
        (str(one.get("opts", {}).get("hostname") or f"{letter}{one.get('number', '')}"), dict(one.get("opts", {})))
        for one in given
    ]


def _tell_left_out(name: str, opts: dict[str, Any]) -> None:
    for setting in _LEFT_OUT:
        if opts.get(setting) not in (None, "", "0", []):
            warn(f"twinnet: {name}: {setting} is left out\n")


def _add_controller(net: Mininet, name: str, opts: dict[str, Any]) -> None:
    kind = opts.get("controllerType", "ref")
    place = {"ip": opts.get("remoteIP", "127.0.0.1")} if kind in ("remote", "inband") else {}
    protocol = opts.get("controllerProtocol", "tcp")
    port = int(opts.get("remotePort", 6633))
    net.addController(name, controller=_CONTROLLERS.get(kind, Controller), protocol=protocol, port=port, **place)


def _add_switch(net: Mininet, name: str, opts: dict[str, Any], wishes: dict[str, Any]) -> None:
    kind = opts.get("switchType", "default")
    if kind == "legacyRouter":
        net.addHost(name, cls=_Router, ip="0.0.0.0")
        return
    params: dict[str, Any] = {}
    if kind == "legacySwitch":
        params["failMode"] = "standalone"
    kind = wishes.get("switchType", "ovs") if kind == "default" else kind
    cls = _SWITCHES.get(kind, OVSSwitch)
    if cls is OVSSwitch and "failMode" not in params:
        chosen = wishes.get("openFlowVersions", {})
        params["protocols"] = ",".join(word for key, word in _VERSIONS.items() if chosen.get(key) == "1") or None
    if opts.get("dpid"):
        params["dpid"] = opts["dpid"]
    if opts.get("dpctl"):
        params["listenPort"] = int(opts["dpctl"])
    _tell_left_out(name, opts)
    net.addSwitch(name, cls=cls, inNamespace=kind == "userns", **params)


def _add_host(net: Mininet, name: str, opts: dict[str, Any]) -> None:
    number, bits = netParse(net.ipBase)
    ip = opts.get("ip") or ipAdd(int(opts.get("nodeNum") or net.nextIP), prefixLen=bits, ipBaseNum=number)
    limited = "cores" in opts or "cpu" in opts
    given: list[Any] = opts.get("privateDirectory", [])
    folders = [one if isinstance(one, str) else (str(one[0]), str(one[1])) for one in given]
    route = f"via {opts['defaultRoute']}" if opts.get("defaultRoute") else None
    _tell_left_out(name, opts)
    host = net.addHost(name, cls=CPULimitedHost if limited else Host, ip=ip, defaultRoute=route, privateDirs=folders)
    if opts.get("cores"):
        host.setCPUs(cores=opts["cores"])
    if opts.get("cpu"):
        host.setCPUFrac(f=float(opts["cpu"]), sched=opts.get("sched") if opts.get("sched") != "host" else None)


class _Router(Node):
    """A host that forwards: MiniEdit's legacy router."""

    def config(self, **params: Any) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        results = super().config(**params)
        self.cmd("sysctl -w net.ipv4.ip_forward=1")
        return results


def _start(net: Mininet, content: dict[str, Any]) -> None:
    """Start the network; each switch has the controllers that are drawn at it."""
    # The first version of files has no controllers at switches: each has all.
    usual = [one.name for one in net.controllers] if str(content.get("version")) == "1" else []
    led_by = {name: opts.get("controllers", usual) for name, opts in _named(content, "switches", "s")}
    for switch in net.switches:
        # Mininet gives all controllers to each switch.
        switch.start = partial(_start_led, switch.start, led_by[switch.name])
    net.start()


def _start_led(start: Callable[[list[Any]], None], names: Sequence[str], controllers: Sequence[Any]) -> None:
    start([one for one in controllers if one.name in names])


def run(path: Path) -> int:
    """Build and start the network of the file at `path`, run its commands, open the prompt, and stop."""
    setLogLevel("info")
    content = read(path)
    net = network(content, str(path))
    _start(net, content)
    _commands(net, content, "startCommand")
    info(f"*** {path.name}: {len(net.hosts)} hosts, {len(net.switches)} switches, {len(net.links)} links\n")
    CLI(net)
    _commands(net, content, "stopCommand")
    net.stop()
    return 0


def _commands(net: Mininet, content: dict[str, Any], which: str) -> None:
    for part, letter in (("hosts", "h"), ("switches", "s")):
        for name, opts in _named(content, part, letter):
            if opts.get(which):
                net[name].cmdPrint(opts[which])
