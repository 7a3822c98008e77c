"""Percentiles and shares of what was measured: lost datagrams have an infinite delay, and count."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from made_studies import made_study
from refused_studies import refusal
from study_networks import two_senders
from twinnet.report.naming import measurement_title
from twinnet.report.wording import value_with_interval, worded_value
from twinnet.results.datagrams import datagrams_sent
from twinnet.results.tables import table
from twinnet.stats import Interval, anderson_darling, t_interval
from twinnet.study.contrast import sum_of_means
from twinnet.study.machine_blocks import difference_in_blocks, mean_of_repetitions
from twinnet.study.measurement import Measurement
from twinnet.study.predicate import Aggregate, Names, parse_check
from twinnet.study.quantity import parse_quantity
from twinnet.study.run_quantities import RunTables
from twinnet.study.specification import Statement
from twinnet.study.value_functions import parse_function, value_of
from twinnet.study.verdict import judge

FLOWS: list[dict[str, Any]] = [
    {"name": "voice", "protocol": "udp", "role": "sink", "from_host": "h1", "packets": 8, "lost_packets": 2},
    {"name": "voice", "protocol": "udp", "role": "source", "from_host": "h1", "packets": 10, "start_s": 0.0}
    | {"end_s": 0.9},
    {"name": "ping", "protocol": "icmp", "role": "source", "from_host": "h2", "packets": 10, "lost_packets": 0}
    | {"rtt_count": 10, "rtt_mean_ms": 3.0, "rtt_p50_ms": 2.0, "rtt_p90_ms": 8.0, "rtt_p99_ms": 9.0},
    {"name": "file", "protocol": "tcp", "role": "source", "from_host": "h2", "start_s": 0.0, "end_s": 1.0},
    {"name": "file", "protocol": "tcp", "role": "source", "from_host": "h3", "start_s": 0.0, "end_s": 3.0},
]
ARRIVED = [0, 1, 3, 4, 5, 6, 7, 8]
PACKETS: list[dict[str, Any]] = [
    {"name": "voice", "protocol": "udp", "from_host": "h1", "number": number, "sent_s": 0.1 * number}
    | {"arrived_s": 0.1 * number + 0.01, "delay_ms": 10.0 + number, "gap_ms": 100.0}
    for number in ARRIVED
]
INTERVALS: list[dict[str, Any]] = [
    {"name": "file", "protocol": "tcp", "role": "sink", "from_host": "h2", "start_s": 0.5 * place, "length_s": 0.5}
    | {"payload_bytes": size}
    for place, size in enumerate((1000, 3000, 2000, 5000))
]


def value(of: str, function: str, packets: list[dict[str, Any]] = PACKETS, **settings: Any) -> float:
    tables = {"flows": FLOWS, "packets": packets, "intervals": INTERVALS}
    run: Any = SimpleNamespace(table=lambda name: table(name, tables[name]))
    measurement = Measurement.model_validate({"of": of, **settings})
    meant = parse_function(function, measurement.unit)
    return RunTables(run, {"it": measurement}, 2.0).value(Aggregate(meant.name, "it", (), None, (), meant.bound))


@pytest.mark.parametrize(
    ("of", "function", "expected"),
    [
        # Ten were sent: delays 10, 11, 13 to 18 ms, and two never arrived.
        ("delay", "p50", 15e-3),
        ("delay", "median", 15.5e-3),
        ("delay", "p80", 18e-3),
        ("delay", "p80.1", math.inf),
        ("delay", "p99", math.inf),
        ("delay", "share < 14 ms", 0.3),
        ("delay", "share <= 14 ms", 0.4),
        ("delay", "share > 14 ms", 0.6),
        ("delay", "share >= 14 ms", 0.7),
        ("delay", "share < 1 s", 0.8),
        # A packet that was lost has no gap.
        ("gap", "share < 1 s", 1.0),
        ("rtt", "p90", 8e-3),
        ("rtt", "median", 2e-3),
        ("transfer_time", "p50", 1.0),
        ("transfer_time", "median", 2.0),
        ("transfer_time", "share < 2 s", 0.5),
    ],
)
def test_percentiles_and_shares_are_of_all_that_was_sent(of: str, function: str, expected: float) -> None:
    assert value(of, function, **({"only": ["file"]} if of == "transfer_time" else {})) == pytest.approx(expected)


def noisy(gaps: list[float]) -> list[dict[str, Any]]:
    return [{**PACKETS[0], "number": place, "gap_ms": gap} for place, gap in enumerate(gaps)]


def test_normality_is_the_p_value_of_the_values_in_a_run_without_unit() -> None:
    random = np.random.default_rng(7)
    gaps = list(random.normal(100.0, 3.0, 300))
    found = value("gap", "normality", noisy(gaps))
    assert found == pytest.approx(anderson_darling(gaps).p_value) and found > 0.05
    assert value("gap", "normality", noisy(list(random.exponential(100.0, 300)))) < 1e-6
    measured = Measurement.model_validate({"of": "gap", "show": "normality"})
    assert measured.shown_unit == "1"
    with pytest.raises(LookupError, match="all values are equal"):
        value("gap", "normality")
    with pytest.raises(LookupError, match="7 values are too few"):
        value_of("normality", None, np.array(gaps[:7]))


def test_one_normal_series_refutes_that_none_is() -> None:
    check = parse_check("normality(it) < 0.05", Names({}, {"it": "s"}))
    skewed, normal = {"normality(it)": 0.0}, {"normality(it)": 0.4}

    def run(level: str, repetition: int, values: dict[str, float]) -> Any:
        stored = SimpleNamespace(levels={"case": level}, repetition=repetition, record={"clock": "virtual"})
        return SimpleNamespace(
            run=stored,
            fingerprint=(repetition,),
            is_drawn=True,
            value=lambda one: values[one.text],
            grain=lambda one: 1e-3,
            flow_of=lambda one: "",
            measurements={"it": Measurement(of="delay")},
        )

    statement = Statement(id="x", text="x", source="", check="normality(it) < 0.05")
    runs = [run(level, repetition, skewed) for level in ("a", "b") for repetition in range(1, 6)]
    assert judge(statement, check, runs, 0.95).verdict == "supported"
    runs[3] = run("a", 4, normal)
    found = judge(statement, check, runs, 0.95)
    assert found.verdict == "not supported"
    assert "case=a, repetition 4" in found.comparisons[0].how


def test_percentiles_of_a_throughput_are_over_its_intervals() -> None:
    settings = {"interval": "500 ms"}
    assert value("throughput", "p50", **settings) == pytest.approx(2000 * 8 / 0.5)
    assert value("throughput", "share < 40 kbit", **settings) == pytest.approx(0.5)


def test_what_only_flows_tell_has_no_other_percentiles() -> None:
    with pytest.raises(LookupError, match="flows keep median, p90 and p99 of rtt"):
        value("rtt", "p95")
    with pytest.raises(LookupError, match="a run has one value of loss"):
        value("loss", "std")


def test_packets_that_were_not_kept_are_missed() -> None:
    with pytest.raises(LookupError, match=r"5 of 8 packets of voice from h1 were kept; .* 'record_packets: 10'"):
        value("delay", "p50", PACKETS[:5])


def test_the_time_of_a_lost_datagram_follows_from_those_around_it() -> None:
    sent = datagrams_sent(table("flows", FLOWS), table("packets", PACKETS))
    lost = sent.filter(~pl.col("arrived"))["sent_s"].to_list()
    # Number 2 lay between two that arrived; number 9 was the last one, sent when the source ended.
    assert lost == pytest.approx([0.2, 0.9])
    assert sent.height == 10


def test_all_lost_or_first_lost_are_times_of_the_source() -> None:
    nothing = [FLOWS[0] | {"packets": 0, "lost_packets": 10}, FLOWS[1]]
    sent = datagrams_sent(table("flows", nothing), table("packets", []))
    assert sent["sent_s"].to_list() == pytest.approx(np.linspace(0, 0.9, 10))
    first = [FLOWS[0] | {"packets": 7, "lost_packets": 3}, FLOWS[1]]
    sent = datagrams_sent(table("flows", first), table("packets", PACKETS[1:]))
    assert sent.filter(~pl.col("arrived"))["sent_s"].to_list() == pytest.approx([0.0, 0.2, 0.9])
    # RTP has no first number, so that the time tells.
    rtp = [row | {"protocol": "rtp"} for row in first]
    packets = [row | {"protocol": "rtp", "number": row["number"] - 1} for row in PACKETS[1:]]
    sent = datagrams_sent(table("flows", rtp), table("packets", packets))
    assert sent.filter(~pl.col("arrived"))["sent_s"].to_list() == pytest.approx([0.0, 0.2, 0.9])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p0", "the least value is min"),
        ("p100", "write p1 to p99"),
        ("p", "unknown function 'p'; did you mean"),
        ("share", "a share needs a bound"),
        ("share < 3", "3 is no bound of a time; write for example 'share < 3 ms'"),
        ("share < 3 Mbit", "3 Mbit is no bound of a time"),
        ("share < soon", "soon is no bound of a time"),
    ],
)
def test_functions_that_are_none_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_function(text, "s")
    assert message in str(caught.value)


NAMES = Names({"bound": parse_quantity("20 ms")}, {"delay": "s", "throughput": "bit/s", "lost": "1"})


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("share(delay) > 0.5", "column 12 of 'share(delay) > 0.5': expected a bound, such as"),
        ("share(delay < 3) > 0.5", "3 has no unit, and delay is a time; write for example '3 ms'"),
        ("share(delay < mean(delay)) > 0.5", "the bound of a share is not measured"),
        ("share(delay < bound) > 3 ms", "3 ms is a time, and share(delay < bound) is a share"),
        ("p100(delay) < 3 ms", "p100 is no percentile"),
        ("percentile(delay) < 3 ms", "unknown function 'percentile'"),
        ("mean(delay) < 5 %", "5 % has no unit, and mean(delay) is a time"),
    ],
)
def test_checks_with_wrong_shares_are_refused_at_their_column(check: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_check(check, NAMES)
    assert message in str(caught.value)


def test_a_share_is_compared_with_a_percentage() -> None:
    (comparison,) = parse_check("share(delay[flow=voice] < 0.5 * bound) >= 99.5 %", NAMES)
    assert comparison.left[0].aggregate is not None
    assert comparison.left[0].aggregate.bound == ("<", 0.01)
    assert comparison.right[0].factor == pytest.approx(0.995)
    # Behind `within` a percentage is a share of the right side.
    assert parse_check("mean(lost) = 4 % within 5 %", NAMES)[0].margin[0].factor == pytest.approx(0.002)


class _Run:
    measurements: ClassVar = {"delay": Measurement(of="delay")}

    def __init__(self, level: str, value: float) -> None:
        self.run = SimpleNamespace(levels={"queue": level}, record={"clock": "wall", "machine": {"name": "m"}})
        self._value = value

    def value(self, aggregate: Aggregate) -> float:
        return self._value

    def grain(self, aggregate: Aggregate) -> float | None:
        return None


def interval(check: str, *runs: tuple[str, float]) -> tuple[Interval, str]:
    (comparison,) = parse_check(check, Names({}, {"delay": "s"}, {"queue": ["a", "b"]}))
    side = (*comparison.left, *(type(term)(-term.factor, term.aggregate) for term in comparison.right))
    made: Any = [_Run(*run) for run in runs]
    found = sum_of_means(side, made, 0.95)
    return found.interval, found.how


def test_an_infinite_percentile_decides_where_enough_runs_agree() -> None:
    lossy = [("a", math.inf)] * 5
    decided, how = interval("p99(delay, queue=a) < 20 ms", *lossy)
    assert decided.low == decided.high == math.inf
    assert how == "infinite in 5 of 5 runs: too much was lost there, or a transfer had not ended"
    undecided, how = interval("p99(delay, queue=a) < 20 ms", *lossy[:4])
    assert math.isnan(undecided.low)
    assert how.endswith("more repetitions may decide")
    mixed, how = interval("p99(delay, queue=a) < 20 ms", *lossy, ("a", 0.01))
    assert math.isnan(mixed.low) and "compare shares" in how
    # The others give the lower bound: whatever an infinite one is, the mean is no less than theirs.
    others = [("a", 0.05), ("a", 0.052), ("a", 0.051)]
    bounded, how = interval("p99(delay, queue=a) < 20 ms", *others, ("a", math.inf))
    assert bounded.low == pytest.approx(t_interval([0.03, 0.032, 0.031]).low) and bounded.high == math.inf
    assert "no less than that of the others" in how and "compare shares" in how
    less, _ = interval("p99(delay, queue=a) < p99(delay, queue=b)", *[("a", 0.01)] * 5, *[("b", math.inf)] * 5)
    assert less.high == -math.inf
    both, _ = interval("p99(delay, queue=a) < p99(delay, queue=b)", *lossy, *[("b", math.inf)] * 5)
    assert math.isnan(both.estimate)


def test_infinite_values_are_worded_and_not_tested() -> None:
    found = mean_of_repetitions([0.1, math.inf], 0.95)
    assert worded_value(math.inf, "s") == value_with_interval(found, "s") == "infinite"
    difference, test = difference_in_blocks([0.1, 0.2], ["", ""], [math.inf, 0.1], ["", ""], 0.95)
    assert difference.estimate == -math.inf
    assert test is None


def test_titles_say_what_is_shown() -> None:
    shown = Measurement.model_validate({"of": "delay", "show": "share <20 ms", "title": "Voice"})
    assert measurement_title("delay", shown) == "Voice (share < 20 ms)"
    assert shown.shown_unit == "1"


def test_a_value_needs_something_measured() -> None:
    with pytest.raises(LookupError, match="nothing that it selects"):
        value_of("p50", None, np.zeros(0))
    with pytest.raises(LookupError, match="none of 3 packets arrived"):
        value_of("mean", None, np.zeros(0), 3)


STUDY = """\
study: voice-beside
title: A voice beside UDP
question: How late is voice?
NETWORK
factors:
  queue:
    levels:
      short: {queues: {s1-eth3: {kind: fifo, limit_frames: 5}}}
      long: {queues: {s1-eth3: {kind: fifo, limit_frames: 50}}}
