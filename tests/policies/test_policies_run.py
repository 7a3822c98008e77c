"""Policies in running labs: shares, separation, changes without loss, meters, rates that move."""

from __future__ import annotations

import pytest
import twinnet as tn
from policy_networks import Classes, small_load, small_tree
from twinnet import policies
from twinnet.network import Network, templates
from twinnet.policies import Enforcement, Match, PolicyController, TrafficClass, compile_policy
from twinnet.traffic import apps

PORTS = {"a": 6001, "b": 6002, "c": 6003}


def three_classes(**amounts: float) -> Classes:
    return Classes(
        *(
            TrafficClass(name, [Match("udp", destination_port=PORTS[name])], minimum=amount, maximum=amount)
            for name, amount in amounts.items()
        )
    )


def sent_by_class(
    net: Network, policy: policies.Policy, at: str | list[str], duration: str = "20 s"
) -> dict[str, float]:
    """Shares of the scheduler's 10 Mbit/s that each class gets at h4 while all are offered 8 Mbit/s of payload."""
    compiled = compile_policy(net, policy, Enforcement(at, "10 Mbit"))
    compiled.deploy(net)
    with net.simulate(seed=1) as lab:
        for port in PORTS.values():
            lab.start(apps.udp("h1", "h4", rate="8 Mbit", duration=duration, port=port, payload="1000 B"))
        lab.run_until("1 s")
        before = class_bytes(lab)
        lab.run_until(duration)
        after = class_bytes(lab)
        assert policies.misplaced_traffic(lab, compiled) == []
        seconds = float(duration.split()[0]) - 1
        return {compiled.classes[n].name: (after[n] - before[n]) * 8 / seconds / 10e6 for n in after}


def class_bytes(lab: tn.Lab) -> dict[int, int]:
    port = next(one for one in lab.ports() if one["port"] == "s1-eth2")
    return {int(one["class"]): int(one["bytes"]) for one in port["classes"]}


def test_backlogged_classes_get_their_configured_rates_within_one_percent() -> None:
    shares = sent_by_class(small_tree(), three_classes(a=0.5, b=0.3, c=0.15), "core")
    # 19 s of 1 ms frames: a frame more or less is 0.01 %; the promise is 1 %.
    for name, share in {"a": 0.5, "b": 0.3, "c": 0.15}.items():
        assert shares[name] == pytest.approx(share, rel=0.01)


@pytest.mark.parametrize("link_sharing", ["formal", "ancestor_only", "top_level"])
def test_class_based_queueing_gives_its_thirds_by_each_guideline(link_sharing: str) -> None:
    class Thirds(Classes):
        def queue(self, rate_bps, classes):  # type: ignore[no-untyped-def]
            return policies.policy.schedulers.cbq(rate_bps, classes, link_sharing)  # type: ignore[attr-defined]

    shares = sent_by_class(small_tree(), Thirds(*three_classes(a=0.5, b=0.3, c=0.15)._classes), "core")
    # The estimator's filter makes it exact to two percent (crates/queue/src/tests/cbq.rs).
    for name, share in {"a": 0.5, "b": 0.3, "c": 0.15}.items():
        assert shares[name] == pytest.approx(share, rel=0.02)


def test_every_built_in_policy_carries_its_load_and_mixes_no_classes() -> None:
    for name in policies.built_in_policies():
        net, load = small_tree(), small_load()
        compiled = compile_policy(net, policies.find_policy(name), Enforcement("core", "30 Mbit"), load)
        controller = compiled.deploy(net)
        with net.simulate(seed=3) as lab:
            pages = [
                lab.start(apps.http_get(d.client, d.server, size="20 MB"))
                for d in load.demands
                if d.application == "http"
            ]
            videos = [
                lab.start(apps.udp(d.server, d.client, rate="2 Mbit", duration="2 s", port=5004))
                for d in load.demands
                if d.application == "video"
            ]
            lab.run_until("2 s")
            assert controller.installed == set(compiled.switches), name
            assert all((one.report().bytes or 0) > 10_000 for one in [*pages, *videos]), name
            assert policies.misplaced_traffic(lab, compiled) == [], name


def test_traffic_in_another_class_queue_is_told() -> None:
    net = small_tree()
    compiled = compile_policy(net, three_classes(a=0.5, b=0.3), Enforcement("core", "10 Mbit"))
    compiled.deploy(net)
    with net.simulate(seed=1) as lab:
        lab.wait_for_controllers("1 s")
        lab.switch("s1").add_flow(f"table=0,priority=60000,udp,tp_dst={PORTS['c']},actions=set_queue:1,goto_table:1")
        lab.start(apps.udp("h1", "h4", rate="1 Mbit", duration="1 s", port=PORTS["c"]))
        lab.run_until("2 s")
        found = policies.misplaced_traffic(lab, compiled)
    assert [(one.switch, one.traffic_class, one.sent_there_frames) for one in found] == [("s1", "a", 0)]
    assert "the queues of the class a took" in str(found[0])


