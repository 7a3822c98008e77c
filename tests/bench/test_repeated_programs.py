"""The measurement of equal runs: it runs programs in each condition, and tells of a run that failed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kernels_here import needs_a_kernel
from twinnet.guest import needed

from bench.repeated_programs import NUMBERS, SCENARIOS, build_program, conditions, trace_of


def a_folder_with_a_kernel(folder: Path) -> Path:
    shutil.copy(needed().path, folder / "linux")
    return folder


def test_there_are_eleven_scenarios_and_conditions_with_names_of_their_own() -> None:
    assert len(SCENARIOS) == 11
    names = [name for name, _, _ in conditions()]
    assert len(set(names)) == len(names) >= 3


@needs_a_kernel
@pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
def test_a_run_elsewhere_has_the_trace_of_the_first(tmp_path: Path) -> None:
    folder = a_folder_with_a_kernel(tmp_path)
    as_it_is, others = conditions()[:2]
    trace = trace_of("pings over 10 ms", as_it_is[1], as_it_is[2], folder)
    assert len(trace.split()) == 3
    assert trace_of("pings over 10 ms", others[1], others[2], folder) == trace


@needs_a_kernel
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_what_the_processor_gives_is_the_same_in_each_run(tmp_path: Path) -> None:
    folder = a_folder_with_a_kernel(tmp_path)
    assert build_program(folder)
    ways = {name: (command, environment) for name, command, environment in conditions()}
    names = ("as it is", "as it is", "beside 300 other files")
    assert len({trace_of(NUMBERS, *ways[name], folder) for name in names}) == 1


@needs_a_kernel
def test_a_run_that_fails_is_told(tmp_path: Path) -> None:
    folder = a_folder_with_a_kernel(tmp_path)
    with pytest.raises(OSError, match="no such scenario"):
        trace_of("no such scenario", lambda command, _: command, {}, folder)
