"""Output of ``twinnet run --dry-run``: the runs that would be made, the time that they take, and the network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import click

from twinnet.cli.output import print_json

if TYPE_CHECKING:
    from twinnet.study.campaign import Campaign
    from twinnet.study.forecast import Forecast
    from twinnet.study.plan import PlannedRun
    from twinnet.study.resolution import Study

__all__ = ["tell_plan"]

_AROUND_S = 1.0
"""To begin and to print the answer."""


def tell_plan(campaign: Campaign, as_json: bool, with_report: bool, reading_s: float) -> None:
    """Print the plan of `campaign`, which took `reading_s` to read, with the runs that its folder holds already, and
    the time that it takes, with its report or without; keep no run, and write nothing."""
    from twinnet.drawing.summary import summary_of
    from twinnet.report.text_table import terminal_columns, wrapped
    from twinnet.report.trial_runs import try_study
    from twinnet.report.wording import counted, worded_span
    from twinnet.study.brought_code import brought_code
    from twinnet.study.capacity import kept_capacity
    from twinnet.study.congestion_control import controls_in_words
    from twinnet.study.forecast import forecast_runs
    from twinnet.study.kept_captures import captures_in_words
    from twinnet.study.network_of import network_of
    from twinnet.study.queues_in_words import queues_in_words, queues_set_in_vain
    from twinnet.study.what_varies import NOTHING_VARIES, nothing_varies

    study, whole, plan, part = campaign.study, campaign.whole, campaign.plan, campaign.part
    kept = {run.id for run in plan if campaign.folder.is_dir() and campaign.store.find(run) is not None}
    expected = try_study(study, plan, campaign.tell)
    one_s = expected.of
    report_s = expected.report_s if with_report and part is None else 0.0
    side_by_side = max(1, min(campaign.jobs, len(plan) - len(kept)))
    expected_s = _AROUND_S + reading_s + report_s + sum(one_s(run) for run in plan if run.id not in kept) / side_by_side
    kept_figure = kept_capacity()
    carried = kept_figure.frames_per_second if kept_figure is not None else None
    forecast = forecast_runs(plan, carried, campaign.jobs) if study.specification.clock == "wall" else None
    network = network_of(whole[0].specification, whole[0].levels, whole[0].seed)
    asked = study.specification.capture
    loads = campaign.loads
    in_vain = queues_set_in_vain(study, loads)
    captures = captures_in_words(asked, plan, network) if asked is not None else None
    brought = [one.told for one in brought_code(study, whole)]
    if as_json:
        more: dict[str, Any] = {} if captures is None else {"captures": captures[1]}
        more |= {"expected_s": expected_s, "report_s": report_s, "tried": expected.tried}
        more |= {"network": summary_of(network)}
        more |= {"fills": loads.record(), "warnings": in_vain, "brings": brought}
        print_json({**_record(campaign, kept, one_s, forecast), **more})
        return
    click.echo(f"{study.specification.title}\n{study.specification.question}\n")
    click.echo(f"Network: {summary_of(network)}. To draw it: twinnet graph STUDY")
    for line in (*loads.words(), *queues_in_words(study, loads)):
        click.echo(wrapped(line, terminal_columns(), hanging=2))
    if captures is not None:
        click.echo(wrapped(captures[0], terminal_columns(), hanging=2))
    control = controls_in_words(study)
    click.echo(f"Clock: {study.specification.clock}. {control or ''}".rstrip())
    for warning in (*([f"Warning: {NOTHING_VARIES}"] if nothing_varies(whole) else []), *in_vain):
        click.echo("\n" + wrapped(warning, terminal_columns(), hanging=0))
    if brought:
        said = f"The study brings what its runs or its report would run, and what was not run now: {'; '.join(brought)}"
        click.echo("\n" + wrapped(said, terminal_columns(), hanging=0))
    if part is not None:
        click.echo(part.sentence())
    click.echo(f"\n{_table_of(study, plan, one_s)}")
    if forecast is not None:
        click.echo("\n" + wrapped(forecast.sentence(study), terminal_columns(), hanging=0))
    already = f", {len(kept)} of them finished already" if kept else ""
    of_it = f", {worded_span(report_s)} of it for the report" if report_s else ""
    tried = f"{counted(expected.tried, 'run')} tried for a moment, none kept" if expected.tried else "Nothing was run"
    click.echo(f"\n{counted(len(plan), 'run')}{already}; about {worded_span(expected_s)}{of_it}. {tried}.")


def _table_of(study: Study, plan: Sequence[PlannedRun], one_s: Callable[[PlannedRun], float]) -> str:
    """The runs of each combination of levels: how many, and how long each takes."""
    from twinnet.report.text_table import table, terminal_columns
    from twinnet.report.wording import worded_span

    by_levels: dict[tuple[str, ...], list[float]] = {}
    for run in plan:
        by_levels.setdefault(tuple(run.levels.values()), []).append(one_s(run))
    factors = list(study.specification.factors) or ["levels"]
    rows = [[*(levels or ("all",)), str(len(times)), worded_span(times[0])] for levels, times in by_levels.items()]
    return table([*factors, "runs", "each takes about"], rows, terminal_columns())


def _record(
    campaign: Campaign, kept: Collection[str], one_s: Callable[[PlannedRun], float], forecast: Forecast | None
) -> dict[str, Any]:
    """The plan for programs; `kept` are the runs that are finished, and a run takes `one_s`."""
    part = campaign.part
    runs = [
        {"id": run.id, "levels": dict(run.levels), "repetition": run.repetition, "seed": run.seed}
        | {"finished": run.id in kept, "expected_s": one_s(run)}
        | {"forecast": forecast.record_of(run.id) if forecast is not None else None}
        for run in campaign.plan
    ]
    if part is None:
        return {"runs": runs}
    return {"shard": str(part.shard), "deal": part.deal, "runs_of_all_shards": len(campaign.whole), "runs": runs}
