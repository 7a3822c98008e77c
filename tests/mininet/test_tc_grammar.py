"""The words of ``tc`` beside iproute2's own answers: what it refuses, what it shows, and what lines become."""

from __future__ import annotations

import json
import shutil
import subprocess
from types import SimpleNamespace
from typing import Any, cast

import pytest
from twinnet import _core
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.line_control import LineControl, LineRefused
from twinnet.mininet.shaping import Shaping

UNREAD = """
netem foo
netem delay
netem delay fast
netem delay 5msx
netem delay 10ms foo
netem delay 10ms 2ms 200%
netem loss 1% 200%
netem loss -1%
netem duplicate 1% 200%
netem loss gemodel 1% 200%
netem loss state 1% 200%
pfifo limit 20p
prio priomap x
hfsc default zz
netem loss
netem loss 101%
netem loss random
netem loss state
netem loss gemodel
netem loss gemodel x
netem loss bogus
netem duplicate x
netem reorder 25%
netem gap 5
netem gap x
netem rate x
netem limit x
netem limit
netem delay 10ms distribution normal
netem loss 1% foo
tbf foo
tbf rate 1mbit
tbf rate 1mbit burst 1600
tbf rate 1mbit latency 400ms
tbf burst 1600 latency 400ms
tbf rate 1mbit burst 1600 latnecy 400ms
tbf rate 1mbit burst 1600 latency x
tbf rate x burst 1600 latency 4ms
tbf rate 1mbit burst x latency 4ms
tbf rate 1mbit burst 1600 latency 4ms limit 4
tbf rate 1mbit rate 2mbit burst 1600 latency 4ms
tbf rate 1mbit burst 1600 limit
tbf rate 1mbit burst 4k latency 4ms peakrate 2mbit
tbf rate 1mbit/8 burst 1600 latency 10000
htb default
htb default zz
htb defualt 10
hfsc foo
prio bands x
prio foo
pfifo limit x
pfifo limit
pfifo limit 5 foo 3
red foo
red limit 400000
red limit x
codel foo
codel target x
fq_codel flows x
sfq perturb x
sfq foo
fq foo
fq maxrate x
handle x: pfifo
"""
UNREAD_CLASSES = """
htb
htb foo
htb ceil 1mbit
htb rate
htb rate x
htb rate 1mbit foo 7
htb rate 1mbit burst x
htb rate 1mbit prio x
htb rate 1mbit rate 2mbit
"""
SHOWN = {
    "tbf rate 1mbit burst 4k latency 50ms": "tbf 8001: root refcnt 2 rate 1Mbit burst 4Kb lat 50ms ",
    "tbf rate 1000kbit burst 4096 limit 10000": "tbf 8001: root refcnt 2 rate 1Mbit burst 4Kb lat 47.2ms ",
    "tbf rate 1mbit burst 32kbit latency 400ms peakrate 2mbit minburst 1540": (
        "tbf 8001: root refcnt 2 rate 1Mbit burst 4Kb peakrate 2Mbit minburst 1540b lat 400ms "
    ),
    "tbf rate 1.5mbps burst 1600 latency 0.01s": "tbf 8001: root refcnt 2 rate 12Mbit burst 1599b lat 10ms ",
    "tbf rate 1KiBit burst 1600 latency 10000": "tbf 8001: root refcnt 2 rate 1024bit burst 1600b lat 10ms ",
    "tbf rate 1234567bit burst 15000 latency 40ms": "tbf 8001: root refcnt 2 rate 1234Kbit burst 14999b lat 40ms ",
    "htb": "htb 8001: root refcnt 2 r2q 10 default 0 direct_packets_stat 0 direct_qlen 1000",
    "htb default 0x10 r2q 20": "htb 8001: root refcnt 2 r2q 20 default 0x10 direct_packets_stat 0 direct_qlen 1000",
    "pfifo limit 20": "pfifo 8001: root refcnt 2 limit 20p",
    "bfifo limit 20k": "bfifo 8001: root refcnt 2 limit 20Kb",
    "netem delay 10ms 2ms loss 1.5% limit 50": "netem 8001: root refcnt 2 limit 50 delay 10ms  2ms loss 1.5%",
}


class Line:
    """A fabric with the one line of the interface x."""

    def __init__(self) -> None:
        self.intf = SimpleNamespace(name="x", shaping=Shaping())

    def line_end(self, name: str) -> Any:
        return self.intf if name == "x" else None

    def shaping_changed(self, _intf: Any) -> None:
        pass


def run(lines: LineControl, command: str) -> str:
    """Do a command and return what it prints."""
    return lines.run(command.split())


def shaped(*commands: str) -> Shaping:
    """Return what the line is after `commands`."""
    line = Line()
    lines = LineControl(cast("Fabric", line))
    for command in commands:
        run(lines, command)
    queue = line.intf.shaping.queue
    if queue is not None:
        _core.check_queue(json.dumps(queue))
    return line.intf.shaping


