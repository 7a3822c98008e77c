"""The measurements of a network: pings between all hosts, and iperf between two."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from twinnet.mininet.base_node import Node
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.log import debug, error, info, output
from twinnet.mininet.util import fmtBps, numCores, waitListening
from twinnet.mininet.virtual_time import on_virtual_clock

__all__ = ["Measuring", "PingResult"]

PingResult = tuple[int, int, float, float, float, float]
"""Sent, received, and the round trips in ms: least, mean, greatest, deviation."""
_FAILED: PingResult = (1, 0, 0, 0, 0, 0)
_COUNTS = re.compile(r"(\d+) packets transmitted, (\d+)( packets)? received")
_TRIPS = re.compile(r"rtt min/avg/max/mdev = (\d+\.\d+)/(\d+\.\d+)/(\d+\.\d+)/(\d+\.\d+) ms")
_IPERF_FIELDS = ("date", "cip", "cport", "sip", "sport", "ipver", "interval", "sent", "rate")
_IPERF_PATIENCE_MS = 5000
_IPERF_WAITS = 6


class Measuring:
    """What a network can measure; `hosts` are its hosts."""

    hosts: list[Node]

    @staticmethod
    def _parsePing(pingOutput: str) -> tuple[int, int]:
        """Return how many packets were sent and received."""
        if "connect: Network is unreachable" in pingOutput:
            return 1, 0
        found = _COUNTS.search(pingOutput)
        if found is None:
            error(f"*** Error: could not parse ping output: {pingOutput}\n")
            return 1, 0
        return int(found[1]), int(found[2])

    def ping(self, hosts: Sequence[Node] | None = None, timeout: str | float | None = None) -> float:
        """Ping between all of `hosts` (default: all), once each way; return the loss in per cent.

        Parameters
        ----------
        timeout
            How long an answer is waited for, in seconds.
        """
        if not hosts:
            hosts = self.hosts
            output("*** Ping: testing ping reachability\n")
        sent, lost = 0, 0
        options = f"-W {timeout}" if timeout else ""
        for node in hosts:
            output(f"{node.name} -> ")
            for dest in hosts:
                if node is dest:
                    continue
                asked, received = 0, 0
                if dest.intfs:
                    asked, received = self._parsePing(node.cmd(f"LANG=C ping -c1 {options} {dest.IP()}") or "")
                sent += asked
                lost += asked - received
                output(f"{dest.name} " if received else "X ")
            output("\n")
        if not sent:
            output("*** Warning: No packets sent\n")
            return 0
        loss = 100.0 * lost / sent
        output(f"*** Results: {int(loss)}% dropped ({sent - lost}/{sent} received)\n")
        return loss

    @staticmethod
    def _parsePingFull(pingOutput: str) -> PingResult:
        """Return counts and round trips."""
        found, trips = _COUNTS.search(pingOutput), _TRIPS.search(pingOutput)
        if re.search(r"[uU]nreachable", pingOutput):
            return _FAILED
        if found is None or (trips is None and int(found[2])):
            error(f"*** Error: could not parse ping output: {pingOutput}\n")
            return _FAILED
        if trips is None:
            return _FAILED
        least, mean, most, deviation = (float(one) for one in trips.groups())
        return int(found[1]), int(found[2]), least, mean, most, deviation

    def pingFull(
        self, hosts: Sequence[Node] | None = None, timeout: str | float | None = None
    ) -> list[tuple[Node, Node, PingResult]]:
        """Ping between all of `hosts` (default: all) and return the results with their round trips."""
        if not hosts:
            hosts = self.hosts
            output("*** Ping: testing ping reachability\n")
        results: list[tuple[Node, Node, PingResult]] = []
        options = f"-W {timeout}" if timeout else ""
        for node in hosts:
            output(f"{node.name} -> ")
            for dest in hosts:
                if node is not dest:
                    result = self._parsePingFull(node.cmd(f"ping -c1 {options} {dest.IP()}") or "")
                    results.append((node, dest, result))
                    output(f"{dest.name} " if result[1] else "X ")
            output("\n")
        output("*** Results: \n")
        for node, dest, (sent, received, *trips) in results:
            output(f" {node}->{dest}: {sent}/{received}, ")
            output("rtt min/avg/max/mdev {:0.3f}/{:0.3f}/{:0.3f}/{:0.3f} ms\n".format(*trips))
        return results

    def pingAll(self, timeout: str | float | None = None) -> float:
        """Ping between all hosts; return the loss in per cent."""
        return self.ping(timeout=timeout)

    def pingPair(self) -> float:
        """Ping between the first two hosts; return the loss in per cent."""
        return self.ping(hosts=self.hosts[:2])

    def pingAllFull(self) -> list[tuple[Node, Node, PingResult]]:
        """Ping between all hosts; return the results with their round trips."""
        return self.pingFull()

    def pingPairFull(self) -> list[tuple[Node, Node, PingResult]]:
        """Ping between the first two hosts; return the results with their round trips."""
        return self.pingFull(hosts=self.hosts[:2])

    @staticmethod
    def _parseIperf(iperfOutput: str) -> str:
        """Return the last rate that iperf told to people, such as ``9.5 Mbits/sec``; empty when there is none."""
        found: list[str] = re.findall(r"([\d.]+ \w+/sec)", iperfOutput)
        if not found:
            error("could not parse iperf output: " + iperfOutput)
        return found[-1] if found else ""

    @staticmethod
    def _iperfVals(iperfcsv: str, serverip: str) -> dict[str, str]:
        """Return the last line of iperf's report (``-y C``) by fields, the client's end first."""
        values: dict[str, str] = {}
        for line in iperfcsv.strip().split("\n"):
            if "," in line:
                values = dict(zip(_IPERF_FIELDS, line.strip().split(","), strict=False))
                if values.get("cip") == serverip:
                    values["cip"], values["sip"] = values["sip"], values["cip"]
                    values["cport"], values["sport"] = values["sport"], values["cport"]
        return values

    def iperf(
        self,
        hosts: Sequence[Node] | None = None,
        l4Type: str = "TCP",
        udpBw: str = "10M",
        fmt: str | None = None,
        seconds: float = 5,
        port: int = 5001,
    ) -> list[str]:
        """Run iperf from the first to the second of `hosts` (default: the first and the last), and return the rates
        that server and client tell.

        Parameters
        ----------
        l4Type
            ``TCP`` or ``UDP``.
        udpBw
            The rate of UDP, as iperf takes it; it stands first in the result then.
        fmt
            The prefix of the unit of the rates, such as ``M``.
        seconds
            How long.
        port
            The server's port.
        """
        client, server = hosts or [self.hosts[0], self.hosts[-1]]
        output("*** Iperf: testing", l4Type, "bandwidth between", client, "and", server, "\n")
        server.cmd("killall -9 iperf")
        udp = l4Type == "UDP"
        words = f"iperf -y C -p {port} " + ("-u " if udp else "")
        server.sendCmd(words + "-s")
        address = server.IP()
        if not udp and not waitListening(client, address, port):
            raise Exception(f"Could not connect to iperf on port {port}")
        report = client.cmd(f"{words}-t {seconds} -c {address} " + (f"-b {udpBw} " if udp else "")) or ""
        sent = self._iperfVals(report, address)
        debug("iperf client output:", report, sent)
        heard, received = "", dict[str, str]()
        for _ in range(_IPERF_WAITS):
            heard += server.monitor(timeoutms=_IPERF_PATIENCE_MS)
            received = self._iperfVals(heard, address)
            if received and received["sport"] == sent.get("sport") and int(received["rate"]) > 0:
                break
        debug("iperf server output:", heard, received)
        server.sendInt()
        server.waitOutput()
        if "rate" not in sent or "rate" not in received:
            raise Exception(f"iperf between {client} and {server} told no rates: {report}{heard}")
        result = [fmtBps(received["rate"], fmt or ""), fmtBps(sent["rate"], fmt or "")]
        if udp:
            result.insert(0, udpBw)
        output(f"*** Results: {result}\n")
        return result

    def runCpuLimitTest(self, cpu: float, duration: int = 5) -> list[float]:
        """Run endless loops in all hosts, and return the share of all processors that each host used in each second,
        in per cent.

        Parameters
        ----------
        cpu
            The share that hosts are limited to; as many loops run as can use it.
        duration
            Seconds.

        On the virtual clock, where endless loops would stand for ever, there are no shares, and this is told.
        """
        info(f"*** Testing CPU {cpu * 100:.0f}% bandwidth limit\n")
        if on_virtual_clock():
            said = "runCpuLimitTest is left out: on the virtual clock programs take no processor time"
            FABRIC.advice.tell("cpu test", said, "leave --clock virtual away to measure shares of processors")
            return []
        cores = numCores()
        loops: dict[Node, list[int]] = {host: [] for host in self.hosts}
        for host, pids in loops.items():
            for _ in range(ceil(cores * cpu)):
                host.cmd("while true; do a=1; done &")
                pids.append(int((host.cmd("echo $!") or "").strip()))
        shares: dict[Node, list[float]] = {host: [] for host in self.hosts}
        before = {host: _processor_time_s(pids) for host, pids in loops.items()}
        begin_s = time.monotonic()
        for _ in range(duration):
            time.sleep(1)
            now_s = time.monotonic()
            for host, pids in loops.items():
                used_s = _processor_time_s(pids)
                shares[host].append((used_s - before[host]) / (now_s - begin_s) / cores * 100)
                before[host] = used_s
            begin_s = now_s
        for host, pids in loops.items():
            for pid in pids:
                host.cmd(f"kill -9 {pid}")
        found = [share for one in shares.values() for share in one]
        output(f"*** Results: {found}\n")
        return found

    def monitor(
        self, hosts: Sequence[Node] | None = None, timeoutms: int = -1
    ) -> Iterator[tuple[Node | None, str | None]]:
        """Yield host and line of what the shells of `hosts` (default: all) write.

        Parameters
        ----------
        timeoutms
            After so many milliseconds without output ``(None, None)`` is yielded; -1: never.
        """
        poller = select.poll()
        for host in hosts if hosts is not None else self.hosts:
            poller.register(host.stdout)
        while True:
            ready = poller.poll(timeoutms)
            for descriptor, event in ready:
                host: Any = Node.fdToNode(descriptor)
                if event & select.POLLIN and (line := host.readline()) is not None:
                    yield host, line
            if not ready and timeoutms >= 0:
                yield None, None


def _processor_time_s(pids: Sequence[int]) -> float:
    """The processor time that processes have used: the 14th and 15th field of their ``stat`` (proc(5))."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
