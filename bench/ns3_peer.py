"""ns-3 as a peer: builds the programs in bench/ns3 for each library that there is.

That is Debian's ``libns3-dev``, which is built to be debugged (its log statements are compiled in), and, where the
environment's ``TWINNET_NS3`` names a folder with ``include`` and ``lib`` of a build of one's own, that one::

    ./ns3 configure --build-profile=optimized --prefix=FOLDER && ./ns3 build && ./ns3 install
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Ns3", "ns3_installations", "ns3_missing", "ns3_program", "ns3_version"]

_SOURCES = Path(__file__).resolve().parent / "ns3"
_BUILT = Path(__file__).resolve().parent.parent / "target" / "ns3"
_MODULES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control", "nix-vector-routing")
_PATIENCE_S = 600


@dataclass(frozen=True)
class Ns3:
    """One build of the library.

    Parameters
    ----------
    name
        How it stands in tables, with whose it is and what it was built for.
    flags
        What the compiler is told.
    """

    name: str
    flags: tuple[str, ...]


def ns3_installations() -> list[Ns3]:
    """Return the builds of the library that there are here."""
    found: list[Ns3] = []
    if version := _packaged_version():
        # The libraries are named one by one: what pkg-config tells asks for others' development files too.
        flags = ("-std=c++17", *(f"-lns3-{module}" for module in _MODULES))
        found.append(Ns3(f"ns-3 {version}, the distribution's package", flags))
    if folder := os.environ.get("TWINNET_NS3"):
        found.append(_own_build(Path(folder)))
    return found


def _packaged_version() -> str | None:
    try:
        command = ["pkg-config", "--modversion", "ns3-core"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def _own_build(folder: Path) -> Ns3:
    """Return the build in `folder`; raises `OSError` when it has none."""
    cores = [path for place in ("lib", "lib64") for path in (folder / place).glob("libns3*-core*.so")]
    matches = [(path, re.fullmatch(r"lib(ns(3[\d.]*))-core(-\w+)?\.so", path.name)) for path in cores]
    for path, match in matches:
        if match is None:
            continue
        prefix, version, suffix = match.group(1), match.group(2), match.group(3) or ""
        flags = ["-std=c++20", f"-I{folder / 'include'}", f"-L{path.parent}", f"-Wl,-rpath,{path.parent}"]
        # A shared library that it was linked with may lie elsewhere than its own.
        flags += ["-Wl,--allow-shlib-undefined", *(f"-l{prefix}-{module}{suffix}" for module in _MODULES)]
        # ns-3's own build gives no name to the profile `release`.
        return Ns3(f"ns-3 {version}, profile {suffix.removeprefix('-') or 'release'}", tuple(flags))
    raise OSError(f"TWINNET_NS3 is {folder}, where lib and lib64 have no libns3*-core*.so; name an installed ns-3")


def ns3_version() -> str | None:
    """Return the builds of the library that there are, ``None`` without one."""
    return "; ".join(one.name.removeprefix("ns-3 ") for one in ns3_installations()) or None


def ns3_missing() -> str | None:
    """Return why ns-3 cannot be measured, with the remedy; ``None`` when it can."""
    if shutil.which("g++") is None or shutil.which("pkg-config") is None:
        return "ns-3 is not measured: g++ or pkg-config not found; install g++, pkg-config and libns3-dev"
    return None if ns3_installations() else "ns-3 is not measured: its library is not found; install libns3-dev"


def source_digest(sources: Path, name: str, build: str) -> str:
    """Return what tells one build of the program `name` from another: its sources, and the library's build."""
    digest = hashlib.sha256(build.encode())
    for path in [sources / f"{name}.cc", *sorted(sources.glob("*.h"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def ns3_program(name: str, library: Ns3) -> Path:
    """Return the program `name`, built anew when its sources have changed; raises `OSError` when they do not build."""
    program = _BUILT / f"{name}-{source_digest(_SOURCES, name, repr(library))}"
    if program.exists():
        return program
    _BUILT.mkdir(parents=True, exist_ok=True)
    unfinished = program.with_suffix(".unfinished")
    command = ["g++", "-O3", str(_SOURCES / f"{name}.cc"), "-o", str(unfinished), *library.flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    if done.returncode != 0:
        raise OSError(f"bench/ns3/{name}.cc does not build with {library.name}: {done.stderr.strip()[-500:]}")
    unfinished.rename(program)
    return program
