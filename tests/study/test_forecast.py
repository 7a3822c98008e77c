"""What a run needs of the machine, which runs will exceed it, and whether that came true: exact on small networks."""

import itertools
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fluid_lab import FluidLab
from twinnet.cli import run as command_line
from twinnet.network.network import Network
from twinnet.report.summary import fidelity_sentences, summary_record
from twinnet.report.tables import runs_frame
from twinnet.results.fidelity import FidelityRecord
from twinnet.study import capacity as capacity_module
from twinnet.study.analysis import Analysis
from twinnet.study.capacity import LASTING, Capacity, greatest, keep, kept_capacity, kept_in, kept_up, this_machine
from twinnet.study.forecast import TCP_WEIGHT, Forecast, forecast_here, forecast_runs, needed_frames, weight
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study
from twinnet.study.runner import run_plan
from twinnet.study.shared_lines import Ways, fair_shares
from twinnet.study.store import ResultStore
from twinnet.study.traffic import Traffic

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


class Silent:
    def begin(self, todo, skipped, expected_s): ...
    def started(self, run, progress): ...
    def tick(self, left_s): ...
    def ended(self, run, stored, left_s): ...
    def stopping(self): ...


def traffic(app: str, sources: list[str], to: str = "b", **settings: object) -> Traffic:
    ports = {} if app in ("ping",) else {"port": 5003}
    return Traffic.model_validate({"name": app, "app": app, "from": sources, "to": to, **ports, **settings})


def row(*rates: str | None, switches: int = 1) -> Network:
    """Hosts a, c, d, ... at the first of `switches` and b at the last; `rates` are those of their lines, b's last."""
    network = Network()
    inner = [network.switch(f"s{number}") for number in range(1, switches + 1)]
    for one, other in itertools.pairwise(inner):
        network.link(one, other)
    for name, rate in zip("acdefg", rates[:-1], strict=False):
        network.link(network.host(name), inner[0], **({"rate": rate} if rate else {}))
    network.link(inner[-1], network.host("b"), **({"rate": rates[-1]} if rates[-1] else {}))
    return network


def needed(network: Network, *entries: Traffic) -> float:
    return needed_frames(network, entries)


def test_a_datagram_counts_once_in_and_once_out():
    stream = traffic("udp", ["a"], packets_per_second=1000, payload="1470 B", duration="10 s")
    assert needed(row("100 Mbit", "100 Mbit"), stream) == pytest.approx(2000)


def test_what_the_slower_line_drops_counts_in_alone():
    # 12 Mbit/s of payload are 1020.4 datagrams of 1470 B; on 4 Mbit/s each takes 1536 B, so 325.5 get through.
    stream = traffic("udp", ["a"], rate="12 Mbit", payload="1470 B", duration="10 s")
    assert needed(row("100 Mbit", "4 Mbit"), stream) == pytest.approx(12e6 / 11760 + 4e6 / 12288)


def test_the_senders_own_line_limits_what_comes_in():
    stream = traffic("udp", ["a"], rate="12 Mbit", payload="1470 B", duration="10 s")
    assert needed(row("4 Mbit", "100 Mbit"), stream) == pytest.approx(2 * 4e6 / 12288)


def test_flows_that_share_a_line_share_its_rate():
    # b's line carries 4 Mbit/s of the three; each sender's own line takes all that it offers.
    stream = traffic("udp", ["a", "c", "d"], rate="12 Mbit", payload="1470 B", duration="10 s")
    network = row("100 Mbit", "100 Mbit", "100 Mbit", "4 Mbit")
    assert needed(network, stream) == pytest.approx(3 * 12e6 / 11760 + 4e6 / 12288)


def test_a_datagram_above_the_mtu_counts_as_its_fragments():
    # 3000 B and UDP's 8 are 1480 + 1480 + 48.
    stream = traffic("udp", ["a"], packets_per_second=100, payload="3000 B", duration="10 s")
    assert needed(row("100 Mbit", "100 Mbit"), stream) == pytest.approx(2 * 3 * 100)


def test_each_switch_after_the_first_adds_a_fifth_of_a_frame():
    stream = traffic("udp", ["a"], packets_per_second=1000, payload="100 B", duration="10 s")
    assert needed(row(None, None, switches=3), stream) == pytest.approx(1000 * (1 + 1 + 2 * 0.2))


