"""``twinnet live``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from twinnet.cli import completion
from twinnet.cli.output import json_option, print_json
from twinnet.errors import BadValue

__all__ = ["live"]

_SHOWN_RUNS = 8


@click.command(short_help="Show a running lab, a campaign or a finished run on a page in the browser.")
@click.argument("shown", metavar="[LAB | RESULTS | STUDY]", required=False, shell_complete=completion.labs)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Record it in this file as well: FILE.html, or FILE.parquet for its numbers.",
)
@click.option("--control", is_flag=True, help="Let the page change the lab, and open shells in hosts.")
@click.option(
    "--positions",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Nodes stand where this file says; with --control, it keeps where you drag them.",
)
@click.option(
    "--run", "runs", metavar="RUN", multiple=True, help="Of RESULTS: the run, or (given twice) the two side by side."
)
@click.option("--listen", metavar="ADDRESS[:PORT]", help="Serve it at this address of this machine, with --tls.")
@click.option("--tls", is_flag=True, help="Speak TLS, with a certificate made for this page.")
@json_option
def live(
    shown: str | None,
    out: str | None,
    control: bool,
    positions: str | None,
    runs: tuple[str, ...],
    listen: str | None,
    tls: bool,
    as_json: bool,
) -> None:
    """Serve a page that shows LAB while it runs: the rate and load of each link, queues, drops, and the fidelity
    verdict. LAB may be left out when one lab runs. Ends with Ctrl-C and with the lab.

    With --out, all that it could show from now on is in one HTML file at the end, which opens without twinnet, or as a
    table in Parquet: a row for each port and look.

    With --control the page changes the lab, too: every change is shown as a line for the prompt and as Python, and can
    be undone. It also captures, and opens shells in hosts: whoever has its address runs programs as you.

    With --listen and --tls, other machines reach the page. Your browser does not know its certificate and warns:
    compare the fingerprint that it shows with the printed one before you go on. An SSH tunnel needs neither.

    Open the printed address in a browser on this machine. Needs: pip install 'twinnet[live]'.

    Of RESULTS, the folder of a study, or STUDY, whose results are in results/STUDY, the page shows the campaign, also
    while its runs are made in another terminal: what is done, running, doubtful and failed, the time left, and each
    run a click away.

    With --run or --out it writes a file of a finished run instead: what its sampled ports did. Default:
    RESULTS/report/runs/RUN.html. With two runs their curves are in one picture, with the difference.
    """

    fingerprint: str | None = None

    def tell(address: str) -> None:
        if as_json:
            print_json({kind: name, "address": address, "fingerprint": fingerprint})
        else:
            known = f"\nfingerprint of its certificate (SHA-256): {fingerprint}" if fingerprint else ""
            click.echo(f"{name}: open {address}{known}\nCtrl-C ends the page; {goes_on}.")

    results = _results(shown)
    if results is not None:
        if control:
            raise BadValue("a finished run cannot be changed", "leave --control away")
        if positions is not None:
            raise BadValue("--positions is of the page of a lab", "leave it away")
        if listen is not None or tls:
            raise BadValue("only the page of a lab is served to other machines", "use an SSH tunnel")
        if not runs and out is None:
            from twinnet.live.campaign_server import serve_campaign

            kind, name, goes_on = "results", str(results), "the runs go on"
            serve_campaign(results, tell)
            return
        path = _write_runs(results, runs, out)
        if as_json:
            print_json({"path": str(path)})
        else:
            click.echo(f"wrote {path}")
        return
    if runs:
        raise BadValue(
            f"--run is of the results of a study, and {shown or 'no folder'} holds none",
            "write for example: twinnet live results/tcp-udp-queues --run RUN",
        )
    from twinnet import lab as lab_module
    from twinnet.live import PATIENCE_S, listening_at, serve

    kind, name, goes_on = "lab", shown or _only_lab(), "the lab goes on"
    listening = listening_at(listen, tls)
    fingerprint = listening.fingerprint
    if not listening.is_loopback:
        acts = "and runs programs as you" if control else "and can change nothing"
        click.echo(f"warning: other machines reach this page; who has its address sees the lab, {acts}", err=True)

    with lab_module.attach(name, PATIENCE_S) as lab:
        serve(lab, tell, out, control, listening, positions)


def _results(shown: str | None) -> Path | None:
    """The folder of results that is meant, if one is: itself, or by the name of its study."""
    if shown is None:
        return None
    folders = (Path(shown), Path("results") / shown)
    return next((folder for folder in folders if (folder / "study.json").is_file()), None)


def _only_lab() -> str:
    from twinnet import lab as lab_module

    names = [info.name for info in lab_module.labs()]
    if len(names) == 1:
        return names[0]
    if not names:
        raise BadValue("no lab is running", "start one with: twinnet lab tree:2")
    raise BadValue(f"{len(names)} labs are running: {', '.join(names)}", f"name one: twinnet live {names[0]}")


def _write_runs(results: Path, names: Sequence[str], out: str | None) -> Path:
    """Write the page of the runs called `names` in the folder `results`, and return where."""
    from twinnet.live.finished import FinishedRun, runs_with_samples, write_page

    if out is not None and out.endswith(".parquet"):
        raise BadValue("the page of a finished run is HTML", f"its samples are in Parquet already, below {results}")
    if len(names) > 2:
        raise BadValue(f"{len(names)} runs were given", "one page shows one run, or two side by side")
    if not names:
        names = runs_with_samples(results)
        if not names:
            raise BadValue(
                f"no run in {results} has samples of ports", "measure queue_length or queue_drops of ports in it"
            )
        if len(names) > 1:
            more = f" and {len(names) - _SHOWN_RUNS} more" if len(names) > _SHOWN_RUNS else ""
            raise BadValue(
                f"{results} has {len(names)} runs: {', '.join(names[:_SHOWN_RUNS])}{more}",
                f"name one or two: --run {names[0]}",
            )
    runs = [FinishedRun.read(results, name) for name in names]
    path = (
        Path(out)
        if out is not None
        else results / "report" / "runs" / f"{'-beside-'.join(run.name for run in runs)}.html"
    )
    if out is None:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_page(runs, path)
    return path
