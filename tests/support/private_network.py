"""A network namespace of our own, with virtual Ethernet pairs that lead to further ones: interfaces for tests, out of
everybody's way, without root."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import pytest

needs_private_network = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ("unshare", "nsenter", "ip"))
    or subprocess.run(["unshare", "-Urn", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs user namespaces, and the tools unshare, nsenter and ip (apt install util-linux iproute2)",
)
HOLD = ["sh", "-c", "echo ready; exec sleep 1000"]


class Place:
    """A network namespace, held by a process that sleeps."""

    def __init__(self, command: Sequence[str]) -> None:
        self._holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n"

    def command(self, *arguments: str) -> list[str]:
        """The command that runs `arguments` there."""
        return ["nsenter", "--preserve-credentials", "-U", "-n", "-t", str(self._holder.pid), *arguments]

    def run(self, *arguments: str, timeout_s: float = 30, check: bool = True) -> str:
        """Run `arguments` there, and return what they wrote."""
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=timeout_s, check=False)
        assert done.returncode == 0 or not check, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def popen(self, *arguments: str, **settings: Any) -> subprocess.Popen[str]:
        """Start `arguments` there."""
        return subprocess.Popen(self.command(*arguments), text=True, **settings)

    @property
    def pid(self) -> int:
        """A process that stands there."""
        return self._holder.pid

    def end(self) -> None:
        """Let go of it."""
        self._holder.kill()
        self._holder.wait()
        if self._holder.stdout is not None:
            self._holder.stdout.close()


class PrivateNetwork:
    """A namespace with the interfaces ``e1``, ``e2``, ...; the other end of ``e1`` is ``far`` in the place ``far[0]``,
    with the address 10.9.0.1/24, and so on."""

    def __init__(self, pairs: int) -> None:
        self.here = Place(["unshare", "-Urn", *HOLD])
        self.here.run("ip", "link", "set", "lo", "up")
        self.far: list[Place] = []
        for number in range(1, pairs + 1):
            far = Place(self.here.command("unshare", "-n", *HOLD))
            self.far.append(far)
            pair = ["ip", "link", "add", f"e{number}", "type", "veth", "peer", "name", "far", "netns", str(far.pid)]
            self.here.run(*pair)
            self.here.run("ip", "link", "set", f"e{number}", "up")
            far.run("ip", "address", "add", f"10.9.0.{number}/24", "dev", "far")
            far.run("ip", "link", "set", "far", "up")

    def python(self, text: str, *arguments: str, timeout_s: float = 60) -> str:
        """Run the program `text` in the namespace, and return what it printed."""
        return self.here.run(sys.executable, "-c", text, *arguments, timeout_s=timeout_s)

    def __enter__(self) -> PrivateNetwork:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for place in (*self.far, self.here):
            place.end()
