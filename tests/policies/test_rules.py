"""From policies to rules: fewest prefixes, overlaps, where classes come by, and counts."""

from __future__ import annotations

import ipaddress
import itertools
import random
import time

import pytest
from policy_networks import Classes, small_load, small_tree
from twinnet import policies
from twinnet.errors import BadPolicy
from twinnet.network import graphs, templates
from twinnet.policies import Enforcement, Match, TrafficClass, compile_policy
from twinnet.policies.conditions import Condition, HostAddresses, first_overlap
from twinnet.policies.prefixes import fewest_prefixes


def covers(prefix: tuple[int, int], value: int, width: int) -> bool:
    return value >> (width - prefix[1]) == prefix[0] >> (width - prefix[1])


@pytest.mark.parametrize("seed", range(20))
def test_prefixes_cover_the_members_and_no_other_known_address(seed: int) -> None:
    draw = random.Random(seed)
    known = sorted(draw.sample(range(256), 60))
    members = sorted(draw.sample(known, 25))
    found = fewest_prefixes(members, known, 8)
    covered = [value for value in known if any(covers(prefix, value, 8) for prefix in found)]
    assert covered == members
    exact = fewest_prefixes(members, known, 8, exact=True)
    assert [value for value in range(256) if any(covers(prefix, value, 8) for prefix in exact)] == members


def test_prefixes_are_as_few_as_an_exhaustive_search_finds() -> None:
    draw = random.Random(7)
    every = [(value, length) for length in range(5) for value in range(0, 16, 1 << (4 - length))]
    for _ in range(30):
        known = sorted(draw.sample(range(16), 9))
        members = sorted(draw.sample(known, 4))
        found = fewest_prefixes(members, known, 4)
        allowed = [p for p in every if not any(covers(p, one, 4) for one in known if one not in members)]
        least = next(
            count
            for count in range(1, 5)
            if any(
                all(any(covers(p, one, 4) for p in chosen) for one in members)
                for chosen in itertools.combinations(allowed, count)
            )
        )
        assert len(found) == least


def test_a_group_of_neighbours_is_one_prefix() -> None:
    net = templates.single(16)
    found = HostAddresses(net).prefixes([f"h{n}" for n in range(8, 16)], "a class")
    assert [str(ipaddress.IPv4Network(prefix)) for prefix in found] == ["10.0.0.8/29"]


@pytest.mark.parametrize("seed", range(5))
def test_overlaps_are_found_exactly_where_two_conditions_meet(seed: int) -> None:
    draw = random.Random(seed)
    net = templates.single(8)
    addresses = HostAddresses(net)
    named: list[tuple[str, Condition]] = []
    for number in range(12):
        source = draw.sample([f"h{n}" for n in range(1, 9)], draw.randint(1, 3)) if draw.random() < 0.6 else None
        port = draw.choice([None, 80, 443])
        match = Match(
            "tcp" if port or draw.random() < 0.5 else None, source, None, port, None, draw.choice([None, 0, 46])
        )
        named += [(f"c{number}", one) for one in addresses.conditions(match, "here")]

    def meet(a: tuple[str, Condition], b: tuple[str, Condition]) -> bool:
        one, two = a[1], b[1]
        plain = ("protocol", "source_port", "destination_port", "dscp")
        same = all(None in (getattr(one, f), getattr(two, f)) or getattr(one, f) == getattr(two, f) for f in plain)
        prefixes = [(one.source, two.source), (one.destination, two.destination)]
        return (
            a[0] != b[0]
            and same
            and all(covers(min(p, q, key=lambda x: x[1]), max(p, q, key=lambda x: x[1])[0], 32) for p, q in prefixes)
        )

    expected = any(meet(a, b) for a, b in itertools.combinations(named, 2))
    assert (first_overlap(named) is not None) == expected


def test_classes_that_overlap_without_precedence_are_refused_with_both_names() -> None:
    web = TrafficClass("web", [Match("tcp", source_port=80)])
    first = TrafficClass("first", [Match(source=["h1"])])
    with pytest.raises(BadPolicy, match=r"web and first .* both cover packets with ip,nw_src=10.0.0.1"):
        compile_policy(small_tree(), Classes(web, first))
    higher = TrafficClass("first", [Match(source=["h1"])], precedence=1)
    rules = compile_policy(small_tree(), Classes(web, higher)).switches["s1"].rules
    assert any(rule.text.startswith("table=0,priority=11,ip,nw_src=10.0.0.1,") for rule in rules)


def test_a_class_between_two_hosts_has_rules_and_queues_only_on_their_path() -> None:
    between = TrafficClass("between", [Match(source=["h1"], destination=["h4"])], minimum=0.5)
    compiled = compile_policy(small_tree(), Classes(between), Enforcement("all"))
    assert [name for name, one in compiled.switches.items() if 1 in one.classes] == ["s1", "s2", "s3"]
    queues = {
        (name, port): queue.to_spec()["queues"].keys()
        for name, one in compiled.switches.items()
        for port, queue in one.queues.items()
    }
    with_class = sorted(place for place, numbers in queues.items() if "1" in numbers)
    # From h1 up by s2's port to s1, down by s1's port to s3, out by s3's first port to a host.
    assert with_class == [("s1", 2), ("s2", 1), ("s3", 2)]


