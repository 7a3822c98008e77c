"""``twinnet run``, ``report``, ``compare``, ``studies`` and ``schema``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from twinnet.cli import completion
from twinnet.cli.cluster_commands import cluster_options, places_on
from twinnet.cli.fabric_threads import fabric_threads_option
from twinnet.cli.output import json_option, print_json
from twinnet.cli.shard_commands import chosen_shard, shard_options
from twinnet.report.text_table import sentence_columns, table, terminal_columns, wrapped
from twinnet.report.wording import counted

if TYPE_CHECKING:
    from twinnet.study.analysis import Analysis
    from twinnet.study.forecast import Forecast
    from twinnet.study.plan import PlannedRun
    from twinnet.study.resolution import Study
    from twinnet.study.runner import Executor, Outcome, Places
    from twinnet.study.shard import Deal
    from twinnet.study.store import StoredRun

__all__ = [
    "ASK_ABOVE_S",
    "INTERRUPTED",
    "compare",
    "on_this_machine",
    "report",
    "run",
    "schema",
    "studies",
    "study_options",
]

INTERRUPTED = 130
ASK_ABOVE_S = 600


def _settings(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{one!r} is not NAME=VALUE; write for example --set link_rate='100 Mbit'")
        settings[name.strip()] = value.strip()
    return settings


_Command = Callable[..., Any]

_STUDY_OPTIONS: tuple[Callable[[_Command], _Command], ...] = (
    click.argument("study", shell_complete=completion.studies),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_settings,
        help="Set a parameter or a path such as time_limit.",
    ),
    click.option(
        "--preset", metavar="NAME", shell_complete=completion.presets, help="A size that the study names, such as demo."
    ),
    click.option(
        "--repeat", type=click.IntRange(1, 100_000), metavar="N", help="Repetitions of each combination of levels."
    ),
    click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("results"),
        show_default=True,
        help="Results go to DIR/STUDY.",
        metavar="DIR",
    ),
    click.option(
        "--jobs", type=click.IntRange(1, 256), default=1, show_default=True, metavar="N", help="Runs side by side."
    ),
)


def study_options(command: _Command) -> _Command:
    """Give `command` what every command that makes runs takes: the study, its changes, where results go."""
    for option in reversed(_STUDY_OPTIONS):
        command = option(command)
    return command


@click.command(short_help="Make the runs of a study and tell its answer.")
@study_options
@shard_options
@cluster_options
@click.option("--order", type=click.Choice(["listed", "random"]), help="The order of the runs.")
@click.option(
    "--clock",
    type=click.Choice(["wall", "virtual", "real"]),
    help="Emulate with real hosts, simulate with models, or use physical machines; default: what the study says.",
)
@click.option(
    "--interface",
    type=click.Choice(["auto", "tap", "veth"]),
    default="auto",
    show_default=True,
    help="The hosts' interfaces.",
)
@fabric_threads_option
@click.option("--dry-run", is_flag=True, help="Show the runs, the time and the network; run nothing.")
@click.option("--no-report", is_flag=True, help="Do not write the page, figures and tables.")
@click.option("--with-invalid", is_flag=True, help="Use runs that missed their schedule too.")
@click.option("--yes", is_flag=True, help="Do not ask before a long study.")
@json_option
def run(
    study: str,
    settings: dict[str, str],
    preset: str | None,
    repeat: int | None,
    out: Path,
    jobs: int,
    shard: str | None,
    deal: Deal | None,
    twice: str | None,
    on: str | None,
    keys: Path | None,
    without_tls: bool,
    order: str | None,
    clock: str | None,
    interface: str,
    fabric_threads: int | Literal["auto"] | None,
    dry_run: bool,
    no_report: bool,
    with_invalid: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Make the runs of STUDY: a built-in name (see `twinnet studies`) or the path of a study.yaml.

    Finished runs of the same specification are kept and not made again, so the same command resumes what was
    interrupted. With --shard only a part of the runs is made, and no report is written. With --on the runs are made on
    other machines (see `twinnet worker`), and the results come here. Exit status 1 when a run failed.
    """
    from twinnet.errors import BadValue
    from twinnet.study.execute import LabExecutor
    from twinnet.study.resolution import load_study
    from twinnet.study.store import ResultStore

    if on is not None and (shard is not None or jobs != 1):
        given = "--shard" if shard is not None else "--jobs"
        raise BadValue(f"{given} is given with --on", "leave it out: the slots of the workers say what is made where")

    if repeat is not None:
        settings = {**settings, "repetitions": str(repeat)}
    if order is not None:
        settings = {**settings, "order": order}
    if clock is not None:
        settings = {**settings, "clock": clock}
    loaded = load_study(study, settings, preset)
    if loaded.specification.clock == "real" and (on is not None or jobs != 1):
        raise BadValue(
            f"{'--on' if on is not None else '--jobs'} is given with the real clock",
            "leave it out: the machines of the study make one run at a time",
        )
    if loaded.specification.clock == "wall" and on is None:
        if preset is None and loaded.specification.wall_presets:
            from twinnet.study.fitting import fitting_size, trial_by

            trial = None if dry_run else trial_by(LabExecutor(interface, fabric_threads))
            loaded = fitting_size(study, loaded, settings, jobs, lambda said: click.echo(said, err=True), trial)
        loaded = on_this_machine(loaded)
    executor = LabExecutor(interface, fabric_threads)
    if loaded.specification.clock == "virtual" or on is None:
        executor.check(loaded.specification)
    part = chosen_shard(loaded, shard, deal, twice, with_invalid)
    if dry_run:
        from twinnet.cli.dry_run import tell_plan

        tell_plan(loaded, executor, out / loaded.name, jobs, as_json, part)
        return 0
    if part is not None:
        _ask_before_long(part.plan, executor, jobs, yes)
        return part.run(executor, out / loaded.name, jobs, as_json)
    store = ResultStore(out / loaded.name)
    cluster = places_on(on, keys, without_tls, loaded, store, interface, fabric_threads)
    if cluster is not None:
        with cluster as places:
            click.echo(f"{places.count} slots take the runs of this study", err=True)
            make_again = None
            if loaded.specification.clock == "virtual":
                from twinnet.cluster.made_twice import compare_machines

                make_again = partial(compare_machines, places)
            return run_study(
                loaded, executor, store.folder, 1, not no_report, with_invalid, yes, as_json, None, places, make_again
            )
    forecast = None
    if loaded.specification.clock == "wall":
        from twinnet.study.forecast import forecast_here
        from twinnet.study.plan import plan_study

        forecast = forecast_here(loaded, plan_study(loaded), store, jobs, lambda said: click.echo(said, err=True))
    return run_study(loaded, executor, out / loaded.name, jobs, not no_report, with_invalid, yes, as_json, forecast)


