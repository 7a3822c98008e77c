"""Policies that are installed reactively: rules come with the packets that need them, and are those of the complete
table."""

from __future__ import annotations

import random
import struct

import pytest
import twinnet as tn
from labs_here import can_run_labs
from policy_networks import Classes, small_load, small_tree
from twinnet import policies
from twinnet.errors import BadPolicy
from twinnet.network import Network, templates
from twinnet.policies import CompiledPolicy, Enforcement, Match, PolicyController, TrafficClass, compile_policy
from twinnet.policies.on_demand import RulesOnDemand, packet_of
from twinnet.traffic import apps


def compiled_for(net: Network, name: str = "basic-cbq", how: str = "reactive") -> CompiledPolicy:
    policy = policies.find_policy(name, {"installation": how})
    return compile_policy(net, policy, Enforcement("core", "10 Mbit"), small_load())


def cookies(lab: tn.Lab, switch: str) -> set[int]:
    return {int(line.split("cookie=")[1].split(",")[0], 16) for line in lab.switch(switch).dump_flows()}


def class_cookies(compiled: CompiledPolicy, switch: str, queue: int | None = None) -> set[int]:
    rules = compiled.switches[switch].rules
    return {one.cookie for one in rules if one.condition is not None and queue in (None, one.queue)}


def test_the_first_packet_of_a_flow_brings_its_rule_and_all_packets_take_the_path() -> None:
    net = small_tree()
    compiled = compiled_for(net)
    compiled.deploy(net)
    with net.simulate(seed=1) as lab:
        lab.wait_for_controllers("1 s")
        assert not cookies(lab, "s1") & class_cookies(compiled, "s1")
        flow = lab.start(apps.udp("h1", "h4", rate="4 Mbit", duration="1 s", port=5004))
        lab.run_until("2 s")
        report = flow.report()
        assert report.lost == 0
        assert report.packets is not None and report.packets > 300
        assert policies.misplaced_traffic(lab, compiled) == []
        video = next(number for number, one in compiled.classes.items() if one.name == "video")
        found = cookies(lab, "s1") & class_cookies(compiled, "s1")
        # One rule of video, and those of HTTP that have a packet between both ports: TCP's do not meet UDP's.
        assert len(found) == 1 and found < class_cookies(compiled, "s1", video)
        queued = next(one for one in lab.ports() if one["port"] == "s1-eth2")["classes"]
        assert next(one for one in queued if int(one["class"]) == video)["frames"] >= report.packets


def test_when_every_class_has_been_asked_for_the_rules_are_those_that_the_proactive_policy_installs() -> None:
    found: dict[str, set[int]] = {}
    for how in ("proactive", "reactive"):
        net, load = small_tree(), small_load()
        compiled = compiled_for(net, how=how)
        compiled.deploy(net)
        with net.simulate(seed=1) as lab:
            for d in load.demands:
                if d.application == "http":
                    lab.start(apps.http_get(d.client, d.server, size="100 kB"))
                elif d.application == "video":
                    lab.start(apps.udp(d.server, d.client, rate="1 Mbit", duration="1 s", port=5004))
                else:
                    lab.start(apps.ping(d.client, d.server, count=3, interval="100 ms"))
            # Ports that no class has: a packet of the rest makes its kind complete.
            lab.start(apps.udp("h1", "h4", rate="1 Mbit", duration="1 s", port=7777))
            lab.start(apps.tcp_bulk("h1", "h4", duration="1 s", port=7778))
            lab.run_until("4 s")
            assert policies.misplaced_traffic(lab, compiled) == []
            found[how] = cookies(lab, "s1") | cookies(lab, "s2")
    assert found["reactive"] == found["proactive"]


