"""Switches under control: how fast flows are taken, what they weigh, and how soon a controller is heard."""

from __future__ import annotations

import importlib.util
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import twinnet as tn
from twinnet._core import BareSwitch
from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Channel
from twinnet_conformance.frames import build
from twinnet_conformance.open_vswitch import OpenVSwitch, SocketConnection

from bench.arena import Arena
from bench.echo_controller import EchoController
from bench.figure import Figure
from bench.machine import missing
from bench.quiet import Quiet
from bench.rounds import SiteFactory, rounds
from bench.sites import lab_site
from bench.tcp_flow import tcp_flow

TITLE = "Switches under control"
MEASURES = ("bench/control.py", "crates/linux", "crates/openflow", "crates/switch", "python/twinnet/control")

FLOWS = 100_000
FLOWS_TARGET_S = 2.0
MANY_FLOWS = 1_000_000
SWITCHES = 100
JOIN_TARGET_S = 2.0
HOLD_S = 12.0
"""Longer than a switch waits before it asks whether its controller is there, and than it waits for the answer."""
PATIENCE_S = 60.0
PINGS = 200
BARRIERS = 2000
_OVS = "Open vSwitch, user space"
_OS_KEN = Path(__file__).parent / "os_ken_learning.py"


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    repetitions = 1 if quick else 3
    other = missing("ovs") is None
    yield from _installation(repetitions, quiet, other)
    yield _weight(quick, quiet)
    yield _look_ups(repetitions, quiet)
    yield _joining(repetitions, quiet)
    yield _round_trip(repetitions, quiet, other)
    yield _os_ken_round_trip(repetitions, quiet, other)
    yield _throughput(quick, quiet)


def flow_bytes(first: int, count: int) -> bytes:
    """Return flow-mods, each with an address of its own."""
    template = of.flow_mod({"eth_type": 0x0800, "ipv4_dst": 0}, of.apply_actions(of.output(2)), priority=5)
    head = bytes([4, of.FLOW_MOD]) + (8 + len(template.body)).to_bytes(2)
    # The address is the last field of the match: type, length, one field of 6 bytes, then its header.
    at = 40 + 4 + 6 + 4
    before, after = template.body[:at], template.body[at + 4 :]
    return b"".join(
        head + number.to_bytes(4) + before + number.to_bytes(4) + after for number in range(first, first + count)
    )


@dataclass(frozen=True)
class _Installed:
    """What one connection came to."""

    flows_s: float
    """For the flows and a barrier."""
    barriers_us: Sequence[float]
    """For each of the barriers after them, in the order of their length."""

    def barrier_us(self, share: float) -> float:
        """Return what this share of the barriers kept."""
        return self.barriers_us[int(share * (len(self.barriers_us) - 1))]


def _install(connection: SocketConnection) -> _Installed:
    channel = Channel(connection, of.VERSION, PATIENCE_S)
    channel.greet()
    channel.barrier()
    data = flow_bytes(0, FLOWS)
    begin = time.perf_counter()
    connection.send(data)
    channel.barrier()
    taken = time.perf_counter() - begin
    if errors := channel.take(of.ERROR):
        raise OSError(f"flows were refused: {of.read_refusal(errors[0])}")
    barriers: list[float] = []
    for _ in range(BARRIERS):
        begin = time.perf_counter()
        channel.barrier()
        barriers.append(1e6 * (time.perf_counter() - begin))
    return _Installed(taken, sorted(barriers))


