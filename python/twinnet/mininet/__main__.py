"""``python -m twinnet.mininet SCRIPT [ARGUMENTS]``."""

from __future__ import annotations

import sys

from twinnet.interpreter import leave_current_folder

__all__: list[str] = []


def _main(arguments: list[str]) -> int:
    leave_current_folder()
    from twinnet.errors import TwinnetError
    from twinnet.mininet.script import run

    asked = arguments[:1] in (["-h"], ["--help"])
    if not arguments or arguments[0].startswith("-"):
        usage = "usage: python -m twinnet.mininet SCRIPT [ARGUMENTS]; `twinnet mininet` has options"
        print(usage, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    try:
        return run(arguments[0], arguments[1:])
    except TwinnetError as refused:
        print(f"twinnet: {refused}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
