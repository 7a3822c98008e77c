"""The words of docs/explanation/tcp-beside-linux.md: what was done, and what is known of why cells differ."""

from __future__ import annotations

from bench.tcp_grid import Cell

__all__ = ["PAGE_HEAD", "reason"]

PAGE_HEAD = """\
# The model's TCP beside Linux's

One TCP flow crosses one bottleneck (host, switch, bottleneck, switch, host) on a grid of 243 cells: three rates, round
trips, buffers, shares of random losses and congestion controls. Linux's own TCP runs between real hosts on the wall
clock. The model's TCP runs between model hosts on the virtual clock, over the same links, with the same random losses
in each run. Goodput is what the receiving app got in the last two thirds of 30 s (60 s at 200 ms); in 40 cells of
100 Mbit/s, measured one flow at a time, of 10 s (20 s), on both clocks. Runs with an invalid verdict do not count. A
doubtful run is shown where there is no valid one, and is no agreement. A cell that was run several times, with other
losses, shows its range in brackets.

**What the record lacks.** Of 203 cells, Linux's goodput is a mean to two decimals of an earlier measurement, whose runs
were not kept: seed, verdict, date, machine and commit are not known. These cells are marked in the last column. The
commands below measure them anew; with 30 to 60 s for each cell on a quiet machine that takes some hours, and has not
been done. A run from now on is kept with its commit and date.

**The hosts' processing time.** A real host needs some ten microseconds between an acknowledgement and the segment that
it releases. `python -m bench.host_turnaround` measures this on the wire: in three runs of 3 s the means were 36, 22 and
32 us, with standard deviations of 26, 8 and 15 us (`bench/records/host-turnaround.csv` has all 4234 values; two virtual
processors that other programs used too). The model's hosts on this page need 30 us with a standard deviation of 20 us,
the mean and spread of all values together. This is [a setting](../reference/model-hosts.md#processing-time) and not the
default, although it is nearer to Linux in the hard cells. It is a property of one machine, it matters only where a
buffer holds a few frames, and without it times are those of the lines alone, which theory knows
([validation](validation.md)). Set it where the question is about Linux and small buffers. The page shows the results
with it and without it.

To repeat the measurement, use these commands. The first measures the cells of which the record has no run of Linux, one
flow at a time. It waits for a quiet machine, and continues where it stopped. The next two run the model over the same
labs. The fourth makes three runs of the cells where the clocks differ by more than 5% or no run is valid; the model
follows them in the same way. The last writes this page. With `--short`, in all but the last, each run takes a third of
the time.

<!-- test: syntax -->
```sh
python -m bench.tcp_grid --clock wall --alone --missing --minutes 20 --json bench/records/tcp-grid.json
python -m bench.tcp_grid --twins --processing measured --json bench/records/tcp-grid.json
python -m bench.tcp_grid --twins --processing none --json bench/records/tcp-grid.json
python -m bench.tcp_grid --clock wall --alone --differing 3 --json bench/records/tcp-grid.json
python -m bench.tcp_grid_table --page docs/explanation/tcp-beside-linux.md
```

![The congestion window of one CUBIC flow on both clocks](../images/saw-tooth.svg)

One CUBIC flow over 10 Mbit/s with a round trip of 50 ms and a buffer of one bandwidth-delay product: the window that
Linux reports by `TCP_INFO`, and the model's (`python -m bench.tcp_saw_tooth`).
"""


def reason(cell: Cell, linux_mbit: float, runs: int, difference: float, interval: tuple[float, float] | None) -> str:
    """Return why the clocks differ in a cell: what is known, and what is only believed, told as such."""
    losses = cell.loss * linux_mbit * 1e6 * cell.seconds() / 8 / 1448
    if interval is not None and interval[0] <= 0 <= interval[1]:
        return (
            f"{losses:.0f} random losses a run: {runs} runs on each clock cannot tell the difference from chance (95 % "
            f"interval {interval[0]:+.0%} to {interval[1]:+.0%})"
        )
    frames = cell.buffer_bytes // 1514
    if cell.algorithm != "bbr" and difference > 0 and frames <= 8:
        return (
            f"the buffer holds {frames} frames; we believe that which of them are lost hangs on some ten microseconds "
            "in the sending host ([phase effects](model-tcp.md#phase-effects)), of which the model knows mean and "
            "deviation only"
        )
    if losses:
        return f"not known: {losses:.0f} random losses a run, and {runs} run{'s' * (runs > 1)}"
    if cell.algorithm == "reno" and cell.rtt_ms == 200 and not cell.loss:
        return (
            "not known: the window grows by five segments a second, so the whole run hangs on where the overshoot of "
            "slow start left it; Linux came out of it with a smaller one"
        )
    return (
        f"not known: the buffer holds {frames} frames; Linux hands bursts of segments to its interface, the model one "
        "after the other, and how far that explains it was not measured"
    )
