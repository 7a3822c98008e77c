"""``twinnet graph`` of a lab that runs: its links as they are now."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from twinnet.cli import run
from twinnet.drawing.running import picture_of_running


def shown(*arguments: str) -> dict[str, str]:
    command = [sys.executable, "-c", "from twinnet.cli import main; main()", "graph", *arguments, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@needs_a_lab
def test_a_running_lab_is_drawn_as_it_is_now(capsys: pytest.CaptureFixture[str]) -> None:
    net = tn.templates.single(2, rate="10 Mbit", delay="1 ms")
    net.links[0].a.queue = tn.qos.Codel()
    with net.emulate() as lab:
        assert shown(lab.name)["caption"] == (
            "2 hosts, 1 switch and 2 links. Links: 10 Mbit/s delay 1 ms, codel queue of 1000 frames at h1-eth0; "
            "others as written."
        )
        lab.link("h2", "s1").set(rate="5 Mbit")
        lab.link("h1", "s1").set(up=False)
        picture = picture_of_running(lab.layout.nodes, lab.layout.links, lab.links())
        assert picture.common == "10 Mbit/s delay 1 ms, codel queue of 1000 frames at h1-eth0"
        assert [link.up for link in picture.links] == [False, True]
        assert [link.label for link in picture.links] == ["", "5 Mbit/s delay 1 ms"]
        assert [node.note for node in picture.nodes] == ["", "10.0.0.1/8", "10.0.0.2/8"]
        assert "5 Mbit/s" in shown(lab.name, "--format", "mermaid")["picture"]
        assert run(["graph", lab.name, "--rate", "1 Mbit"]) == 2
        assert "leave --rate, --delay and --parallel-edges out" in capsys.readouterr().err


def test_chosen_places_beside_the_file_of_the_network_are_used(tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    file.write_text("{hosts: {h1: , h2: }, links: [{between: [h1, h2]}]}")
    before = shown(str(file), "--format", "svg")["picture"]
    (tmp_path / "net.positions.json").write_text('{"h2": [4, 1], "gone": [9, 9]}')
    # A cell has 84 units, and the margin 56 and 40.
    assert 'x="392.0" y="128.0"' in shown(str(file), "--format", "svg")["picture"] and 'x="392.0"' not in before


def test_a_picture_is_written_as_svg_and_as_png(tmp_path: Path) -> None:
    for name, begins in (("net.svg", b"<svg"), ("net.png", b"\x89PNG"), ("net.pdf", b"%PDF")):
        assert run(["graph", "tree:2", "--out", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_name_of_nothing_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "lab-0000"]) == 2
    told = capsys.readouterr().err
    assert "'lab-0000' is no running lab" in told and "twinnet labs" in told
    assert run(["graph", "tre:2"]) == 2
    assert "did you mean 'tree'?" in capsys.readouterr().err
