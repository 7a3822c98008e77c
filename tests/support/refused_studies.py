"""What the command says of a study with a mistake in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinnet.cli import run as command_line

__all__ = ["refusal"]


def refusal(study: str, folder: Path, output: pytest.CaptureFixture[str]) -> str:
    """Write `study` into `folder`, ask for its plan, which is to be refused, and return what the command says then."""
    path = folder / "wrong.yaml"
    path.write_text(study)
    assert command_line(["run", str(path), "--out", str(folder / "out"), "--dry-run"]) != 0
    return output.readouterr().err
