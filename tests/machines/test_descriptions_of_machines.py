"""Physical machines in networks and studies: what is described, and what is refused before anything starts."""

from __future__ import annotations

import json

import pytest
import twinnet as tn
from twinnet.errors import BadName, BadTopology, BadValue, UsageError
from twinnet.machines.delays import judged_delays
from twinnet.network.topology_file import parse_network
from twinnet.results.fidelity import FidelityRecord
from twinnet.study.execute import LabExecutor
from twinnet.study.plan import plan_study
from twinnet.study.resolution import Study, read_study
from twinnet.yaml_source import SourceError, parse_yaml

_NETWORK = """
machines:
  h1: {ssh: lab@pc1, interface: eth1, address: 10.8.0.1/24}
  h2: {ssh: lab@pc2, interface: eth1, address: 10.8.0.2/24, processing: 30 us}
switches: {s1: }
links:
  - {between: [h1, s1], rate: 100 Mbit}
  - {between: [s1, h2], rate: 100 Mbit}
"""
_TRAFFIC = "{name: stream, app: udp, from: [h1], to: h2, rate: 1 Mbit, payload: 500 B, duration: 1 s, port: 5003}"


def _study(network: str = _NETWORK, more: str = "", traffic: str = _TRAFFIC, clock: str = "real") -> Study:
    indented = network.replace("\n", "\n  ")
    text = (
        f"study: machines\ntitle: t\nquestion: q\nclock: {clock}\nnetwork:{indented}\ntraffic: [{traffic}]\n"
        f"measurements: {{lost: {{of: loss}}}}\nrepetitions: 1\n{more}"
    )
    return read_study(parse_yaml(text, "study.yaml"))


def test_a_machine_of_a_file_is_that_of_the_interface():
    from_file = parse_network(_NETWORK)
    net = tn.Network()
    for number in (1, 2):
        settings = {"processing": "30 us"} if number == 2 else {}
        net.machine(f"h{number}", ssh=f"lab@pc{number}", interface="eth1", address=f"10.8.0.{number}/24", **settings)
    s1 = net.switch("s1")
    for number in (1, 2):
        net.link(f"h{number}", s1, rate="100 Mbit") if number == 1 else net.link(s1, "h2", rate="100 Mbit")
    assert from_file.to_spec() == net.to_spec()
    assert (from_file["h2"].ssh, from_file["h2"].interface) == ("lab@pc2", "eth1")


def test_on_the_virtual_clock_a_machine_is_a_host_like_others():
    net = parse_network(_NETWORK)
    with net.simulate() as lab:
        flow = lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", payload="500 B", duration="1 s"))
        lab.run_until("2 s")
        assert (flow.report().packets, flow.report().lost) == (250, 0)


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"ssh": "-oProxyCommand=sh"}, BadValue, "no machine that ssh can be told of"),
        ({"ssh": "pc1; reboot"}, BadValue, "no machine that ssh"),
        ({"ssh": ""}, BadValue, "no machine that ssh"),
        ({"command": "twinnet; reboot"}, BadValue, "no path of a program"),
        ({"command": "-x"}, BadValue, "no path of a program"),
        ({"interface": "lo"}, BadName, "Ethernet interface"),
        ({"address": "10.8.0.300/24"}, UsageError, "10.8.0.300"),
        ({"address": ["10.8.0.1/24", "10.8.0.2/24"]}, BadValue, "one of IPv4 and one of IPv6"),
        ({"address": []}, BadValue, "none"),
    ],
)
def test_what_ssh_or_a_shell_could_misread_is_refused(changed: dict[str, object], error: type[Exception], words: str):
    given = {"ssh": "pc1", "interface": "eth1", "address": "10.8.0.1/24"} | changed
    net = tn.Network()
    with pytest.raises(error, match=words):
        net.machine("h1", **given)  # type: ignore[arg-type]
    assert "h1" not in net