def on_this_machine(study: Study) -> Study:
    """`study` as real hosts can run it here; tells on standard error when that changes it."""
    from twinnet.study.congestion_control import for_this_machine
    from twinnet.study.levels_here import with_levels_here

    for adapt in (for_this_machine, with_levels_here):
        study, told = adapt(study)
        if told:
            click.echo(told, err=True)
    return study


def run_study(
    study: Study,
    executor: Executor,
    folder: Path,
    jobs: int = 1,
    with_report: bool = True,
    with_invalid: bool = False,
    yes: bool = True,
    as_json: bool = False,
    forecast: Forecast | None = None,
    places: Places | None = None,
    make_again: Callable[[Sequence[PlannedRun], Sequence[StoredRun]], int] | None = None,
) -> int:
    """Make the runs of `study` by `executor`, or at `places`, and tell the answer, store `forecast` with them; return
    the exit status. `make_again` makes some of the finished runs again and returns how many."""
    from rich.console import Console

    from twinnet.report.progress import observer_on
    from twinnet.study.analysis import Analysis
    from twinnet.study.plan import plan_study
    from twinnet.study.policy_layout import write_policy_layouts
    from twinnet.study.runner import run_plan
    from twinnet.study.store import ResultStore

    plan = plan_study(study)
    told = Console(stderr=True, highlight=False)
    _ask_before_long(plan, executor, places.count if places is not None else jobs, yes)
    store = ResultStore(folder)
    store.write_study(study)
    write_policy_layouts(study, folder / "layout")
    with observer_on(told) as observer:
        outcome = run_plan(plan, store, executor, observer, jobs, forecast, places)
    if make_again is not None and not outcome.interrupted:
        compared = make_again(plan, outcome.finished)
        if compared:
            told.print(f"{counted(compared, 'run')} made again on another machine: the same traces")
    analysis = Analysis(study, store, with_invalid)
    if outcome.interrupted and not as_json:
        done = f"{len(analysis.stored)} of {len(plan)} runs are finished"
        shown = f"; `twinnet report {folder}` shows their results" if analysis.stored else ""
        told.print(f"interrupted: {done}; the same command goes on{shown}")
        return INTERRUPTED
    page = _write_report(analysis, folder / "report") if with_report and analysis.stored else None
    _tell(analysis, outcome, page, as_json)
    if outcome.interrupted:
        return INTERRUPTED
    return 1 if outcome.failed else 0


