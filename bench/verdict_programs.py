"""One run of the verdict's campaign with TCP or with real programs: on the wall clock, quiet or disturbed.

The virtual clock has neither, so what is right is what two runs of the same case give that are left alone. Where one
is not valid, or they differ from each other by more than half of what is allowed, there is nothing to compare with.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise

import twinnet as tn
from twinnet.lab_process.job import Job

from bench.verdict_run import kept

__all__ = ["SHAPES", "ProgramCase", "ProgramRun", "available", "differences", "make", "program_case", "reference"]

SHAPES = ("tcp", "iperf3", "echo", "http", "counted", "ffmpeg")
"""TCP by our own apps; iperf3; a Python server of UDP beside a client that asks each few milliseconds; a Python server
of HTTP and a busy client; datagrams into a Python receiver that counts; a video that ffmpeg sends."""
RECEIVER = "b1"
SENDER = "a1"
_PORT = 5201
_READY_S = 0.4
"""How long servers have to come up: before the record begins."""

_ECHO_SERVER = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind(("", int(__import__("sys").argv[1])))
    while True:
        data, who = s.recvfrom(2048)
        s.sendto(data, who)
"""
_ECHO_CLIENT = """
import json, socket, sys, threading, time
who, gap_s, seconds, size = (sys.argv[1], int(sys.argv[2])), float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(who)
s.settimeout(0.5)
trips = []
def receive():
    while True:
        try:
            told = s.recv(2048)
        except OSError:
            return
        trips.append(time.monotonic_ns() - int(told[:20]))
thread = threading.Thread(target=receive)
thread.start()
count, begin = int(seconds / gap_s), time.monotonic()
for number in range(count):
    time.sleep(max(0.0, begin + number * gap_s - time.monotonic()))
    s.send(b"%020d" % time.monotonic_ns() + bytes(size - 20))
thread.join()
print(json.dumps({"sent": count, "trips": trips}))
"""
_COUNTER = """
import json, signal, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(sys.argv[3]))
s.bind(("", int(sys.argv[1])))
pause_s, count = float(sys.argv[2]), 0
s.settimeout(0.1)
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
# What has arrived when it is to end is counted, too.
while True:
    try:
        s.recv(2048)
    except TimeoutError:
        if ended:
            break
        continue
    count += 1
    if pause_s:
        time.sleep(pause_s)
print(json.dumps({"received": count}))
"""
_SENDER = """
import json, socket, sys, time
gap_s, seconds, size = float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], int(sys.argv[2])))
count, begin = int(seconds / gap_s), time.monotonic()
for number in range(count):
    time.sleep(max(0.0, begin + number * gap_s - time.monotonic()))
    s.send(bytes(size))
print(json.dumps({"sent": count}))
"""
_HTTP_SERVER = """
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "20000")
        self.end_headers()
        self.wfile.write(bytes(20000))
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Page).serve_forever()
"""
_HTTP_CLIENT = """
import http.client, json, sys, time
line = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=5)
end, took = time.monotonic() + float(sys.argv[3]), []
while time.monotonic() < end:
    begin = time.monotonic_ns()
    line.request("GET", "/")
    line.getresponse().read()
    took.append(time.monotonic_ns() - begin)
print(json.dumps({"trips": took}))
"""


@dataclass(frozen=True)
class ProgramCase:
    """A network of two hosts behind switches in a line, and what runs in them.

    Parameters
    ----------
    shape
        One of `SHAPES`.
    switches, rate_bps, delay_ms
        Switches in a line, and the rate and the delay of each link.
    gap_ms, payload
        Of what sends datagrams: the time between them and their bytes.
    seconds
        How long the traffic lasts.
    """

    shape: str
    switches: int
    rate_bps: int
    delay_ms: float
    gap_ms: float
    payload: int
    seconds: float

    @property
    def load(self) -> float:
        """The share of the line's rate that datagrams take."""
        return (self.payload + 66) * 8 / (self.gap_ms / 1e3) / self.rate_bps

    def network(self) -> tn.Network:
        """Build the network."""
        network = tn.Network()
        switches = [network.switch(f"s{number}") for number in range(1, self.switches + 1)]
        settings = {"rate": tn.units.BitsPerSecond(self.rate_bps), "delay": f"{self.delay_ms} ms"}
        for left, right in pairwise(switches):
            network.link(left, right, **settings)
        network.link(network.host(SENDER), switches[0], **settings)
        network.link(network.host(RECEIVER), switches[-1], **settings)
        return network

    def __str__(self) -> str:
        return f"{self.shape}, {self.switches} switches, {self.rate_bps / 1e6:.3g} Mbit/s, {self.delay_ms:g} ms"


