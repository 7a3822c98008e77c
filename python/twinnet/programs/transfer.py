"""One run of an adapted program: its server in one host, its client in another, its reports at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import IO

from twinnet.errors import ProgramFailed, ProgramMissing
from twinnet.lab.lab import Lab
from twinnet.lab.listening import is_listening
from twinnet.lab.parts import Capture
from twinnet.lab_process.job import DEVNULL, Ending, Job
from twinnet.programs.processor_limit import ProcessorLimit
from twinnet.results.flow_report import FlowReport
from twinnet.traffic.app import App
from twinnet.units import Picoseconds

__all__ = ["Output", "RunningTransfer", "Server", "Transfer", "installed", "require", "require_all", "serve", "start"]

_LISTEN_PATIENCE_S = 10.0
_LISTEN_POLL_S = 0.02
_GRACE = "5 s"
_PATIENCE = ("1 s", _GRACE)
_PACKAGES = {
    "ab": "apache2-utils",
    "iperf": "iperf",
    "iperf3": "iperf3",
    "ITGSend": "d-itg",
    "mgen": "mgen",
    "wget": "wget",
    "ping": "iputils-ping",
    "ffmpeg": "ffmpeg",
    "vlc": "vlc-bin vlc-plugin-base",
}


@dataclass(frozen=True)
class Output:
    """The output that a transfer left for its parser.

    Parameters
    ----------
    client, server
        Standard output of both; ``""`` where there is none.
    errors
        Standard error of the client.
    client_end
        How the client ended.
    start_ps
        The lab's time when the client was started.
    capture
        The capture that the transfer asked for.
    """

    client: str
    server: str
    errors: str
    client_end: Ending
    start_ps: int
    capture: str | None = None

    @property
    def end_ps(self) -> int:
        """The lab's time when the client had ended."""
        return self.start_ps + round(self.client_end.elapsed_s * 1e12)


@dataclass(frozen=True)
class Transfer:
    """A program's traffic between two hosts, not yet started.

    Parameters
    ----------
    program
        The executable.
    client, target
        The host that it runs in and the host that it talks to.
    argv
        The client's program and arguments; ``{to}`` stands for the target's address, ``{from}`` for the client's.
    parse
        Makes the reports of what was written.
    server_argv
        The server's, written alike; ``None`` when it has none.
    server_app
        A built-in server that the client talks to instead.
    protocol, port
        Where the server listens.
    flow
        The flow's number in reports.
    may_fail
        Whether the client's exit status other than 0 is left to the parser.
    needs
        Other executables that have to be installed.
    linger_s
        How long the server goes on after the client has ended, for what is on its way.
    capture
        A host whose first interface is captured while the transfer lasts, and the file to write.
    server_begins
        Whether the server begins to send when it is started, not when it is asked: the client must be there at once.
    server_ends
        Whether the server ends by itself when its client has ended.
    processors
        The processor time that the client may take, in processors: it runs in a control group of its own, and enters it
        by the file that is its standard input.
    """

    program: str
    client: str
    target: str
    argv: tuple[str, ...]
    parse: Callable[[Transfer, Output], list[FlowReport]]
    server_argv: tuple[str, ...] | None = None
    server_app: App | None = None
    protocol: str = "tcp"
    port: int = 0
    flow: int = 0
    may_fail: bool = False
    needs: tuple[str, ...] = ()
    linger_s: float = 0.0
    capture: tuple[str, str] | None = None
    server_begins: bool = False
    server_ends: bool = False
    processors: float | None = None

    def without_server(self) -> Transfer:
        """Return the transfer without its server: another one, started by ``serve``, is used."""
        return replace(self, server_argv=None, server_app=None)


def installed(program: str) -> bool:
    """Return whether `program` is installed on this machine (hosts see the machine's files)."""
    return shutil.which(program) is not None


def require(program: str) -> None:
    """Raise `ProgramMissing` unless `program` is installed."""
    if not installed(program):
        package = _PACKAGES.get(program, program)
        raise ProgramMissing(f"{program} is not installed on this machine", f"install it: apt install {package}")


def require_all(transfer: Transfer) -> None:
    """Raise `ProgramMissing` unless all that `transfer` needs is installed."""
    for program in (transfer.program, *transfer.needs):
        require(program)


class Server:
    """A server that runs; end it with :meth:`end`."""

    def __init__(self, job: Job | None, output: IO[bytes] | None) -> None:
        self._job = job
        self._output = output
        self.text: str = ""

    def end(self) -> str:
        """End the server and return all that it wrote."""
        if self._job is not None and self._output is not None:
            # A program that waits for the network may need a signal twice (ffmpeg does).
            for patience in _PATIENCE:
                if self._job.poll() is None:
                    self._job.terminate()
                with contextlib.suppress(TimeoutError):
                    self._job.wait(patience)
                    break
            else:
                self._job.kill()
                self._job.wait(_GRACE)
            self.text = _text(self._output)
            self._job = None
        return self.text

    def finish(self) -> str:
        """Wait for a server that ends with its client, and return all that it wrote."""
        if self._job is not None:
            # A server that the client never reached would wait for ever.
            with contextlib.suppress(TimeoutError):
                self._job.wait(_GRACE)
        return self.end()