def _ask_before_long(plan: Sequence[PlannedRun], executor: Executor, jobs: int, yes: bool) -> None:
    expected_s = sum(executor.expected_s(one) for one in plan) / max(1, min(jobs, len(plan)))
    if not yes and expected_s > ASK_ABOVE_S and sys.stdin.isatty() and sys.stderr.isatty():
        from twinnet.report.wording import worded_span

        click.confirm(f"{len(plan)} runs, up to {worded_span(expected_s)}. Go on?", abort=True, err=True)


def _write_report(analysis: Analysis, folder: Path) -> Path:
    from twinnet.report.write import write_report

    return write_report(analysis, folder)


def _tell(analysis: Analysis, outcome: Outcome | None, page: Path | None, as_json: bool) -> None:
    from rich.console import Console

    from twinnet.report.summary import answer_in_words, print_summary, summary_record

    if as_json:
        record: dict[str, Any] = {**summary_record(analysis), "page": None if page is None else str(page)}
        if outcome is not None:
            record["interrupted"] = outcome.interrupted
        print_json(record)
        return
    width = None if sys.stdout.isatty() else 120
    print_summary(analysis, Console(highlight=False, width=width))
    if page is not None:
        # What a reader who scrolled nothing sees last: the answer, and where it can be looked at.
        words = answer_in_words(analysis)
        figure = next((one for one in sorted(page.parent.glob("*.svg")) if one.stem == "throughput"), None)
        click.echo(f"\n{wrapped(words, terminal_columns(), hanging=0)}" if words else "")
        if words and figure is not None:
            click.echo(f"Figure: {figure}")
        click.echo(f"Report: {page}")


def _load(results: Path, with_invalid: bool = False) -> Analysis:
    from twinnet.study.analysis import analyse
    from twinnet.study.store import ResultStore

    return analyse(ResultStore(results), with_invalid)


_results = click.Path(file_okay=False, path_type=Path)