def answer_of_tc(words: str) -> tuple[int, str]:
    """Return exit status and first line of the installed ``tc``. It parses before it looks for the interface."""
    done = subprocess.run(
        ["tc", *words.replace("dev x", "dev nosuch0").split()], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr.splitlines()[0].strip()


@pytest.mark.parametrize(
    "command",
    [f"qdisc add dev x root {words}" for words in UNREAD.strip().splitlines()]
    + [f"class add dev x parent 1: classid 1:1 {words}" for words in UNREAD_CLASSES.strip().splitlines()],
)
def test_what_tc_does_not_read_is_refused_in_its_words(command: str) -> None:
    line = Line()
    lines = LineControl(cast("Fabric", line))
    if command.startswith("class"):
        lines.run(["qdisc", "add", "dev", "x", "root", "handle", "1:", "htb"])
    with pytest.raises(LineRefused) as refused:
        run(lines, command)
    assert refused.value.status in (1, 255)
    assert line.intf.shaping == Shaping()
    if shutil.which("tc") is not None:
        assert (refused.value.status, str(refused.value).splitlines()[0]) == answer_of_tc(command)


@pytest.mark.parametrize(("words", "shown"), SHOWN.items())
def test_what_was_set_is_shown_as_iproute2_shows_it(words: str, shown: str) -> None:
    lines = LineControl(cast("Fabric", Line()))
    run(lines, f"qdisc add dev x root {words}")
    assert lines.run(["qdisc", "show", "dev", "x"]) == f"qdisc {shown}\n"


def test_classes_are_shown_in_the_order_of_the_kernel_and_inner_ones_without_a_priority() -> None:
    lines = LineControl(cast("Fabric", Line()))
    lines.run(["qdisc", "add", "dev", "x", "root", "handle", "1:", "htb"])
    for words in (
        "parent 1: classid 1:1 htb rate 10mbit",
        "parent 1:1 classid 1:10 htb rate 4mbit prio 1",
        "parent 1:1 classid 1:20 htb rate 6mbit burst 15k",
        "parent 1:1 classid 1:30 htb rate 100mbit",
        "parent 1: classid 1:40 htb rate 1mbit",
        "parent 1: classid 1:41 htb rate 1mbit",
        "parent 1:1 classid 1:45 htb rate 5mbit",
    ):
        run(lines, f"class add dev x {words}")
    shown = lines.run(["class", "show", "dev", "x"]).splitlines()
    # As Linux has printed them.
    assert [line.split()[2] for line in shown] == ["1:10", "1:1", "1:45", "1:20", "1:30", "1:40", "1:41"]
    assert shown[1] == "class htb 1:1 root rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b "
    assert shown[3] == "class htb 1:20 parent 1:1 prio 0 rate 6Mbit ceil 6Mbit burst 15Kb cburst 1599b "


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("loss gemodel 1% 10% 70% 0.1%", {"to_bad": 0.01, "to_good": 0.1, "loss_bad": 0.7, "loss_good": 0.001}),
        ("loss state 1% 10%", {"to_bad": 0.01, "to_good": 0.1}),
    ],
)
def test_chains_of_loss_are_those_of_the_line(words: str, said: dict[str, float]) -> None:
    loss = shaped(f"qdisc add dev x root netem {words}").direction()["loss"]
    assert loss == {"model": "gilbert_elliott", **said}


def test_netem_sets_distribution_duplicates_errors_order_and_rate() -> None:
    line = shaped("qdisc add dev x root netem delay 9ms 2ms distribution paretonormal duplicate 1% corrupt 2%")
    direction = line.direction()
    assert direction["jitter"] == {"distribution": "pareto_normal", "scale_ps": 2 * 10**9}
    assert (direction["duplicate"], direction["corrupt"]) == (0.01, 0.02)
    direction = shaped("qdisc add dev x root netem delay 9ms reorder 25% rate 2mbit").direction()
    assert direction["jitter"] == {"distribution": "table", "values_ps": [-9 * 10**9, 0, 0, 0]}
    assert (direction["reorder"], direction["rate_bps"]) == (True, 2_000_000)


def test_a_burst_passes_and_the_peak_is_the_rate_of_the_line() -> None:
    line = shaped("qdisc add dev x root tbf rate 10mbit burst 100kb latency 400ms peakrate 20mbit minburst 1540")
    assert line.bw == 20
    assert line.queue is not None
    assert (line.queue["kind"], line.queue["rate_bps"], line.queue["burst_bytes"]) == ("tbf", 10_000_000, 102_400)


@pytest.mark.parametrize(("words", "kind"), [("burst 100k", None), ("burst 100k cburst 100k", "tbf")])
def test_a_class_needs_tokens_of_both_its_rates(words: str, kind: str | None) -> None:
    line = shaped(
        "qdisc add dev x root handle 1: htb default 10",
        f"class add dev x parent 1: classid 1:10 htb rate 10mbit {words}",
    )
    assert (line.queue or {}).get("kind") == kind


@pytest.mark.parametrize(
    "words",
    [
        "netem loss 30% 90%",
        "netem delay 10ms 2ms 25%",
        "netem delay 10ms reorder 25% gap 5",
        "netem slot 1ms",
        "tbf rate 1mbit burst 1600 latency 400ms overhead 10",
        "tbf rate 1mbit burst 1600 latency 400ms mpu 64",
        "tbf rate 1mbit burst 1000 latency 400ms",
        "fq maxrate 2mbit",
        "pie",
        "cake bandwidth 10mbit",
    ],
)
def test_what_has_no_effect_at_our_lines_is_refused_with_its_name(words: str) -> None:
    with pytest.raises(LineRefused, match=words.split()[0]) as refused:
        shaped(f"qdisc add dev x root {words}")
    assert refused.value.status == 2
