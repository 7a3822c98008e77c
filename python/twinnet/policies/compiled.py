"""The compiled form of a policy: queues at ports, and rules and meters of switches."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinnet.errors import BadPolicy, BadQueue
from twinnet.network.datapaths import checked_queue
from twinnet.network.nodes import Switch
from twinnet.policies.conditions import Condition
from twinnet.policies.enforcement import EnforcedPort, Enforcement
from twinnet.policies.traffic_class import TrafficClass
from twinnet.qos.queue import Queue

if TYPE_CHECKING:
    from twinnet.network.network import Network
    from twinnet.policies.controller import PolicyController
    from twinnet.policies.policy import Policy

__all__ = ["CompiledPolicy", "Meter", "Rule", "SwitchRules"]

_COOKIE = 0x706F << 48
"""The upper 16 bits of the cookies of all rules of policies."""


@dataclass(frozen=True)
class Rule:
    """One flow rule.

    Parameters
    ----------
    text
        In ``ovs-ofctl`` syntax, without cookie.
    queue
        The number of the class that it puts packets in; ``None`` for a rule that forwards.
    condition
        Of a rule that tells a class apart, its condition; ``None`` for all others.
    priority
        The priority of a rule with a condition.
    """

    text: str
    queue: int | None = None
    condition: Condition | None = None
    priority: int = 0

    @property
    def cookie(self) -> int:
        """A number that tells the rule from all others, by which alone it is deleted."""
        return _COOKIE | int.from_bytes(hashlib.blake2b(self.text.encode(), digest_size=6).digest(), "big")

    @property
    def line(self) -> str:
        """The rule with its cookie."""
        return f"cookie={self.cookie:#x},{self.text}"


@dataclass(frozen=True)
class Meter:
    """A meter that drops what exceeds its rate.

    Parameters
    ----------
    number
        Its number in the switch.
    rate_kbps, burst_kbit
        What passes: kbit/s, and kbit at once.
    """

    number: int
    rate_kbps: int
    burst_kbit: int


@dataclass(frozen=True)
class SwitchRules:
    """The rules, meters and queues of one switch.

    Parameters
    ----------
    rules
        Its flow rules.
    meters
        The meters that they use.
    queues
        The queue configuration of each enforcing port, by OpenFlow port number.
    classes
        The numbers of the classes that its rules tell apart.
    """

    rules: Sequence[Rule]
    meters: Sequence[Meter] = ()
    queues: Mapping[int, Queue] = field(default_factory=dict[int, Queue])
    classes: frozenset[int] = frozenset()


@dataclass(frozen=True)
class CompiledPolicy:
    """A policy for one network, enforced at chosen ports; made by :func:`twinnet.policies.compile_policy`.

    Parameters
    ----------
    policy
        The policy.
    enforcement
        Where it is enforced.
    classes
        The classes by queue number; 0 is the rest.
    ports
        The enforcing ports.
    switches
        What each switch gets, by name.
    """

    policy: Policy
    enforcement: Enforcement
    classes: Mapping[int, TrafficClass]
    ports: Sequence[EnforcedPort]
    switches: Mapping[str, SwitchRules]

    @property
    def rule_count(self) -> int:
        """The number of flow rules in all switches together."""
        return sum(len(one.rules) for one in self.switches.values())

    def deploy(self, network: Network) -> PolicyController:
        """Put the queues before the ports of `network` and have its switches get their rules from a controller.

        The network must be the one that the policy was compiled for, and have no controller yet. Switches that have
        none of their own get rules as soon as they join, and forward nothing before.

        Raises
        ------
        BadPolicy
            When the network has a controller, or a switch is Open vSwitch, cannot have such a queue, or speaks no
            OpenFlow 1.3.
        """
        if network.controller_choice is not None:
            raise BadPolicy(
                "the network has a controller already", "leave it away: the policy's controller installs the rules"
            )
        self._put_queues(network)
        theirs = next((name for name in self.switches if network.node(name, Switch).datapath != "own"), None)
        if theirs is not None:
            raise BadPolicy(
                f"a policy's controller runs in this process and cannot drive {theirs}, which is Open vSwitch",
                "use write_into(), or commands of open_vswitch_commands()",
            )
        for name in self.switches:
            network.node(name, Switch).fail_mode = "secure"
        controller = self.policy.controller(self)
        network.controller(controller)
        return controller

    def write_into(self, network: Network) -> None:
        """Put queues and rules into the description of `network`, so that it needs no controller.

        Raises
        ------
        BadPolicy
            When the policy needs a controller, for meters or because it goes on deciding.
        """
        from twinnet.policies.controller import PolicyController

        metered = [name for name, one in self.switches.items() if one.meters]
        why = f"{metered[0]} has meters" if metered else None
        if self.policy.installation == "reactive":
            why = "it is installed reactively"
        elif type(self.policy.controller(self)) is not PolicyController:
            why = "it decides while the network runs"
        if why is not None:
            raise BadPolicy(f"the policy {self.policy.name} needs a controller: {why}", "use deploy()")
        self._put_queues(network)
        for name, one in self.switches.items():
            switch = network.node(name, Switch)
            switch.fail_mode = "secure"
            switch.flows = (*switch.flows, *(rule.line for rule in one.rules))

    def _put_queues(self, network: Network) -> None:
        for name, one in self.switches.items():
            switch = network.node(name, Switch)
            if "OpenFlow13" not in switch.protocols:
                raise BadPolicy(
                    f"the switch {name} cannot carry out the policy {self.policy.name}: it speaks "
                    f"{' and '.join(switch.protocols)} alone, and the rules need several tables (and meters and IPv6, "
                    "where the policy has them), which are of OpenFlow 1.3",
                    "add OpenFlow13 to its protocols",
                )
            by_number = {port.number: port for port in switch.ports}
            for number, queue in one.queues.items():
                port = by_number[number]
                try:
                    checked_queue(port.name, switch.datapath, queue)
                except BadQueue as error:
                    raise BadPolicy(
                        f"the switch {name} cannot carry out the policy {self.policy.name}: {error.message}",
                        error.remedy,
                    ) from None
                port.queue = queue
