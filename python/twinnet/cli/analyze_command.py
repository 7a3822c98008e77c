"""``twinnet analyze``."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import FILE, FOLDER, PATH
from twinnet.report.capture_tables import capture_text, comparison_text, openflow_text, segments_text

if TYPE_CHECKING:
    import polars as pl

    from twinnet.results.captures import CaptureAnalysis, CaptureLayer, MatchedCaptures
    from twinnet.results.openflow_capture import OpenflowCapture

__all__ = ["analyze"]

_STANDARD_INPUT = Path("-")
_PAGE_PACKETS = 2000
"""Listed in a page unless another number is asked for."""

LAYERS = ("payload", "network", "link", "wire")


def _clock_rates(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[int, int]:
    rates: dict[int, int] = {}
    for one in given:
        payload, _equals, rate = one.partition("=")
        if not (payload.isdecimal() and rate.isdecimal()):
            raise click.BadParameter(f"{one!r} is not PAYLOAD-TYPE=HERTZ; write for example --clock-rate 96=90000")
        rates[int(payload)] = int(rate)
    return rates


def _labels(_: click.Context, __: click.Parameter, given: str) -> tuple[str, str]:
    first, comma, second = given.partition(",")
    if not (comma and first.strip() and second.strip() and first.strip() != second.strip()):
        raise click.BadParameter(f"{given!r} is not two names; write for example --labels real,virtual")
    return first.strip(), second.strip()


@click.command(short_help="Read captures: conversations, throughput, RTP, TCP, delay and loss.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@click.option(
    "--rtp-port",
    "rtp_ports",
    multiple=True,
    type=click.IntRange(1, 65535),
    metavar="N",
    help="UDP port that carries RTP; twinnet searches other ports too.",
)
@click.option(
    "--clock-rate",
    "clock_rates",
    multiple=True,
    metavar="TYPE=HERTZ",
    callback=_clock_rates,
    help="Clock rate of an RTP payload type.",
)
@click.option("--interval", default="1 s", show_default=True, metavar="T", help="Length of an interval.")
@click.option(
    "--layer", type=click.Choice(LAYERS), default="link", show_default=True, help="Layer at which rates count bytes."
)
@click.option(
    "--join", is_flag=True, help="Read the captures as one: they follow each other in time, as the files of a ring."
)
@click.option(
    "--match",
    is_flag=True,
    help="Match packets between captures of the same traffic, given in the order in which it passes.",
)
@click.option(
    "--match-bytes",
    type=click.IntRange(0, 65535),
    default=64,
    show_default=True,
    metavar="N",
    help="Bytes of payload that identify a packet in --match.",
)
@click.option(
    "--compare",
    "others",
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="A capture of the set that FILE... is compared with; may be given again.",
)
@click.option(
    "--labels",
    default="first,second",
    show_default=True,
    metavar="A,B",
    callback=_labels,
    help="Names of the two sets.",
)
@click.option(
    "--out",
    type=FOLDER,
    metavar="DIR",
    help="Write the figures of --compare into DIR.",
)
@click.option(
    "--csv",
    "csv_folder",
    type=FOLDER,
    metavar="DIR",
    help="Write every table into DIR as CSV, RTP and matched packets one by one too.",
)
@click.option(
    "--packets",
    "list_packets",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="List the first N packets: time, source, destination, protocol, length and info.",
)
@click.option(
    "--html",
    "page",
    type=FILE,
    metavar="PAGE",
    help="Write the analysis of one capture as a page, with a packet list to sort and filter.",
)
@click.option("--openflow", is_flag=True, help="Decode OpenFlow: messages by type, and round trips of requests.")
@json_option
def analyze(
    files: tuple[Path, ...],
    rtp_ports: tuple[int, ...],
    clock_rates: dict[int, int],
    interval: str,
    layer: CaptureLayer,
    join: bool,
    match: bool,
    match_bytes: int,
    others: tuple[Path, ...],
    labels: tuple[str, str],
    out: Path | None,
    csv_folder: Path | None,
    list_packets: int | None,
    page: Path | None,
    openflow: bool,
    as_json: bool,
) -> None:
    """Analyze captures (pcap or pcapng, plain or gzip): conversations, throughput over time, RTP streams with the
    columns of Wireshark's analysis, TCP round trips and retransmissions.

    --join reads the files as one capture, such as those of a ring. --match finds the same packets in captures from
    several places, and reports delay and loss from each place to the next. --compare compares two sets by their
    statistics, such as a real network and a virtual one.

    A FILE that is - is standard input: twinnet capture LAB s1-eth1 --duration '10 s' | twinnet analyze -. Ctrl-C then
    ends the program that writes, and the analysis of what came is printed.

    A FILE that is a folder stands for the captures that the runs of a study kept there.

    If a file is cut off or damaged, a note says where; the numbers cover the packets before that place.
    """
    from twinnet.results.captures import analyze_capture, match_captures

    files, others = _with_those_of_folders(files), _with_those_of_folders(others)
    if out is not None and not others:
        raise click.UsageError("--out is for the figures of --compare; tables go to --csv")
    _check_question(files, others, join, match)
    if list_packets is not None or page is not None:
        _check_shown(files, page, match or bool(others), join)
    _check_standard_input([*files, *others])
    if openflow and (match or others or _STANDARD_INPUT in files):
        raise click.UsageError("--openflow decodes captures in files; leave --match, --compare and - away")
    analysis_of = partial(
        analyze_capture,
        interval=interval,
        rtp_ports=rtp_ports,
        clock_rates=clock_rates,
        every_packet=bool(others) or (csv_folder is not None and not match),
        list_packets=list_packets or (_PAGE_PACKETS if page is not None else 0),
    )
    if match:
        matched = match_captures(
            [_opened_one(path) for path in files], match_bytes=match_bytes, every_packet=csv_folder is not None
        )
        _tell_matched(matched, csv_folder, as_json)
    elif others:
        sets = [_read(path, analysis_of) for path in files], [_read(path, analysis_of) for path in others]
        _tell_comparison(sets, layer, labels, out, csv_folder, as_json)
    else:
        read_together = [files] if join else files
        analyses = [_read(one, analysis_of) for one in read_together]
        decoded = [_decoded(one) if openflow else None for one in read_together]
        _tell(files[: len(analyses)], analyses, layer, csv_folder, as_json, decoded, listed=list_packets is not None)
        if page is not None:
            from twinnet.report.capture_page import write_capture_page

            written = write_capture_page(analyses[0], layer, page)
            click.echo(f"page: {written}", err=as_json)


def _check_question(files: Sequence[Path], others: Sequence[Path], join: bool, match: bool) -> None:
    if join and (match or others):
        raise click.UsageError("--join makes one capture of the files; --match and --compare ask about several")
    if match and len(files) < 2:
        raise click.UsageError("--match takes at least two captures")
    if match and others:
        raise click.UsageError("--match and --compare are different questions; ask one at a time")


def _check_shown(files: Sequence[Path], page: Path | None, of_several: bool, join: bool) -> None:
    if of_several:
        raise click.UsageError("--packets and --html show one capture; leave --match and --compare away")
    if page is not None and len(files) > 1 and not join:
        raise click.UsageError("--html is the page of one capture; name one file, or several with --join")


def _read(
    path: Path | Sequence[Path], analysis_of: Callable[[Path | Sequence[Path]], CaptureAnalysis]
) -> CaptureAnalysis:
    with _reading(path):
        found = analysis_of(_opened(path))
    return replace(found, path=Path("standard input")) if path == _STANDARD_INPUT else found


def _with_those_of_folders(paths: Sequence[Path]) -> tuple[Path, ...]:
    """`paths` with the captures of a run's or a study's results in the place of their folder."""
    found: list[Path] = []
    for path in paths:
        kept = [path] if not path.is_dir() else _captures_in(path)
        if not kept:
            raise click.UsageError(f"{path} holds no captures; a study keeps them where its file says 'capture'")
        found += kept
    return tuple(found)


def _captures_in(folder: Path) -> list[Path]:
    from twinnet.study.kept_captures import captures_in

    return captures_in(folder)


def _check_standard_input(paths: Sequence[Path]) -> None:
    if paths.count(_STANDARD_INPUT) > 1:
        raise click.UsageError("- is standard input, which can be read once; give files for the others")
    if _STANDARD_INPUT in paths and sys.stdin.isatty():
        raise click.UsageError(
            "standard input is a terminal; write for example: twinnet capture LAB s1-eth1 | twinnet analyze -"
        )


def _opened_one(path: Path) -> Path:
    return Path("/dev/stdin") if path == _STANDARD_INPUT else path


def _opened(path: Path | Sequence[Path]) -> Path | list[Path]:
    return _opened_one(path) if isinstance(path, Path) else [_opened_one(one) for one in path]


@contextlib.contextmanager
def _reading(path: Path | Sequence[Path]) -> Generator[None]:
    """While standard input is read, leave the first Ctrl-C to the program that writes: its end is the capture's end."""
    if path != _STANDARD_INPUT:
        yield
        return

    def first(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _tell(
    files: Sequence[Path],
    analyses: Sequence[CaptureAnalysis],
    layer: CaptureLayer,
    csv_folder: Path | None,
    as_json: bool,
    decoded: Sequence[OpenflowCapture | None],
    *,
    listed: bool,
) -> None:
    """Print what was found; the list of packets only where it is `listed`, not where it is for a page alone."""
    results: list[dict[str, Any]] = []
    for path, one, spoken in zip(files, analyses, decoded, strict=True):
        tables = {
            "conversations": one.conversations,
            "host_pairs": one.host_pairs,
            "throughput": one.throughput(layer),
            "intervals": one.intervals,
            "rtp_streams": one.rtp_streams,
            "tcp": one.tcp,
        } | ({"packet_list": one.packet_list} if listed else {})
        tables |= {} if spoken is None else _of_openflow(spoken)
        if csv_folder is not None:
            stem = _stems(files)[files.index(path)]
            _write_csv(csv_folder, {f"{stem}-{name}": frame for name, frame in tables.items()})
            _write_csv(csv_folder, {f"{stem}-rtp_packets": one.rtp_packets})
        if as_json:
            rows = {name: frame.to_dicts() for name, frame in tables.items()}
            notes = [*one.notes, *(spoken.notes if spoken is not None else ())]
            results.append({"file": str(path), **one.capture.to_dicts()[0], "notes": notes, **rows})
        else:
            click.echo(capture_text(one, layer, with_packets=listed))
            if spoken is not None:
                click.echo(openflow_text(spoken))
    if as_json:
        print_json(results)


def _decoded(path: Path | Sequence[Path]) -> OpenflowCapture:
    from twinnet.results.openflow_capture import analyze_openflow

    return analyze_openflow(path)


def _of_openflow(spoken: OpenflowCapture) -> dict[str, pl.DataFrame]:
    return {"openflow_messages": spoken.messages, "openflow_round_trips": spoken.round_trips}


def _tell_matched(matched: MatchedCaptures, csv_folder: Path | None, as_json: bool) -> None:
    if csv_folder is not None:
        _write_csv(csv_folder, {"segments": matched.segments, "matched_packets": matched.packets})
    if as_json:
        files = [str(path) for path in matched.paths]
        print_json({"files": files, "notes": list(matched.notes), "segments": matched.segments.to_dicts()})
        return
    for note in matched.notes:
        click.echo(f"note: {note}")
    click.echo(segments_text(matched))


def _tell_comparison(
    sets: tuple[list[CaptureAnalysis], list[CaptureAnalysis]],
    layer: CaptureLayer,
    labels: tuple[str, str],
    out: Path | None,
    csv_folder: Path | None,
    as_json: bool,
) -> None:
    from twinnet.results.capture_comparison import compare_captures, quantities_of

    first, second = quantities_of(sets[0], layer), quantities_of(sets[1], layer)
    compared = compare_captures(first, second)
    drawn: list[Path] = []
    if out is not None:
        from twinnet.report.capture_figures import draw_comparison

        drawn = draw_comparison(first, second, labels, out)
    if csv_folder is not None:
        _write_csv(csv_folder, {"comparison": compared})
    notes = [f"{one.path}: {note}" for analyses in sets for one in analyses for note in one.notes]
    if as_json:
        rows = compared.to_dicts()
        print_json(
            {"labels": labels, "layer": layer, "notes": notes, "comparison": rows, "figures": [str(p) for p in drawn]}
        )
        return
    for note in notes:
        click.echo(f"note: {note}")
    click.echo(comparison_text(compared, labels))
    for path in drawn:
        click.echo(path)


def _stems(files: Sequence[Path]) -> list[str]:
    """Names for the tables of each file; numbered where two files have the same name."""
    names = [path.name.split(".")[0] or path.name for path in files]
    return [name if names.count(name) == 1 else f"{name}-{number}" for number, name in enumerate(names, 1)]


def _write_csv(folder: Path, tables: dict[str, pl.DataFrame]) -> None:
    from twinnet.errors import BadFile

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, frame in tables.items():
            if frame.width:
                frame.write_csv(folder / f"{name}.csv")
    except OSError as error:
        raise BadFile(f"tables cannot be written to {folder}: {error.strerror or error}", "choose --csv") from error
