"""From a policy and a place of enforcement to queues, rules and meters. Every mistake is found here, before a lab
starts."""

# What policies return is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

import itertools
import logging
import traceback
from collections.abc import Iterable, Mapping, Sequence

from twinnet.errors import BadPolicy, TwinnetError, did_you_mean
from twinnet.network.flow_syntax import checked_flow
from twinnet.network.network import Network
from twinnet.policies.class_places import ClassPlaces
from twinnet.policies.compiled import CompiledPolicy, Meter, Rule, SwitchRules
from twinnet.policies.conditions import Condition, HostAddresses, by_precedence, first_overlap, kind_word
from twinnet.policies.enforcement import EnforcedPort, Enforcement
from twinnet.policies.forwarding import Routes, forwarding_rules, route_rules
from twinnet.policies.load import Load
from twinnet.policies.match import IP_VERSIONS
from twinnet.policies.paths import Paths
from twinnet.policies.policy import Policy
from twinnet.policies.schedulers import queue_numbers
from twinnet.policies.traffic_class import TrafficClass, amount_bps
from twinnet.qos.queue import Queue
from twinnet.units import format_rate

__all__ = ["MOST_CLASSES", "compile_policy"]

MOST_CLASSES = 65_535
"""The most classes of a policy: OpenFlow numbers the queues of Open vSwitch with 16 bits."""
_MOST_OF_PORT = 1024
_CLASS_PRIORITY = 10
_GROUP_PRIORITY = 2000
"""Above all classes: the highest precedence is 1000."""
_NEIGHBOUR_ADVERTISEMENT = 136
_LOGGER = logging.getLogger(__name__)


def compile_policy(
    network: Network,
    policy: Policy,
    enforcement: Enforcement | None = None,
    load: Load | None = None,
    previous: CompiledPolicy | None = None,
) -> CompiledPolicy:
    """Return what `policy` comes to in `network`; nothing is changed.

    Every enforcing switch looks a packet up twice: first for its class, then for its way, so that rules add up and do
    not multiply. A class whose sources and destinations are named has rules only where its packets come by.

    Parameters
    ----------
    network
        The network.
    policy
        The policy.
    enforcement
        Where it is enforced; default: at the core.
    load
        What the network is to carry.
    previous
        What runs already and is to be changed: classes keep the queue numbers that they have there.

    Raises
    ------
    BadPolicy
        When the policy raises or returns nonsense, or the network cannot carry it out; the names involved are named.
    """
    enforcement, load = enforcement or Enforcement(), load or Load()
    load.check(network)
    paths = Paths(network)
    ports = enforcement.ports(network, load, paths)
    classes = _numbered(_classes_of(policy, network, load), policy, previous)
    addresses = HostAddresses(network)
    conditions: dict[int, list[Condition]] = {}
    _check_modes(policy)
    for number, one in classes.items():
        found = [
            condition
            for match in one.matches
            for condition in addresses.conditions(match, f"the class {one.name} of {policy.name}", policy.ip_versions)
        ]
        conditions[number] = list(dict.fromkeys(found))
    _check_overlaps(policy, classes, conditions)
    routes = _routes_of(policy, network, load, paths, classes)
    places = ClassPlaces(paths, addresses, classes)
    queues = _queues(policy, enforcement, ports, classes, places)
    switches = _switch_rules(policy, enforcement, paths, ports, classes, conditions, routes, places, queues)
    return CompiledPolicy(policy, enforcement, classes, tuple(ports), switches)


def _check_modes(policy: Policy) -> None:
    """Refuse an installation or versions of IP that there are not."""
    if policy.installation not in ("proactive", "reactive"):
        raise BadPolicy(
            f"the installation of the policy {policy.name} is {policy.installation!r}",
            did_you_mean(str(policy.installation), ("proactive", "reactive")),
        )
    versions = policy.ip_versions
    if not isinstance(versions, Sequence) or not versions or any(one not in IP_VERSIONS for one in versions):
        raise BadPolicy(f"the IP versions of the policy {policy.name} are {versions!r}", "allowed are [4], [6], [4, 6]")


