"""Campaigns on a cluster: what a run costs there, and whether killing loses any.

``python -m bench.campaign`` starts a scheduler and workers on loopback as users do. First it makes runs of nearly no
work, beside one process with ``--jobs`` by turns, and tells how much memory thousands of them take; then it makes runs
while every two seconds a slot, a worker or the scheduler is killed, and compares them with the same runs of this
process, bit by bit.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from campaign import STUDY
from twinnet.report.progress import SilentObserver
from twinnet.results.tables import TABLES
from twinnet.study.execute import LabExecutor
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study
from twinnet.study.runner import run_plan
from twinnet.study.store import ResultStore

_STUDY = STUDY + "clock: virtual\n"
_LIMIT_S = 1200.0
_TICK_S = 0.01
_END_S = 30.0
_COMMAND = [sys.executable, "-c", "from twinnet.cli import main; main()"]


@dataclass
class _Program:
    """A command of twinnet whose lines are read as they come."""

    arguments: list[str]
    temporary: Path | None = None
    lines: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue[str])

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            [*_COMMAND, *self.arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TMPDIR": str(self.temporary)} if self.temporary else None,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def find(self, pattern: str, limit_s: float = 60.0) -> re.Match[str]:
        deadline = time.monotonic() + limit_s
        while True:
            if found := re.search(pattern, self.lines.get(timeout=max(0.0, deadline - time.monotonic()))):
                return found

    def processor_s(self) -> float:
        """Processor time of it and of those of its children that live."""
        pids = [self.process.pid, *_children(self.process.pid)]
        return sum(_processor_s(pid) for pid in pids)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _children(parent: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{parent}/task").glob("*/children"):
        found += [int(one) for one in path.read_text().split()]
    return found


def _processor_s(pid: int) -> float:
    try:
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


class _Cluster:
    """A scheduler and workers of one slot each on loopback."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder, self.keys, self.temporary = folder, folder / "keys", folder / "tmp"
        self.temporary.mkdir()
        subprocess.run([*_COMMAND, "cluster", "new", str(self.keys)], check=True, stdout=subprocess.DEVNULL)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tls://127.0.0.1:{free.getsockname()[1]}"
        self.scheduler = self._scheduler()
        self.workers = [self._worker() for _ in range(workers)]
        for one in self.workers:
            one.find("has joined")

    def _scheduler(self) -> _Program:
        return _Program(["scheduler", "--at", self.address, "--keys", str(self.keys)], self.temporary)

    def _worker(self) -> _Program:
        return _Program(["worker", "--at", self.address, "--slots", "1", "--keys", str(self.keys)], self.temporary)

    def kill(self, what: str, which: int) -> None:
        """Kill a slot, a worker or the scheduler; the latter two are started again at once."""
        place = which % len(self.workers)
        if what == "slot":
            # A worker that was just started may have none yet.
            for pid in _children(self.workers[place].process.pid):
                os.kill(pid, signal.SIGKILL)
        elif what == "worker":
            self.workers[place].process.kill()
            self.workers[place].process.wait()
            self.workers[place] = self._worker()
        else:
            self.scheduler.process.kill()
            self.scheduler.process.wait()
            self.scheduler = self._scheduler()

    def close(self) -> None:
        for one in [*self.workers, self.scheduler]:
            one.end()

    def left(self) -> list[str]:
        """The folders that are left when all has ended. The slots of a worker that was killed end by themselves, which
        takes a moment."""
        deadline = time.monotonic() + _END_S
        while (found := [path.name for path in self.temporary.iterdir()]) and time.monotonic() < deadline:
            time.sleep(_TICK_S)
        return found


