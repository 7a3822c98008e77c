"""A campaign in the browser: what becomes of its runs, also while another terminal makes them."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live_browser import expect, launched, needs_a_browser, opened
from made_studies import made_study
from study_networks import one_switch
from twinnet.live.campaign import STATES, CampaignWatch
from twinnet.report.progress import SilentObserver
from twinnet.study.campaign import Campaign
from twinnet.study.progress_file import SILENT_AFTER_S, read_progress

if TYPE_CHECKING:
    from playwright.sync_api import Browser

STUDY = """\
study: waits
title: A <b>queue</b>
question: How long is the queue?
NETWORK
factors:
  queue:
    levels:
      short: {queues: {s1 to h2: {kind: fifo, limit_frames: 10}}}
      long: {queues: {s1 to h2: {kind: fifo, limit_frames: 60}}}
traffic:
  - {name: load, app: udp, from: [h1], to: h2, port: 5003, rate: 20 Mbit, duration: 1 s}
measurements:
  waiting: {of: queue_length, interval: 100 ms, ports: [s1 to h2]}
repetitions: 3
clock: virtual
time_limit: 10 s
""".replace("NETWORK\n", one_switch("rate: 100 Mbit", "rate: 10 Mbit"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished runs of two levels, three repetitions each."""
    return made_study(STUDY, tmp_path_factory.mktemp("campaign"), "--no-report")


@pytest.fixture
def results(made: Path, tmp_path: Path) -> Path:
    """The same, to be altered."""
    return shutil.copytree(made, tmp_path / "waits")


def record_of(results: Path, place: int) -> Path:
    return sorted(results.glob("*/run.json"))[place]


def alter(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def tell(results: Path, at_s: float, **told: Any) -> None:
    (results / ".progress.json").write_text(json.dumps({"at_s": at_s, "left_s": 90.0, "going": [], **told}))


@contextmanager
def served(results: Path | str, within: Path | None = None) -> Iterator[str]:
    """The address of the page, by the command, which is given `results` in the folder `within`."""
    entry = "from twinnet.cli import main; main()"
    command = [sys.executable, "-c", entry, "live", str(results), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=within) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())["address"]
            server.send_signal(signal.SIGINT)
            assert server.wait(15) == 0
        finally:
            server.kill()


def test_each_run_has_its_state_and_only_changes_are_told_again(results: Path) -> None:
    watch = CampaignWatch(results)
    watch.look()
    told = watch.changes(0)
    assert told["counts"] == {**dict.fromkeys(STATES, 0), "valid": 6}
    assert sorted(number for number, _ in told["states"]) == list(range(6))
    assert (told["left_s"], told["silent_s"], told["going"]) == (None, None, [])
    assert [run["levels"] for run in watch.record()["runs"]].count("long") == 3
    doubtful = json.loads(record_of(results, 0).read_text())["fidelity"] | {"verdict": "doubtful"}
    alter(record_of(results, 0), fidelity=doubtful)
    record_of(results, 1).write_text("{")
    watch.look()
    again = watch.changes(told["change"])
    assert sorted(STATES[state] for _, state in again["states"]) == ["doubtful", "failed"]
    assert again["counts"]["valid"] == 4
    # A failed run that is made again runs.
    tell(results, time.time(), going=[{"run": record_of(results, 1).parent.name, "fraction": 0.5, "doing": ""}])
    watch.look()
    assert [STATES[state] for _, state in watch.changes(again["change"])["states"]] == ["running"]