def test_tcp_fills_its_bottleneck_and_is_acknowledged_every_second_segment():
    bulk = traffic("tcp", ["a"], duration="10 s")
    segments = 10e6 / (1538 * 8)
    # Its super-segments are of 1 ms on its own line, and are taken at once.
    taken = weight(100e6 * 1e-3 / (1538 * 8))
    assert needed(row("100 Mbit", "10 Mbit"), bulk) == pytest.approx(TCP_WEIGHT * segments * (taken + 1 + 2 / 2))


def test_tcp_over_a_fast_line_is_handed_over_in_parts_each_of_which_is_acknowledged_once():
    bulk = traffic("tcp", ["a"], duration="10 s")
    segments = 1e9 / (1538 * 8)
    part = 100e-6 * segments
    ends = weight(32) + weight(part) + 2 / part
    assert needed(row("1 Gbit", "1 Gbit"), bulk) == pytest.approx(TCP_WEIGHT * segments * ends)


def test_tcp_on_lines_without_a_rate_takes_what_the_machine_has_left():
    assert needed(row(None, None), traffic("tcp", ["a"], duration="10 s")) == 0


def test_http_flows_from_the_server_to_its_client():
    # Only the client's own line is slow: 1 Mbit/s of segments goes there.
    fetch = traffic("http", ["a"], bytes="1 MB")
    taken = weight(100e6 * 1e-3 / (1538 * 8))
    assert needed(row("1 Mbit", "100 Mbit"), fetch) == pytest.approx(TCP_WEIGHT * 1e6 / (1538 * 8) * (taken + 2))


def test_video_asks_for_its_highest_rate():
    watch = traffic("video", ["a"], ladder=["100 kbit", "1158400 bit"], duration="10 s")
    taken = weight(100e6 * 1e-3 / (1538 * 8))
    assert needed(row("100 Mbit", "100 Mbit"), watch) == pytest.approx(TCP_WEIGHT * 100 * (taken + 2))


def test_a_ping_goes_there_and_back():
    pings = traffic("ping", ["a"], count=600, interval="100 ms")
    assert needed(row("100 Mbit", "100 Mbit"), pings) == pytest.approx(10 * 4)


def test_a_call_counts_the_share_of_the_time_in_which_it_talks():
    call = traffic("voice", ["a"], duration="10 s")
    quiet = traffic("voice", ["a"], duration="10 s", silence_suppression=True)
    assert needed(row(None, None), call) == pytest.approx(2 * 50)
    assert needed(row(None, None), quiet) == pytest.approx(2 * 50 * 1004 / (1004 + 1587))


def test_sizes_and_gaps_that_vary_count_by_their_means():
    gaps = {"distribution": "exponential", "mean": "2 ms"}
    sizes = {"distribution": "uniform", "low": "100 B", "high": "1100 B"}
    varied = traffic("udp", ["a"], gap=gaps, size=sizes, duration="10 s")
    assert needed(row("100 Mbit", "100 Mbit"), varied) == pytest.approx(2 * 500)


def test_only_traffic_at_the_same_time_adds_up():
    early = traffic("udp", ["a"], packets_per_second=1000, payload="100 B", duration="10 s")
    late = traffic("udp", ["a"], packets_per_second=700, payload="100 B", duration="10 s", start="10 s")
    both = late.model_copy(update={"start_ps": 9_000_000_000_000})
    assert needed(row(None, None), early, late) == pytest.approx(2 * 1000)
    assert needed(row(None, None), early, both) == pytest.approx(2 * 1700)


def test_frames_that_leave_a_fast_line_together_cost_less():
    # 20,000 a second are gathered by four; on 1 Gbit/s 40 us hold 3.26 of these frames, which bounds it.
    stream = {"packets_per_second": 20_000, "payload": "1470 B", "duration": "10 s"}
    together = 40e-6 * 1e9 / (1536 * 8)
    assert needed(row("1 Gbit", "1 Gbit"), traffic("udp", ["a"], **stream)) == pytest.approx(
        40_000 * (1 + (together - 1) * 0.2) / together
    )
    assert needed(row("1 Gbit", "1 Gbit"), traffic("udp", ["a"], exact=True, **stream)) == pytest.approx(40_000)
    assert weight(0.5) == weight(1.0) == 1.0


