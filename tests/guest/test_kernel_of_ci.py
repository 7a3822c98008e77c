"""How the continuous integration gets a source of Linux: from the mirror of its machine, and nothing is installed."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from module_files import module_in
from twinnet.guest import kernel_source

TOOL = Path(__file__).parents[2] / "tools" / "guest_kernel.py"


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = module_in(TOOL)
    monkeypatch.setattr(module, "FOLDER", tmp_path / "fetched")
    monkeypatch.delenv("TWINNET_KERNEL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return module


def test_only_the_suite_of_the_machines_list_is_changed(tool: ModuleType, tmp_path: Path) -> None:
    lists = tmp_path / "sources.list.d"
    lists.mkdir()
    (lists / "debian.sources").write_text(
        "Types: deb\n# mirror\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n"
        "Components: main\nSigned-By: /keys.gpg\n\n"
        "Types: deb\nURIs: http://mirror.example/security\nSuites: bookworm-security\n"
    )
    (lists / "others.list").write_text("deb http://others.example stable main\n")
    (stanza,) = tool.debian_lists(tmp_path)
    assert stanza == (
        "Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie-backports\nComponents: main\n"
        "Signed-By: /keys.gpg\n"
    )
    (lists / "debian.sources").unlink()
    (tmp_path / "sources.list").write_text(
        "deb http://mirror.example/debian bookworm main\n"
        "deb [signed-by=/keys.gpg] http://mirror.example/debian bookworm-updates main\n"
        "# deb http://mirror.example/debian bookworm-updates main\n"
    )
    assert list(tool.debian_lists(tmp_path)) == [
        "deb [signed-by=/keys.gpg] http://mirror.example/debian trixie-backports main\n"
    ]


def test_a_source_that_is_new_enough_is_taken_as_it_is(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_fetch(folder: Path) -> None:
        raise AssertionError("nothing needs to be fetched")

    monkeypatch.setattr(tool, "_fetch", no_fetch)
    monkeypatch.setattr(tool, "find_source", lambda folder=tmp_path / "installed": kernel_source.find_source(folder))
    for name in ("installed", "fetched"):
        (tmp_path / name).mkdir()
    (tmp_path / "fetched" / "linux-source-7.3.tar.xz").touch()
    (tmp_path / "installed" / "linux-source-6.1.tar.xz").touch()
    assert tool.source(tmp_path / "fetched").path.name == "linux-source-7.3.tar.xz"
    (tmp_path / "installed" / "linux-source-6.16.tar.xz").touch()
    assert tool.source(tmp_path / "fetched").path.name == "linux-source-6.16.tar.xz"


def test_where_no_source_can_be_had_it_says_so_by_its_status(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "find_source", lambda folder=tmp_path / "none": kernel_source.find_source(folder))
    monkeypatch.setattr(tool, "debian_lists", lambda etc: iter(()))
    assert tool.main() == tool.NO_SOURCE
    assert capsys.readouterr().out == "no source of Linux can be had: this machine has no list of Debian's packages\n"
    # A mirror that cannot be reached, or apt that is not there.
    monkeypatch.setattr(tool, "debian_lists", lambda etc: iter(["deb file:/nothing trixie-backports main\n"]))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool.main() == tool.NO_SOURCE
    assert "apt-get: " in capsys.readouterr().out
    # A kernel that is named needs no source, and one that cannot be used is a failure.
    monkeypatch.setenv("TWINNET_KERNEL", "/bin/true")
    assert tool.main() == 1
