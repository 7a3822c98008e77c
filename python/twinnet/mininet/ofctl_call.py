"""One command line of our own ``ovs-ofctl``: what it gives, the version that it speaks, and how its answer begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from twinnet.mininet.bare_ports import LOCAL_PORT
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import SwitchPlan
from twinnet.mininet.tool_connection import OPENFLOW_10, ToolConnection, best_version
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["FRAGMENTS", "Call", "Command", "duration", "items", "number", "of_file", "told_port"]

FRAGMENTS = ("normal", "drop", "reassemble")
"""How a switch handles fragments, by the numbers of its configuration (``OFPC_FRAG_*``)."""
_IN_WORDS = r"(?:^|(?<=[=:,(\s]))\"?({names})\"?(?=[,:)\s]|$)"
_IN_ANSWERS = re.compile(r"\b(in_port=|output:|watch_port:|enqueue:)(\d+)")
_FLAGS = re.compile(r"\b(?:send_flow_rem|reset_counts|no_packet_counts|no_byte_counts) ")
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")


def told_port(number: int) -> str:
    """Return the number of a port as it is told, in 16 bits or 32."""
    return "LOCAL" if number in (LOCAL_PORT, LOCAL_PORT & 0xFFFF) else str(number)


@dataclass
class Call:
    """A command line.

    Parameters
    ----------
    fabric
        The fabric that has the switch.
    plan
        The switch.
    words
        What follows the switch. Names of ports in it become numbers.
    options
        The options with their values.
    allowed
        The versions that ``-O`` allows, such as ``OpenFlow13``.
    """

    fabric: Fabric
    plan: SwitchPlan
    words: list[str]
    options: Mapping[str, str]
    allowed: Sequence[str]
    protocols: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        self.protocols = self.fabric.protocols(self.plan.name)
        names = {port.name: number for number, port in self.plan.every_port().items()}
        if names:
            pattern = re.compile(_IN_WORDS.format(names="|".join(map(re.escape, names))))
            self.words = [pattern.sub(lambda found: str(names[found[1]]), word) for word in self.words]

    @property
    def version(self) -> int:
        """The version that the installed ``ovs-ofctl`` would speak with the switch: the newest that both allow."""
        common = set(self.allowed) & set(self.protocols)
        if not common:
            spoken = ",".join(self.protocols)
            raise Refused(f"{self.plan.name} speaks {spoken}, not {','.join(self.allowed)}: write -O {spoken}")
        return best_version(sorted(common))

    def need_13(self, what: str, option: bool = False) -> None:
        """Raise :class:`Refused` where the switch has no version with `what`; with `option`, also where ``-O`` allows
        none. With the switches of Open vSwitch a line without it has groups, by their extensions to 1.0."""
        if option and "OpenFlow13" not in self.allowed:
            raise Refused(f"{','.join(self.allowed)} has no {what}: write -O OpenFlow13")
        # A line that has no version in common with the switch is told so first.
        if self.version and "OpenFlow13" not in self.protocols:
            raise Refused(f"{self.plan.name} speaks {','.join(self.protocols)}, which has no {what}")

    def connection(self) -> ToolConnection:
        """Return a connection in the newest version of the switch: it can say the most of it."""
        return self.fabric.connection(self.plan.name, best_version(self.protocols))

    def said_connection(self) -> ToolConnection:
        """Return a connection in the version that the command line speaks."""
        return self.fabric.connection(self.plan.name, self.version)

    def title(self, name: str, xid: int = 2) -> str:
        """Return how a message of that name is told."""
        return f"{name}{'' if self.version == OPENFLOW_10 else ' (OF1.3)'} (xid={xid:#x}):"

    def head(self, name: str, xid: int = 2, extension: str = "OFPST") -> str:
        """Return the first line of statistics; `extension` begins it where 1.0 has them by an extension only."""
        return self.title(f"{extension if self.version == OPENFLOW_10 else 'OFPST'}_{name} reply", xid)

    def error(self, code: str, name: str, asked: str) -> str:
        """Return what is printed where a switch answers the question `name` for what is `asked` with an error."""
        return f"{self.title('OFPT_ERROR')} {code}\n{self.title(f'OFPST_{name} request')} {asked}\n"

    @property
    def strict(self) -> bool:
        """True where a flow is meant by its whole match and its priority."""
        return "--strict" in self.options

    @property
    def with_names(self) -> bool:
        """True where ports are told by their names, as at a terminal."""
        return "--names" in self.options and "--no-names" not in self.options

    def port(self, number: int) -> str:
        """Return the port as it is told."""
        if not self.with_names or number not in self.plan.every_port():
            return told_port(number)
        name = self.plan.every_port()[number].name
        return name if _PLAIN_NAME.fullmatch(name) else f'"{name}"'

    def asked_port(self, word: str) -> int:
        """Return the port that a word is, which need not be there."""
        if word.upper() == "LOCAL":
            return LOCAL_PORT
        if not word.isdecimal():
            raise Refused(f"{self.plan.name}: unknown port `{word}'")
        return int(word)

    def told(self, text: str) -> str:
        """Return flows or groups with ports as they are told, and in the words of the version."""
        if self.version == OPENFLOW_10:
            # Its statistics have no flags, and call that action so.
            text = _FLAGS.sub("", text).replace("pop_vlan", "strip_vlan")
        if not self.with_names:
            return text
        return _IN_ANSWERS.sub(lambda found: found[1] + self.port(int(found[2])), text)


@dataclass(frozen=True)
class Command:
    """What a word of ``ovs-ofctl`` does, and how many words (the switch among them) it takes."""

    do: Callable[[Call], str]
    most: int
    least: int = 1


def of_file(do: Callable[[Call, list[str]], str]) -> Command:
    """Return the command that does `do` with the lines of a file. The program that asks reads the file, for its folder
    and its standard input are its own: the lines are words after the file's name."""
    return Command(lambda call: do(call, call.words[1:]), 1 << 30, 2)


def number(text: str, name: str, most: int = 0xFFFF_FFFF) -> int:
    """Return the number that `text` is."""
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if not 0 <= value <= most:
        raise Refused(f"{name} is a number from 0 to {most}, not {text!r}")
    return value


def duration(seconds: int, nanoseconds: int) -> str:
    """Return a duration as Open vSwitch prints it: three digits after the point, and more as far as they are no
    zeros."""
    digits = f"{nanoseconds:09}"
    return f"{seconds}.{digits[:3]}{digits[3:].rstrip('0')}s"


def items(text: str) -> list[str]:
    """Return the parts of `text` between commas and blanks, but for those within brackets."""
    return re.findall(r"(?:[^,\s(]|\([^()]*(?:\([^()]*\)[^()]*)*\)|\()+", text)
