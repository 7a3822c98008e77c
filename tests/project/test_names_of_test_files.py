"""Names of test files: pytest knows a file by its name alone, so two of one name are collected with one's marks, or not
at all."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_each_test_file_has_a_name_of_its_own() -> None:
    counts = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert len(counts) > 100
    assert [name for name, count in counts.items() if count > 1] == []
