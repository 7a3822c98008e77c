"""Traffic of a study by real programs: generators, iperf 2, wget, ApacheBench, Python's HTTP server, ping, ffmpeg and
VLC in the hosts of a lab."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from twinnet import programs
from twinnet.errors import BadValue, NotAvailable
from twinnet.lab.lab import Lab
from twinnet.programs.generated import generated
from twinnet.programs.iperf2 import reported_interval_ps
from twinnet.programs.transfer import RunningTransfer, Server, Transfer, require
from twinnet.study.collect import PlannedFlow
from twinnet.study.own_clip import clip_file
from twinnet.study.path_mtu import PathMtus
from twinnet.study.specification import Traffic
from twinnet.study.traffic import EstimatingTool
from twinnet.traffic.bandwidth import BANDWIDTH_PORT
from twinnet.traffic.rtp import USUAL_RATE
from twinnet.units import BitsPerSecond, Bytes, Picoseconds

__all__ = ["ProgramTraffic", "check_files", "check_programs", "program_transfer"]

FIRST_FLOW_NUMBER = 1_000_000
"""Numbers of programs' flows begin here, far from those that the lab gives to apps."""
_USUAL_PAYLOAD = Bytes(1470)
_FRAMES_PER_SECOND = 60


ServerBy = Literal["twinnet", "python"]


def check_programs(traffic: Sequence[Traffic]) -> None:
    """Raise `ProgramMissing` or `NotAvailable` when traffic by programs cannot be started on this machine."""
    for number, entry in enumerate(traffic):
        if entry.clip is not None:
            clip_file(entry.clip)
        if entry.using == "programs" and entry.app == "rtp":
            # Its clip is made when it is needed.
            for program in dict.fromkeys(("ffmpeg", entry.streamer or "ffmpeg", entry.receiver or "ffmpeg")):
                require(program)
        elif entry.using == "programs" and entry.app == "video":
            # The clip is ffmpeg's, whoever watches it; over RTSP VLC serves it.
            server = ("vlc",) if entry.over == "rtsp" else ()
            for program in dict.fromkeys(("ffmpeg", entry.viewer or "ffmpeg", *server)):
                require(program)
        elif entry.using == "programs":
            require(program_transfer(entry, entry.sources[0], number, 0).program)


def check_files(traffic: Sequence[Traffic]) -> None:
    """Raise `BadValue` when programs of `traffic` need files of this machine, and so do not run on another."""
    bound = [entry.name for entry in traffic if entry.using == "programs" and not _runs_elsewhere(entry)]
    if bound:
        raise BadValue(
            f"these programs need files of this machine, and their hosts are on others: traffic {', '.join(bound)}",
            "write 'using: apps' there (in a study with the parameter tools: --set tools=apps); iperf, ping and one"
            " fetch by wget run on other machines",
        )


def _runs_elsewhere(entry: Traffic) -> bool:
    if entry.generator is not None:
        return False
    sends = entry.sends
    fetches_once = sends.get("count", 1) == 1 and sends.get("connections", 1) == 1 and sends.get("duration") is None
    return entry.app in ("udp", "tcp", "ping") or (entry.app == "http" and fetches_once)


def program_transfer(
    entry: Traffic, source: str, number: int, interval_ps: int, server_by: ServerBy = "twinnet"
) -> Transfer:
    """The program that makes one flow of `entry`; raises `NotAvailable` for what the programs cannot do. One fetch is
    from the server `server_by`; several are always from Python's."""
    if entry.generator is not None:
        return _generated(entry, source, number, entry.generator)
    if entry.tool is not None:
        return _estimated(entry, source, number, entry.tool)
    to, port, sends, control = entry.to, entry.port or 0, entry.sends, entry.congestion_control
    duration: Picoseconds | None = sends.get("duration")
    rate: BitsPerSecond | None = sends.get("rate")
    interval = Picoseconds(reported_interval_ps(interval_ps))
    iperf = functools.partial(programs.iperf2, source, to, port=port, interval=interval, flow=number)
    match entry.app:
        case "udp" if sends.get("process", "constant") == "constant" and rate is not None and duration is not None:
            return iperf(rate=rate, payload=sends.get("payload", _USUAL_PAYLOAD), duration=duration)
        case "tcp" if duration is not None:
            return iperf(duration=duration, congestion_control=control)
        case "http" if sends.get("count", 1) == 1 and sends.get("connections", 1) == 1 and duration is None:
            return programs.wget(
                source, to, size=sends["bytes"], port=port, flow=number, congestion_control=control, server_by=server_by
            )
        case "http":
            return programs.apache_bench(
                source,
                to,
                size=sends["bytes"],
                count=sends.get("count", 1),
                connections=sends.get("connections", 1),
                duration=duration,
                port=port,
                flow=number,
                congestion_control=control,
                server_by="python",
            )
        case "video" if duration is not None:
            return _watched(entry, source, number, duration)
        case "rtp" if duration is not None:
            return _streamed(entry, source, number, duration)
        case "ping":
            pace = sends.get("interval", Picoseconds(10**12))
            return programs.ping(source, to, count=sends.get("count", 1), interval=pace, flow=number)
        case _:
            raise NotAvailable(
                f"the traffic {entry.name} asks for what the program for {entry.app} cannot do",
                "programs send constant rates for a duration, or fetch once; for the rest write using: apps",
            )


def _generated(entry: Traffic, source: str, number: int, generator: str) -> Transfer:
    payload_bytes, packets_per_second = entry.generated_rate
    return generated(
        source,
        entry.to,
        generator,
        packets_per_second=packets_per_second,
        payload_bytes=payload_bytes,
        duration_s=int(entry.sends["duration"]) // 10**12,
        poisson=entry.sends.get("process", "constant") == "poisson",
        processors=entry.processors or None,
        flow=number,
    )


