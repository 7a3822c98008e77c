"""Programs that are typed at the prompt: ``h1 ping -c3 h4``, ``h1 iperf3 -s &``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from twinnet.cli.prompt.answer import Answer
from twinnet.cli.prompt.jobs import Jobs
from twinnet.cli.prompt.kept import Kept
from twinnet.cli.terminal import run_on_terminal, wants_terminal
from twinnet.errors import BadValue
from twinnet.lab.lab import Lab
from twinnet.lab.terminal_job import of_caller
from twinnet.lab_process.job import DEVNULL, Completed, Ending

__all__ = ["await_listening", "run_program"]

_USUAL_PATIENCE = "10 s"
_PORT_DIGITS = 5


def await_listening(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Wait until a program of a host listens: ``HOST [tcp | udp] PORT [TIME]``."""
    words = list(arguments)
    host = words.pop(0) if words else ""
    protocol = words.pop(0) if words and words[0] in ("tcp", "udp") else "tcp"
    port = words.pop(0) if words else ""
    if not (port.isdecimal() and len(port) <= _PORT_DIGITS):
        raise BadValue("await needs a host and a port", "write for example: await h2 5201, or: await h2 udp 5001 30 s")
    lab.layout.node(host, "host")
    began_s = lab.now()
    lab[host].wait_listening(int(port), "udp" if protocol == "udp" else "tcp", " ".join(words) or _USUAL_PATIENCE)
    return Answer({"host": host, "protocol": protocol, "port": int(port), "waited_s": lab.now() - began_s})


def run_program(lab: Lab, host: str, command: str, jobs: Jobs, kept: Kept, capture_output: bool = False) -> Answer:
    """Run the shell command `command` in `host`; one that ends with ``&`` goes on in the background.

    Its output goes to the user as it comes; with `capture_output` it is in the answer instead. `jobs` numbers those in
    the background. What `command` sets, where it does nothing else, is kept in `kept` for the lines after it.
    """
    if kept.sets(command):
        return _set(lab, host, command, kept, capture_output)
    background = command.rstrip().endswith("&") and not command.rstrip().endswith("&&")
    where = lab[host]
    cwd = kept.folder or of_caller(lab, host)[1]
    if background:
        command = kept.before(command.rstrip()[:-1].strip())
        job = where.popen(command, shell=True, stdout=sys.stdout.fileno(), stderr=sys.stderr.fileno(), cwd=cwd)
        number = jobs.number(job.number)
        return Answer({"job": job.number, "number": number, "pid": job.pid}, f"[{number}] {job.pid}")
    if capture_output:
        return _captured(where.run(kept.before(command), shell=True, cwd=cwd))
    sys.stdout.flush()
    ended = _foreground(lab, host, command, kept, cwd)
    return Answer({"status": ended.shell_status, "elapsed_s": ended.elapsed_s}, ok=ended.returncode == 0)


def _captured(done: Completed) -> Answer:
    data = {"stdout": done.stdout, "stderr": done.stderr, "status": done.shell_status, "elapsed_s": done.elapsed_s}
    return Answer(data, ok=done.returncode == 0)


def _set(lab: Lab, host: str, command: str, kept: Kept, capture_output: bool) -> Answer:
    done = kept.take(lab, host, command)
    if capture_output:
        return _captured(done)
    sys.stderr.write(done.stderr)
    return Answer({"status": done.shell_status}, done.stdout.rstrip("\n"), done.returncode == 0, verbatim=True)


def _foreground(lab: Lab, host: str, command: str, kept: Kept, cwd: str | None) -> Ending:
    if wants_terminal(lab, command.split()):
        return run_on_terminal(lab, host, ["/bin/sh", "-c", kept.before(command, with_folder=True)])
    out, err = sys.stdout.fileno(), sys.stderr.fileno()
    job = lab[host].popen(kept.before(command), shell=True, stdin=DEVNULL, stdout=out, stderr=err, cwd=cwd)
    interrupted = False
    while True:
        try:
            ended = job.wait()
        except KeyboardInterrupt:
            # Who asks again has seen that the program does not listen.
            job.signal(9 if interrupted else 2)
            interrupted = True
            continue
        if interrupted and ended.returncode in (-2, -9):
            # As in a shell: what ends by the interrupt of its user ends the lines that were to follow.
            raise KeyboardInterrupt
        return ended
