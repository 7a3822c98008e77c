"""Names and messages come from programs and files of others: nothing in them is a format, markup or a formula."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import numpy as np
import pytest
import twinnet
from fidelity_records import good, put
from twinnet.drawing.languages import mermaid_of
from twinnet.drawing.picture import DrawnLink, DrawnNode, Picture
from twinnet.report.console import text_console
from twinnet.report.drawn import draw_figure
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.summary import failure_sentences, merged_reasons
from twinnet.report.tables import _tex
from twinnet.results.fidelity import FidelityRecord
from twinnet.results.fidelity_verdict import Thresholds, judge

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


def test_no_other_console_is_made() -> None:
    folder = Path(twinnet.__file__).parent
    made = [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Console"
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
