"""Windows of time for every measurement, and the warm-up that a run tells itself."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import twinnet as tn
from made_studies import made_study
from refused_studies import refusal
from study_networks import two_senders
from twinnet.errors import BadValue
from twinnet.report.summary import fidelity_sentences
from twinnet.results.tables import table
from twinnet.study.measurement import Measurement
from twinnet.study.plan import plan_study
from twinnet.study.predicate import Names, aggregate_of, parse_check
from twinnet.study.quantities import QUANTITIES
from twinnet.study.resolution import load_study
from twinnet.study.run_quantities import RunTables
from twinnet.study.value_functions import parse_function
from twinnet.study.window import WARM_UP, parse_window, warm_up_length
from twinnet.study.windowed import in_intervals

FLOWS: list[dict[str, Any]] = [
    {"name": "voice", "protocol": "udp", "role": "sink", "from_host": "h1", "packets": 9, "lost_packets": 1},
    {"name": "voice", "protocol": "udp", "role": "source", "from_host": "h1", "packets": 10, "start_s": 0.0}
    | {"end_s": 0.9},
    {"name": "file", "protocol": "tcp", "role": "source", "from_host": "h2", "start_s": 0.0, "end_s": 1.0},
    {"name": "file", "protocol": "tcp", "role": "source", "from_host": "h3", "start_s": 0.5, "end_s": 2.5},
]
PACKETS: list[dict[str, Any]] = [
    {"name": "voice", "protocol": "udp", "from_host": "h1", "number": number, "sent_s": 0.1 * number}
    | {"arrived_s": 0.1 * number + 0.01, "delay_ms": 10.0 + number}
    for number in range(10)
    if number != 7
]
INTERVALS: list[dict[str, Any]] = [
    {"name": name, "protocol": "udp", "role": "sink", "from_host": name, "start_s": 0.5 * place, "length_s": 0.5}
    | {"payload_bytes": 100 * count, "packets": count, "rtt_mean_ms": 1.0 * count, "rtt_min_ms": 0.5 * count}
    | {"rtt_max_ms": 2.0 * count}
    for name, counts in {"x": (10, 20, 30, 40), "y": (10, 20, 10, 40)}.items()
    for place, count in enumerate(counts)
]


def value(of: str, function: str = "mean", **settings: Any) -> float:
    tables = {"flows": FLOWS, "packets": PACKETS, "intervals": INTERVALS}
    run: Any = SimpleNamespace(table=lambda name: table(name, tables[name]))
    measurement = Measurement.model_validate({"of": of, **settings})
    return RunTables(run, {"it": measurement}, 2.0).value(
        aggregate_of("it", function=parse_function(function, measurement.unit))
    )


@pytest.mark.parametrize(
    ("of", "function", "settings", "expected"),
    [
        # Of those that were sent from 0.3 s to 0.6 s: 13, 14 and 15 ms.
        ("delay", "mean", {"during": "300 ms to 600 ms"}, 14e-3),
        ("delay", "max", {"during": "300 ms to 600 ms"}, 15e-3),
        ("delay", "p50", {"after": "500 ms"}, 18e-3),
        # Number 7 was lost, one of 5 from half a second on.
        ("loss", "mean", {"after": "500 ms"}, 0.2),
        ("loss", "mean", {"during": "0 s to 700 ms"}, 0.0),
        ("delay", "share < 16 ms", {"after": "500 ms"}, 0.2),
        ("transfer_time", "mean", {"only": ["file"], "after": "100 ms"}, 2.0),
        ("transfer_time", "p50", {"only": ["file"], "during": "0 s to 100 ms"}, 1.0),
        # Two flows, of 50 and 30 packets in the second that the window holds.
        ("packet_rate", "max", {"during": "500 ms to 1500 ms"}, 50.0),
        ("packet_rate", "mean", {"during": "500 ms to 1500 ms"}, 40.0),
        ("fairness", "mean", {"during": "500 ms to 1500 ms"}, 80**2 / (2 * (50**2 + 30**2))),
        ("rtt", "mean", {"during": "1 s to 1500 ms"}, (30 * 30 + 10 * 10) / 40 * 1e-3),
        ("rtt", "min", {"during": "1 s to 1500 ms"}, 5e-3),
        ("rtt", "max", {"during": "1 s to 1500 ms"}, 60e-3),
        ("throughput", "mean", {"interval": "500 ms", "during": "1 s to 1500 ms"}, 4000 * 8 / 0.5),
        ("throughput", "mean", {"interval": "500 ms", "after": "1 s"}, (4000 + 8000) * 8),
        ("throughput", "max", {"interval": "500 ms", "after": "500 ms"}, 8000 * 8 / 0.5),
    ],
)
def test_a_window_holds_what_was_sent_or_counted_in_it(
    of: str, function: str, settings: dict[str, Any], expected: float
) -> None:
    assert value(of, function, **settings) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("of", "settings", "message"),
    [
        ("delay", {"after": "2 s"}, "nothing was sent between 2 s and inf s"),
        ("fairness", {"during": "1 s to 1200 ms"}, "no whole interval lies between 1 s and 1.2 s"),
        ("throughput", {"interval": "500 ms", "after": "3 s"}, "traffic had ended at 2 s"),
        ("reordering", {"after": "1 s"}, "reordering is of the whole run, and of no window"),
        ("delay", {"after": "warm-up"}, "9 values are too few to look for a warm-up, which takes 50"),
        ("fairness", {"after": "warm-up"}, "fairness has no values over time"),
    ],
)
def test_an_empty_window_has_no_value(of: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(LookupError) as caught:
        value(of, **settings)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("during", "after", "message"),
    [
        ("5 s", None, "'5 s' is no window; write for example '5 s to 20 s'"),
        ("5 to 20 s", None, "'during'"),
        ("20 s to 5 s", None, "ends before it begins"),
        (None, "2", "'after'"),
        (None, "warmup", "write a time such as '2 s', or warm-up"),
        ("1 s to 2 s", "1 s", "are two windows; give one"),
    ],
)
def test_windows_that_are_none_are_refused(during: str | None, after: str | None, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_window(during, after)
    assert message in str(caught.value)
    assert parse_window("5 s to 20 s", None) == (5.0, 20.0)
    assert parse_window(None, "warm-up") == WARM_UP


@pytest.mark.parametrize("name", [name for name, one in QUANTITIES.items() if one.window == "intervals"])
def test_each_quantity_of_intervals_is_counted_from_intervals(name: str) -> None:
    assert in_intervals(name, table("intervals", INTERVALS), "mean", None) > 0


def test_a_quantity_that_nothing_counts_from_intervals_is_named() -> None:
    with pytest.raises(LookupError, match="own_share is not counted interval by interval"):
        in_intervals("own_share", pl.DataFrame({"length_s": [1.0]}), "mean", None)


def test_checks_take_windows() -> None:
    names = Names({}, {"delay": "s"})
    checks = {"after=2 s": (2.0, math.inf), "after=warm-up": WARM_UP, "during=[1 s, 2 s]": (1.0, 2.0)}
    for option, window in checks.items():
        (comparison,) = parse_check(f"mean(delay, {option}) < 3 ms", names)
        assert comparison.left[0].aggregate is not None
        assert comparison.left[0].aggregate.during_s == window
    with pytest.raises(ValueError, match="this is a second window"):
        parse_check("mean(delay, after=1 s, during=[1 s, 2 s]) < 3 ms", names)
    with pytest.raises(ValueError, match="a window's bounds are not measured"):
        parse_check("mean(delay, after=mean(delay)) < 3 ms", names)


def test_the_warm_up_ends_where_a_transient_does() -> None:
    noise = np.random.default_rng(3)
    cuts: list[int] = []
    for _ in range(200):
        values = noise.normal(10.0, 1.0, 1000)
        values[:200] += np.linspace(20.0, 0.0, 200)
        cuts.append(warm_up_length(values))
    # The transient is gone within the noise's deviation after 190 values; what stays moves the mean by less than 0.1.
    assert 150 <= np.median(cuts) <= 220


def test_steady_values_have_hardly_a_warm_up() -> None:
    noise = np.random.default_rng(4)
    cuts = [warm_up_length(noise.normal(10.0, 1.0, 1000)) for _ in range(200)]
    assert np.median(cuts) < 200
    assert warm_up_length(np.full(100, 1e9 / 3)) == 0


def test_what_never_settles_has_no_warm_up() -> None:
    with pytest.raises(LookupError, match="no steady state in 1000 values"):
        warm_up_length(np.linspace(0.0, 1.0, 1000))
    with pytest.raises(LookupError, match="49 values are too few"):
        warm_up_length(np.zeros(49))


STUDY = """\
study: windows
title: A call beside a transfer
question: How late is the call while the transfer is steady?
NETWORK
traffic:
  - {name: call, app: voice, from: [h1], to: h3, port: 5006, duration: 12 s, record_packets: 1000}
  - {name: bulk, app: tcp, from: [h2], to: h3, port: 5002, duration: 10 s}