def _classes_of(policy: Policy, network: Network, load: Load) -> list[TrafficClass]:
    try:
        returned = policy.classes(network, load)
    except TwinnetError as error:
        raise BadPolicy(f"the policy {policy.name}: {error.message}", error.remedy) from error
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise BadPolicy(
            f"the policy {policy.name} raised {type(error).__name__}: {error} "
            f"(line {where.lineno} of {where.filename})",
            "mend its classes(network, load)",
        ) from error
    if isinstance(returned, (str, bytes)) or not isinstance(returned, Iterable):
        raise BadPolicy(f"the policy {policy.name} returned {returned!r}", "return a list of TrafficClass")
    found = list(returned)
    wrong = next((one for one in found if not isinstance(one, TrafficClass)), None)
    if wrong is not None:
        raise BadPolicy(f"the policy {policy.name} returned {wrong!r} among its classes", "return TrafficClass objects")
    return found


def _numbered(
    found: Sequence[TrafficClass], policy: Policy, previous: CompiledPolicy | None
) -> dict[int, TrafficClass]:
    """The classes by queue number."""
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise BadPolicy(f"the policy {policy.name} has two classes called {twice!r}", "give each its own name")
    rest = [one for one in found if one.is_rest]
    if len(rest) > 1:
        raise BadPolicy(
            f"the policy {policy.name} has two classes without matches, {rest[0].name} and {rest[1].name}",
            "one class takes the rest; give the other matches",
        )
    others = [one for one in found if not one.is_rest]
    if len(others) > MOST_CLASSES:
        raise BadPolicy(f"the policy {policy.name} has {len(others)} classes; at most {MOST_CLASSES} are allowed")
    if not rest and "rest" in names:
        raise BadPolicy(
            f"the class 'rest' of {policy.name} has matches", "call it otherwise: the rest is a class of its own"
        )
    rest_class = rest[0] if rest else TrafficClass("rest")
    if not policy.rest_first:
        return dict(enumerate([*others, rest_class]))
    kept = {one.name: number for number, one in previous.classes.items() if number} if previous is not None else {}
    taken = {kept[one.name] for one in others if one.name in kept}
    free = (number for number in range(1, MOST_CLASSES + 1) if number not in taken)
    numbered = {kept[one.name] if one.name in kept else next(free): one for one in others}
    return {0: rest_class} | dict(sorted(numbered.items()))


def _check_overlaps(
    policy: Policy, classes: Mapping[int, TrafficClass], conditions: Mapping[int, Sequence[Condition]]
) -> None:
    named = {classes[number].name: (classes[number].precedence, found) for number, found in conditions.items()}
    for precedence, found in by_precedence(named):
        overlap = first_overlap(found)
        if overlap is not None:
            a, b, condition = overlap
            raise BadPolicy(
                f"the classes {a} and {b} of {policy.name} both cover packets with {condition.text()}, "
                f"and both have the precedence {precedence}",
                "give the one that is to have them a higher precedence",
            )


def _routes_of(
    policy: Policy, network: Network, load: Load, paths: Paths, classes: Mapping[int, TrafficClass]
) -> dict[int, Routes]:
    numbers = {one.name: number for number, one in classes.items()}
    found: dict[int, Routes] = {}
    for name, routes in policy.routes(network, load).items():
        if name not in numbers:
            raise BadPolicy(f"{policy.name} routes the class {name!r}, which it has not", did_you_mean(name, numbers))
        for (source, target), switches in routes.items():
            _check_route(policy, paths, (source, target), switches)
        if routes:
            found[numbers[name]] = routes
    return found


def _check_route(policy: Policy, paths: Paths, ends: tuple[str, str], switches: Sequence[str]) -> None:
    for end, switch in zip(ends, (switches[:1], switches[-1:]), strict=True):
        if end not in paths.of_host or list(switch) != [paths.of_host[end].switch]:
            raise BadPolicy(f"the path of {policy.name} from {ends[0]} to {ends[1]} does not touch the switch of {end}")
    for here, there in itertools.pairwise(switches):
        if there not in (peer for _, peer, _ in paths.lines[here]):
            raise BadPolicy(f"the path of {policy.name} from {ends[0]} to {ends[1]} has no line from {here} to {there}")
    if len(set(switches)) < len(switches):
        raise BadPolicy(f"the path of {policy.name} from {ends[0]} to {ends[1]} passes a switch twice")


