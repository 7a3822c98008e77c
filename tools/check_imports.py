"""Check that imports point one way, in Python and in Rust: ``python tools/check_imports.py``.

Python: every part of the package has its place in `PYTHON_ORDER` and imports only parts that stand before it, whether
at the top of a file, inside a function or for types alone. `DOORS` are the exceptions, each with its reason. Files of
one part import each other without a circle at load time.

Rust: every crate depends only on those that stand before it in `RUST_ORDER`, and the folders of a crate use each other
without a circle.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PYTHON_ORDER = (
    "_core",
    "errors",
    "interpreter",
    "own_modules",
    "given_files",
    "shown_text",
    "made_certificates",
    "cache_folder",
    "guest",
    "outward",
    "units",
    "ranges",
    "schema_texts",
    "settings",
    "yaml_source",
    "deliveries",
    "stats",
    "traffic",
    "qos",
    "lab_process",
    "control",
    "network",
    "drawing",
    "results",
    "open_vswitch",
    "ovsdb",
    "lab",
    "gym",
    "policies",
    "programs",
    "code_version",
    "sockets",
    "machines",
    "bandwidth",
    "study",
    "report",
    "studies",
    "cluster",
    "mininet",
    "live",
    "cli",
)
"""Parts of the package, each after all that it may import."""

APART: Mapping[str, Set[str]] = {
    "twinnet_conformance": {"_core", "errors"},
    "twinnet_validation": {"", *PYTHON_ORDER} - {"cli", "cluster", "live", "mininet"},
}
"""Packages that stand apart, in a wheel of their own, each with the parts that it may import. The command alone imports
them, when it is asked for."""

DOORS = {
    ("network.starting", "machines"): "Network.operate starts a lab of machines, which it imports when it is called",
    ("network.starting", "lab"): "Network.emulate and simulate start a lab, which they import when they are called",
    ("studies.running", "cluster"): "studies.run(on=...) hands runs to a cluster, which it imports when it is called",
    ("results", "studies"): "results.load reads a study's results, which study and report make, when it is called",
    ("lab.notebook", "live"): "Lab.widget shows the live page in a notebook, which it imports when it is called",
    ("network.drawable", "drawing"): "Network.draw imports its picture when it is called",
    ("errors", "lab_process"): "the type of TimeLimit.completed",
}
"""Imports against the order: file, part that it imports, and why."""

WHOLE_PACKAGE_FROM = "programs"
"""The first part that may import the public names of the whole package."""

RUST_ORDER = (
    "units",
    "packet",
    "impair",
    "capture",
    "openflow",
    "apps",
    "queue",
    "switch",
    "host",
    "fabric",
    "lab",
    "linux",
    "python",
)

KNOWN_CIRCLES = {("openflow", "nicira")}
"""Crates whose folders are in a circle that nobody has untied yet, with the first folder of it; to be emptied."""


@dataclass(frozen=True)
class Import:
    """One import: which file, at which line, imports what; `at_load`: whether loading the file makes it."""

    file: str
    line: int
    target: str
    at_load: bool


class _Imports(ast.NodeVisitor):
    """Collects the imports of a file; those inside functions and for type checkers are not made at load time."""

    def __init__(self, file: str, modules: set[str]) -> None:
        self.file, self.modules = file, modules
        self.found: list[Import] = []
        self._later = 0

    def _inside(self, nodes: Iterable[ast.AST]) -> None:
        self._later += 1
        for node in nodes:
            self.visit(node)
        self._later -= 1

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._inside(node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            self._inside(node.body)
            for other in node.orelse:
                self.visit(other)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            self._add(node.lineno, name.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level:
            raise SystemExit(f"{self.file}:{node.lineno}: write the whole name of the module that is imported")
        for name in node.names:
            whole = f"{node.module}.{name.name}"
            self._add(node.lineno, whole if whole in self.modules else str(node.module))

    def _add(self, line: int, target: str) -> None:
        if target.split(".")[0] in ("twinnet", *APART):
            self.found.append(Import(self.file, line, target, not self._later))


def python_modules(root: Path) -> dict[str, Path]:
    """Return the files of the packages by the names of their modules."""
    found: dict[str, Path] = {}
    for package in ("twinnet", *APART):
        for path in sorted((root / "python" / package).rglob("*.py")):
            parts = path.relative_to(root / "python").with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def python_imports(root: Path) -> list[Import]:
    """Return every import of ours in the packages."""
    modules = python_modules(root)
    known = {*modules, "twinnet._core"}
    found: list[Import] = []
    for name, path in modules.items():
        visitor = _Imports(name, known)
        visitor.visit(ast.parse(path.read_text(encoding="utf-8"), str(path)))
        found += visitor.found
    return found


def python_faults(imports: Iterable[Import]) -> Iterator[str]:
    """Yield what is wrong with the direction of the imports."""
    rank = {part: place for place, part in enumerate(PYTHON_ORDER)}
    used: set[tuple[str, str]] = set()
    for one in imports:
        where = f"{one.file}:{one.line}"
        package, target_package = one.file.split(".")[0], one.target.split(".")[0]
        if package in APART:
            if target_package != package and (target_package in APART or _part(one.target) not in APART[package]):
                yield f"{where}: {package} stands apart and imports {one.target}"
            continue
        importer, target = _part(one.file), _part(one.target)
        if importer == "" or importer == target:
            continue
        if target_package in APART:
            if importer != "cli" or one.at_load:
                yield f"{where}: {target_package} is imported by the command alone, when it is asked for"
            continue
        missing = next((part for part in (importer, target) if part and part not in rank), None)
        if missing is not None:
            yield f"{where}: {missing} has no place in PYTHON_ORDER"
        elif target == "":
            if rank[importer] < rank[WHOLE_PACKAGE_FROM]:
                yield f"{where}: {importer} imports the whole package; name the part"
        elif rank[target] >= rank[importer]:
            door = (one.file.removeprefix("twinnet."), target)
            used.add(door)
            if door not in DOORS or one.at_load:
                yield f"{where}: {importer} imports {one.target}, which stands above it"
    for door in sorted(DOORS.keys() - used):
        yield f"DOORS names {door[0]} -> {door[1]}, which nothing uses"


def _part(module: str) -> str:
    """The part of the package that a module belongs to; "" for the package itself."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else ""


