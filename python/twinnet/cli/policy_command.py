"""``twinnet policy``: list, show, new, compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinnet.cli import completion
from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import FOLDER, parallel_edges_option
from twinnet.report.text_table import sentence_columns, table, terminal_columns

if TYPE_CHECKING:
    from twinnet.network import Network
    from twinnet.network.graphs import ParallelEdges
    from twinnet.policies import CompiledPolicy, Policy

__all__ = ["policy"]

_USUAL_RATE = "1 Gbit"
_INSTALLED: Mapping[str, str] = {
    "proactive": "proactively: a switch gets all rules when it joins",
    "reactive": "reactively: a switch gets a class's rules when the first packet of the class comes to the controller",
}


@click.group(short_help="QoS policies: list, show, write and compare them.")
def policy() -> None:
    """QoS policies: which traffic classes there are, what each gets, and where that is enforced.

    Each of these commands takes --json.
    """


@policy.command("list")
@json_option
def list_policies(as_json: bool) -> None:
    """List the policies that have a name: those of twinnet and of other packages that are installed."""
    from twinnet.policies import find_policy, known_policies

    found = [(name, find_policy(name)) for name in known_policies()]
    if as_json:
        print_json([_described(name, one) for name, one in found])
        return
    width = sentence_columns()
    click.echo(table(["policy", "what it does"], [[name, one.title] for name, one in found], width))


@policy.command("show")
@click.argument("name", metavar="POLICY", shell_complete=completion.policies)
@click.option(
    "--network",
    "where",
    shell_complete=completion.networks,
    metavar="FILE|TEMPLATE",
    help="The network; default: tree:2,2.",
)
@parallel_edges_option
@click.option("--at", "places", multiple=True, metavar="PLACE", help="core (the default), leaf, all, a switch, a port.")
@click.option("--rate", help="What each scheduler may send; default: its line's rate, 1 Gbit where it has none.")
@click.option(
    "--set", "assignments", multiple=True, metavar="NAME=VALUE", help="A setting of the policy: installation=reactive."
)
@click.option("--rules", is_flag=True, help="Print the commands for Open vSwitch as well.")
@json_option
def show(
    name: str,
    where: str | None,
    parallel_edges: ParallelEdges | None,
    places: tuple[str, ...],
    rate: str | None,
    assignments: tuple[str, ...],
    rules: bool,
    as_json: bool,
) -> None:
    """Show what POLICY promises, and its classes, queues and rules in a network.

    POLICY is a name that `twinnet policy list` knows, or your own module:function or module:Class, also in the current
    folder.
    """
    from twinnet.policies import Enforcement, compile_policy, find_policy, open_vswitch_commands
    from twinnet.report.wording import counted

    found = find_policy(name, _settings(assignments))
    at = "core" if not places else places[0] if len(places) == 1 else list(places)
    compiled = compile_policy(
        _network(where or "tree:2,2", parallel_edges), found, Enforcement(at, rate, without_line=_USUAL_RATE)
    )
    commands = open_vswitch_commands(compiled) if rules else []
    if as_json:
        print_json(_described(name, found) | _compiled(compiled) | ({"commands": commands} if rules else {}))
        return
    described = _described(name, found)
    click.echo("\n".join(f"{key:>9}: {value}" for key, value in described.items() if value))
    click.echo()
    rows = [[str(row["queue"]), row["class"], row["minimum"], row["maximum"]] for row in _compiled(compiled)["classes"]]
    click.echo(table(["queue", "class", "minimum", "maximum"], rows, terminal_columns()))
    ports = counted(len(compiled.ports), "port")
    switches = counted(len({one.switch for one in compiled.ports}), "switch", "switches")
    ruled = counted(len(compiled.switches), "switch", "switches")
    click.echo(
        f"\nEnforced at {compiled.enforcement.text}: {ports} of {switches}. "
        f"{counted(compiled.rule_count, 'rule')} in {ruled}."
    )
    if rules and found.installation == "reactive":
        click.echo(
            "The commands below install the rules of all classes at once: only twinnet's controller waits for them."
        )
    if rules:
        click.echo("\n" + "\n".join(commands))


@policy.command("new")
@click.argument("name")
@click.option(
    "--in", "folder", type=click.Path(file_okay=False, exists=True, path_type=Path), default=Path(), help="The folder."
)
@json_option
def new(name: str, folder: Path, as_json: bool) -> None:
    """Write a commented policy NAME and its test into the current folder, or into the folder of --in."""
    from twinnet.policies.skeleton import write_skeleton

    written = write_skeleton(name, folder)
    if as_json:
        print_json([str(path) for path in written])
        return
    for path in written:
        click.echo(f"wrote {path}")
    click.echo(f"try it: python -m pytest {written[1]}")


@policy.command("compare")
@click.argument("results", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option("--out", type=FOLDER, help="Output folder; default: RESULTS/policies.")
@json_option
def compare(results: Path, out: Path | None, as_json: bool) -> None:
    """Compare the policies of RESULTS, which `twinnet run` wrote: tables of each profile, the leaves against the core,
    and a ranking as a table and a figure."""
    from twinnet.report.policy_comparison import places_compared, profile_table, ranking, ranking_figure
    from twinnet.report.policy_samples import profile_samples
    from twinnet.study.store import ResultStore

    profiles = profile_samples(run for run in ResultStore(results).all_runs() if run.record.get("status") == "finished")
    folder = out or results / "policies"
    folder.mkdir(parents=True, exist_ok=True)
    tables = {"profiles": profile_table(profiles), "leaf-and-core": places_compared(profiles)}
    tables["ranking"] = ranking(profiles)
    for name, frame in tables.items():
        frame.write_csv(folder / f"{name}.csv")
    ranking_figure(tables["ranking"], folder / "ranking.svg")
    misplaced = [line for one in profiles for line in one.misplaced]
    full = [[one.label, port, name, str(drops)] for one in profiles for (port, name), drops in one.full_queues.items()]
    if as_json:
        print_json({name: frame.to_dicts() for name, frame in tables.items()} | {"misplaced": misplaced, "full": full})
        return
    best = tables["ranking"]
    columns = [name for name in best.columns if name not in ("policy", "enforced_at")]
    click.echo(table(columns, [[_cell(row[name]) for name in columns] for row in best.to_dicts()], terminal_columns()))
    if not tables["leaf-and-core"].is_empty():
        click.echo("\nLeaves and core (difference: leaf minus core):")
        columns = [
            "profiles",
            "quantity",
            "leaf_mean",
            "core_mean",
            "student_p",
            "word",
            "welch_p_holm",
            "mann_whitney_p",
            "effect_g",
        ]
        click.echo(
            table(
                columns,
                [[_cell(row[name]) for name in columns] for row in tables["leaf-and-core"].to_dicts()],
                terminal_columns(),
            )
        )
    if full:
        most = sorted(full, key=lambda row: -int(row[3]))[:12]
        click.echo("\nQueues that were full (frames dropped, all repetitions; the twelve with most):")
        click.echo(table(["profile", "port", "class", "dropped"], most, terminal_columns()))
    for line in misplaced:
        click.echo(f"warning: {line}")
    click.echo(f"\nFiles: {folder}")


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    # Four digits, and no power of ten for what people read.
    return f"{float(f'{value:.4g}'):.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def _described(name: str, one: Policy) -> dict[str, Any]:
    return {
        "policy": name,
        "title": one.title,
        "promise": one.promise,
        "origin": one.origin,
        "fails": one.fails,
        "installed": _INSTALLED[one.installation],
    }


def _settings(assignments: Sequence[str]) -> dict[str, Any]:
    import yaml

    found: dict[str, Any] = {}
    for one in assignments:
        key, equals, value = one.partition("=")
        try:
            found[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            equals = ""
        if not key or not equals:
            raise click.BadParameter(f"{one!r} is not NAME=VALUE", param_hint="--set")
    return found


def _compiled(compiled: CompiledPolicy) -> dict[str, Any]:
    classes = [
        {"queue": number, "class": one.name, "minimum": _amount(one.minimum), "maximum": _amount(one.maximum)}
        for number, one in compiled.classes.items()
    ]
    rules = {name: len(one.rules) for name, one in compiled.switches.items()}
    return {"classes": classes, "rules": rules, "ports": [one.port.name for one in compiled.ports]}


def _amount(amount: str | float | None) -> str:
    return "-" if amount is None else amount if isinstance(amount, str) else f"{amount * 100:.3g} %"


def _network(text: str, parallel: ParallelEdges | None) -> Network:
    from twinnet.cli.network_argument import GRAPH_SUFFIX, described_network, network_of_file
    from twinnet.network import templates

    if templates.is_template(text) or text.endswith(GRAPH_SUFFIX) or parallel is not None:
        return described_network(text, 1, {"rate": "10 Gbit"}, parallel)
    return network_of_file(text, 1)
