"""What tests share."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import quiet_machine
import twinnet as tn
from _pytest.runner import runtestprotocol
from fake_lab import FakeLab
from hypothesis import settings
from kept_result import Result
from long_tests import named_as_long
from means import wrongly_skipped

_TIMES = 3
"""How often a test that judges time is made at most."""
_LONG_S = 1500
"""What a test may take that is known to take long."""
_RESULT = Result()

# The same cases each time, whatever a folder kept of other runs; `make test-cases` draws new ones.
settings.register_profile("same", derandomize=True, database=None)
settings.register_profile("new", print_blob=True)
settings.load_profile("same")


def pytest_configure() -> None:
    """Hear interrupts also where a script started the tests in the background, with interrupts ignored.

    The programs that tests start and interrupt would ignore them too. All that they start has the session's mark.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    quiet_machine.mark_session()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as ``long`` what `long_tests.txt` names, and as ``wall`` what judges time, or is ``alone`` for long."""
    long = named_as_long()
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.long)
        marks = {mark.name for mark in item.iter_markers()}
        if marks & {"quiet", "judged"} or marks >= {"alone", "long"}:
            item.add_marker(pytest.mark.wall)
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_LONG_S))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what thousands of tests consist of to itself: each look for garbage would go through all of it."""
    gc.collect()
    gc.freeze()


def _needed(item: pytest.Item) -> float:
    """How much of the processors a test that judges time says it needs."""
    marks = (mark for name in ("quiet", "judged") for mark in item.iter_markers(name))
    asked = (float(mark.kwargs.get("processors", quiet_machine.PROCESSORS)) for mark in marks)
    return max(asked, default=quiet_machine.PROCESSORS)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that judges time where the machine is too busy for it (``quiet_machine.py``)."""
    if item.get_closest_marker("wall") and (reason := quiet_machine.too_busy(_needed(item))):
        pytest.skip(reason)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Make a test that judges time and failed again, at most twice; all failures are told, and three are a failure."""
    if not item.get_closest_marker("wall"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports: list[pytest.TestReport] = []
    for time in range(1, _TIMES + 1):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        failed = [one for one in reports if one.failed]
        if not failed or time == _TIMES:
            break
        _RESULT.repeated.setdefault(item.nodeid, []).append(_last_line(failed[0]))
        item._initrequest()  # type: ignore[attr-defined]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _last_line(report: pytest.TestReport) -> str:
    """What a failure says in a line: that of the assertion or error."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longreprtext).partition("\n")[0]


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.failed:
        _RESULT.fail(report.nodeid, report.longreprtext)
    elif report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        _RESULT.skipped[report.nodeid] = str(report.longrepr[2]).removeprefix("Skipped: ")
    elif isinstance(report, pytest.TestReport) and report.when == "call" and report.passed:
        _RESULT.passed += 1


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how it ended."""
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note what cannot be collected, or is skipped whole."""
    _note(report)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a process of pytest-xdist saw skip whole, and made again."""
    told = getattr(node, "workeroutput", {})
    _RESULT.skipped.update(told.get("skipped", {}))
    _RESULT.repeated.update(told.get("repeated", {}))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail when a test skipped that could have run here (``means.py``)."""
    if hasattr(session.config, "workerinput"):
        # A module that skips whole is told by no report of a test: the process that gathers hears of it here.
        session.config.workeroutput.update(skipped=_RESULT.skipped, repeated=_RESULT.repeated)
        return
    busy = {test for test, reason in _RESULT.skipped.items() if reason.startswith(quiet_machine.NOT_QUIET)}
    _RESULT.wrongly_skipped = wrongly_skipped({t: why for t, why in _RESULT.skipped.items() if t not in busy})
    _RESULT.keep()
    if _RESULT.wrongly_skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell of them, and of what was made again."""
    if _RESULT.repeated:
        terminalreporter.section(f"failed and made again, at most {_TIMES} times in all")
        for test, failures in _RESULT.repeated.items():
            for said in failures:
                terminalreporter.write_line(f"{test}: {said}")
    if _RESULT.wrongly_skipped:
        terminalreporter.section("skipped without a right to", red=True)
        for test, why in _RESULT.wrongly_skipped.items():
            terminalreporter.write_line(f"{test}: {why}")


@pytest.fixture
def fake() -> Iterator[FakeLab]:
    """A scripted lab of one switch s1 and the hosts h1 to h4."""
    one = FakeLab(tn.templates.single(4, rate="1 Gbit"))
    yield one
    one.close()