def _installation(repetitions: int, quiet: Quiet, other: bool) -> Iterator[Figure]:
    ours: list[_Installed] = []
    theirs: list[_Installed] = []
    for _ in range(repetitions):
        quiet.wait()
        port = _free_port()
        with _pair(listen=f"ptcp:{port}").emulate():
            connection = SocketConnection(socket.create_connection(("127.0.0.1", port)))
            ours.append(_install(connection))
            connection.close()
        if other:
            quiet.wait()
            switch = OpenVSwitch()
            try:
                switch.reset()
                theirs.append(_install(switch.connect(of.VERSION)))
            finally:
                switch.stop()
    flows = [one.flows_s for one in ours]
    peers = {_OVS: [one.flows_s for one in theirs]} if theirs else {}
    strain = median(flows) / min(FLOWS_TARGET_S, *(median(one) for one in peers.values()), FLOWS_TARGET_S)
    name, target = f"{FLOWS:,} flow-mods and a barrier", "within 2, and Open vSwitch's"
    yield Figure(name, "s", flows, peers, target, strain <= 1, strain=strain)
    usual = [one.barrier_us(0.5) for one in ours]
    beside = {_OVS: [one.barrier_us(0.5) for one in theirs]} if theirs else {}
    strain = median(usual) / (2 * median(beside[_OVS])) if beside else None
    met = None if strain is None else strain <= 1
    note = f"median of {BARRIERS:,}; Open vSwitch's answer does not mean that frames meet it yet"
    yield Figure("a barrier", "us", usual, beside, "within twice Open vSwitch's", met, note, strain=strain)
    rare = [one.barrier_us(0.99) for one in ours]
    beside = {_OVS: [one.barrier_us(0.99) for one in theirs]} if theirs else {}
    yield Figure("a barrier, the longest but one in a hundred", "us", rare, beside)


def _weight(quick: bool, quiet: Quiet) -> Figure:
    quiet.wait()
    count = FLOWS if quick else MANY_FLOWS
    switch = BareSwitch(2)
    switch.open(1)
    switch.say(1, bytes([4, 0, 0, 8, 0, 0, 0, 1]))
    before = _resident_bytes()
    for first in range(0, count, 10_000):
        switch.say(1, flow_bytes(first, 10_000))
    heavier = _resident_bytes() - before
    switch.heard()
    switch.say(1, bytes([4, of.BARRIER_REQUEST, 0, 8, 0, 0, 0, 9]))
    answers = switch.heard()
    if len(answers) != 1 or answers[0][1][1] != of.BARRIER_REPLY:
        raise OSError(f"{count} flows were not taken")
    note = f"{count:,} flows of one address and one action: {heavier / 1e6:,.0f} MB"
    return Figure("memory of a flow", "B", [heavier / count], note=note)


def _look_ups(repetitions: int, quiet: Quiet) -> Figure:
    """Frames that no cache knows, among many rules of 16 masks and among few of four."""
    ratios: list[float] = []
    for _ in range(repetitions):
        quiet.wait()
        seconds = {rules: _look_up_seconds(rules) for rules in (10, 10_000)}
        ratios.append(seconds[10] / seconds[10_000])
    met, strain = median(ratios) >= 0.5, 0.5 / median(ratios)
    return Figure("look-ups among 10,000 rules / among 10", "", ratios, {}, "at least half", met, strain=strain)


def _look_up_seconds(rules: int) -> float:
    switch = BareSwitch(4)
    switch.open(1)
    data = bytes([4, 0, 0, 8, 0, 0, 0, 1])
    kinds = 16 if rules > 100 else 4
    for number in range(rules):
        kind, place = number % kinds, number // kinds
        length = 16 + kind % 4 * 4
        mask = 0xFFFFFFFF << 32 - length & 0xFFFFFFFF
        address = (0x0A000000 + place * 0x10000 % 0x40000000 + place % 256 * 0x100) & mask
        conditions: dict[str, int | tuple[int, int]] = {"eth_type": 0x0800, "ipv4_dst": (address, mask)}
        if kind & 4:
            conditions["ipv4_src"] = (place << 8 & 0xFF00, 0xFF00)
        if kind & 8:
            conditions |= {"ip_proto": 17, "udp_dst": 1000 + place % 1000}
        message = of.flow_mod(conditions, of.apply_actions(of.output(2)), priority=100 + number % 7)
        data += bytes([4, of.FLOW_MOD]) + (8 + len(message.body)).to_bytes(2) + number.to_bytes(4) + message.body
    switch.say(1, data)
    frame = build(ip_proto=17)
    frames = [
        frame[:26] + struct.pack("!II", number, 0x0A000000 + number * 2_654_435_761 % 0x02000000) + frame[34:]
        for number in range(100_000)
    ]
    begin = time.perf_counter()
    switch.send_all(1, frames)
    return time.perf_counter() - begin


