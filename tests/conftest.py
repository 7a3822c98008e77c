"""What tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from _pytest.runner import runtestprotocol
from fake_lab import FakeLab
from means import wrongly_skipped
from untrusted import ATTEMPTS, labs_watched, untrusted_runs

_SKIPPED: dict[str, str] = {}
"""Reasons by test."""
_WRONG: dict[str, str] = {}
"""Those that should have run, and why."""
_MADE_AGAIN: list[str] = []
"""Tests whose runs were not valid, and what they said."""
_FOLDER: pytest.StashKey[Path] = pytest.StashKey()


def pytest_configure() -> None:
    """Hear interrupts also where a script started the tests in the background, with interrupts ignored.

    The programs that tests start and interrupt would ignore them too.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Make a test that is marked ``judged`` again when it failed on runs that were not valid: see ``untrusted.py``."""
    if item.get_closest_marker("judged") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports: list[pytest.TestReport] = []
    for attempt in range(1, ATTEMPTS + 1):
        with labs_watched() as told:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if folder := item.stash.get(_FOLDER, None):
            told += untrusted_runs(folder)
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
    """Take over what a process of pytest-xdist saw skip."""
    _SKIPPED.update(getattr(node, "workeroutput", {}).get("skipped", {}))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail when a test skipped that could have run here: see ``means.py``."""
    if hasattr(session.config, "workerinput"):
        # A module that skips whole is told by no report of a test: the process that gathers hears of it here.
        session.config.workeroutput["skipped"] = dict(_SKIPPED)
        return
    _WRONG.update(wrongly_skipped(_SKIPPED))
    if _WRONG and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell of them, and of what was made again."""
    if _MADE_AGAIN:
        terminalreporter.section("made again, for a run was not valid")
        for told in _MADE_AGAIN:
            terminalreporter.write_line(told)
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
