"""Writes docs/studies/NAME.md and its figures from the results of a built-in study, and the page that leads to all:
python docs/study_pages.py FOLDER...

Each folder is what the study's command in `PAGES` wrote, such as results/mtu-sweep. What is not as published, and why,
is told by the study's README.
"""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import add
from pathlib import Path
from typing import Any

from twinnet.errors import BadValue
from twinnet.report.distribution_section import DISTRIBUTIONS_NOTE, distribution_tables, value_figures
from twinnet.report.drawn import draw_figure
from twinnet.report.level_figures import level_figures
from twinnet.report.over_time import figures_of
from twinnet.report.page import mean_tables
from twinnet.report.panels import Figure
from twinnet.report.published_counts import SENSES, compared_values, numbers_held, outcomes
from twinnet.report.published_section import (
    NOT_MEASURED,
    NOTE,
    published_figures,
    published_sentence,
    published_tables,
)
from twinnet.report.reference_section import reference_figures, reference_view
from twinnet.report.summary import (
    answer,
    answer_in_words,
    clock_words,
    fidelity_sentences,
    reason_against,
    statement_numbers,
)
from twinnet.report.view import Table
from twinnet.report.wording import counted, worded_span
from twinnet.study.analysis import Analysis, analyse
from twinnet.study.closeness import compare_with_reference
from twinnet.study.distributions import described
from twinnet.study.published_results import WORDS
from twinnet.study.resolution import load_study
from twinnet.study.specification import StudySpecification
from twinnet.study.store import ResultStore

ROOT = Path(__file__).resolve().parents[1]
STUDIES = ROOT / "python" / "twinnet" / "studies"
PAGES_FOLDER = ROOT / "docs" / "studies"
PICTURES = ROOT / "docs" / "images" / "studies"
GALLERY = ROOT / "docs" / "studies.md"
ITEMS = ROOT / "docs" / "study_items.csv"
"""The parts of each publication, whether they are here, and what shows that: a file, or FILE::WORDS that it has."""
STATES = ("done", "partly", "not", "hardware")
"""How far a part is here."""
OUTCOMES = ROOT / "docs" / "published_outcomes.csv"
"""What the page of each study says of its published values, and how often."""
TOLD = (
    "What is assumed",
    "The original tools",
    "What later work asked for",
    "Full size for five minutes",
    "Whether the published schedulers bound",
    "A mix of clients",
    "A layer of switches more",
    "Not closer, and why",
    "Not as published",
)
"""The sections of a study's README that its page has too."""
_MARKS = {"supported": "✓", "not supported": "✗", "undecided": "?"}


@dataclass(frozen=True)
class Made:
    """How the results of a page are made: the options of `twinnet run`."""

    preset: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    repeat: int | None = None
    clock: str | None = None
    tables: Sequence[str] = ()
    """The measurements whose means the page has under all levels."""

    def command(self, name: str) -> str:
        """The command for the study `name`."""
        parts = ["twinnet run", name]
        parts += [f"--preset {self.preset}"] if self.preset else []
        parts += [f"--clock {self.clock}"] if self.clock else []
        parts += [f"--repeat {self.repeat}"] if self.repeat else []
        parts += [f"--set {shlex.quote(f'{key}={value}')}" for key, value in self.settings.items()]
        return " ".join(parts)

    def changes(self, name: str) -> Mapping[str, str]:
        """What that asks for, as the results have it."""
        settings = dict(self.settings)
        settings |= {"clock": self.clock} if self.clock else {}
        settings |= {"repetitions": str(self.repeat)} if self.repeat else {}
        return load_study(name, settings, self.preset).changes


_PROFILES = " ".join(
    f"{policy}-{place}"
    for policy in ("basic", "source", "destination", "source-destination", "unbound", "hosts", "deeper")
    for place in ("leaf", "core")
)
"""The published profiles, and those that ask whether the published schedulers bound."""
PAGES: Mapping[str, Made] = {
    "multimedia-delivery": Made(),
    "mtu-sweep": Made(),
    "qos-class-profiles": Made(preset="hundredth", settings={"levels.profile": _PROFILES}),
    "available-bandwidth": Made(tables=("error",)),
    "sending-accuracy": Made(
        preset="demo",
        settings={"levels.generator": "twinnet ditg mgen", "levels.payload": "long"},
        repeat=2,
        tables=("packet_rate", "rate_error", "gap_error"),
    ),
    "sending-fairness": Made(preset="demo", tables=("fairness", "packet_rate", "rate_error")),
    "tcp-udp-queues": Made(clock="virtual"),
}
"""The studies that have a page, in the order of the gallery."""