def _let_pass(lab: Lab, seconds: float) -> None:
    """Let `seconds` of the lab's time pass; on the virtual clock none passes by itself."""
    if lab.clock == "virtual":
        lab.run_until(Picoseconds(lab.now_ps() + round(seconds * 1e12)))
    else:
        time.sleep(seconds)


def serve(lab: Lab, transfer: Transfer) -> Server:
    """Start the server of `transfer` alone and wait until it listens, so that several clients can share it."""
    if transfer.server_app is not None:
        lab.start_receiver(transfer.server_app)
        return Server(None, None)
    if transfer.server_argv is None:
        return Server(None, None)
    if lab.shares_files:
        require(transfer.program)
    output = tempfile.TemporaryFile()  # noqa: SIM115 - closed where it is read
    argv = _addressed(transfer.server_argv, lab, transfer)
    job = lab[transfer.target].popen(argv, stdout=output, stderr=output, env=_environment(lab))
    server = Server(job, output)
    deadline_s = lab.now() + _LISTEN_PATIENCE_S
    while not is_listening(lab, transfer.target, transfer.port, transfer.protocol):
        if job.poll() is not None or lab.now() > deadline_s:
            said = server.end().strip().splitlines()[-1:]
            why = said[0] if said else f"it did not listen on port {transfer.port} within {_LISTEN_PATIENCE_S:.0f} s"
            raise ProgramFailed(f"the server of {transfer.program} in {transfer.target} failed: {why}")
        _let_pass(lab, _LISTEN_POLL_S)
    return server


def start(lab: Lab, transfer: Transfer) -> RunningTransfer:
    """Start `transfer`: its server, when it has one, and its client once the server listens."""
    if lab.shares_files:
        require_all(transfer)
    return RunningTransfer(lab, transfer, serve(lab, transfer))


class RunningTransfer:
    """A transfer that runs; made by :func:`start`."""

    def __init__(self, lab: Lab, transfer: Transfer, server: Server) -> None:
        self.transfer = transfer
        self._lab = lab
        self._server = server
        self._out = tempfile.TemporaryFile()  # noqa: SIM115 - closed where it is read
        self._err = tempfile.TemporaryFile()  # noqa: SIM115 - closed where it is read
        self._start_ps = lab.now_ps()
        argv = _addressed(transfer.argv, lab, transfer)
        self._capture: Capture | None = None
        self._limit: ProcessorLimit | None = None
        try:
            if transfer.processors is not None:
                self._limit = ProcessorLimit(transfer.processors)
            if transfer.capture is not None:
                host, path = transfer.capture
                self._capture = lab.capture(lab.layout.node(host, "host")["ports"][0]["name"], path)
            entrance = DEVNULL if self._limit is None else self._limit.entrance
            self._job = lab[transfer.client].popen(
                argv, stdin=entrance, stdout=self._out, stderr=self._err, env=_environment(lab)
            )
        except BaseException:
            self._end_capture()
            self._end_limit()
            server.end()
            raise

    def wait(self, timeout: str | None = None) -> list[FlowReport]:
        """Wait for the client, end the server, and return what they measured.

        Raises
        ------
        ProgramFailed
            When the client failed.
        ReportUnreadable
            When its report does not have the form that the adapter knows.
        """
        try:
            ended = self._job.wait(timeout)
        except BaseException:
            self.stop()
            raise
        self._end_limit()
        _let_pass(self._lab, self.transfer.linger_s)
        written = self._server.finish() if self.transfer.server_ends else self._server.end()
        output = Output(_text(self._out), written, _text(self._err), ended, self._start_ps, self._end_capture())
        if ended.returncode != 0 and not self.transfer.may_fail:
            said = (output.errors.strip() or output.client.strip()).splitlines()[-1:]
            why = said[0] if said else f"status {ended.shell_status}"
            raise ProgramFailed(f"{self.transfer.program} in {self.transfer.client} failed: {why}")
        return self.transfer.parse(self.transfer, output)

    def stop(self) -> None:
        """End the client and the server now."""
        if self._job.poll() is None:
            self._job.kill()
        self._end_capture()
        self._end_limit()
        self._server.end()

    def _end_limit(self) -> None:
        if self._limit is not None:
            self._limit.end()

    def _end_capture(self) -> str | None:
        """End the capture and return its file."""
        return None if self._capture is None else self._capture.stop().path


def _addressed(words: Sequence[str], lab: Lab, transfer: Transfer) -> list[str]:
    to, source = lab.layout.address(transfer.target), lab.layout.address(transfer.client)
    return [word.replace("{to}", to).replace("{from}", source) for word in words]


def _environment(lab: Lab) -> dict[str, str]:
    """Return the environment in which reports are in English, with points in numbers. On the virtual clock it is the
    same whoever runs the lab."""
    fixed = {"PATH": f"{os.defpath}:/usr/sbin:/sbin:/usr/local/bin", "HOME": "/root"}
    return {**(fixed if lab.clock == "virtual" else os.environ), "LC_ALL": "C", "LANGUAGE": "C"}


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    text = file.read().decode(errors="replace")
    file.close()
    return text


def interval_index(start_ps: int, interval_ps: int) -> int:
    """Return the number of the lab's interval in which a program's first one mostly lies: programs count from their
    own start."""
    return round(start_ps / interval_ps)
