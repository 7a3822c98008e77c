"""Mininet's prompt."""

from __future__ import annotations

import atexit
import os
import sys
import time
from cmd import Cmd
from pathlib import Path
from select import POLLIN, poll
from subprocess import call
from typing import IO, TYPE_CHECKING, Any

from twinnet.given_files import read_given_text
from twinnet.mininet.log import error, info, output
from twinnet.mininet.term import makeTerms, runX11
from twinnet.mininet.util import dumpNodeConnections, dumpPorts, quietRun

if TYPE_CHECKING:
    from twinnet.mininet.net import Mininet

__all__ = ["CLI", "isReadable"]

_MOST_SOURCE_BYTES = 1 << 20


class CLI(Cmd):
    """The prompt of a network: ``h1 ping h2`` runs ``ping`` in h1, with the address of h2.

    Parameters
    ----------
    mininet
        The network.
    stdin
        Where commands are read; at its end the prompt is left.
    script
        A file of commands that is read instead.
    """

    prompt: str = "mininet> "
    readlineInited: bool = False
    helpStr: str = (
        "You may also send a command to a node using:\n"
        "  <node> command {args}\n"
        "For example:\n"
        "  mininet> h1 ifconfig\n\n"
        "Names of nodes after the first word stand for their addresses:\n"
        "  mininet> h2 ping h3\n\n"
        "Commands that draw on the terminal need noecho:\n"
        "  mininet> noecho h2 vi foo.py\n"
        "A terminal of its own is better:\n"
        "  mininet> xterm h2\n\n"
    )

    def __init__(
        self, mininet: Mininet, stdin: IO[str] | None = None, script: str | None = None, **kwargs: Any
    ) -> None:
        self.mn = mininet
        self.locals: dict[str, Any] = {"net": mininet}
        source: IO[str] = stdin if stdin is not None else sys.stdin
        self.inPoller: poll = poll()
        self.inPoller.register(source)
        self.inputFile: Any = script
        super().__init__(stdin=source, **kwargs)
        # Lines that come by a pipe are not echoed, and the line editor would keep them from commands that read.
        self.use_rawinput: bool = self.isatty()
        info("*** Starting CLI:\n")
        if script:
            self.do_source(script)
            return
        self.initReadline()
        self.run()

    @classmethod
    def initReadline(cls) -> None:
        """Keep a history of commands, on a terminal."""
        if cls.readlineInited or not sys.stdin.isatty():
            return
        cls.readlineInited = True
        try:
            import readline
        except ImportError:
            return
        # Programs that drive the prompt take what comes before it for output.
        readline.parse_and_bind("set enable-bracketed-paste off")
        history = Path("~/.mininet_history").expanduser()
        if history.is_file():
            readline.read_history_file(history)
            readline.set_history_length(1000)

        def write() -> None:
            try:
                readline.write_history_file(history)
            except OSError as refused:
                error(f"the history was not kept: {refused.strerror}\n")

        atexit.register(write)

    def run(self) -> None:
        """Read and do commands until the prompt is left; an interrupt ends a command only."""
        while True:
            try:
                for node in self.mn.values():
                    # What another thread waits for, such as one that starts the network, is left to run.
                    while node.waiting and not node.serves_another_thread():
                        info("stopping", node, "\n")
                        node.sendInt()
                        node.waitOutput()
                if self.isatty():
                    quietRun("stty echo sane intr ^C")
                self.cmdloop()
                return
            except KeyboardInterrupt:
                output("\nInterrupt\n")

    def emptyline(self) -> bool:
        """Do nothing for an empty line."""
        return False

    def getLocals(self) -> dict[str, Any]:
        """Return the names that ``py`` and ``px`` know: ``net`` and the nodes."""
        self.locals.update(self.mn.items())
        return self.locals

    def do_help(self, arg: str) -> None:
        """Describe the commands."""
        super().do_help(arg)
        if not arg:
            output(self.helpStr)

    def do_nodes(self, _line: str) -> None:
        """List all nodes."""
        output(f"available nodes are: \n{' '.join(sorted(self.mn))}\n")

    def do_ports(self, _line: str) -> None:
        """Show the ports of each switch."""
        dumpPorts(self.mn.switches)

    def do_net(self, _line: str) -> None:
        """Show the interfaces and what they are joined to."""
        dumpNodeConnections(self.mn.values())

    def do_sh(self, line: str) -> None:
        """Run a command of the machine: sh COMMAND."""
        call(line, shell=True)

    def do_py(self, line: str) -> None:
        """Evaluate a Python expression: py h1.cmd('ls')."""
        try:
            result = eval(line, globals(), self.getLocals())
        except Exception as raised:
            output(f"{raised}\n")
            return
        if result is not None:
            output((result if isinstance(result, str) else repr(result)) + "\n")

    def do_px(self, line: str) -> None:
        """Execute a Python statement: px print(h1.cmd('ls'))."""
        try:
            exec(line, globals(), self.getLocals())
        except Exception as raised:
            output(f"{raised}\n")

    def do_pingall(self, line: str) -> None:
        """Ping between all hosts: pingall [SECONDS]."""
        self.mn.pingAll(line)

    def do_pingpair(self, _line: str) -> None:
        """Ping between the first two hosts."""
        self.mn.pingPair()

    def do_pingallfull(self, _line: str) -> None:
        """Ping between all hosts, and show round trips."""
        self.mn.pingAllFull()

    def do_pingpairfull(self, _line: str) -> None:
        """Ping between the first two hosts, and show round trips."""
        self.mn.pingPairFull()

    def _two_nodes(self, names: list[str]) -> list[Any] | None:
        """Return the nodes of these names; tell which is none."""
        missing = [name for name in names if name not in self.mn]
        for name in missing:
            error(f"node '{name}' not in network\n")
        return None if missing else [self.mn[name] for name in names]

    def do_iperf(self, line: str) -> None:
        """Measure TCP between two hosts: iperf [NODE1 NODE2]."""
        args = line.split()
        if not args:
            self.mn.iperf()
        elif len(args) != 2:
            error("invalid number of args: iperf src dst\n")
        elif hosts := self._two_nodes(args):
            self.mn.iperf(hosts)

    def do_iperfudp(self, line: str) -> None:
        """Measure UDP between two hosts: iperfudp [RATE NODE1 NODE2]."""
        args = line.split()
        if not args:
            self.mn.iperf(l4Type="UDP")
        elif len(args) != 3:
            error("invalid number of args: iperfudp bw src dst\nbw examples: 10M\n")
        elif hosts := self._two_nodes(args[1:]):
            self.mn.iperf(hosts, l4Type="UDP", udpBw=args[0])

    def do_intfs(self, _line: str) -> None:
        """List the interfaces."""
        for node in self.mn.values():
            output(f"{node.name}: {','.join(node.intfNames())}\n")

    def do_dump(self, _line: str) -> None:
        """Show the nodes with their addresses."""
        for node in self.mn.values():
            output(f"{node!r}\n")

    def do_link(self, line: str) -> None:
        """Take the links between two nodes up or down: link NODE1 NODE2 up|down."""
        args = line.split()
        if len(args) != 3:
            error("invalid number of args: link end1 end2 [up down]\n")
        elif args[2] not in ("up", "down"):
            error("invalid type: link end1 end2 [up down]\n")
        else:
            self.mn.configLinkStatus(*args)

    def do_xterm(self, line: str, term: str = "xterm") -> None:
        """Open terminals: xterm NODE..."""
        args = line.split()
        if not args:
            error(f"usage: {term} node1 node2 ...\n")
        for arg in args:
            if nodes := self._two_nodes([arg]):
                self.mn.terms += makeTerms(nodes, term=term)

    def do_gterm(self, line: str) -> None:
        """Open terminals of GNOME: gterm NODE..."""
        self.do_xterm(line, term="gterm")

    def do_x(self, line: str) -> None:
        """Run a program with windows in a node: x NODE [COMMAND]."""
        args = line.split()
        if not args:
            error("usage: x node [cmd args]...\n")
        elif nodes := self._two_nodes(args[:1]):
            self.mn.terms += runX11(nodes[0], args[1:])

    def do_exit(self, _line: str) -> Any:
        """Leave the prompt."""
        return "exited by user command"

    def do_quit(self, line: str) -> Any:
        """Leave the prompt."""
        return self.do_exit(line)

    def do_EOF(self, line: str) -> Any:
        """Leave the prompt."""
        output("\n")
        return self.do_exit(line)

    def isatty(self) -> bool:
        """Return whether commands come from a terminal."""
        return os.isatty(self.stdin.fileno())

    def do_noecho(self, line: str) -> None:
        """Run a command that draws on the terminal: noecho NODE COMMAND."""
        if self.isatty():
            quietRun("stty -echo")
        self.default(line)
        if self.isatty():
            quietRun("stty echo")

    def do_source(self, line: str) -> None:
        """Do the commands of a file: source FILE."""
        args = line.split()
        if len(args) != 1:
            error("usage: source <file>\n")
            return
        try:
            lines = read_given_text(args[0], _MOST_SOURCE_BYTES).splitlines(keepends=True)
        except OSError as refused:
            error(f"error reading file {args[0]}: {refused.strerror}\n")
            return
        for one in lines:
            self.onecmd(one)

    def do_dpctl(self, line: str) -> None:
        """Run a command of ovs-ofctl for all switches: dpctl COMMAND [ARGUMENTS]."""
        args = line.split()
        if not args:
            error("usage: dpctl command [arg1] [arg2] ...\n")
            return
        for switch in self.mn.switches:
            output(f"*** {switch.name} {'-' * 72}\n")
            output(switch.dpctl(*args))

    def do_time(self, line: str) -> None:
        """Tell how long a command takes: time COMMAND."""
        begin = time.time()
        self.onecmd(line)
        self.stdout.write(f"*** Elapsed time: {time.time() - begin:0.6f} secs\n")

    def do_links(self, _line: str) -> None:
        """Show whether the links are there."""
        for link in self.mn.links:
            output(link, link.status(), "\n")

    def do_switch(self, line: str) -> None:
        """Start or stop a switch: switch NAME start|stop."""
        args = line.split()
        if len(args) != 2:
            error("invalid number of args: switch <switch name>{start, stop}\n")
        elif args[0] not in self.mn or self.mn[args[0]] not in self.mn.switches:
            error(f"invalid switch: {args[0]}\n")
        elif args[1] == "start":
            self.mn[args[0]].start(self.mn.controllers)
        elif args[1] == "stop":
            self.mn[args[0]].stop(deleteIntfs=False)
        else:
            error("invalid command: switch <switch name> {start, stop}\n")

    def do_wait(self, _line: str) -> None:
        """Wait until all switches have a controller."""
        self.mn.waitConnected()

    def default(self, line: str) -> None:
        """Run a command in a node, when the first word is one."""
        first, args, whole = self.parseline(line)
        if first is None or first not in self.mn:
            error(f"*** Unknown command: {whole}\n")
            return
        if not args:
            error(f"*** Please enter a command for node: {first} <cmd>\n")
            return
        words = [
            (self.mn[word].defaultIntf().updateIP() or word) if word in self.mn else word for word in args.split(" ")
        ]
        node = self.mn[first]
        node.sendCmd(" ".join(words))
        self.waitForNode(node)

    def waitForNode(self, node: Any) -> None:
        """Show what a node's command writes until it ends; what is typed meanwhile goes to it."""
        both = poll()
        both.register(node.stdout, POLLIN)
        if self.isatty():
            both.register(self.stdin, POLLIN)
            quietRun("stty -icanon min 1")
        while node.waiting:
            try:
                ready = [descriptor for descriptor, _ in both.poll()]
                if self.isatty() and self.stdin.fileno() in ready:
                    node.write(self.stdin.read(1))
                if node.stdout.fileno() in ready:
                    output(node.monitor())
            except KeyboardInterrupt:
                node.sendInt()

    def precmd(self, line: str) -> str:
        """Leave comments away."""
        return line.split("#")[0] if "#" in line else line


def isReadable(poller: poll) -> bool:
    """Return whether something that `poller` watches can be read."""
    return any(event & POLLIN for _, event in poller.poll(0))
