"""What tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
import twinnet as tn
from fake_lab import FakeLab
from means import wrongly_skipped

_SKIPPED: dict[str, str] = {}
"""Reasons by test."""
_WRONG: dict[str, str] = {}
"""Those that should have run, and why."""


def pytest_configure() -> None:
    """Hear interrupts also where a script started the tests in the background, with interrupts ignored.

    The programs that tests start and interrupt would ignore them too.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
    """Tell of them."""
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
