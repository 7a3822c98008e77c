"""Which size of a study is run on the wall clock where none was asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from twinnet.errors import NotAvailable
from twinnet.study import fitting
from twinnet.study.capacity import LASTING, Capacity
from twinnet.study.fitting import fitting_size, largest_fitting, trial_by
from twinnet.study.plan import PlannedRun, plan_study
from twinnet.study.resolution import Study, load_study
from twinnet.study.runner import Progress
from twinnet.study.store import Measured
from twinnet.yaml_source import SourceError

CARRYING_60_000 = Capacity(round(60_000 / LASTING), round(70_000 / LASTING), {}, datetime.now(UTC))

STUDY = """
study: sizes
title: Sizes
question: Which size fits?
parameters:
  rate: {default: 1 Gbit}
presets:
  full: {text: As written, set: {}}
  tenth: {text: All rates a tenth, set: {rate: 100 Mbit}}
  hundredth: {text: All rates a hundredth, set: {rate: 10 Mbit}}
wall_presets: [full, tenth, hundredth]
network: {template: "single:2", link_defaults: {rate: "${rate}"}}
traffic:
  - {name: bulk, app: tcp, from: [h1], to: h2, port: 5001, duration: 5 s}
measurements:
  rate: {of: throughput, interval: 1 s}
repetitions: 3
clock: wall
"""


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("study") / "study.yaml"
    file.write_text(STUDY, encoding="utf-8")
    return str(file)


def sizes(path: str) -> list[tuple[str, Study]]:
    return [(name, load_study(path, {}, name)) for name in ("full", "tenth", "hundredth")]


@pytest.mark.parametrize(
    ("carried", "tried", "fits"),
    [
        (10_000_000, ["full"], True),
        # A tenth of 1 Gbit/s is 8127 full frames a second, taken and handed over, and acknowledgements.
        (60_000, ["full", "tenth"], True),
        (10_000, ["full", "tenth", "hundredth"], True),
        (10, ["full", "tenth", "hundredth"], False),
    ],
)
def test_the_first_size_that_the_machine_carries_is_the_last_that_is_tried(
    path: str, carried: int, tried: list[str], fits: bool
) -> None:
    found = largest_fitting(sizes(path), carried, 1)
    assert [one.preset for one in found] == tried
    assert found[-1].fits is fits
    needed = [one.needed for one in found]
    assert needed == sorted(needed, reverse=True)


def test_runs_side_by_side_need_so_many_times_as_much(path: str) -> None:
    alone, two = largest_fitting(sizes(path), 1, 1), largest_fitting(sizes(path), 1, 2)
    assert [one.needed for one in two] == pytest.approx([2 * one.needed for one in alone])


def test_what_was_chosen_is_told_with_what_it_scales(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "capacity_here", lambda _: CARRYING_60_000)
    told: list[str] = []
    chosen = fitting_size(path, load_study(path), {}, 1, told.append)
    assert chosen.changes == {"rate": "100 Mbit"}
    assert told[0].startswith("This machine carries 60k frames/s; the runs need at most: full ")
    assert told[1] == "Chosen: tenth. All rates a tenth; --preset full runs the largest anyway."


@pytest.mark.parametrize(
    ("verdicts", "chosen", "said"),
    [
        (["valid"], "100 Mbit", "Chosen: tenth (tenth was valid). All rates a tenth"),
        (["invalid", "valid"], "10 Mbit", "Chosen: hundredth (tenth was invalid, hundredth was valid)."),
        (["doubtful", "failed"], "100 Mbit", "No size was valid in a trial (tenth was doubtful, hundredth was failed)"),
        (["invalid", "invalid"], "10 Mbit", "No size was valid in a trial"),
    ],
)
def test_a_size_that_fits_is_tried_and_left_for_a_smaller_one_where_its_run_is_not_valid(
    path: str, monkeypatch: pytest.MonkeyPatch, verdicts: list[str], chosen: str, said: str
) -> None:
    monkeypatch.setattr(fitting, "capacity_here", lambda _: CARRYING_60_000)
    told: list[str] = []
    waiting = list(verdicts)
    found = fitting_size(path, load_study(path), {}, 1, told.append, lambda _: waiting.pop(0))
    assert (found.changes, waiting) == ({"rate": chosen}, [])
    assert told[-1].startswith(said)


def test_a_trial_that_fails_says_so() -> None:
    def fails(_run: PlannedRun, _progress: Progress) -> Measured:
        raise NotAvailable("no lab can start here", "run twinnet doctor")

    (run, *_) = plan_study(load_study("mtu-sweep", {}, "tiny"))
    assert trial_by(fails)(run) == "failed"


def test_settings_hold_at_every_size(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "capacity_here", lambda _: CARRYING_60_000)
    settings = {"repetitions": "1"}
    assert fitting_size(path, load_study(path, settings), settings, 1, lambda _: None).specification.repetitions == 1


def test_where_no_lab_can_start_the_study_stays_as_it_is(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "capacity_here", lambda _: None)
    study = load_study(path)
    assert fitting_size(path, study, {}, 1, lambda _: None) is study


def test_a_size_that_is_no_preset_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "study.yaml"
    wrong.write_text(STUDY.replace("tenth, hundredth]", "tenht]"), encoding="utf-8")
    with pytest.raises(SourceError, match=r"'wall_presets' names 'tenht'.*did you mean 'tenth'"):
        load_study(wrong)


def test_the_study_of_classes_has_all_clients_down_to_a_hundredth_of_its_rates() -> None:
    study = load_study("qos-class-profiles")
    for preset in ("tenth", "hundredth"):
        size = load_study("qos-class-profiles", {}, preset)
        line, scheduler = (size.parameters[name].number for name in ("line", "scheduler"))
        assert line / scheduler == study.parameters["line"].number / study.parameters["scheduler"].number
        assert size.parameters["clients"].number == 70
