"""ns-3 as a peer: builds the programs in bench/ns3 where the library is installed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

__all__ = ["ns3_missing", "ns3_program", "ns3_version"]

_SOURCES = Path(__file__).resolve().parent / "ns3"
_BUILT = Path(__file__).resolve().parent.parent / "target" / "ns3"
_MODULES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control", "nix-vector-routing")
_PATIENCE_S = 600


def ns3_version() -> str | None:
    """Return the version of the library that is installed, ``None`` without one."""
    try:
        command = ["pkg-config", "--modversion", "ns3-core"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def ns3_missing() -> str | None:
    """Return why ns-3 cannot be measured, with the remedy; ``None`` when it can."""
    if shutil.which("g++") is None or shutil.which("pkg-config") is None:
        return "ns-3 is not measured: g++ or pkg-config not found; install g++, pkg-config and libns3-dev"
    return None if ns3_version() else "ns-3 is not measured: its library is not found; install libns3-dev"


def source_digest(sources: Path, name: str, version: str) -> str:
    """Return what tells one build of the program `name` from another: its sources, and the library's version."""
    digest = hashlib.sha256(version.encode())
    for path in [sources / f"{name}.cc", *sorted(sources.glob("*.h"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def ns3_program(name: str) -> Path:
    """Return the program `name`, built anew when its sources have changed; raises `OSError` when they do not build."""
    program = _BUILT / f"{name}-{source_digest(_SOURCES, name, ns3_version() or '')}"
    if program.exists():
        return program
    _BUILT.mkdir(parents=True, exist_ok=True)
    flags = subprocess.run(
        ["pkg-config", "--cflags", "ns3-core"], capture_output=True, text=True, timeout=10, check=True
    ).stdout.split()
    unfinished = program.with_suffix(".unfinished")
    # The libraries are named one by one: what pkg-config tells asks for others' development files too.
    command = ["g++", "-std=c++17", "-O2", *flags, str(_SOURCES / f"{name}.cc"), "-o", str(unfinished)]
    command += [f"-lns3-{module}" for module in _MODULES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    if done.returncode != 0:
        raise OSError(f"bench/ns3/{name}.cc does not build: {done.stderr.strip()[-500:]}")
    unfinished.rename(program)
    return program
