"""The page of the lab that is named: ``python -m twinnet.live LAB [FILE [control [POSITIONS]]]``; started by
:meth:`twinnet.Lab.live`. What is empty is not asked for."""

from __future__ import annotations

import json
import sys

from twinnet.errors import TwinnetError
from twinnet.lab import attach
from twinnet.live import PATIENCE_S, serve


def main(name: str, out: str = "", control: str = "", positions: str = "") -> int:
    """Serve the page of the lab `name`, recorded in the file `out`, with the places of nodes in the file `positions`;
    print its address, or why there is none, as one line of JSON."""
    try:
        with attach(name, PATIENCE_S) as lab:
            serve(
                lab,
                lambda address: print(json.dumps({"address": address}), flush=True),
                out or None,
                bool(control),
                positions=positions or None,
            )
    except TwinnetError as error:
        refusal = {"name": error.name, "message": error.message, "remedy": error.remedy}
        print(json.dumps({"error": refusal}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
