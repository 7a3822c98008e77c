"""The files by which engines and editors build containers name what the project has. No engine builds them here."""

from __future__ import annotations

import json
import re
from pathlib import Path

from twinnet.cli.registry import COMMANDS

PROJECT = Path(__file__).parents[2]
CONTAINERFILE = (PROJECT / "Containerfile").read_text()
DEV_CONTAINER = json.loads((PROJECT / ".devcontainer" / "devcontainer.json").read_text())
PAGE = (PROJECT / "docs" / "how-to" / "run-unprivileged.md").read_text()


def test_the_image_runs_our_command_and_has_a_python_that_we_support() -> None:
    said = dict(re.findall(r"^(ENTRYPOINT|CMD) (.*)$", CONTAINERFILE, re.MULTILINE))
    assert json.loads(said["ENTRYPOINT"]) == ["twinnet"]
    assert json.loads(said["CMD"])[0] in COMMANDS
    project = (PROJECT / "pyproject.toml").read_text()
    least = re.search(r'requires-python = ">=3\.(\d+)"', project)
    has = re.search(r"python:3\.(\d+)-slim", CONTAINERFILE)
    assert least and has and int(has[1]) >= int(least[1])
    maturin = re.search(r'requires = \["(maturin[^"]*)"\]', project)
    assert maturin and f'"{maturin[1]}"' in CONTAINERFILE


def test_what_is_built_here_does_not_reach_the_image() -> None:
    kept_out = (PROJECT / ".dockerignore").read_text().split()
    ignored = {line.strip("/") for line in (PROJECT / ".gitignore").read_text().splitlines() if line.startswith("/")}
    assert set(kept_out) - {".git"} <= ignored
    assert {".venv", "target", "dist"} <= set(kept_out)


def test_the_options_are_those_of_the_page() -> None:
    [line] = [line for line in PAGE.splitlines() if line.startswith("docker run ")]
    options = re.findall(r"--security-opt (\S+)", line)
    assert DEV_CONTAINER["runArgs"] == [word for one in options for word in ("--security-opt", one)]
    runs = [line.strip("# ") for line in CONTAINERFILE.splitlines() if "podman run" in line]
    assert runs and all(line in PAGE for line in runs)


def test_the_dev_container_is_built_from_a_file_that_is_there_and_by_a_target_of_make() -> None:
    assert (PROJECT / ".devcontainer" / DEV_CONTAINER["build"]["dockerfile"]).is_file()
    word, target = DEV_CONTAINER["postCreateCommand"].split()
    assert word == "make"
    assert f"$(VENV)/{Path(target).name}:" in (PROJECT / "Makefile").read_text()
