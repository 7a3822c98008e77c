"""What tests share."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import judged_runs
import pytest
import twinnet as tn
from _pytest.runner import runtestprotocol
from fake_lab import FakeLab
from live_browser import needs_a_browser
from long_tests import named_as_long
from means import wrongly_skipped
from untrusted import ATTEMPTS, Host, invalid_runs, last_lab_watched

_SKIPPED: dict[str, str] = {}
"""Reasons by test."""
_WRONG: dict[str, str] = {}
"""Those that should have run, and why."""
_MADE_AGAIN: list[str] = []
"""Tests that judged an invalid run or had no quiet, and what said so."""
_AGAIN: dict[str, int] = {}
"""How often each test that may be made again, and ran, was made again."""
_TOO_OFTEN: dict[str, str] = {}
"""Those that were in too many of the last runs, and in how many."""
_FOLDER: pytest.StashKey[Path] = pytest.StashKey()


def pytest_configure() -> None:
    """Hear interrupts also where a script started the tests in the background, with interrupts ignored.

    The programs that tests start and interrupt would ignore them too.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what drives a browser as ``quiet``: beside a lab with full lines and other tests a page takes longer to be
    drawn than any of them should wait. Mark as ``long`` what `long_tests.txt` names."""
    long = named_as_long()
    for item in items:
        if needs_a_browser.mark in item.iter_markers("skipif"):
            item.add_marker(pytest.mark.quiet)
        if item.nodeid in long:
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Make a test again that is marked ``judged`` and failed on an invalid run, or is marked ``quiet`` and had none:
    see ``untrusted.py``."""
    judged, quiet = (item.get_closest_marker(name) is not None for name in ("judged", "quiet"))
    if not judged and not quiet:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports: list[pytest.TestReport] = []
    for attempt in range(1, ATTEMPTS + 1):
        host, told = Host(), []
        with last_lab_watched() if judged else contextlib.nullcontext(told) as told:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if judged and (folder := item.stash.get(_FOLDER, None)):
            told += invalid_runs(folder)
        if quiet:
            told += host.took()
        if any(one.when == "call" and not one.skipped for one in reports):
            _AGAIN[item.nodeid] = attempt - 1
        if attempt == ATTEMPTS or not told or not any(one.failed and one.when == "call" for one in reports):
            break
        _MADE_AGAIN.append(f"{item.nodeid}: {' | '.join(told)}")
        item._initrequest()  # type: ignore[attr-defined]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Note where a test's runs are."""
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if folder is not None:
        item.stash[_FOLDER] = folder


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        _SKIPPED[report.nodeid] = str(report.longrepr[2]).removeprefix("Skipped: ")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what is skipped."""
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note what is skipped whole."""
    _note(report)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a process of pytest-xdist saw skip, and made again."""
    told = getattr(node, "workeroutput", {})
    _SKIPPED.update(told.get("skipped", {}))
    _AGAIN.update(told.get("again", {}))
    _MADE_AGAIN.extend(told.get("made_again", ()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail when a test skipped that could have run here (``means.py``), or is made again too often."""
    if hasattr(session.config, "workerinput"):
        # A module that skips whole is told by no report of a test: the process that gathers hears of it here.
        session.config.workeroutput.update(skipped=dict(_SKIPPED), again=dict(_AGAIN), made_again=list(_MADE_AGAIN))
        return
    _WRONG.update(wrongly_skipped(_SKIPPED))
    if _AGAIN:
        _TOO_OFTEN.update(judged_runs.too_often(judged_runs.keep(judged_runs.file(), _AGAIN)))
    if (_WRONG or _TOO_OFTEN) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell of them, and of what was made again."""
    if _MADE_AGAIN:
        terminalreporter.section("made again, for the run that was judged was invalid or the machine was not quiet")
        for told in _MADE_AGAIN:
            terminalreporter.write_line(told)
    if _TOO_OFTEN:
        terminalreporter.section("made again too often", red=True)
        for test, how_often in _TOO_OFTEN.items():
            terminalreporter.write_line(f"{test}: {how_often}")
    if _WRONG:
        terminalreporter.section("skipped without a right to", red=True)
        for test, why in _WRONG.items():
            terminalreporter.write_line(f"{test}: {why}")


@pytest.fixture
def fake() -> Iterator[FakeLab]:
    """A scripted lab of one switch s1 and the hosts h1 to h4."""
    one = FakeLab(tn.templates.single(4, rate="1 Gbit"))
    yield one
    one.close()