def test_a_change_of_the_running_policy_drops_nothing_of_an_unchanged_class() -> None:
    net = small_tree()
    before = compile_policy(net, three_classes(a=0.5, b=0.3), Enforcement("core", "10 Mbit"))
    controller = before.deploy(net)
    with net.simulate(seed=1) as lab:
        flow = lab.start(apps.udp("h1", "h4", rate="4 Mbit", duration="4 s", port=PORTS["a"]))
        lab.run_until("2 s")
        # Another class, another order, other rates of the rest: a keeps its number and its share.
        wanted = three_classes(c=0.2, b=0.1, a=0.5)
        after = compile_policy(net, wanted, Enforcement("core", "10 Mbit"), previous=before)
        controller.change(after)
        lab.run_until("6 s")
        report = flow.report()
        assert report.lost == 0 and report.reordered == 0
        assert policies.misplaced_traffic(lab, after) == []
        lines = lab.switch("s1").dump_flows()
    numbers = {one.name: number for number, one in after.classes.items()}
    assert (numbers["a"], numbers["b"], numbers["c"]) == (1, 2, 3)
    # Rules of a were not touched: they have counted since the start. There are as many rules as are wanted.
    counted = next(line for line in lines if f"tp_dst={PORTS['a']}" in line)
    assert int(counted.split("n_packets=")[1].split(",")[0]) > 1300
    assert len(lines) == len(after.switches["s1"].rules)


def test_rules_that_a_change_removes_are_gone_and_what_they_matched_goes_with_the_rest() -> None:
    net = small_tree()
    before = compile_policy(net, three_classes(a=0.5, b=0.3), Enforcement("core", "10 Mbit"))
    controller = before.deploy(net)
    with net.simulate(seed=1) as lab:
        lab.run_until("1 s")
        after = compile_policy(net, three_classes(a=0.5), Enforcement("core", "10 Mbit"), previous=before)
        controller.change(after)
        lab.run_until("2 s")
        lines = lab.switch("s1").dump_flows()
    assert not any(f"tp_dst={PORTS['b']}" in line for line in lines)
    assert len(lines) == len(after.switches["s1"].rules)


def test_a_meter_lets_its_rate_pass_and_no_more() -> None:
    net = small_tree()
    limited = Classes(TrafficClass("a", [Match("udp", destination_port=PORTS["a"])], meter="2 Mbit"))
    compiled = compile_policy(net, limited, Enforcement("core", "10 Mbit"))
    assert compiled.switches["s1"].meters[0].rate_kbps == 2000
    compiled.deploy(net)
    with net.simulate(seed=1) as lab:
        flow = lab.start(apps.udp("h1", "h4", rate="8 Mbit", duration="20 s", port=PORTS["a"], payload="958 B"))
        lab.run_until("21 s")
        received = flow.report().bytes or 0
    # 958 B of payload are 1000 B in the meter; a tenth of a second passes at once, half a percent of 20 s.
    assert received * 8 / 20 * 1000 / 958 == pytest.approx(2e6, rel=0.01)


def test_the_measuring_policy_moves_guarantees_to_the_class_that_sends() -> None:
    net, load = small_tree(), small_load()
    compiled = compile_policy(net, policies.find_policy("measuring"), Enforcement("core", "10 Mbit"), load)
    controller = compiled.deploy(net)
    with net.simulate(seed=1) as lab:
        lab.start(apps.udp("h1", "h4", rate="8 Mbit", duration="20 s", port=5004))
        lab.run_until("20 s")
        described = next(one for one in lab.ports() if one["port"] == "s1-eth2")
        assert len(described["classes"]) == 3
    assert controller.moved >= 3  # type: ignore[attr-defined]


def test_a_written_policy_needs_no_controller() -> None:
    net = templates.dumbbell(2, rate="10 Mbit")
    compile_policy(net, policies.find_policy("basic-cbq"), Enforcement(["s1"])).write_into(net)
    with net.simulate(seed=1) as lab:
        ping = lab.start(apps.ping("h1", "h3", count=3, interval="10 ms"))
        lab.run_until("1 s")
        report, ports = ping.report(), lab.ports()
    assert report.rtt is not None
    assert (report.rtt.count, report.lost) == (3, 0)
    # It is the policy that stands there, and no default.
    assert any(described.get("classes") for described in ports if described["port"].startswith("s1-"))


def test_runs_of_one_seed_are_the_same_event_by_event() -> None:
    def hash_of() -> str:
        net, load = small_tree(), small_load()
        compile_policy(net, policies.find_policy("measuring"), Enforcement("core", "10 Mbit"), load).deploy(net)
        with net.simulate(seed=5) as lab:
            for one in load.demands[:6]:
                if one.application == "http":
                    lab.start(apps.http_get(one.client, one.server, size="1 MB", connections=3, think="20 ms"))
            lab.run_until("3 s")
            return lab.trace_hash

    assert hash_of() == hash_of()


def test_a_controller_of_a_policy_refuses_switches_that_it_does_not_know() -> None:
    compiled = compile_policy(small_tree(), policies.find_policy("best-effort"), Enforcement("core"))
    controller = PolicyController(compiled)
    with pytest.raises(policies.compiled.BadPolicy, match="another network"):  # type: ignore[attr-defined]
        controller.change(
            compile_policy(
                templates.dumbbell(2, rate="1 Mbit"), policies.find_policy("best-effort"), Enforcement("all")
            )
        )