def _estimated(entry: Traffic, source: str, number: int, tool: EstimatingTool) -> Transfer:
    return programs.estimate_by(
        source,
        entry.to,
        tool.command,
        reads=tool.reads,
        server=tool.server,
        port=entry.port or BANDWIDTH_PORT,
        listens=tool.listens,
        unit=tool.unit,
        flow=number,
    )


def _watched(entry: Traffic, source: str, number: int, duration: Picoseconds) -> Transfer:
    rate = BitsPerSecond(entry.sends["rates"][0])
    film = None if entry.clip is None else clip_file(entry.clip)
    return programs.watch(
        source,
        entry.to,
        programs.clip_to_watch(duration, rate, film),
        duration=duration,
        rate=rate,
        port=entry.port or 0,
        flow=number,
        congestion_control=entry.congestion_control,
        by=entry.viewer or "ffmpeg",
        over="rtsp" if entry.over == "rtsp" else "http",
    )


def _streamed(entry: Traffic, source: str, number: int, duration: Picoseconds) -> Transfer:
    frames = int(entry.sends.get("frames_per_second", _FRAMES_PER_SECOND))
    return programs.stream(
        source,
        entry.to,
        _clip(duration, entry.sends.get("rate") or USUAL_RATE, frames, entry.clip),
        by=entry.streamer or "ffmpeg",
        received_by=entry.receiver or "ffmpeg",
        over=entry.over or "rtp",
        port=entry.port,
        flow=number,
    )


@functools.cache
def _clips() -> tempfile.TemporaryDirectory[str]:
    """The folder of this process' clips; it goes when the process ends."""
    return tempfile.TemporaryDirectory(prefix="twinnet-clips-")


@functools.cache
def _clip(duration: Picoseconds, rate: BitsPerSecond, frames_per_second: int, own: str | None) -> programs.Clip:
    """A clip that all runs of a study share: the same pictures meet all networks."""
    film = "" if own is None else own.partition("@")[2]
    name = f"{duration}-{rate}-{frames_per_second}-{film}.ts".replace(" ", "")
    return programs.make_clip(
        Path(_clips().name, name),
        duration=duration,
        rate=rate,
        frames_per_second=frames_per_second,
        source=None if own is None else clip_file(own),
    )


class ProgramTraffic:
    """The programs of one run. Senders to the same port of a host share one server, as with the built-in apps.

    Parameters
    ----------
    lab
        Where they run.
    traffic
        The study's traffic; what uses apps is passed over.
    interval_ps
        How finely programs report, where they can.
    """

    def __init__(self, lab: Lab, traffic: Sequence[Traffic], interval_ps: int) -> None:
        if not lab.shares_files:
            check_files(traffic)
        self.lab = lab
        # Hosts of the virtual clock that run programs run no apps, so no built-in server either.
        by: ServerBy = "python" if lab.clock == "virtual" else "twinnet"
        self.planned: list[tuple[Traffic, str, Transfer]] = [
            (entry, source, program_transfer(entry, source, FIRST_FLOW_NUMBER + place * 1000 + index, interval_ps, by))
            for place, entry in enumerate(traffic)
            if entry.using == "programs"
            for index, source in enumerate(entry.sources)
        ]
        self.servers: dict[tuple[str, str, int], Server] = {}
        self.running: list[tuple[Traffic, str, RunningTransfer]] = []
        self.jobs: set[int] = set()

    def serve(self) -> None:
        """Start the servers and wait until they listen; those that begin to send by themselves are left to
        :meth:`start`."""
        for _, _, transfer in self.planned:
            if not transfer.server_begins:
                self._serve(transfer)

    def _serve(self, transfer: Transfer) -> Server:
        key = _server_of(transfer)
        if key not in self.servers:
            self.servers[key] = programs.serve(self.lab, transfer)
        return self.servers[key]

    def start(self, zero_ps: int, wait_until: Callable[[int], None]) -> None:
        """Start the clients, each at its moment after `zero_ps`; `wait_until` waits for a moment of the lab's clock."""
        if not self.planned:
            return
        before = {int(job["job"]) for job in self.lab.jobs()}
        for entry, source, transfer in sorted(self.planned, key=lambda one: one[0].starts_ps[one[1]]):
            wait_until(zero_ps + entry.starts_ps[source])
            running = RunningTransfer(self.lab, transfer, self._serve(transfer))
            self.running.append((entry, source, running))
        self.jobs = {int(job["job"]) for job in self.lab.jobs()} - before

    def ended(self) -> bool:
        """Return True if all clients have ended."""
        if not self.running:
            return True
        return all(
            job["state"] not in ("starting", "running") for job in self.lab.jobs() if int(job["job"]) in self.jobs
        )

    def stop(self) -> None:
        """End clients and servers now."""
        for _, _, running in self.running:
            running.stop()

    def flows(self) -> list[PlannedFlow]:
        """Return the measurements of the programs; call it when all clients have ended, since it ends the servers.

        Raises
        ------
        ProgramFailed
            A program failed.
        ReportUnreadable
            A report does not have the form that is known.
        """
        found: list[PlannedFlow] = []
        paths = PathMtus(self.lab.layout.links)
        for entry, source, running in self.running:
            address = self.lab.layout.address(source)
            flow = PlannedFlow(entry, source, running.transfer.flow, address, path_mtu=paths.between(source, entry.to))
            found.append(dataclasses.replace(flow, reports=tuple(running.wait())))
        return found


def _server_of(transfer: Transfer) -> tuple[str, str, int]:
    return transfer.target, transfer.protocol, transfer.port
