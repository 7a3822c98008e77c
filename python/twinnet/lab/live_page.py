"""The page of a lab in the browser, as the program that asked for it sees it."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from twinnet.errors import LabError, NotAvailable
from twinnet.interpreter import PYTHON

__all__ = ["LivePage"]

_PATIENCE_S = 5.0


class LivePage:
    """The page of a running lab; started by :meth:`twinnet.Lab.live`. Leaving a ``with`` block ends it, and so does the
    lab's end.

    Attributes
    ----------
    address
        What to open in a browser on this machine. It has a token: whoever has the address sees the lab, and changes
        it where the page may do so.
    """

    def __init__(
        self,
        lab_name: str,
        out: str | os.PathLike[str] | None = None,
        control: bool = False,
        positions: str | os.PathLike[str] | None = None,
    ) -> None:
        for name in ("starlette", "uvicorn", *(["websockets"] if control else [])):
            if find_spec(name) is None:
                raise NotAvailable(
                    f"the live page needs {name}, which is not installed",
                    "install twinnet with its extra: pip install 'twinnet[live]'",
                )
        files = ["" if file is None else str(Path(os.fspath(file)).absolute()) for file in (out, positions)]
        # A session of its own: Ctrl-C is for the program, and the page ends with its lab.
        self._server = subprocess.Popen(
            [*PYTHON, "-m", "twinnet.live", lab_name, files[0], "control" if control else "", files[1]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._server.stdout is not None
        with self._server.stdout as output:
            line = output.readline()
        said: dict[str, Any] = json.loads(line) if line else {}
        if "address" not in said:
            self.stop()
            error: dict[str, str] = said.get("error", {})
            raise LabError(
                error.get("message", "the page's server ended before it listened"),
                error.get("remedy", "its standard error says why"),
                error.get("name", "LabError"),
            )
        self.address: str = said["address"]

    def __repr__(self) -> str:
        return f"<LivePage, {'running' if self.running else 'ended'}>"

    @property
    def running(self) -> bool:
        """True if the page is served."""
        return self._server.poll() is None

    def stop(self) -> None:
        """End the page's server."""
        self._server.terminate()
        try:
            self._server.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    def __enter__(self) -> LivePage:
        """Return the page."""
        return self

    def __exit__(self, *_: object) -> None:
        """End its server."""
        self.stop()
