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

**Buffers of two frames.** Linux hands super-segments to its interface, and a model host segment by segment. This
makes little difference where the line cuts a super-segment into frames that reach the queue one by one. Before commit
16c09c09 the fabric let up to eight frames of one reach a switch together, at the moment of the last. Behind a
buffer of two frames Linux lost frames that there is room for: NewReno got 3.44 Mbit/s over 10 Mbit/s and 10 ms, and
gets 7.81 since; CUBIC 7.54 and 8.80. With segmentation offload off it had got that before. So it was the fabric that
was wrong, and not the model. Runs of an earlier commit stand in the table of every cell where they were not made
again.

**What a call of the kernel takes.** When these runs were made, a reading of the guest's clock took 5 us, and a system
call took nothing. Since commit 9d2308ff they take 0.26 and 0.2 us, and since 19fe9d30 a reading is mostly no system
call. So a run of today has another trace hash than the table tells for it, and its goodput may differ; which cells it
would move was not measured. To get a row's own hash, use the commit that it names.

**Windows that loss keeps small.** Traces side by side showed three more things that the model had wrong. Linux's
receive buffer grows for what came behind a gap (`tcp_data_queue_ofo`); while the window opens, each segment behind a
gap is acknowledged at once (`tcp_grow_window`); and BBR's send buffer holds three windows (`bbr_sndbuf_expand`). Over
100 Mbit/s, 200 ms and 1 % losses the model's receive window had stayed at 1.3 MB, and BBR filled its pipe for the
first time at half the rate.

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
    if cell.algorithm != "bbr" and (cell.rate_mbit, cell.rtt_ms, cell.loss) == (100, 200, 0.0):
        return (
            "likely, the send buffer: Linux counts what it takes to keep a segment, the model its payload, so that "
            "Linux has about 5 % less to send when slow start overflows the queue, and recovers by another burst"
        )
    if losses:
        return f"not known: {losses:.0f} random losses a run, and {runs} run{'s' * (runs > 1)}"
    return (
        f"not known: the buffer holds {frames} frames; Linux hands bursts of segments to its interface, the model one "
        "after the other, and how far that explains it was not measured"
    )
