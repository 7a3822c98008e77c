"""No test skips for a reason that nobody has named, nor for want of something that is here."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from means import LEAST, MEANS, main, means_of, wrongly_skipped

TESTS = Path(__file__).parents[1]


def reasons() -> list[tuple[str, str]]:
    """Every reason that stands in the tests as a text, with its place; of a text with fields the first part."""
    found: list[tuple[str, str]] = []
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            given: list[ast.expr] = []
            if called == "pytest.skip":
                given = node.args[:1]
            elif called in ("pytest.mark.skipif", "pytest.mark.skip"):
                given = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
            for one in given:
                text = one.value if isinstance(one, ast.Constant) else ""
                if isinstance(one, ast.JoinedStr):
                    text = "".join(str(part.value) if isinstance(part, ast.Constant) else "tap" for part in one.values)
                if isinstance(text, str) and text:
                    found.append((f"{path.relative_to(TESTS)}:{node.lineno}", text))
    return found


def test_every_reason_has_a_name() -> None:
    # What stands in their fields says more: the reasons of a page's blocks, names of programs.
    open_ended = ("blocks left out: tap", "tap not installed")
    nameless = [(place, text) for place, text in reasons() if not means_of(text) and text not in open_ended]
    assert nameless == []
    assert len(reasons()) > 50


def test_what_the_machine_has_is_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINNET_LACKS", "ffmpeg,tap")
    told = {
        "a": "ffmpeg is not installed",
        "b": "VLC is not installed",
        "c": "I did not want to",
        "d": "no tap here: no",
    }
    wrong = wrongly_skipped(told)
    assert set(wrong) == {"b", "c"}
    assert "this machine has vlc" in wrong["b"] and "no reason" in wrong["c"]


def test_without_the_variable_the_machine_is_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TWINNET_LACKS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert wrongly_skipped({"a": "ffmpeg is not installed"}) == {}
    (tmp_path / "ffmpeg").touch(0o755)
    assert set(wrongly_skipped({"a": "ffmpeg is not installed"})) == {"a"}


@pytest.mark.parametrize(("reason", "status"), [("I did not want to", 1), ("VLC is not installed", 0)])
def test_a_run_with_such_a_skip_fails(tmp_path: Path, reason: str, status: int) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "test_one.py").write_text(f"import pytest\ndef test_one(): pytest.skip({reason!r})\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        env={**os.environ, "PYTHONPATH": str(TESTS / "support"), "TWINNET_LACKS": "vlc"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stdout
    assert ("skipped without a right to" in done.stdout) == bool(status)


@pytest.mark.parametrize(("lacks", "status"), [("", 0), ("vlc,top", 0), ("guest-kernel", 0), ("vlc,tshark,faucet", 1)])
def test_the_integration_fails_without_the_least_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lacks: str, status: int
) -> None:
    monkeypatch.setenv("TWINNET_LACKS", lacks)
    assert main(["--least"]) == status
    told = capsys.readouterr().out
    assert told.endswith("this machine lacks tshark, faucet\n") == bool(status)
    assert ("goes on without guest-kernel" in told) == ("guest-kernel" in lacks)


def test_the_least_set_has_names() -> None:
    assert set(LEAST) <= set(MEANS)


def test_each_means_can_be_looked_for() -> None:
    assert all(isinstance(means.is_here(), bool) for means in MEANS.values())