def test_a_router_hands_frames_out_and_takes_them_back():
    network = Network()
    router = network.router("r1")
    network.link(network.host("a"), router, address_b=())
    network.link(router, network.host("b"), address_a=())
    stream = traffic("udp", ["a"], packets_per_second=1000, payload="100 B", duration="10 s")
    assert needed(network, stream) == pytest.approx(4000)


def test_a_model_host_costs_no_hand_over():
    network = Network()
    switch = network.switch("s1")
    network.link(network.host("a", model=True), switch)
    network.link(switch, network.host("b", model=True))
    stream = traffic("udp", ["a"], packets_per_second=1000, payload="100 B", duration="10 s")
    assert needed(network, stream) == pytest.approx(400)


def test_the_scheduler_before_a_line_limits_it():
    study = load_study("qos-policies", {"policy.rate": "2 Mbit"}, preset="tiny")
    slow = forecast_runs(plan_study(study)[:1], None)
    fast = forecast_runs(plan_study(load_study("qos-policies", {}, preset="tiny"))[:1], None)
    assert 0 < min(slow.needed.values()) < min(fast.needed.values())


def test_shares_are_max_min_fair():
    # Bertsekas and Gallager: two flows on a line of 1, one of them also on a line of 0.25 with a third.
    routes = [[(0, "ab")], [(0, "ab"), (1, "ab")], [(1, "ab")]]
    rates = {(0, "ab"): 1.0, (1, "ab"): 0.25}
    free = float("inf")
    assert fair_shares([free, free, free], routes, rates) == pytest.approx([0.875, 0.125, 0.125])
    assert fair_shares([0.5, free, 0.05], routes, rates) == pytest.approx([0.5, 0.2, 0.05])
    assert fair_shares([free, 0.0], [[], []], {}) == [free, 0.0]


def test_the_way_is_the_shortest_over_links_that_are_up_and_never_through_a_host():
    network = row("1 Mbit", "1 Mbit", switches=2)
    between = network.host("x")
    for switch in ("s1", "s2"):
        network.link(network[switch], between)
    way = Ways(network).between("a", "b")
    assert way is not None
    assert way.nodes == ("s1", "s2")
    network.find_link("s1", "s2").up = False
    assert Ways(network).between("a", "b") is None
    stream = traffic("udp", ["a"], packets_per_second=1000, payload="100 B", duration="10 s")
    assert needed(network, stream) == 0


def forecast_of(carried: int | None, *needs: float, side_by_side: int = 1) -> Forecast:
    return Forecast({f"run-{number}": one for number, one in enumerate(needs)}, carried, side_by_side)


def test_it_says_which_runs_exceed_the_machine_and_names_the_rates():
    study = load_study("tcp-udp-queues", {}, "tiny")
    told = forecast_of(60_000, 80_100, 79_900, 30_000).sentence(study)
    assert told == (
        "2 of 3 runs need about 80,000 frames/s; this machine carries 60,000: use --clock virtual, "
        "or multiply the rates (link_rate, queue_rate, udp_rate) by 0.74."
    )
    assert "about 30,000 frames/s each, 3 side by side" in forecast_of(60_000, 30_000, 30_000, side_by_side=3).sentence(
        study
    )
    assert forecast_of(60_000, 59_000).exceeding == []
    assert forecast_of(60_000, 59_000).sentence(study).startswith("No run needs more than the machine has")
    assert "`twinnet doctor` measures" in forecast_of(None, 59_000).sentence(study)


SCALED = """
study: scaled
title: A study with a scale
question: Does it fit?
parameters: {scale: 2, link_rate: 10 Mbit}
network:
  hosts: {h1: , h2: }
  links: [{between: [h1, h2], rate: "${link_rate}"}]
traffic:
  - {name: bulk, app: tcp, from: [h1], to: h2, port: 5002, duration: "${scale} s"}
measurements:
  rate: {of: throughput, interval: 1 s}
repetitions: 4
"""


