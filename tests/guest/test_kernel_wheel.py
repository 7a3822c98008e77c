"""The package ``twinnet-kernel``: what its wheel holds, and that both ways to install it lead to its kernel."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from fake_kernels import fake_kernel, fake_source
from twinnet.cli import run
from twinnet.guest import needed
from twinnet.guest.kernel import VARIABLE
from twinnet.guest.kernel_build import TOOLS, build, patches
from twinnet.guest.kernel_source import source_at

TOOL = Path(__file__).parents[2] / "tools" / "kernel_wheel.py"

pytestmark = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in TOOLS), reason="tools that build a kernel are not installed"
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def packed(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TOOL), "--out", str(folder)], capture_output=True, text=True, timeout=60)


def made(tmp_path: Path) -> Path:
    """The wheel of a kernel that was built of a source which compiles in no time."""
    build(source_at(fake_source(tmp_path / "linux-7.3")), lambda step, files: None)
    done = packed(tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def test_it_holds_the_kernel_with_all_that_its_licence_asks_for(tmp_path: Path) -> None:
    wheel = made(tmp_path)
    assert wheel.name.startswith("twinnet_kernel-7.3.4+") and wheel.name.endswith("-py3-none-manylinux2014_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
        assert archive.getinfo("twinnet_kernel/linux").external_attr >> 16 == 0o100755
    assert held["twinnet_kernel/linux"] == needed().path.read_bytes()
    for patch in patches():
        assert held[f"twinnet_kernel/recipe/patches/{patch.name}"] == patch.read_bytes()
    assert b"CONFIG_UML_TIME_TRAVEL_SUPPORT=y" in held["twinnet_kernel/recipe/config"]
    assert b"GNU GENERAL PUBLIC LICENSE" in held["twinnet_kernel/COPYING"]
    source = held["twinnet_kernel/SOURCE.md"].decode()
    assert "`linux-7.3`, sha256 " in source and "KBUILD_BUILD_TIMESTAMP" in source and str(tmp_path) not in source
    (metadata,) = (content.decode() for name, content in held.items() if name.endswith("/METADATA"))
    assert "Name: twinnet-kernel\n" in metadata and "License-Expression: GPL-2.0-only\n" in metadata
    assert f"SHA-256 of `linux`: {hashlib.sha256(needed().path.read_bytes()).hexdigest()}" in source
    beside = wheel.with_name(f"{wheel.name}.sha256").read_text()
    assert beside == f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n"
    # A second one is the same.
    first = hashlib.sha256(wheel.read_bytes()).digest()
    assert packed(tmp_path / "dist").returncode == 0
    assert hashlib.sha256(wheel.read_bytes()).digest() == first


def test_twinnet_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = made(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    assert run(["kernel", "install", str(wheel)]) == 0
    assert needed().found_by == "cache" and (tmp_path / "another") in needed().path.parents


def test_pip_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = made(tmp_path)
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, timeout=300)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    kernel = needed()
    assert (kernel.found_by, kernel.path) == ("package", site / "twinnet_kernel" / "linux")


def test_what_was_not_built_with_these_sources_is_not_packed(tmp_path: Path) -> None:
    done = packed(tmp_path / "dist")
    assert done.returncode == 1
    assert done.stderr == "there is no kernel to pack (build one with `twinnet kernel build`)\n"
    assert run(["kernel", "install", str(fake_kernel(tmp_path / "linux"))]) == 0
    done = packed(tmp_path / "dist")
    assert done.returncode == 1 and "was not built with the configuration and the patches" in done.stderr
    assert not (tmp_path / "dist").exists()
