"""The check of long lines finds what it is there to find."""

from __future__ import annotations

import runpy
from pathlib import Path

CHECK = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools/check_lines.py"))


def test_a_line_of_121_columns_is_told_with_its_number() -> None:
    text = "fits\n" + "x" * 120 + "\n" + "é" * 121 + "\n"
    assert CHECK["long_lines"](text) == [(3, 121)]


def test_only_a_comment_for_a_tool_may_hang_over() -> None:
    for_a_tool = "x" * 110 + "  # pyright: ignore[reportUnknownArgumentType]"
    for_a_reader = "x" * 110 + "  # what a person reads"
    assert CHECK["long_lines"](f"{for_a_tool}\n{for_a_reader}") == [(2, len(for_a_reader))]