def _joining(repetitions: int, quiet: Quiet) -> Figure:
    taken: list[float] = []
    for _ in range(repetitions):
        quiet.wait()
        listener = socket.create_server(("127.0.0.1", 0), backlog=SWITCHES)
        port = listener.getsockname()[1]
        net = tn.Network()
        for number in range(1, SWITCHES + 1):
            net.switch(f"s{number}", controllers=[f"tcp:127.0.0.1:{port}"], fail_mode="secure")
        with EchoController(listener, frames=False) as controller:
            begin = time.monotonic()
            with net.emulate():
                taken.append(controller.wait_for(SWITCHES, PATIENCE_S) - begin)
                time.sleep(HOLD_S)
                if controller.connected < SWITCHES:
                    raise OSError(f"{SWITCHES - controller.connected} switches left again")
    note = f"from the start of the lab to the last switch's features; all held on for {HOLD_S:.0f} s afterwards"
    strain = median(taken) / JOIN_TARGET_S
    name = f"{SWITCHES} switches join one controller"
    return Figure(name, "s", taken, {}, "within 2", strain <= 1, note, strain=strain)


def _round_trip(repetitions: int, quiet: Quiet, other: bool) -> Figure:
    """A ping whose frames all go to the controller and back: two round trips of the control channel."""
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(repetitions):
        quiet.wait()
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        net = _pair(controllers=[f"tcp:127.0.0.1:{port}"], fail_mode="secure")
        with EchoController(listener, frames=True) as controller, net.emulate() as lab:
            controller.wait_for(1, PATIENCE_S)
            ours.append(_mean_us(lab["h1"].run(f"ping -q -c {PINGS} -i 0.01 h2").stdout))
        if other:
            quiet.wait()
            theirs.append(_their_round_trip())
    peers = {_OVS: theirs} if theirs else {}
    strain = median(ours) / median(theirs) if theirs else None
    met = None if strain is None else strain <= 1
    note = "the same controller, in Python; to Open vSwitch by a Unix socket, to ours by TCP"
    name, target = "ping through the controller", "not above Open vSwitch's"
    return Figure(name, "us", ours, peers, target, met, note, strain=strain)


def _their_round_trip() -> float:
    with Arena() as arena:
        arena.start_open_vswitch()
        arena.host_pair_on_switch()
        listener = socket.socket(socket.AF_UNIX)
        # Open vSwitch connects to sockets of its own directory only.
        listener.bind(str(arena.seen_from_outside("/run/openvswitch/controller")))
        listener.listen()
        with EchoController(listener, frames=True) as controller:
            arena.run(["ovs-vsctl", "set-fail-mode", "s1", "secure"])
            arena.run(["ovs-vsctl", "set-controller", "s1", "unix:/var/run/openvswitch/controller"])
            arena.run(["ovs-vsctl", "set", "controller", "s1", "connection_mode=out-of-band"])
            controller.wait_for(1, PATIENCE_S)
            return _mean_us(arena.run(["ping", "-q", "-c", str(PINGS), "-i", "0.01", "10.99.0.2"], "h1"))


