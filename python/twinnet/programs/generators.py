"""Traffic generators: how each is asked to send datagrams at a rate, and who receives them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from twinnet.interpreter import PYTHON

__all__ = ["GENERATORS", "OURS", "PEERS", "Generator", "installed"]


@dataclass(frozen=True)
class Generator:
    """One generator.

    Parameters
    ----------
    program
        What must be installed.
    port
        Where its datagrams go.
    ready
        Protocol and port on which its receiver listens when it is ready.
    receiver
        The command that receives them.
    sender
        From address, datagrams a second, payload and seconds to the command that sends.
    unpaced
        From address, payload and seconds to the command that sends as much as goes; ``None`` where it has none.
    poisson
        As `sender`, with exponential gaps; ``None`` where it has none.
    least_payload
        The smallest payload that it can send, in bytes.
    lagging_status
        Its exit status when it sent, but not as fast as it was asked to; ``None`` where it has none.
    package
        The Debian package that it comes in.
    """

    program: str
    port: int
    ready: tuple[str, int]
    receiver: Sequence[str]
    sender: Callable[[str, int, int, int], Sequence[str]]
    unpaced: Callable[[str, int, int], Sequence[str]] | None = None
    poisson: Callable[[str, int, int, int], Sequence[str]] | None = None
    least_payload: int = 1
    package: str = ""
    lagging_status: int | None = None


def installed(peer: Generator) -> bool:
    """Whether `peer` can be measured here."""
    return shutil.which(peer.program) is not None


def _itg(poll: bool, gaps: str = "-C") -> Callable[[str, int, int, int], Sequence[str]]:
    def command(to: str, rate: int, size: int, seconds: int) -> Sequence[str]:
        mode = ["-poll"] if poll else []
        flow = ["-a", to, "-rp", "5003", "-T", "UDP", gaps, str(rate), "-c", str(size), "-t", str(seconds * 1000)]
        return ["ITGSend", *mode, *flow]

    return command


def _mgen(precise: bool, pattern: str = "PERIODIC") -> Callable[[str, int, int, int], Sequence[str]]:
    def command(to: str, rate: int, size: int, seconds: int) -> Sequence[str]:
        mode = ["precise", "on"] if precise else []
        begin = f"0.0 ON 1 UDP SRC 5002 DST {to}/5003 {pattern} [{rate} {size}]"
        return ["mgen", *mode, "nolog", "event", begin, "event", f"{seconds}.0 OFF 1"]

    return command


def _iperf(to: str, rate: int, size: int, seconds: int) -> Sequence[str]:
    return ["iperf", "-u", "-c", to, "-p", "5003", "-b", f"{rate}pps", "-l", str(size), "-t", str(seconds)]


def _iperf3(timer_us: int) -> Callable[[str, int, int, int], Sequence[str]]:
    def command(to: str, rate: int, size: int, seconds: int) -> Sequence[str]:
        pace = ["-b", str(rate * size * 8), "--pacing-timer", str(timer_us)]
        return ["iperf3", "-u", "-c", to, "-p", "5003", *pace, "-l", str(size), "-t", str(seconds)]

    return command


_OWN = (*PYTHON, "-c", "import sys; from twinnet.cli import main; sys.exit(main())")
"""Our command line, whether or not it is on the path."""


def _ours(*pace: str) -> Callable[[str, int, int, int], Sequence[str]]:
    def command(to: str, rate: int, size: int, seconds: int) -> Sequence[str]:
        given = [word.format(rate=rate, mean_ns=round(1e9 / rate)) for word in pace]
        return [*_OWN, "send", to, *given, "--payload", f"{size} B", "--duration", f"{seconds} s", "--no-clock"]

    return command


def _ours_unpaced(to: str, size: int, seconds: int) -> Sequence[str]:
    return [*_OWN, "send", to, "--unpaced", "--payload", f"{size} B", "--duration", f"{seconds} s", "--no-clock"]


_ITG_RECEIVER = ("ITGRecv",)
_ITG_READY = ("tcp", 9000)
_ANY_READY = ("udp", 5003)
_MGEN_RECEIVER = ("mgen", "nolog", "event", "listen udp 5003")
"""Neither side writes a line for each packet."""
_IPERF3_READY = ("tcp", 5003)
_IPERF3_RECEIVER = ("iperf3", "-s", "-p", "5003", "-1")
_IPERF3_TIMER_US = 1000
"""What it has when nothing is said."""
_FAST = 2_000_000
"""Datagrams a second, more than any of them reaches."""


def _fast(paced: Callable[[str, int, int, int], Sequence[str]]) -> Callable[[str, int, int], Sequence[str]]:
    return lambda to, size, seconds: paced(to, _FAST, size, seconds)


PEERS: dict[str, Generator] = {
    "D-ITG": Generator(
        "ITGSend",
        5003,
        _ITG_READY,
        _ITG_RECEIVER,
        _itg(False),
        _fast(_itg(False)),
        _itg(False, "-E"),
        20,
        package="d-itg",
    ),
    "D-ITG -poll": Generator(
        "ITGSend",
        5003,
        _ITG_READY,
        _ITG_RECEIVER,
        _itg(True),
        poisson=_itg(True, "-E"),
        least_payload=20,
        package="d-itg",
    ),
    "MGEN": Generator(
        "mgen",
        5003,
        _ANY_READY,
        _MGEN_RECEIVER,
        _mgen(False),
        _fast(_mgen(False)),
        _mgen(False, "POISSON"),
        28,
        "mgen",
    ),
    "MGEN precise": Generator(
        "mgen", 5003, _ANY_READY, _MGEN_RECEIVER, _mgen(True), None, _mgen(True, "POISSON"), 28, "mgen"
    ),
    "iperf 2": Generator(
        "iperf",
        5003,
        _ANY_READY,
        ("iperf", "-u", "-s", "-p", "5003"),
        _iperf,
        _fast(_iperf),
    ),
    "iperf3": Generator(
        "iperf3",
        5003,
        _IPERF3_READY,
        _IPERF3_RECEIVER,
        _iperf3(_IPERF3_TIMER_US),
        lambda to, size, seconds: [
            "iperf3",
            "-u",
            "-c",
            to,
            "-p",
            "5003",
            "-b",
            "0",
            "-l",
            str(size),
            "-t",
            str(seconds),
        ],
        None,
        16,
        "iperf3",
    ),
    "iperf3, timer of 1 us": Generator("iperf3", 5003, _IPERF3_READY, _IPERF3_RECEIVER, _iperf3(1)),
}
"""By the name under which they stand in tables."""

OURS = Generator(
    sys.executable,
    5003,
    _ANY_READY,
    (),
    _ours("--pps", "{rate}"),
    _ours_unpaced,
    _ours("--gap", "exponential({mean_ns} ns)"),
    8,
    lagging_status=1,
)
"""`twinnet send`."""

GENERATORS: dict[str, Generator] = {
    "twinnet": OURS,
    "ditg": PEERS["D-ITG"],
    "ditg-poll": replace(PEERS["D-ITG -poll"], unpaced=_fast(_itg(True))),
    "iperf3": PEERS["iperf3"],
    "mgen": replace(PEERS["MGEN"], receiver=()),
    "mgen-precise": replace(PEERS["MGEN precise"], receiver=(), unpaced=_fast(_mgen(True))),
}
"""By the name that studies have for them. Those without a receiver need none that answers."""
