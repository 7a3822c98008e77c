"""Studies whose runs a test makes by the command."""

from __future__ import annotations

from pathlib import Path

from twinnet.cli import run as command_line

__all__ = ["made_study"]


def made_study(study: str, folder: Path, *options: str) -> Path:
    """Write `study` as ``study.yaml`` into `folder`, make its runs with `options`, and return where its results are,
    which is in ``out``."""
    path = folder / "study.yaml"
    path.write_text(study, encoding="utf-8")
    assert command_line(["run", str(path), "--out", str(folder / "out"), *options]) == 0
    return folder / "out" / study.partition("study: ")[2].partition("\n")[0]
