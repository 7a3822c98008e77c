"""The page of the lab that is named: ``python -m twinnet.live LAB [FILE]``; started by :meth:`twinnet.Lab.live`."""

from __future__ import annotations

import json
import sys

from twinnet.errors import TwinnetError
from twinnet.lab.lab import attach
from twinnet.live import PATIENCE_S, serve


def main(name: str, out: str | None = None) -> int:
    """Serve the page of the lab `name`, recorded in the file `out`; print its address, or why there is none, as one
    line of JSON."""
    try:
        with attach(name, PATIENCE_S) as lab:
            serve(lab, lambda address: print(json.dumps({"address": address}), flush=True), out)
    except TwinnetError as error:
        told = {"name": error.name, "message": error.message, "remedy": error.remedy}
        print(json.dumps({"error": told}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
