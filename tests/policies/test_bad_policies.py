"""What is refused before a lab starts, with the names involved."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from policy_networks import Classes, small_load, small_tree
from twinnet import policies, qos
from twinnet.errors import BadPolicy
from twinnet.network import Network
from twinnet.network.nodes import Switch
from twinnet.policies import Demand, Enforcement, Load, Match, TrafficClass, compile_policy


def compiled(
    *classes: TrafficClass, at: str | list[str] = "core", rate: str | None = "50 Mbit"
) -> policies.CompiledPolicy:
    return compile_policy(small_tree(), Classes(*classes), Enforcement(at, rate), small_load())


WEB = [Match("tcp", source_port=80)]

CASES: dict[str, tuple[Callable[[], object], str]] = {
    "minimums above the port": (
        lambda: compiled(TrafficClass("a", WEB, minimum=0.7), TrafficClass("b", minimum=0.7)),
        r"classes b, a of given are guaranteed 70 Mbit/s together, above the 50 Mbit/s of s1-eth1",
    ),
    "a maximum above the port": (
        lambda: compiled(TrafficClass("a", WEB, maximum="60 Mbit")),
        r"maximum of the class a, 60 Mbit/s, is above the 50 Mbit/s of s1-eth1",
    ),
    "a share in other words": (
        lambda: TrafficClass("a", WEB, minimum="much"),
        r'^the minimum of the class a "much" does not begin with a decimal number',
    ),
    "percentages above the port": (
        lambda: compiled(TrafficClass("a", WEB, minimum="70 %"), TrafficClass("b", minimum="70%")),
        r"classes b, a of given are guaranteed 70 Mbit/s together, above the 50 Mbit/s of s1-eth1",
    ),
    "groups that are none": (
        lambda: policies.find_policy("source-cbq", {"groups": 0}),
        "the groups are 0",
    ),
    "a group that is one host's name": (
        lambda: policies.find_policy("source-cbq", {"groups": {"web": "h1"}}),
        "give names with lists of hosts",
    ),
    "a setting of another kind": (
        lambda: policies.find_policy("rate-limit", {"limits": 5}),
        r"rate-limit cannot be made with limits=5 \(TypeError",
    ),
    "a choice that is none": (
        lambda: policies.find_policy("basic-cbq", {"borrow": "maybe"}),
        r"borrow is 'maybe'",
    ),
    "a minimum above its maximum": (
        lambda: compiled(TrafficClass("a", WEB, minimum="20 Mbit", maximum="10 Mbit")),
        "minimum of the class a is above its maximum",
    ),
    "a scheduler faster than its line": (
        lambda: compiled(TrafficClass("a"), rate="1 Gbit"),
        r"scheduler at s1-eth1 is to send 1 Gbit, above its line's 100 Mbit/s",
    ),
    "two classes of one name": (
        lambda: compiled(TrafficClass("a", WEB), TrafficClass("a")),
        "two classes called 'a'",
    ),
    "two rests": (lambda: compiled(TrafficClass("a"), TrafficClass("b")), "two classes without matches, a and b"),
    "an unknown host": (
        lambda: compiled(TrafficClass("a", [Match(source=["h99"])])),
        r"class a of given: 'h99' is neither a host .*did you mean 'h9'",
    ),
    "an unknown place": (lambda: compiled(TrafficClass("a"), at=["s9"]), r"no switch and no port 's9'"),
    "an empty group": (lambda: Match(source=[]), "source of a match is an empty group"),
    "a port without a protocol": (lambda: Match(source_port=80), "source_port 80 without a protocol"),
    "a port out of range": (lambda: Match("tcp", source_port=0), "source_port 0; allowed are"),
    "a client without a server": (
        lambda: policies.spread_evenly(["h1", "h2"], []),
        "2 clients, h1 first, have no server to ask",
    ),
    "a client that is nowhere": (
        lambda: compile_policy(small_tree(), Classes(), load=Load((Demand("h77", "h1", "http", "tcp", 80),))),
        "client h77 of the demand for http is no host",
    ),
    "a client that asks itself": (lambda: Demand("h1", "h1", "http", "tcp", 80), "h1 would ask itself"),
    "more groups than servers": (
        lambda: compile_policy(
            small_tree(), policies.find_policy("source-cbq", {"groups": {"a": ["h1"], "b": []}}), load=small_load()
        ),
        "group b is empty",
    ),
    "a host in two groups": (
        lambda: policies.find_policy("source-cbq", {"groups": {"a": ["h1"], "b": ["h1"]}}),
        "host h1 is in the groups a and b",
    ),
    "an unknown setting": (lambda: policies.find_policy("basic-cbq", {"shares": 1}), "no setting 'shares'"),
    "an unknown policy": (lambda: policies.find_policy("basic-cqb"), "did you mean 'basic-cbq'"),
    "a module that is not there": (lambda: policies.find_policy("nowhere_at_all:policy"), "cannot be loaded"),
    "a share that is none": (lambda: TrafficClass("a", minimum=1.5), "minimum of the class a is 1.5"),
    "a name that is none": (lambda: TrafficClass("two words"), "'two words'"),
    "queues where frames come in": (
        lambda: compile_policy(
            small_tree(), policies.find_policy("basic-cbq"), Enforcement("core", "50 Mbit", "ingress"), small_load()
        ),
        r"class rest of basic-cbq is guaranteed or limited by a queue",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_contradicts_itself_is_refused_with_the_names(case: str) -> None:
    make, said = CASES[case]
    with pytest.raises(BadPolicy, match=said):
        make()


def returning(value: object) -> policies.Policy:
    class Odd(policies.Policy):
        name = "odd"

        def classes(self, network: Network, load: Load) -> object:  # type: ignore[override]
            if isinstance(value, Exception):
                raise value
            return value

    return Odd()


def test_policies_that_raise_or_return_nonsense_are_told_by_name() -> None:
    with pytest.raises(BadPolicy, match=r"policy odd raised ZeroDivisionError: by nothing \(line [0-9]+ of .*test_bad"):
        compile_policy(small_tree(), returning(ZeroDivisionError("by nothing")))
    with pytest.raises(BadPolicy, match="policy odd returned 'queues'"):
        compile_policy(small_tree(), returning("queues"))
    with pytest.raises(BadPolicy, match="policy odd returned 3 among its classes"):
        compile_policy(small_tree(), returning([3]))


@pytest.mark.parametrize(
    ("made", "has"),
    [
        (qos.Htb("50 Mbit", {0: qos.HtbQueue("5 Mbit"), 7: qos.HtbQueue("5 Mbit")}), "0, 7"),
        (qos.Tbf("50 Mbit", "3028 B", qos.Priority([qos.Fifo()])), "0"),
    ],
)
def test_a_class_whose_queue_does_not_exist_is_refused(made: qos.queue.Queue, has: str) -> None:
    class Odd(Classes):
        def queue(self, rate_bps: int, classes: Mapping[int, TrafficClass]) -> qos.queue.Queue:
            return made

    said = f"policy given puts the class web into the queue 1, and what it returned for s1-eth1 has the queues {has}"
    with pytest.raises(BadPolicy, match=said):
        compile_policy(small_tree(), Odd(TrafficClass("web", WEB)), Enforcement("core", "50 Mbit"), small_load())


def test_a_queue_that_open_vswitch_cannot_have_is_told_before_the_lab_starts() -> None:
    net = Network()
    for name in ("s1", "s2"):
        net.switch(name, kind="ovs")
    net.link("s1", "s2", rate="10 Mbit")
    net.link(net.host("h1"), "s1", rate="10 Mbit")
    net.link(net.host("h2"), "s2", rate="10 Mbit")
    found = compile_policy(net, policies.find_policy("basic-cbq"), Enforcement(["s1"]))
    with pytest.raises(BadPolicy, match=r"switch s1 cannot carry out the policy basic-cbq: .*no class could be chosen"):
        found.deploy(net)


def test_a_policy_is_deployed_on_no_open_vswitch_since_its_controller_cannot_drive_it() -> None:
    net = Network()
    net.switch("s1", kind="ovs", datapath="system")
    for name in ("h1", "h2"):
        net.link(net.host(name), "s1", rate="10 Mbit")
    found = compile_policy(net, policies.find_policy("basic-cbq"), Enforcement(["s1"]))
    with pytest.raises(BadPolicy, match=r"cannot drive s1, which is Open vSwitch \(use write_into"):
        found.deploy(net)
    found.write_into(net)
    assert len(net.node("s1", Switch).flows) == len(found.switches["s1"].rules)


def test_commands_for_open_vswitch_are_refused_for_what_it_has_not() -> None:
    found = compile_policy(small_tree(), policies.find_policy("strict-priority"), Enforcement("core"), small_load())
    with pytest.raises(BadPolicy, match="Open vSwitch cannot carry out the policy strict-priority: at s1-eth1"):
        policies.open_vswitch_commands(found)


def test_a_policy_with_meters_is_not_written_into_a_description() -> None:
    net = small_tree()
    found = compile_policy(net, policies.find_policy("rate-limit"), Enforcement("core"), small_load())
    with pytest.raises(BadPolicy, match="policy rate-limit needs a controller: s1 has meters"):
        found.write_into(net)


def test_link_sharing_that_is_none_is_refused() -> None:
    with pytest.raises(qos.cbq.BadQueue, match="did you mean 'ancestor_only'"):
        qos.Cbq("1 Mbit", {1: qos.CbqClass("1 Mbit")}, link_sharing="ancestors")  # type: ignore[arg-type]
