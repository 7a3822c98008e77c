"""Shells of hosts beside the prompt: panes of tmux, windows, or lines to type elsewhere."""

from __future__ import annotations

import shlex

import pytest
from fake_lab import FakeLab
from twinnet.cli.prompt.session import Session
from twinnet.cli.prompt.terminals import window_command

WINDOWS = ("TMUX", "DISPLAY", "WAYLAND_DISPLAY")


@pytest.mark.parametrize("word", ["terminal", "xterm"])
def test_without_windows_the_lines_to_type_in_another_terminal_are_told(
    fake: FakeLab, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    for name in WINDOWS:
        monkeypatch.delenv(name, raising=False)
    Session(fake.lab).execute(f"{word} h1 h2")
    told = capfd.readouterr().out.splitlines()
    lines = [line.split() for line in told if line.strip().startswith("twinnet exec")]
    assert [line[:5] for line in lines] == [
        ["twinnet", "exec", "--terminal", fake.lab.name, host] for host in ("h1", "h2")
    ]


def test_in_tmux_a_shell_has_a_pane_and_the_prompt_keeps_the_keys() -> None:
    command = window_command("h1", ["twinnet", "exec", "my lab", "h1"], {"TMUX": "/tmp/tmux-0/default,1,0"})
    assert command[:3] == ["tmux", "split-window", "-d"]
    assert shlex.split(command[3]) == ["twinnet", "exec", "my lab", "h1"]
