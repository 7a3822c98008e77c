"""``twinnet run``, ``report``, ``compare``, ``studies`` and ``schema``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from twinnet.cli import completion
from twinnet.cli.cluster_commands import check_cluster_options, cluster_options
from twinnet.cli.fabric_threads import fabric_threads_option
from twinnet.cli.output import json_option, print_json
from twinnet.cli.shard_commands import chosen_part, run_part, shard_options
from twinnet.cli.shared_options import FOLDER, run_code_option, with_invalid_option, yes_option
from twinnet.report.text_table import sentence_columns, table, terminal_columns, wrapped
from twinnet.report.wording import counted

if TYPE_CHECKING:
    from twinnet.study.analysis import Analysis
    from twinnet.study.campaign import Campaign, CompareAgain
    from twinnet.study.runner import Outcome, Places
    from twinnet.study.shard import Deal

__all__ = [
    "INTERRUPTED",
    "ask_before_long",
    "compare",
    "report",
    "run",
    "schema",
    "studies",
    "study_options",
    "tell_on_the_side",
]

INTERRUPTED = 130
_ASK_ABOVE_S = 600


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
        type=FOLDER,
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


@click.command(short_help="Make the runs of a study and report its answer.")
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
@click.option(
    "--traces",
    type=FOLDER,
    metavar="DIR",
    help="Virtual clock: write each run's trace to it; see `twinnet traces`.",
)
@click.option("--dry-run", is_flag=True, help="Show the runs, the time and the network; keep no run.")
@click.option("--no-report", is_flag=True, help="Do not write the page, figures and tables.")
@with_invalid_option
@yes_option
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
    traces: Path | None,
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
    from twinnet.study.campaign import Campaign

    check_cluster_options(on, keys, without_tls)
    if on is not None:
        _check_with_on(shard, jobs, traces)
    begin_s = time.process_time()
    campaign = Campaign.read(
        study,
        out=out,
        preset=preset,
        settings=settings,
        repetitions=repeat,
        clock=clock,
        order=order,
        jobs=jobs,
        elsewhere=on is not None,
        interface=interface,
        fabric_threads=fabric_threads,
        tell=tell_on_the_side,
        trial=not dry_run,
        traces=traces,
    )
    part = chosen_part(campaign.study, shard, deal, twice, with_invalid)
    campaign = replace(campaign, part=part)
    if dry_run:
        from twinnet.cli.dry_run import tell_plan

        tell_plan(campaign, as_json, not no_report, time.process_time() - begin_s)
        return 0
    if part is not None:
        ask_before_long(len(campaign.plan), campaign.expected_s(), yes)
        return run_part(campaign, part, as_json)
    if on is None:
        return run_study(campaign, not no_report, with_invalid, yes, as_json)
    from twinnet.cluster.client import places_for
    from twinnet.cluster.made_twice import comparison_on

    with places_for(on, keys, without_tls, campaign.study, campaign.store, interface, fabric_threads) as places:
        click.echo(f"{places.count} slots take the runs of this study", err=True)
        again = comparison_on(places, campaign.study)
        return run_study(campaign, not no_report, with_invalid, yes, as_json, places, again)


def _check_with_on(shard: str | None, jobs: int, traces: Path | None) -> None:
    from twinnet.errors import BadValue

    if shard is not None or jobs != 1:
        given = "--shard" if shard is not None else "--jobs"
        raise BadValue(f"{given} is given with --on", "leave it out: the slots of the workers say what is made where")
    if traces is not None:
        raise BadValue("--traces is given with --on", "make the run in question on each machine by itself")


def tell_on_the_side(said: str) -> None:
    """Print a sentence on standard error."""
    click.echo(said, err=True)


def run_study(
    campaign: Campaign,
    with_report: bool = True,
    with_invalid: bool = False,
    yes: bool = True,
    as_json: bool = False,
    places: Places | None = None,
    again: CompareAgain | None = None,
) -> int:
    """Make the runs of `campaign`, here or at `places`, print the answer, and return the exit status; `again` makes
    some of the finished runs again elsewhere."""
    from twinnet.report.console import text_console
    from twinnet.report.progress import observer_on

    console = text_console(stderr=True)
    ask_before_long(len(campaign.plan), campaign.expected_s(None if places is None else places.count), yes)
    with observer_on(console) as observer:
        outcome = campaign.make(observer, places, again)
    if outcome.made_again:
        console.print(f"{counted(outcome.made_again, 'run')} made again on another machine: the same traces")
    analysis = campaign.analysis(with_invalid)
    if outcome.interrupted and not as_json:
        done = f"{len(analysis.stored)} of {len(campaign.plan)} runs are finished"
        shown = f"; `twinnet report {campaign.folder}` shows their results" if analysis.stored else ""
        console.print(f"interrupted: {done}; the same command goes on{shown}")
        return INTERRUPTED
    page = _write_report(analysis, campaign.folder / "report") if with_report and analysis.stored else None
    _tell(analysis, outcome, page, as_json)
    if outcome.interrupted:
        return INTERRUPTED
    return 1 if outcome.failed else 0


def ask_before_long(runs: int, expected_s: float, yes: bool) -> None:
    """Ask the user at a terminal before `runs` that take long, unless `yes`; a no ends the command."""
    if not yes and expected_s > _ASK_ABOVE_S and sys.stdin.isatty() and sys.stderr.isatty():
        from twinnet.report.wording import worded_span

        click.confirm(f"{runs} runs, up to {worded_span(expected_s)}. Go on?", abort=True, err=True)


def _write_report(analysis: Analysis, folder: Path) -> Path:
    from twinnet.live.finished import write_recordings
    from twinnet.report.write import write_report

    return write_report(analysis, folder, write_recordings(analysis, folder))


def _tell(analysis: Analysis, outcome: Outcome | None, page: Path | None, as_json: bool) -> None:
    from twinnet.report.console import text_console
    from twinnet.report.page import lead_name
    from twinnet.report.summary import answer_in_words, print_summary, summary_record

    if as_json:
        record: dict[str, Any] = {**summary_record(analysis), "page": None if page is None else str(page)}
        if outcome is not None:
            record["interrupted"] = outcome.interrupted
        print_json(record)
        return
    width = None if sys.stdout.isatty() else 120
    print_summary(analysis, text_console(width=width))
    if page is not None:
        # What a reader who scrolled nothing sees last: the answer, and where it can be looked at.
        words = answer_in_words(analysis)
        click.echo(f"\n{wrapped(words, terminal_columns(), hanging=0)}" if words else "")
        if words and (name := lead_name(analysis)) is not None:
            click.echo(f"Figure: {page.parent / name}.svg")
        click.echo(f"Report: {page}")


def _load(results: Path, with_invalid: bool = False) -> Analysis:
    from twinnet.study.analysis import analyse
    from twinnet.study.store import ResultStore

    return analyse(ResultStore(results), with_invalid)


@click.command(short_help="Write the report of results: a page, figures, tables.")
@click.argument("results", type=FOLDER)
@click.option("--out", type=FOLDER, metavar="DIR", help="Where to write it; default: RESULTS/report.")
@with_invalid_option
@run_code_option
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
@click.argument("first", type=FOLDER)
@click.argument("second", type=FOLDER)
@with_invalid_option
@run_code_option
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
    """List the studies that come with twinnet or with other packages, each with its question and its presets."""
    from twinnet.study.named_studies import named_studies
    from twinnet.yaml_source import load_yaml

    # Their own tests check them: a list needs none of the networks and traffic of all combinations of levels.
    described = [(name, load_yaml(path).data) for name, path in named_studies().items()]
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
