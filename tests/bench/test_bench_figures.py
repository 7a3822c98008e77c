"""What the benchmarks print, write and read: figures, their tables, and how busy the machine was."""

from __future__ import annotations

import importlib
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from bench import __main__ as command
from bench import quiet
from bench.figure import Figure, print_figures, shown
from bench.generators import _dropped


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (1234567, "1,234,567"),
        (99.96, "100.0"),
        (5.2049, "5.20"),
        (0.0123456, "0.0123"),
        (-2.5, "-2.50"),
    ],
)
def test_a_value_is_shown_with_three_digits_and_no_exponent(value: float | None, text: str) -> None:
    assert shown(value) == text


def test_a_figure_is_the_median_of_its_samples_or_the_worst_of_them() -> None:
    assert Figure("a", "s", [3, 1, 2]).value == 2
    assert Figure("a", "s", [3, 1, 2], summary="worst").value == 3
    assert Figure("a", "s", []).value is None


def test_a_ratio_is_told_only_of_what_has_one() -> None:
    figure = Figure("a", "s", [2.0], {"peer": [4.0], "nothing": [0.0], "absent": []})
    assert figure.ratio("peer") == 0.5
    assert figure.beside("peer") == "peer: 4.00 (0.500)"
    assert (figure.ratio("nothing"), figure.beside("nothing")) == (None, "nothing: 0")
    assert figure.beside("absent") == "absent: -"
    # An error with a sign is no quantity of which the other is a multiple.
    assert Figure("error", "%", [-1.0], {"peer": [2.0]}).ratio("peer") is None


def test_a_table_tells_what_is_met_and_what_is_not() -> None:
    figures = [
        Figure("speed", "Gbit/s", [12.0], {"peer": [6.0]}, "at least 10", True),
        Figure("delay", "", [7.0], target="at most 5", met=False, note="a reason"),
    ]
    printed = io.StringIO()
    print_figures(Console(file=printed, width=120), "Both", figures)
    assert "speed [Gbit/s]" in printed.getvalue()
    assert "  delay: a reason" in printed.getvalue()


def test_a_figure_in_a_file_has_its_samples_beside_its_value() -> None:
    told = json.loads(json.dumps(Figure("a", "s", [1.0, 3.0], {"peer": [4.0]}).to_json()))
    assert told["ours"] == {"value": 2.0, "samples": [1.0, 3.0]}
    assert told["peers"]["peer"] == {"value": 4.0, "ratio": 0.5, "samples": [4.0]}


def test_what_is_measured_before_the_machine_is_quiet_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    def busy() -> float:
        looks.append(100.0)
        return 100.0

    monkeypatch.setattr(quiet, "_busy_percent", busy)
    one = quiet.Quiet(budget_s=1.0)
    one.wait()
    assert 2 <= len(looks) <= 6
    one.wait()
    assert one.seen == [100.0, 100.0]


def test_an_unknown_part_is_refused_with_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "speeed"])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert "there is no part 'speeed'; allowed are command_line, start_stop" in capsys.readouterr().err


def test_every_part_has_a_title_and_something_to_measure() -> None:
    for name in command.PARTS:
        part = importlib.import_module(f"bench.{name}")
        assert part.TITLE
        assert callable(part.measure)
    assert {path.stem for path in Path(command.__file__).parent.glob("*.py")} >= set(command.PARTS)


@pytest.mark.parametrize(
    ("error", "count"),
    [
        ("the socket's buffer was full (17 times)", 17),
        ("the socket's buffer was full", 1),
        ("connection refused (3 times)", 0),
    ],
)
def test_datagrams_that_a_receiver_had_no_room_for_are_counted_from_its_error(error: str, count: int) -> None:
    assert _dropped(error) == count
