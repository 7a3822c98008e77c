"""A run in a lab whose answers are written down here: what is started, when, and what lands in the tables."""

import threading
from types import SimpleNamespace

import pytest
from fidelity_sources import SOURCES
from twinnet.errors import BadValue, LabClosed, NotAvailable
from twinnet.network.network import Network
from twinnet.results.fidelity import FidelityRecord
from twinnet.results.flow_report import AppReport
from twinnet.results.port_samples import DROP_REASONS, PortSamples, PortSeries
from twinnet.study.collect import PlannedFlow, collect
from twinnet.study.execute import LabExecutor, _Run, _VirtualRun, sample_interval_ps
from twinnet.study.kept_captures import RunCaptures
from twinnet.study.network_of import network_of
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study
from twinnet.study.runner import Interrupted, Progress

MS = 10**9
S = 10**12


class WrittenLab:
    """Answers as a lab does; its clock goes on a tenth of a second whenever it is asked."""

    clock = "wall"
    full = False
    controller_is_gone = False
    shares_files = True

    def __init__(self, network):
        self.network = network
        self.clock_ps = 0
        self.started = {"interface": "tap"}
        self.calls = []
        self.layout = SimpleNamespace(address=lambda name: network[name].ip, links=network.to_spec()["links"])
        self.connection = SimpleNamespace(links=self.links)

    def links(self):
        raise LabClosed("it has no links that could be followed")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.calls.append(("closed",))

    def describe(self):
        return self.network.to_spec()

    def check_controllers(self):
        self.calls.append(("controllers checked",))

    def now_ps(self):
        self.clock_ps += 100 * MS
        return self.clock_ps

    def sample(self, ports, interval):
        self.calls.append(("sample", tuple(ports), interval))
        columns = [name for name in PortSeries.__dataclass_fields__ if name != "dropped"]
        columns += [f"dropped_{reason}" for reason in DROP_REASONS] + ["lost"]
        counts = {name: [1, 2] for name in columns}
        spec = {"interval_ps": 250 * MS, "start_ps": 0, "full": self.full, "ports": {"s1-eth4": counts}}
        return SimpleNamespace(stop=lambda: PortSamples.from_spec(spec))

    def start(self, traffic, at, name):
        number = 1 + sum(call[0] == "start" for call in self.calls)
        self.calls.append(("start", traffic.sender.kind, traffic.sender.host, at))
        return SimpleNamespace(flow=number, stop=lambda: self.calls.append(("stop", number)))

    def wait(self, handles, until):
        self.calls.append(("wait", len(handles)))
        return self.clock_ps > 4 * S

    def fidelity(self, reset=False):
        self.calls.append(("fidelity", reset))
        if reset:
            self.reset_ps = self.clock_ps
        # A ten-thousandth of the time is slipped.
        slipped_ps = (self.clock_ps - self.reset_ps) // 10_000
        record = {"elapsed_ps": S, "lateness_ns": {"p999": 1000}, "cores": 2, "slipped_ps": slipped_ps}
        return FidelityRecord.from_spec(record | {"sources": SOURCES})

    def reports(self):
        flow = {"flow": 1, "protocol": "tcp", "role": "sink", "from": "10.0.0.1:4000", "bytes": 9, "start_ps": 2 * S}
        flow |= {"end_ps": 4 * S, "intervals": {"interval_ps": 250 * MS, "first": 8, "bytes": [4, 5]}}
        return [AppReport.from_spec({"app": 1, "host": "h4", "kind": "tcp_sink", "report": {"flows": [flow]}})]


@pytest.fixture
def made(monkeypatch):
    labs = []

    def emulate(network, **options):
        labs.append(WrittenLab(network))
        return labs[-1]

    monkeypatch.setattr(Network, "emulate", emulate)
    run = plan_study(load_study("tcp-udp-queues", {"drain": "1 ns"}, preset="tiny"))[1]
    progress = Progress(threading.Event())
    return run, progress, labs


def test_all_traffic_starts_at_one_moment_on_a_bound_between_intervals(made):
    run, progress, labs = made
    LabExecutor()(run, progress)
    starts = [call for call in labs[0].calls if call[0] == "start"]
    assert [call[1:3] for call in starts] == [
        ("tcp_source", "h1"),
        ("tcp_source", "h3"),
        ("udp_source", "h1"),
        ("udp_source", "h3"),
        ("http_client", "h2"),
    ]
    moments = {int(call[3]) for call in starts}
    assert len(moments) == 1
    assert moments.pop() % sample_interval_ps(run.specification) == 0


@pytest.mark.parametrize(("clock", "allowed_s"), [("wall", 0.5 + 560 * 0.003), ("virtual", 0.5)])
def test_traffic_of_many_apps_begins_when_all_are_handed_over(clock, allowed_s):
    run = plan_study(load_study("qos-class-profiles", {"clock": clock}, preset="hundredth"))[0]
    kind = _VirtualRun if clock == "virtual" else _Run
    captures = RunCaptures(run, network_of(run.specification, run.levels, run.seed))
    begins_s = kind(SimpleNamespace(now_ps=lambda: 0), run, Progress(threading.Event()), {}, captures)._zero_ps() / S
    # On the next bound between intervals of a quarter of a second.
    assert allowed_s <= begins_s < allowed_s + 0.25


