"""Kills parts of labs at random moments and sees what is left; runs confined (see namespace_census).

Several owners (lab_owner) live through labs side by side. A kill is planned as a phase of an owner's lab, a moment in
it and a victim; when it has struck, all processes of that lab must go within a deadline. Arguments: how many kills, the
seed, a folder. Prints one JSON object.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import selectors
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from lab_owner import PHASES
from lab_protocol import RawLab, star
from namespace_census import kinds_left, reap

OWNERS = 4
VICTIMS = ["lab", "zygote", "init", "program", "owner"]
# Some phases last a millisecond, some a twentieth of a second.
LONGEST_MOMENTS_S = [0.002, 0.01, 0.04]
DEADLINE_S = 20.0
PR_SET_CHILD_SUBREAPER = 36


class Owner:
    """One owner, what it has told, and what is planned for it."""

    def __init__(self, number: int, folder: Path) -> None:
        self.folder = folder / f"owner-{number}"
        self.folder.mkdir()
        self.pid = 0
        self.begin()

    def begin(self) -> None:
        self.reader, writer = os.pipe()
        os.set_blocking(self.reader, False)
        script = str(Path(__file__).parent / "lab_owner.py")
        environment = {**os.environ, "TMPDIR": str(self.folder)}
        actions = [(os.POSIX_SPAWN_DUP2, writer, 1)]
        argv = [sys.executable, script, str(self.folder)]
        self.pid = os.posix_spawn(sys.executable, argv, environment, file_actions=actions)
        os.close(writer)
        self.text = b""
        self.phase = ""
        self.namespace: str | None = None
        self.plan: tuple[str, float, str] | None = None
        self.due: float | None = None
        self.clearing: tuple[str | None, float] | None = None

    def hear(self) -> None:
        try:
            self.text += os.read(self.reader, 65536)
        except BlockingIOError:
            return
        *lines, self.text = self.text.split(b"\n")
        for line in lines:
            words = line.decode().split()
            if words[0] == "lab":
                self.namespace = words[2]
            elif words[0] in ("gone", "lost"):
                self.phase = "gone"
            else:
                self.phase = words[0]
                if self.phase == "creating":
                    self.namespace = None
            if self.plan is not None and self.due is None and self.phase == self.plan[0]:
                self.due = time.monotonic() + self.plan[1]


def processes() -> dict[str, list[int]]:
    """All processes by their user namespace."""
    found: dict[str, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.setdefault(str((entry / "ns" / "user").readlink()), []).append(int(entry.name))
            except OSError:
                continue
    return found


def role(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode(errors="replace")
    except OSError:
        return "gone"
    if words == "twinnet: programs":
        return "zygote"
    if words.startswith("twinnet: h"):
        return "init"
    if words.startswith("twinnet: lab-") or "lab_main" in words:
        return "lab"
    return "program"


class Killer:
    def __init__(self, count: int, seed: int, folder: Path) -> None:
        self.count, self.draw, self.folder = count, random.Random(seed), folder
        self.killed: Counter[str] = Counter()
        self.phases: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self) -> None:
        self.owners = [Owner(number, self.folder) for number in range(OWNERS)]
        self.selector = selectors.DefaultSelector()
        for owner in self.owners:
            self.selector.register(owner.reader, selectors.EVENT_READ, owner)
        while sum(self.killed.values()) < self.count and not self.failures:
            for key, _ in self.selector.select(0.002):
                key.data.hear()
            reap()
            self.look()
        for owner in self.owners:
            os.kill(owner.pid, signal.SIGKILL)

    def look(self) -> None:
        now = time.monotonic()
        alive = processes() if any(owner.clearing for owner in self.owners) else {}
        for owner in self.owners:
            if owner.clearing is not None:
                namespace, deadline = owner.clearing
                if namespace not in alive:
                    owner.clearing = None
                elif now > deadline:
                    told = [f"{pid} {role(pid)}" for pid in alive[namespace]]
                    self.failures.append(f"{told} are left of a lab after {DEADLINE_S} s")
            elif owner.plan is None:
                moment = self.draw.uniform(0, self.draw.choice(LONGEST_MOMENTS_S))
                owner.plan = (self.draw.choice(PHASES), moment, self.draw.choice(VICTIMS))
            elif owner.due is not None and now >= owner.due:
                self.strike(owner, owner.plan[2])

    def strike(self, owner: Owner, wanted: str) -> None:
        namespace = owner.namespace
        of_lab = processes().get(namespace, []) if namespace else children(owner.pid)
        victims: dict[str, list[int]] = {"owner": [owner.pid]}
        for pid in of_lab:
            victims.setdefault(role(pid) if namespace else "lab", []).append(pid)
        # What is not there in this phase cannot be killed in it: another is.
        kind = wanted if victims.get(wanted) else self.draw.choice(sorted(victims))
        victim = self.draw.choice(victims.get(kind) or [owner.pid])
        phase = owner.phase
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            owner.plan, owner.due = None, None
            return
        self.killed[kind] += 1
        self.phases[phase] += 1
        owner.plan, owner.due = None, None
        if kind == "owner":
            self.selector.unregister(owner.reader)
            os.close(owner.reader)
            owner.begin()
            self.selector.register(owner.reader, selectors.EVENT_READ, owner)
        owner.clearing = (namespace, time.monotonic() + DEADLINE_S)


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def surroundings() -> dict[str, object]:
    """What a lab might leave beside processes and namespaces."""
    folders = ["/tmp", "/dev/shm", "/run", "/sys/fs/cgroup"]
    named = [str(path) for folder in folders for path in Path(folder).glob("*twinnet*")]
    addresses = [line for line in Path("/proc/net/unix").read_text().splitlines() if "twinnet" in line]
    return {
        "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "mounts": Path("/proc/self/mountinfo").read_text().splitlines(),
        "named": named,
        "addresses": addresses,
    }


def main() -> None:
    count, seed, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = surroundings()
    killer = Killer(count, seed, folder)
    killer.run()
    kinds = kinds_left(DEADLINE_S)
    after = surroundings()
    lab = RawLab()
    lab.start(star(1))
    seen_while_alive = kinds_left(0.1)
    lab.close()
    json.dump(
        {
            "kills": sum(killer.killed.values()),
            "victims": killer.killed,
            "phases": killer.phases,
            "failures": killer.failures,
            "namespaces": kinds,
            "seen_while_alive": seen_while_alive,
            "children": children(os.getpid()),
            "changed": {key: [before[key], after[key]] for key in before if before[key] != after[key]},
            "files": sorted(path.name for path in folder.rglob("*") if path.is_file()),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
