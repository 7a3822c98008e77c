"""A truth about networks is judged true at every rate that the first study is run at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from twinnet.cli import run as command_line


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["link_rate=100 Mbit", "queue_rate=51.2 Mbit", "udp_rate=51.2 Mbit", "queue_frames=1000", "http_bytes=3 MB"],
    ],
)
def test_the_demo_supports_every_statement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: list[str]
) -> None:
    changes = [word for setting in settings for word in ("--set", setting)]
    # Five: of some quantities all repetitions have the same value, which shows no spread; five decide (sign test).
    options = ["--preset", "demo", "--repeat", "5", "--clock", "virtual", "--no-report", "--yes", "--json"]
    assert command_line(["run", "tcp-udp-queues", *options, "--out", str(tmp_path), *changes]) == 0
    told = json.loads(capsys.readouterr().out)
    judged = {one["id"]: one["verdict"] for one in told["statements"]}
    # Published of 1 Gbit/s: at these rates a segment of TCP is a larger share of what the line carries in a round trip.
    del judged["tcp-starves-in-the-shared-queue"]
    assert set(judged.values()) == {"supported"}, judged
    assert told["in_words"].startswith("In the shared queue UDP takes ")
