"""What can follow at the prompt, against a lab that plays a script."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_lab import FakeLab
from twinnet.cli.prompt.completing import candidates


@pytest.mark.parametrize(
    ("before", "some"),
    [
        ("", {"h1", "pingall", "link"}),
        ("pin", {"pingall", "pingallfull"}),
        ("h1 ping h", {"h1", "h2", "h3", "h4"}),
        ("link s1 h", {"h1", "h4"}),
        ("link s1 h1 d", {"delay", "down", "duplicate"}),
        ("link s1 h1 delay 5ms r", {"rate", "reorder"}),
        ("flows ", {"s1"}),
        ("flow s1 ", {"add", "del"}),
        ("queue s1-e", {"s1-eth1", "s1-eth4"}),
        ("queue s1-eth1 fq", {"fq_codel"}),
        ("capture s1-eth", {"s1-eth1", "s1-eth4"}),
    ],
)
def test_completion_offers_what_can_follow(fake: FakeLab, before: str, some: set[str]) -> None:
    found = set(candidates(fake.lab, before))
    assert some <= found
    assert all(one.startswith(before.split(" ")[-1]) for one in found)


def test_completion_knows_programs_of_the_path_and_files(
    fake: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, mode in (("measure-it", 0o755), ("measured.txt", 0o644)):
        (programs / name).touch(mode)
    (tmp_path / "notes.txt").touch()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.chdir(tmp_path)
    assert candidates(fake.lab, "h1 mea") == ["measure-it"]
    assert candidates(fake.lab, "time h1 mea") == ["measure-it"]
    assert candidates(fake.lab, "h1 echo a | mea") == ["measure-it"]
    assert candidates(fake.lab, "h1 ./programs/measure") == ["./programs/measure-it", "./programs/measured.txt"]
    assert candidates(fake.lab, "h1 cat n") == ["notes.txt"]
    assert candidates(fake.lab, "source p") == ["programs/"]
    assert candidates(fake.lab, "help pinga") == ["pingall", "pingallfull"]
    assert candidates(fake.lab, "x h") == ["h1", "h2", "h3", "h4"]
