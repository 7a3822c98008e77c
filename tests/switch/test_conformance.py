"""The conformance suite: run whole against our switch, and in parts against Open vSwitch."""

from __future__ import annotations

import pytest
from twinnet_conformance import Case, all_cases, run_case
from twinnet_conformance.bare import Bare
from twinnet_conformance.bench import Bench, Failure
from twinnet_conformance.case import Case as CaseType
from twinnet_conformance.frames import build, internet_checksum, sctp_crc
from twinnet_conformance.open_vswitch import OpenVSwitch, why_not
from twinnet_conformance.table import markdown, rows

CASES = all_cases()
needs_ovs = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


@pytest.mark.parametrize("feature", list(dict.fromkeys(case.feature for case in CASES)))
def test_our_switch_does_what_the_specification_says(feature: str) -> None:
    target = Bare()
    outcomes = [run_case(case, target) for case in CASES if case.feature == feature]
    failed = {outcome.case.identifier: outcome.why for outcome in outcomes if outcome.passed is False}
    assert not failed, "\n".join(f"{name}: {why}" for name, why in failed.items())
    assert not [outcome for outcome in outcomes if outcome.passed is None], "a case could not be run"


def test_no_case_is_there_twice() -> None:
    names = [(case.identifier, case.feature) for case in CASES]
    assert len(set(names)) == len(names) > 1500


def test_a_switch_that_is_wrong_fails() -> None:
    def body(bench: Bench) -> None:
        bench.forward({"eth_type": 0x0800})
        bench.drops(build())

    outcome = run_case(CaseType("1.3", "5.3", "none", "none", body), Bare())
    assert outcome.passed is False and "port 2" in outcome.why


def test_checksums_are_those_of_their_specifications() -> None:
    # RFC 1071, section 3, and RFC 9260, appendix A: the check value of CRC32c over "123456789".
    assert internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF ^ 0xDDF2
    assert sctp_crc(b"123456789").to_bytes(4)[::-1] == bytes.fromhex("e3069283")


def test_the_table_has_a_row_for_each_feature_and_one_for_all() -> None:
    target = Bare()
    few = [case for case in CASES if case.feature in ("Barriers", "Queues")]
    outcomes = [run_case(case, target) for case in few]
    table = rows(outcomes)
    assert [row.feature for row in table] == ["Barriers", "Queues", "together"]
    assert (table[-1].passed, table[-1].run) == (len(few), len(few))
    assert markdown({"ours": outcomes}).splitlines()[0] == "| section | feature | ours |"


@pytest.mark.long
@needs_ovs
def test_open_vswitch_runs_the_same_cases() -> None:
    wanted = ("Pipeline: priorities", "Push and pop: MPLS", "Flow removal: timeouts")
    cases: list[Case] = [case for case in CASES if case.feature in wanted]
    target = OpenVSwitch()
    try:
        outcomes = [run_case(case, target) for case in cases]
    finally:
        target.stop()
    passed = sum(outcome.passed is True for outcome in outcomes)
    assert passed >= 0.8 * len(cases), [outcome.why for outcome in outcomes if not outcome.passed]


def test_a_failure_says_what_was_due() -> None:
    with pytest.raises(Failure, match="due port 3"):
        bench = Bench(Bare())
        bench.forward({})
        bench.expect(build(), (bench.p3, build()))
