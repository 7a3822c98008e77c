"""What runs in a script's machine: the script, with Mininet's names."""

from __future__ import annotations

import gc
import os
import re
import sys
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twinnet.errors import BadFile
from twinnet.given_files import read_given
from twinnet.interpreter import PYTHON
from twinnet.mininet import machine, names, virtual_time
from twinnet.mininet.advice import STRICT_VARIABLE
from twinnet.mininet.beside_controller import beside
from twinnet.mininet.inherited_settings import SETTINGS
from twinnet.mininet.python2 import convert_modules, for_python_3
from twinnet.mininet.wishes import EXPORT_VARIABLE, PYTHON_2_VARIABLE, REPORT_VARIABLE, SCRIPT_VARIABLE

if TYPE_CHECKING:
    from twinnet.mininet.virtual_machine import VirtualMachine

__all__ = ["main", "run"]

_MINIEDIT = ".mn"
_MOST_BYTES = 16 << 20
_REMEDY = "run it with --fix-prints, which converts statements and names in memory, or convert it with 2to3 -w"
_LEFT = "was converted from Python 2 as far as that is mechanical; what is told above is left to you"

_PRINT = re.compile(r"^\s*print\s+[^(=\s]|^\s*except\s+\w+\s*,\s*\w+\s*:|^\s*raise\s+\w+\s*,", re.MULTILINE)


def run(
    script: str,
    arguments: Sequence[str],
    strict: bool = False,
    export: str | None = None,
    report: str | None = None,
    python_2: bool = False,
    controller: str | None = None,
    virtual: VirtualMachine | None = None,
) -> int:
    """Run the script `script` in a machine of its own, and return its status.

    Parameters
    ----------
    script
        Its path; a name that ends in ``.mn`` is a file of MiniEdit, whose network is started with the prompt.
    arguments
        What it gets.
    strict
        Whether what Mininet would ignore is an error.
    export
        A file that its network is written to, in the form of twinnet's network files.
    report
        A file that a page about the run is written to.
    python_2
        Whether it is written for Python 2, and is converted in memory.
    controller
        The command of a controller that is started in the machine first, and is to listen at port 6653.
    virtual
        The machine on the virtual clock; ``None``: one on the wall clock.

    Raises
    ------
    BadFile
        A file cannot be written where it is to be.
    LabError
        As :func:`twinnet.mininet.machine.run`, or :meth:`twinnet.mininet.virtual_machine.VirtualMachine.run`.
    """
    variables = {SCRIPT_VARIABLE: Path(script).name}
    for variable, wanted in ((STRICT_VARIABLE, strict), (PYTHON_2_VARIABLE, python_2)):
        variables |= {variable: "1"} if wanted else {}
    files: list[Path] = []
    for variable, file in ((EXPORT_VARIABLE, export), (REPORT_VARIABLE, report)):
        if file is not None:
            path = Path(file).absolute()
            if not path.parent.is_dir():
                raise BadFile(f"{file} cannot be written: there is no folder {path.parent}", "make the folder first")
            variables[variable] = str(path)
            files.append(path)
    command = [*PYTHON, "-m", "twinnet.mininet.script", script, *arguments]
    if controller is not None:
        command = beside(controller, command)
    if virtual is None:
        return machine.run(command, variables)
    return virtual.run(command, variables, [Path(script).absolute().parent], files)


def main(arguments: list[str]) -> int:
    """Execute the script ``arguments[0]`` as ``__main__``, and return the status that its end means."""
    from twinnet.mininet.outcome import OUTCOME

    names.install()
    OUTCOME.take_wishes(os.environ)
    path = arguments[0]
    if path.endswith(_MINIEDIT):
        return _opened(path)
    try:
        source: bytes | str = read_given(path, _MOST_BYTES)
    except OSError as refused:
        print(f"twinnet: {path}: {refused.strerror}", file=sys.stderr)
        return 2
    sys.argv = list(arguments)
    sys.path.insert(0, str(Path(path).resolve().parent))
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    old = _PRINT.search(source.decode(errors="replace")) is not None
    if os.environ.get(PYTHON_2_VARIABLE) == "1":
        source = for_python_3(source.decode(errors="replace"))
        convert_modules()
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as fault:
        traceback.print_exception(fault, limit=0)
        if old:
            said = _LEFT if os.environ.get(PYTHON_2_VARIABLE) == "1" else f"is written for Python 2: {_REMEDY}"
            print(f"twinnet: {path} {said}", file=sys.stderr)
        return 1
    SETTINGS.remember()
    virtual_time.begin()
    # What is here stays: looks for garbage need not walk through it while the script makes its nodes.
    gc.freeze()
    try:
        exec(code, module.__dict__)
    except SystemExit as ended:
        if not ended.code and _refused_strictly():
            return 1
        raise
    except BaseException as raised:
        own = raised.__traceback__
        traceback.print_exception(type(raised), raised, own.tb_next if own is not None else None)
        return 130 if isinstance(raised, KeyboardInterrupt) else 1
    return 1 if _refused_strictly() else 0


def _refused_strictly() -> bool:
    """Whether a command was refused to a script that was to be strict."""
    from twinnet.mininet.refused_commands import REFUSED_COMMANDS

    return os.environ.get(STRICT_VARIABLE) == "1" and bool(REFUSED_COMMANDS)


def _opened(path: str) -> int:
    """Open a file of MiniEdit."""
    from twinnet.mininet import miniedit

    try:
        return miniedit.run(Path(path))
    except BadFile as refused:
        print(f"twinnet: {refused}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