def markdown(table: Table) -> str:
    """`table` as Markdown, with its heading of the third level and its note."""
    head = [title.replace("|", "\\|") for title in table.head]
    lines = ["| " + " | ".join(head) + " |"]
    lines += ["|" + "|".join("---:" if place >= table.right_from else "---" for place in range(len(head))) + "|"]
    for row in table.rows:
        cells = [" ".join(part for part in (cell.text, cell.soft) if part).replace("|", "\\|") for cell in row]
        lines.append("| " + " | ".join(cells) + " |")
    title = f"### {table.title}\n\n" if table.title else ""
    note = f"{table.note}\n\n" if table.note else ""
    return f"{title}{note}" + "\n".join(lines) + "\n"


def _drawn(name: str, figures: Sequence[Figure]) -> Iterator[str]:
    """Draw the figures beside the page of the study `name`, and remove those that it no longer has; yield what shows
    them."""
    folder = PICTURES / name
    folder.mkdir(parents=True, exist_ok=True)
    for stale in {*folder.iterdir()} - {folder / f"{figure.name}.svg" for figure in figures}:
        stale.unlink()
    for figure in figures:
        for path in draw_figure(figure, folder):
            if path.suffix != ".svg":
                path.unlink()
        picture = f"![{figure.title}](../images/studies/{name}/{figure.name}.svg)"
        yield f"### {figure.title}\n\n{picture}\n\n{figure.caption}\n"


def provenance(analysis: Analysis) -> str:
    """Which runs the page rests on: command, clock, date, commit, n, time and machine."""
    runs = list(analysis.stored.values())
    starts = [datetime.fromisoformat(str(run.record["started"])) for run in runs]
    spans = [timedelta(seconds=float(run.record["elapsed_s"])) for run in runs]
    begun, span = min(starts), max(map(add, starts, spans)) - min(starts)
    machine: Mapping[str, Any] = runs[0].record["machine"]["before"]
    processor = f"{counted(machine['cores'], 'processor')} of an {machine['cpu_model']}, Linux {machine['kernel']}"
    command, clock = PAGES[analysis.study.name].command(analysis.study.name), clock_words(analysis.specification)
    together, in_all = (worded_span(one.total_seconds()) for one in (sum(spans, timedelta()), span))
    return (
        f"Measured: `{command}`, clock: {clock}, {begun:%Y-%m-%d}, commit {_commit_at(begun)},"
        f" n = {analysis.specification.repetitions} of each of {counted(len(analysis.combinations), 'combination')} of"
        f" levels. The {counted(len(runs), 'run')} took {together} together, {in_all} from the first to the last, on a"
        f" machine that others used too ({processor})."
    )