def test_a_study_with_a_scale_is_told_the_scale_that_fits(tmp_path: Path):
    (tmp_path / "study.yaml").write_text(SCALED)
    study = load_study(tmp_path / "study.yaml")
    told = forecast_of(60_000, 80_000).sentence(study)
    assert told.endswith(
        "1 of 1 run needs about 80,000 frames/s; this machine carries 60,000: use --clock virtual, or scale 1.5."
    )


def test_no_factor_is_promised_that_does_not_make_it_fit(tmp_path: Path):
    # The links' rate alone does not lower what a sender offers on a line that has room for it.
    offered = "{name: flood, app: udp, from: [h1], to: h2, port: 5003, duration: 1 s, exact: true, rate: 100 Mbit}"
    text = SCALED.replace("scale: 2, ", "other_rate: 1 Mbit, ").splitlines()
    small = '{name: small, app: udp, from: [h2], to: h1, port: 5004, duration: 1 s, rate: "${other_rate}"}'
    lines = [f"  - {offered}\n  - {small}" if "name: bulk" in line else line for line in text]
    (tmp_path / "study.yaml").write_text("\n".join(lines).replace("link_rate: 10 Mbit", "link_rate: 1 Gbit"))
    study = load_study(tmp_path / "study.yaml")
    told = forecast_runs(plan_study(study), 8000).sentence(study)
    assert "need about 17,000 frames/s; this machine carries 8,000: use --clock virtual, or lower the rates of" in told


def test_the_runs_say_afterwards_whether_the_forecast_was_right(tmp_path: Path):
    study = load_study("tcp-udp-queues", {"repetitions": "2"}, preset="tiny")
    plan, store = plan_study(study), ResultStore(tmp_path / "results")
    store.write_study(study)
    shared = {run.id: 90_000.0 if run.levels["queues"] == "shared" else 10_000.0 for run in plan}
    forecast = Forecast(shared, 60_000)
    run_plan(
        [run for run in plan if run.levels["queues"] == "shared"], store, FluidLab("invalid"), Silent(), 1, forecast
    )
    run_plan(plan, store, FluidLab("valid"), Silent(), 1, forecast)
    analysis = Analysis(study, store)
    assert (
        "Forecast: 2 of 4 runs were expected to exceed the machine, and 2 of these were not valid; of the other 2 0 "
        "were not." in fidelity_sentences(analysis)
    )
    assert summary_record(analysis)["forecast"] == {
        "exceeding": 2,
        "exceeding_not_valid": 2,
        "others": 2,
        "others_not_valid": 0,
    }
    frame = runs_frame(analysis)
    assert dict(zip(frame["run"], frame["expected_to_exceed"], strict=True)) == {
        run.id: run.levels["queues"] == "shared" for run in plan
    }
    assert sorted(set(frame["needed_frames_per_second"])) == [10_000, 90_000]


def test_results_without_a_forecast_say_nothing_of_one(tmp_path: Path):
    study = load_study("tcp-udp-queues", {}, preset="tiny")
    store = ResultStore(tmp_path / "results")
    store.write_study(study)
    run_plan(plan_study(study), store, FluidLab(), Silent())
    analysis = Analysis(study, store)
    assert not any("Forecast" in one for one in fidelity_sentences(analysis))
    assert runs_frame(analysis)["expected_to_exceed"].to_list() == [None, None]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "twinnet" / "capacity.json"


def carrying(frames: int, measured: datetime = NOON, **machine: object) -> Capacity:
    """A machine that carries `frames` for seconds."""
    moment = round(frames / LASTING)
    return Capacity(moment, 2 * moment, {**this_machine(), **machine}, measured)


def test_the_figure_is_kept_for_a_week_and_for_this_machine(cache: Path):
    assert kept_in() == cache
    assert kept_capacity(now=NOON) is None
    assert keep(carrying(60_000)) == ""
    kept = kept_capacity(now=NOON + timedelta(days=7))
    assert kept == carrying(60_000)
    assert kept is not None
    assert kept.frames_per_second == 60_000
    assert kept_capacity(now=NOON + timedelta(days=7, seconds=1)) is None
    assert kept_capacity(now=NOON - timedelta(seconds=1)) is None
    keep(carrying(60_000, kernel="another"))
    assert kept_capacity(now=NOON) is None


