"""Rules on demand: the part of a switch's rules that its traffic has asked for, for policies that are installed
reactively."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from twinnet.control import frames
from twinnet.policies.compiled import Rule, SwitchRules
from twinnet.policies.conditions import ADDRESS_BITS, Condition, kind_word
from twinnet.policies.match import IpVersion

__all__ = ["RulesOnDemand", "packet_of"]

_ASKING_PRIORITY = 2
"""Above the rest's two rules, below those of the classes (10 and up)."""
_PROTOCOLS: dict[IpVersion, dict[int, str]] = {
    4: {1: "icmp", 6: "tcp", 17: "udp"},
    6: {58: "icmp", 6: "tcp", 17: "udp"},
}
_Kind = tuple[IpVersion, str | None]


class RulesOnDemand:
    """The rules of one switch, of which those of classes are present only when a packet has asked for them.

    In the place of the absent ones stands a rule for each kind of packets that they are about (such as ``tcp``), which
    sends to the controller. A packet brings the rule that it meets. With it come the rules of higher precedence that
    overlap it, and those that overlap these: no packet then meets a rule that the complete table would not give it
    (Katta and others, *CacheFlow*, SOSR 2016, section 3.1). A packet that no class covers brings all rules of its kind,
    each of which is an exception to it; its kind then asks no more. So there are never more rules than in the complete
    table and one for each kind, whatever is sent.

    Parameters
    ----------
    rules
        The complete rules.
    before
        What the switch had until now, of another policy: rules that were asked for are present, if they are wanted
        still.
    """

    def __init__(self, rules: SwitchRules, before: RulesOnDemand | None = None) -> None:
        self._rules: SwitchRules = rules
        self._conditional: dict[int, tuple[Rule, Condition]] = {
            one.cookie: (one, one.condition) for one in rules.rules if one.condition is not None
        }
        kinds: set[_Kind] = {(one.version, one.protocol) for _, one in self._conditional.values()}
        self._asking: dict[int, tuple[Rule, _Kind]] = {}
        for version, protocol in sorted(kinds, key=str):
            # What asks for all of a version asks for its protocols too.
            if protocol is None or (version, None) not in kinds:
                rule = _asking_rule(version, protocol)
                self._asking[rule.cookie] = (rule, (version, protocol))
        self._present: set[int] = set()
        self._confirmed: set[int] = set()
        # The asking rules of kinds that are complete: they are no longer in the switch.
        self._silent: set[int] = set()
        if before is not None:
            self._bring(pair for cookie, pair in self._conditional.items() if cookie in before._present)
            for cookie in self._asking.keys() & before._silent:
                self._complete(cookie)

    @property
    def present(self) -> SwitchRules:
        """The rules that the switch has now."""
        shown = [one for one in self._rules.rules if one.condition is None or one.cookie in self._present]
        asking = [rule for cookie, (rule, _) in self._asking.items() if cookie not in self._silent]
        return replace(self._rules, rules=(*shown, *asking))

    def asks(self, cookie: int) -> bool:
        """Return whether `cookie` is that of a rule that sends to the controller, now or earlier."""
        return cookie in self._asking

    def meet(self, cookie: int, frame: bytes) -> None:
        """Make present what `frame` needs, which the asking rule `cookie` has sent."""
        if cookie in self._silent:
            return
        packet = packet_of(frame)
        found = self._best(packet) if packet is not None else None
        # A switch that asks for a rule that it has confirmed reads the packet in another way than we do.
        if found is None or found[0].cookie in self._confirmed:
            self._complete(cookie)
        elif found[0].cookie not in self._present:
            self._bring([found])

    def confirm(self) -> None:
        """Note that the switch has all rules that are present."""
        self._confirmed = set(self._present)

    def _best(self, packet: Condition) -> tuple[Rule, Condition] | None:
        met = (pair for pair in self._conditional.values() if _covers(pair[1], packet))
        return max(met, key=lambda pair: pair[0].priority, default=None)

    def _complete(self, cookie: int) -> None:
        _, (version, protocol) = self._asking[cookie]
        self._silent.add(cookie)
        self._bring(
            pair
            for pair in self._conditional.values()
            if pair[1].version == version and protocol in (None, pair[1].protocol)
        )

    def _bring(self, pairs: Iterable[tuple[Rule, Condition]]) -> None:
        waiting = list(pairs)
        while waiting:
            rule, condition = waiting.pop()
            if rule.cookie in self._present:
                continue
            self._present.add(rule.cookie)
            waiting += self._exceptions(rule, condition)

    def _exceptions(self, rule: Rule, condition: Condition) -> Iterator[tuple[Rule, Condition]]:
        for other in self._conditional.values():
            if other[0].priority > rule.priority and other[1].meets(condition):
                yield other


def _asking_rule(version: IpVersion, protocol: str | None) -> Rule:
    return Rule(f"table=0,priority={_ASKING_PRIORITY},{kind_word(version, protocol)},actions=controller")


def _covers(condition: Condition, packet: Condition) -> bool:
    # A packet without ports, such as a later fragment, is not covered by a condition on them.
    ports = ((condition.source_port, packet.source_port), (condition.destination_port, packet.destination_port))
    if any(wanted is not None and wanted != sent for wanted, sent in (*ports, (condition.protocol, packet.protocol))):
        return False
    return condition.meets(packet)


def packet_of(frame: bytes) -> Condition | None:
    """Return the condition that only packets like the one in `frame` have; ``None`` where it holds no IP packet."""
    kind, at = frames.payload(frame)
    if kind == frames.IPV4 and len(frame) >= at + 20:
        first = int.from_bytes(frame[at + 6 : at + 8], "big") & 0x1FFF == 0
        ports_at = at + 4 * (frame[at] & 15) if first else len(frame)
        return _packet(frame, 4, frame[at + 9], at + 12, ports_at, frame[at + 1] >> 2)
    if kind == frames.IPV6 and len(frame) >= at + 40:
        # Headers between this one and TCP or UDP are not read: such a packet brings all rules of its kind.
        traffic_class = int.from_bytes(frame[at : at + 2], "big") >> 4 & 0xFF
        return _packet(frame, 6, frame[at + 6], at + 8, at + 40, traffic_class >> 2)
    return None


def _packet(frame: bytes, version: IpVersion, number: int, addresses: int, ports_at: int, dscp: int) -> Condition:
    bits = ADDRESS_BITS[version]
    width = bits // 8
    ends = (frame[at : at + width] for at in (addresses, addresses + width))
    source, destination = ((int.from_bytes(end, "big"), bits) for end in ends)
    protocol = _PROTOCOLS[version].get(number)
    has_ports = protocol in ("tcp", "udp") and len(frame) >= ports_at + 4
    ports = (int.from_bytes(frame[at : at + 2], "big") if has_ports else None for at in (ports_at, ports_at + 2))
    source_port, destination_port = ports
    return Condition(protocol, source, destination, source_port, destination_port, dscp, version)
