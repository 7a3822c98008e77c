"""The tests that `make test` leaves out because they take long, by name."""

from __future__ import annotations

from pathlib import Path

__all__ = ["named_as_long"]

_FILE = Path(__file__).with_name("long_tests.txt")


def named_as_long() -> frozenset[str]:
    """Return the tests in `long_tests.txt`, as pytest names them."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))
