"""Mixes of levels over hosts: each host of a mix sends what its part says, and each run deals them anew."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from refused_studies import refusal
from twinnet.cli import run as command_line
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study

STUDY = """\
study: mix
title: Slow and fast senders
question: What do ten hosts send, some of them fast?
parameters:
  fast: {default: 1}
network:
  template: single:11
  link_defaults: {rate: 10 Mbit}
mixes:
  speed: {slow: 3, fast: "${fast}"}
traffic:
  - {name: slow, part: speed.slow, app: udp, from: ["h{1..8}"], to: h11, port: 5001, packets_per_second: 10,
     payload: 100 B, duration: 1 s, apart: 10 ms}
  - {name: fast, part: speed.fast, app: udp, from: ["h{1..8}"], to: h11, port: 5002, packets_per_second: 100,
     payload: 100 B, duration: 1 s, apart: 10 ms}
  - {name: beside, app: udp, from: [h9], to: h11, port: 5003, packets_per_second: 10, payload: 100 B, duration: 1 s}
measurements:
  rate: {of: packet_rate, only: [slow, fast]}
repetitions: 4
clock: virtual
settle: 100 ms
drain: 100 ms
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "mix.yaml"
    path.write_text(STUDY)
    return path


def test_each_run_deals_the_hosts_anew_by_their_weights(study: Path) -> None:
    runs = plan_study(load_study(study))
    dealt = [{one.name: one.sources for one in run.specification.traffic} for run in runs]
    everybody = [f"h{number}" for number in range(1, 9)]
    for one in dealt:
        assert (len(one["slow"]), len(one["fast"]), one["beside"]) == (6, 2, ["h9"])
        assert sorted(one["slow"] + one["fast"]) == everybody
        # In the order of the file.
        assert one["slow"] == sorted(one["slow"])
    assert len({tuple(one["fast"]) for one in dealt}) > 1
    assert [run.specification.traffic for run in plan_study(load_study(study))] == [
        run.specification.traffic for run in runs
    ]


def test_a_host_begins_when_it_would_without_the_mix(study: Path) -> None:
    for run in plan_study(load_study(study)):
        starts = [one.starts_ps for one in run.specification.traffic if one.name != "beside"]
        assert {host: ps for one in starts for host, ps in one.items()} == {
            f"h{number}": (number - 1) * 10**10 for number in range(1, 9)
        }


def test_a_mix_of_one_part_is_none(study: Path) -> None:
    whole = load_study(study, {"fast": "0"})
    assert [one.name for one in whole.specification.traffic] == ["slow", "beside"]
    assert whole.specification.measurements["rate"].only == ["slow"]
    named = [(run.id, run.digest) for run in plan_study(whole)]
    plain = STUDY.replace("part: speed.slow, ", "").replace("only: [slow, fast]", "only: [slow]")
    begin, end = plain.index("mixes:"), plain.index("traffic:")
    fast = plain.index("  - {name: fast"), plain.index("  - {name: beside")
    study.write_text(
        plain[: plain.index("parameters:")]
        + plain[plain.index("network:") : begin]
        + plain[end : fast[0]]
        + plain[fast[1] :]
    )
    assert [(run.id, run.digest) for run in plan_study(load_study(study))] == named


def test_what_hosts_send_is_measured_and_recorded(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line(["run", str(study), "--out", str(tmp_path)]) == 0
    fast: set[tuple[str, ...]] = set()
    for path in sorted((tmp_path / "mix").glob("*/run.json")):
        flows = pl.read_parquet(path.parent / "flows.parquet").filter(role="sink")
        counts = dict(flows.group_by("name").agg(pl.col("packets").sum()).iter_rows())
        assert counts == {"slow": 60, "fast": 200, "beside": 10}
        told = {one["name"]: one["from"] for one in json.loads(path.read_text())["specification"]["traffic"]}
        seen = {name: sorted(flows.filter(name=name)["from_host"]) for name in told}
        assert seen == {name: sorted(hosts) for name, hosts in told.items()}
        fast.add(tuple(told["fast"]))
    assert len(fast) > 1
    page = (tmp_path / "mix" / "report" / "report.html").read_text()
    assert "(0.25 of them in each run, by chance: speed.fast)" in page


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("part: speed.fast", "part: speed.fats", "is of the part 'speed.fats'; did you mean 'speed.fast'"),
        ("part: speed.fast", "part: fast", "part"),
        ("speed: {slow: 3,", "speed: {slow: -1,", "mixes.speed.slow"),
        ("{slow: 3, fast: \"${fast}\"}", "{slow: 0, fast: 0}", "no part of the mix speed has a weight above 0"),
        ("only: [slow, fast]", "only: [beside]", None),
    ],
)  # fmt: skip
def test_mixes_that_cannot_be_dealt_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str | None
) -> None:
    assert old in STUDY
    text = STUDY.replace(old, new)
    if "fast: 0}" in new:
        text = text.replace("parameters:\n  fast: {default: 1}\n", "")
    if message is None:
        (tmp_path / "right.yaml").write_text(text)
        assert load_study(tmp_path / "right.yaml").specification.measurements["rate"].only == ["beside"]
        return
    assert message in refusal(text, tmp_path, capsys)


def test_clients_of_class_profiles_load_low_or_high() -> None:
    (run, *_) = plan_study(load_study("qos-class-profiles", {"high": "1"}, preset="tiny"))
    asked = {one.name: len(one.sources) for one in run.specification.traffic if one.name.startswith(("http", "video"))}
    of_http = {name: count for name, count in asked.items() if name.startswith("http")}
    assert sum(of_http.values()) == 6 and sum(count for name, count in of_http.items() if "high" in name) == 3
    sizes = {one.name: one.sends["bytes"] for one in run.specification.traffic if one.app == "http"}
    larger = {name: size for name, size in sizes.items() if name.endswith("-high")}
    assert larger and all(
        size == 10 * sizes[base] for name, size in larger.items() if (base := name.removesuffix("-high")) in sizes
    )
