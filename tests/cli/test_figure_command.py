"""`twinnet figure` draws what the reader chooses, and says what cannot be chosen."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from twinnet.cli.group import cli

STUDY = """\
study: three
title: Three factors
question: What is late?
answer: "{mean(delay, load=low)} and {mean(delay, load=high)}"
clock: virtual
repetitions: 1
settle: 10 ms
drain: 50 ms
parameters:
  load: {default: 1 Mbit}
  wait: {default: 1 ms}
  length: {default: 200 B}
network:
  hosts: {h1: , h2: }
  links: [{between: [h1, h2], rate: 10 Mbit, delay: "${wait}"}]
factors:
  load: {levels: {low: {set: {load: 1 Mbit}}, high: {set: {load: 8 Mbit}}}}
  wait: {levels: {near: {set: {wait: 1 ms}}, far: {set: {wait: 20 ms}}}}
  length: {levels: {short: {set: {length: 200 B}}, long: {set: {length: 1400 B}}}}
traffic:
- {name: a, app: udp, from: [h1], to: h2, port: 5001, rate: "${load}", payload: "${length}", duration: 200 ms}
measurements:
  delay: {of: delay}
  carried: {of: throughput, interval: 50 ms}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("figures")
    (place / "three.yaml").write_text(STUDY)
    made = run("run", str(place / "three.yaml"), "--out", str(place), "--no-report")
    assert made.exit_code == 0, made.output
    return place / "three"


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


def words_of(path: Path) -> list[str]:
    """The words in an SVG file, whose text stays text."""
    return [text for one in ElementTree.parse(path).iter() if one.tag.endswith("}text") for text in one.itertext()]


def test_without_a_name_the_figures_are_listed(folder: Path) -> None:
    found = run("figure", str(folder))
    assert found.exit_code == 0, found.output
    assert json.loads(run("figure", str(folder), "--json").output) == {
        "carried": "Carried over time",
        "levels-delay": "Delay",
        "levels-carried": "Carried",
        "distribution-delay": "Delay: distribution",
    }
    assert "Delay: distribution" in found.output


def test_axis_colours_panels_and_levels_are_chosen(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    chosen = ("--axis", "wait", "--colour", "length", "--panels", "load", "--order", "value", "--linear")
    made = run("figure", str(folder), "levels-delay", *chosen, "--columns", "1", "--out", str(path))
    assert made.exit_code == 0, made.output
    words = words_of(path)
    assert [word for word in words if word.startswith("load: ")] == ["load: low", "load: high"]
    assert [word for word in words if word in ("near", "far")] == ["near", "far"] * (words.count("near"))
    only = ("--where", "load=high", "--where", "length=short,long", "--log", "--kind", "dots")
    assert run("figure", str(folder), "levels-delay", *only, "--out", str(path)).exit_code == 0
    assert not [word for word in words_of(path) if word.startswith("load: ")]
    assert run("figure", str(folder), "levels-delay", "--kind", "grid", "--out", str(path)).exit_code == 0
    assert (
        run("figure", str(folder), "carried", "--colour", "load", "--with-invalid", "--out", str(path)).exit_code == 0
    )
    assert {"low", "high", "wait: near, length: short"} <= set(words_of(path))


def test_the_size_is_that_of_the_page(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    assert run("figure", str(folder), "carried", "--size", "88x60mm", "--out", str(path)).exit_code == 0
    root = ElementTree.parse(path).getroot()
    # In points, of which an inch has 72.
    assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(88 / 25.4 * 72, abs=0.01)
    assert float(root.attrib["height"].removesuffix("pt")) == pytest.approx(60 / 25.4 * 72, abs=0.01)
    pdf = tmp_path / "a.pdf"
    told = json.loads(
        run("figure", str(folder), "levels-delay", "--size", "3.5x2in", "--out", str(pdf), "--json").output
    )
    assert told["figure"] == str(pdf) and told["caption"]
    assert pdf.read_bytes()[:5] == b"%PDF-"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["delays"], "there is no figure 'delays'"),
        (["levels-delay", "--axis", "waits"], "there is no factor 'waits'"),
        (["levels-delay", "--where", "wait=nowhere"], "wait has no level 'nowhere'"),
        (["levels-delay", "--where", "label=tcp"], "delay has no label 'tcp'"),
        (["levels-delay", "--where", "wait"], "names no level"),
        (["levels-delay", "--size", "88x60"], "is no size of a figure"),
        (["levels-delay", "--size", "1x1mm"], "cannot be drawn"),
        (["levels-delay", "--out", "a.jpg"], "write .pdf, .svg or .png"),
        (["carried", "--axis", "wait"], "axis has no meaning for the figure carried"),
    ],
)
def test_what_cannot_be_drawn_is_told(folder: Path, words: list[str], told: str) -> None:
    found = run("figure", str(folder), *words)
    assert found.exit_code != 0
    assert told in f"{found.output} {found.exception}"
