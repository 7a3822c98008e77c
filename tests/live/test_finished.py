"""A finished run, or two side by side, as a file for the browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from live_browser import expect, launched, needs_a_browser, opened
from made_studies import made_study
from study_networks import one_switch
from twinnet.cli import run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

STUDY = """\
study: waits
title: A queue
question: How long is the queue?
NETWORK
  schedule:
    - {at: 2 s, link: [s1, h2], set: {rate: 5 Mbit}}
factors:
  queue:
    levels:
      short: {queues: {s1 to h2: {kind: fifo, limit_frames: 10}}}
      long: {queues: {s1 to h2: {kind: fifo, limit_frames: 60}}}
traffic:
  - {name: load, app: udp, from: [h1], to: h2, port: 5003, rate: 20 Mbit, duration: 3 s}
measurements:
  waiting: {of: queue_length, interval: 100 ms, ports: [s1 to h2]}
repetitions: 1
clock: virtual
time_limit: 10 s
""".replace("NETWORK\n", one_switch("rate: 100 Mbit", "rate: 10 Mbit"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_study(STUDY, tmp_path_factory.mktemp("finished"), "--no-report")


def told(path: Path) -> dict[str, Any]:
    found = re.findall(r'<script id="recording" type="application/json">(.*?)</script>', path.read_text())
    assert len(found) == 1
    return json.loads(found[0])


def test_a_run_is_written_with_what_its_ports_did(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["live", str(results), "--run", "long"]) == 0
    path = Path(capsys.readouterr().out.removeprefix("wrote ").strip())
    assert path.parent == results / "report" / "runs" and path.name.startswith("long-")
    recorded = told(path)
    ports = [port for link in recorded["network"]["links"] for port in (link["a_port"], link["b_port"])]
    place = ports.index("s1-eth2")
    samples = pl.read_parquet(results / path.stem / "port_samples.parquet")
    ticks = recorded["ticks"]
    assert len(ticks) == samples.height
    assert [tick["ways"][place][2] for tick in ticks] == samples["backlog_frames"].to_list()
    assert [round(tick["now_s"], 6) for tick in ticks] == [round(0.1 * at, 6) for at in range(1, len(ticks) + 1)]
    # Only this port was sampled; of the others nothing is claimed.
    assert all(way is None for tick in ticks for at, way in enumerate(tick["ways"]) if at != place)
    dropped = samples["dropped_overlimit"].to_list()
    assert sum(dropped) > 100
    assert [(*tick["ways"][place], {})[6].get("drops", {}).get("overlimit", 0) for tick in ticks] == dropped
    # Its line is full until the schedule slows it down, and then full at half the rate.
    assert ticks[5]["ways"][place][1] == pytest.approx(1, abs=0.02) and ticks[5]["ways"][place][5] == 10_000_000
    assert ticks[25]["ways"][place][1] == pytest.approx(1, abs=0.02) and ticks[25]["ways"][place][5] == 5_000_000
    assert ticks[0]["verdict"]["state"] == "valid" and recorded["beside"] is None
    words = "s1-eth2 (s1 to h2, port 2, 10 Mbit/s): to be filled by load"
    assert recorded["network"]["filled"] == [{"way": place, "words": words}]


def test_a_run_has_the_ways_of_its_flows_as_they_were_half_way_through_its_traffic(results: Path) -> None:
    assert run(["live", str(results), "--run", "long"]) == 0
    (path,) = (results / "report" / "runs").glob("long-*.html")
    there, back = told(path)["network"]["followed"]
    assert (there["words"], back["words"]) == ("load: h1 to h2", "load: h2 to h1")
    assert there["at_s"] == back["at_s"] == 1.5
    assert there["way"]["arrives"] and [hop["node"] for hop in there["way"]["hops"]] == ["h1", "s1", "h2"]
    exits = {one["interface"]: one for hop in there["way"]["hops"] for one in hop["exits"]}
    # 60 frames may wait for the line of 10 Mbit/s, and do.
    assert 55 <= exits["s1-eth2"]["frames"] <= 61 and exits["h1-eth0"]["frames"] <= 1
    assert exits["s1-eth2"]["waits_ps"] > 55 * 1e9
    assert back["way"]["arrives"] and [hop["node"] for hop in back["way"]["hops"]] == ["h2", "s1", "h1"]


def test_a_run_has_a_table_of_its_flows(results: Path) -> None:
    assert run(["live", str(results), "--run", "long"]) == 0
    (path,) = (results / "report" / "runs").glob("long-*.html")
    kept = told(path)["network"]["traffic"]
    flows = {row["role"]: row for row in pl.read_parquet(results / path.stem / "flows.parquet").iter_rows(named=True)}
    assert kept["count"] == len(kept["rows"]) == 2
    rows = {row["host"]: row for row in kept["rows"]}
    assert (rows["h1"]["what"], rows["h2"]["what"]) == ("load: udp source", "load: udp sink")
    assert rows["h1"]["ends"] == rows["h2"]["ends"] == "h1 to h2, port 5003"
    received = rows["h2"]
    assert (received["bytes"], received["lost"]) == (flows["sink"]["payload_bytes"], flows["sink"]["lost_packets"])
    assert received["lost"] > 100
    assert received["mean_bps"] == pytest.approx(
        received["bytes"] * 8 / (received["end_s"] - received["start_s"]), rel=1e-3
    )
    assert rows["h1"]["window"] is None and rows["h1"]["rtt_ms"] is None


def test_the_report_leads_to_the_first_run_of_each_level(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(results)]) == 0
    assert "report.html" in capsys.readouterr().out
    page = (results / "report" / "report.html").read_text()
    led = re.findall(r'<a href="(runs/[^"]+\.html)"><code>([^<]+)</code></a>', page)
    assert [name.partition("-")[0] for _, name in led] == ["short", "long"]
    assert all(told(results / "report" / place)["network"]["lab"] == f"waits: {name}" for place, name in led)
    assert "The first run of each combination of levels has a page, to which its name leads. Of any other" in page


@pytest.mark.parametrize("bound", ["_MOST_RECORDINGS", "_MOST_BYTES"])
def test_pages_of_a_report_are_bounded_and_it_says_what_was_left_out(
    results: Path, tmp_path: Path, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(results, tmp_path / "waits", ignore=shutil.ignore_patterns("report"))
    # A page has about 110 kB: there is room for one and not for two.
    monkeypatch.setattr(f"twinnet.live.finished.{bound}", 1 if bound == "_MOST_RECORDINGS" else 200_000)
    assert run(["report", str(copy)]) == 0
    page = (copy / "report" / "report.html").read_text()
    [(place, name)] = re.findall(r'<a href="(runs/[^"]+\.html)"><code>([^<]+)</code></a>', page)
    assert name.startswith("short-") and [one.name for one in (copy / "report" / "runs").iterdir()] == [place[5:]]
    assert "The first run of 1 of 2 combinations of levels has a page" in page
    assert "64 pages and 100 MB at most" in page and "<code>twinnet live RESULTS --run NAME</code>" in page


def test_two_runs_are_in_one_file(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "both.html"
    assert run(["live", str(results), "--run", "long", "--run", "short", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(out)}
    recorded = told(out)
    assert recorded["beside"]["name"].startswith("short-")
    assert len(recorded["beside"]["ticks"]) == len(recorded["ticks"])
    assert max(way[2] for tick in recorded["beside"]["ticks"] for way in tick["ways"] if way) == 10


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--out", "run.html"), "has 2 runs: "),
        (("--run", "lang"), "has no finished run 'lang'"),
        (("--run", ""), "2 runs of different levels begin with ''"),
        (("--run", "long", "--run", "short", "--run", "long"), "3 runs were given"),
        (("--run", "long", "--control"), "cannot be changed"),
        (("--run", "long", "--out", "none/run.html"), "no file can be written"),
    ],
)
def test_what_cannot_be_shown_is_said(
    results: Path, options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["live", str(results), *options]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "other"), [("seed", "x"), ("notes", {}), ("levels", {"queue": "none"}), ("elapsed_s", "x")]
)
def test_a_record_that_was_altered_is_told(
    results: Path, tmp_path: Path, key: str, other: object, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "waits"
    shutil.copytree(results, copy)
    path = next(copy.glob("long-*/run.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: other}))
    assert run(["live", str(copy), "--run", "long"]) in (1, 2)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_run_is_of_results_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["live", "classroom", "--run", "long"]) == 2
    assert "classroom holds none" in capsys.readouterr().err


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@needs_a_browser
def test_two_runs_are_seen_side_by_side_with_their_difference(browser: Browser, results: Path, tmp_path: Path) -> None:
    out = tmp_path / "both.html"
    assert run(["live", str(results), "--run", "long", "--run", "short", "--out", str(out)]) == 0
    faults: list[str] = []
    page = opened(browser, out.as_uri(), faults)
    assert "waits: long-" in page.inner_text("#lab")
    # The port that the plan says is filled has a mark, which tells why.
    assert page.is_visible("#filled") and page.locator("#picture path.filled").count() == 1
    assert page.locator("path.filled title").text_content() == (
        "s1-eth2 (s1 to h2, port 2, 10 Mbit/s): to be filled by load"
    )
    assert page.is_visible("#unknown") and page.locator(".way.unknown").count() == 3
    page.get_by_role("button", name="s1-eth2").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#beside")).to_have_text(re.compile("Thin lines: short-"))
    for name in ("#queue .there", "#queue .there.beside", "#queue-difference .there"):
        expect(page.locator(name).first).to_have_attribute("d", re.compile("M(.*L){20}"))
    # Of the way back nothing was sampled.
    expect(page.locator("#queue .back").first).to_have_attribute("d", "")
    # 60 frames against 10: at the end the difference is the whole scale of 50.
    assert page.locator("#queue-difference text").first.text_content() == "+50"
    page.locator("#traffic summary").click()
    assert page.locator("#traffic th").all_inner_texts()[3:5] == ["active", "payload, mean rate"]
    assert page.inner_text("#traffic [role=status]") == "Those of the first run."
    expect(page.locator("#traffic tbody tr").first).to_contain_text(re.compile(r"h[12]load: udp .* MB, .* Mbit/s"))
    page.get_by_label("Flow").select_option(label="load: h1 to h2, at 1.5 s")
    expect(page.locator("#follow-end")).to_have_text("It arrives at 10.0.0.2.")
    expect(page.locator("#follow-hops .exit").last).to_contain_text(re.compile("waits .* behind [56][0-9] frames"))
    assert page.locator(".way.followed").count() == 2 and page.is_hidden("#follow-what")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".way.followed")).to_have_count(0)
    assert page.get_by_label("Flow").input_value() == "" and page.locator("#follow-hops li").count() == 0
    page.context.close()
    assert faults == []
