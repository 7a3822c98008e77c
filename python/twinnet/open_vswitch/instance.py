"""The Open vSwitch of one lab: its database and its switch process, started for this lab alone.

They run in a network namespace, a PID namespace and a folder of their own, so that any number of labs have one each,
and the machine's own is never touched; when the lab ends, the kernel ends all of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from twinnet.control.choice import APP_TARGET
from twinnet.errors import LabError, NotAvailable
from twinnet.lab_process.requests import LabRequests
from twinnet.open_vswitch.bridge import Bridge, quality_of_service
from twinnet.open_vswitch.programs import DIRECTORY, Programs, find_programs, is_open_vswitch, run
from twinnet.open_vswitch.relays import Relays

__all__ = ["Instance"]

_START = f"""\
mkdir -p {DIRECTORY} && cd {DIRECTORY} &&
"$1" create {DIRECTORY}/conf.db "$2" &&
"$3" {DIRECTORY}/conf.db --remote=punix:{DIRECTORY}/db.sock --detach --no-chdir --pidfile --log-file -vconsole:warn &&
"$4" unix:{DIRECTORY}/db.sock --detach --no-chdir --pidfile --log-file -vconsole:warn $5
"""
_VSCTL = ("ovs-vsctl", "--timeout=20", "--no-syslog", f"--db=unix:{DIRECTORY}/db.sock")


class Instance:
    """The Open vSwitch part of a lab: its switches, and the programs on this machine, checked before the lab is built.

    Parameters
    ----------
    nodes
        The nodes of the network, in the form of the lab protocol.

    Raises
    ------
    NotAvailable
        When a switch is Open vSwitch and it is not installed, or the kernel lacks its datapath.
    """

    def __init__(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        self._switches = [node for node in nodes if is_open_vswitch(node)]
        self._programs: Programs | None = find_programs() if self._switches else None
        self._relays: Relays | None = None
        for switch in self._switches:
            _require_reachable_controllers(switch)
        of_kernel = [node["name"] for node in self._switches if node["datapath"] == "system"]
        if of_kernel:
            _require_kernel_datapath(of_kernel)

    def start(self, lab: LabRequests) -> None:
        """Start it in the built `lab`, with all bridges, ports, flows and controllers.

        Raises
        ------
        LabError
            ``OpenVswitchFailed`` when it cannot be started; ``BadFlow`` for a flow that it refuses.
        """
        if self._programs is None:
            return
        found = self._programs
        # The userspace datapath makes a TAP for a bridge's own port. Where none can be made, the same datapath under
        # another name keeps that port to itself.
        without_tap = not os.access("/dev/net/tun", os.R_OK | os.W_OK)
        arguments = [found.database_tool, found.schema, found.database, found.switch]
        arguments += ["--enable-dummy"] if without_tap else [""]
        run(lab, ["/bin/sh", "-c", _START, "sh", *arguments], refused="OpenVswitchFailed")
        self._relays = Relays(lab, self._switches)
        done = run(lab, [*_VSCTL, *self._configuration(without_tap)], refused="OpenVswitchFailed")
        if "Error detected" in done.stderr:
            raise LabError(self._why(lab), "see `twinnet doctor`", "OpenVswitchFailed")
        for switch in self._switches:
            if switch["flows"]:
                Bridge(lab, switch).add_flows(switch["flows"])

    def _configuration(self, without_tap: bool) -> list[str]:
        # A lab's traffic needs few threads, and many labs may run side by side.
        words = ["set", "Open_vSwitch", ".", "other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1"]
        for switch in self._switches:
            bridge = Bridge(None, switch)
            words += ["--", *bridge.creation(without_tap)]
            if self._relays is not None and switch.get("controllers"):
                words += ["--", "set-controller", bridge.name, *self._relays.targets(bridge.name)]
            for port in switch["ports"]:
                words += ["--", "add-port", bridge.name, port["name"]]
                words += ["--", "set", "Interface", port["name"], f"ofport_request={port['number']}"]
                if bridge.shapes_in_kernel(port["queue"]):
                    words += ["--", *quality_of_service(port["name"], port["queue"])]
        return words

    def _why(self, lab: LabRequests) -> str:
        """Return Open vSwitch's message about the bridges and ports that it could not make."""
        log = run(lab, ["/bin/sh", "-c", f"grep -E 'WARN|ERR' {DIRECTORY}/ovs-vswitchd.log || true"]).stdout
        said = dict.fromkeys(line.split("|")[-1] for line in log.splitlines())
        return "Open vSwitch cannot make its ports: " + ("; ".join([*said][:4]) or "it does not say why")

    @property
    def troubles(self) -> Mapping[tuple[str, str], str]:
        """The reasons why connections failed or ended that have not been made again, by switch and target."""
        return self._relays.troubles if self._relays is not None else {}

    def end(self) -> None:
        """Let go of what its owner holds for it; its processes end with the lab."""
        if self._relays is not None:
            self._relays.end()


def _require_reachable_controllers(switch: Mapping[str, Any]) -> None:
    name = switch["name"]
    if any(target.startswith(APP_TARGET) for target in switch.get("controllers") or ()):
        raise NotAvailable(
            f"a controller in this process cannot drive {name}, which is Open vSwitch",
            "have the controller be a program of its own, or use kind='own'",
        )
    if switch.get("control_delay_ps"):
        raise NotAvailable(
            f"the way to the controller of {name}, which is Open vSwitch, cannot be given a delay", "use kind='own'"
        )


def _require_kernel_datapath(switches: Sequence[str]) -> None:
    from twinnet import _core

    if not _core.kernel_has_open_vswitch():
        raise NotAvailable(
            f"this machine's kernel has no Open vSwitch datapath, which {', '.join(switches)} would use",
            "load it (sudo modprobe openvswitch), or use datapath='netdev'",
        )
