"""What a run of the tests gave, for programs to read: ``TWINNET_TEST_RESULT`` names the file, in JSON.

`tools/gate.py` reads which tests failed, `tools/test_record.py` counts.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

__all__ = ["Result"]

VARIABLE = "TWINNET_TEST_RESULT"
MOST_LINES = 25
"""Of what a failure said: the first line of the last part names it."""


@dataclass
class Result:
    """How tests ended.

    Parameters
    ----------
    passed
        How many.
    failed
        Those that failed, and what they said.
    repeated
        Those that were made again, and why, once for each time.
    skipped
        The reasons, by test.
    wrongly_skipped
        Those that should have run here, and why.
    """

    passed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    repeated: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    wrongly_skipped: dict[str, str] = field(default_factory=dict)

    def fail(self, test: str, said: str) -> None:
        """Count a failure, with the last lines of what it said."""
        self.failed[test] = "\n".join(said.rstrip().splitlines()[-MOST_LINES:])

    def keep(self) -> None:
        """Write it where the environment says, if it says so."""
        if path := os.environ.get(VARIABLE):
            Path(path).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
