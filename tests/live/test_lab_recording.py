"""What a recording of a running lab keeps of its flows: a table, and the ways of those that ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from fake_lab import FakeLab
from page_data import page_data
from twinnet.lab.lab import Lab
from twinnet.live import kept_traffic, lab_recording
from twinnet.live.acts import Acts
from twinnet.live.lab_recording import LabRecording
from twinnet.live.watch import LabWatch, network_record

VERDICT = {"state": "valid", "reasons": [], "covers_s": 0, "at_s": 0, "late_s": 0}


@pytest.fixture(autouse=True)
def at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_recording, "_EVERY_S", 0)
    monkeypatch.setattr(lab_recording, "_PATIENCE", 0)


class Recorded:
    """A lab that is recorded for as long as its clock goes on here."""

    def __init__(self, lab: Lab, out: Path) -> None:
        self.lab, self.acts, self.watch, self.out = lab, Acts(lab), LabWatch(lab), out
        self.recording = LabRecording(network_record(lab), out, lab, self.acts.seal)

    def until(self, when: str) -> dict[str, Any]:
        """The network as the file has it after a look at this moment."""
        for ps in (tn.units.duration_ps(when) - 10**9, tn.units.duration_ps(when)):
            self.lab.run_until(f"{ps} ps")
            seen = self.watch.look()
        assert seen is not None
        self.recording.add(seen)
        self.recording.write()
        return page_data(self.out.read_text(), "recording")["network"]


def test_flows_are_kept_with_their_ways_as_they_were_when_they_last_ran(tmp_path: Path) -> None:
    with tn.templates.single(2, rate="10 Mbit", delay="5 ms").simulate(name="") as lab:
        recorded = Recorded(lab, tmp_path / "run.html")
        assert recorded.until("0.5 s")["followed"] == []
        lab.start(tn.apps.udp("h2", "h1", rate="1 Mbit", duration="1 s", port=7002))
        lab.start(tn.apps.tcp_bulk("h1", "h2", duration="9 s", port=7001, info_interval="100 ms"))
        recorded.until("1 s")
        network = recorded.until("3 s")
    ways = {one["words"]: one for one in network["followed"]}
    there, back = (
        ways["tcp: h1 to h2, port 7001"],
        next(way for words, way in ways.items() if words[:10] == "tcp: h2 to"),
    )
    ended = ways["udp: h2 to h1, port 7002"]
    assert len(ways) == 3 and (there["at_s"], back["at_s"], ended["at_s"]) == (3, 3, 1)
    assert [hop["node"] for hop in back["way"]["hops"]] == ["h2", "s1", "h1"]
    assert all(one["way"]["arrives"] for one in ways.values())
    assert "delay 5 ms" in str(there)
    rows = {row["what"]: row for row in network["traffic"]["rows"]}
    assert network["traffic"]["count"] == len(rows) == 4
    assert rows["udp sink"]["end_s"] == pytest.approx(1.5, abs=0.05) and rows["udp sink"]["lost"] == 0
    assert rows["udp sink"]["mean_bps"] == pytest.approx(1e6, rel=0.05)
    assert rows["tcp source"]["window"] > 5 and rows["tcp source"]["rtt_ms"] > 20
    assert rows["tcp sink"]["window"] is None


def test_ways_and_rows_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_traffic, "MOST_ROWS", 7)
    with tn.templates.single(2, rate="10 Mbit").simulate(name="") as lab:
        for number in range(12):
            lab.start(tn.apps.tcp_bulk("h1", "h2", duration="9 s", port=7000 + number))
        network = Recorded(lab, tmp_path / "run.html").until("1 s")
    assert len(network["followed"]) == 16
    assert (network["traffic"]["count"], len(network["traffic"]["rows"])) == (24, 7)


def test_ways_that_were_kept_while_a_fault_was_sealed_have_no_times(tmp_path: Path) -> None:
    with tn.templates.single(2, rate="10 Mbit", delay="5 ms").simulate(name="") as lab:
        recorded = Recorded(lab, tmp_path / "run.html")
        lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", duration="9 s"))
        assert "delay" in str(recorded.until("1 s")["followed"])
        recorded.acts.do({"act": "seal", "seed": 1})
        (way,) = recorded.until("2 s")["followed"]
        assert way["at_s"] == 2 and "delay" not in str(way) and "_ps" not in str(way)


def test_a_table_asks_nothing_of_the_lab(tmp_path: Path) -> None:
    fake = FakeLab(tn.templates.single(1))
    recording = LabRecording({"links": []}, tmp_path / "run.parquet", fake.lab, Acts(fake.lab).seal)
    before = len(fake.requests)
    recording.add({"now_s": 1.0, "elapsed_s": 0.25, "ways": [], "verdict": VERDICT})
    assert len(fake.requests) == before
    fake.close()
