"""Output of ``twinnet run --dry-run``: the runs that would be made, the time that they take, and the network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinnet.cli.output import print_json

if TYPE_CHECKING:
    from twinnet.study.campaign import Campaign
    from twinnet.study.plan import PlannedRun

__all__ = ["tell_plan"]


def tell_plan(campaign: Campaign, as_json: bool) -> None:
    """Print the plan of `campaign` with the runs that its folder holds already; make none, and write the network's
    picture."""
    from twinnet.drawing.summary import summary_of
    from twinnet.report.network_pictures import network_pictures
    from twinnet.report.text_table import table, terminal_columns, wrapped
    from twinnet.report.wording import counted, worded_span
    from twinnet.study.capacity import kept_capacity
    from twinnet.study.congestion_control import told_controls
    from twinnet.study.forecast import forecast_runs
    from twinnet.study.network_of import network_of
    from twinnet.study.queues_told import queues_told
    from twinnet.study.what_varies import NOTHING_VARIES, what_varies

    study, whole, plan, part = campaign.study, campaign.whole, campaign.plan, campaign.part
    kept = {run.id for run in plan if campaign.folder.is_dir() and campaign.store.find(run) is not None}
    expected_s = campaign.expected_s(of=[run for run in plan if run.id not in kept])
    one_s = campaign.executor.expected_s
    kept_figure = kept_capacity()
    carried = kept_figure.frames_per_second if kept_figure is not None else None
    forecast = forecast_runs(plan, carried, campaign.jobs) if study.specification.clock == "wall" else None
    network = network_of(whole[0].specification, whole[0].levels, whole[0].seed)
    drawn: list[str] = []
    for number, picture in enumerate(network_pictures(study), 1):
        path = Path(f"{study.name}-network{'' if number == 1 else f'-{number}'}.svg")
        path.write_text(picture.svg, encoding="utf-8")
        drawn.append(str(path))
    if as_json:
        runs = [
            {"id": run.id, "levels": dict(run.levels), "repetition": run.repetition, "seed": run.seed}
            | {"finished": run.id in kept, "expected_s": one_s(run)}
            | {"forecast": forecast.record_of(run.id) if forecast is not None else None}
            for run in plan
        ]
        told = {} if part is None else {"shard": str(part.shard), "deal": part.deal, "runs_of_all_shards": len(whole)}
        print_json({**told, "runs": runs, "expected_s": expected_s, "network": summary_of(network), "pictures": drawn})
        return
    click.echo(f"{study.specification.title}\n{study.specification.question}\n")
    click.echo(f"Network: {summary_of(network)}. Picture: {', '.join(drawn) or 'too large for one'}")
    for line in queues_told(study):
        click.echo(wrapped(line, terminal_columns(), hanging=2))
    control = told_controls(study)
    click.echo(f"Clock: {study.specification.clock}. {control or ''}".rstrip())
    if study.specification.repetitions > 1 and not any(map(what_varies, _one_of_each(whole))):
        click.echo("\n" + wrapped(f"Warning: {NOTHING_VARIES}", terminal_columns(), hanging=0))
    if part is not None:
        click.echo(part.told())
    by_levels: dict[tuple[str, ...], list[float]] = {}
    for run in plan:
        by_levels.setdefault(tuple(run.levels.values()), []).append(one_s(run))
    factors = list(study.specification.factors) or ["levels"]
    rows = [[*(levels or ("all",)), str(len(times)), worded_span(times[0])] for levels, times in by_levels.items()]
    click.echo("\n" + table([*factors, "runs", "each takes about"], rows, terminal_columns()))
    if forecast is not None:
        click.echo("\n" + wrapped(forecast.sentence(study), terminal_columns(), hanging=0))
    already = f", {len(kept)} of them finished already" if kept else ""
    click.echo(f"\n{counted(len(plan), 'run')}{already}; about {worded_span(expected_s)}. Nothing was run.")


def _one_of_each(plan: Sequence[PlannedRun]) -> list[PlannedRun]:
    """One run of each combination of levels."""
    return list({tuple(run.levels.items()): run for run in plan}.values())
