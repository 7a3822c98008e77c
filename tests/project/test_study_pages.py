"""The pages of published studies: each is what its command gives, and the page of all leads to it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from module_files import module_in
from twinnet.cli import run as command_line
from twinnet.errors import BadValue
from twinnet.report.published_counts import SENSES, compared_values, numbers_held, outcomes
from twinnet.report.published_section import NOT_MEASURED
from twinnet.report.view import Cell, Table
from twinnet.study.published_results import WORDS
from twinnet.study.resolution import load_study

DOCS = Path(__file__).parents[2] / "docs"
CHEAP = ("multimedia-delivery", "mtu-sweep")
"""Studies that take seconds, and of which nothing but lines and sources decides the numbers."""
MAKER = module_in(DOCS / "study_pages.py")


def without_source(page: str) -> str:
    return re.sub(r"^Measured: .*$", "", page, flags=re.MULTILINE)


def test_every_page_is_told_and_the_gallery_leads_to_it() -> None:
    assert set(MAKER.PAGES) == {page.stem for page in MAKER.PAGES_FOLDER.glob("*.md")}
    assert MAKER.GALLERY.read_text(encoding="utf-8") == MAKER.gallery(), "write it anew: python docs/study_pages.py"


@pytest.mark.parametrize("name", MAKER.PAGES)
def test_a_page_has_its_figures_and_says_where_its_numbers_are_from(name: str) -> None:
    page = (MAKER.PAGES_FOLDER / f"{name}.md").read_text(encoding="utf-8")
    shown = re.findall(r"\]\(\.\./images/studies/([^)]+)\)", page)
    assert shown and {f"{name}/{path.name}" for path in (MAKER.PICTURES / name).iterdir()} == set(shown)
    told = r"^Measured: `(.*?)`, clock: .*?, \d{4}-\d\d-\d\d, commit [0-9a-f]{8}, n = \d+ "
    source = re.search(told, page, re.MULTILINE)
    assert source is not None and source.group(1) == MAKER.PAGES[name].command(name)
    told = MAKER.contradictions(load_study(name).specification)
    assert told in page and bool(told) == ("contradicts itself" in page)
    for heading in MAKER.TOLD:
        assert (f"## {heading}\n" in page) == bool(MAKER.readme_section(name, heading))


def said_on(page: str) -> Counter[str]:
    """The words of a page's published values, as its tables have them."""
    words = "|".join(map(re.escape, WORDS))
    beside = rf"^\|.*\| (?:({words})(?: \(p = [^)]*\))?|{NOT_MEASURED}: .*) \|(?:  \|  \|)?$"
    of_reference = rf"\| (?:[^|]*, )?({words}) \| . "
    found = [one or NOT_MEASURED for one in re.findall(beside, page, re.MULTILINE)]
    return Counter([*found, *re.findall(of_reference, page)])


@pytest.mark.parametrize("name", MAKER.PAGES)
def test_every_published_value_is_counted_with_what_its_page_says_of_it(name: str) -> None:
    study, told = load_study(name), MAKER.outcomes_told()[name]
    assert sum(told.values()) == len(compared_values(study))
    assert said_on((MAKER.PAGES_FOLDER / f"{name}.md").read_text(encoding="utf-8")) == told
    assert {sense for _, sense in compared_values(study)} <= set(SENSES)


def test_the_numbers_of_the_publications_are_all_counted() -> None:
    held = {name: numbers_held(load_study(name)) for name in MAKER.PAGES}
    # Of tables: 90 and 54 figures of two networks, 56 means with deviations, 11 estimates with errors. Of texts: 22
    # shares of the class profiles, three ranges and a value of mobile nodes, eight values of the queues.
    assert held == {
        "multimedia-delivery": 2 * 90,
        "mtu-sweep": 2 * 54,
        "qos-class-profiles": 2 * 56 + 22,
        "available-bandwidth": 2 * 11,
        "sending-accuracy": 3 * 2 + 1,
        "sending-fairness": 0,
        "tcp-udp-queues": 8,
    }


def test_every_part_of_each_publication_is_told_with_what_shows_it() -> None:
    rows = MAKER.items()
    parts = Counter(row["publication"] for row in rows)
    assert [*parts.values()] == [19, 18, 30, 20, 13]
    assert len({(row["study"], row["item"]) for row in rows}) == len(rows)
    for row in rows:
        assert row["study"] in MAKER.PAGES and row["state"] in MAKER.STATES and row["where or why"], row
        name, _, words = row["evidence"].partition("::")
        shown = DOCS.parent / name
        assert name and shown.is_file(), row
        assert words in shown.read_text(encoding="utf-8", errors="replace"), row


def test_the_gallery_counts_the_parts() -> None:
    states = Counter(row["state"] for row in MAKER.items())
    counted = " | ".join(f"**{states[state]}**" for state in MAKER.STATES)
    assert f"| **all** | {counted} |" in MAKER.GALLERY.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("name", CHEAP)
def test_a_page_is_what_its_command_gives(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAKER.PAGES[name] == MAKER.Made()
    assert command_line(["run", name, "--no-report", "--yes", "--out", str(tmp_path)]) == 0
    monkeypatch.setattr(MAKER, "PICTURES", tmp_path / "pictures")
    made = MAKER.page_of(MAKER.checked(tmp_path / name))
    page = (MAKER.PAGES_FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert without_source(made) == without_source(page), "write it anew: python docs/study_pages.py FOLDER"
    assert outcomes(MAKER.checked(tmp_path / name)) == MAKER.outcomes_told()[name]


def test_a_page_is_not_made_of_other_results_than_it_says(tmp_path: Path) -> None:
    assert command_line(["run", "mtu-sweep", "--preset", "tiny", "--no-report", "--out", str(tmp_path)]) == 0
    with pytest.raises(BadValue, match="is not the whole of what the page tells of"):
        MAKER.checked(tmp_path / "mtu-sweep")


def test_a_table_is_one_of_markdown() -> None:
    table = Table(["Case", "Here (ms)"], [[Cell("a|b"), Cell("1.5", "[1, 2]")]], 1, "Delay", "Mean.", 4)
    assert MAKER.markdown(table) == ("### Delay\n\nMean.\n\n| Case | Here (ms) |\n|---|---:|\n| a\\|b | 1.5 [1, 2] |\n")


def test_links_of_a_readme_lead_on_from_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").mkdir()
    linked = "See [it](../../../../docs/a.md#b) and [other](../y/README.md)."
    (tmp_path / "x" / "README.md").write_text(f"# X\n\n## Not as published\n\n{linked}\n\n## After\n\nNo.\n")
    monkeypatch.setattr(MAKER, "STUDIES", tmp_path)
    assert MAKER.readme_section("x", "Not as published") == "## Not as published\n\nSee [it](../a.md#b) and other.\n"
    assert MAKER.readme_section("x", "Elsewhere") == ""
