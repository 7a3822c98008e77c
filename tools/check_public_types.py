"""Check that every public symbol of the package has a known type: ``python tools/check_public_types.py``.

It is pyright's ``--verifytypes`` on the sources, which asks for 100 %.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "python"


def main() -> int:
    """Print what has no known type; return pyright's status."""
    command = [sys.executable, "-m", "pyright", "--verifytypes", "twinnet", "--ignoreexternal"]
    command += ["--pythonpath", sys.executable]
    # From elsewhere, and as a package on the path: pyright looks for installed packages, not for sources.
    with tempfile.TemporaryDirectory() as elsewhere:
        # It takes the first Python on the path for its own, whatever it is told.
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        sources = os.pathsep.join((str(SOURCES), str(SOURCES.parent / "typings")))
        environment = {**os.environ, "PATH": path, "PYTHONPATH": sources}
        done = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr)
    else:
        print(next(line for line in done.stdout.splitlines() if "completeness" in line))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