def program_case(seed: int | str, shape: str) -> ProgramCase:
    """Return the case of `seed`."""
    draw = random.Random(seed)
    rate_bps = round(math.exp(draw.uniform(math.log(4e6), math.log(80e6))))
    payload = draw.randint(100, 1200)
    # At most 60 % of the line, so that nothing is lost in the network.
    least_gap_ms = (payload + 66) * 8 / (0.6 * rate_bps) * 1e3
    return ProgramCase(
        shape=shape,
        switches=draw.randint(1, 3),
        rate_bps=rate_bps,
        delay_ms=round(draw.uniform(0, 4), 3),
        gap_ms=max(draw.uniform(2, 8), least_gap_ms),
        payload=payload,
        seconds=draw.choice((1.0, 1.5, 2.0)),
    )


@dataclass(frozen=True)
class ProgramRun:
    """What a run gave, by name: rates in bit/s, times in seconds, shares of 1; and what the lab said of itself."""

    measured: Mapping[str, float]
    verdict: str
    reasons: Sequence[str]
    record: Mapping[str, object]


Disturbed = Callable[[tn.Lab], AbstractContextManager[object]]


def make(of: ProgramCase, disturbed: Disturbed | None = None, slow_receiver: float = 0.0) -> ProgramRun:
    """Run `of`, while `disturbed` holds. With `slow_receiver`, the receiver that counts rests for so many times the
    time between two datagrams after each, and its socket holds little."""
    with of.network().emulate() as lab:
        lab.wait([lab.start(tn.apps.ping(SENDER, RECEIVER))])
        server = _server(lab, of, slow_receiver)
        time.sleep(_READY_S)
        lab.fidelity(reset=True)
        with (disturbed or (lambda _: nullcontext()))(lab):
            client = _client(lab, of)
        record = lab.fidelity()
        told = b""
        if server is not None:
            server.terminate()
            told, _ = server.communicate()
    received = json.loads(told)["received"] if of.shape in ("counted", "ffmpeg") else None
    verdict = record.verdict()
    measured = _measured(of, client, received)
    return ProgramRun(measured, verdict.state, verdict.reasons, kept(record))


def _python(script: str, *arguments: object) -> list[str]:
    return [sys.executable, "-I", "-c", script, *map(str, arguments)]


def _server(lab: tn.Lab, of: ProgramCase, slow: float) -> Job | None:
    resting_s = slow * of.gap_ms / 1e3
    command = {
        "iperf3": ["iperf3", "-s", "-p", str(_PORT)],
        "echo": _python(_ECHO_SERVER, _PORT),
        "http": _python(_HTTP_SERVER, _PORT),
        "counted": _python(_COUNTER, _PORT, resting_s, 8192 if slow else 1 << 20),
        "ffmpeg": _python(_COUNTER, _PORT, resting_s, 8192 if slow else 1 << 20),
    }.get(of.shape)
    return lab[RECEIVER].popen(command) if command is not None else None