def test_a_campaign_that_goes_on_tells_its_runs_and_the_time_left(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = record_of(results, 2).parent.name
    record_of(results, 2).rename(results / "elsewhere.json")
    monkeypatch.setattr("time.time", lambda: 1000.0)
    watch = CampaignWatch(results)
    tell(results, 990.0, going=[{"run": name, "fraction": 0.25, "doing": "traffic", "begun_s": 940.0}])
    watch.look()
    told = watch.changes(0)
    assert told["counts"]["running"] == 1 and told["counts"]["valid"] == 5
    [going] = told["going"]
    assert (going["name"], going["fraction"], going["doing"], going["for_s"]) == (name, 0.25, "traffic", 60.0)
    assert watch.record()["runs"][going["number"]]["name"] == name
    assert watch.going(going["number"]) == going and watch.going(6) is None
    assert (told["left_s"], told["silent_s"]) == (80.0, None)
    # Without news nobody claims that it still runs.
    tell(results, 1000.0 - SILENT_AFTER_S - 1)
    watch.look()
    told = watch.changes(0)
    assert (told["left_s"], told["silent_s"]) == (None, SILENT_AFTER_S + 1)
    assert told["counts"]["waiting"] == 1


@pytest.mark.parametrize("content", ["", "[]", "{", '{"at_s": "x", "left_s": 1, "going": []}', '{"at_s": 1}'])
def test_what_is_no_progress_is_none(results: Path, content: str) -> None:
    (results / ".progress.json").write_text(content)
    watch = CampaignWatch(results)
    watch.look()
    assert watch.changes(0)["counts"]["valid"] == 6


def test_a_campaign_tells_what_goes_on_until_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # At each tick, so that none is missed by a machine that is fast.
    monkeypatch.setattr("twinnet.study.progress_file._EVERY_S", 0.0)
    seen: list[set[str]] = []
    begun_s: list[float | None] = []
    before_s = time.time()

    class Looks(SilentObserver):
        def tick(self, left_s: float) -> None:
            told = read_progress(tmp_path / "waits")
            seen.append(set() if told is None else set(told.going))
            begun_s.extend([] if told is None else [one.begun_s for one in told.going.values()])

    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    campaign = Campaign.read(path, out=tmp_path)
    outcome = campaign.make(Looks())
    assert len(outcome.finished) == 6
    assert all(one is not None and before_s <= one <= time.time() for one in begun_s)
    assert set().union(*seen) == {run.id for run in campaign.plan}
    assert read_progress(tmp_path / "waits") is None
    assert not list((tmp_path / "waits").glob(".progress*"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@needs_a_browser
def test_the_page_shows_a_campaign_and_opens_its_runs(browser: Browser, results: Path) -> None:
    error = {"name": "TimeLimit", "message": "it took <i>too</i> long"}
    failed = json.loads(record_of(results, 0).read_text())
    record_of(results, 0).write_text(json.dumps({**failed, "status": "failed", "error": error}))
    record_of(results, 1).rename(results / "elsewhere.json")
    faults: list[str] = []
    with served(results) as address:
        page = opened(browser, address, faults, wait_for="#counts li:not([hidden])")
        assert page.inner_text("#title") == "A <b>queue</b>"
        assert page.locator("#runs tr").count() == 2
        expect(page.locator("#loads li")).to_have_text(["Traffic fills s1-eth2 (s1 to h2, port 2, 10 Mbit/s): load"])
        expect(page.locator("#left")).to_have_text("5 of 6 runs done; nothing goes on now")
        expect(page.locator("#counts li:not([hidden])")).to_have_text(
            [re.compile("1 waiting"), re.compile("4 valid"), re.compile("1 failed")]
        )
        # What changes is seen without a click.
        (results / "elsewhere.json").rename(record_of(results, 0).parents[1] / waiting_of(page, results) / "run.json")
        expect(page.locator("#left")).to_have_text("6 of 6 runs done")
        with page.context.expect_page() as opening:
            page.locator(".run.valid[href]").first.click()
        run = opening.value
        run.wait_for_selector(".node")
        assert run.inner_text("#lab").startswith("waits: ")
        run.get_by_role("button", name="s1-eth2").focus()
        run.keyboard.press("Enter")
        expect(run.locator("#queue .there")).to_have_attribute("d", re.compile("M(.*L){5}"))
        with page.context.expect_page() as opening:
            page.locator(".run.failed[href]").click()
        opening.value.wait_for_load_state()
        assert "it took <i>too</i> long" in opening.value.inner_text("body")
        page.context.close()
    assert faults == []


def waiting_of(page: Any, results: Path) -> str:
    """The name of the run whose record is not there."""
    (name,) = [path.name for path in results.iterdir() if path.is_dir() and not (path / "run.json").exists()]
    assert name in (page.locator("#runs .run.waiting").get_attribute("title") or "")
    return name


@needs_a_browser
def test_a_study_is_named_its_states_are_filters_and_a_running_run_tells_what_it_does(
    browser: Browser, results: Path
) -> None:
    (results.parent / "results").mkdir()
    results = results.rename(results.parent / "results" / "waits")
    doubtful = json.loads(record_of(results, 0).read_text())["fidelity"] | {"verdict": "doubtful", "reasons": ["late"]}
    alter(record_of(results, 0), fidelity=doubtful)
    running = record_of(results, 4)
    away = running.rename(results / "elsewhere.json")
    name = running.parent.name
    now_s = time.time()
    going = {"run": name, "fraction": 0.25, "doing": "traffic, 1 of 4 s", "begun_s": now_s - 3600}
    # News of an hour to come is as good as new, however long this machine takes.
    tell(results, now_s + 3600, left_s=5400, going=[going])
    faults: list[str] = []
    with served("waits", results.parents[1]) as address:
        page = opened(browser, address, faults, wait_for="#counts li:not([hidden])")
        expect(page.locator("#left")).to_have_text("5 of 6 runs done, about 2 h left")
        assert page.locator("#counts li:not([hidden])").all_inner_texts() == [
            "▸ 1 running",
            "✓ 4 valid",
            "? 1 doubtful",
        ]
        filters = {state: page.get_by_role("button", name=state) for state in ("running", "doubtful", "valid")}
        filters["doubtful"].click()
        assert filters["doubtful"].get_attribute("aria-pressed") == "true"
        assert page.locator("#runs .run:visible").count() == 1 and page.locator("#runs tr:visible").count() == 1
        assert page.inner_text("#shown") == "1 of 6 runs: doubtful"
        filters["running"].click()
        assert page.locator("#runs .run:visible").count() == 2
        for state in ("doubtful", "running"):
            filters[state].focus()
            page.keyboard.press("Enter")
        assert page.locator("#runs .run:visible").count() == 6 and page.inner_text("#shown") == ""
        with page.context.expect_page() as opening:
            page.locator("#going a", has_text=name).click()
        run = opening.value
        expect(run.locator("#doing")).to_have_text("25 %: traffic, 1 of 4 s")
        expect(run.locator("#begun")).to_have_text(re.compile(r"^Started at .*\d.*, 60 min ago\.$"))
        assert run.inner_text("#run") == name and "repetition" in run.inner_text("#levels")
        tell(results, now_s + 3600, going=[{**going, "fraction": 0.5, "doing": "ends"}])
        expect(run.locator("#doing")).to_have_text("50 %: ends")
        # When it has ended, its own page is there.
        away.rename(running)
        tell(results, now_s + 3600)
        run.wait_for_selector(".node")
        assert run.inner_text("#lab").startswith("waits: ")
        expect(page.locator("#left")).to_have_text(re.compile("6 of 6 runs done"))
        assert page.is_hidden("#now")
        page.context.close()
    assert faults == []