measurements:
  whole: {of: delay, only: [call]}
  late: {of: delay, only: [call], during: 4 s to 8 s}
  quiet: {of: delay, only: [call], after: 11500 ms}
  steady: {of: throughput, interval: 200 ms, only: [bulk], after: warm-up}
vary_starts: 100 ms
repetitions: 3
clock: virtual
statements:
  - {id: quiet, text: Alone the call is fast., check: "mean(late) > mean(whole) > 5 * mean(quiet)"}
  - {id: own, text: Windows of statements are their own., check: "mean(late, after=11500 ms) < 0.2 * mean(late)"}
""".replace("NETWORK\n", two_senders("rate: 5 Mbit, delay: 10 ms, queue_b: {kind: fifo, limit_frames: 60}"))


def test_a_study_keeps_its_windows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tn.results.load(made_study(STUDY, tmp_path))
    shown = capsys.readouterr().out
    assert "4 to 8 s" in shown
    assert "Steady (after the warm-up): the first " in shown
    assert set(results.statements["verdict"]) == {"supported"}
    means = results.means
    assert means.filter(measurement="late").select("phase_start_s", "phase_end_s").row(0) == (4.0, 8.0)
    # The same by its name in Python, and by hand from the table of packets.
    packets = results.packets.filter(name="call")
    kept = packets.filter(packets["sent_s"].is_between(4.0, 8.0, closed="left"))
    by_hand = kept.group_by("run").agg(pl.col("delay_ms").mean())["delay_ms"].to_numpy().mean() / 1e3
    assert results.value("mean(whole, during=[4 s, 8 s])").estimate == pytest.approx(by_hand)
    assert results.value("mean(late)").low < results.value("mean(late)").estimate
    with pytest.raises(BadValue, match="unknown measurement 'nothing'"):
        results.value("mean(nothing)")
    with pytest.raises(BadValue, match="traffic had ended at 12 s, before the window begins"):
        results.value("mean(steady, after=30 s)")
    assert any("MSER-5" in one for one in fidelity_sentences(results._analysis))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("during: 4 s to 8 s", "during: 14 s to 18 s", "late: the window begins at 14 s, and its traffic ends at 12 s"),
        ("during: 4 s to 8 s", "during: 4 s - 8 s", "'4 s - 8 s' is no window; write for example '5 s to 20 s'"),
        (", record_packets: 1000", "", "mean(late) in a window needs every packet: give the traffic call"),
        ("{of: delay, only: [call]}", "{of: reordering, after: 1 s}", "belongs to the whole run and takes no window"),
        ("{of: delay, only: [call]}", "{of: fairness, after: warm-up}", "no warm-up shows in it; give a time such as"),
        ("{of: delay, only: [call]}", "{of: rtt, show: p90, after: 1 s}", "in a window, flows keep no percentiles"),
    ],
)  # fmt: skip
def test_windows_that_no_run_can_fill_are_refused_when_the_file_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    assert old in STUDY
    assert message in refusal(STUDY.replace(old, new), tmp_path, capsys)


TRIMMED = STUDY.replace(", after: warm-up", "").replace("{of: delay, only: [call]}", "{of: reordering}").replace(
    "statements:\n", "trim: {beginning: 3 s, end: 2 s}\nstatements:\n"
).partition("statements:\n")[0]  # fmt: skip


def test_a_study_leaves_out_the_beginning_and_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "windows.yaml"
    path.write_text(TRIMMED)
    study = load_study(path)
    windows = {name: one.window for name, one in study.specification.measurements.items()}
    # The call, which lasts longer than the transfer, ends at 12 s.
    expected = {"whole": None, "late": (4.0, 8.0), "quiet": (11.5, math.inf), "steady": (3.0, 10.0)}
    assert windows == expected
    digests = [one.digest for one in plan_study(study)]
    path.write_text(TRIMMED.replace("trim: {beginning: 3 s, end: 2 s}\n", ""))
    assert [one.digest for one in plan_study(load_study(path))] == digests
    results = tn.results.load(made_study(TRIMMED, tmp_path, "--repeat", "1"))
    assert "3 to 10 s" in capsys.readouterr().out
    shown = results.means.filter(measurement="steady")
    assert shown.select("phase_start_s", "phase_end_s").row(0) == (3.0, 10.0)
    assert results.value("mean(steady)").estimate == results.value("mean(steady, during=[3 s, 10 s])").estimate
    assert results.value("mean(steady)").estimate != results.value("mean(steady, during=[0 s, 10 s])").estimate


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("end: 2 s", "end: 9 s", "'trim' leaves nothing of the 12 s of traffic"),
        ("end: 2 s", "end: 8900 ms", "'trim' leaves 0.1 s of the 12 s of traffic, and steady is counted"),
        ("end: 2 s", "end: 2 s, only: [steadi]", "'trim' names the measurement 'steadi'"),
        ("end: 2 s", "end: 2 s, only: [whole]", "whole is a reordering: it belongs to the whole run"),
        ("end: 2 s", "last: 2 s", "unknown key"),
        (", during: 4 s to 8 s", "", "mean(late) in a window needs every packet: give the traffic call"),
        ("port: 5002, duration: 10 s", "port: 5002, bytes: 5 MB", None),
    ],
)  # fmt: skip
def test_what_leaves_nothing_to_measure_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str | None
) -> None:
    assert old in TRIMMED
    text = TRIMMED.replace(old, new)
    if message is None:
        (tmp_path / "right.yaml").write_text(text)
        assert load_study(tmp_path / "right.yaml").specification.measurements["steady"].window == (3.0, 10.0)
        return
    if "every packet" in message:
        text = text.replace(", record_packets: 1000", "")
    assert message in refusal(text, tmp_path, capsys)


def test_nothing_is_left_out_at_no_time(tmp_path: Path) -> None:
    (tmp_path / "windows.yaml").write_text(TRIMMED.replace("beginning: 3 s, end: 2 s", "beginning: 0 s"))
    study = load_study(tmp_path / "windows.yaml")
    assert study.specification.measurements["steady"].window is None
