"""Published scripts are run from a folder, judged by what they show, and told when something of them is not here."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs

from bench import mininet_scripts
from bench.mininet_scripts import SCRIPTS, SECOND_SET, Script, lacking, run_script

TWO_HOSTS = """
from mininet.cli import CLI
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
net = Mininet(topo=SingleSwitchTopo(2), controller=None)
net.start()
open("out/done", "w").write(net.topo.hosts()[1])
CLI(net)
net.stop()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with one script."""
    place = tmp_path / "some" / "body" / "labs"
    place.mkdir(parents=True)
    (place / "two.py").write_text(TWO_HOSTS)
    return tmp_path


def script(**settings: object) -> Script:
    """The script of that repository, with `settings`."""
    return Script("some/body", "0" * 10, "labs/two.py", "two hosts", **settings)  # pyright: ignore[reportArgumentType]


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_a_script_works_when_its_output_and_its_files_show_what_they_should(folder: Path) -> None:
    typed = {"given": "h1 echo here $((6 * 7))\n", "folders": ("out",)}
    assert run_script(script(**typed, output=("here 42",), files={"out/done": "h2"}), folder) == ""
    wrong = run_script(script(**typed, output=("here 43",), files={"out/done": "h3", "none": ""}), folder)
    assert wrong == "'here 43' in its output; 'h3' in out/done; '' in none"
    # Without the folder its own open() fails.
    assert "FileNotFoundError" in run_script(script(), folder)
    assert list((folder / "some" / "body" / "labs").iterdir()) == [folder / "some" / "body" / "labs" / "two.py"]


def test_what_is_not_here_is_told_and_the_script_is_not_run(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lacking(script(), folder) == ""
    assert lacking(script(needs=("sh", "no-such-program")), folder) == "no-such-program"
    assert lacking(script(packages=("json", "no_such_package")), folder) == "no_such_package"
    assert lacking(script(), folder / "some") == "its source"
    monkeypatch.setattr(mininet_scripts, "SCRIPTS", (script(needs=("/no/such/init.sh",)),))
    monkeypatch.setattr("sys.argv", ["mininet_scripts", str(folder)])
    assert mininet_scripts.main() == 0
    row = "| `labs/two.py` of some/body at 0000000000 | two hosts | init.sh | not run: init.sh is not here |"
    assert capsys.readouterr().out.splitlines() == [row, "1 not run"]


def test_the_sets_have_twenty_and_twenty_nine_scripts_and_no_repository_in_common() -> None:
    assert len({(one.repository, one.path) for one in SCRIPTS}) == 20
    assert len({(one.repository, one.path) for one in SECOND_SET}) == 29
    assert not {one.repository for one in SCRIPTS} & {one.repository for one in SECOND_SET}
