"""Scripts of Mininet for tests: run in a machine of their own, with what they print.

With `CLOCK` set to ``virtual`` all run on the virtual clock: ``tests/mininet/test_scripts_on_both_clocks.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

COMMAND = (sys.executable, "-P", "-c", "import sys; from twinnet.cli import main; sys.exit(main())")
"""``twinnet``, whether or not it is on the path."""
CLOCK = "TWINNET_TEST_CLOCK"
"""The variable that says on which clock scripts run."""
_PATIENCE_S = 120


def twinnet(*arguments: str, folder: Path | None = None, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``twinnet`` with `arguments` in `folder`, with `given` on its standard input."""
    if os.environ.get(CLOCK) and arguments[0] in ("mininet", "mn") and "--clock" not in arguments:
        arguments = (arguments[0], "--clock", os.environ[CLOCK], *arguments[1:])
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, input=given, capture_output=True, text=True, timeout=_PATIENCE_S
    )


def path_without_open_vswitch(folder: Path) -> str:
    """Return a ``PATH`` with all programs of this machine but those of Open vSwitch, as links in `folder`."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(":")):
        for program in Path(place).glob("*"):
            if not program.name.startswith("ovs"):
                (folder / program.name).unlink(missing_ok=True)
                (folder / program.name).symlink_to(program)
    return str(folder)


def run_script(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script `text` with `arguments`."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(text))
    return twinnet("mininet", str(path), *arguments, folder=folder)
