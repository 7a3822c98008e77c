"""Random flow tables and frames, given to two switches that must do the same with them.

``python -m twinnet_conformance.differential --seed 7 --rounds 200`` compares our switch with Open vSwitch. What the two
are known to do differently, and the specification's word on it, stands in docs/reference/openflow.md; the tables and
frames that are made here keep away from it, so that every difference that shows is a new one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bare import Bare
from twinnet_conformance.bench import Bench
from twinnet_conformance.fields import PRESENT
from twinnet_conformance.frames import build
from twinnet_conformance.open_vswitch import OpenVSwitch
from twinnet_conformance.target import Target

__all__ = ["Difference", "Round", "compare", "compare_rounds", "random_round"]

TABLES = 3
FLOWS = 14
FRAMES = 24
CHANGES = 8
PORTS = (1, 2, 3, 4)

_MACS = (0x0A0000000001, 0x0A0000000002, 0x0B0000000003)
_ADDRESSES = (0x0A000001, 0x0A000002, 0x0A010001, 0xC0A80001)
_ADDRESSES_6 = (0x20010DB8 << 96 | 1, 0x20010DB8 << 96 | 2, 0x20010DB9 << 96 | 1)
_POOLS: dict[str, Sequence[int]] = {
    "eth_src": _MACS,
    "eth_dst": _MACS,
    "ipv4_src": _ADDRESSES,
    "ipv4_dst": _ADDRESSES,
    "ipv6_src": _ADDRESSES_6,
    "ipv6_dst": _ADDRESSES_6,
    "ip_dscp": (0, 10, 46),
    "ip_ecn": (0, 1, 3),
    "tcp_src": (80, 1000),
    "tcp_dst": (80, 443),
    "udp_src": (53, 1000),
    "udp_dst": (53, 67),
    "sctp_src": (5, 6),
    "sctp_dst": (7, 8),
    "icmpv4_type": (0, 8),
    "icmpv4_code": (0, 1),
    "icmpv6_type": (128, 129),
    "icmpv6_code": (0, 1),
    "arp_op": (1, 2),
    "arp_spa": _ADDRESSES,
    "arp_tpa": _ADDRESSES,
    "arp_sha": _MACS,
    "arp_tha": _MACS,
    "ipv6_flabel": (0, 0x12345),
    "mpls_label": (16, 99),
    "mpls_tc": (0, 5),
}
_MASKS = {
    "ipv4_src": 0xFFFF0000,
    "ipv4_dst": 0x000000FF,
    "ipv6_src": ((1 << 32) - 1) << 96,
    "ipv6_dst": 0xFF,
    "eth_dst": 0x010000000000,
    "eth_src": 0xFF,
    "arp_spa": 0xFFFFFF00,
}
_LAYERS: dict[str, tuple[dict[str, int], tuple[str, ...]]] = {
    "any": ({}, ("eth_src", "eth_dst")),
    "ip": ({"eth_type": 0x0800}, ("eth_src", "eth_dst", "ipv4_src", "ipv4_dst", "ip_dscp", "ip_ecn")),
    "tcp": ({"eth_type": 0x0800, "ip_proto": 6}, ("eth_dst", "ipv4_src", "ipv4_dst", "ip_dscp", "tcp_src", "tcp_dst")),
    "udp": ({"eth_type": 0x0800, "ip_proto": 17}, ("eth_dst", "ipv4_src", "ipv4_dst", "ip_ecn", "udp_src", "udp_dst")),
    "sctp": ({"eth_type": 0x0800, "ip_proto": 132}, ("eth_src", "ipv4_src", "ipv4_dst", "sctp_src", "sctp_dst")),
    "icmp": ({"eth_type": 0x0800, "ip_proto": 1}, ("eth_src", "ipv4_src", "ipv4_dst", "icmpv4_type", "icmpv4_code")),
    "ip6": ({"eth_type": 0x86DD}, ("eth_src", "ipv6_src", "ipv6_dst", "ip_dscp", "ip_ecn", "ipv6_flabel")),
    "tcp6": ({"eth_type": 0x86DD, "ip_proto": 6}, ("eth_src", "ipv6_src", "ipv6_dst", "tcp_src", "tcp_dst")),
    "udp6": ({"eth_type": 0x86DD, "ip_proto": 17}, ("eth_src", "ipv6_src", "ipv6_dst", "udp_src", "udp_dst")),
    "icmp6": ({"eth_type": 0x86DD, "ip_proto": 58}, ("ipv6_src", "ipv6_dst", "icmpv6_type", "icmpv6_code")),
    "arp": ({"eth_type": 0x0806}, ("eth_src", "eth_dst", "arp_op", "arp_spa", "arp_tpa", "arp_sha", "arp_tha")),
    "mpls": ({"eth_type": 0x8847}, ("eth_src", "eth_dst", "mpls_label", "mpls_tc")),
}
"""For each kind of frame what promises it, and the fields that it has."""
_METADATA = (1, 0x100000002, 0xFF)
_METADATA_MASKS = ((1 << 64) - 1, 0xFF, 0x100000000)
_IP = ("ip", "tcp", "udp", "sctp", "icmp", "ip6", "tcp6", "udp6", "icmp6")


@dataclass(frozen=True)
class Round:
    """What both switches are given."""

    messages: list[of.Message]
    frames: list[tuple[int, bytes]]
    changes: dict[int, list[of.Message]] = field(default_factory=dict[int, list[of.Message]])
    """What is changed just before the frame of that number."""
    text: list[str] = field(default_factory=list[str])
    """The messages, for people."""


@dataclass(frozen=True)
class Difference:
    """A frame that two switches did different things with, or a message that only one of them took."""

    what: str
    results: Mapping[str, str]
    given: Round

    def __str__(self) -> str:
        """Tell all that is needed to see it again."""
        results = [f"  {name}: {result}" for name, result in self.results.items()]
        return "\n".join([self.what, *results, *(f"    {line}" for line in self.given.text)])


def _conditions(random: Random, layer: str, table: int) -> dict[str, int | tuple[int, int]]:
    needs, fields = _LAYERS[layer]
    found: dict[str, int | tuple[int, int]] = {}
    # Nothing has written metadata before the first table.
    if table > 0 and random.random() < 0.3:
        value, mask = random.choice(_METADATA), random.choice(_METADATA_MASKS)
        found["metadata"] = (value & mask, mask)
    if random.random() < 0.3:
        found["in_port"] = random.choice(PORTS)
    tag = random.random()
    tagged = tag < 0.3
    if tagged:
        found["vlan_vid"] = random.choice(((PRESENT, PRESENT), PRESENT | 10, PRESENT | 20))
    elif tag < 0.5 or layer == "mpls":
        found["vlan_vid"] = 0
    found.update(needs)
    for name in random.sample(fields, random.randint(0, 2)):
        value = random.choice(_POOLS[name])
        mask = _MASKS.get(name)
        found[name] = (value & mask, mask) if mask is not None and random.random() < 0.4 else value
    return found


def _rewriting(random: Random, layer: str, conditions: Mapping[str, object]) -> list[tuple[str, bytes]]:
    """Return some actions that the conditions allow, the last perhaps one that changes what the frame is."""
    _, fields = _LAYERS[layer]
    found: list[tuple[str, bytes]] = []
    for _ in range(random.randint(0, 3)):
        name = random.choice(fields)
        value = random.choice(_POOLS[name])
        found.append((f"set {name}={value:#x}", of.set_field(name, value)))
    if layer in _IP and random.random() < 0.3:
        found.append(random.choice((("dec_ttl", of.dec_nw_ttl()), ("set_ttl 9", of.set_nw_ttl(9)))))
    if layer == "mpls" and random.random() < 0.4:
        found.append(random.choice((("dec_mpls_ttl", of.dec_mpls_ttl()), ("set_mpls_ttl 7", of.set_mpls_ttl(7)))))
    shape = random.random()
    vid = of.set_field("vlan_vid", PRESENT | random.choice((10, 20, 30)))
    if conditions.get("vlan_vid", 0) != 0 and shape < 0.3:
        found.append(random.choice((("pop_vlan", of.pop_vlan()), ("set vlan_vid", vid))))
    elif conditions.get("vlan_vid") == 0 and shape < 0.3:
        # Open vSwitch does not copy identifier and priority of a covered tag, so both are set.
        pcp = of.set_field("vlan_pcp", random.randint(0, 7))
        found.append(("push_vlan, vid, pcp", of.push_vlan(0x8100) + vid + pcp))
    elif conditions.get("vlan_vid") == 0 and layer in _IP and shape < 0.45:
        # It makes up label and class before IP; and puts the label behind VLAN tags.
        label, bits = of.set_field("mpls_label", 77), of.set_field("mpls_tc", 2)
        found.append(("push_mpls, label, tc", of.push_mpls(0x8847) + label + bits))
    return found


def _outputs(random: Random, groups: Sequence[int]) -> list[tuple[str, bytes]]:
    kinds: list[tuple[str, bytes]] = [(f"output {port}", of.output(port)) for port in PORTS]
    kinds += [("flood", of.output(of.FLOOD)), ("all", of.output(of.ALL_PORTS)), ("in_port", of.output(of.IN_PORT))]
    kinds += [(f"group {number}", of.group(number)) for number in groups]
    return random.sample(kinds, random.randint(1, 2))


def _flow(
    random: Random, table: int, priority: int, groups: Sequence[int], command: int = of.ADD
) -> tuple[str, of.Message]:
    layer = random.choice(list(_LAYERS))
    # A modification says only the kind of frame: one that says more covers next to no flow.
    conditions = _conditions(random, layer, table) if command == of.ADD else dict(_LAYERS[layer][0])
    reported: list[str] = []
    instructions: list[bytes] = []
    changes = _rewriting(random, layer, conditions)
    # What becomes of the action set when a time to live ends is known to differ: in table 0 it is empty.
    applicable = [change for change in changes if table == 0 or not change[0].startswith("dec_")]
    moved = any(name.startswith(("push", "pop")) for name, _ in changes)
    if random.random() < 0.6:
        applied = [*applicable, *(_outputs(random, groups) if random.random() < 0.6 else [])]
        reported.append(f"apply({', '.join(name for name, _ in applied)})")
        instructions.append(of.apply_actions(*(action for _, action in applied)))
    elif not moved:
        # One output or group: of several the set keeps the last.
        written = [*changes, *_outputs(random, groups)[:1]]
        reported.append(f"write({', '.join(name for name, _ in written)})")
        instructions.append(of.write_actions(*(action for _, action in written)))
    if random.random() < 0.1:
        reported.append("clear")
        instructions.append(of.clear_actions())
    if table + 1 < TABLES and random.random() < 0.5:
        if random.random() < 0.5:
            value, mask = random.choice(_METADATA), random.choice(_METADATA_MASKS)
            reported.append(f"metadata {value & mask:#x}/{mask:#x}")
            instructions.append(of.write_metadata(value & mask, mask))
        following = random.randint(table + 1, TABLES - 1)
        reported.append(f"goto {following}")
        instructions.append(of.goto_table(following))
    shown = ", ".join(f"{name}={value}" for name, value in conditions.items())
    text = f"table {table} priority {priority} {shown}: {' '.join(reported)}"
    return text, of.flow_mod(conditions, *instructions, table=table, priority=priority, command=command)


def _change(random: Random, groups: Sequence[int]) -> tuple[str, list[of.Message]]:
    """Return what modifies or deletes the flows that some conditions cover, whatever their priority."""
    table = random.randrange(TABLES)
    if random.random() < 0.5:
        text, message = _flow(random, table, 0, groups, of.MODIFY)
        return f"modify {text}", [message]
    conditions = dict(_LAYERS[random.choice(list(_LAYERS))][0])
    deletion = of.flow_mod(conditions, table=table, command=of.DELETE)
    # What a miss does to the action set is known to differ.
    return f"delete table {table} {conditions}", [deletion, of.flow_mod({}, table=table, priority=0)]


def _frame(random: Random) -> bytes:
    layer = random.choice([name for name in _LAYERS if name != "any"])
    needs, fields = _LAYERS[layer]
    values = dict(needs)
    for name in fields:
        values[name] = random.choice(_POOLS[name])
    for name in ("eth_src", "eth_dst"):
        values[name] = random.choice(_POOLS[name])
    if layer in _IP:
        values["ip_ttl"] = random.choice((1, 2, 64, 255))
    if layer == "mpls":
        values["mpls_ttl"] = random.choice((2, 64))
    elif random.random() < 0.4:
        values["vlan_vid"] = random.choice((10, 20, 30))
        values["vlan_pcp"] = random.randint(0, 7)
    return build(**values)


def random_round(seed: int) -> Round:
    """Return flows, groups and frames, the same for the same seed."""
    random = Random(seed)
    messages: list[of.Message] = []
    text: list[str] = []
    groups = list(range(1, random.randint(1, 4)))
    for number in groups:
        kind = random.choice((of.GROUP_ALL, of.GROUP_INDIRECT, of.GROUP_FAST_FAILOVER))
        buckets: list[bytes] = []
        for _ in range(1 if kind == of.GROUP_INDIRECT else random.randint(1, 3)):
            port = random.choice(PORTS)
            mac = of.set_field("eth_dst", random.choice(_MACS))
            actions = [*([mac] if random.random() < 0.5 else []), of.output(port)]
            buckets.append(of.bucket(*actions, watch_port=port if kind == of.GROUP_FAST_FAILOVER else of.ANY))
        messages.append(of.group_mod(number, kind, *buckets))
        text.append(f"group {number} type {kind}: {b''.join(buckets).hex()}")
    for table in range(TABLES):
        # Flows of one priority that both match are either's choice.
        for priority in random.sample(range(1, 1000), FLOWS):
            shown, message = _flow(random, table, priority, groups)
            text.append(shown)
            messages.append(message)
        # What a miss does to the action set is known to differ.
        messages.append(of.flow_mod({}, table=table, priority=0))
    frames = [(random.choice(PORTS), _frame(random)) for _ in range(FRAMES)]
    changes: dict[int, list[of.Message]] = {}
    for number in sorted(random.sample(range(1, FRAMES), CHANGES)):
        shown, changes[number] = _change(random, groups)
        text.append(f"before frame {number}: {shown}")
    return Round(messages, frames, changes, text)


def compare(given: Round, switches: Sequence[Target]) -> list[Difference]:
    """Give a round to each switch and return what they did differently."""
    benches: list[Bench] = []
    differences: list[Difference] = []
    for switch in switches:
        switch.reset()
        benches.append(Bench(switch))
    names = [switch.name for switch in switches]

    def say(messages: Sequence[of.Message]) -> None:
        for message in messages:
            answers = [bench.refusal(message) for bench in benches]
            if len(set(answers)) > 1:
                results = {name: f"{answer}" for name, answer in zip(names, answers, strict=True)}
                differences.append(Difference(f"message of type {message.kind}: {message.body.hex()}", results, given))

    say(given.messages)
    for number, (port, frame) in enumerate(given.frames):
        say(given.changes.get(number, ()))
        came = [sorted(bench.frame(frame, port)) for bench in benches]
        if any(one != came[0] for one in came[1:]):
            results = {name: _in_words(one) for name, one in zip(names, came, strict=True)}
            differences.append(Difference(f"frame {number} by port {port}: {frame.hex()}", results, given))
    for bench in benches:
        bench.close()
    return differences


def _in_words(frames: Sequence[tuple[int, bytes]]) -> str:
    return "; ".join(f"port {port}: {frame.hex()}" for port, frame in frames) or "nothing"


def compare_rounds(
    seed: int, rounds: int, switches: Sequence[Target], tell: Callable[[Difference], None] | None = None
) -> list[Difference]:
    """Compare `rounds` rounds, the first made of `seed`, and tell each difference as it is found."""
    found: list[Difference] = []
    for number in range(rounds):
        for difference in compare(random_round(seed + number), switches):
            found.append(difference)
            if tell is not None:
                tell(difference)
    return found


def main() -> int:
    """Compare our switch with Open vSwitch; exit status 1 when they differ."""
    parser = argparse.ArgumentParser(description="Compare our switch with Open vSwitch on random flows and frames.")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--rounds", type=int, default=50)
    wanted = parser.parse_args()
    other = OpenVSwitch()
    try:
        found = compare_rounds(wanted.seed, wanted.rounds, (Bare(), other), lambda one: print(one, flush=True))
    finally:
        other.stop()
    print(f"{wanted.rounds} rounds, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
