"""The parent of a machine's slots: it starts a process for each, and another when one has ended."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, cast

import twinnet
from twinnet.cluster.address import Address
from twinnet.cluster.certificates import Certificates
from twinnet.cluster.contact import NobodyThere, check_scheduler
from twinnet.cluster.engine import ClusterError
from twinnet.cluster.scratch import remove_left
from twinnet.cluster.slot_process import SCHEDULER_GONE
from twinnet.cluster.slots import Slot
from twinnet.interpreter import PYTHON

__all__ = ["PATIENCE_S", "serve_slots"]

PATIENCE_S = 600.0
"""For so long a scheduler that is not there, or has gone, is waited for."""
_AGAIN_S = 1.0
_END_S = 2.0


@dataclass
class _Running:
    """A slot and its process."""

    slot: Slot
    verdict: str | None
    reasons: str
    process: subprocess.Popen[str] | None = None
    starts: int = 0


def serve_slots(
    address: Address,
    certificates: Certificates | None,
    slots: Sequence[Slot],
    tell: Callable[[str], None],
    patience_s: float = PATIENCE_S,
) -> None:
    """Serve the scheduler at `address` with `slots` until SIGINT or SIGTERM.

    Parameters
    ----------
    address, certificates
        The scheduler, and what opens the door to it; no certificates without TLS.
    slots
        Each gets a process on its processors. One that is alone on its cores calibrates first.
    tell
        Told in sentences what happens.
    patience_s
        How long a scheduler that does not answer is waited for, in seconds.

    Raises
    ------
    ClusterError
        The scheduler is not of this cluster or version, or did not come within `patience_s`.
    """
    _Parent(address, certificates, slots, tell, patience_s).serve()


class _Parent:
    def __init__(
        self,
        address: Address,
        certificates: Certificates | None,
        slots: Sequence[Slot],
        tell: Callable[[str], None],
        patience_s: float,
    ) -> None:
        self.address, self.certificates, self.tell = address, certificates, tell
        self.patience_s = patience_s
        shared = "shares a core with another slot"
        self.running = [_Running(one, None if one.alone else "shared", "" if one.alone else shared) for one in slots]
        self.heard: queue.SimpleQueue[tuple[_Running, dict[str, Any] | None]] = queue.SimpleQueue()
        self.stopping = False

    def serve(self) -> None:
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            self._await_scheduler()
            remove_left()
            for one in self.running:
                self._start(one)
            while not self.stopping:
                self._hear()
        finally:
            self._end_all()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True

    def _await_scheduler(self) -> None:
        deadline = time.monotonic() + self.patience_s
        announced = False
        while not self.stopping:
            try:
                check_scheduler(self.address, self.certificates)
            except NobodyThere as error:
                if time.monotonic() >= deadline:
                    raise ClusterError(f"{error.message}; waited {self.patience_s:g} s", error.remedy) from None
                if not announced:
                    self.tell(f"{error.message}; waiting for it")
                    announced = True
                time.sleep(_AGAIN_S)
            else:
                return

    def _start(self, one: _Running) -> None:
        settings = {
            "number": one.slot.number,
            "processors": list(one.slot.processors),
            "verdict": one.verdict,
            "reasons": one.reasons,
            "scheduler": str(self.address),
            "keys": str(self.certificates.folder) if self.certificates is not None else "",
        }
        package = str(Path(twinnet.__file__).parents[1])
        one.starts += 1
        one.process = subprocess.Popen(
            # As the parent was found, so is the slot's package, wherever both were started.
            [*PYTHON, "-c", _PROGRAM, json.dumps(settings), package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C is for the parent, which ends its slots.
            start_new_session=True,
        )
        threading.Thread(target=self._listen, args=(one, one.process), daemon=True).start()

    def _listen(self, one: _Running, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue
            if isinstance(said, dict):
                self.heard.put((one, cast(dict[str, Any], said)))
        process.wait()
        self.heard.put((one, None))

    def _hear(self) -> None:
        try:
            one, said = self.heard.get(timeout=0.2)
        except queue.Empty:
            return
        named = f"slot {one.slot.number}"
        if said is None:
            assert one.process is not None
            status = one.process.returncode
            # It may have been killed, and could not tidy up.
            remove_left()
            if self.stopping:
                return
            if status == SCHEDULER_GONE:
                self.tell(f"{named} has not found the scheduler again; it is started again when there is one")
            else:
                ended = f"by signal {-status}" if status < 0 else f"with status {status}"
                self.tell(f"{named} has ended {ended}; it is started again")
            time.sleep(_AGAIN_S if one.starts > 1 else 0)
            self._await_scheduler()
            if not self.stopping:
                self._start(one)
        elif "verdict" in said:
            one.verdict, one.reasons = str(said["verdict"]), str(said["reasons"])
            why = f" ({one.reasons})" if one.reasons else ""
            takes = "takes all runs" if one.verdict == "valid" else "takes no runs on the wall clock, virtual ones only"
            self.tell(f"{named}: the calibration lab was {one.verdict}{why}; it {takes}")
        elif "cancelled" in said:
            self.tell(f"{named} has ended a run whose client cancelled it or has gone: {said['cancelled']}")
        elif "lost" in said:
            self.tell(f"{named} has lost the scheduler; it joins again")
        elif "joined" in said:
            assert one.process is not None
            self.tell(f"{named} has joined {self.address} (process {one.process.pid})")

    def _end_all(self) -> None:
        processes = [one.process for one in self.running if one.process is not None]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + _END_S
        for process in processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        remove_left()


_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop()); from twinnet.cluster.slot_process import main; main()"