@pytest.mark.parametrize("content", ["", "{}", "[]", "7", '{"format": 2}', '{"format": 1, "measured": 5}', "\xff"])
def test_a_file_that_holds_something_else_counts_as_none(cache: Path, content: str):
    cache.parent.mkdir(parents=True)
    cache.write_text(content, encoding="latin-1")
    assert kept_capacity(now=NOON) is None


def test_a_figure_that_cannot_be_kept_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert "file" in keep(carrying(1), tmp_path / "file" / "capacity.json")


def test_a_relative_cache_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kept_in() == tmp_path / ".cache" / "twinnet" / "capacity.json"


def test_the_search_ends_within_a_sixth_below_what_is_carried():
    for most in (0, 1, 5, 17, 31, 32):
        found = greatest(32, lambda pairs, most=most: pairs <= most)
        assert found <= most <= found + max(1, found // 6)


def test_one_failure_does_not_end_the_search():
    seen: set[int] = set()

    def failing_once(pairs: int) -> bool:
        fresh = pairs not in seen
        seen.add(pairs)
        return not fresh

    assert greatest(32, failing_once) >= 28


def record(**changes: object) -> FidelityRecord:
    agent = {"timers": 1000, "lateness_ns": {"p99": 2_000_000}, "waited_s": 0.0}
    spec = {"elapsed_ps": 300_000_000_000, "handed_over": 1000, "lateness_ns": {"p999": 900_000}, "agent": agent}
    return FidelityRecord.from_spec({**spec, **changes})


def test_what_counts_as_carried():
    assert kept_up(record(), 1000)
    assert not kept_up(record(), 1010)
    assert not kept_up(record(lateness_ns={"p999": 1_100_000}), 1000)
    assert not kept_up(record(slipped_ps=2_000_000_000), 1000)
    assert not kept_up(record(interface_drops=1), 1000)
    behind = {"timers": 1000, "lateness_ns": {"p99": 0}, "waited_s": 0.0, "overloaded_senders": 1}
    assert not kept_up(record(agent=behind), 1000)


def test_a_machine_is_measured_once_and_the_runs_that_exceed_it_are_told(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    measured: list[int] = []

    def measure() -> Capacity:
        measured.append(1)
        return carrying(1000, datetime.now(UTC))

    monkeypatch.setattr(capacity_module, "measure_capacity", measure)
    study = load_study("tcp-udp-queues", {}, preset="tiny")
    plan, store = plan_study(study), ResultStore(tmp_path / "results")
    told: list[str] = []
    forecast = forecast_here(study, plan, store, 1, told.append)
    assert forecast is not None
    assert len(forecast.exceeding) == 2
    assert [one.split(";")[0] for one in told[:1]] == ["Measuring what this machine carries"]
    assert told[1].startswith("2 of 2 runs need about ")
    forecast_here(study, plan, store, 1, told.append)
    assert len(measured) == 1
    run_plan(plan, store, FluidLab(), Silent())
    assert forecast_here(study, plan, store, 1, told.append) is None


def test_a_dry_run_tells_the_forecast_from_what_is_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    asked = ["run", "tcp-udp-queues", "--preset", "demo", "--clock", "wall", "--dry-run"]
    assert command_line(asked) == 0
    assert "`twinnet doctor` measures what this machine carries" in capsys.readouterr().out
    keep(carrying(20_000, datetime.now(UTC)))
    assert command_line(asked) == 0
    assert "this machine carries 20,000: use --clock virtual" in capsys.readouterr().out
    assert command_line([*asked, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert {run["forecast"]["exceeds"] for run in runs} == {True}
    assert command_line(["run", "tcp-udp-queues", "--preset", "demo", "--clock", "virtual", "--dry-run"]) == 0
    assert "frames/s" not in capsys.readouterr().out


def test_the_doctor_tells_what_the_machine_carries(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from twinnet import _core

    monkeypatch.setattr(_core, "doctor", lambda: json.dumps([]))
    monkeypatch.setattr(
        capacity_module, "measure_capacity", lambda: Capacity(80_000, 160_000, this_machine(), datetime.now(UTC))
    )
    assert command_line(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "NO  frames a second: 36,000 in and out" in told
    assert "remedy: " in told
    assert command_line(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[-1]["frames_per_second"] == {
        "any": 36_000,
        "64_bytes": 80_000,
        "1470_bytes": 160_000,
    }
    assert kept_capacity() is not None
