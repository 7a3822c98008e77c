"""``ovs-appctl``, ``ovs-dpctl`` and, where Open vSwitch is not installed, ``ovs-ofctl`` in a script's machine.

They answer for the switches of the fabric, in the form that Open vSwitch's programs print (``ovs-vswitchd(8)``,
``ovs-dpctl(8)``, ``ovs-ofctl(8)``). What they do not have is refused with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import SwitchPlan
from twinnet.mininet.port_configuration import CONFIGURATION_BITS, Change, configuration_text
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["DATAPATH_TOOLS", "DatapathTools"]

DATAPATH_TOOLS = ("ovs-appctl", "ovs-dpctl", "ovs-ofctl")
_OPTIONS_WITH_VALUES = ("-t", "--target", "-T", "--timeout", "-O", "--protocols", "-F", "--flow-format")
_DAEMON = "ovs-vswitchd"
_VERSION = "2.17.0"
_LOCAL = 65534
_Work = Callable[[list[str], dict[str, str]], str]
_FOLDER_OF_INTERFACES = Path("/sys/class/net")
_DENIED = {
    "stp": "NO_STP",
    "receive": "NO_RECV",
    "receive-stp": "NO_RECV_STP",
    "forward": "NO_FWD",
    "flood": "NO_FLOOD",
    "packet-in": "NO_PACKET_IN",
}
_PORT_CHANGES = {"up": Change(0, 1), "down": Change(1, 1)}
for _word, _name in _DENIED.items():
    _bit = CONFIGURATION_BITS[_name]
    _PORT_CHANGES.update({_word: Change(0, _bit), f"no-{_word}": Change(_bit, _bit), f"no{_word}": Change(_bit, _bit)})
"""The words of ``ovs-ofctl mod-port`` (``ovs-ofctl(8)``), which also takes ``noflood``."""


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
            "ovs-ofctl": {
                "show": self._show,
                "dump-flows": self._dump_flows,
                "add-flow": self._add_flows,
                "del-flows": self._delete_flows,
                "dump-ports": self._dump_ports,
                "dump-ports-desc": self._describe_ports,
                "mod-port": self._modify_port,
            },
        }
        known = every[program]
        if command not in known:
            names = ", ".join(known)
            advice = "; install openvswitch-switch for all of ovs-ofctl" if program == "ovs-ofctl" else ""
            raise Refused(f"{command or 'a line without a command'} is not there: our switches answer {names}{advice}")
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
                counts = self._counts(plan, number)
                said += (
                    f"    RX packets:{counts['received_frames']} errors:0 dropped:0 overruns:0 frame:0\n"
                    f"    TX packets:{counts['frames']} errors:0 dropped:{_dropped(counts)} aborted:0 carrier:0\n"
                    f"    collisions:0\n"
                    f"    RX bytes:{counts['received_bytes']}  TX bytes:{counts['link_bytes']}\n"
                )
        return said

    def _counts(self, plan: SwitchPlan, number: int) -> dict[str, int]:
        names = ("frames", "link_bytes", "received_frames", "received_bytes")
        return dict.fromkeys(names, 0) | self.fabric.counters(plan.ports[number])

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

    def _show(self, words: list[str], _options: dict[str, str]) -> str:
        plan = self._bridge(words)
        head = f"OFPT_FEATURES_REPLY (xid=0x2): dpid:{plan.dpid:016x}\n"
        return head + self._port_descriptions(plan, sorted(plan.ports))

    def _describe_ports(self, words: list[str], _options: dict[str, str]) -> str:
        plan = self._bridge(words)
        wanted = [number for number in sorted(plan.ports) if words[1:2] in ([], [str(number)])]
        return "OFPST_PORT_DESC reply (xid=0x2):\n" + self._port_descriptions(plan, wanted)

    def _port_descriptions(self, plan: SwitchPlan, numbers: list[int]) -> str:
        configurations = self.fabric.port_configurations(plan.name)
        return "".join(self._port_description(plan, number, configurations.get(number, 0)) for number in numbers)

    def _modify_port(self, words: list[str], _options: dict[str, str]) -> str:
        plan = self._bridge(words)
        if len(words) != 3:
            raise Refused("'mod-port' command takes 3 arguments: a switch, a port and a word such as no-flood")
        number = next((one for one, port in plan.ports.items() if words[1] in (str(one), port.name)), None)
        if number is None:
            raise Refused(f"{plan.name}: couldn't find port `{words[1]}'")
        if words[2].lower() not in _PORT_CHANGES:
            raise Refused(f"unknown mod-port command '{words[2]}'; there are {', '.join(_PORT_CHANGES)}")
        self.fabric.configure_port(plan.name, number, _PORT_CHANGES[words[2].lower()])
        return ""

    def _port_description(self, plan: SwitchPlan, number: int, config: int) -> str:
        name, address, state = plan.ports[number].name, "00:00:00:00:00:00", "0"
        # A switch in a namespace of its own has its interfaces there.
        with suppress(OSError):
            address = (_FOLDER_OF_INTERFACES / name / "address").read_text().strip()
            state = "0" if (_FOLDER_OF_INTERFACES / name / "carrier").read_text().strip() == "1" else "LINK_DOWN"
        said = configuration_text(config)
        return f" {number}({name}): addr:{address}\n     config:     {said}\n     state:      {state}\n"

    def _dump_ports(self, words: list[str], _options: dict[str, str]) -> str:
        plan = self._bridge(words)
        wanted = [
            number for number in sorted(plan.ports) if words[1:2] in ([], [str(number)], [plan.ports[number].name])
        ]
        said = f"OFPST_PORT reply (xid=0x2): {len(wanted)} ports\n"
        for number in wanted:
            counts = self._counts(plan, number)
            said += (
                f"  port {number:>2}: rx pkts={counts['received_frames']}, bytes={counts['received_bytes']}, "
                f"drop=0, errs=0, frame=0, over=0, crc=0\n"
                f"           tx pkts={counts['frames']}, bytes={counts['link_bytes']}, "
                f"drop={_dropped(counts)}, errs=0, coll=0\n"
            )
        return said

    def _dump_flows(self, words: list[str], _options: dict[str, str]) -> str:
        lines = self.fabric.flow_lines(self._bridge(words).name)
        for condition in " ".join(words[1:]).replace(",", " ").split():
            if not condition.startswith("table="):
                raise Refused(f"dump-flows selects by table=N here, and {condition!r} was given")
            lines = [line for line in lines if f" {condition}," in line]
        return "".join(f"{line}\n" for line in lines)

    def _add_flows(self, words: list[str], _options: dict[str, str]) -> str:
        plan = self._bridge(words)
        if not words[1:]:
            raise Refused("add-flow needs a flow, such as in_port=1,actions=output:2")
        self.fabric.add_flows(plan.name, words[1:])
        return ""

    def _delete_flows(self, words: list[str], options: dict[str, str]) -> str:
        plan = self._bridge(words)
        if "--strict" in options:
            raise Refused("--strict is not there; delete all flows within a match, or install openvswitch-switch")
        self.fabric.delete_flows(plan.name, ",".join(words[1:]))
        return ""


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
        else:
            name, _, value = word.partition("=")
            options[name] = value
    return options, words
