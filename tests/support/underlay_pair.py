"""Two network namespaces joined by a veth pair: an underlay for tunnels, without rights outside of them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ADDRESSES = ("192.0.2.1", "192.0.2.2")
_SIDE = Path(__file__).with_name("tunnel_side.py")
_KEEPER = "import os; print('here', flush=True); os.read(0, 1)"


class CannotMake(Exception):
    """Why no underlay can be made here."""


class UnderlayPair:
    """Two machines on one wire; ended by ``with``.

    Parameters
    ----------
    mtu
        Of the wire.
    """

    def __init__(self, mtu: int = 1500) -> None:
        for tool in ("unshare", "nsenter", "ip"):
            if shutil.which(tool) is None:
                raise CannotMake(f"{tool} is not installed")
        self._keepers: list[subprocess.Popen[str]] = []
        self._sides: list[Side] = []
        try:
            self._keep(["unshare", "--user", "--map-root-user", "--net"])
            self._keep([*self._enter(0, net=False), "unshare", "--net"])
            self._ip(0, "link", "add", "wire", "type", "veth", "peer", "name", "far")
            self._ip(0, "link", "set", "far", "netns", str(self._keepers[1].pid))
            self._ip(1, "link", "set", "far", "name", "wire")
            for side, address in enumerate(ADDRESSES):
                self._ip(side, "link", "set", "lo", "up")
                self._ip(side, "addr", "add", f"{address}/24", "dev", "wire")
                self._ip(side, "link", "set", "wire", "mtu", str(mtu), "up")
        except (OSError, subprocess.SubprocessError, CannotMake) as error:
            self.end()
            raise CannotMake(f"this machine permits no network namespaces: {error}") from None

    def _keep(self, prefix: Sequence[str]) -> None:
        keeper = subprocess.Popen(
            [*prefix, sys.executable, "-c", _KEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._keepers.append(keeper)
        assert keeper.stdout is not None
        if keeper.stdout.readline() != "here\n":
            raise CannotMake("unshare failed")

    def _enter(self, side: int, net: bool = True) -> list[str]:
        pid = self._keepers[side].pid
        return ["nsenter", "--target", str(pid), "--user", "--preserve-credentials", *(["--net"] if net else [])]

    def _ip(self, side: int, *words: str) -> None:
        done = self.run(side, "ip", *words)
        if done.returncode != 0:
            raise CannotMake(f"ip {' '.join(words)}: {done.stderr}")

    def run(self, side: int, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `command` (words, or one text) on machine `side` (0 or 1)."""
        words = shlex.split(command[0]) if len(command) == 1 else command
        return subprocess.run(
            [*self._enter(side), *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=os.environ | environment,
        )

    def start(self, side: int, *command: str, **environment: str) -> subprocess.Popen[str]:
        """Start `command` on machine `side`; whoever starts it ends it."""
        return subprocess.Popen(
            [*self._enter(side), *command],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def lab(self, side: int, **settings: Any) -> Side:
        """Start a lab on machine `side`: see ``tunnel_side.py``."""
        made = Side(self.start(side, sys.executable, str(_SIDE), json.dumps(settings)))
        self._sides.append(made)
        return made

    def __enter__(self) -> UnderlayPair:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    def end(self) -> None:
        """End all labs and both machines."""
        for side in self._sides:
            side.end()
        for keeper in self._keepers:
            keeper.kill()
            keeper.communicate()


class Side:
    """A lab on one of the machines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.refusal: str | None = None
        said = self._hear()
        if "refused" in said:
            self.refusal = said["refused"]

    def _hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the lab ended: {self.process.communicate()[1]}")
        return json.loads(line)

    def ask(self, **what: Any) -> Any:
        """Have the lab do something, and return its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return self._hear()["answer"]

    def run(self, command: str) -> str:
        """Run `command` in the lab's host and return what it printed."""
        return self.ask(run=command)

    def end(self) -> None:
        """End the lab."""
        self.process.communicate(timeout=30)
