"""The words of docs/explanation/tcp-beside-linux.md: what was done, and what is known of why cells differ."""

from __future__ import annotations

from bench.tcp_grid import Cell

__all__ = ["PAGE_HEAD", "reason"]

PAGE_HEAD = """\
# The model's TCP beside Linux's

One TCP flow crosses one bottleneck (host, switch, bottleneck, switch, host) on a grid of 243 cells: three rates, round
trips, buffers, shares of random losses and congestion controls. Linux's own TCP runs by programs
[in a guest kernel on the virtual clock](../how-to/run-programs-in-virtual-time.md), the model's between model hosts on
the same clock, over the same links, with the same random losses in each run. So a difference is the model's, and not
the machine's: lines are exact, and computing takes no time. Each run of Linux's is kept with its seed, the hash of its
trace, date and commit, and repeats on a busy machine. A cell without random losses needs one run. Goodput is what the
receiver got in the last two thirds of 30 s (60 s at 200 ms); at 100 Mbit/s of 10 s (20 s).

[Linux on the wall clock](#linux-on-both-clocks), in real hosts, stands beside it. Of 203 cells only a mean to two
decimals was kept there, without seed, verdict, date, machine and commit. A cell would rest on that only where it had no
run on the virtual clock; the table by what goodputs rest on tells.

**The hosts' processing time.** A real host needs some ten microseconds between an acknowledgement and the segment that
it releases. `python -m bench.host_turnaround` measures this on the wire: in three runs of 3 s the means were 36, 22 and
32 us, with standard deviations of 26, 8 and 15 us (`bench/records/host-turnaround.csv` has all 4234 values; two virtual
processors that other programs used too). In the guest this time is zero, as it is by default in model hosts, so the
comparison is without it. The page shows the model with 30 us and a standard deviation of 20 us beside it:
[a setting](../reference/model-hosts.md#processing-time) for questions about real hosts and buffers of a few frames.

**Buffers of two frames.** In most cells that differ, the buffer holds two frames. There the super-segments matter that
Linux hands to its interface, and not the processing time, which neither side has. With segmentation offload off in the
hosts of the guest (`ethtool -K a0-eth0 tso off gso off`), Linux gets about what the model gets: 7.81 Mbit/s for NewReno
over 10 Mbit/s and 10 ms (3.43 with offload; model 7.84), 8.82 for CUBIC (7.50; 8.77), and over 2 Mbit/s and 50 ms 1.55
for NewReno (0.95; 1.58) and 1.60 for CUBIC (1.23; 1.76). These were runs of 10 s with seed 1 and without random losses,
one each (2026-11-25, commit c20104e2). A model host sends segment by segment.
So super-segments matter there. These runs do not tell the bursts that Linux hands over from how the fabric times a
burst at a queue.

To repeat the measurement, use these commands. The first two run Linux in the guest, and continue where they stopped.
With `--repetitions 3` they draw other random losses. The next two run the model over the same labs. The fifth measures
Linux on the wall clock, one flow at a time, on a quiet machine. The last writes this page.

<!-- test: syntax -->
```sh
python -m bench.tcp_grid --clock programs --alone --only rate_mbit=2,10 --json bench/records/tcp-grid.json
python -m bench.tcp_grid --clock programs --alone --only rate_mbit=100 --short --json bench/records/tcp-grid.json
python -m bench.tcp_grid --twins --processing none --json bench/records/tcp-grid.json
python -m bench.tcp_grid --twins --processing measured --json bench/records/tcp-grid.json
python -m bench.tcp_grid --clock wall --alone --missing --minutes 20 --json bench/records/tcp-grid.json
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
            f"likely, the buffer of {frames} frames: Linux hands super-segments to its interface, the model one "
            "segment after the other ([phase effects](model-tcp.md#phase-effects))"
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
