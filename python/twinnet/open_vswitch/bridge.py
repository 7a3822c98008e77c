"""A bridge of a lab's Open vSwitch: its description in ``ovs-vsctl``'s words, and what is asked of it while it runs."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from twinnet.control.targets import PROTOCOLS
from twinnet.errors import BadValue, LabClosed, LabError
from twinnet.lab_process.requests import LabRequests
from twinnet.network.datapaths import checked_queue
from twinnet.open_vswitch.programs import DIRECTORY, run
from twinnet.qos.queue import Queue

__all__ = ["Bridge", "controller_socket", "quality_of_service"]

_VSCTL = ("ovs-vsctl", "--timeout=20", "--no-syslog", f"--db=unix:{DIRECTORY}/db.sock")
_LOOK_S = 0.05


def controller_socket(switch: str, number: int) -> str:
    """Return the socket under which controller `number` of `switch` is reached in the lab's place for Open vSwitch."""
    return f"{DIRECTORY}/{switch}.controller{number}"


def quality_of_service(port: str, queue: Mapping[str, Any]) -> list[str]:
    """Return the words for ``ovs-vsctl`` that put an HTB (of the lab protocol) before `port`."""
    names = [f"queues:{number}=@{port}.{number}" for number in queue["queues"]]
    words = ["set", "Port", port, f"qos=@{port}", "--", f"--id=@{port}", "create", "QoS", "type=linux-htb"]
    words += [f"other_config:max-rate={queue['rate_bps']}", *names]
    for number, one in queue["queues"].items():
        settings = {"min-rate": one.get("min_rate_bps"), "max-rate": one.get("max_rate_bps")}
        # Open vSwitch counts a burst in bits.
        settings["burst"] = one["burst_bytes"] * 8 if one.get("burst_bytes") is not None else None
        settings["priority"] = one.get("priority")
        given = [f"other_config:{key}={value}" for key, value in settings.items() if value is not None]
        words += ["--", f"--id=@{port}.{number}", "create", "Queue", *given]
    return words


