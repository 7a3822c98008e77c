"""The fitted source of `multimedia-fitted`: fitted to one cable, stored as the fit gave it, and played as stored."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import yaml
from twinnet.study.named_studies import STUDIES_FOLDER

from bench.fit_reach import copied, reach
from bench.fit_source import (
    CONTENT_BYTES,
    FOLDER,
    RECEIVER_US,
    STREAM_S,
    Lateness,
    Source,
    cable_row,
    fitted,
    jitter,
    jitter_before_event,
    last_packets,
    statistics,
)

LATENESS = Lateness(900, 4.5, 75)


def stored() -> Source:
    sizes = [int(line.split()[0]) for line in (FOLDER / "frame-sizes.txt").read_text().splitlines()]
    assert all(size % CONTENT_BYTES == 0 for size in sizes)
    return Source(STREAM_S * 1e3 / len(sizes), np.array(sizes) // CONTENT_BYTES)


def test_the_fit_sees_the_real_cable_and_nothing_else() -> None:
    row = cable_row()
    # Topology 1, real; the jitter's variance was printed as "<0.01" and is no number.
    assert len(row) == 14
    assert (row["bandwidth", "mean"], row["delay", "max"], row["jitter", "max"]) == (1337.26, 94.97, 3.26)


def test_both_studies_stand_beside_the_same_published_figures() -> None:
    assert (FOLDER / "published.csv").read_text() == (STUDIES_FOLDER / "multimedia-delivery/published.csv").read_text()


def test_the_stored_source_has_the_cables_figures() -> None:
    found, row = statistics(jitter(stored(), LATENESS, 1)[0]), cable_row()
    for key, value in row.items():
        if key[0] != "jitter" and value:
            assert found[key] == pytest.approx(value, rel=0.005), key


def test_a_search_lowers_the_error_and_gives_the_same_source_each_time() -> None:
    row = cable_row()
    first, longer = (statistics(fitted(row, steps=steps).due_s()) for steps in (1, 400))
    key = ("bandwidth", "variance")
    assert abs(longer[key] / row[key] - 1) < abs(first[key] / row[key] - 1)
    assert np.array_equal(fitted(row, steps=100).packets, fitted(row, steps=100).packets)


def test_the_study_plays_the_fitted_windows_and_lateness() -> None:
    study = yaml.safe_load((FOLDER / "study.yaml").read_text())
    video = study["traffic"][0]
    assert video["shaping"] == f"{stored().window_ms:.3f} ms"
    assert video["frame_sizes"] == "frame-sizes.txt"
    # One list of packets for each window: its frame is due in it, from the first window to the last.
    windows = [int(number / video["frames_per_second"] / (stored().window_ms / 1e3)) for number in range(263)]
    assert windows == list(range(263))
    for network in study["networks"].values():
        values = network["links"][0]["a_to_b"]["jitter"]["values"]
        assert sorted(values) == sorted(["4500 us", *(f"{value} us" for value in LATENESS.values_us()[:-1])])


def test_the_study_receives_as_a_host_was_measured_to() -> None:
    study = yaml.safe_load((FOLDER / "study.yaml").read_text())
    times = (study["parameters"][name]["default"] for name in ("processing", "processing_jitter"))
    assert tuple(times) == tuple(f"{value:g} us" for value in RECEIVER_US)
    for network in study["networks"].values():
        assert network["hosts"]["h2"]["processing"] == "${processing}"


def test_the_serial_lines_have_what_inserted_zeros_leave() -> None:
    levels = yaml.safe_load((FOLDER / "study.yaml").read_text())["factors"]["case"]["levels"]
    for megabit in (2, 4, 8):
        rate, unit = levels[f"topology-3-{megabit}"]["set"]["line_rate"].split()
        assert unit == "kbit" and float(rate) == pytest.approx(megabit * 1000 * 62 / 63, abs=0.001)


def test_the_greatest_jitter_of_the_cable_came_at_the_end() -> None:
    row = cable_row()
    assert 1 < last_packets(row) < 4
    # In the stream's middle it would fill the deviation alone: there is no number of packets that follow it.
    assert last_packets({**row, ("jitter", "std"): 0.13}) == float("inf")
    mean, deviation = jitter_before_event(row)
    assert 0.043 < mean < row["jitter", "mean"] and 0.04 < deviation < row["jitter", "std"]


def test_a_source_that_the_cable_describes_has_no_three_quarters_of_the_figures_in_reach() -> None:
    found = reach()
    counted = Counter(found.values())
    assert counted == {"open": 47, "met by Mininet": 13, "unlike the cable": 11, "impossible": 1, "not comparable": 3}
    readme = (FOLDER / "README.md").read_text()
    for frame_time, row in ((False, "the cable's row, copied"), (True, "the same, with the time of one frame")):
        told = copied(frame_time)
        (line,) = (line for line in readme.splitlines() if line.startswith(f"| {row}"))
        assert line.endswith(f"| {told['closer']} | {told['not told apart']} | {told['farther']} |")
    assert [copied(True)[name] for name in ("closer", "not told apart", "farther")] == [31, 14, 30]
    assert found["3", "4", "jitter", "std"] == "impossible" and found["2", "10", "delay", "mean"] == "unlike the cable"