@click.command(short_help="Write the report of results: a page, figures, tables.")
@click.argument("results", type=_results)
@click.option("--out", type=_results, metavar="DIR", help="Where to write it; default: RESULTS/report.")
@click.option("--with-invalid", is_flag=True, help="Use runs that missed their schedule too.")
@json_option
def report(results: Path, out: Path | None, with_invalid: bool, as_json: bool) -> None:
    """Write one self-contained HTML page, figures (SVG, PDF, PNG) and tables (CSV, LaTeX) of RESULTS.

    RESULTS is the folder that `twinnet run` or `twinnet twin` wrote, such as results/tcp-udp-queues.
    """
    from twinnet.study.store import ResultStore

    store = ResultStore(results)
    if store.holds_twin:
        from twinnet.cli.twin_command import tell_twin
        from twinnet.report.twin_report import write_twin_report
        from twinnet.study.twin import Twin

        compared = Twin(store.read_study(), store)
        tell_twin(compared, write_twin_report(compared, out or results / "report"), as_json)
        return
    analysis = _load(results, with_invalid)
    _tell(analysis, None, _write_report(analysis, out or results / "report"), as_json)


@click.command(short_help="Compare two folders of results, with tests.")
@click.argument("first", type=_results)
@click.argument("second", type=_results)
@click.option("--with-invalid", is_flag=True, help="Use runs that missed their schedule too.")
@json_option
def compare(first: Path, second: Path, with_invalid: bool, as_json: bool) -> int:
    """Compare the results in SECOND with those in FIRST: every mean that both have.

    Differences are SECOND minus FIRST with confidence intervals that hold all at once (Bonferroni); p-values are
    Welch's, adjusted by Holm's method. Where several machines made the runs on the wall clock, both are compared within
    machines; a warning says when the two have no machine in common. Exit status 1 when they have no mean in common.
    """
    from twinnet.report.summary import compared_record, compared_rows
    from twinnet.study.comparison import compare_results

    both = {first: _load(first, with_invalid), second: _load(second, with_invalid)}
    found = compare_results(both[first], both[second])
    unused = [folder for folder, one in both.items() if one.stored and not one.used]
    if as_json:
        print_json(compared_record(found))
    elif found.compared:
        head = ["quantity", "levels", "time", str(first), str(second), "difference", "n", "p", "effect (g)"]
        click.echo(table(head, compared_rows(found), terminal_columns()))
    for folder in unused:
        runs = (
            "its run is invalid"
            if len(both[folder].stored) == 1
            else f"all its {len(both[folder].stored)} runs are invalid"
        )
        click.echo(
            f"{folder} has nothing to compare: {runs}. Add --with-invalid to compare them all the same.", err=True
        )
    if not as_json and not unused and (found.only_first or found.only_second):
        click.echo(
            f"{found.only_first} means only in {first}, {found.only_second} only in {second}: other levels or durations"
        )
    if not as_json and found.warning:
        click.echo(found.warning)
    return 0 if found.compared else 1


@click.command(short_help="List the built-in studies.")
@json_option
def studies(as_json: bool) -> None:
    """List the studies that come with twinnet, each with its question and its presets."""
    from twinnet.study.resolution import built_in_studies
    from twinnet.yaml_source import load_yaml

    # Their own tests check them: a list needs none of the networks and traffic of all combinations of levels.
    described = [(name, load_yaml(path).data) for name, path in built_in_studies().items()]
    rows = [(name, one["title"], one["question"], list(one.get("presets", {}))) for name, one in described]
    if as_json:
        print_json([dict(zip(("name", "title", "question", "presets"), row, strict=True)) for row in rows])
        return
    lines = [[name, question, ", ".join(presets)] for name, _, question, presets in rows]
    click.echo(table(["study", "question", "presets"], lines, sentence_columns()))


@click.command(short_help="Print the JSON schema of a kind of file.")
@click.argument("kind", type=click.Choice(["study", "network"]))
@json_option
def schema(kind: str, as_json: bool) -> None:
    """Print the JSON schema of study files or of network files, for editors that complete and check them."""
    import json

    if kind == "study":
        from twinnet.study.specification import study_json_schema

        found = study_json_schema()
    else:
        from twinnet.network.topology_file import json_schema

        found = json_schema()
    click.echo(json.dumps(found, indent=None if as_json else 2, ensure_ascii=False))