class Bridge:
    """A switch that is Open vSwitch.

    Parameters
    ----------
    lab
        The lab that runs it; ``None`` while it is only described.
    node
        Its description in the form of the lab protocol.
    """

    def __init__(self, lab: LabRequests | None, node: Mapping[str, Any]) -> None:
        self._lab = lab
        self._node = node
        self.name: str = str(node["name"])

    def creation(self, without_tap: bool = False) -> list[str]:
        """Return the words for ``ovs-vsctl`` that create it; `without_tap` where it cannot have a TAP of its own."""
        node = self._node
        datapath = "dummy" if without_tap and node["datapath"] == "netdev" else node["datapath"]
        settings = [
            f"datapath_type={datapath}",
            f"fail_mode={node['fail_mode']}",
            f"protocols={','.join(self._protocols())}",
            f"other_config:datapath-id={node['dpid']:016x}",
            # Flows of its own for a controller that is reached through its ports: ours never is.
            "other_config:disable-in-band=true",
        ]
        return ["add-br", self.name, "--", "set", "Bridge", self.name, *settings]

    def shapes_in_kernel(self, queue: Mapping[str, Any] | None) -> bool:
        """Return True if Open vSwitch itself applies the queue configuration `queue` at a port."""
        return queue is not None and queue["kind"] == "htb" and self._node["datapath"] == "system"

    def _protocols(self) -> Sequence[str]:
        return self._node.get("protocols") or PROTOCOLS

    def _running(self) -> LabRequests:
        if self._lab is None:
            raise LabClosed(f"{self.name} is only described", "start the lab")
        return self._lab

    def vsctl(self, *words: str) -> str:
        """Run ``ovs-vsctl`` in the lab's place for Open vSwitch, and return what it wrote."""
        return run(self._running(), [*_VSCTL, *words]).stdout

    def ofctl(
        self, command: str, *arguments: str, given: str | None = None, refused: str = "OpenVswitchRefused"
    ) -> str:
        """Run ``ovs-ofctl COMMAND BRIDGE ARGUMENTS`` there, and return what it wrote."""
        version = max(self._protocols())
        argv = ["ovs-ofctl", "-vsyslog:off", "--bundle", "-O", version, command, self.name, *arguments]
        if not command.startswith(("add-flow", "mod-flow", "del-flow", "replace-flow")):
            argv.remove("--bundle")
        return run(self._running(), argv, given, refused=refused).stdout

    def add_flows(self, flows: Sequence[str]) -> None:
        """Add flows: all, or none when one of them is wrong."""
        for flow in flows:
            if "\n" in flow or not flow.strip():
                raise BadValue(f"the flow {flow!r} is not one line", "write one flow a line")
        try:
            self.ofctl("add-flows", "-", given="".join(f"{flow}\n" for flow in flows), refused="BadFlow")
        except LabError as error:
            # ovs-ofctl names the line as "-:2: what is wrong".
            said = error.message.removeprefix("ovs-ofctl: ").removeprefix("-:")
            number, _, rest = said.partition(": ")
            message = f"flow {number}: {rest}" if number.isdecimal() else said
            raise LabError(f"{self.name}: {message}", "write it as for ovs-ofctl add-flow", error.name) from None

    def delete_flows(self, match: str) -> int:
        """Delete the flows that `match` covers (all when it is empty) and return how many they were."""
        arguments = [match] if match else []
        found = self._flows(*arguments)
        self.ofctl("del-flows", *arguments, refused="BadFlow")
        return len(found)

    def dump_flows(self) -> list[str]:
        """Return the flows with their counters, as ``ovs-ofctl dump-flows`` prints them."""
        return self._flows()

    def _flows(self, *arguments: str) -> list[str]:
        lines = self.ofctl("dump-flows", *arguments, refused="BadFlow").splitlines()
        return [line.strip() for line in lines if "actions=" in line]

    def controllers(self) -> list[dict[str, Any]]:
        """Return how it stands with each of its controllers, as :attr:`twinnet.lab.parts.LabSwitch.controller_state`
        has it. Open vSwitch does not tell what it counts of messages, nor the version."""
        columns = "--columns=target,is_connected,role,status"
        answered = json.loads(self.vsctl("--format=json", columns, "list", "Controller"))["data"]
        known = {row[0].removeprefix("unix:"): row for row in answered}
        rows: list[dict[str, Any]] = []
        for number, target in enumerate(self._node.get("controllers") or ()):
            row = known.get(controller_socket(self.name, number))
            connected = bool(row and row[1])
            role = row[2] if row and isinstance(row[2], str) else None
            version = max(self._protocols()).removeprefix("OpenFlow1") if connected else None
            said = dict(row[3][1]).get("last_error") if row else None
            rows.append(
                {"target": target, "peer": "controller", "version": f"1.{version}" if version else None}
                | {"role": role, "messages": None, "packet_ins": None, "errors": None}
                | {"trouble": None if connected else said}
            )
        return rows

    def wait_for_controller(self, until_s: float) -> bool:
        """Wait until one of its controllers is connected, at most until the moment `until_s` of ``time.monotonic``."""
        while not any(row["version"] for row in self.controllers()):
            if time.monotonic() >= until_s:
                return False
            time.sleep(_LOOK_S)
        return True

    def set_queue(self, port: str, index: int, queue: Queue) -> None:
        """Replace the queue configuration of `port`, its port number `index` from 0."""
        checked_queue(port, str(self._node["datapath"]), queue)
        described = queue.to_spec()
        if self.shapes_in_kernel(described):
            self.vsctl(*quality_of_service(port, described))
            described = {"kind": "fifo", "limit_frames": 1000}
        elif self._node["datapath"] == "system":
            self.vsctl("clear", "Port", port, "qos")
        self._running().queues_set(node=self.name, port=index, queue=described)
