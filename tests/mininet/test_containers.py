"""Containers of scripts: images as folders and archives, and hosts on them."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script
from small_images import saved_image, small_root
from twinnet.errors import BadValue
from twinnet.lab_process.images import find_image

machine = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def layer(files: Mapping[str, str]) -> bytes:
    """A layer; a text that begins with -> is a symbolic link, one with => a hard link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            if text.startswith(("->", "=>")):
                member.type = tarfile.SYMTYPE if text.startswith("->") else tarfile.LNKTYPE
                member.linkname = text[2:]
                tar.addfile(member)
            else:
                member.size = len(text.encode())
                tar.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


CONFIG = {"config": {"Env": ["PATH=/bin", "COLOUR=blue"], "Cmd": ["sleep", "9"], "WorkingDir": "/srv"}}
LAYERS = (
    layer({"etc/kept": "1", "etc/gone": "2", "srv/old/a": "3", "link": "->etc"}),
    layer({"etc/.wh.gone": "", "srv/old/.wh..wh..opq": "", "srv/old/b": "4", "link": "now a file"}),
)


def saved(path: Path, layers: tuple[bytes, ...] = LAYERS) -> Path:
    """The image as an archive."""
    return saved_image(path, layers, CONFIG)


def layout(folder: Path) -> Path:
    """The same image as an OCI layout."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}"}

    manifest = {"config": put(json.dumps(CONFIG).encode()), "layers": [put(one) for one in LAYERS]}
    index = {"manifests": [put(json.dumps({"manifests": [put(json.dumps(manifest).encode())]}).encode())]}
    (folder / "index.json").write_text(json.dumps(index))
    (folder / "oci-layout").write_text("{}")
    return folder


def check(name: Path) -> None:
    image = find_image(str(name))
    assert (image.environment, list(image.command), image.folder) == (
        {"PATH": "/bin", "COLOUR": "blue"},
        ["sleep", "9"],
        "/srv",
    )
    held = sorted(str(path.relative_to(image.root)) for path in image.root.rglob("*") if not path.is_dir())
    assert held == ["etc/kept", "link", "srv/old/b"]
    assert (image.root / "link").read_text() == "now a file"


def test_layers_of_an_archive_are_put_upon_each_other(tmp_path: Path) -> None:
    check(saved(tmp_path / "image.tar"))


def test_an_oci_layout_is_the_same_image(tmp_path: Path) -> None:
    check(layout(tmp_path / "layout"))


def test_an_image_is_unpacked_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    path = saved(tmp_path / "image.tar")
    first = find_image(str(path))
    (first.root / "mark").touch()
    assert (find_image(str(path)).root / "mark").exists()
    saved(path, (layer({"other": "much longer than before" * 1000}),))
    assert (find_image(str(path)).root / "other").exists()


@pytest.mark.parametrize(
    "files",
    [
        {"../outside": "1"},
        {"out": "->/", "out/tmp/twinnet-was-outside": "1"},
        {"out": "->/tmp", "out/.wh.twinnet-was-outside": ""},
        {"in": "=>../../../outside"},
    ],
)
def test_a_layer_does_not_reach_out_of_its_image(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(BadValue, match="cannot be unpacked"):
        find_image(str(saved(tmp_path / "image.tar", (layer(files),))))
    assert not Path("/tmp/twinnet-was-outside").exists()
    assert list((tmp_path / "cache").rglob("*.json")) == []


@pytest.mark.parametrize("content", [b"", b"no archive", LAYERS[0]])
def test_what_is_no_image_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(content)
    with pytest.raises(BadValue, match=re.escape(str(path))):
        find_image(str(path))
    with pytest.raises(BadValue, match="nowhere:latest is not here"):
        find_image("nowhere:latest")


@machine
def test_containers_are_hosts_with_files_of_their_own(tmp_path: Path) -> None:
    small_root(tmp_path / "root", ("bash", "cat", "ping", "ls", "sleep"))
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "note").write_text("from outside\n")
    done = run_script(
        tmp_path,
        """
        import os
        from mininet.net import Containernet
        from mininet.node import Docker, OVSBridge

        net = Containernet(controller=None, switch=OVSBridge)
        d1 = net.addDocker("d1", ip="10.0.0.251", dimage="root", volumes=[os.getcwd() + "/shared:/notes:ro"],
                           environment={"COLOUR": "blue"}, mem_limit="64m", dns=["10.0.0.1"])
        d2 = net.addDocker("d2", ip="10.0.0.252", dimage="root", dcmd="sleep 1000")
        h1, s1 = net.addHost("h1"), net.addSwitch("s1")
        for node in (d1, d2, h1):
            net.addLink(node, s1)
        net.start()
        limited = d1.limited
        within = b"/d1\\n" in d1.popen("cat /proc/self/cgroup").communicate()[0]
        print(isinstance(d1, Docker), d1.cmd("echo $COLOUR; cat /notes/note; ls /").split())
        d1.cmd("echo mine > /file")
        print(d1.cmd("cat /file").strip(), "No such file" in d2.cmd("cat /file"))
        print("Read-only" in d1.cmd("echo x > /notes/new"), os.path.exists("root/file"))
        print(" 0% packet loss" in d1.cmd("ping -c1 10.0.0.252"), " 0% packet loss" in h1.cmd("ping -c1", d1.IP()))
        print(d1.popen("cat /file").communicate()[0].decode().strip())
        print(h1.cmd("pgrep -fc 'sleep 1000'").strip(), "10.0.0.251" in d1.cmd("ip addr show d1-eth0"))
        net.stop()
        print(h1.shell, d1.shell)
        print(limited, limited == within)
        """,
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("True ['blue', 'from', 'outside', 'bin', 'dev',"), done.stdout + done.stderr
    assert lines[1:5] == ["mine True", "True False", "True True", "mine"], done.stdout
    assert lines[6] == "None None"
    assert lines[5].split()[1] == "True"
    assert done.stderr.count("dns of d1 is left out") == 1
    told = "mem_limit=64m of d1 is left out: this user may not make control groups" in done.stderr
    assert lines[7] == f"{not told} True"


@machine
def test_an_image_without_a_shell_is_refused(tmp_path: Path) -> None:
    small_root(tmp_path / "root", ("cat",))
    done = run_script(
        tmp_path,
        """
        from mininet.net import Containernet
        Containernet(controller=None).addDocker("d1", dimage="root")
        """,
    )
    assert done.returncode == 1
    assert "d1: the image root cannot be entered: No such file or directory" in done.stderr
