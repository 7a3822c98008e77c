"""A table of results on a page is made from a record, or says what measured it: command, date, commit and n."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from twinnet.cli.group import cli

from bench import record_pages

ROOT = Path(__file__).resolve().parents[2]
MADE_WHOLE = {
    "docs/explanation/performance.md": "test_records.py",
    "docs/explanation/tcp-beside-linux.md": "test_tcp_grid.py",
    "docs/explanation/validation.md": "make validate-check",
    **{f"docs/studies/{page.name}": "test_study_pages.py" for page in (ROOT / "docs/studies").glob("*.md")},
    # Settings and no results.
    "docs/reference/built-in-policies.md": "test_policy_layout.py",
}
"""Pages that are made as a whole, and what checks it."""
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "python/twinnet/studies").glob("*/README.md")),
]
STATES = ROOT / "bench/records/measured-states.txt"
"""What was measured at states whose commits are in no history."""
_RECORD = re.compile(r"<!-- record: \w+ -->.*?<!-- end -->", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\**\d[\d ,/.()%]*\**(?: (?:to|/) [\d.,]+)?(?: (?:wrong|[kMG]?bit/s|[num]?s|%|MB|kB))?\)?")
_NOTED = re.compile(r" \((?:valid|doubtful|invalid)\)$")
_SOURCE = re.compile(r"Measured: `[^`]+`.*?\d{4}-\d\d-\d\d.*?commit [0-9a-f]{7,}.*?n = \d+", re.DOTALL)


def sections(text: str) -> list[str]:
    """The sections of a page, each with its heading."""
    return [section for section in re.split(r"^(?=#+ )", text, flags=re.MULTILINE) if section]


def tables(text: str) -> Iterator[list[list[str]]]:
    """Yield the rows below the heads of a text's tables, as cells."""
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
            continue
        if len(rows) > 2:
            yield rows[2:]
        rows = []


def is_number(cell: str) -> bool:
    """Whether a cell is a number, or a list of numbers of which some may be missing."""
    parts = [_NOTED.sub("", part) for part in re.split(r"[,;] (?=[+-]?\d|none)", cell)]
    return parts != ["none"] and all(part == "none" or _NUMBER.fullmatch(part) for part in parts)


def has_results(rows: list[list[str]]) -> bool:
    """Whether most cells beside the first of each row are numbers, and some have a fraction: no list of ports."""
    cells = [cell for row in rows for cell in row[1:] if cell not in ("", "-")]
    numbers = [cell for cell in cells if is_number(cell)]
    return len(cells) >= 4 and len(numbers) > 0.6 * len(cells) and any(re.search(r"\d\.\d|%", one) for one in numbers)


def without_source(text: str) -> set[str]:
    """The headings of the sections that have more tables of results than they say the sources of."""
    return {
        section.splitlines()[0]
        for section in sections(_RECORD.sub("", text))
        if sum(map(has_results, tables(section))) > len(_SOURCE.findall(section))
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_table_of_results_says_where_it_is_from(page: Path) -> None:
    if str(page.relative_to(ROOT)) not in MADE_WHOLE:
        assert without_source(page.read_text(encoding="utf-8")) == set()


def test_the_command_line_takes_what_is_said_to_have_measured() -> None:
    told = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    commands = set(re.findall(r"Measured: `twinnet ([^`]+)`", told))
    assert len(commands) > 5
    for command in commands:
        name, *arguments = shlex.split(command)
        known = cli.get_command(click.Context(cli), name)
        assert known is not None, command
        known.make_context(name, arguments)
    modules = set(re.findall(r"Measured: `[^`]*python -m (\S+?)[ `]", told))
    assert modules and all(importlib.util.find_spec(module) for module in modules), modules


def test_the_commits_that_pages_name_are_in_the_history() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("these sources are no clone")

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)

    if git("rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        return  # The history is not here.
    named = {
        commit: str(page.relative_to(ROOT))
        for page in PAGES
        for commit in re.findall(r"\bcommits? ([0-9a-f]{7,40})\b", page.read_text(encoding="utf-8"))
    }
    assert named
    states = STATES.read_text(encoding="utf-8")
    lost = frozenset(re.findall(r"^([0-9a-f]{7,40})$", states, re.MULTILINE))
    outside = {one for one in named if git("merge-base", "--is-ancestor", one, "HEAD").returncode}
    assert {one: named[one] for one in outside - lost} == {}
    assert lost - outside == set()
    (whole,) = set(re.findall(r"what they changed is in ([0-9a-f]{8}) as a whole", states))
    assert git("merge-base", "--is-ancestor", whole, "HEAD").returncode == 0


def test_results_are_told_from_lists_and_the_source_of_a_table_is_in_its_section() -> None:
    table = "| case | Linux | model |\n|---|---|---|\n| a | 1.25 | 3.5 (1 to 4) |\n| b | 4.75 % | 2.0 |\n"
    source = "Measured: `twinnet run x`, virtual clock, 2026-11-23, commit 0abc123, n = 3."
    assert without_source(f"# One\n\n## Here\n\n{table}\n## There\n\n{source}\n") == {"## Here"}
    assert without_source(f"# One\n\n{source}\n\n{table}") == set()
    # What names all but one is no source.
    for part in ("`twinnet run x`", "2026-11-23", "commit 0abc123", "n = 3"):
        assert without_source(f"# One\n\n{source.replace(part, '')}\n\n{table}") == {"# One"}
    assert without_source(f"# One\n\n<!-- record: cells -->\n{table}<!-- end -->\n") == set()
    # Each table has a source of its own, and lists of numbers are numbers.
    assert without_source(f"# One\n\n{source}\n\n{table}\n{table}") == {"# One"}
    errors = "| row | errors |\n|---|---|\n" + 4 * "| a | -0.3, none, +2.6 (doubtful) |\n"
    assert without_source(f"# One\n\n{errors}") == {"# One"}
    ports = "| name | port | since |\n|---|---|---|\n| a | 5003 | 1 |\n| b | 5004 | 2 |\n"
    settings = "| key | default | means |\n|---|---|---|\n| a | 1.5 ms | how long |\n| b | 5 % | how often |\n"
    assert without_source(f"# One\n\n{ports}\n{settings}") == set()


def test_pages_have_what_the_records_give() -> None:
    told = record_pages.words()
    for page in record_pages.PAGES:
        text = page.read_text(encoding="utf-8")
        # Make it anew: python -m bench.record_pages
        assert record_pages.filled(text, told) == text
        assert "<!-- record: " in text
    with pytest.raises(ValueError, match="a place for 'weather'"):
        record_pages.filled("<!-- record: weather --><!-- end -->", told)