def _commit_at(moment: datetime) -> str:
    """The commit that was the newest here at `moment`."""
    asked = ["git", "-C", str(ROOT), "log", "-1", "--first-parent", "--format=%h", "--abbrev=8"]
    done = subprocess.run([*asked, f"--before={moment.isoformat()}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def readme_section(name: str, heading: str) -> str:
    """The section `heading` of the README of the study `name`, with links as they are from its page; empty without."""
    text = (STUDIES / name / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        return ""
    linked = found.group().replace("](../../../../docs/", "](../")
    return re.sub(r"\[([^\]]*)\]\(\.\./[\w-]+/README\.md\)", r"\1", linked).strip() + "\n"


def page_of(analysis: Analysis) -> str:
    """The page of a study, its figures drawn beside it."""
    name, specification = analysis.study.name, analysis.specification
    reference = compare_with_reference(analysis)
    view: Any = reference_view(reference)
    parts = [
        f"# {specification.title}\n",
        f"{specification.question}\n",
        *(f"Source: {source.strip()}\n" for source in specification.sources),
        f"**{answer_in_words(analysis) or answer(analysis)}**\n",
        f"{provenance(analysis)}\n",
        *([f"{' '.join(fidelity_sentences(analysis))}\n"] if specification.clock == "wall" else []),
        f"Make it anew:\n\n<!-- test: options -->\n```sh\n{PAGES[name].command(name)}\n```\n",
    ]
    if analysis.statements:
        parts.append(f"## Conclusions\n\n{answer(analysis)}\n")
        parts += [_conclusion(analysis, place) for place in range(len(analysis.statements))]
    if view is not None:
        parts.append(f"## Published figures beside these\n\n{view['source']}\n")
        parts += [f"{sentence}\n" for sentence in view["sentences"]]
        parts += [markdown(view["counts"]), *map(markdown, view["tables"])]
    if analysis.published:
        heading = "Published tables" if view is None else "More published tables"
        parts.append(f"## {heading} beside these\n\n{published_sentence(analysis)} {NOTE}\n")
        parts += [markdown(replace(one, note=one.note.replace(NOTE, "").strip())) for one in published_tables(analysis)]
    beside = [*reference_figures(reference, specification.factors), *published_figures(analysis)]
    told = PAGES[name].tables
    at_levels = [one for one in level_figures(analysis) if one.name.removeprefix("levels-") in told]
    figures = [*beside, *figures_of(analysis), *value_figures(analysis), *at_levels]
    if figures:
        parts += ["## Figures\n", *_drawn(name, figures)]
    if told:
        parts += ["## Means under all levels\n", *map(markdown, mean_tables(analysis, told))]
    distributions = distribution_tables(described(analysis), specification)
    if distributions:
        parts += [f"## Distributions\n\n{DISTRIBUTIONS_NOTE}\n", *map(markdown, distributions)]
    told_apart = [readme_section(name, heading) for heading in TOLD]
    parts += [section for section in (contradictions(specification), *told_apart) if section]
    return "\n".join(parts)


def _conclusion(analysis: Analysis, place: int) -> str:
    """One statement with its verdict and its numbers, as an item of a list."""
    one = analysis.statements[place]
    source = f" ({one.statement.source})" if one.statement.source else ""
    numbers = [f"    `{line}`" for line in statement_numbers(analysis, one)]
    said = f"- **{_MARKS[one.verdict]} {one.verdict}**: {one.statement.text.strip()}{source}\n"
    why = [f"\n    {line}" for line in (reason_against(one),) if line]
    return "\n".join([said, *numbers, *why, ""])


def contradictions(specification: StudySpecification) -> str:
    """The section on where the publication contradicts itself; empty where it does not."""
    told = [f"- {one.strip()}" for one in specification.contradictions]
    return "\n".join(["## Where the publication contradicts itself\n", *told, ""]) if told else ""


def gallery() -> str:
    """The page that leads to all studies."""
    parts = [
        "# Published studies\n",
        "Each page sets a published study beside what this laboratory measures: its tables and figures, its conclusions"
        " with our verdict, and what is not as published. One command makes a page's results anew.\n",
    ]
    for name in PAGES:
        study = load_study(name).specification
        parts.append(f"- [{study.title}](studies/{name}.md): {study.question}")
    parts += ["\n## Published values beside ours\n", *_published_values()]
    parts += ["\n## What of them is here\n", *_items()]
    parts.append("\n```{toctree}\n:hidden:\n\n" + "\n".join(f"studies/{name}" for name in PAGES) + "\n```\n")
    return "\n".join(parts)


def outcomes_told() -> Mapping[str, Mapping[str, int]]:
    """What `OUTCOMES` has: by study and word, of how many published values it is said."""
    told: dict[str, dict[str, int]] = {name: {} for name in PAGES}
    with OUTCOMES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            told[row["study"]][row["word"]] = int(row["values"])
    return told


def keep_outcomes(found: Mapping[str, Mapping[str, int]]) -> None:
    """Write to `OUTCOMES` what is said now of the studies in `found`."""
    rows = [
        [name, word, count] for name, words in {**outcomes_told(), **found}.items() for word, count in words.items()
    ]
    with OUTCOMES.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([["study", "word", "values"], *rows])


def _published_values() -> Iterator[str]:
    """How many published values stand beside ours, and how that went; in which units and senses they are."""
    studies = {name: load_study(name) for name in PAGES}
    told, words = outcomes_told(), (*WORDS, NOT_MEASURED)
    compared = {name: compared_values(study) for name, study in studies.items()}
    held = {name: numbers_held(study) for name, study in studies.items()}
    every = [one for values in compared.values() for one in values]
    yield (
        f"The studies hold {sum(held.values())} numbers of the publications. {len(every)} times one of them stands"
        " beside a value of ours. The others are standard deviations, and figures of Mininet: ours are to be closer to"
        f" a real network than these. The words are [those of studies](reference/study-files.md#statements). {NOTE}\n"
    )
    yield f"| study | numbers | beside ours | {' | '.join(words)} |\n|---|{'---:|' * (len(words) + 2)}"
    for name in PAGES:
        counts = [held[name], len(compared[name]), *(told[name].get(word, 0) for word in words)]
        yield f"| {name} | {' | '.join(map(str, counts))} |"
    sums = [sum(held.values()), len(every), *(sum(one.get(word, 0) for one in told.values()) for word in words)]
    yield f"| **all** | {' | '.join(f'**{one}**' for one in sums)} |"
    yield f"\nIn units of the measurements they are:\n\n| unit | {' | '.join(SENSES)} |\n|---|{'---:|' * len(SENSES)}"
    for unit in sorted({unit for unit, _ in every}):
        yield f"| {unit} | {' | '.join(str(every.count((unit, sense))) for sense in SENSES)} |"


def items() -> list[Mapping[str, str]]:
    """The rows of `ITEMS`."""
    with ITEMS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _items() -> Iterator[str]:
    """How many of the parts of each publication are here, and those that are not."""
    rows = items()
    yield (
        f"Of {len(rows)} parts of the publications (networks, tools, measurements, figures, conclusions, later work)"
        " are done, done in part, not done, and left to those who have the hardware:\n"
    )
    counts = [[one, *_counts(rows, one)] for one in dict.fromkeys(row["publication"] for row in rows)]
    whole = ["**all**", *(f"**{count}**" for count in _counts(rows, None))]
    head, line = ["publication", *STATES], ["---", *("---:" for _ in STATES)]
    yield from (f"| {' | '.join(cells)} |" for cells in (head, line, *counts, whole))
    yield "\nThose that are not wholly done:\n\n| study | part | | how far, and why |\n|---|---|---|---|"
    for row in rows:
        if row["state"] != "done":
            yield f"| {row['study']} | {row['item']} | {row['state']} | {row['where or why']} |"


def _counts(rows: Sequence[Mapping[str, str]], publication: str | None) -> list[str]:
    """How many parts of a publication, or of all, have each of `STATES`."""
    states = [row["state"] for row in rows if publication in (None, row["publication"])]
    return [str(states.count(state)) for state in STATES]


def checked(folder: Path) -> Analysis:
    """The analysis of the results in `folder`; raises `BadValue` where the command of the page did not make them."""
    analysis = analyse(ResultStore(folder))
    name = analysis.study.name
    if name not in PAGES:
        raise BadValue(f"{name} has no page", f"give results of {', '.join(PAGES)}")
    if dict(analysis.study.changes) != dict(PAGES[name].changes(name)) or len(analysis.stored) < len(analysis.planned):
        raise BadValue(f"{folder} is not the whole of what the page tells of", f"run: {PAGES[name].command(name)}")
    return analysis


def write(folders: Sequence[Path]) -> None:
    """Write the pages of the results in `folders`, and the page that leads to all."""
    PAGES_FOLDER.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        analysis = checked(folder)
        (PAGES_FOLDER / f"{analysis.study.name}.md").write_text(page_of(analysis), encoding="utf-8")
        keep_outcomes({analysis.study.name: outcomes(analysis)})
    GALLERY.write_text(gallery(), encoding="utf-8")


if __name__ == "__main__":
    write([Path(given) for given in sys.argv[1:]])
