"""Figures of values over time: of packets where they were kept, of what receivers counted elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from twinnet.cli import run as command_line
from twinnet.report import distribution_section
from twinnet.report.distribution_section import value_figures
from twinnet.report.drawn import matplotlib_figure
from twinnet.report.panels import Line, Panel
from twinnet.study.analysis import Analysis, analyse
from twinnet.study.store import ResultStore


def made(folder: Path, study: str) -> Analysis:
    assert command_line(["run", study, "--preset", "tiny", "--no-report", "--out", str(folder)]) == 0
    return analyse(ResultStore(folder / study))


def test_jitter_is_of_intervals_where_no_packets_were_kept(tmp_path: Path) -> None:
    (figure,) = value_figures(made(tmp_path, "mtu-sweep"))
    assert figure.name == "values-jitter" and "the mean of each interval" in figure.caption
    # On lines with room there is no jitter but in the first moment: nothing that a figure could say.
    assert len(figure.panels) == 8 and "4 combinations of levels are next to zero" in figure.caption
    assert not any("10 Mbit/s on 100 Mbit/s" in panel.title for panel in figure.panels)
    (line,) = figure.panels[0].lines
    # A quarter of the study's 200 ms each.
    assert np.allclose(np.diff(line.time_s), 0.05)
    assert not line.has_band and line.mean.min() > 0
    # Jitter differs by more than ten between rates, so each panel has its own axis.
    tops = [panel.y_top for panel in figure.panels]
    assert all(top is not None and top > 0 for top in tops) and len(set(tops)) > 1
    assert matplotlib_figure(figure).axes[0].get_ylim()[1] == tops[0]


def test_values_of_packets_have_their_least_and_greatest(tmp_path: Path) -> None:
    figures = {figure.name: figure for figure in value_figures(made(tmp_path, "multimedia-delivery"))}
    assert set(figures) == {"values-bandwidth", "values-delay", "values-jitter"}
    for figure in figures.values():
        assert "of every packet" in figure.caption
        for panel in figure.panels:
            (line,) = panel.lines
            assert (line.low <= line.mean + 1e-9).all() and (line.mean <= line.high + 1e-9).all()


def test_values_below_zero_are_on_the_axis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([-3e-3, 1e-3, 2e-3])
    line = Line("video", np.arange(3.0), values, np.full(3, np.nan), np.full(3, np.nan))
    monkeypatch.setattr(distribution_section, "_value_panels", lambda analysis, name: [Panel("", (line,))])
    figure = value_figures(made(tmp_path, "multimedia-delivery"))[0]
    low, high = matplotlib_figure(figure).axes[0].get_ylim()
    (drawn,) = figure.panels[0].lines
    assert low < drawn.mean.min() < 0 < drawn.mean.max() < high
