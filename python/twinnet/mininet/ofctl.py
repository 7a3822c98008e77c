"""Our own ``ovs-ofctl``, for scripts' machines where Open vSwitch's is not installed: its words and its options.

It asks the switches by OpenFlow and prints what ``ovs-ofctl(8)`` of Open vSwitch prints of them. Which version it
speaks is told by ``-O``, as there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinnet.mininet.fabric import Fabric
from twinnet.mininet.ofctl_call import Call, Command
from twinnet.mininet.ofctl_flows import FLOW_COMMANDS
from twinnet.mininet.ofctl_groups import GROUP_COMMANDS
from twinnet.mininet.ofctl_meters import METER_COMMANDS
from twinnet.mininet.ofctl_ports import PORT_COMMANDS
from twinnet.mininet.ofctl_statistics import STATISTICS_COMMANDS
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["OpenFlowTool"]

_COMMANDS: dict[str, Command] = {
    **PORT_COMMANDS,
    **FLOW_COMMANDS,
    **GROUP_COMMANDS,
    **METER_COMMANDS,
    **STATISTICS_COMMANDS,
}
_USUAL_VERSION = "OpenFlow10"
"""Without ``-O`` the program of Open vSwitch allows the flow formats of this version only."""
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
                raise Refused(f"the option {option} is not there; there are {', '.join(_OPTIONS)}")
        name, *given = words or [""]
        if name not in _COMMANDS:
            raise Refused(
                f"{name or 'a line without a command'} is not there: our switches answer {', '.join(_COMMANDS)}; "
                "install openvswitch-switch for all of ovs-ofctl"
            )
        command = _COMMANDS[name]
        if len(given) < command.least:
            raise Refused(f"'{name}' needs at least {command.least} words after it, such as a switch")
        if len(given) > command.most:
            raise Refused(f"'{name}' takes {command.most} words at most, and {len(given)} were given")
        plan = self.fabric.switch(given[0])
        if plan is None:
            raise Refused(f"no bridge named {given[0]}")
        return command.do(Call(self.fabric, plan, given[1:], options, _allowed(options)))


def _allowed(options: dict[str, str]) -> list[str]:
    """The versions that ``-O`` allows."""
    given = options.get("-O") or options.get("--protocols") or _USUAL_VERSION
    versions = [one for one in re.split(r"[,\s]+", given) if one]
    for version in versions:
        if version not in _VERSIONS:
            raise Refused(f"there is no version {version}; there are {', '.join(_VERSIONS)}")
    return versions