def _client(lab: tn.Lab, of: ProgramCase) -> str:
    """Make the traffic; what its sender told of it."""
    to, seconds, gap_s = lab[RECEIVER].ip, of.seconds, of.gap_ms / 1e3
    if of.shape == "tcp":
        flow = lab.start(tn.apps.tcp_bulk(SENDER, RECEIVER, duration=f"{seconds} s"))
        lab.wait([flow], until=tn.units.Picoseconds(lab.now_ps() + int((seconds + 5) * 1e12)))
        return json.dumps(_received(lab, flow.report().bytes))
    place = f"udp://{to}:{_PORT}?pkt_size=1316"
    video = ["-f", "lavfi", "-i", "testsrc=size=320x240:rate=25", "-t", str(seconds), "-c:v", "mpeg2video"]
    command = {
        "iperf3": ["iperf3", "-c", to, "-p", str(_PORT), "-t", str(max(round(seconds), 1)), "-J"],
        "echo": _python(_ECHO_CLIENT, to, _PORT, gap_s, seconds, max(of.payload, 40)),
        "http": _python(_HTTP_CLIENT, to, _PORT, seconds),
        "counted": _python(_SENDER, to, _PORT, gap_s, seconds, of.payload),
        "ffmpeg": ["ffmpeg", "-loglevel", "error", "-re", *video, "-b:v", "1M", "-f", "mpegts", place],
    }[of.shape]
    return lab[SENDER].run(command, timeout=f"{seconds + 10} s", check=True).stdout


def _received(lab: tn.Lab, sent: int) -> dict[str, float]:
    """What the receiver of TCP had of `sent` bytes, and in what time: what its sender has handed to the kernel says
    nothing of the line."""
    for _ in range(500):
        flows = [flow for report in lab.reports() for flow in report.flows]
        [sink] = [flow for flow in flows if flow.protocol == "tcp" and flow.role == "sink"]
        if sink.bytes >= sent:
            break
        time.sleep(0.01)
    return {"bytes": sink.bytes, "seconds": ((sink.end_ps or 0) - (sink.start_ps or 0)) / 1e12}


def _measured(of: ProgramCase, client: str, received: int | None) -> dict[str, float]:
    told = json.loads(client) if client.strip() else {}
    if of.shape == "tcp":
        return {"rate": told["bytes"] * 8 / told["seconds"]}
    if of.shape == "iperf3":
        return {"rate": told["end"]["sum_received"]["bits_per_second"]}
    if of.shape == "counted":
        return {"loss": 1 - (received or 0) / told["sent"]}
    if of.shape == "ffmpeg":
        return {"packets": float(received or 0)}
    trips = sorted(told["trips"]) or [10**10]
    found = {"mean round trip": statistics.fmean(trips) / 1e9}
    found["99 % of round trips"] = trips[min(math.ceil(0.99 * len(trips)) - 1, len(trips) - 1)] / 1e9
    if of.shape == "http":
        # Each page follows the one before: a late answer is a page less.
        return {"pages": len(trips) / of.seconds, **found}
    return {"loss": 1 - len(told["trips"]) / told["sent"], **found}


def _allowed(name: str, right: float, doubtful: bool) -> float:
    """How far a figure may be from what is right: of loss half a percent, of times 5 % or a millisecond, of the largest
    of a hundred of them 3 ms more, for those vary with what the host's programs do; of all else 5 %. Of a `doubtful`
    run the loss may be 5 % off and a round trip, which is two delays, 200 ms."""
    if doubtful:
        return max(0.05 * right, {"loss": 0.05}.get(name, 0.2 if "round trip" in name else 0.0))
    if name == "loss":
        return 0.005
    if "round trip" in name:
        return max(0.05 * right, 1e-3) + (3e-3 if "99" in name else 0.0)
    return 0.05 * right


def differences(
    run: Mapping[str, float], right: Mapping[str, float], share: float = 1.0, doubtful: bool = False
) -> list[str]:
    """What of `run` is farther from `right` than `share` of what is allowed, of a valid run or of a doubtful one, in
    words."""
    return [
        f"{name}: {value:.6g} for {right[name]:.6g}"
        for name, value in run.items()
        if abs(value - right[name]) > share * _allowed(name, right[name], doubtful)
    ]


def reference(of: ProgramCase) -> Mapping[str, float] | None:
    """What `of` gives when it is left alone: the mean of two valid runs; ``None`` where one is not, or they differ."""
    first, second = make(of), make(of)
    if {first.verdict, second.verdict} != {"valid"} or differences(first.measured, second.measured, 0.5):
        return None
    return {name: (value + second.measured[name]) / 2 for name, value in first.measured.items()}


def available(shape: str) -> bool:
    """Return whether this machine has the program of `shape`."""
    return shape not in ("iperf3", "ffmpeg") or shutil.which(shape) is not None
