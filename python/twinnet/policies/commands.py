"""A compiled policy as commands for Open vSwitch, so that it can be taken to real switches."""

from __future__ import annotations

import shlex

from twinnet.errors import BadPolicy, BadQueue
from twinnet.network.datapaths import checked_queue
from twinnet.open_vswitch.bridge import quality_of_service
from twinnet.policies.compiled import CompiledPolicy, SwitchRules
from twinnet.qos.queue import Queue

__all__ = ["open_vswitch_commands"]

_VERSION = "OpenFlow13"


def open_vswitch_commands(compiled: CompiledPolicy) -> list[str]:
    """Return shell commands that put `compiled` on Open vSwitch: queues by ``ovs-vsctl``, meters and rules by
    ``ovs-ofctl``. Bridges and ports have the names and numbers that they have in the network.

    Raises
    ------
    BadPolicy
        When Open vSwitch's kernel datapath cannot have a port's queue; the message names the port and what to do.
    """
    lines: list[str] = []
    interfaces = {(one.switch, one.port.number): one.port.name for one in compiled.ports}
    for name, rules in compiled.switches.items():
        lines.append(f"# {name}: {len(rules.rules)} rules, {len(rules.queues)} ports with queues")
        for number, queue in rules.queues.items():
            lines.append(_queue_command(compiled, interfaces[name, number], queue))
        lines += _flow_commands(name, rules)
    return lines


def _queue_command(compiled: CompiledPolicy, interface: str, queue: Queue) -> str:
    described = queue.to_spec()
    try:
        if described["kind"] != "htb":
            raise BadQueue(
                f"at {interface} the policy wants {described['kind']}, and Open vSwitch's only queues with classes are "
                "linux-htb",
                "choose a policy of HTBs, or switches of twinnet's own",
            )
        checked_queue(interface, "system", queue)
    except BadQueue as error:
        raise BadPolicy(
            f"Open vSwitch cannot carry out the policy {compiled.policy.name}: {error.message}", error.remedy
        ) from None
    return shlex.join(["ovs-vsctl", "--", *quality_of_service(interface, described)])


def _flow_commands(name: str, rules: SwitchRules) -> list[str]:
    command = ["ovs-ofctl", "-O", _VERSION]
    lines = [
        shlex.join(
            [
                *command,
                "add-meter",
                name,
                f"meter={one.number},kbps,burst,band=type=drop,rate={one.rate_kbps},burst_size={one.burst_kbit}",
            ]
        )
        for one in rules.meters
    ]
    shown = " ".join([*command, "--bundle", "add-flows", name, "-"])
    return [*lines, f"{shown} <<'END'", *(rule.line for rule in rules.rules), "END"]
