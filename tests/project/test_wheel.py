"""The wheel that the project builds is all that a user needs: installed in an empty environment it works there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs_here import can_run_labs

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
MATURIN = Path(sys.executable).parent / "maturin"
BUILD_LIMIT_S = 900
INSTALL_LIMIT_S = 600


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not MATURIN.exists() or shutil.which("cargo") is None:
        pytest.skip("building a wheel needs maturin and cargo: make test has both")
    folder = tmp_path_factory.mktemp("dist")
    build = [str(MATURIN), "build", "--release", "--quiet", "--out", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


class Environment:
    """An empty virtual environment with the wheel in it, used from a folder far from the source tree."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.python = folder / "venv" / "bin" / "python"
        self.work = folder / "work"
        self.work.mkdir()
        # Nothing of the test's own environment may reach it.
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name == "PATH"}
        self.variables = {**kept, "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        self.call(sys.executable, "-m", "venv", str(folder / "venv"))
        installed = self.call(str(self.python), "-m", "pip", "install", "--quiet", str(wheel), check=False)
        if installed.returncode != 0 and any(
            word in installed.stderr for word in ("retrying", "No matching", "Could not fetch")
        ):
            pytest.skip(f"the packages that twinnet needs cannot be fetched: {installed.stderr[-300:]}")
        assert installed.returncode == 0, installed.stderr

    def call(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            arguments,
            cwd=self.work,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=INSTALL_LIMIT_S,
            check=check,
        )

    def twinnet(self, *arguments: str) -> str:
        done = self.call(str(self.python.parent / "twinnet"), *arguments, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    folder = tmp_path_factory.mktemp("empty")
    yield Environment(folder, wheel)
    shutil.rmtree(folder)


def sources_of(package: str) -> set[str]:
    """Its Python files, as they are named in a wheel."""
    found = {str(path.relative_to(ROOT / "python")) for path in ROOT.glob(f"python/{package}/**/*.py")}
    assert found
    return found


def test_the_wheel_holds_what_belongs_to_it_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = next(name for name in names if name.endswith("/METADATA"))
        told = archive.read(metadata).decode()
    assert {"twinnet/__init__.py", "twinnet/py.typed", "twinnet/_core.pyi", "twinnet/_core.abi3.so"} <= names
    paths = [*ROOT.glob("studies/*/study.yaml"), *ROOT.glob("studies/*/*.csv")]
    studies = {f"twinnet/studies/{path.parent.name}/{path.name}" for path in paths}
    assert studies
    assert studies <= names
    assert sources_of("twinnet") <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "License-Expression: Apache-2.0 AND GPL-2.0-only\n" in told
    recipe = {str(path.relative_to(ROOT / "python")) for path in ROOT.glob("python/twinnet/guest/recipe/**/*")}
    assert {name for name in recipe if name.endswith((".patch", "COPYING", "/config"))} <= names
    assert all(name.startswith(("twinnet/", "twinnet-")) for name in names)
    assert not any("__pycache__" in name or name.endswith((".pyc", ".rs")) for name in names)


def test_the_package_is_found_in_the_environment_and_without_the_source_tree(environment: Environment) -> None:
    script = (
        "import twinnet, twinnet._core; print(twinnet.__file__); print(twinnet._core.version == twinnet.__version__)"
    )
    place, same = environment.call(str(environment.python), "-I", "-c", script).stdout.split()
    assert Path(place).is_relative_to(environment.python.parents[1])
    assert same == "True"


def test_its_commands_answer(environment: Environment) -> None:
    assert "A laboratory for software-defined networks" in environment.twinnet("--help")
    assert "tcp-udp-queues" in environment.twinnet("studies")
    assert json.loads(environment.twinnet("schema", "study", "--json"))["title"] == "twinnet study"
    assert json.loads(environment.twinnet("schema", "network", "--json"))["title"] == "twinnet network"


def test_what_checks_it_comes_in_a_wheel_of_its_own(environment: Environment, tmp_path: Path) -> None:
    for command in ("validate", "conformance"):
        without = environment.call(str(environment.python.parent / "twinnet"), command, check=False)
        assert without.returncode == 1
        assert "pip install twinnet-conformance==" in without.stderr
        assert "Traceback" not in without.stderr
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path)]
    done = subprocess.run(
        [*build, str(ROOT / "packages" / "conformance")],
        capture_output=True,
        text=True,
        timeout=INSTALL_LIMIT_S,
        check=False,
    )
    if any(word in done.stderr for word in ("retrying", "No matching", "Could not fetch")):
        pytest.skip(f"the packages that twinnet needs cannot be fetched: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    (built,) = tmp_path.glob("twinnet_conformance-*.whl")
    with zipfile.ZipFile(built) as archive:
        names = set(archive.namelist())
    assert sources_of("twinnet_conformance") | sources_of("twinnet_validation") <= names
    assert not any("__pycache__" in name for name in names)
    environment.call(str(environment.python), "-m", "pip", "install", "--quiet", "--no-deps", str(built))
    assert json.loads(environment.twinnet("validate", "--quick", "--only", "datagram-delay", "--json"))
    assert " of " in environment.twinnet("conformance", "twinnet", "--only", "dec-NW-TTL")


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_labs_and_studies_run_in_it(environment: Environment) -> None:
    script = (
        "import twinnet as tn\n"
        "with tn.templates.single(2).emulate() as lab:\n"
        "    print(lab['h1'].run('ping -c 1 -W 2 h2', timeout='10 s').returncode)\n"
    )
    assert environment.call(str(environment.python), "-I", "-c", script).stdout == "0\n"
    options = ["--preset", "tiny", "--set", "tcp_duration=1 s", "--set", "udp_duration=700 ms", "--with-invalid"]
    answer = json.loads(environment.twinnet("run", "tcp-udp-queues", *options, "--json"))
    assert answer["runs"] == {"planned": 2, "finished": 2, "failed": 0}
    page = environment.work / answer["page"]
    assert page.read_text().startswith("<!doctype html>") or page.read_text().startswith("<!DOCTYPE html>")
    assert {".svg", ".pdf", ".png", ".csv", ".tex"} <= {path.suffix for path in page.parent.rglob("*")}
