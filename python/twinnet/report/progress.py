"""Progress of a running study: a moving line with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from twinnet.report.wording import worded_span
from twinnet.study.plan import PlannedRun
from twinnet.study.runner import Observer, Progress
from twinnet.study.store import StoredRun

__all__ = ["LiveObserver", "PlainObserver", "SilentObserver", "observer_on"]


def _begun(todo: Sequence[PlannedRun], skipped: int, expected_s: float) -> str:
    count = f"{len(todo)} {'run' if len(todo) == 1 else 'runs'} to make"
    have = f", {skipped} finished before and kept" if skipped else ""
    return f"{count}{have}; about {worded_span(expected_s)}" if todo else f"nothing to make{have}"


def _ended(run: PlannedRun, stored: StoredRun) -> str:
    if stored.record["status"] == "failed":
        return f"{run.id}: failed: {stored.record['error']['message']}"
    return f"{run.id}: finished, {stored.verdict}"


class PlainObserver:
    """One line for each thing that happens; for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.total: int = 0
        self.done: int = 0

    def begin(self, todo: Sequence[PlannedRun], skipped: int, expected_s: float) -> None:
        """Show how much there is to do."""
        self.total = len(todo)
        self._say(_begun(todo, skipped, expected_s))

    def started(self, run: PlannedRun, progress: Progress) -> None:
        """Nothing: the end of a run is shown."""

    def tick(self, left_s: float) -> None:
        """Nothing."""

    def ended(self, run: PlannedRun, stored: StoredRun, left_s: float) -> None:
        """Show how the run ended and what is left."""
        self.done += 1
        self._say(f"[{self.done}/{self.total}] {_ended(run, stored)}; {worded_span(left_s)} left")

    def stopping(self) -> None:
        """Show that an interrupt was seen."""
        self._say("interrupted: the runs that are going on are ended; finished runs are kept")

    def _say(self, text: str) -> None:
        self.console.print(Text(text), soft_wrap=True)


class LiveObserver:
    """A bar over all runs and a line for each run that is going on; use it with ``with``."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live: Live = Live(console=console, refresh_per_second=5, transient=True)
        self.going: dict[str, Progress] = {}
        self.total: int = 0
        self.done: int = 0

    def __enter__(self) -> LiveObserver:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def begin(self, todo: Sequence[PlannedRun], skipped: int, expected_s: float) -> None:
        """Show how much there is to do."""
        self.total = len(todo)
        self.console.print(Text(_begun(todo, skipped, expected_s)))

    def started(self, run: PlannedRun, progress: Progress) -> None:
        """Show the run."""
        self.going[run.id] = progress

    def tick(self, left_s: float) -> None:
        """Draw anew."""
        table = Table.grid(padding=(0, 2))
        share = self.done + sum(progress.fraction for progress in self.going.values())
        bar = ProgressBar(total=max(1, self.total), completed=share, width=30)
        table.add_row(bar, f"{self.done} of {self.total} runs", f"{worded_span(left_s)} left")
        for run_id, progress in self.going.items():
            table.add_row(ProgressBar(total=1, completed=progress.fraction, width=30), run_id, progress.doing)
        self.live.update(table)

    def ended(self, run: PlannedRun, stored: StoredRun, left_s: float) -> None:
        """Show how the run ended."""
        self.going.pop(run.id, None)
        self.done += 1
        colour = "red" if stored.record["status"] == "failed" or stored.verdict == "invalid" else ""
        self.console.print(Text(_ended(run, stored), style=colour))

    def stopping(self) -> None:
        """Show that an interrupt was seen."""
        self.console.print(
            Text("interrupted: the runs that are going on are ended; finished runs are kept", style="yellow")
        )


class SilentObserver:
    """Tells nothing."""

    def begin(self, todo: Sequence[PlannedRun], skipped: int, expected_s: float) -> None:
        """Before the first run."""

    def started(self, run: PlannedRun, progress: Progress) -> None:
        """A run begins."""

    def tick(self, left_s: float) -> None:
        """Time passes."""

    def ended(self, run: PlannedRun, stored: StoredRun, left_s: float) -> None:
        """A run was written down."""

    def stopping(self) -> None:
        """An interrupt came."""


@contextlib.contextmanager
def observer_on(console: Console) -> Generator[Observer]:
    """Give an observer that shows progress on `console`: a moving line on a terminal, plain lines elsewhere."""
    if console.is_terminal:
        with LiveObserver(console) as live:
            yield live
    else:
        yield PlainObserver(console)
