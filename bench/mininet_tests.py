"""``python -m bench.mininet_tests FOLDER``: Mininet's own tests on twinnet, from a copy of Mininet's sources.

Each file of tests runs in a machine of its own (``twinnet mininet``), on our modules, and its tests are counted. FOLDER
is the root of the sources, with ``mininet/test`` and ``examples/test``. The tests need pexpect, and the programs that
they measure with: iperf, ping, telnet, and sshd, tshark, iptables and vconfig for some. ``--least N`` ends with status
1 when fewer pass.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from twinnet.interpreter import PYTHON

__all__ = ["COMMAND", "counted", "main", "run_file"]

COMMAND = [*PYTHON, "-c", "import sys; from twinnet.cli import main; sys.exit(main())", "mininet"]
"""The command that runs a script of Mininet."""
_RAN = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)
_ENDED = re.compile(r"^(?:OK|FAILED)\b.*$", re.MULTILINE)
_NOT_PASSED = re.compile(r"(failures|errors|skipped)=(\d+)")
_PATIENCE_S = 600
_LEFT_OUT = ("test_clusterSanity.py",)
"""Tests of the cluster edition, which is not there."""


def counted(told: str) -> Counter[str]:
    """Return how many tests passed, failed and were skipped, from what unittest tells at the end."""
    ran, ended = _RAN.findall(told), _ENDED.findall(told)
    if not ran or not ended:
        return Counter(failed=1)
    found = {name: int(number) for name, number in _NOT_PASSED.findall(ended[-1])}
    failed = found.get("failures", 0) + found.get("errors", 0)
    skipped = found.get("skipped", 0)
    return Counter(passed=int(ran[-1]) - failed - skipped, failed=failed, skipped=skipped)


def run_file(path: Path, packages: Path) -> tuple[Counter[str], str]:
    """Run the tests of `path`, with the package ``mininet.examples`` in `packages`; return their counts and output."""
    found_by_caller = os.environ.get("PYTHONPATH", "")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(packages), found_by_caller)))}
    try:
        done = subprocess.run(
            [*COMMAND, path.name, "-v"],
            cwd=path.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        return Counter(failed=1), f"not done within {_PATIENCE_S} s"
    return counted(done.stdout), done.stdout


def main() -> int:
    """Run all files and print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("--only", default="", help="files whose name has this")
    given = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mininet-tests-") as scratch:
        packages = Path(scratch)
        shutil.copytree(given.folder / "examples", packages / "mininet" / "examples")
        shutil.copytree(given.folder / "mininet" / "test", packages / "mininet" / "test")
        shutil.copytree(given.folder / "custom", packages / "custom")
        for path in sorted((packages / "mininet").glob("**/test_*.py")):
            if path.name in _LEFT_OUT or given.only not in path.name:
                continue
            counts, told = run_file(path, packages)
            total += counts
            words = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
            print(f"{path.parent.parent.name}/{path.name}: {words}", flush=True)
            if counts["failed"]:
                print("\n".join(f"    {line}" for line in told.splitlines() if line.startswith(("FAIL:", "ERROR:"))))
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 0 if total["passed"] >= given.least else 1


if __name__ == "__main__":
    sys.exit(main())
