"""The shell of a node: one interactive bash on a terminal of its own, which keeps its folder, variables and jobs."""

from __future__ import annotations

import codecs
import os
import pty
import re
import select
import signal
import termios
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from subprocess import PIPE, Popen
from typing import IO, Any, ClassVar, cast

from twinnet.mininet.execution import EXECUTION, start_process
from twinnet.mininet.log import debug, error, info, warn
from twinnet.mininet.running import decode, encode, getincrementaldecoder, isShellBuiltin

__all__ = ["Shell", "await_shells"]

_PROMPT = chr(127)
_SETTINGS = "unset HISTFILE; set +m"
_FIRST_PROMPTS = 2
"""A shell that has started asks for its first command, and then for the one after its settings."""
_PID = re.compile("\x01(\\d+)\r?\n")
_JOB = re.compile(r"\[\d+\] \d+\r\n")


class Shell:
    """A shell in a network namespace.

    Attributes
    ----------
    shell, pid
        The process, and its number.
    stdin, stdout
        Our end of its terminal.
    waiting
        Whether a command runs whose output was not yet read to its end.
    lastCmd, lastPid
        The last command, and the number of its process where it was asked for.
    """

    _starting: ClassVar[set[Any]] = set()
    """Those whose first prompt was not read yet."""
    inToNode: ClassVar[dict[int, Any]] = {}
    outToNode: ClassVar[dict[int, Any]] = {}

    def __init__(
        self, name: str, inNamespace: bool, privateDirs: list[str | tuple[str, str]], waitExited: bool
    ) -> None:
        self.name = name
        self.inNamespace = inNamespace
        self.privateDirs = privateDirs
        self.waitExited = waitExited
        self.shell: Popen[bytes] | None = None
        self.execed: bool = False
        self.pid: int | None = None
        self.stdin: IO[str] = None  # pyright: ignore[reportAttributeAccessIssue]
        self.stdout: IO[str] = None  # pyright: ignore[reportAttributeAccessIssue]
        self.lastPid: int | None = None
        self.lastCmd: str | None = None
        self.pollOut: select.poll = select.poll()
        self.waiting: bool = False
        self._sender: threading.Thread | None = None
        self.readbuf: str = ""
        self.decoder: codecs.IncrementalDecoder = getincrementaldecoder(errors="replace")
        self.master: int = -1
        self.slave: int = -1
        self.startShell()
        self.mountPrivateDirs()

    @classmethod
    def fdToNode(cls, fd: int) -> Any:
        """Return the node whose shell has the descriptor `fd`."""
        return cls.outToNode.get(fd) or cls.inToNode.get(fd)

    def startShell(self, mnopts: str | None = None) -> None:
        """Start the shell; `mnopts` are options of ``mnexec``."""
        if self.shell:
            error(f"{self.name}: shell is already running\n")
            return
        options = (mnopts or "-cd") + ("n" if self.inNamespace else "")
        self.master, self.slave = pty.openpty()
        _without_echo(self.slave)
        self.shell = self._popen(
            ["mnexec", options, *self.shell_command()],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            close_fds=False,
            env={**os.environ, "PS1": _PROMPT},
        )
        self.stdin = os.fdopen(self.master, "r")
        self.stdout = self.stdin
        self.pid = self.shell.pid
        self.pollOut = select.poll()
        self.pollOut.register(self.stdout)
        self.outToNode[self.stdout.fileno()] = self
        self.inToNode[self.stdin.fileno()] = self
        self.execed = False
        self.lastCmd, self.lastPid, self.readbuf = None, None, ""
        self.waiting = False
        self._starting.add(self)
        # It reads this when it is ready, so that nobody goes to and fro with it.
        debug(f"*** {self.name} : {_SETTINGS}\n")
        self.write(_SETTINGS + "\n")
        self.before_command()

    def await_start(self) -> None:
        """Wait until the shell takes commands. Shells start beside each other, so that nobody waits before that is
        needed: at the first command, or when the network has been built."""
        if self in self._starting:
            self._starting.discard(self)
            said = ""
            while said.count(_PROMPT) < _FIRST_PROMPTS and self._await_output():
                said += self.read(1024)

    def shell_command(self) -> list[str]:
        """Return the program that is the shell, with its arguments."""
        return ["bash", "--norc", "--noediting", "-is", "mininet:" + self.name]

    def _popen(self, cmd: list[str], **params: Any) -> Popen[bytes]:
        """Start the process of `cmd`; those that begin with ``mnexec`` enter a namespace without that program."""
        return start_process(cmd, **params)

    def mountPrivateDirs(self) -> None:
        """Give the node its own folders."""
        assert not isinstance(self.privateDirs, str)
        for directory in self.privateDirs:
            if isinstance(directory, tuple):
                mount_point, private = directory[0], directory[1] % self.__dict__
                self.cmd(f"mkdir -p {private}")
                self.cmd(f"mkdir -p {mount_point}")
                self.cmd(f"mount --bind {private} {mount_point}")
            else:
                self.cmd(f"mkdir -p {directory}")
                self.cmd(f"mount -n -t tmpfs tmpfs {directory}")

    def unmountPrivateDirs(self) -> None:
        """Take the node's own folders away."""
        for directory in self.privateDirs:
            self.cmd("umount ", directory[0] if isinstance(directory, tuple) else directory)

    def read(self, size: int = 1024) -> str:
        """Return up to `size` characters of what the shell wrote; waits for the first."""
        if len(self.readbuf) < size:
            self.readbuf += self.decoder.decode(os.read(self.stdout.fileno(), size - len(self.readbuf)))
        result, self.readbuf = self.readbuf[:size], self.readbuf[size:]
        return result

    def readline(self) -> str | None:
        """Return a line of what the shell wrote, without its end; ``None`` while there is no whole one."""
        self.readbuf += self.read(1024)
        line, end, rest = self.readbuf.partition("\n")
        if not end:
            return None
        self.readbuf = rest
        return line

    def write(self, data: str) -> None:
        """Type `data` at the shell's terminal."""
        os.write(self.stdin.fileno(), encode(data))

    def hang_up(self) -> None:
        """Have the shell and what it runs end, unless something is to be done before; :meth:`terminate` waits."""
        plain = type(self).terminate is Shell.terminate and not self.privateDirs
        if plain and self.shell and self.shell.poll() is None:
            os.killpg(self.shell.pid, signal.SIGHUP)

    def terminate(self) -> None:
        """End the shell and what it runs."""
        self.unmountPrivateDirs()
        if self.shell and self.shell.poll() is None:
            debug(f"*** {self.name} : ending its shell {self.shell.pid} and what it runs\n")
            os.killpg(self.shell.pid, signal.SIGHUP)
        self.cleanup()

    def cleanup(self) -> None:
        """Close the shell's terminal, and wait until it has ended."""
        self._starting.discard(self)
        if self.shell:
            self.outToNode.pop(self.stdout.fileno(), None)
            self.inToNode.pop(self.stdin.fileno(), None)
            self.stdin.close()
            os.close(self.slave)
            if self.waitExited:
                self.shell.wait()
        self.shell = None

    def waitReadable(self, timeoutms: float | None = None) -> list[tuple[int, int]] | None:
        """Wait until there is output, at most `timeoutms` milliseconds; ``None``: some is there already."""
        return self.pollOut.poll(timeoutms) if not self.readbuf else None

    def _await_output(self) -> bool:
        """Wait until there is output, and return True; False when the shell has ended without."""
        output = select.poll()
        output.register(self.stdout, select.POLLIN)
        if self.readbuf or _readable(output):
            return True
        with suppress(ProcessLookupError), self._watched() as process:
            output.register(process, select.POLLIN)
            output.poll()
            output.unregister(process)
        return _readable(output)

    def _has_ended(self) -> bool:
        """Whether the shell is no more, as ``mn -c`` ends all."""
        with suppress(ProcessLookupError), self._watched() as process:
            ended = select.poll()
            ended.register(process, select.POLLIN)
            return bool(ended.poll(0))
        return True

    @contextmanager
    def _watched(self) -> Generator[int]:
        """A descriptor that is readable when the shell has ended, for a forked child too, whose child it is not; raises
        `ProcessLookupError` when it is gone altogether."""
        if self.shell is None:
            raise ProcessLookupError
        descriptor = os.pidfd_open(self.shell.pid)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def before_command(self) -> None:
        """Called before each command."""

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        """Start a command: a text, a list, or several words. Read what it writes by :meth:`monitor` or
        :meth:`waitOutput`.

        Parameters
        ----------
        kwargs
            ``printPid=True`` has `lastPid` set.
        """
        self.await_start()
        assert self.shell and not self.waiting
        words: Sequence[Any] = cast("Sequence[Any]", args[0] if len(args) == 1 and isinstance(args[0], list) else args)
        cmd = " ".join(str(word) for word in words)
        if not re.search(r"\w", cmd):
            cmd = "echo -n"
        self.before_command()
        self.lastCmd = cmd
        if cmd.endswith("&"):
            cmd += ' printf "\\001%d\\012" $! '
        elif kwargs.get("printPid", False) and not isShellBuiltin(cmd):
            cmd = "mnexec -p " + cmd
        self.write(cmd + "\n")
        self.lastPid = None
        self._sender = threading.current_thread()
        self.waiting = True

    def serves_another_thread(self) -> bool:
        """Return whether a command runs that another thread, which goes on, has begun."""
        sender = self._sender
        return self.waiting and sender not in (None, threading.current_thread()) and sender.is_alive()

    def sendInt(self, intr: str = chr(3)) -> None:
        """Interrupt the command that runs."""
        debug(f"sendInt: writing chr({ord(intr)})\n")
        self.write(intr)

    def monitor(self, timeoutms: float | None = None, findPid: bool = True) -> str:
        """Return what the command wrote since; `waiting` is false afterwards when it has ended.

        Parameters
        ----------
        timeoutms
            How long the first output is waited for, in milliseconds; ``None``: for as long as it takes.
        findPid
            Whether `lastPid` is looked for.
        """
        ready = self.waitReadable(timeoutms)
        if ready is not None and not ready:
            return ""
        data = self.read(1024)
        if findPid and chr(1) in data:
            data = _JOB.sub("", data)
            while (found := _PID.search(data)) is None:
                data += self.read(1024)
            self.lastPid = int(found[1])
            data = _PID.sub("", data)
        if _PROMPT in data:
            self.waiting = False
            data = data.replace(_PROMPT, "")
        return data

    def waitOutput(self, verbose: bool = False, findPid: bool = True) -> str:
        """Wait until the command ends and return what it wrote; with `verbose` it is also shown as it comes."""
        log = info if verbose else debug
        output = ""
        while self.waiting:
            if not self._await_output():
                warn(f"({self} exited)\n")
                self.waiting = False
                break
            data = self.monitor(findPid=findPid)
            output += data
            log(data)
        return output

    def cmd(self, *args: Any, **kwargs: Any) -> str | None:
        """Run a command and return what it writes; ``verbose=True`` also shows it."""
        verbose = bool(kwargs.get("verbose", False))
        (info if verbose else debug)(f"*** {self.name} : {args}\n")
        if self._has_ended():
            warn(f"({self} exited - ignoring cmd{args})\n")
            return None
        self.sendCmd(*args, **kwargs)
        return self.waitOutput(verbose)

    def cmdPrint(self, *args: Any) -> str | None:
        """Run a command, show what it writes, and return it."""
        return self.cmd(*args, verbose=True)

    def popen(self, *args: Any, **kwargs: Any) -> Popen[Any]:
        """Return a process of its own in the node's namespaces.

        Parameters
        ----------
        args
            A text that is split at blanks, a list, or several words.
        kwargs
            Those of `subprocess.Popen`; ``shell=True`` gives the text to a shell. Both outputs are pipes unless said
            otherwise.
        """
        settings: dict[str, Any] = {"stdout": PIPE, "stderr": PIPE, "mncmd": ["mnexec", "-da", str(self.pid)], **kwargs}
        shell = settings.pop("shell", False)
        cmd: list[Any]
        if len(args) != 1:
            cmd = list(args)
        elif isinstance(args[0], (list, tuple)):
            cmd = [*args[0]]
        elif isinstance(args[0], str):
            cmd = [args[0]] if shell else args[0].split()
        else:
            raise Exception("popen() requires a string or list")
        if shell:
            cmd = [os.environ.get("SHELL", "/bin/sh"), "-c", " ".join(str(word) for word in cmd)]
        self.before_command()
        return self._popen([*settings.pop("mncmd"), *(str(word) for word in cmd)], **settings)

    def pexec(self, *args: Any, **kwargs: Any) -> tuple[str, str, int]:
        """Run a process of its own, and return both outputs and its status."""
        process = self.popen(*args, stdin=PIPE, stdout=PIPE, stderr=PIPE, **kwargs)
        out, err = process.communicate()
        return _text(out), _text(err), process.wait()


def _readable(output: select.poll) -> bool:
    """Whether there is something to read now: a terminal that was hung up has nothing."""
    return any(event & select.POLLIN for _, event in output.poll(0))


def _without_echo(terminal: int) -> None:
    settings = termios.tcgetattr(terminal)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, settings)


def _text(given: bytes | str | None) -> str:
    return decode(given) if isinstance(given, bytes) else given or ""


def await_shells(nodes: Iterable[Shell]) -> None:
    """Wait until the shells of all nodes take commands."""
    for node in nodes:
        node.await_start()


def _before_fork() -> None:
    """A child of a script and the script must not both wait for the same prompt."""
    if not EXECUTION.starts:
        await_shells(list(Shell._starting))  # pyright: ignore[reportPrivateUsage]


os.register_at_fork(before=_before_fork)
