"""The studies that have a name: those that come with twinnet, and those that other packages bring."""

from __future__ import annotations

from pathlib import Path

from twinnet.own_modules import brought_by_packages, found_module

__all__ = ["ENTRY_POINTS", "STUDIES_FOLDER", "brought_studies", "built_in_studies", "named_studies"]

STUDIES_FOLDER = Path(__file__).resolve().parent.parent / "studies"
ENTRY_POINTS = "twinnet.studies"
"""The group of entry points under which other packages bring studies: a name, and the package whose folder has
`study.yaml`."""


def built_in_studies() -> dict[str, Path]:
    """The studies that come with the package: name to `study.yaml`."""
    return {path.parent.name: path for path in sorted(STUDIES_FOLDER.glob("*/study.yaml"))}


def brought_studies() -> dict[str, Path]:
    """The studies of other packages: name to `study.yaml`. None of them stands in for a built-in one.

    The package of a study is found, and not run.
    """
    found: dict[str, Path] = {}
    for point in brought_by_packages(ENTRY_POINTS):
        package = found_module(point.module)
        for folder in (package.submodule_search_locations or ()) if package is not None else ():
            if (Path(folder) / "study.yaml").is_file():
                found.setdefault(point.name, Path(folder) / "study.yaml")
    return {name: path for name, path in found.items() if name not in built_in_studies()}


def named_studies() -> dict[str, Path]:
    """Every study that has a name."""
    return {**built_in_studies(), **brought_studies()}