traffic:
  - {name: load, app: udp, from: [h1], to: h3, port: 5003, rate: 1950 kbit, duration: 4 s,
     process: poisson, payload: 500 B}
  - {name: voice, app: voice, from: [h2], to: h3, port: 5006, duration: 4 s, record_packets: 1000}
  - {name: bulk, app: tcp, from: [h2], to: h3, port: 5002, duration: 4 s}
measurements:
  late: {of: delay, only: [voice], show: p50}
  good: {of: delay, only: [voice], show: share < 20 ms, title: In time}
  lost: {of: loss, only: [voice]}
repetitions: 6
clock: virtual
answer: "{share(late < 20 ms, queue=long)} come in time in the long queue."
statements:
  - {id: every, text: All of voice is below 20 ms., check: "share(late < 20 ms, queue=short) = 1 within 1 %"}
  - {id: tail, text: Nine of ten are below 20 ms., check: "p90(late, queue=short) < 20 ms"}
  - {id: half, text: Half of it is faster., check: "p50(late, queue=short) < median(late, queue=long)"}
""".replace("NETWORK\n", two_senders("rate: 2 Mbit, delay: 1 ms"))


def test_a_study_judges_and_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = made_study(STUDY, tmp_path, "--json") / "report"
    record = json.loads(capsys.readouterr().out)
    # A third of the packets was lost, so that nine of ten cannot have come in time.
    assert {one["id"]: one["verdict"] for one in record["statements"]} == {
        "every": "not supported", "tail": "not supported", "half": "supported"
    }  # fmt: skip
    shown = {(one["measurement"], one["levels"]["queue"]): one for one in record["means"]}
    lost = shown["lost", "short"]["mean"]
    good = shown["good", "short"]
    assert lost > 0.2
    assert (good["statistic"], good["unit"]) == ("share < 20 ms", "1")
    assert 0 < good["mean"] <= 1 - lost + 1e-9
    assert shown["late", "short"]["mean"] < shown["late", "long"]["mean"]
    assert "In time (share &lt; 20 ms)" in (report / "report.html").read_text()
    assert r"good (share \textless{} 20 ms): mean" in (report / "good.tex").read_text()
    means = pl.read_csv(report / "means.csv")
    assert set(means["statistic"]) == {"p50", "share < 20 ms", "mean"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("p90(late, queue=short) < 20 ms", "p90(lost) < 3 %", "p90(lost): a run has one value of loss; write"),
        ("p90(late, queue=short) < 20 ms", "std(lost) < 3 %", "std(lost): a run has one value of loss"),
        ("p90(late, queue=short)", "p90(late[flow=vioce])", "late is of no flow=vioce; did you mean 'voice'?"),
        ("p90(late, queue=short)", "p90(late[port=s1-eth1])", "late is no port's: it has no port=s1-eth1"),
        ("p90(late, queue=short)", "p90(late[from=h7])", "late is of no from=h7"),
        ("{of: delay, only: [voice], show: p50}", "{of: delay, only: [bulk]}", "no traffic of late has a delay: it"),
        ("{of: delay, only: [voice], show: p50}", "{of: delay, show: p50}", "needs every packet: give the traffic"),
        ("{of: delay, only: [voice], show: p50}", "{of: jitter_rfc3550}", "has a jitter_rfc3550: it is of rtp"),
        ("{of: delay, only: [voice], show: p50}", "{of: delay, only: [voice], show: p}", "'show': unknown function"),
        (", record_packets: 1000", "", "needs every packet: give the traffic voice 'record_packets'"),
    ],
)  # fmt: skip
def test_what_no_run_can_give_is_refused_when_the_file_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    assert old in STUDY
    assert message in refusal(STUDY.replace(old, new), tmp_path, capsys)
