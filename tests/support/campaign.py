"""A cluster on loopback for tests: a scheduler and a worker as users start them, and the processes of its slots."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from twinnet.cluster.address import Address, parse_address
from twinnet.cluster.certificates import Certificates, new_certificates

__all__ = ["STUDY", "Campaign", "Told", "environment", "twinnet_command"]

LIMIT_S = 60.0
ROOT = Path(__file__).parents[2]

STUDY = """
study: load
title: A load on a line
question: How much arrives?
parameters:
  time: {default: 1 s, text: How long is sent}
network:
  hosts: {h1: , h2: }
  switches: {s1: }
  links:
    - {between: [h1, s1], rate: 10 Mbit, delay: 1 ms}
    - {between: [h2, s1], rate: 2 Mbit, delay: 1 ms}
factors:
  queue:
    levels:
      short: {queues: {s1-eth2: {kind: fifo, limit_frames: 5}}}
      long: {queues: {s1-eth2: {kind: fifo, limit_frames: 50}}}
traffic:
  - {name: load, app: udp, from: [h1], to: h2, port: 5003, rate: 2 Mbit, duration: "${time}", process: poisson,
     payload: 500 B}
measurements:
  throughput: {of: throughput, interval: 500 ms}
  lost: {of: loss, only: [load]}
repetitions: 2
settle: 100 ms
drain: 100 ms
time_limit: 100 h
"""
"""Four runs; a second of virtual time is 500 datagrams."""


def environment() -> dict[str, str]:
    """The environment in which commands find this package."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "python"), "LC_ALL": "C.UTF-8", "COLUMNS": "120"}


def twinnet_command(*arguments: str, before: str = "") -> list[str]:
    """The command line of ``twinnet``; `before` is Python that is done first."""
    return [sys.executable, "-c", f"{before}\nfrom twinnet.cli import main; main()", *arguments]


class Told:
    """A process whose lines are awaited."""

    def __init__(self, command: list[str], cwd: Path) -> None:
        self.process = subprocess.Popen(
            command, cwd=cwd, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self.queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.queue.put(line.rstrip("\n"))
        self.queue.put(None)

    def line(self, pattern: str, limit_s: float = LIMIT_S) -> re.Match[str]:
        """The next line that has `pattern`."""
        deadline = time.monotonic() + limit_s
        while True:
            try:
                line = self.queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no line {pattern!r} within {limit_s:g} s, but {self.lines}") from None
            assert line is not None, f"ended without a line {pattern!r}, but with {self.lines}"
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found

    def rest(self, limit_s: float = LIMIT_S) -> str:
        """All that it printed, when it has ended."""
        self.process.wait(limit_s)
        while (line := self.queue.get(timeout=limit_s)) is not None:
            self.lines.append(line)
        return "\n".join(self.lines)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it, if it has not ended."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Campaign:
    """A scheduler and a worker of two slots; use it with ``with``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys: Path = folder / "keys"
        self.certificates: Certificates = new_certificates(self.keys)
        self.study = folder / "load.yaml"
        self.study.write_text(STUDY)
        self.started: list[Told] = []
        self.slots: dict[int, int] = {}
        self.address: Address
        self.scheduler: Told
        self.worker: Told

    def __enter__(self) -> Campaign:
        try:
            self.start_scheduler("tls://127.0.0.1:0")
            self.worker = self.start("worker", "--at", str(self.address), "--slots", "2", "--keys", str(self.keys))
            self.await_slots(2)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for one in reversed(self.started):
            one.end()

    def start(self, *arguments: str) -> Told:
        """Start a command that ends with the cluster."""
        self.started.append(Told(twinnet_command(*arguments), self.folder))
        return self.started[-1]

    def start_scheduler(self, at: str) -> None:
        """Start the scheduler."""
        self.scheduler = self.start("scheduler", "--at", at, "--keys", str(self.keys))
        self.address = parse_address(self.scheduler.line(r"Scheduler: (\S+)")[1])

    def await_slots(self, count: int) -> None:
        """Wait until `count` more slots have joined, and note their processes."""
        for _ in range(count):
            found = self.worker.line(r"slot (\d+) has joined \S+ \(process (\d+)\)")
            self.slots[int(found[1])] = int(found[2])

    def run(self, out: str, *settings: str) -> Told:
        """``twinnet run`` of the study on the cluster."""
        return self.start("run", str(self.study), "--clock", "virtual", "--no-report", "--yes", "--out", out,
            "--on", str(self.address), "--keys", str(self.keys), *settings)  # fmt: skip
