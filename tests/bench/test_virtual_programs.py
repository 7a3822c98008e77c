"""The measurement of programs on the virtual clock counts what a line can carry, and not the ends of a flow."""

from __future__ import annotations

import shutil

import pytest
from kernels_here import needs_a_kernel

from bench.virtual_programs import _flow


@needs_a_kernel
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_a_flow_has_the_goodput_that_headers_of_ipv4_leave() -> None:
    # 1448 of the 1538 bytes of a frame, but for a frame at each end of the seconds that are counted.
    (goodput_mbps,) = _flow(1, "10 Mbit", "10 ms", 2).goodputs_mbps
    assert goodput_mbps == pytest.approx(10 * 1448 / 1538, rel=0.001)
