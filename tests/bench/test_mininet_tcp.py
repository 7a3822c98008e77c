"""The benchmark of TCP through a switch of a Mininet script: our side of it."""

from __future__ import annotations

import shutil

import pytest
from labs_here import needs_a_lab

from bench.mininet_tcp import on_twinnet


@needs_a_lab
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
@pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
def test_what_arrives_is_told_in_gigabits() -> None:
    # Any machine carries a tenth of this one's, and none a hundred times as much.
    assert 0.1 < on_twinnet(seconds=1, flows=1) < 1000