def test_both_give_the_same_shares() -> None:
    def shares(how: str) -> dict[int, int]:
        net = small_tree()
        ports = {"a": 6001, "b": 6002, "c": 6003}
        policy = Classes(
            *(
                TrafficClass(name, [Match("udp", destination_port=ports[name])], minimum=share, maximum=share)
                for name, share in {"a": 0.5, "b": 0.3, "c": 0.15}.items()
            )
        )
        policy.installation = how  # type: ignore[assignment]
        compiled = compile_policy(net, policy, Enforcement("core", "10 Mbit"))
        compiled.deploy(net)
        with net.simulate(seed=1) as lab:
            for port in ports.values():
                lab.start(apps.udp("h1", "h4", rate="8 Mbit", duration="10 s", port=port, payload="1000 B"))
            lab.run_until("10 s")
            told = next(one for one in lab.ports() if one["port"] == "s1-eth2")
            return {int(one["class"]): int(one["bytes"]) for one in told["classes"]}

    proactive, reactive = shares("proactive"), shares("reactive")
    for number in (1, 2, 3):
        # A frame more or less at the ends, of about 2000 in the smallest class.
        assert reactive[number] == pytest.approx(proactive[number], rel=0.002)


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_on_the_wall_clock_the_first_packets_take_the_path_too() -> None:
    net = templates.tree(2, 3, rate="10 Mbit")
    compiled = compiled_for(net)
    compiled.deploy(net)
    with net.emulate() as lab:
        lab.wait_for_controllers("10 s")
        echo = lab["h4"].run(["ping", "-c", "3", "-i", "0.05", "-W", "5", "h1"])
        page = lab.start(apps.http_get("h4", "h1", size="50 kB"))
        lab.wait([page], until="20 s")
        # Echoes are of no class: no rule asks for them, none is lost.
        assert "3 received" in echo.stdout
        assert (page.report().bytes or 0) >= 50_000
        http = next(number for number, one in compiled.classes.items() if one.name == "http")
        found = cookies(lab, "s1") & class_cookies(compiled, "s1")
        assert len(found & class_cookies(compiled, "s1", http)) == 2
        assert policies.misplaced_traffic(lab, compiled) == []


def frame_of(protocol: int, source: str, destination: str, ports: tuple[int, int], dscp: int = 0) -> bytes:
    addresses = b"".join(bytes(int(part) for part in one.split(".")) for one in (source, destination))
    header = struct.pack("!BBHHHBBH", 0x45, dscp << 2, 28, 0, 0, 64, protocol, 0) + addresses
    return bytes(12) + b"\x08\x00" + header + struct.pack("!HH", *ports)


def test_a_packet_is_read_by_protocol_addresses_ports_and_code_point() -> None:
    packet = packet_of(frame_of(6, "10.0.0.1", "10.0.0.4", (8080, 4000), dscp=46))
    assert packet is not None
    assert packet.text() == "tcp,nw_src=10.0.0.1,nw_dst=10.0.0.4,ip_dscp=46,tp_src=8080,tp_dst=4000"
    inside = struct.pack("!IHBB", 0x60000000 | 46 << 22, 4, 17, 64) + bytes(15) + b"\1" + bytes(15) + b"\2"
    packet = packet_of(bytes(12) + b"\x86\xdd" + inside + struct.pack("!HH", 5, 6))
    assert packet is not None and packet.text() == "udp6,ipv6_src=::1,ipv6_dst=::2,ip_dscp=46,tp_src=5,tp_dst=6"


@pytest.mark.parametrize("length", range(45))
def test_a_cut_frame_is_read_as_far_as_it_goes(length: int) -> None:
    packet = packet_of(frame_of(6, "10.0.0.1", "10.0.0.4", (80, 81))[:length])
    assert (packet is None) == (length < 34)
    assert packet is None or (packet.source_port is None) == (length < 38)


