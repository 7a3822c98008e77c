"""Open vSwitch's programs: where they are, and how they are run in a lab's own place for them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinnet.errors import LabError, NotAvailable
from twinnet.lab_process.job import DEVNULL, PIPE, Completed, run_job, start_job
from twinnet.lab_process.requests import LabRequests

__all__ = ["DIRECTORY", "HOST", "Programs", "find_programs", "is_open_vswitch", "run"]

HOST = ".ovs"
"""The lab's place for Open vSwitch, under which its programs are started."""
DIRECTORY = "/run/ovs"
"""Its database and sockets; in a file system that only this place sees, and that ends with it."""
_PLACES = ("/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/local/bin")
_SCHEMAS = (
    "/usr/share/openvswitch/vswitch.ovsschema",
    "/usr/local/share/openvswitch/vswitch.ovsschema",
)
_REMEDY = "install it (Debian: apt install openvswitch-switch), or use kind='own'"
_PATIENCE_PS = 30 * 10**12


@dataclass(frozen=True)
class Programs:
    """The paths of Open vSwitch's programs on this machine."""

    database: str
    database_tool: str
    switch: str
    schema: str


def is_open_vswitch(node: Mapping[str, Any]) -> bool:
    """Return True if `node` (of the lab protocol) is a switch that is Open vSwitch."""
    return node["kind"] == "switch" and node.get("datapath", "own") != "own"


def _path() -> str:
    """The search path, with the folders of system programs, which an ordinary user's lacks."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *_PLACES])


def _program(name: str) -> str:
    found = shutil.which(name, path=_path())
    if found is None:
        raise NotAvailable(f"Open vSwitch is not installed: there is no {name}", _REMEDY)
    return found


def find_programs() -> Programs:
    """Return where the programs are; raises `NotAvailable` when one is missing."""
    for name in ("ovs-vsctl", "ovs-ofctl"):
        _program(name)
    database, tool, switch = (_program(name) for name in ("ovsdb-server", "ovsdb-tool", "ovs-vswitchd"))
    folder = os.environ.get("OVS_PKGDATADIR")
    schemas = (f"{folder}/vswitch.ovsschema", *_SCHEMAS) if folder else _SCHEMAS
    schema = next((one for one in schemas if Path(one).is_file()), None)
    if schema is None:
        raise NotAvailable("Open vSwitch is not installed whole: there is no vswitch.ovsschema", _REMEDY)
    return Programs(database, tool, switch, schema)


def run(
    lab: LabRequests,
    argv: Sequence[str],
    given: str | None = None,
    stdin: int | None = None,
    refused: str = "OpenVswitchRefused",
) -> Completed:
    """Run one of Open vSwitch's programs in the lab's place for it.

    Parameters
    ----------
    lab
        The lab.
    argv
        The program and its arguments.
    given
        What it reads on its standard input.
    stdin
        Its standard input, a descriptor.
    refused
        The name of the error when it fails.

    Raises
    ------
    LabError
        With what the program said when it failed.
    """
    folders = dict.fromkeys(("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"), DIRECTORY)
    env = {**os.environ, **folders, "PATH": _path()}
    first = stdin if stdin is not None else PIPE if given is not None else DEVNULL
    job = start_job(lab, HOST, argv, (first, PIPE, PIPE), env=env, cwd="/", limit_ps=_PATIENCE_PS)
    done = run_job(job, given, _PATIENCE_PS, check=False)
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}"
        lines = [line.split("|")[-1].removeprefix(f"{argv[0]}: ") for line in said.splitlines()]
        raise LabError("; ".join(lines[-4:]), "", refused)
    return done
