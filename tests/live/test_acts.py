"""What the page changes: the lab is asked for it, the same is said for the prompt and in Python, and it is undone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import twinnet as tn
from fake_lab import FakeLab
from labs_here import needs_a_lab
from twinnet.cli.prompt.session import Session
from twinnet.lab.network_now import without_counters
from twinnet.live import acts as acts_module
from twinnet.live.acts import Acts
from twinnet.live.faults import chosen_fault, faults_of
from twinnet.live.traffic import traffic_now
from twinnet.network.topology_file import parse_network
from twinnet.network.written_file import written_network


class Scripted(FakeLab):
    """A lab that keeps what it is told of its links and flows."""

    def __init__(self, network: tn.Network) -> None:
        super().__init__(network)
        self.flows = ["cookie=0x0, duration=1.5s, table=0, n_packets=3, n_bytes=99, priority=1,ip actions=flood"]
        self.rows = [self.row(link) for link in self.spec["links"]]
        self.answers |= {
            "links": lambda _: self.rows,
            "link.set": self.set_link,
            "queues.set": lambda _: {},
            "flows.dump": lambda _: self.flows,
            "flows.add": self.add_flows,
            "flows.delete": self.delete_flows,
        }

    def row(self, link: dict[str, Any]) -> dict[str, Any]:
        nodes = {node["name"]: node for node in self.spec["nodes"]}
        names = {end: nodes[link[end]["node"]]["ports"][link[end]["port"]]["name"] for end in "ab"}
        ways = {way: {"port": names[way[0]], "up": True, "config": dict(link[way])} for way in ("ab", "ba")}
        return {"a": link["a"]["node"], "b": link["b"]["node"], **ways}

    def set_link(self, request: dict[str, Any]) -> dict[str, Any]:
        for way in ("ab", "ba") if request["direction"] == "both" else (request["direction"],):
            row = self.rows[request["link"]][way]
            row["config"] |= {key: value for key, value in request["set"].items() if key != "up"}
            row["up"] = request["set"].get("up", row["up"])
        return {}

    def add_flows(self, request: dict[str, Any]) -> dict[str, Any]:
        for flow in request["flows"]:
            cookie, _, rest = flow.partition(",") if flow.startswith("cookie=") else ("cookie=0x0", "", flow)
            rule = rest.strip().removeprefix("table=0,").replace(",actions=", " actions=").strip()
            self.flows = [line for line in self.flows if not line.endswith(", " + rule)]
            self.flows.append(f"{cookie}, duration=0.1s, table=0, n_packets=0, n_bytes=0, {rule}")
        return {}

    def delete_flows(self, request: dict[str, Any]) -> dict[str, Any]:
        wanted = request["match"].removesuffix("/-1")
        gone = [line for line in self.flows if wanted in line]
        self.flows = [line for line in self.flows if wanted not in line]
        return {"deleted": len(gone)}


SEND = {"act": "send", "what": "udp", "from": "h1", "to": "h2", "rate": "1 Mbit", "duration": "10 s"}


@pytest.fixture
def fake() -> Iterator[Scripted]:
    fake = Scripted(tn.templates.single(2, rate="10 Mbit", delay="1 ms"))
    yield fake
    fake.close()


@pytest.fixture
def acts(fake: Scripted) -> Acts:
    return Acts(fake.lab)


def link(direction: str = "both", **settings: Any) -> dict[str, Any]:
    return {"act": "link", "link": 0, "direction": direction, "set": settings}


def test_a_link_is_changed_and_set_back(fake: Scripted, acts: Acts) -> None:
    first = {way: dict(fake.rows[0][way]["config"]) for way in ("ab", "ba")}
    act = acts.do(link(rate="5 Mbit", loss="1 %"))
    assert (act.number, act.at_s, act.undoes) == (1, 1.5, None)
    assert act.lines == ["link h1 s1 rate 5 Mbit loss 1 %"]
    assert act.python == ['lab.link("h1", "s1").set(rate="5 Mbit", loss="1 %")']
    assert fake.rows[0]["ab"]["config"]["rate_bps"] == 5_000_000
    assert acts.record()[0]["can_undo"]
    assert acts.record()[0]["commands"] == ["twinnet do fake 'link h1 s1 rate 5 Mbit loss 1 %'"]
    undone = acts.do({"act": "undo", "number": 1})
    assert undone.lines == ["link h1 s1 rate 10 Mbit/s loss none"] and undone.undoes == 1
    assert {way: fake.rows[0][way]["config"] for way in ("ab", "ba")} == first
    assert [one["can_undo"] for one in acts.record()] == [False, True]
    with pytest.raises(tn.errors.BadValue, match="act 1 cannot be undone"):
        acts.do({"act": "undo", "number": 1})
    # What was undone is done again by undoing that.
    acts.do({"act": "undo", "number": 2})
    assert fake.rows[0]["ba"]["config"]["rate_bps"] == 5_000_000


def test_ways_that_differed_are_set_back_each_to_its_own(fake: Scripted, acts: Acts) -> None:
    acts.do(link("ab", delay="7 ms"))
    act = acts.do(link(delay="20 ms", up=False))
    assert act.lines == ["link h1 s1 delay 20 ms down"]
    undone = acts.do({"act": "undo", "number": 2})
    assert undone.lines == ["link h1 s1 direction ab delay 7 ms up", "link h1 s1 direction ba delay 1 ms up"]
    assert [fake.rows[0][way]["config"]["delay_ps"] for way in ("ab", "ba")] == [7 * 10**9, 10**9]
    acts.do({"act": "undo", "number": 3})
    assert [fake.rows[0][way]["config"]["delay_ps"] for way in ("ab", "ba")] == [20 * 10**9] * 2
    assert not fake.rows[0]["ab"]["up"]
    acts.do({"act": "undo", "number": 4})
    assert [fake.rows[0][way]["config"]["delay_ps"] for way in ("ab", "ba")] == [7 * 10**9, 10**9]


def test_a_queue_is_replaced_and_comes_back(fake: Scripted, acts: Acts) -> None:
    act = acts.do({"act": "queue", "port": "s1-eth1", "queue": "codel,target=7ms"})
    assert act.lines == ["queue s1-eth1 codel,target=7ms"]
    assert act.python == ['lab.switch("s1").set_queue("s1-eth1", tn.qos.Codel(target="7ms"))']
    assert acts.settings(0)["queues"] == {"s1-eth1": "codel,target=7ms"}
    acts.do({"act": "undo", "number": 1})
    kinds = [one["queue"]["kind"] for one in fake.asked("queues.set")]
    assert kinds == ["codel", "fifo"]


def test_an_added_flow_is_found_again_by_its_cookie(fake: Scripted, acts: Acts) -> None:
    before = list(fake.flows)
    act = acts.do({"act": "add flow", "switch": "s1", "flow": "priority=9,arp,actions=output:7"})
    assert "s1 has no port 7" in act.note
    found = re.fullmatch(r"flow s1 add (cookie=0x[0-9a-f]+),priority=9,arp,actions=output:7", act.lines[0])
    assert found is not None and len(fake.flows) == 2
    undone = acts.do({"act": "undo", "number": 1})
    assert undone.lines == [f"flow s1 del {found[1]}/-1"]
    assert fake.flows == before


def test_a_flow_that_an_added_one_has_replaced_comes_back(fake: Scripted, acts: Acts) -> None:
    fake.flows[0] = fake.flows[0].replace("actions=flood", "actions=drop")
    replaced = fake.flows[0]
    fake.answers["flows.add"] = lambda request: fake.flows.clear() or Scripted.add_flows(fake, request)
    acts.do({"act": "add flow", "switch": "s1", "flow": "priority=1,ip,actions=output:1"})
    fake.answers["flows.add"] = fake.add_flows
    undone = acts.do({"act": "undo", "number": 1})
    assert "counters" in undone.note
    assert [without_counters(line) for line in fake.flows] == [without_counters(replaced)]


def test_deleted_flows_come_back(fake: Scripted, acts: Acts) -> None:
    act = acts.do({"act": "delete flows", "switch": "s1", "match": ""})
    assert (act.lines, act.python) == (["flow s1 del"], ['lab.switch("s1").delete_flows()'])
    assert act.note == "1 deleted" and fake.flows == []
    acts.do({"act": "undo", "number": 1})
    assert without_counters(fake.flows[0]) == "cookie=0x0, table=0, priority=1,ip,actions=flood"
    acts.do({"act": "delete flows", "switch": "s1", "match": "nothing"})
    assert not acts.record()[-1]["can_undo"]


def test_traffic_is_started_and_ended(fake: Scripted, acts: Acts) -> None:
    numbers = iter(range(1, 9))
    fake.answers |= {"app.start": lambda _: {"app": next(numbers)}, "app.stop": lambda _: {}}
    act = acts.do(SEND)
    call = 'lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", duration="10 s", port=40000))'
    assert (act.lines, act.python) == ([f"py {call}"], [call])
    assert [one["host"] for one in fake.asked("app.start")] == ["h2", "h1"]
    undone = acts.do({"act": "undo", "number": 1})
    assert fake.asked("app.stop") == [{"app": 2}] and undone.lines == ["py lab.connection.app_stop(app=2)"]
    # Undone once more, the sender begins anew; its receiver still stands.
    again = acts.do({"act": "undo", "number": 2})
    call = 'lab.start(tn.apps.udp_source("h1", "h2", rate="1 Mbit", duration="10 s", port=40000))'
    assert (again.lines, again.python) == ([f"py {call}"], [call]) and "begins anew" in again.note
    sent = [one["app"] for one in fake.asked("app.start")]
    assert [one["kind"] for one in sent] == ["udp_sink", "udp_source", "udp_source"]
    assert {**sent[1], "flow": 0} == {**sent[2], "flow": 0}
    tcp = {"act": "send", "what": "tcp", "from": "h1", "to": "h2", "duration": "10 s"}
    assert acts.do(tcp).python == [
        'lab.start(tn.apps.tcp_bulk("h1", "h2", duration="10 s", port=40003, info_interval="100 ms"))'
    ]
    # Of a long one the report stays short.
    assert 'info_interval="1 s"))' in acts.do(tcp | {"duration": "10000 s"}).python[0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "not understood"),
        ({"act": "link", "link": "0", "direction": "both", "set": {}}, "not understood"),
        (link("up", rate="1 Mbit"), "not understood"),
        (link(), "nothing to set"),
        (link(rat="1 Mbit"), "did you mean 'rate'"),
        (link(rate="fast"), "rate"),
        (link(rate=10), "rate"),
        (link(rate="99 Tbit"), "out of range"),
        (link(loss="1"), "loss"),
        (link(loss=["1 %"]), "loss"),
        (link(delay=None), "delay"),
        (link(up="no"), "up"),
        (link(delivery_trace=[1, 2]), "use Python"),
        (link() | {"link": 99, "set": {"up": True}}, "there is no link 99"),
        (link() | {"link": -1, "set": {"up": True}}, "there is no link -1"),
        ({"act": "queue", "port": "s1-eth9", "queue": "codel"}, "no interface 's1-eth9'"),
        ({"act": "queue", "port": "h1-eth0", "queue": "codel"}, "no port of a switch"),
        ({"act": "queue", "port": "s1-eth1", "queue": "codell"}, "did you mean 'codel'"),
        ({"act": "add flow", "switch": "s9", "flow": "actions=flood"}, "no switch 's9'"),
        ({"act": "add flow", "switch": "s1", "flow": " "}, "no flow was given"),
        ({"act": "add flow", "switch": "s1", "flow": "actions=flood\nactions=drop"}, "no flow was given"),
        ({"act": "add flow", "switch": "s1", "flow": "ip,cookie=1,actions=flood"}, "has a cookie"),
        ({"act": "delete flows", "switch": "s1", "match": "ip\narp"}, "not one line"),
        (SEND | {"to": "s1"}, "no host 's1'"),
        (SEND | {"to": "h1"}, "to itself"),
        (SEND | {"what": "http"}, "not understood"),
        (SEND | {"rate": "fast"}, "rate"),
        (SEND | {"rate": 1}, "not understood"),
        (SEND | {"what": "tcp"}, "not understood"),
        (SEND | {"duration": "10"}, "unit"),
        ({"act": "undo", "number": 1}, "cannot be undone"),
        ({"act": "shell", "host": "h1"}, "not understood"),
    ],
)
def test_what_the_prompt_would_refuse_is_refused_and_changes_nothing(
    fake: Scripted, acts: Acts, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(tn.errors.TwinnetError) as caught:
        acts.do(asked)
    assert said in str(caught.value)
    assert not [
        one
        for one in fake.requests
        if one["do"] in ("link.set", "queues.set", "flows.add", "flows.delete", "app.start")
    ]
    assert acts.record() == []


def test_a_sealed_fault_is_told_only_as_the_answer(fake: Scripted, acts: Acts) -> None:
    before = [dict(row["ab"]["config"]) | {"up": row["ab"]["up"]} for row in fake.rows]
    sealed = acts.do({"act": "seal", "seed": 3})
    assert (sealed.lines, sealed.python) == ([], []) and "seed 3" in sealed.note
    done = [one for one in fake.requests if one["do"] in ("link.set", "queues.set", "flows.add")]
    assert len(done) == 1
    for ask in (lambda: acts.settings(0), acts.network_now, lambda: acts.do({"act": "seal", "seed": 4})):
        with pytest.raises(tn.errors.BadValue, match="does not tell what"):
            ask()
    answer = acts.do({"act": "answer"})
    assert answer.note == "this was broken" and len(answer.python) == 1
    with pytest.raises(tn.errors.BadValue, match="nothing is sealed"):
        acts.do({"act": "answer"})
    acts.do({"act": "undo", "number": 2})
    assert [dict(row["ab"]["config"]) | {"up": row["ab"]["up"]} for row in fake.rows] == before


def test_a_seed_always_means_the_same_fault_and_every_kind_comes_up(fake: Scripted) -> None:
    kinds = faults_of(fake.lab)
    assert sorted(kinds) == ["delay", "down", "loss", "missing", "queue", "rule", "slow"] and all(kinds.values())
    chosen = [chosen_fault(fake.lab, seed) for seed in range(60)]
    assert chosen == [chosen_fault(fake.lab, seed) for seed in range(60)]
    assert all(any(fault in faults for fault in chosen) for faults in kinds.values())
    # Each is something that the page can do.
    for faults in kinds.values():
        for fault in faults:
            Acts(fake.lab).do(fault)


def test_what_others_have_started_is_stopped_once() -> None:
    with tn.templates.single(2, rate="10 Mbit").simulate(name="") as lab:
        flow = lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", duration="600 s"))
        lab.run_until("1 s")
        acts = Acts(lab)
        act = acts.do({"act": "stop app", "app": flow.app})
        assert act.python == [f"lab.connection.app_stop(app={flow.app})"]
        assert re.fullmatch("udp_source of h1 ends; this cannot be undone: the page has not started it.*", act.note)
        assert not acts.record()[0]["can_undo"]
        lab.run_until("2 s")
        with pytest.raises(tn.errors.BadValue, match="has ended already"):
            acts.do({"act": "stop app", "app": flow.app})
        assert flow.report().bytes == pytest.approx(1e6 / 8, rel=0.1)
        for asked in ({"act": "stop app", "app": 99}, {"act": "stop program", "job": 99}):
            with pytest.raises(tn.errors.TwinnetError):
                acts.do(asked)


def test_a_missing_rule_is_one_that_can_be_deleted_alone() -> None:
    net = tn.templates.single(2)
    net.switches["s1"].fail_mode = "secure"
    net.switches["s1"].flows = [
        "priority=1,actions=flood",
        "priority=3,ip,nw_dst=10.0.0.0/8,actions=drop",
        "priority=5,ip,nw_dst=10.0.0.1,actions=output:1",
        "priority=6,tcp,nw_dst=10.0.0.1,tp_dst=80,actions=drop",
        "priority=9,in_port=1,dl_vlan=3,actions=drop",
        "table=1,priority=6,udp,actions=drop",
    ]
    with net.simulate(name="") as lab:
        before = sorted(map(without_counters, lab.switch("s1").dump_flows()))
        missing = faults_of(lab)["missing"]
        assert [fault["match"] for fault in missing] == [
            "table=0,in_port=1,dl_vlan=3",
            "table=0,tcp,nw_dst=10.0.0.1,tp_dst=80",
            "table=1,udp",
        ]
        acts = Acts(lab)
        for fault in missing:
            assert acts.do(fault).note == "1 deleted"
            acts.do({"act": "undo", "number": acts.count})
            assert sorted(map(without_counters, lab.switch("s1").dump_flows())) == before


def test_there_is_an_end_to_acts(acts: Acts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts_module, "MOST_ACTS", 1)
    acts.do(link(up=False))
    with pytest.raises(tn.errors.BadValue, match="open another page"):
        acts.do(link(up=True))


@pytest.mark.parametrize("what", ["udp", "tcp"])
def test_what_the_page_has_started_is_stopped_and_started_again_at_both_ends(what: str) -> None:
    def running() -> set[str]:
        return {report.kind for report in lab.reports() if not report.finished}

    def go_on() -> None:
        lab.run_until(f"{lab.now_ps() + 10**12} ps")

    with tn.templates.single(2, rate="10 Mbit").simulate(name="") as lab:
        acts = Acts(lab)
        rate = {"rate": "1 Mbit"} if what == "udp" else {}
        acts.do({"act": "send", "what": what, "from": "h1", "to": "h2", "duration": "600 s"} | rate)
        go_on()
        sink, source = f"{what}_sink", f"{what}_source"
        numbers = {report.kind: report.app for report in lab.reports()}
        assert set(numbers) == running() == {sink, source}
        stopped = acts.do({"act": "stop app", "app": numbers[source]})
        go_on()
        assert running() == {sink} and stopped.note == f"{source} of h1 ends"
        again = acts.do({"act": "undo", "number": stopped.number})
        go_on()
        assert running() == {sink, source}
        # The line that is shown does the same.
        acts.do({"act": "undo", "number": again.number})
        go_on()
        assert running() == {sink} and Session(lab).execute(again.lines[0])
        go_on()
        assert running() == {sink, source}
        for kind in (source, sink):
            for report in lab.reports():
                if report.kind == kind and not report.finished:
                    stopped = acts.do({"act": "stop app", "app": report.app})
        go_on()
        assert running() == set()
        acts.do({"act": "undo", "number": stopped.number})
        go_on()
        assert running() == {sink}


def test_the_window_of_a_download_is_in_the_table_of_traffic() -> None:
    with tn.templates.single(2, rate="10 Mbit").simulate(name="") as lab:
        Acts(lab).do({"act": "send", "what": "tcp", "from": "h1", "to": "h2", "duration": "10 s"})
        lab.run_until("1 s")
        windows = {row["what"]: row["window"] for row in traffic_now(lab)["flows"]}
        assert windows["tcp source"] > 1 and windows["tcp sink"] is None


def test_each_of_several_links_between_two_nodes_is_changed_by_its_ports() -> None:
    def rates() -> list[int]:
        return [row["ab"]["config"]["rate_bps"] for row in lab.links()]

    net = tn.templates.single(2, rate="10 Mbit")
    net.link("h1", "s1", rate="10 Mbit", parallel=True)
    with net.simulate(name="") as lab:
        acts = Acts(lab)
        act = acts.do(link(rate="2 Mbit") | {"link": 2})
        assert act.lines == ["link h1-eth1 s1-eth3 rate 2 Mbit"]
        assert act.python == ['lab.link("h1-eth1", "s1-eth3").set(rate="2 Mbit")']
        assert rates() == [10_000_000, 10_000_000, 2_000_000]
        assert acts.settings(2)["ab"]["rate"] == "2 Mbit/s"
        acts.do({"act": "undo", "number": 1})
        assert rates() == [10_000_000] * 3
        assert Session(lab).execute(act.lines[0])
        assert rates() == [10_000_000, 10_000_000, 2_000_000]
        # By its nodes the first is meant, and a turned pair of ports is turned.
        assert acts.do(link(rate="3 Mbit")).lines == ["link h1 s1 rate 3 Mbit"]
        lab.link("s1-eth3", "h1-eth1").set("ab", rate="4 Mbit")
        assert rates() == [3_000_000, 10_000_000, 2_000_000]
        assert lab.links()[2]["ba"]["config"]["rate_bps"] == 4_000_000
        assert {fault["link"] for fault in faults_of(lab)["down"]} == {0, 1, 2}
        for ends in (("h1-eth1", "s1-eth1"), ("h1", "h2")):
            with pytest.raises(tn.errors.BadTopology, match="not linked"):
                lab.link(*ends)
        with pytest.raises(tn.errors.UnknownNode, match="no node 's1-eth9'"):
            lab.link("h1", "s1-eth9")


@needs_a_lab
def test_a_real_lab_is_changed_saved_and_set_back_and_the_lines_do_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    def told() -> list[Any]:
        return [[row[way]["config"] for way in ("ab", "ba")] for row in lab.links()]

    net = tn.templates.single(2, rate="10 Mbit")
    net.switches["s1"].fail_mode = "secure"
    with net.emulate() as lab:
        acts = Acts(lab)
        at_first = told()
        done = [
            acts.do(link(rate="5 Mbit", delay="3 ms", jitter="1 ms normal", loss="2 %")),
            acts.do(link("ab", up=False)),
            acts.do({"act": "queue", "port": "s1-eth2", "queue": "fq_codel,target=7ms"}),
            acts.do({"act": "add flow", "switch": "s1", "flow": "priority=9,arp,actions=flood"}),
            acts.do(SEND | {"duration": "60 s"}),
        ]
        changed = told()
        assert acts.settings(0)["ab"]["jitter"] == "1 ms normal"
        saved = parse_network(written_network(acts.network_now()))
        spec = saved.to_spec()
        assert spec["links"][0]["ab"]["rate_bps"] == 5_000_000 and not spec["links"][0]["up"]
        switch = next(node for node in spec["nodes"] if node["kind"] == "switch")
        assert switch["ports"][1]["queue"]["kind"] == "fq_codel" and "arp" in switch["flows"][0]
        for act in reversed(done):
            acts.do({"act": "undo", "number": act.number})
        assert told() == at_first and lab.links()[0]["ab"]["up"]
        assert lab.switch("s1").dump_flows() == []
        session = Session(lab)
        assert all(session.execute(line) for act in done for line in act.lines), capfd.readouterr().err
        assert told() == changed
        assert "priority=9,arp" in lab.switch("s1").dump_flows()[0]
