"""All programs that run on other machines for one lab: their numbers, and the requests about them."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from twinnet.errors import LabError
from twinnet.lab_process.pending_reply import PendingReply
from twinnet.lab_process.replies import JobEndedReply, JobReply, JobRow
from twinnet.lab_process.requests import LabRequests
from twinnet.machines.remote_program import RemoteProgram
from twinnet.machines.session import AgentSession

__all__ = ["RemotePrograms"]


class RemotePrograms:
    """The programs of one lab on other machines.

    Parameters
    ----------
    sessions
        The agents by the name of their machine.
    labs
        The labs of those machines.
    """

    def __init__(self, sessions: Mapping[str, AgentSession], labs: Mapping[str, LabRequests]) -> None:
        self._sessions = sessions
        self._labs = labs
        self._lock = threading.Lock()
        self._programs: dict[int, tuple[str, RemoteProgram]] = {}

    def spawn(self, machine: str, descriptors: Sequence[int], fields: Mapping[str, Any]) -> JobReply:
        """Start a program on `machine`; `fields` and answer are those of ``spawn`` of the lab protocol."""
        program = RemoteProgram(self._sessions[machine], {**fields, **_portable(fields.get("env"))}, descriptors)
        with self._lock:
            number = len(self._programs) + 1
            self._programs[number] = (machine, program)
        return {**program.started, "job": number}

    def wait(self, job: int) -> PendingReply[JobEndedReply]:
        """Return the answer of ``wait``, which comes when the program ends."""
        return self._program(job)[1].wait()

    def signal(self, job: int, signal: int) -> None:
        """Send a program a signal."""
        machine, program = self._program(job)
        self._labs[machine].signal(job=program.started["job"], signal=signal)

    def jobs(self) -> list[JobRow]:
        """Return what ``jobs`` reports."""
        mine = {(machine, one.started["job"]): number for number, (machine, one) in self._programs.items()}
        machines = dict.fromkeys(machine for machine, _ in mine)
        return [
            {**row, "job": mine[machine, row["job"]]}
            for machine in machines
            for row in self._labs[machine].jobs()
            if (machine, row["job"]) in mine
        ]

    def _program(self, job: int) -> tuple[str, RemoteProgram]:
        if job not in self._programs:
            raise LabError(f"the lab has no program {job}", "see lab.jobs()", "UnknownJob")
        return self._programs[job]


def _portable(environment: Mapping[str, str] | None) -> dict[str, Any]:
    """The fields for `environment`: a whole one is that of this machine, and only what was changed in it holds on
    another."""
    if environment is None or "PATH" not in environment:
        return {"env": None if environment is None else dict(environment)}
    changed = {name: value for name, value in environment.items() if os.environ.get(name) != value}
    return {"env": None, "changed": changed}
