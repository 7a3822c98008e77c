"""The switch tests that os-ken has, which others wrote: our switch as target, ours or Open vSwitch as tester."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from twinnet_conformance.bare import Bare
from twinnet_conformance.open_vswitch import OpenVSwitch
from twinnet_conformance.open_vswitch import why_not as why_no_open_vswitch
from twinnet_conformance.os_ken import SwitchTest, all_tests, run_tests
from twinnet_conformance.os_ken.exceptions import why_wrong
from twinnet_conformance.os_ken.pair import Ours, Pair, Shuttled, paired
from twinnet_conformance.os_ken.run import run_test
from twinnet_conformance.outcome import Outcome

pytestmark = pytest.mark.long

TESTS = all_tests()
MEASURED = [test for test in TESTS if test.is_measured]
QUICK = [test for test in TESTS if not test.is_measured]
WRONG = [test for test in TESTS if why_wrong(test) is not None]

needs_ovs = pytest.mark.skipif(why_no_open_vswitch() is not None, reason=why_no_open_vswitch() or "")


def failed(outcomes: Iterator[Outcome]) -> dict[str, str]:
    return {one.case.identifier: one.why for one in outcomes if one.passed is False}


def test_the_package_has_the_tests_that_are_counted_on() -> None:
    assert Counter(test.version for test in TESTS) == {"1.0": 192, "1.3": 991}
    assert (len(MEASURED), len(WRONG)) == (51, 30)


@pytest.mark.parametrize("version", ["1.0", "1.3"])
def test_our_switch_passes_all_that_are_right(version: str) -> None:
    outcomes = list(run_tests([test for test in QUICK if test.version == version], Ours))
    assert failed(iter(outcomes)) == {}
    left_out = [one for one in outcomes if one.passed is None]
    assert len(left_out) == (len(WRONG) if version == "1.3" else 0)


def test_meters_and_groups_keep_their_rates() -> None:
    # The slower rates: 100 Mbit/s and 10,000 frames a second take a minute, and the command runs them.
    fast = ("02_100M", "02_10000")
    tests = [test for test in MEASURED if not any(word in test.name for word in fast)]
    assert len(tests) == 39
    assert failed(run_tests(tests, Ours)) == {}


def test_those_that_are_called_wrong_do_fail() -> None:
    pair = Ours(4)
    passed = [test.name for test in WRONG if run_test(test, pair, even_wrong=True).passed]
    assert passed == []


class Deaf(Shuttled):
    """A pair whose cables lose everything."""

    def pass_on(self) -> None:
        self._ends[1].arrived()


def test_a_target_that_forwards_nothing_fails_whatever_is_to_come_out() -> None:
    def deaf(version: int) -> Pair:
        return Deaf(Bare(), Bare(), version)

    outcomes = list(run_tests([test for test in QUICK if test.version == "1.0"], deaf))
    assert Counter(one.passed for one in outcomes) == {False: 192}


@needs_ovs
@pytest.mark.parametrize("version", ["1.0", "1.3"])
def test_our_switch_passes_with_open_vswitch_as_tester(version: str) -> None:
    tester = OpenVSwitch()
    try:
        tests: list[SwitchTest] = [test for test in QUICK if test.version == version]
        assert failed(run_tests(tests, paired([Bare(), tester]))) == {}
    finally:
        tester.stop()


def twinnet(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from twinnet.cli import main; main()", "conformance", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_runs_them_and_names_what_it_leaves_out() -> None:
    done = twinnet("twinnet", "--suite", "os-ken", "--only", "17_SCTP_SRC_IPv4", "--failures")
    assert done.returncode == 0, done.stderr
    assert "0 of 0" in done.stdout and done.stdout.count("left out: 1.3 action/25_SET_FIELD/17_SCTP_SRC_IPv4") == 4
    assert "RFC 9260" in done.stdout
    done = twinnet("twinnet", "--suite", "os-ken", "--only", "00_OUTPUT")
    assert done.returncode == 0 and "together" in done.stdout


def test_a_tester_is_refused_where_none_is_needed() -> None:
    done = twinnet("twinnet", "--tester", "ovs")
    assert done.returncode == 2 and "--suite os-ken" in done.stderr