def test_forwarding_rules_of_a_tree_are_a_default_and_prefixes_of_what_is_below() -> None:
    net = templates.client_tree(62, 3, 6, rate="1 Gbit")
    compiled = compile_policy(net, policies.find_policy("best-effort"), Enforcement(["core"]))
    # Below are h1 to h16 and h17 to h32; addresses 1 to 15 and 16, 17, 18 to 19, 20 to 23, 24 to 31 and 32 have a
    # prefix each, groups have one, and the rest is upwards.
    forwarding = [rule.text for rule in compiled.switches["l3s1"].rules]
    assert len(forwarding) == 2 + 5 + 2, forwarding
    assert sum("priority=1," in text for text in forwarding) == 1


def test_networks_with_loops_have_rules_for_known_addresses_alone() -> None:
    compiled = compile_policy(templates.ring(5, rate="1 Gbit"), policies.find_policy("best-effort"), Enforcement("all"))
    assert len(compiled.switches) == 5
    for one in compiled.switches.values():
        assert not any("table=1,priority=1," in rule.text for rule in one.rules)
        of_hosts = [rule for rule in one.rules if "dl_dst=00" in rule.text]
        assert of_hosts
        for rule in of_hosts:
            assert "/" not in rule.text.split("actions")[0].split("dl_dst=")[1] or "ff:ff:ff" in rule.text


def test_a_thousand_switches_and_ten_thousand_classes_come_to_rules_within_the_promised_time() -> None:
    net = templates.client_tree(2000, 9, 6, rate="10 Gbit")
    clients = [host.name for host in net.hosts if host.name.startswith("h")]
    classes = [
        TrafficClass(
            f"c{n}",
            [Match("tcp", [f"v{n % 6 + 1}"], [clients[n % 2000]], source_port=1000 + n // 2000)],
            minimum="100 kbit",
        )
        for n in range(10_000)
    ]
    load = policies.Load(tuple(policies.Demand(one, "v1", "x", "tcp", 80) for one in clients))
    begin = time.process_time()
    compiled = compile_policy(net, Classes(*classes), Enforcement("leaf"), load)
    # The promise is 5 s; of processor time, so that what else the machine does is no part of it.
    assert time.process_time() - begin < 5
    assert len(net.switches) >= 1000
    # Each class has one rule, at the one leaf that its client is linked to.
    in_classes = sum(
        rule.queue is not None and rule.queue > 0 for one in compiled.switches.values() for rule in one.rules
    )
    assert in_classes == 10_000


def test_a_policy_that_routes_leaves_the_shortest_path_for_one_with_more_to_spare() -> None:
    net = templates.leaf_spine(2, 2, 2, rate="10 Mbit")
    demands = [policies.Demand("h3", "h1", "http", "tcp", 8080, rate="8 Mbit")]
    demands += [policies.Demand("h4", "h2", "video", "udp", 5004, rate="4 Mbit")]
    for name in ("openqos", "constrained-paths"):
        routes = policies.find_policy(name).routes(net, policies.Load(tuple(demands)))
        # HTTP is on the shortest path with the lower port number, by s1; 4 Mbit/s more would be too much for it.
        assert routes["video"]["h2", "h4"] == ["s3", "s2", "s4"]
        assert routes["video"]["h4", "h2"] == ["s4", "s2", "s3"]


def test_paths_that_cannot_keep_their_bound_are_an_error_that_names_the_switches() -> None:
    net = templates.leaf_spine(2, 1, 1, rate="10 Mbit", delay="5 ms")
    load = policies.Load((policies.Demand("h2", "h1", "video", "udp", 5004, rate="4 Mbit"),))
    policy = policies.find_policy("constrained-paths", {"longest": "9 ms"})
    with pytest.raises(BadPolicy, match=r"no paths for video \(s2 to s3\) keep within 9 ms"):
        compile_policy(net, policy, Enforcement("all"), load)


def test_rules_are_the_same_for_random_graphs_of_one_seed() -> None:
    compiled = [
        compile_policy(
            graphs.random_network(12, 3, seed=4, rate="1 Gbit"), policies.find_policy("basic-cbq"), Enforcement("all")
        )
        for _ in range(2)
    ]
    assert compiled[0].switches == compiled[1].switches
    assert compiled[0].rule_count == sum(len(one.rules) for one in compiled[0].switches.values())


def test_every_built_in_policy_compiles_at_leaf_and_core_and_tells_about_itself() -> None:
    for name, kind in policies.built_in_policies().items():
        for at in ("leaf", "core"):
            compiled = compile_policy(
                small_tree(), policies.find_policy(name), Enforcement(at, "50 Mbit"), small_load()
            )
            assert compiled.rule_count > 4 * 3, name
        assert kind.name == name
        assert all(getattr(kind, said) for said in ("title", "promise", "origin", "fails")), name
