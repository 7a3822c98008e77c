"""The benchmark of Mininet scripts on the virtual clock."""

from __future__ import annotations

import shutil

import pytest
from kernels_here import needs_a_kernel

from bench.virtual_scripts import ROWS, measure


@needs_a_kernel
@pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
def test_a_row_has_its_real_and_its_simulated_time() -> None:
    took = measure(ROWS[0])
    # Four ways of 5 ms each, for the ping and for the question by ARP before it.
    assert 0.04 < took.simulated_s < 0.06
    assert 0 < took.real_s < 60
    with pytest.raises(RuntimeError, match="two hosts, one ping: status 0"):
        measure(ROWS[0]._replace(shows="2 received"))
