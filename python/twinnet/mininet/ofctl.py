"""Our own ``ovs-ofctl``, for scripts' machines where Open vSwitch's is not installed: its words and its options.

It asks the switches by OpenFlow and prints what ``ovs-ofctl(8)`` of Open vSwitch prints of them. Which version it
speaks is told by ``-O``, as there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinnet.control.targets import parse_listen
from twinnet.errors import TwinnetError
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import SwitchPlan
from twinnet.mininet.ofctl_call import Call, Command
from twinnet.mininet.ofctl_flows import FLOW_COMMANDS
from twinnet.mininet.ofctl_groups import GROUP_COMMANDS
from twinnet.mininet.ofctl_meters import METER_COMMANDS
from twinnet.mininet.ofctl_packets import PACKET_COMMANDS
from twinnet.mininet.ofctl_ports import PORT_COMMANDS
from twinnet.mininet.ofctl_statistics import STATISTICS_COMMANDS
from twinnet.mininet.ofctl_words import in_known_words
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["OpenFlowTool"]

_COMMANDS: dict[str, Command] = {
    **PORT_COMMANDS,
    **FLOW_COMMANDS,
    **GROUP_COMMANDS,
    **METER_COMMANDS,
    **STATISTICS_COMMANDS,
    **PACKET_COMMANDS,
}
_USUAL_VERSION = "OpenFlow10"
"""Without ``-O`` the program of Open vSwitch allows the flow formats of this version only."""
_USUAL_PORT = 6653
_VERSIONS = tuple(f"OpenFlow1{minor}" for minor in range(6))
_OPTIONS = (
    *("--strict", "--names", "--no-names", "--may-create", "--sort", "--rsort", "--no-stats"),
    *("-O", "--protocols", "-F", "--flow-format", "-t", "-T", "--timeout", "-m", "--more", "--bundle"),
)


@dataclass
class OpenFlowTool:
    """What the program tells and changes.

    Parameters
    ----------
    fabric
        The fabric whose switches are meant.
    """

    fabric: Fabric

    def run(self, options: dict[str, str], words: list[str]) -> str:
        """Do a command line and return what it prints; raises :class:`Refused`."""
        for option in options:
            if option not in _OPTIONS and not option.startswith(("-v", "--verbose")):
                raise Refused(f"unrecognized option '{option}'")
        name, *given = words or [""]
        if not name:
            raise Refused("missing command name; use --help for help")
        if name not in _COMMANDS:
            known = ", ".join(_COMMANDS)
            raise Refused(
                f"unknown command '{name}'; use --help for help (our switches answer {known}; install "
                "openvswitch-switch for all of ovs-ofctl)"
            )
        command = _COMMANDS[name]
        if len(given) < command.least:
            raise Refused(f"'{name}' command requires at least {command.least} arguments")
        if len(given) > command.most:
            raise Refused(f"'{name}' command takes at most {command.most} arguments")
        plan = self._plan(given[0])
        if plan is None:
            raise Refused(f"{given[0]} is not a bridge or a socket")
        try:
            return command.do(Call(self.fabric, plan, given[1:], options, _allowed(options)))
        except (Refused, TwinnetError) as refused:
            raise Refused(in_known_words(str(refused), given)) from None

    def _plan(self, text: str) -> SwitchPlan | None:
        """The switch that is meant: by its name, by the socket of that name, or by the port at which it listens."""
        port = re.fullmatch(r"tcp:(?:127\.0\.0\.1|localhost)(?::(\d+))?", text)
        if port is None:
            socket = re.fullmatch(r"(?:unix:)?(?:.*/)?([^/]+)\.mgmt", text)
            return self.fabric.switch(socket[1] if socket else text)
        wanted = int(port[1] or _USUAL_PORT)
        plans = (plan for plan in self.fabric.switches() if plan.listen is not None)
        return next((plan for plan in plans if parse_listen(plan.listen or "").port == wanted), None)


def _allowed(options: dict[str, str]) -> list[str]:
    """The versions that ``-O`` allows."""
    given = options.get("-O") or options.get("--protocols") or _USUAL_VERSION
    versions = [one for one in re.split(r"[,\s]+", given) if one]
    for version in versions:
        if version not in _VERSIONS:
            raise Refused(f'Unknown OpenFlow version: "{version}"')
    return versions