def _os_ken_round_trip(repetitions: int, quiet: Quiet, other: bool) -> Figure:
    """The same through a learning switch on os-ken that installs nothing; to both by TCP."""
    name = "ping through os-ken"
    if importlib.util.find_spec("os_ken") is None:
        return Figure(name, "us", [], note="os-ken is not installed")
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(repetitions):
        quiet.wait()
        port = _free_port()
        with _os_ken([sys.executable, str(_OS_KEN), str(port)]):
            net = _pair(controllers=[f"tcp:127.0.0.1:{port}"], fail_mode="secure")
            with net.emulate() as lab:
                ours.append(_asked_mean_us(lambda command, lab=lab: lab["h1"].run([*command, "h2"]).stdout))
        if other:
            quiet.wait()
            with Arena() as arena:
                arena.start_open_vswitch()
                arena.host_pair_on_switch()
                with _os_ken(arena.inside([sys.executable, str(_OS_KEN), str(port)])):
                    arena.run(["ovs-vsctl", "set-fail-mode", "s1", "secure"])
                    arena.run(["ovs-vsctl", "set-controller", "s1", f"tcp:127.0.0.1:{port}"])
                    arena.run(["ovs-vsctl", "set", "controller", "s1", "connection_mode=out-of-band"])
                    theirs.append(
                        _asked_mean_us(
                            lambda command, arena=arena: arena.run(
                                ["sh", "-c", f"{' '.join(command)} 10.99.0.2 || true"], "h1"
                            )
                        )
                    )
    peers = {_OVS: theirs} if theirs else {}
    strain = median(ours) / median(theirs) if theirs else None
    met = None if strain is None else strain <= 1
    note = f"mean of {PINGS} pings; a learning switch that installs nothing, so that each frame asks it"
    return Figure(name, "us", ours, peers, "not above Open vSwitch's", met, note, strain=strain)


@contextmanager
def _os_ken(command: Sequence[str]) -> Iterator[None]:
    """Run the controller; in an arena it is the child of what entered it, and ends with that."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        running.kill()
        running.wait()


def _asked_mean_us(run: Callable[[Sequence[str]], str]) -> float:
    """Return the mean of pings, once the first has come through; raises `TimeoutError`."""
    end = time.monotonic() + PATIENCE_S
    while " 0% packet loss" not in run(["ping", "-c", "1", "-W", "1"]):
        if time.monotonic() > end:
            raise TimeoutError(f"no ping came through os-ken within {PATIENCE_S:.0f} s")
    return _mean_us(run(["ping", "-q", "-c", str(PINGS), "-i", "0.01"]))


def _throughput(quick: bool, quiet: Quiet) -> Figure:
    """One TCP flow through a switch whose controller has installed its flows, and through a stand-alone one."""
    name = "throughput under control / stand-alone"
    if absent := missing("iperf3"):
        return Figure(name, "", [], note=absent)
    controlled = _pair(fail_mode="secure")
    controlled.controller(tn.control.LearningSwitch())
    sites: dict[str, SiteFactory] = {
        "controlled": lambda: lab_site("controlled", controlled),
        "stand-alone": lambda: lab_site("stand-alone", _pair()),
    }
    seconds, repetitions = (1, 3) if quick else (3, 5)
    found = rounds(sites, repetitions, quiet, lambda site: tcp_flow(site, seconds).received_bps / 1e9)
    alone = median(found["stand-alone"])
    ratio = median(found["controlled"]) / alone
    note = f"one TCP flow, medians of {repetitions} turns; stand-alone {alone:.3g} Gbit/s"
    return Figure(name, "", [ratio], target="at least 0.9", met=ratio >= 0.9, note=note, strain=0.9 / ratio)


def _pair(**settings: object) -> tn.Network:
    net = tn.Network()
    switch = net.switch("s1", **settings)  # pyright: ignore[reportArgumentType]
    for number in (1, 2):
        net.link(net.host(f"h{number}"), switch)
    return net


def _mean_us(told: str) -> float:
    found = re.search(r"= [0-9.]+/([0-9.]+)/", told)
    if found is None:
        raise OSError(f"ping did not tell its mean: {told[-300:]!r}")
    return 1000 * float(found[1])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
