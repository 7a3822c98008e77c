"""The gate: what a change must pass, on any machine: ``python3 tools/gate.py``. Any Python 3.11 does.

It installs what it needs, builds, and makes all checks and `make test`, whose tests judge no time. At the end it prints
a table of its steps, the tests that failed and their messages. Exit status 0: the change may land; 1: it may not.

A test that fails beside the others is made again by itself, twice. One that passes both times is *unsteady*: it is
named at the end, and has to be mended. More than `MOST_UNSTEADY` of them fail the gate, as one that fails again does.

What watches the wall clock and what takes minutes comes after that, for `AFTERWARDS_S` at most. It is told and decides
nothing, for it depends on what else the machine does.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

__all__ = ["AFTERWARDS_S", "MOST_UNSTEADY", "Done", "Gate", "Step", "failures_of_cargo", "main"]

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "target" / "gate"
PYTHON = ROOT / ".venv" / "bin" / "python"
FAUCET = ROOT / "target" / "faucet" / "bin" / "faucet"
AFTERWARDS_S = 600.0
GRACE_S = 40.0
MOST_UNSTEADY = 3
TIMES_ALONE = 2
LAST_LINES = 40
MOST_FAILURES = 30
CANNOT_BE_HAD, TOO_SLOW_HERE = 3, 124
QUICKER_BUILD = {
    # Nothing is built a second time here.
    "CARGO_INCREMENTAL": "0",
    # Nothing is measured, and nobody looks for lines in a debugger: a twelfth less of the step's time.
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
    "CARGO_PROFILE_DEV_DEBUG": "0",
}


@dataclass(frozen=True)
class Step:
    """One command of the gate.

    Parameters
    ----------
    name
        As the table has it, and its log, ``target/gate/NAME.log``.
    command
        What is run, in the project's folder.
    limit_s
        In seconds: it is ended then, with status 124.
    goes_without
        Exit statuses with which the gate goes on all the same.
    otherwise
        How the table names them.
    """

    name: str
    command: tuple[str, ...]
    limit_s: float = 2400.0
    goes_without: frozenset[int] = frozenset()
    otherwise: str = "not to be had here"

    @property
    def log(self) -> Path:
        """What it prints."""
        return FOLDER / f"{self.name.replace(' ', '-')}.log"

    @property
    def result(self) -> Path:
        """How its tests of Python ended, where it has some."""
        return self.log.with_suffix(".json")


Lane: TypeAlias = "Sequence[Step | Sequence[Lane]]"
"""Steps one after the other; in the place of one, lanes side by side."""


@dataclass
class Done:
    """How a step ended.

    Parameters
    ----------
    step
        Which.
    began_s, took_s
        In seconds, the first from the beginning of the gate.
    status
        Its exit status; ``None`` when it was not begun, for what it needs had failed.
    unsteady
        Tests that failed beside the others and passed alone, and what they said.
    """

    step: Step
    began_s: float
    took_s: float
    status: int | None
    unsteady: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """It fails the gate."""
        return bool(self.status) and self.status not in self.step.goes_without and not self.unsteady

    @property
    def word(self) -> str:
        """How the table names its end."""
        if self.status is None:
            return "not begun"
        if self.failed:
            return f"FAILED ({self.status})"
        if self.unsteady:
            return f"passed, {len(self.unsteady)} unsteady"
        return "passed" if self.status == 0 else self.step.otherwise


@dataclass
class Gate:
    """The steps that were made."""

    began: float = field(default_factory=time.monotonic)
    done: list[Done] = field(default_factory=list)

    def make(self, step: Step) -> Done:
        """Make a step and keep how it ended."""
        began = time.monotonic() - self.began
        print(f"== {step.name} (after {_minutes(began)})")
        FOLDER.mkdir(parents=True, exist_ok=True)
        with step.log.open("wb") as log:
            status = _status(step, log.fileno())
        done = Done(step, began, time.monotonic() - self.began - began, status)
        self.done.append(done)
        print(f"   {step.name}: {done.word} in {_minutes(done.took_s)}")
        return done

    def side_by_side(self, *lanes: Lane) -> None:
        """Make the steps of each lane one after the other, beside those of the other lanes; what follows a step that
        failed is not begun. A lane may go on in several."""
        threads = [threading.Thread(target=self._make_lane, args=(lane,)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _make_lane(self, lane: Lane, goes_on: bool = True) -> None:
        for step in lane:
            if isinstance(step, Step):
                if goes_on:
                    goes_on = not self.make(step).failed
                else:
                    self.done.append(Done(step, time.monotonic() - self.began, 0.0, None))
            elif goes_on:
                self.side_by_side(*step)
            else:
                for one in step:
                    self._make_lane(one, False)

    def test(self, name: str, *targets: str) -> None:
        """Make these targets of tests, and the tests of Python that failed in them again, alone."""
        step = Step(name, ("make", "--no-print-directory", "--keep-going", *targets))
        step.result.unlink(missing_ok=True)
        os.environ["TWINNET_TEST_RESULT"] = str(step.result)
        done = self.make(step)
        del os.environ["TWINNET_TEST_RESULT"]
        if not done.failed or not step.result.exists():
            return
        found = json.loads(step.result.read_text())
        failed: dict[str, str] = found["failed"]
        # What failed elsewhere, or skipped without a right to, is no matter of what else the machine did.
        elsewhere = found["wrongly_skipped"] or failures_of_cargo(done.step.log.read_text(errors="replace"))
        before = sum(len(one.unsteady) for one in self.done)
        if elsewhere or not 0 < len(failed) <= MOST_UNSTEADY - before:
            return
        again = Step(f"{name} again", (str(PYTHON), "-m", "pytest", "-q", "--tb=short", *failed), limit_s=600.0)
        if not any(self.make(again).failed for _ in range(TIMES_ALONE)):
            done.unsteady = failed

    def failed(self) -> list[Done]:
        """Return the steps that fail the gate."""
        return [one for one in self.done if one.failed]

    def table(self) -> str:
        """Return the steps in the order in which they began, with their times."""
        rows = [("step", "began", "took", "")]
        rows += [
            (one.step.name, _minutes(one.began_s), _minutes(one.took_s), one.word)
            for one in sorted(self.done, key=lambda one: one.began_s)
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(
            f"{name:<{widths[0]}}  {began:>{widths[1]}}  {took:>{widths[2]}}  {word}".rstrip()
            for name, began, took, word in rows
        )

    def failures(self) -> str:
        """Return what failed and what it said: the tests by name, of other steps the last lines."""
        told: list[str] = []
        for one in self.done:
            for test, said in one.unsteady.items():
                told.append(f"-- unsteady, failed beside others and passed alone {TIMES_ALONE} times: {test}\n{said}")
        for one in self.failed():
            text = one.step.log.read_text(errors="replace")
            tests = failures_of_cargo(text)
            if one.step.result.exists():
                found = json.loads(one.step.result.read_text())
                tests |= found["failed"] | found["wrongly_skipped"]
            told += [f"-- {test}\n{said}" for test, said in list(tests.items())[:MOST_FAILURES]]
            told += [f"-- and {len(tests) - MOST_FAILURES} more"] * (len(tests) > MOST_FAILURES)
            if not tests:
                told.append(f"-- {one.step.name}, the last lines of {one.step.log}\n{_last_lines(text)}")
        return "\n\n".join(told)


def _status(step: Step, log: int) -> int:
    """Run a step in a session of its own, so that all of it can be ended."""
    try:
        process = subprocess.Popen(
            step.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    except OSError as error:
        os.write(log, f"{error}\n".encode())
        return 127
    try:
        return process.wait(timeout=step.limit_s)
    except subprocess.TimeoutExpired:
        os.write(log, f"\nended after {step.limit_s:.0f} s\n".encode())
    for ending in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(process.pid, ending)
        try:
            process.wait(timeout=10)
            break
        except subprocess.TimeoutExpired:
            continue
    return TOO_SLOW_HERE


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def _last_lines(text: str) -> str:
    return "\n".join(text.rstrip().splitlines()[-LAST_LINES:])


def failures_of_cargo(text: str) -> dict[str, str]:
    """Return the Rust tests that failed by what `cargo test` printed, and what each said."""
    found = {
        name: _last_lines(said.strip())
        for name, said in re.findall(
            r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:$|\Z)", text, re.MULTILINE | re.DOTALL
        )
    }
    if "could not compile" in text:
        found["Rust's tests do not compile"] = _last_lines(text)
    return found


def main() -> int:
    """Run the gate; return its exit status."""
    os.environ |= QUICKER_BUILD
    gate = Gate()
    gate.make(Step("packages", ("tools/install_peers.sh",), goes_without=frozenset((1, TOO_SLOW_HERE))))
    or_without = frozenset((CANNOT_BE_HAD, TOO_SLOW_HERE))
    lint_of_python = Step("lint of Python", ("make", "lint-python"))
    theory = Step("theory", ("make", "--no-print-directory", "validate-check"))
    gate.side_by_side(
        # Both of what follows the build keep one processor busy.
        (Step("build", ("make", ".venv/.built")), ((lint_of_python,), (theory,))),
        (Step("lint of Rust", ("make", "lint-rust")), Step("build of Rust's tests", ("make", "test-build"))),
        (Step("Faucet", ("tools/install_faucet.sh",), goes_without=or_without),),
        # Beside all else, and before the tests; what was had must build.
        (Step("guest kernel", ("nice", "-n", "10", "python3", "tools/guest_kernel.py"), 2400.0, or_without),),
    )
    if FAUCET.exists():
        os.environ["TWINNET_FAUCET"] = str(FAUCET)
    if PYTHON.exists() and (ROOT / ".venv" / ".built").exists():
        os.environ["PYTHONPATH"] = str(ROOT / "tests" / "support")
        means = [str(PYTHON), "tests/support/means.py"]
        os.environ["TWINNET_LACKS"] = subprocess.run(
            means, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        print(f"this machine lacks: {os.environ['TWINNET_LACKS'] or 'nothing'}")
        gate.make(Step("least set", (*means, "--least")))
        del os.environ["PYTHONPATH"]
        # As `make test` does. Each has a result of its own.
        gate.test("test", "test-rust", "test-python")
        gate.test("tests alone", "test-alone")
    failed = gate.failed()
    if not failed:
        print(f"== the gate is passed (after {_minutes(time.monotonic() - gate.began)}); what follows decides nothing")
        for name in ("test-wall", "test-long"):
            # A session that is over ends between two tests, and says what it saw.
            os.environ["PYTEST_ADDOPTS"] = f"--session-timeout={AFTERWARDS_S / 2 - GRACE_S:.0f}"
            command = ("make", "--no-print-directory", name)
            whatever = frozenset(range(256))
            done = gate.make(Step(name, command, AFTERWARDS_S / 2, whatever, "not all passed, or no time was left"))
            print(_last_lines(done.step.log.read_text(errors="replace")))
    print(f"\n{gate.table()}")
    if told := gate.failures():
        print(f"\n{told}")
    print(
        f"\n{'the gate is closed: ' + ', '.join(one.step.name for one in failed) if failed else 'the gate is passed'}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
