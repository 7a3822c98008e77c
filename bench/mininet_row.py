"""``python -m bench.mininet_row [N]``: N scripts of Mininet in a row, and what they leave.

The scripts end in every way: they stop their network, never do, raise, run ``mn -c``, are killed by a signal that
nobody can catch, or start twice. The row has namespaces of its own (PID, mount, network, and user where we are not
root), so what is there after it is what the scripts left: processes, interfaces, mounts, and files below the folder for
temporary ones. Prints the counts, and the end of what scripts said that ended otherwise than they should; the status
is 1 when anything is left.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from bench.mininet_tests import COMMAND

__all__ = ["ENDINGS", "main", "remains", "run_row"]

_PATIENCE_S = 120.0
_GOING_S = 30.0
_SHOWN_LINES = 12
_POLL_S = 0.1
_INSIDE = "TWINNET_BENCH_ROW"
_START = """
import os, signal, subprocess, sys
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.topo import LinearTopo
net = Mininet(topo=LinearTopo(2), link=TCLink)
net.start()
assert net.pingAll() == 0
net["h1"].cmd("sleep 1000 &")
"""
ENDINGS = {
    "stops its network": ("net.stop()", 0),
    "never stops it": ("", 0),
    "raises": ("raise SystemExit(3)", 3),
    "runs mn -c": ("subprocess.run(['mn', '-c'], check=True, stderr=subprocess.DEVNULL)", 0),
    "is killed": ("print('ready', flush=True); signal.pause()", -signal.SIGKILL),
    "starts twice": ("net.stop(); net = Mininet(topo=LinearTopo(2)); net.start(); net.stop()", 0),
}
"""What scripts do at their end, and the status that they have."""


def remains() -> dict[str, set[str]]:
    """Return what there is, by kind, beside this process."""
    # This process is the first of its namespace, so that others' orphans are its children.
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return {
        "processes": {one.name for one in Path("/proc").iterdir() if one.name.isdigit()} - {str(os.getpid())},
        "interfaces": {name for _, name in socket.if_nameindex()},
        "mounts": {line.split()[1] for line in mounts},
        "files": {one.name for one in Path(tempfile.gettempdir()).iterdir()},
    }


def _run(ending: str, folder: Path) -> tuple[int, str]:
    """Run one script, and return its status and what it said on its standard error."""
    script = folder / "script.py"
    script.write_text(_START + ENDINGS[ending][0] + "\n")
    with subprocess.Popen(
        [*COMMAND, script.name],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            if ENDINGS[ending][1] == -signal.SIGKILL and process.stdout is not None:
                process.stdout.readline()
                process.kill()
            said = process.communicate(timeout=_PATIENCE_S)[1]
        finally:
            process.kill()
    return process.returncode, said


def run_row(number: int, folder: Path) -> tuple[Counter[str], Mapping[str, set[str]]]:
    """Run `number` scripts in `folder`; return how many ended as they should, by their ending, and what is left."""
    done: Counter[str] = Counter()
    before = remains()
    for place in range(number):
        ending = [*ENDINGS][place % len(ENDINGS)]
        status, said = _run(ending, folder)
        if status == ENDINGS[ending][1]:
            done[ending] += 1
            continue
        done[f"{ending}: status {status}"] += 1
        print(f"script {place}, which {ending}, ended with status {status} and said:", flush=True)
        print("\n".join(f"    {line}" for line in said.splitlines()[-_SHOWN_LINES:]), flush=True)
    end_s = time.monotonic() + _GOING_S
    left = _more(before, remains())
    while any(left.values()) and time.monotonic() < end_s:
        # The kernel takes namespaces away in the background.
        time.sleep(_POLL_S)
        left = _more(before, remains())
    return done, left


def _more(before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> dict[str, set[str]]:
    return {kind: found - before[kind] for kind, found in after.items()}


def _alone(run: Callable[[], int]) -> int:
    """Run this program again in namespaces of its own, or `run` when it is there already."""
    if os.environ.get(_INSIDE):
        return run()
    with tempfile.TemporaryDirectory(prefix="mininet-row-") as scratch:
        as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        command = ["unshare", *as_root, "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
        command += [sys.executable, "-m", "bench.mininet_row", *sys.argv[1:]]
        return subprocess.run(command, env={**os.environ, _INSIDE: "1", "TMPDIR": scratch}, check=False).returncode


def main() -> int:
    """Run the row and print what it left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("number", type=int, nargs="?", default=200)
    number: int = parser.parse_args().number

    def run() -> int:
        with tempfile.TemporaryDirectory() as folder:
            done, left = run_row(number, Path(folder))
        print(", ".join(f"{count} {ending}" for ending, count in done.items()))
        print("left: " + ", ".join(f"{len(found)} {kind}" for kind, found in left.items()))
        for kind, found in left.items():
            for one in sorted(found):
                print(f"{kind}: {one}")
        return 1 if any(left.values()) or set(done) - set(ENDINGS) else 0

    return _alone(run)


if __name__ == "__main__":
    sys.exit(main())
