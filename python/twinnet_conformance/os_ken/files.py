"""The files of the installed package: one list of tests each, with the messages to install and the frames to send."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["SwitchTest", "all_tests", "why_not"]

VERSIONS = {"1.0": ("of10", 1), "1.3": ("of13", 4)}
"""Folder and wire version."""


@dataclass(frozen=True)
class SwitchTest:
    """One test of a file."""

    version: str
    section: str
    """The version again: the files name no sections of the specification."""
    feature: str
    """The file's folder: what the test is about."""
    name: str
    """File and description."""
    prerequisite: tuple[dict[str, Any], ...]
    """Messages that the target gets, by their names."""
    steps: tuple[dict[str, Any], ...]
    """What the tester sends, and what is to come of it."""

    @property
    def identifier(self) -> str:
        """Return its name in reports."""
        return f"{self.version} {self.name}"

    @property
    def wire_version(self) -> int:
        """Return the version as messages have it."""
        return VERSIONS[self.version][1]

    @property
    def is_measured(self) -> bool:
        """Return whether it measures a rate, for which frames are sent over 30 s of the switches' clock."""
        return any(isinstance(step["ingress"], dict) for step in self.steps)


def why_not() -> str | None:
    """Return why the tests cannot be run; `None`: they can."""
    if _folder() is None:
        return "os-ken is not installed, and its files are the tests: pip install os-ken"
    return None


def _folder() -> Path | None:
    found = importlib.util.find_spec("os_ken")
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(found.submodule_search_locations[0]) / "tests" / "switch"
    return folder if folder.is_dir() else None


@cache
def all_tests() -> tuple[SwitchTest, ...]:
    """Return every test of OpenFlow 1.0 and 1.3, by version, folder, file and place."""
    folder = _folder()
    if folder is None:
        return ()
    return tuple(
        test
        for version, (name, _) in VERSIONS.items()
        for path in sorted((folder / name).rglob("*.json"))
        for test in _tests(version, folder / name, path)
    )


def _tests(version: str, root: Path, path: Path) -> list[SwitchTest]:
    read: list[Any] = json.loads(path.read_text(encoding="utf-8"))
    feature = f"{version} {' '.join(path.relative_to(root).parts[:1])}"
    return [
        SwitchTest(
            version,
            version,
            feature,
            f"{path.relative_to(root).with_suffix('')} {one['description']}",
            tuple(one["prerequisite"]),
            tuple(one["tests"]),
        )
        for one in read
        if not isinstance(one, str)
    ]
