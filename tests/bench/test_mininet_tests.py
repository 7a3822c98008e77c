"""The runner of Mininet's own tests reads what unittest tells."""

from __future__ import annotations

from bench.mininet_tests import counted


def test_tests_that_ran_are_counted_by_their_outcome() -> None:
    told = "x ... ok\n\nRan 20 tests in 31.2s\n\nFAILED (failures=2, errors=1, skipped=15)\ntwinnet: said later\n"
    assert counted(told) == {"passed": 2, "failed": 3, "skipped": 15}
    assert counted("Ran 1 test in 0.5s\n\nOK\n") == {"passed": 1, "failed": 0, "skipped": 0}


def test_a_file_that_does_not_come_to_its_end_is_one_failure() -> None:
    assert counted("Traceback ...\nImportError: x\n") == {"failed": 1}
