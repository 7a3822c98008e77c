"""The size of a study that this machine carries on the wall clock: the largest of its presets whose runs fit, by the
forecast and by a trial."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from twinnet.errors import TwinnetError
from twinnet.study.capacity import capacity_here
from twinnet.study.forecast import Forecast, forecast_runs
from twinnet.study.plan import PlannedRun, plan_study
from twinnet.study.resolution import Study, load_study
from twinnet.study.runner import Executor, Progress

__all__ = ["SizeTried", "Trial", "fitting_size", "largest_fitting", "trial_by"]

Trial = Callable[[PlannedRun], str]
"""Makes a run, and gives its verdict: ``valid``, ``doubtful``, ``invalid``, or ``failed`` where none was made."""


@dataclass(frozen=True)
class SizeTried:
    """A size of the study, and what its most demanding run needs.

    Parameters
    ----------
    preset
        Its name.
    study
        The study at this size.
    needed
        Frames in and out a second, of all runs that are made side by side.
    fits
        Whether the machine carries that.
    """

    preset: str
    study: Study
    needed: float
    fits: bool

    @property
    def similarity(self) -> str:
        """The similarity to the full size, as the preset states it: what is kept and what is scaled."""
        return self.study.specification.presets[self.preset].text


def largest_fitting(sizes: Sequence[tuple[str, Study]], carried: int, side_by_side: int) -> list[SizeTried]:
    """Return the sizes that were tried, largest first: the last is the first that fits, or the smallest of all.

    Parameters
    ----------
    sizes
        Presets and the study at each, from the largest to the smallest.
    carried
        Frames in and out a second that the machine carries.
    side_by_side
        How many runs are made at once.
    """
    tried: list[SizeTried] = []
    for preset, study in sizes:
        forecast: Forecast = forecast_runs(plan_study(study), carried, side_by_side)
        needed = max(forecast.needed.values(), default=0.0) * forecast.side_by_side
        tried.append(SizeTried(preset, study, needed, not forecast.exceeding))
        if tried[-1].fits:
            break
    return tried


def trial_by(execute: Executor) -> Trial:
    """Return the trial that makes a run by `execute` and keeps nothing of it but the verdict."""

    def verdict_of(run: PlannedRun) -> str:
        try:
            return execute(run, Progress(threading.Event())).fidelity.verdict
        except (TwinnetError, OSError):
            return "failed"

    return verdict_of


def fitting_size(
    name: str,
    study: Study,
    settings: Mapping[str, str],
    side_by_side: int,
    tell: Callable[[str], None],
    trial: Trial | None = None,
) -> Study:
    """Return `study`, which was read as `name` with `settings`, at the largest of its `wall_presets` that this machine
    carries; `tell` gets which that is and why. Unchanged for a study that has none, or where no lab can start.

    The forecast counts frames; what hosts and their apps take, it does not know. So with a `trial` the most demanding
    run of the size that fits is made, and of the next smaller one until a run is valid.
    """
    presets = study.specification.wall_presets
    if not presets:
        return study
    capacity = capacity_here(tell)
    if capacity is None:
        return study
    carried = capacity.frames_per_second
    tried = largest_fitting([(preset, load_study(name, settings, preset)) for preset in presets], carried, side_by_side)
    chosen = tried[-1]
    said = ", ".join(f"{one.preset} {_thousands(one.needed)}" for one in tried)
    tell(f"This machine carries {_thousands(carried)} frames/s; the runs need at most: {said}.")
    if chosen.fits and trial is not None:
        smaller = presets[presets.index(chosen.preset) :]
        return _valid_size(
            [(one, load_study(name, settings, one)) for one in smaller], carried, side_by_side, tell, trial
        )
    if chosen.fits:
        others = f"; --preset {presets[0]} runs the largest anyway" if chosen.preset != presets[0] else ""
        tell(f"Chosen: {chosen.preset}. {chosen.similarity}{others}.")
    else:
        tell(f"No size fits; {chosen.preset}, the smallest, is run and may not be valid. {chosen.similarity}.")
    return chosen.study


def _valid_size(
    sizes: Sequence[tuple[str, Study]], carried: int, side_by_side: int, tell: Callable[[str], None], trial: Trial
) -> Study:
    """Return the largest of `sizes` of which one run is valid; without one the largest doubtful, or the smallest."""
    verdicts: dict[str, str] = {}
    for preset, study in sizes:
        plan = plan_study(study)
        needed = forecast_runs(plan, carried, side_by_side).needed
        hardest = max(plan, key=lambda run: needed.get(run.id, 0.0))
        tell(f"Trying {preset} by one run ({hardest.id}), which is not kept.")
        verdicts[preset] = trial(hardest)
        if verdicts[preset] == "valid":
            break
    found = {verdict: preset for preset, verdict in reversed(verdicts.items())}
    last = sizes[len(verdicts) - 1][0]
    preset = found.get("valid") or found.get("doubtful") or last
    chosen = next(study for one, study in sizes if one == preset)
    said = ", ".join(f"{one} was {verdict}" for one, verdict in verdicts.items())
    similarity = chosen.specification.presets[preset].text
    if verdicts[preset] == "valid":
        tell(f"Chosen: {preset} ({said}). {similarity}; --preset NAME runs another size anyway.")
    else:
        tell(f"No size was valid in a trial ({said}); {preset} is run and may not be. {similarity}.")
    return chosen


def _thousands(frames: float) -> str:
    return f"{round(frames / 1000):,}k"
