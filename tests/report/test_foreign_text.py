"""Names and messages come from programs and files of others: nothing in them is a format, markup or a formula."""

from __future__ import annotations

import ast
import io
import sys
from pathlib import Path

import click
import numpy as np
import pytest
import twinnet
from fidelity_records import good, put
from rich.console import Group
from rich.table import Table
from rich.text import Text
from twinnet.cli import group, run
from twinnet.drawing.languages import mermaid_of
from twinnet.drawing.picture import DrawnLink, DrawnNode, Picture
from twinnet.report.console import text_console
from twinnet.report.drawn import draw_figure
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.summary import failure_sentences, merged_reasons
from twinnet.report.tables import _tex
from twinnet.results.fidelity import FidelityRecord
from twinnet.results.fidelity_verdict import Thresholds, judge
from twinnet.shown_text import ShowingStream, shown_text

HOSTILE = ("a{b}", "a{}", "a{0}", "a{", "%s", "{:.3g}", "[/b]", "[red]", ":x:", "=1+1", "$x^$", "</script>")


@pytest.mark.parametrize("program", HOSTILE)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_program_may_have_any_name_in_a_verdict(program: str, share: float) -> None:
    record = good()
    put(record, "programs.stops.longest_ps", int(share * 1e12))
    put(record, "programs.stops.program", program)
    put(record, "machine.programs_waited.program", program)
    verdict = str(judge(FidelityRecord.from_spec(record), Thresholds()))
    assert (program in verdict) == (share > 0)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_console_prints_what_it_is_given(text: str) -> None:
    out = io.StringIO()
    text_console(out).print(f"The run failed: {text}")
    assert out.getvalue() == f"The run failed: {text}\n"


STEERING = {
    "\x1b[2J": r"\x1b[2J",
    "\x9b2J": r"\x9b2J",
    "a\rb": r"a\rb",
    "\x07\x08\x7f": r"\x07\x08\x7f",
    "\u202etxt": r"\u202etxt",
    "\u2028": r"\u2028",
    "a\tb\nc": "a\tb\nc",
    "grün 網 👍🏽 é": "grün 網 👍🏽 é",
}


@pytest.mark.parametrize(("text", "shown"), STEERING.items())
def test_what_steers_a_terminal_is_written_out_everywhere(
    text: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown_text(text) == shown
    out = io.StringIO()
    table = Table("head")
    table.add_row(Text(text, style="red"))
    console = text_console(out, width=200)
    console.print(Group(Text(text), table))
    console.print(text)
    assert not set(out.getvalue()) & set("\x1b\x9b\r\x07\x08\x7f\u202e\u2028")
    # The console takes bells and returns away, makes blanks of tabs, and cuts what is wider in a cell than it seems.
    assert set(text) & set("\t\r\x07") or out.getvalue().count(shown) >= 2
    # Each command, whatever it prints and refuses.
    monkeypatch.setattr(group, "cli", _saying(text))
    assert run([]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == (f"{shown}\n", f"{shown}\n")


def _saying(text: str) -> click.Command:
    """A command that prints a text on both outputs."""

    @click.command(context_settings=group.cli.context_settings)
    def saying() -> None:
        click.echo(text)
        click.echo(text, err=True)

    return saying


def test_a_refusal_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "no\x1b[2Jstudy"]) == 2
    assert r"no\x1b[2Jstudy" in capsys.readouterr().err
    assert not isinstance(sys.stdout, ShowingStream)


def test_the_colours_of_our_own_stay(capsys: pytest.CaptureFixture[str]) -> None:
    out = _Terminal()
    text_console(out, width=80).print(Text("\x1b[1mred", style="red"))
    assert out.getvalue() == "\x1b[31m\\x1b[1mred\x1b[0m\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_page_shows_control_characters() -> None:
    picture = Picture("a\x1b[2J", (DrawnNode("h\u202e1", "host", (0.0, 0.0), ""),), (), "b\x07")
    assert not set(picture.svg()) & set("\x1b\u202e\x07")
    assert r"h\u202e1" in picture.svg()


def test_no_other_console_is_made() -> None:
    folder = Path(twinnet.__file__).parent
    made = [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Console", "_ShowingConsole")
    ]
    assert made == ["report/console.py"]


@pytest.mark.parametrize("text", [*HOSTILE, "a $ and b $ more", r"\frac{$"])
def test_a_title_of_a_figure_is_no_formula(text: str, tmp_path: Path) -> None:
    nothing = np.full(2, np.nan)
    line = Line("a", np.array([0.0, 1.0]), np.array([1.0, 2.0]), nothing, nothing, text)
    figure = Figure("f", text, "", text, 2.0, 1.0, (Panel(text, (line, line)),), (), text)
    (svg, *_) = draw_figure(figure, tmp_path)
    assert text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") in svg.read_text(encoding="utf-8")


def test_reasons_that_have_the_sign_of_a_number_are_merged_like_others() -> None:
    reasons = ["the program (5) was late by 3 ms", "the program (#) was late by 4 ms"]
    assert [one.casefold() for one in merged_reasons(reasons)] == reasons
    assert merged_reasons(["c# took 3 ms", "c# took 5 ms"]) == ["C# took 3 to 5 ms (2 runs)"]
    assert len(failure_sentences({"r1": "(5) failed", "r2": "(#) failed"})) == 2


def test_each_name_is_a_node_of_its_own_in_mermaid() -> None:
    nodes = tuple(DrawnNode(name, "host", (float(place), 0.0), "") for place, name in enumerate(("h-1", "h_1", "end")))
    picture = Picture("three", nodes, (DrawnLink("h-1", "h_1", "", up=True),), "")
    words = [line.split("[")[0].strip() for line in mermaid_of(picture).splitlines() if "[" in line]
    assert len(words) == len(set(words)) == 3 and "end" not in words


def test_latex_reads_no_sign_of_a_text() -> None:
    assert _tex("a|b_{c}%$#&~^<>\\") == (
        r"a\textbar{}b\_\{c\}\%\$\#\&\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbackslash{}"
    )