def _queues(
    policy: Policy,
    enforcement: Enforcement,
    ports: Sequence[EnforcedPort],
    classes: Mapping[int, TrafficClass],
    places: ClassPlaces,
) -> dict[tuple[str, int], Queue]:
    if enforcement.direction == "ingress":
        unmetered = [one.name for one in classes.values() if one.minimum is not None or one.maximum is not None]
        if unmetered:
            raise BadPolicy(
                f"the class {unmetered[0]} of {policy.name} is guaranteed or limited by a queue, and frames wait in no "
                "queue where they come in",
                "enforce it at egress, or use a policy of meters",
            )
        return {}
    made: dict[tuple[int, frozenset[int]], Queue] = {}
    found: dict[tuple[str, int], Queue] = {}
    for one in ports:
        number = one.port.number or 0
        numbers = places.at_port(one.switch, number)
        key = (one.rate_bps, numbers)
        if key not in made:
            here = {n: classes[n] for n in sorted(numbers)}
            _check_rates(policy, one, here)
            made[key] = policy.queue(one.rate_bps, here)
            if not isinstance(made[key], Queue):
                raise BadPolicy(f"the policy {policy.name} returned {made[key]!r} as a queue", "return one of tn.qos")
            _check_numbers(policy, one, made[key], here)
        found[one.switch, number] = made[key]
    return found


def _check_numbers(policy: Policy, port: EnforcedPort, queue: Queue, classes: Mapping[int, TrafficClass]) -> None:
    """Refuse a discipline with classes that has no queue for one of the policy's."""
    numbers = queue_numbers(queue)
    if numbers is None:
        return
    missing = next((number for number in classes if number not in numbers), None)
    if missing is not None:
        raise BadPolicy(
            f"the policy {policy.name} puts the class {classes[missing].name} into the queue {missing}, and what it "
            f"returned for {port.port.name} has the queues {', '.join(map(str, numbers)) or 'none'}",
            "let its queue(rate_bps, classes) return one for each number of classes",
        )


def _check_rates(policy: Policy, port: EnforcedPort, classes: Mapping[int, TrafficClass]) -> None:
    name, rate_bps = port.port.name, port.rate_bps
    if len(classes) > _MOST_OF_PORT:
        raise BadPolicy(f"the port {name} would have {len(classes)} queues; at most {_MOST_OF_PORT} are allowed")
    total = 0
    for one in classes.values():
        low = 0 if one.minimum is None else amount_bps(one.minimum, rate_bps, f"the minimum of {one.name}")
        high = rate_bps if one.maximum is None else amount_bps(one.maximum, rate_bps, f"the maximum of {one.name}")
        total += low
        for what, bps in (("minimum", low), ("maximum", high)):
            if bps > rate_bps:
                raise BadPolicy(
                    f"the {what} of the class {one.name}, {format_rate(bps)}, is above the {format_rate(rate_bps)} of "
                    f"{name}",
                    "lower it, or raise the scheduler's rate",
                )
        if low > high:
            raise BadPolicy(f"the minimum of the class {one.name} is above its maximum at {name}", "lower the minimum")
    if total > rate_bps:
        names = ", ".join(one.name for one in list(classes.values())[:6])
        raise BadPolicy(
            f"the classes {names} of {policy.name} are guaranteed {format_rate(total)} together, above the "
            f"{format_rate(rate_bps)} of {name}",
            "lower their minimums, or raise the scheduler's rate",
        )


