"""Two hosts between which something is measured - ours, a peer's, the bare loop's - with one way to run programs."""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Protocol

import twinnet as tn

from bench.arena import Arena
from bench.machine import BARE

__all__ = ["Running", "Site", "bare_loop_site", "kernel_site", "lab_site", "switch_site"]

_PATIENCE_S = 20.0


class Running(Protocol):
    """A program that runs: a job of a lab or an ordinary process."""

    stderr: IO[bytes] | None

    def communicate(self) -> tuple[bytes, bytes]:
        """Return what it wrote, when it has ended."""
        ...

    def kill(self) -> None:
        """End it."""
        ...


class Site(ABC):
    """A sending host 1 and a receiving host 2."""

    def __init__(self, name: str, target: str) -> None:
        self.name = name
        self.target = target

    @abstractmethod
    def start(self, host: int, argv: Sequence[str]) -> Running:
        """Start a program in host 1 or 2."""

    def run(self, host: int, argv: Sequence[str]) -> str:
        """Run a program to its end and return its stdout."""
        return self.start(host, argv).communicate()[0].decode(errors="replace")

    def start_ready(self, host: int, argv: Sequence[str]) -> Running:
        """Start a program and wait until it says ``READY`` on stderr."""
        running = self.start(host, argv)
        said = running.stderr.readline() if running.stderr is not None else b""
        if said.strip() != b"READY":
            raise OSError(f"{' '.join(argv)} in host {host} of {self.name}: {said.decode(errors='replace').strip()}")
        return running

    def wait_for_path(self) -> None:
        """Wait until host 1 reaches host 2."""
        end = time.monotonic() + _PATIENCE_S
        while " 0% packet loss" not in self.run(1, ["ping", "-c", "1", "-W", "1", self.target]):
            if time.monotonic() > end:
                raise TimeoutError(f"host 1 of {self.name} does not reach {self.target}")


class _LabSite(Site):
    def __init__(self, name: str, lab: tn.Lab, hosts: tuple[str, str]) -> None:
        super().__init__(name, lab[hosts[1]].ip)
        self.lab, self._hosts = lab, hosts

    def start(self, host: int, argv: Sequence[str]) -> Running:
        return self.lab[self._hosts[host - 1]].popen(list(argv))


class _CommandSite(Site):
    """A site whose hosts are entered by a command."""

    def __init__(self, name: str, target: str, popen: Callable[[int, Sequence[str]], subprocess.Popen[bytes]]) -> None:
        super().__init__(name, target)
        self._popen = popen

    def start(self, host: int, argv: Sequence[str]) -> Running:
        return self._popen(host, argv)


@contextmanager
def lab_site(
    name: str, network: tn.Network, hosts: tuple[str, str] = ("h1", "h2"), interface: str = "auto"
) -> Iterator[Site]:
    """A lab of ours."""
    with network.emulate(interface=interface) as lab:
        site = _LabSite(name, lab, hosts)
        site.wait_for_path()
        yield site


@contextmanager
def kernel_site(name: str, discipline: Sequence[str] = ()) -> Iterator[Site]:
    """Two namespaces and a veth pair; `discipline` are ``tc`` commands for host 1's interface, called ``DEV`` there."""
    with Arena() as arena:
        arena.host_pair()
        for command in discipline:
            arena.run(["tc", *("eth0" if word == "DEV" else word for word in command.split())], "h1")
        site = _arena_site(name, arena)
        site.wait_for_path()
        yield site


@contextmanager
def switch_site(name: str) -> Iterator[Site]:
    """Two namespaces joined by an Open vSwitch in user space."""
    with Arena() as arena:
        arena.start_open_vswitch()
        arena.host_pair_on_switch()
        site = _arena_site(name, arena)
        site.wait_for_path()
        yield site


@contextmanager
def bare_loop_site(name: str, seconds: int) -> Iterator[Site]:
    """Two namespaces joined by a plain loop between two TAPs, which runs for `seconds`, scheduled as our fabric is."""
    command = ["chrt", "--fifo", "1", str(BARE), "loop", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as loop:
        try:
            said = loop.stdout.readline().split() if loop.stdout is not None else []
            if said[:1] != ["READY"]:
                raise OSError("the bare loop did not start; run as root")
            pipe = subprocess.PIPE

            def popen(host: int, argv: Sequence[str]) -> subprocess.Popen[bytes]:
                command = ["nsenter", f"--net=/proc/{said[host]}/ns/net", *argv]
                return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)

            site = _CommandSite(name, "10.99.0.2", popen)
            site.wait_for_path()
            yield site
        finally:
            loop.kill()


def _arena_site(name: str, arena: Arena) -> Site:
    return _CommandSite(name, "10.99.0.2", lambda host, argv: arena.popen(argv, f"h{host}"))
