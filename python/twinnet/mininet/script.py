"""What runs in a script's machine: the script, with Mininet's names."""

from __future__ import annotations

import re
import sys
import traceback
import types
from pathlib import Path

from twinnet.interpreter import PYTHON
from twinnet.mininet import machine, names
from twinnet.mininet.advice import STRICT_VARIABLE

__all__ = ["main", "run"]

_PRINT = re.compile(r"^\s*print\s+[^(=\s]|^\s*except\s+\w+\s*,\s*\w+\s*:|^\s*raise\s+\w+\s*,", re.MULTILINE)


def run(script: str, arguments: list[str], strict: bool = False) -> int:
    """Run the script `script` in a machine of its own, and return its status.

    Parameters
    ----------
    script
        Its path.
    arguments
        What it gets.
    strict
        Whether what Mininet would ignore is an error.

    Raises
    ------
    LabError
        As :func:`twinnet.mininet.machine.run`.
    """
    command = [*PYTHON, "-m", "twinnet.mininet.script", script, *arguments]
    return machine.run(command, {STRICT_VARIABLE: "1"} if strict else None)


def main(arguments: list[str]) -> int:
    """Execute the script ``arguments[0]`` as ``__main__``, and return the status that its end means."""
    names.install()
    path = arguments[0]
    try:
        source = Path(path).read_bytes()
    except OSError as refused:
        print(f"twinnet: {path}: {refused.strerror}", file=sys.stderr)
        return 2
    sys.argv = list(arguments)
    sys.path.insert(0, str(Path(path).resolve().parent))
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as fault:
        traceback.print_exception(fault, limit=0)
        if _PRINT.search(source.decode(errors="replace")):
            print(f"twinnet: {path} is written for Python 2: convert it with 2to3 -w {path}", file=sys.stderr)
        return 1
    try:
        exec(code, module.__dict__)
    except SystemExit:
        raise
    except BaseException as raised:
        own = raised.__traceback__
        traceback.print_exception(type(raised), raised, own.tb_next if own is not None else None)
        return 130 if isinstance(raised, KeyboardInterrupt) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
