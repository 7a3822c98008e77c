"""`twinnet kernel build`: from a source to a kernel that is chosen. The sources here compile in no time; one test
builds nothing but asks a real kernel, where there is one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from fake_kernels import fake_kernel, fake_source
from twinnet.cli import run
from twinnet.errors import BadFile, KernelMissing, KernelUnusable, NotAvailable, ProgramFailed, ProgramMissing
from twinnet.guest import find, kernel_build, needed
from twinnet.guest.kernel import VARIABLE, kernels_folder
from twinnet.guest.kernel_build import build, recipe_hash
from twinnet.guest.kernel_source import find_source, source_at

pytestmark = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in kernel_build.TOOLS),
    reason="tools that build a kernel are not installed",
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Told(list[str]):
    """The steps that were told."""

    def __call__(self, step: str, files: int) -> None:
        self.append(f"{step} {files}" if files else step)


def archive(folder: Path, kind: str = "xz") -> Path:
    path = folder.parent / f"linux-source-{folder.name}.tar.{kind}"
    with tarfile.open(path, f"w:{kind}") as file:
        file.add(folder, "linux-source")
    return path


def left() -> list[str]:
    return sorted(path.name for path in kernels_folder().iterdir() if not path.name.startswith("."))


def test_an_archive_becomes_the_kernel_that_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = archive(fake_source(tmp_path / "7.3"))
    assert run(["kernel", "build", "--source", str(source), "--jobs", "3"]) == 0
    written = capsys.readouterr()
    assert written.out.startswith("Linux 7.3.4-twinnet, built or installed here")
    steps = written.err.splitlines()
    assert steps[0] == f"reading {source}"
    assert [one for one in steps if one.startswith("applying")] == [
        "applying 0001-random-numbers-from-a-seed.patch",
        "applying 0002-cost-of-clock-readings-and-system-calls.patch",
        "applying 0003-timer-of-250-hz.patch",
        "applying 0004-room-for-hundreds-of-network-cards.patch",
        "applying 0005-no-process-outlives-the-kernel.patch",
        "applying 0006-hostfs-only-reads.patch",
        "applying 0007-tell-who-has-the-processor.patch",
        "applying 0010-nothing-of-how-the-disk-was-filled.patch",
        "applying 0011-answers-for-the-processor.patch",
        "applying 0012-clock-readings-without-system-calls.patch",
        "applying 0013-turns-by-shared-memory.patch",
    ]
    assert steps[-2] == "configuring" and steps[-1].startswith("compiling: 1 of about 1000 files, ")
    kernel = needed()
    record = (kernel.path.parent / "kernel.json").read_text()
    assert str(source) in record and recipe_hash() in record
    assert left() == sorted(["build.log", "chosen", kernel.path.parent.name])


def test_a_program_gets_the_kernel_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = fake_source(tmp_path / "linux")
    assert run(["kernel", "build", "--source", str(source), "--json"]) == 0
    built = json.loads(capsys.readouterr().out)
    assert built == needed().to_record()
    assert run(["kernel", "install", built["path"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == built["version"]


def test_what_was_built_is_built_once(tmp_path: Path) -> None:
    source = source_at(archive(fake_source(tmp_path / "7.3")))
    first = build(source, Told())
    again = Told()
    assert build(source, again) == first
    assert again == [f"reading {source.path}"]
    # Another source, by its content.
    (tmp_path / "7.3" / "README").write_text("changed")
    other = build(source_at(archive(tmp_path / "7.3")), Told())
    assert other.path != first.path and needed() == other
    # One that has been damaged is built again.
    other.path.write_text("")
    again = Told()
    assert build(source_at(source.path), again) == other == needed()
    assert "compiling 1" in again


def test_a_folder_is_built_and_stays_as_it_is(tmp_path: Path) -> None:
    folder = fake_source(tmp_path / "linux")
    (folder / "arch" / "um" / "left.o").write_text("of a build in the folder itself")
    (folder / ".git").mkdir()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    built = build(source_at(folder), Told())
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    # Neither times nor what a build has left make another source of it.
    (folder / "arch" / "um" / "left.o").unlink()
    os.utime(folder / "Makefile", (1, 1))
    told = Told()
    assert build(source_at(folder), told) == built
    assert told == [f"reading {folder}"]


@pytest.mark.parametrize("kind", ["gz", "bz2"])
def test_archives_of_other_kinds_are_taken(tmp_path: Path, kind: str) -> None:
    assert build(source_at(archive(fake_source(tmp_path / "7.3"), kind)), Told()).version == "7.3.4-twinnet"


def test_the_newest_source_of_the_distribution_is_taken(tmp_path: Path) -> None:
    for version in ("6.9", "7.10", "7.9"):
        (tmp_path / f"linux-source-{version}.tar.xz").touch()
    (tmp_path / "linux-source-7.11.tar.xz.sig").touch()
    assert find_source(tmp_path).path.name == "linux-source-7.10.tar.xz"


def test_where_there_is_no_source_the_refusal_says_how_to_get_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KernelMissing, match=r"apt-get install linux-source.*twinnet kernel build --source FILE"):
        find_source(tmp_path)
    monkeypatch.setattr(kernel_build, "find_source", lambda: find_source(tmp_path))
    assert run(["kernel", "build"]) == 1
    assert "there is no source of Linux" in capsys.readouterr().err


def test_what_is_no_source_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"there is no .*nothing"):
        source_at(tmp_path / "nothing")
    with pytest.raises(BadFile, match="holds no source of Linux: it has no arch/um"):
        source_at(tmp_path)
    text = tmp_path / "text"
    text.write_text("nothing\n")
    with pytest.raises(BadFile, match=r"cannot be unpacked: tar: .*archive such as linux-7\.3\.tar\.xz"):
        build(source_at(text), Told())
    (tmp_path / "other").mkdir()
    with pytest.raises(BadFile, match="holds no source of Linux"):
        build(source_at(archive(tmp_path / "other")), Told())
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadFile, match="it is a pipe"):
        build(source_at(tmp_path / "pipe"), Told())
    assert find() is None and left() == ["build.log"]


def test_a_source_that_is_too_old_is_refused_by_its_version(tmp_path: Path) -> None:
    with pytest.raises(KernelUnusable, match=r"is the source of Linux 6\.1\.90, and 6\.16 is the oldest.*backports"):
        build(source_at(fake_source(tmp_path / "linux", "6.1.90")), Told())


def test_a_patch_that_does_not_fit_is_named(tmp_path: Path) -> None:
    folder = fake_source(tmp_path / "linux")
    (folder / "arch" / "um" / "Kconfig").write_text("config HZ\n\tint\n\tdefault 1000\n")
    with pytest.raises(
        ProgramFailed, match=r"applying 0003-timer-of-250-hz\.patch, which is made for Linux 7\.3, fail"
    ):
        build(source_at(folder), Told())


def test_a_compilation_that_fails_shows_the_end_of_the_log_and_where_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fake_source(tmp_path / "linux", compile_="; for n in $$(seq 40); do echo line $$n; done; exit 3")
    assert run(["kernel", "build", "--source", str(folder)]) == 1
    told = capsys.readouterr().err
    log = kernels_folder() / "build.log"
    assert f"compiling failed; the end of {log}" in told
    assert "line 40" in told and "line 12" not in told
    assert "line 1\n" in log.read_text()
    assert left() == ["build.log"] and find() is None


def test_a_source_that_cannot_be_configured_as_it_must_is_refused(tmp_path: Path) -> None:
    folder = fake_source(tmp_path / "linux", configure="; sed -i '/OVERLAY/d; s/HZ=250/HZ=100/' $(O)/.config")
    with pytest.raises(KernelUnusable, match="cannot be configured as it must be: CONFIG_HZ=250, CONFIG_OVERLAY_FS=y"):
        build(source_at(folder), Told())


def test_a_kernel_that_lacks_something_is_not_kept(tmp_path: Path) -> None:
    folder = fake_source(tmp_path / "linux")
    fake_kernel(folder / "kernel.sh", options="CONFIG_UML=y")
    with pytest.raises(KernelUnusable, match=rf"the kernel from {folder}, Linux 7\.3\.4-twinnet, lacks"):
        build(source_at(folder), Told())
    assert find() is None and left() == ["build.log"]


def test_missing_tools_are_named_with_the_packages_that_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake_source(tmp_path / "linux")
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("gcc", "make", "tar", "xz", "patch", "bison"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(ProgramMissing, match=r"needs flex, bc, which are not installed \(on Debian .* flex bison bc"):
        build(source_at(folder), Told())
    for tool in ("flex", "bc"):
        (tools / tool).symlink_to("/bin/true")
    (tools / "gcc").unlink()
    (tools / "gcc").symlink_to("/bin/false")
    with pytest.raises(ProgramMissing, match=r"a C library to link statically with.*glibc-static"):
        build(source_at(folder), Told())


def test_another_processor_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(NotAvailable, match="runs on x86_64, and this machine is aarch64"):
        build(source_at(fake_source(tmp_path / "linux")), Told())


def wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_build_leaves_no_process_and_the_next_one_no_folder(
    tmp_path: Path, signal_: signal.Signals
) -> None:
    begun, alive = tmp_path / "begun", tmp_path / "alive"
    # It writes for ever, as a compilation does.
    endless = f"; echo $$$$ >{alive}; touch {begun}; while echo '  CC      x.o'; do sleep 0.05; done"
    folder = fake_source(tmp_path / "linux", compile_=endless)
    command = [sys.executable, "-c", "from twinnet.cli import main; main()", "kernel", "build", "--source", str(folder)]
    building = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(begun)
    building.send_signal(signal_)
    _, told = building.communicate(timeout=60)
    assert building.returncode == (130 if signal_ == signal.SIGINT else -signal_)
    if signal_ == signal.SIGINT:
        assert told.splitlines()[-1] == "twinnet: interrupted"
        assert left() == ["build.log"]
    shell = Path("/proc") / alive.read_text().strip()
    until = time.monotonic() + 20
    while shell.exists() and "Z" not in (shell / "stat").read_text().rpartition(")")[2][:3]:
        assert time.monotonic() < until, "what it ran goes on"
        time.sleep(0.05)
    build(source_at(fake_source(tmp_path / "linux")), Told())
    assert left() == sorted(["build.log", "chosen", needed().path.parent.name])