def python_circles(imports: Iterable[Import]) -> Iterator[str]:
    """Yield the circles of files that load each other."""
    graph: dict[str, set[str]] = {}
    for one in imports:
        if one.at_load and one.target != one.file:
            graph.setdefault(one.file, set()).add(one.target)
    for circle in circles(graph):
        yield f"these files import each other in a circle: {', '.join(circle)}"


def rust_faults(root: Path) -> Iterator[str]:
    """Yield dependencies between crates that point upward."""
    rank = {crate: place for place, crate in enumerate(RUST_ORDER)}
    for manifest in sorted((root / "crates").glob("*/Cargo.toml")):
        crate = manifest.parent.name
        if crate not in rank:
            yield f"crates/{crate} has no place in RUST_ORDER"
            continue
        for name in tomllib.loads(manifest.read_text(encoding="utf-8")).get("dependencies", {}):
            other = name.removeprefix("twinnet-")
            if name.startswith("twinnet-") and rank.get(other, len(rank)) >= rank[crate]:
                yield f"crates/{crate} depends on {name}, which stands above it"


_USED = re.compile(r"\bcrate::(\{[^;]*?\}|[a-z_0-9]+)", re.DOTALL)
_FIRST_NAMES = re.compile(r"(?:^|[{,])\s*([a-z_0-9]+)")


def rust_circles(root: Path) -> Iterator[str]:
    """Yield the circles of folders in each crate, as their `crate::` paths show them; tests are left out."""
    untied = set(KNOWN_CIRCLES)
    for source in sorted((root / "crates").glob("*/src")):
        folders = {path.name for path in source.iterdir() if path.is_dir()}
        graph: dict[str, set[str]] = {}
        for path in sorted(source.rglob("*.rs")):
            folder = path.relative_to(source).parts[0].removesuffix(".rs")
            if folder not in folders or path.stem == "tests" or path.stem.endswith("_tests"):
                continue
            text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8")).split("#[cfg(test)]\nmod ")[0]
            for used in _USED.findall(text):
                names = _FIRST_NAMES.findall(_without_nested(used)) if used.startswith("{") else [used]
                graph.setdefault(folder, set()).update(name for name in names if name in folders and name != folder)
        for circle in circles(graph):
            one = (source.parent.name, circle[0])
            untied.discard(one)
            if one not in KNOWN_CIRCLES:
                yield f"crates/{source.parent.name}: these folders use each other in a circle: {', '.join(circle)}"
    for crate, folder in sorted(untied):
        yield f"KNOWN_CIRCLES names {crate} with {folder}, which is in no circle"


def _without_nested(braces: str) -> str:
    """The text of ``{a::{b, c}, d}`` without what stands in inner braces."""
    inner = braces[1:-1]
    while (shorter := re.sub(r"\{[^{}]*\}?", "", inner)) != inner:
        inner = shorter
    return "{" + inner


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected parts of `graph` that have more than one node (Tarjan 1972)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for following in sorted(graph.get(node, ())):
            if following not in order:
                visit(following)
                lowest[node] = min(lowest[node], lowest[following])
            elif following in stack:
                lowest[node] = min(lowest[node], order[following])
        if lowest[node] == order[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return found


def main() -> int:
    """Print what is wrong; return the status of the command."""
    imports = python_imports(ROOT)
    faults = [*python_faults(imports), *python_circles(imports), *rust_faults(ROOT), *rust_circles(ROOT)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
