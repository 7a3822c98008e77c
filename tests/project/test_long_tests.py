"""The list of tests that take long names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

from long_tests import named_as_long

ROOT = Path(__file__).parents[2]


def test_each_test_that_takes_long_exists() -> None:
    gone = []
    for name in sorted(named_as_long()):
        file, _, test = name.partition("::")
        path = ROOT / file
        words = re.escape(test.partition("[")[0].rpartition("::")[2])
        if not path.is_file() or not re.search(rf"^ *def {words}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            gone.append(name)
    assert gone == []