@pytest.mark.parametrize("seed", range(10))
def test_whatever_comes_first_each_packet_meets_the_rule_that_the_complete_table_gives_it(seed: int) -> None:
    draw = random.Random(seed)
    net = templates.single(8, rate="10 Mbit")
    classes = [
        TrafficClass(
            f"c{number}",
            [
                Match(
                    draw.choice(["tcp", "udp"]),
                    draw.sample([f"h{n}" for n in range(1, 9)], draw.randint(1, 4)) if draw.random() < 0.7 else None,
                    destination_port=draw.choice([None, 80, 443]),
                )
            ],
            precedence=number,
        )
        for number in range(8)
    ]
    rules = compile_policy(net, Classes(*classes), Enforcement("all")).switches["s1"]
    on_demand = RulesOnDemand(rules)
    for _ in range(60):
        ports = (draw.randint(1024, 2000), draw.choice([80, 443, 22]))
        frame = frame_of(draw.choice([6, 17, 1]), f"10.0.0.{draw.randint(1, 8)}", "10.0.0.9", ports)
        packet = packet_of(frame)
        assert packet is not None
        met = rule_of(on_demand.present.rules, packet)
        if met.endswith("actions=controller"):
            cookie = next(one.cookie for one in on_demand.present.rules if one.text == met)
            on_demand.meet(cookie, frame)
            on_demand.confirm()
            met = rule_of(on_demand.present.rules, packet)
        assert met == rule_of(rules.rules, packet)


def rule_of(rules: object, packet: policies.conditions.Condition) -> str:  # type: ignore[name-defined]
    """The text of the rule of table 0 that has the packet, found by its text alone."""
    kind = packet.text().split(",")[0]
    best, text = -1, ""
    for rule in rules:  # type: ignore[attr-defined]
        if not rule.text.startswith("table=0,"):
            continue
        priority = int(rule.text.split("priority=")[1].split(",")[0])
        words = rule.text.split(",actions=")[0].split(",")[2:]
        covers = not words or words[0] == kind
        if rule.condition is not None:
            covers = rule.condition.meets(packet) and rule.condition.protocol in (None, packet.protocol)
        if covers and priority > best:
            best, text = priority, rule.text
    return text


def test_a_switch_that_asks_again_for_what_it_has_gets_the_complete_table_and_asks_no_more() -> None:
    rules = compiled_for(small_tree()).switches["s1"]
    on_demand = RulesOnDemand(rules)
    frame = frame_of(6, "10.0.0.1", "10.0.0.4", (8080, 4000))
    asking = next(one for one in on_demand.present.rules if one.text == "table=0,priority=2,tcp,actions=controller")
    for _ in range(2):
        on_demand.meet(asking.cookie, frame)
        on_demand.confirm()
    assert asking not in on_demand.present.rules
    wanted = {one for one in rules.rules if one.condition is not None and one.condition.protocol == "tcp"}
    assert wanted <= set(on_demand.present.rules)


def test_a_change_keeps_what_was_asked_for_and_loses_nothing_of_an_unchanged_class() -> None:
    net = small_tree()

    def policy(**ports: int) -> Classes:
        made = Classes(*(TrafficClass(n, [Match("udp", destination_port=port)], 0.3) for n, port in ports.items()))
        made.installation = "reactive"
        return made

    before = compile_policy(net, policy(a=6001, b=6002), Enforcement("core", "10 Mbit"))
    controller = before.deploy(net)
    with net.simulate(seed=1) as lab:
        flow = lab.start(apps.udp("h1", "h4", rate="4 Mbit", duration="4 s", port=6001))
        lab.run_until("2 s")
        after = compile_policy(net, policy(c=6003, a=6001), Enforcement("core", "10 Mbit"), previous=before)
        controller.change(after)
        lab.run_until("6 s")
        assert flow.report().lost == 0
        lines = lab.switch("s1").dump_flows()
    assert int(next(one for one in lines if "tp_dst=6001" in one).split("n_packets=")[1].split(",")[0]) > 1300
    assert not any("tp_dst=6003" in one or "tp_dst=6002" in one for one in lines)


def test_a_reactive_policy_needs_its_controller_and_others_frames_are_none_of_its_business() -> None:
    net = small_tree()
    compiled = compiled_for(net)
    with pytest.raises(BadPolicy, match="policy basic-cbq needs a controller: it is installed reactively"):
        compiled.write_into(net)
    with pytest.raises(
        BadPolicy, match=r"installation of the policy basic-cbq is 'reactively'.*did you mean 'reactive'"
    ):
        compiled_for(net, how="reactively")
    assert isinstance(compiled.deploy(net), PolicyController)
