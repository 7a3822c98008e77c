"""A watched lab as one file: what is in it, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from twinnet.errors import BadValue
from twinnet.live import recording
from twinnet.live.recording import Recording

NETWORK: dict[str, Any] = {"lab": "</script><b>x", "title": "a & b", "nodes": [], "links": []}


def tick(now_s: float) -> dict[str, Any]:
    verdict = {"state": "valid", "reasons": [], "covers_s": now_s, "at_s": now_s, "late_s": 0}
    return {"now_s": now_s, "elapsed_s": 0.25, "ways": [], "verdict": verdict}


def told(path: Path) -> dict[str, Any]:
    found = re.findall(r'<script id="recording" type="application/json">(.*?)</script>', path.read_text())
    assert len(found) == 1
    return json.loads(found[0])


def test_the_file_has_all_looks_needs_no_other_file_and_takes_names_as_text(tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    path.write_text("from before")
    kept = Recording(NETWORK, path)
    for number in range(3):
        kept.add(tick(number / 4))
    assert path.read_text() == "from before", "only at the end"
    kept.write()
    assert told(path) == {"network": NETWORK, "cut_s": None, "ticks": [tick(0), tick(0.25), tick(0.5)]}
    text = path.read_text()
    assert "</script><b>" not in text
    assert not re.findall(r"""(src|href)=|^import |^export |https?://(?!www\.w3\.org/2000/svg)""", text, re.MULTILINE)
    assert list(tmp_path.iterdir()) == [path]


def test_a_recording_that_becomes_too_large_ends_and_says_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_MOST_BYTES", 2 * len(json.dumps(tick(0.25), separators=(",", ":"))))
    kept = Recording(NETWORK, tmp_path / "run.html")
    for number in range(1, 5):
        kept.add(tick(number / 4))
    kept.write()
    assert [one["now_s"] for one in told(tmp_path / "run.html")["ticks"]] == [0.25, 0.5]
    assert told(tmp_path / "run.html")["cut_s"] == 0.75


@pytest.mark.parametrize("out", ["", "none/run.html"])
def test_where_no_file_can_be_written_that_is_said_at_the_beginning(tmp_path: Path, out: str) -> None:
    with pytest.raises(BadValue, match="no file can be written at"):
        Recording(NETWORK, tmp_path / out)