def test_a_wrong_machine_is_told_at_its_line_without_mistakes_that_follow_from_it():
    wrong = _NETWORK.replace("lab@pc1", '"-oProxyCommand=x"').replace("[s1, h2]", "[s1, h3]")
    with pytest.raises(SourceError) as told:
        parse_network(wrong, "net.yaml")
    problems = told.value.problems
    assert [(one.line, one.key) for one in problems] == [(3, "machines.h1.ssh"), (8, "links[1]")]
    assert "h3" in problems[1].message


def test_a_network_without_machines_has_no_real_clock():
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"))
    with pytest.raises(BadTopology, match="no physical machine"), net.operate():
        pass


@pytest.mark.parametrize(
    ("study", "words"),
    [
        ({"network": _NETWORK.replace("machines:", "hosts: {h3: }\nmachines:"),
          "traffic": _TRAFFIC.replace("from: [h1]", "from: [h3]")}, "no physical machines: h3"),
        ({"traffic": "{name: pages, app: http, using: programs, from: [h1], to: h2, bytes: 1 MB, count: 3, port: 80}"},
          "traffic pages"),
        ({"more": "factors: {f: {levels: {a: {links: {h1-s1: {rate: 1 Mbit}}}}}}\n"}, "the level a of f changes links"),
    ],
)  # fmt: skip
def test_what_real_machines_cannot_do_is_refused_before_the_start(study: dict[str, str], words: str):
    with pytest.raises(BadValue, match=words):
        LabExecutor().check(_study(**study).specification)


def test_where_a_machine_is_has_no_effect_on_the_run_of_another_clock():
    moved = _NETWORK.replace("lab@pc1", "pc7").replace("interface: eth1", "interface: eth2")
    runs = {
        (clock, network): plan_study(_study(network, clock=clock))[0].digest
        for clock in ("virtual", "real")
        for network in (_NETWORK, moved)
    }
    assert runs["virtual", _NETWORK] == runs["virtual", moved]
    assert runs["real", _NETWORK] != runs["real", moved]


@pytest.mark.parametrize(("bound_us", "known"), [(0, True), (9.9, True), (10.1, False)])
def test_a_delay_of_100_us_is_told_by_clocks_that_are_known_to_a_tenth_of_it(bound_us: float, known: bool):
    flow = {
        "delay_ps": {"count": 5, "mean": 100e6},
        "jitter_rfc4689_ps": {"count": 4, "mean": 1.0},
        "intervals": {"times_ps": {"delay_mean": [1.0], "jitter_rfc4689_mean": [1.0]}},
        "samples": {"sent_ps": [1, 2], "arrived_ps": [3, 4]},
    }
    judged = judged_delays(flow, round(bound_us * 1e6))
    assert ("delay_ps" in judged) is known
    assert ("delay_mean" in judged["intervals"]["times_ps"]) is known
    assert (judged["samples"]["sent_ps"] == [1, 2]) is known
    assert "jitter_rfc4689_mean" in judged["intervals"]["times_ps"] and "jitter_rfc4689_ps" in judged
    assert bool(judged.get("errors")) is not known


def test_the_verdict_on_a_run_is_that_of_its_worst_machine_and_names_it():
    agent = {"timers": 1000, "lateness_ns": {"p99": 50_000}, "waited_s": 0.0}
    late = agent | {"lateness_ns": {"p99": 20_000_000}}
    sources = {"thread_waits": True, "steal": True}
    one = {"clock": "real", "elapsed_ps": 10**12, "cores": 2, "agent": agent, "sources": sources}
    record = {"clock": "real", "elapsed_ps": 10**12, "machines": {"h1": one, "h2": one | {"agent": late}}}
    verdict = FidelityRecord.from_spec(json.loads(json.dumps(record))).verdict()
    assert verdict.state == "invalid"
    assert [reason.startswith("on h2: one timer in 100") for reason in verdict.reasons] == [True]