def _switch_rules(
    policy: Policy,
    enforcement: Enforcement,
    paths: Paths,
    ports: Sequence[EnforcedPort],
    classes: Mapping[int, TrafficClass],
    conditions: Mapping[int, Sequence[Condition]],
    routes: Mapping[int, Routes],
    places: ClassPlaces,
    queues: Mapping[tuple[str, int], Queue],
) -> dict[str, SwitchRules]:
    forwarding = forwarding_rules(paths)
    planes = {number: route_rules(paths, found) for number, found in routes.items()}
    enforcing: dict[str, list[EnforcedPort]] = {}
    queues_of: dict[str, dict[int, Queue]] = {}
    for one in ports:
        enforcing.setdefault(one.switch, []).append(one)
        number = one.port.number or 0
        if (one.switch, number) in queues:
            queues_of.setdefault(one.switch, {})[number] = queues[one.switch, number]
    rest = next(number for number, one in classes.items() if one.is_rest)
    resolution = next((number for number, one in classes.items() if one.name == policy.address_resolution), None)
    found: dict[str, SwitchRules] = {}
    for name in paths.switches:
        here = enforcing.get(name, [])
        used = [number for number in planes if name in planes[number]]
        last = len(used) + 1 if here or used else 0
        tables = {number: place for place, number in enumerate(used, start=1)}
        rules: list[Rule] = []
        meters: list[Meter] = []
        matched: set[int] = set()
        if last:
            numbers = places.at_switch(name, [one.port.number or 0 for one in here]) if here else frozenset[int]()
            for number in sorted({rest, *used, *numbers}):
                one, table = classes[number], tables.get(number, last)
                meter = _meter(one, number, here) if number in numbers else None
                if meter is not None:
                    meters.append(meter)
                matched.add(number)
                into = number if here else None
                rules += _class_rules(policy, one, number, conditions[number], table, meter, into)
            if here:
                has_ipv6 = any(rule.condition is not None and rule.condition.version == 6 for rule in rules)
                rules += _address_resolution(resolution, last, rest, has_ipv6)
        for number in used:
            rules += [Rule(f"table={tables[number]},{line}") for line in planes[number][name]]
            rules.append(Rule(f"table={tables[number]},priority=0,actions=goto_table:{last}"))
        rules += [Rule(f"table={last},{line}") for line in forwarding[name]]
        found[name] = SwitchRules(tuple(rules), tuple(meters), queues_of.get(name, {}), frozenset(matched))
    sample = next((rule.text for one in found.values() for rule in one.rules if rule.queue is not None), None)
    if sample is not None:
        checked_flow(sample)
    _LOGGER.debug("%s at %s: %d rules", policy.name, enforcement.text, sum(len(one.rules) for one in found.values()))
    return found


def _address_resolution(number: int | None, table: int, rest: int, has_ipv6: bool) -> list[Rule]:
    """The rules for ARP, which goes into the class `number` if there is one, and for IPv6's neighbour discovery.

    Questions of neighbour discovery (RFC 4861) are for link-local groups. Like those of ARP they are of no class: by a
    condition on ICMPv6 they would be, and leave by several ports at once.
    """
    into = rest if number is None else number
    actions = f"{f'set_queue:{into},' if into else ''}goto_table:{table}"
    found: list[Rule] = []
    if number is not None:
        found.append(Rule(f"table=0,priority={_CLASS_PRIORITY - 1},arp,actions={actions}", number))
    if has_ipv6:
        found.append(Rule(f"table=0,priority={_GROUP_PRIORITY},ipv6,ipv6_dst=ff02::/16,actions={actions}", into))
        if number is not None:
            # Answers are for one host.
            answers = f"icmp6,icmp_type={_NEIGHBOUR_ADVERTISEMENT}"
            found.append(Rule(f"table=0,priority={_CLASS_PRIORITY - 1},{answers},actions={actions}", number))
    return found


def _class_rules(
    policy: Policy,
    one: TrafficClass,
    number: int,
    conditions: Sequence[Condition],
    table: int,
    meter: Meter | None,
    into: int | None,
) -> list[Rule]:
    words = [f"meter:{meter.number}"] if meter is not None else []
    marked = [f"set_field:{one.dscp}->ip_dscp"] if one.dscp is not None else []
    queued = [f"set_queue:{number}"] if into else []
    onwards = f"goto_table:{table}"
    if one.is_rest:
        plain = ",".join([*words, *queued, onwards])
        rules = [Rule(f"table=0,priority=0,actions={plain}", into)]
        if marked:
            marking = ",".join([*words, *marked, *queued, onwards])
            kinds = [kind_word(version, None) for version in sorted(policy.ip_versions)]
            rules += [Rule(f"table=0,priority=1,{kind},actions={marking}", into) for kind in kinds]
        return rules
    actions = ",".join([*words, *marked, *queued, onwards])
    priority = _CLASS_PRIORITY + one.precedence
    return [
        Rule(f"table=0,priority={priority},{condition.text()},actions={actions}", into, condition, priority)
        for condition in conditions
    ]


def _meter(one: TrafficClass, number: int, ports: Sequence[EnforcedPort]) -> Meter | None:
    """The meter of a class at a switch: of the slowest enforcing port where it is a share."""
    if one.meter is None or not ports:
        return None
    rate_bps = amount_bps(one.meter, min(port.rate_bps for port in ports), f"the meter of {one.name}")
    kbps = max(1, round(rate_bps / 1000))
    return Meter(number + 1, kbps, max(1, round(kbps * one.burst)))