def test_the_fidelity_record_begins_with_the_traffic(made):
    run, progress, labs = made
    LabExecutor()(run, progress)
    kinds = [call[0] for call in labs[0].calls]
    assert kinds.index("fidelity") < kinds.index("wait")
    resets = [call[1] for call in labs[0].calls if call[0] == "fidelity"]
    assert resets[0] is True
    assert not any(resets[1:])


def test_fidelity_is_looked_at_over_time(made):
    run, progress, _ = made
    rows = LabExecutor()(run, progress).fidelity_samples
    assert rows["start_s"][0] == 0
    assert rows["length_s"].sum() == pytest.approx(rows["start_s"][-1] + rows["length_s"][-1])
    assert rows["slipped_ms"].sum() == pytest.approx(rows["length_s"].sum() / 10, rel=0.2)


def test_what_was_reported_lands_with_times_from_the_start_of_traffic(made):
    run, progress, _ = made
    measured = LabExecutor()(run, progress)
    zero_s = measured.notes["zero_ps"] / S
    tcp = measured.flows.filter(measured.flows["protocol"] == "tcp").row(0, named=True)
    assert (tcp["from_host"], tcp["payload_bytes"], tcp["start_s"]) == ("h1", 9, pytest.approx(2 - zero_s))
    rows = measured.intervals.filter(measured.intervals["payload_bytes"] > 0)
    assert rows["payload_bytes"].to_list() == [4, 5]
    assert rows["start_s"].to_list() == pytest.approx([2 - zero_s, 2.25 - zero_s])
    assert measured.fidelity.verdict == "valid"


def test_a_flow_of_which_nothing_arrived_has_a_throughput_of_zero(made):
    run, progress, _ = made
    measured = LabExecutor()(run, progress)
    silent = measured.intervals.filter(measured.intervals["payload_bytes"] == 0)
    assert sorted(zip(silent["name"], silent["from_host"], strict=True)) == [
        ("http", "h2"),
        ("tcp", "h3"),
        ("udp", "h1"),
        ("udp", "h3"),
    ]


def test_traffic_that_goes_on_is_ended_at_the_time_limit(made):
    _, progress, labs = made
    run = plan_study(load_study("tcp-udp-queues", {"drain": "1 ns", "time_limit": "1 s"}, preset="tiny"))[0]
    LabExecutor()(run, progress)
    assert [call[1] for call in labs[0].calls if call[0] == "stop"] == [1, 2, 3, 4, 5]


def test_a_run_whose_port_samples_are_not_all_there_fails(made, monkeypatch):
    run, progress, _ = made
    monkeypatch.setattr(WrittenLab, "full", True)
    with pytest.raises(NotAvailable, match=r"kept for the first 0\.5 s only"):
        LabExecutor()(run, progress)


def test_a_stop_ends_the_lab_and_gives_no_result(made):
    run, progress, labs = made
    progress.stop.set()
    with pytest.raises(Interrupted):
        LabExecutor()(run, progress)
    assert labs[0].calls[-1] == ("closed",)


def test_levels_put_queues_and_flows_into_the_network():
    plan = plan_study(load_study("tcp-udp-queues"))
    shared, separate = (network_of(run.specification, run.levels, run.seed).to_spec() for run in plan[:2])

    def switch(spec):
        return next(node for node in spec["nodes"] if node["kind"] == "switch")

    assert switch(shared)["ports"][3]["queue"]["kind"] == "fifo"
    assert switch(shared)["flows"] == []
    queues = switch(separate)["ports"][3]["queue"]["queues"]
    assert (queues["1"]["min_rate_bps"], queues["1"]["max_rate_bps"]) == (512_000_000, 512_000_000)
    assert "priority=65535,ip,nw_dst=10.0.0.4,tcp,tp_dst=5002,actions=enqueue:4:1" in switch(separate)["flows"]
    assert plan[0].seed == shared["seed"] != separate["seed"]


def test_every_tcp_sender_is_told_its_congestion_control():
    traffic = load_study("tcp-udp-queues", {"congestion_control": "reno"}).specification.traffic
    flows = [entry.between(entry.sources[0], 10**12) for entry in traffic if entry.app in ("tcp", "http")]
    senders = [flow.sender if flow.sender.kind == "tcp_source" else flow.receiver for flow in flows]
    assert [sender.fields["congestion_control"] for sender in senders] == ["reno", "reno"]


def test_interfaces_are_refused_on_the_virtual_clock_by_name():
    with pytest.raises(BadValue, match=r"none of the kind 'veth'"):
        LabExecutor("veth").check(load_study("tcp-udp-queues", {"clock": "virtual"}).specification)


def test_a_sender_without_a_number_is_known_by_its_address():
    entry = load_study("tcp-udp-queues").specification.traffic[0]
    planned = [PlannedFlow(entry, "h1", 1, "10.0.0.1"), PlannedFlow(entry, "h3", 2, "10.0.0.3")]
    flow = {"flow": 0, "protocol": "tcp", "role": "sink", "from": "10.0.0.3:5555", "bytes": 7}
    report = AppReport.from_spec({"app": 1, "report": {"flows": [flow]}})
    assert collect([report], planned, None, 0, S).flows["from_host"].to_list() == ["h3"]
