"""Hosts of a network on the root file system of a container's image."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from means import MEANS
from small_images import layer_of, small_root
from twinnet.cli.prompt.session import Session
from twinnet.errors import BadValue, LabError
from twinnet.lab.terminal_job import start_on_terminal, usual_shell
from twinnet.network.topology_file import load_network

pytestmark = needs_a_lab


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An image with a few programs."""
    return small_root(tmp_path / "root", ("sh", "cat", "ls", "sleep"))


@pytest.fixture
def net(tmp_path: Path, root: Path) -> tn.Network:
    """Two hosts on one image, with a volume and a variable, and a router that has it too."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "note").write_text("from outside\n")
    net, volume = tn.Network(), f"{tmp_path}/notes:/notes:ro"
    net.router("r1", image=str(root))
    net.link("r1", net.host("h1", image=str(root), volumes=[volume], environment={"COLOUR": "blue"}), address_a=())
    net.link("r1", net.host("h2", image=str(root), command="sleep 1000"), address_a=())
    return net


def test_hosts_have_the_files_of_their_image_and_their_own_network(tmp_path: Path, root: Path, net: tn.Network) -> None:
    with net.emulate() as lab:
        h1, h2 = lab["h1"], lab["h2"]
        assert h1.has_image
        assert h1.run("echo $COLOUR $HOME; cat /notes/note", shell=True).stdout == "blue /root\nfrom outside\n"
        assert h1.run("cat /sys/class/net/h1-eth0/address").stdout == "00:00:00:00:00:01\n"
        assert "10.0.0.2 h2\n" in h1.run("cat /etc/hosts").stdout
        assert lab["r1"].run("ls /sys/class/net").stdout.split() == ["lo", "r1-eth0", "r1-eth1"]
        assert h1.run(["ls", str(tmp_path)]).returncode != 0, "the machine's files are not there"
        # What a host writes is its own, stays while the lab runs, and does not change the image.
        h1.run("echo mine > /file", shell=True, check=True)
        assert h1.run("cat /file").stdout == "mine\n"
        assert h2.run("cat /file").returncode != 0
        assert h1.run("echo x > /notes/note", shell=True).returncode != 0, "the volume is read-only"
        assert [(job["host"], job["argv"]) for job in lab.connection.jobs() if job["state"] == "running"] == [
            ("h2", ["sleep", "1000"])
        ]
    assert not (root / "file").exists()
    assert (tmp_path / "notes" / "note").read_text() == "from outside\n"


def test_the_prompt_runs_programs_in_an_image_and_exports_the_network_with_it(
    tmp_path: Path, net: tn.Network, capfd: pytest.CaptureFixture[str]
) -> None:
    with net.emulate() as lab:
        session = Session(lab)
        assert session.execute("h1 cat /notes/note")
        assert session.execute("link r1 h1 rate 5Mbit")
        assert session.execute(f"export {tmp_path}/now.yaml")
        assert not session.execute(f"export {tmp_path}/no/now.yaml")
    shown = capfd.readouterr()
    assert shown.out.startswith("from outside\n")
    assert "no/now.yaml cannot be written: No such file or directory" in shown.err
    again, before = load_network(tmp_path / "now.yaml").to_spec(), net.to_spec()
    images = [{node["name"]: node["image"] for node in spec["nodes"]} for spec in (again, before)]
    assert images[0] == images[1]
    assert again["links"][0]["ab"]["rate_bps"] == 5_000_000


def test_terminals_and_built_in_apps_work_on_an_image(net: tn.Network) -> None:
    with net.emulate() as lab:
        shell = [usual_shell(lab, "h1"), "-c", "echo $COLOUR; pwd"]
        job, terminal = start_on_terminal(lab, "h1", shell, (24, 80), {"COLOUR": "red"})
        shown = b""
        # The terminal ends, by EIO, when nobody has it open any more.
        with contextlib.suppress(OSError):
            while piece := os.read(terminal, 4096):
                shown += piece
        os.close(terminal)
        assert shown == b"blue\r\n/\r\n"
        assert job.wait("15 s").returncode == 0
        assert lab.wait([lab.start(tn.apps.ping("h1", "h2", count=1))], until="15 s")


@pytest.mark.parametrize(
    ("settings", "error", "told"),
    [
        ({"image": "nowhere:latest"}, BadValue, "the image nowhere:latest is not here"),
        ({"volumes": ["/no/such/folder:/a"]}, BadValue, "the volume's source /no/such/folder is not here"),
        ({"command": "no-such-program"}, LabError, "no-such-program"),
    ],
)
def test_what_is_not_here_is_told_when_the_lab_starts(
    root: Path, settings: dict[str, Any], error: type[Exception], told: str
) -> None:
    net = tn.Network()
    given: Any = {"image": str(root)} | settings
    net.link(net.host("h1", **given), net.switch("s1"))
    with pytest.raises(error, match=told), net.emulate():
        pass


def test_links_of_an_image_do_not_lead_out_of_it(tmp_path: Path, root: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / "out").symlink_to(tmp_path / "outside")
    net = tn.Network()
    net.link(net.host("h1", image=str(root), volumes=[f"{root}:/out/sub"]), net.switch("s1"))
    with net.emulate() as lab, pytest.raises(LabError, match="mounting the volume /out/sub"):
        lab["h1"].run("ls")
    assert list((tmp_path / "outside").iterdir()) == []


def test_an_image_of_podman_is_found_by_its_name(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = tmp_path / "storage.conf"
    places = f'graphroot = "{tmp_path}/graph"\nrunroot = "{tmp_path}/run"\n'
    storage.write_text(f'[storage]\ndriver = "vfs"\n{places}')
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(storage))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if not MEANS["podman"].is_here():
        pytest.skip("podman is not installed, or may not run here")
    archive = tmp_path / "layer.tar"
    archive.write_bytes(layer_of(root))
    name = "localhost/twinnet-small:1"
    made = ["podman", "import", "--quiet", "--change", "ENV COLOUR=blue", str(archive), name]
    subprocess.run(made, check=True, capture_output=True, timeout=120)
    net = tn.Network()
    net.link(net.host("h1", image=name), net.host("h2"))
    with net.emulate() as lab:
        assert lab["h1"].run("echo $COLOUR; ls /bin", shell=True).stdout.split() == ["blue", "cat", "ls", "sh", "sleep"]