@contextmanager
def _cluster(workers: int) -> Generator[_Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="twinnet-campaign-"))
    try:
        cluster = _Cluster(folder, workers)
        try:
            yield cluster
        finally:
            cluster.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(study: Path, out: Path, *settings: str) -> tuple[float, float]:
    """Make a study; returns its time and the processor time of the command, in seconds."""
    before = os.times()
    begin = time.monotonic()
    command = [*_COMMAND, "run", str(study), "--no-report", "--yes", "--out", str(out), *settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - begin, used


def rate(runs: int, workers: int, repetitions: int, seconds: float) -> None:
    """Print what a run of `seconds` of virtual time takes with `workers`, and with ``--jobs`` of as many."""
    with _cluster(workers) as cluster:
        study = cluster.folder / "load.yaml"
        study.write_text(_STUDY)
        asked = ["--repeat", str(runs // 2), "--set", f"time={seconds * 1000:.0f} ms"]
        far: list[float] = []
        near: list[float] = []
        costs: list[tuple[float, float, float]] = []
        for turn in range(repetitions):
            out = cluster.folder / f"out-{turn}"
            before = cluster.scheduler.processor_s(), sum(one.processor_s() for one in cluster.workers)
            took_s, client_s = _run(study, out / "far", *asked, "--on", cluster.address, "--keys", str(cluster.keys))
            after = cluster.scheduler.processor_s(), sum(one.processor_s() for one in cluster.workers)
            far.append(took_s)
            costs.append((client_s, after[0] - before[0], after[1] - before[1]))
            near.append(_run(study, out / "near", *asked, "--jobs", str(workers))[0])
            shutil.rmtree(out)
    client, scheduler, slots = (1000 * median(one[place] for one in costs) / runs for place in range(3))
    ratio = median(one / other for one, other in zip(far, near, strict=True))
    print(
        f"{runs} runs of {seconds:g} s, {workers} workers of one slot: {median(far):.1f} s ({runs / median(far):.0f} a"
        f" second); one process with --jobs {workers}: {median(near):.1f} s; ratio {ratio:.2f} (n = {repetitions})\n"
        f"processor time of a run: client {client:.1f} ms (its start included), scheduler {scheduler:.1f} ms, slot"
        f" {slots:.1f} ms"
    )


def memory(counts: Sequence[int], seconds: float) -> None:
    """Print the greatest memory of ``twinnet run`` for each number of runs, of `seconds` of virtual time.

    The analysis and the report are included, and ``twinnet report`` alone, which makes no run, is beside it.
    """
    for count in counts:
        folder = Path(tempfile.mkdtemp(prefix="twinnet-campaign-"))
        try:
            study = folder / "load.yaml"
            study.write_text(_STUDY)
            asked = ["--repeat", str(count // 2), "--set", f"time={seconds * 1000:.0f} ms", "--yes", "--jobs", "2"]
            made, made_s = _greatest_memory(["run", str(study), *asked, "--out", str(folder / "out")])
            told, told_s = _greatest_memory(["report", str(folder / "out" / load_study(study).name)])
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(
            f"{count} runs of {seconds:g} s: at most {made / 1e6:.0f} MB in {made_s:.0f} s; the report alone"
            f" {told / 1e6:.0f} MB in {told_s:.0f} s",
            flush=True,
        )


def _greatest_memory(arguments: list[str]) -> tuple[int, float]:
    """Run a command of twinnet; returns the greatest resident size of one of its processes in bytes, and its time."""
    begin = time.monotonic()
    command = subprocess.Popen([*_COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(command.pid, 0)
    command.returncode = os.waitstatus_to_exitcode(status)
    if command.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)} ended with status {command.returncode}")
    return used.ru_maxrss * 1024, time.monotonic() - begin


def kills(runs: int, every_s: float, seconds: float) -> int:
    """Make `runs` while something is killed every `every_s` seconds; returns how many came out wrong."""
    with _cluster(3) as cluster:
        study_file = cluster.folder / "load.yaml"
        study_file.write_text(_STUDY)
        changes = {"time": f"{seconds:.0f} s", "repetitions": str(runs // 2)}
        study = load_study(study_file, changes)
        plan = plan_study(study)
        far = cluster.folder / "far"
        asked = ["--repeat", str(runs // 2), "--set", f"time={seconds:.0f} s", "--no-report", "--yes"]
        client = _Program(
            ["run", str(study_file), *asked, "--out", str(far), "--on", cluster.address, "--keys", str(cluster.keys)]
        )
        begin = time.monotonic()
        killed = {"slot": 0, "worker": 0, "scheduler": 0}
        victims = cycle(killed)
        due = begin + every_s
        while client.process.poll() is None and time.monotonic() - begin < _LIMIT_S:
            if time.monotonic() >= due:
                victim = next(victims)
                cluster.kill(victim, sum(killed.values()))
                killed[victim] += 1
                due += every_s
            time.sleep(_TICK_S)
        took_s = time.monotonic() - begin
        client.end()
        if client.process.returncode:
            while not client.lines.empty():
                print("client:", client.lines.get(), end="")
        made = {run.id: run for run in ResultStore(far / study.name).all_runs()}
        begin = time.monotonic()
        near = run_plan(plan, ResultStore(cluster.folder / "near"), LabExecutor(), SilentObserver())
        near_s = time.monotonic() - begin
        wrong = [one.id for one in near.finished if not _same(made.get(one.id), one)]
        twice = len(list((far / study.name).glob("*.partial")))
        cluster.close()
        left = cluster.left()
    print(
        f"{runs} runs of {seconds:g} s: {took_s:.0f} s with 3 slots while {killed['slot']} slots, {killed['worker']}"
        f" workers and {killed['scheduler']} schedulers were killed, one every {every_s:g} s; {near_s:.0f} s in one"
        f" process\n{len(made)} of {runs} runs made, {len(set(made) - {one.id for one in plan})} that were not asked"
        f" for, {len(wrong)} lost or other than here, {twice} halves and {len(left)} folders left behind; the client"
        f" ended with status {client.process.returncode}"
    )
    return len(wrong) + twice + len(left) + abs(client.process.returncode or 0)


def _same(there: object, here: object) -> bool:
    from twinnet.study.store import StoredRun

    if not isinstance(there, StoredRun) or not isinstance(here, StoredRun) or there.record["status"] != "finished":
        return False
    tables = all(there.table(name).equals(here.table(name)) for name in TABLES if name != "twin")
    return tables and there.record["trace_hash"] == here.record["trace_hash"]


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.campaign", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=["short", "even", "kills", "memory", []], help="all without any")
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs, once")
    chosen = parser.parse_args()
    less = 10 if chosen.quick else 1
    turns = 1 if chosen.quick else 3
    parts = chosen.parts or ["short", "even", "kills", "memory"]
    status = 0
    if "short" in parts:
        rate(1000 // less, 3, turns, 0.1)
    if "even" in parts:
        rate(60 // less, 3, turns, 4000.0)
    if "memory" in parts:
        memory((200 // less, 1600 // less, 6400 // less), 0.1)
    if "kills" in parts:
        status = kills(200 // less, 2.0, 1000.0)
    sys.exit(min(status, 1))


if __name__ == "__main__":
    main()
