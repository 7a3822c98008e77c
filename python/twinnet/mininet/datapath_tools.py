"""``ovs-appctl``, ``ovs-dpctl`` and, where Open vSwitch is not installed, ``ovs-ofctl`` in a script's machine.

They answer for the switches of the fabric, in the form that Open vSwitch's programs print (``ovs-vswitchd(8)``,
``ovs-dpctl(8)``, ``ovs-ofctl(8)``). What they do not have is refused with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import SwitchPlan
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["DATAPATH_TOOLS", "DatapathTools"]

DATAPATH_TOOLS = ("ovs-appctl", "ovs-dpctl", "ovs-ofctl")
_OPTIONS_WITH_VALUES = ("-t", "--target", "-T", "--timeout", "-O", "--protocols", "-F", "--flow-format")
_DAEMON = "ovs-vswitchd"
_VERSION = "2.17.0"
_LOCAL = 65534
_Work = Callable[[list[str], dict[str, str]], str]


@dataclass
class DatapathTools:
    """What these programs tell and change.

    Parameters
    ----------
    fabric
        The fabric whose switches are meant.
    """

    fabric: Fabric

    def run(self, program: str, arguments: list[str]) -> str:
        """Do a command line of `program` and return what it prints; raises :class:`Refused`."""
        options, words = _split(arguments)
        if "-V" in options or "--version" in options:
            return f"{program} (twinnet) {_VERSION}\n"
        if program == "ovs-appctl":
            self._check_target(options)
        if program == "ovs-ofctl":
            # Few scripts ask it, and its commands take time to read.
            from twinnet.mininet.ofctl import OpenFlowTool

            return OpenFlowTool(self.fabric).run(options, words)
        command, *rest = words or [""]
        every: dict[str, dict[str, _Work]] = {
            "ovs-appctl": {
                "fdb/show": self._fdb_show,
                "fdb/flush": self._fdb_flush,
                "dpif/show": self._dpif_show,
                "dpctl/show": self._dpctl_show,
                "bridge/dump-flows": self._dump_flows,
                "qos/show": self._qos_show,
                "version": self._version,
            },
            "ovs-dpctl": {"show": self._dpctl_show, "dump-dps": self._dump_datapaths},
        }
        known = every[program]
        if command not in known:
            names = ", ".join(known)
            raise Refused(f"{command or 'a line without a command'} is not there: our switches answer {names}")
        return known[command](rest, options)

    def _version(self, _words: list[str], _options: dict[str, str]) -> str:
        return f"{_DAEMON} (twinnet) {_VERSION}\n"

    def _dump_datapaths(self, _words: list[str], _options: dict[str, str]) -> str:
        return "system@ovs-system\n"

    def _check_target(self, options: dict[str, str]) -> None:
        target = options.get("-t") or options.get("--target") or _DAEMON
        if target != _DAEMON:
            raise Refused(f"there is no {target} here: the switches of scripts answer as {_DAEMON}")

    def _bridge(self, words: list[str]) -> SwitchPlan:
        if not words:
            raise Refused("name a switch, such as s1")
        plan = self.fabric.switch(words[0])
        if plan is None:
            raise Refused(f"no bridge named {words[0]}")
        return plan

    def _fdb_show(self, words: list[str], _options: dict[str, str]) -> str:
        rows = self.fabric.learnt(self._bridge(words).name)
        lines = [f"{row['port']:>5}  {row['vlan']:>4}  {row['mac']}  {row['age_ps'] // 10**12:>3}\n" for row in rows]
        return " port  VLAN  MAC                Age\n" + "".join(lines)

    def _fdb_flush(self, words: list[str], _options: dict[str, str]) -> str:
        for plan in [self._bridge(words)] if words else self.fabric.switches():
            self.fabric.forget_learnt(plan.name)
        return "table successfully flushed\n"

    def _places(self) -> Iterator[tuple[int, SwitchPlan, int, str]]:
        """Number in the datapath, switch, number in the switch and name of each port; the switches' own among them."""
        place = 0
        for plan in self.fabric.switches():
            ports = {_LOCAL: plan.name} | {number: plan.ports[number].name for number in sorted(plan.ports)}
            for number, name in ports.items():
                place += 1
                yield place, plan, number, name

    def _dpif_show(self, _words: list[str], _options: dict[str, str]) -> str:
        said = "system@ovs-system:\n"
        for place, plan, number, name in self._places():
            said += f"  {plan.name}:\n" if number == _LOCAL else ""
            said += f"    {name} {number}/{place}: ({'internal' if number == _LOCAL else 'system'})\n"
        return said

    def _dpctl_show(self, _words: list[str], options: dict[str, str]) -> str:
        flows = sum(len(self.fabric.flow_lines(plan.name)) for plan in self.fabric.switches())
        said = f"system@ovs-system:\n  flows: {flows}\n  port 0: ovs-system (internal)\n"
        for place, plan, number, name in self._places():
            said += f"  port {place}: {name}{' (internal)' if number == _LOCAL else ''}\n"
            if number != _LOCAL and ("-s" in options or "--statistics" in options):
                counts = self.fabric.port_counts(plan, number)
                said += (
                    f"    RX packets:{counts['received_frames']} errors:0 dropped:0 overruns:0 frame:0\n"
                    f"    TX packets:{counts['frames']} errors:0 dropped:{_dropped(counts)} aborted:0 carrier:0\n"
                    f"    collisions:0\n"
                    f"    RX bytes:{counts['received_bytes']}  TX bytes:{counts['link_bytes']}\n"
                )
        return said

    def _qos_show(self, words: list[str], _options: dict[str, str]) -> str:
        ports = {intf.name: intf for plan in self.fabric.switches() for intf in plan.ports.values()}
        if not words or words[0] not in ports:
            raise Refused(f"no port named {' '.join(words[:1])}")
        name = words[0]
        queue = self.fabric.queues.get(name)
        if queue is None or queue["kind"] != "htb":
            return f"QoS not configured on {name}\n"
        rows = {row["class"]: row for row in self.fabric.classes(ports[name])}
        said = f"QoS: {name} linux-htb\nmax-rate: {queue['rate_bps']}\n"
        for number, one in sorted(queue["queues"].items(), key=lambda pair: int(pair[0])):
            row = rows.get(int(number), {})
            title = "Default" if number == "0" else f"Queue {number}"
            said += (
                f"\n{title}:\n  min-rate: {one['min_rate_bps']}\n  max-rate: {one['max_rate_bps']}\n"
                f"  tx_packets: {row.get('frames', 0)}\n  tx_bytes: {row.get('bytes', 0)}\n"
                f"  tx_errors: {sum(row.get('drops', {}).values())}\n"
            )
        return said

    def _dump_flows(self, words: list[str], _options: dict[str, str]) -> str:
        return "".join(f"{line}\n" for line in self.fabric.flow_lines(self._bridge(words).name))


def _dropped(counts: dict[str, int]) -> int:
    return sum(number for name, number in counts.items() if name.startswith("dropped_"))


def _split(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options with their values, and the other words."""
    options: dict[str, str] = {}
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            words.append(word)
        elif word in _OPTIONS_WITH_VALUES and rest:
            options[word] = rest.pop(0)
        elif word[:2] in _OPTIONS_WITH_VALUES and word[2:]:
            options[word[:2]] = word[2:]
        else:
            name, _, value = word.partition("=")
            options[name] = value
    return options, words
