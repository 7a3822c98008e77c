"""A watched lab as one file: what is in it, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import twinnet.live
from page_data import page_data
from twinnet.errors import BadValue
from twinnet.live import recording
from twinnet.live.recording import Recording

COLUMNS_OF_CSV = json.loads(
    re.findall(r"COLUMNS_OF_CSV = (\[.*\])", (Path(twinnet.live.__file__).parent / "page/out.js").read_text())[0]
)
NETWORK: dict[str, Any] = {"lab": "</script><b>x", "title": "a & b", "nodes": [], "links": []}


def tick(now_s: float) -> dict[str, Any]:
    verdict = {"state": "valid", "reasons": [], "covers_s": now_s, "at_s": now_s, "late_s": 0}
    return {"now_s": now_s, "elapsed_s": 0.25, "ways": [], "verdict": verdict}


def told(path: Path) -> dict[str, Any]:
    return page_data(path.read_text(), "recording")


def test_the_file_has_all_looks_needs_no_other_file_and_takes_names_as_text(tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    path.write_text("from before")
    kept = Recording(NETWORK, path)
    for number in range(3):
        kept.add(tick(number / 4))
    assert path.read_text() == "from before", "only at the end"
    act = {"number": 1, "lines": ["<b>"]}
    kept.write([act])
    assert told(path) == {
        "network": NETWORK,
        "cut_s": None,
        "acts": [act],
        "beside": None,
        "ticks": [tick(0), tick(0.25), tick(0.5)],
    }
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


def test_as_a_table_it_has_a_row_for_each_port_and_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_TICKS_AT_ONCE", 2)
    link = {"a": "h1", "b": "s1", "a_port": "h1-eth0", "b_port": "s1-eth1"}
    kept = Recording(NETWORK | {"links": [link]}, tmp_path / "run.parquet")
    for number in range(1, 4):
        ways = [[8e6, 0.8, number, 1, True, 10_000_000, {"marks": 3}], [0, None, 0, 0, False, None]]
        kept.add(tick(number / 4) | {"ways": ways})
    kept.write()
    table = pl.read_parquet(tmp_path / "run.parquet")
    assert table.columns == COLUMNS_OF_CSV
    assert table.rows()[2:4] == [
        (0.5, "h1-eth0", "s1", 8e6, 0.8, 2, 4.0, 12.0, True),
        (0.5, "s1-eth1", "h1", 0, None, 0, 0, 0, False),
    ]
    assert table.height == 6 and list(tmp_path.iterdir()) == [tmp_path / "run.parquet"]


def test_a_lab_that_was_never_seen_is_an_empty_table(tmp_path: Path) -> None:
    Recording(NETWORK, tmp_path / "run.parquet").write()
    assert (pl.read_parquet(tmp_path / "run.parquet").height, pl.read_parquet(tmp_path / "run.parquet").width) == (0, 9)


@pytest.mark.parametrize("out", ["", "none/run.html"])
def test_where_no_file_can_be_written_that_is_said_at_the_beginning(tmp_path: Path, out: str) -> None:
    with pytest.raises(BadValue, match="no file can be written at"):
        Recording(NETWORK, tmp_path / out)
