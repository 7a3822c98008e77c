"""One session of the prompt: takes a line, does it, prints the answer."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import click

import twinnet
from twinnet.cli.prompt import (
    capturing,
    changing,
    controllers,
    measuring,
    pages,
    programs,
    showing,
    switches,
    terminals,
    watching,
)
from twinnet.cli.prompt.answer import Answer
from twinnet.cli.prompt.jobs import Jobs
from twinnet.cli.prompt.kept import Kept
from twinnet.errors import BadValue, LabClosed, TwinnetError, did_you_mean, reason
from twinnet.given_files import read_given_text
from twinnet.lab.lab import Lab
from twinnet.report.text_table import table, terminal_columns, wrapped
from twinnet.shown_text import bare
from twinnet.units import duration_ps

__all__ = ["COMMANDS", "Command", "Session"]

_DEEPEST_SOURCE = 10
_MOST_SOURCE_BYTES = 1_000_000
Work = Callable[[Lab, Sequence[str]], Answer]


class Command(NamedTuple):
    """A command of the prompt: its usage, what it does, and what may follow it (for completion)."""

    usage: str
    help: str
    follows: tuple[str, ...] = ()


COMMANDS: dict[str, Command] = {
    "nodes": Command("nodes", "list the nodes"),
    "net": Command("net", "show which interface leads to which"),
    "intfs": Command("intfs", "show the interfaces of every node"),
    "dump": Command("dump", "show every node with its addresses"),
    "links": Command("links", "show the links as they are now"),
    "ports": Command("ports [NAME]...", "show the counters of ports", ("node",)),
    "controllers": Command("controllers", "show whether switches have their controllers"),
    "flows": Command("flows [SWITCH]...", "show flows", ("switch",)),
    "flow": Command("flow SWITCH add FLOW | del [MATCH]", "add or delete flows", ("switch", "flow")),
    "dpctl": Command(
        "dpctl dump-flows | add-flow FLOW | del-flows [MATCH]", "show or change flows of all switches", ("dpctl",)
    ),
    "ovs-ofctl": Command(
        "ovs-ofctl dump-flows SWITCH | add-flow SWITCH FLOW | del-flows SWITCH [MATCH]",
        "the same for one switch",
        ("dpctl", "switch"),
    ),
    "ovs-appctl": Command(
        "ovs-appctl fdb/show SWITCH | fdb/flush SWITCH",
        "show the addresses that a switch has learnt, or have it forget them",
        ("learnt", "switch"),
    ),
    "follow": Command(
        "follow A B [udp | tcp | icmp] [PORT]", "show the way of a packet, and what each node does", ("host", "host")
    ),
    "switch": Command("switch SWITCH stop | start", "take all links of a switch down, or up", ("switch", "state")),
    "link": Command(
        "link A B up | down | delay 10ms rate 5Mbit queue codel ...", "change a link", ("node", "node", "setting")
    ),
    "queue": Command("queue INTERFACE KIND[,NAME=VALUE]...", "give a switch's port another queue", ("port", "queue")),
    "pingall": Command("pingall [HOST]...", "ping between all hosts", ("host",)),
    "pingallfull": Command("pingallfull [HOST]...", "the same with each round trip", ("host",)),
    "pingpair": Command("pingpair [A B]", "ping between two hosts", ("host", "host")),
    "iperf": Command("iperf [A B] [5 s] [udp RATE]", "measure throughput between two hosts", ("host", "host")),
    "iperfudp": Command("iperfudp RATE [A B]", "send UDP between two hosts", ("rate", "host", "host")),
    "capture": Command(
        "capture INTERFACE FILE [ring N SIZE] | stop [INTERFACE]",
        "write frames to pcapng; with | PROGRAM, give them to it live",
        ("interface",),
    ),
    "watch": Command(
        "watch INTERFACE... INTERVAL [DURATION] [FILE.csv] | stop [FILE.csv]",
        "show rates of ports, or write them",
        ("interface",),
    ),
    "live": Command(
        "live [control] [FILE.html] | stop",
        "open a page for the browser, with control one that changes the lab; with a file, record it",
    ),
    "export": Command("export FILE", "write the network as it is now into a network file", ("file",)),
    "tunnels": Command("tunnels", "show the tunnels to other speakers"),
    "fidelity": Command("fidelity [reset]", "show how well the lab kept its schedule"),
    "jobs": Command("jobs", "show the programs that run"),
    "kill": Command("kill N [SIGNAL]", "end a program of jobs, or send it another signal"),
    "terminal": Command("terminal HOST...", "open a shell of each host in a new window", ("host",)),
    "xterm": Command("xterm HOST...", "the same; so does gterm", ("host",)),
    "x": Command("x HOST PROGRAM...", "run a program with windows in a host", ("host",)),
    "time": Command("time LINE", "do a line and say how long it took"),
    "source": Command("source FILE", "do the lines of a file", ("file",)),
    "py": Command("py EXPR", "evaluate Python: lab, tn, and every host by its name"),
    "sh": Command("sh COMMAND", "run a command outside the lab"),
    "sleep": Command("sleep DURATION", "wait"),
    "await": Command(
        "await HOST [udp] PORT [DURATION]", "wait until a program of a host listens, 10 s at most", ("host",)
    ),
    "help": Command("help [COMMAND]", "show this, or one command", ("command",)),
    "exit": Command("exit", "end the lab"),
}
"""The commands by name; every other line begins with a host and is a program for it."""

_AS_IN_MININET = {"xterm": "terminal", "gterm": "terminal"}
"""Commands of Mininet's prompt by another name."""

_HELPED_BY = {"gterm": "xterm", "quit": "exit", "px": "py", "!": "sh", "?": "help"}
"""Commands that have no line of help of their own."""

_ALONE = ("nodes", "net", "intfs", "dump", "links", "controllers", "tunnels", "jobs")
"""Commands that nothing follows, but ``|`` and a program."""

_OF_NO_SWITCH = (
    "help",
    "?",
    "py",
    "px",
    "sh",
    "!",
    "sleep",
    "await",
    "source",
    "exit",
    "quit",
    "controllers",
    "nodes",
    "net",
    "intfs",
    "export",
    "time",
    "live",
)
"""Commands whose answer does not depend on what switches do."""


class Session:
    """The prompt of one lab.

    Parameters
    ----------
    lab
        The running lab.
    as_json
        Whether each answer is one line of JSON.
    lasts
        Whether lines go on to come while the lab runs.
    paged
        Whether a person reads at a terminal, who is shown long help page by page.
    positions
        The file with the places of nodes, of a lab whose network is from a file.
    """

    def __init__(
        self,
        lab: Lab,
        as_json: bool = False,
        lasts: bool = True,
        paged: bool = False,
        positions: Path | None = None,
    ) -> None:
        self.lab = lab
        self.paged = paged
        self.as_json = as_json
        self.over: bool = False
        self._depth = 0
        self._door = "the prompt" if lasts else "twinnet do"
        self.captures: capturing.Captures = capturing.Captures()
        self.jobs: Jobs = Jobs()
        self._kept: dict[str, Kept] = {}
        self.watches: watching.Watches = watching.Watches(None if as_json else _show)
        self.names: dict[str, Any] = {"tn": twinnet, "lab": lab}
        for host in lab.hosts:
            self.names.setdefault(host.name, host)
        self._works: dict[str, Work] = {
            "nodes": showing.nodes,
            "intfs": showing.intfs,
            "net": showing.net,
            "dump": showing.dump,
            "links": showing.links,
            "ports": showing.ports,
            "flows": showing.flows,
            "await": programs.await_listening,
            "jobs": self.jobs.jobs,
            "kill": self.jobs.kill,
            "export": showing.export,
            "tunnels": showing.tunnels,
            "controllers": controllers.controllers,
            "dpctl": switches.dpctl,
            "ovs-ofctl": switches.ofctl,
            "ovs-appctl": switches.appctl,
            "follow": switches.follow,
            "switch": switches.switch,
            "pingpair": measuring.pingpair,
            "iperfudp": measuring.iperfudp,
            "terminal": terminals.terminal,
            "flow": changing.flow,
            "link": changing.link,
            "queue": changing.queue,
            "capture": self.captures.command,
            "watch": self.watches.command,
            "live": pages.Pages(lasts, positions).live,
            "pingall": measuring.pingall,
            "pingallfull": measuring.pingallfull,
            "iperf": measuring.iperf,
            "fidelity": measuring.fidelity,
        }

    def execute(self, line: str) -> bool:
        """Do what `line` says, print the answer or the error, and return whether the work was done.

        Raises
        ------
        LabClosed
            When the lab has ended.
        """
        line = line.strip()
        if not line or line.startswith("#"):
            return True
        try:
            with self.lab.by_hand.through(self._door, line):
                answer = self.answer(line)
        except LabClosed:
            raise
        except TwinnetError as error:
            if self.as_json:
                refusal = {"name": error.name, "message": error.message, "remedy": error.remedy}
                print(json.dumps({"command": line, "error": refusal}, ensure_ascii=False), flush=True)
            else:
                _tell(f"*** {error}")
            return False
        # Such an answer may be that of a switch which stands alone: who reads it is to know.
        lacking = [] if self.over or first_word(line) in _OF_NO_SWITCH else controllers.without_controller(self.lab)
        if self.as_json:
            record = {"command": line, "ok": answer.ok, "result": answer.data}
            print(json.dumps(record | ({"warnings": lacking} if lacking else {}), ensure_ascii=False), flush=True)
            return answer.ok
        if answer.text:
            shown = answer.text_for(terminal_columns())
            rows = shutil.get_terminal_size().lines
            if self.paged and first_word(line) in ("help", "?") and shown.count("\n") + 2 > rows:
                click.echo_via_pager(shown + "\n")
            else:
                print(shown, flush=True)
        for one in lacking:
            _tell(f"*** {one}")
        return answer.ok

    def answer(self, line: str) -> Answer:
        """Return the answer to `line`."""
        # The bar of links|grep needs no blank before it.
        first, _, rest = re.sub(r"^(\w+)\|", r"\1 |", line).partition(" ")
        rest = rest.strip()
        first = _AS_IN_MININET.get(first, first)
        if first == "x":
            if rest.partition(" ")[0] not in self.lab.layout.names("host"):
                raise BadValue("x needs a host and a program with windows", "write for example: x h1 wireshark")
            # There the display goes with it, which programs here have anyway.
            return self.answer(rest)
        if first in ("exit", "quit"):
            self.over = True
            return Answer({})
        if first in ("help", "?"):
            return _help(rest)
        if first in ("py", "px"):
            return self._python(rest)
        if first in ("sh", "!"):
            return _outside(rest)
        if first == "source":
            return self._source(rest)
        if first == "time":
            return self._timed(rest)
        if first == "sleep":
            self.lab.run_until(f"{self.lab.now() + duration_ps(rest, 'duration') / 1e12:.9f} s")
            return Answer({})
        if first in self._works:
            rest, bar, filtering = rest.partition("|")
            if bar and first == "capture":
                return self.captures.into_program(self.lab, _words(rest), filtering.strip())
            words = _words(rest)
            _refuse_surplus(first, words)
            answer = self._works[first](self.lab, words)
            return _filtered(answer, filtering) if bar else answer
        if first in self.lab.layout.names("host"):
            if not rest:
                raise BadValue(f"{first}: no program was given", f"write for example: {first} ping -c3 {first}")
            kept = self._kept.setdefault(first, Kept())
            return programs.run_program(self.lab, first, rest, self.jobs, kept, capture_output=self.as_json)
        if first in self.lab.layout.nodes:
            kind = self.lab.layout.node(first)["kind"]
            hosts = self.lab.layout.names("host")
            instead = f"write for example: {hosts[0]} {rest or 'ls'}" if hosts else "the lab has no host"
            raise BadValue(f"{first} is a {kind}: programs run in hosts", f"{instead}; of switches see: help")
        if (node := first.partition(".")[0]) in self.lab.layout.names("host"):
            raise BadValue(f"{first!r} is Python, which the command py evaluates", f"write for example: py {node}.ip")
        if rest.partition(" ")[0] in self.lab.layout.names("host"):
            host, _, others = rest.partition(" ")
            raise BadValue(
                f"{first!r} is no command: a program comes after its host", f"write: {host} {first} {others}"
            )
        # No command has a digit in it: who typed one meant a host.
        known = self.lab.layout.names("host") if any(sign.isdigit() for sign in first) else list(COMMANDS)
        raise BadValue(f"{first!r} is neither a command nor a host", did_you_mean(first, known, "see: help"))

    def _timed(self, line: str) -> Answer:
        if not line:
            raise BadValue("time needs a line", "write for example: time pingall")
        began_s = time.monotonic()
        answer = self.answer(line)
        took_s = time.monotonic() - began_s
        if answer.text and not self.as_json:
            print(answer.text_for(terminal_columns()), flush=True)
        return Answer({"answer": answer.data, "elapsed_s": took_s}, f"*** Elapsed time: {took_s:.6f} secs", answer.ok)

    def end(self) -> None:
        """Stop what the session began: its captures and samplers."""
        if self.lab.running:
            for ended in (self.captures.stop(), self.watches.stop()):
                if ended.text and not self.as_json:
                    print(ended.text, flush=True)

    def _source(self, path: str) -> Answer:
        """Do the lines of a file; a file that names itself is refused by depth."""
        if not path:
            raise BadValue("source needs a file", "write for example: source commands.txt")
        if self._depth >= _DEEPEST_SOURCE:
            raise BadValue(f"{path}: files name each other more than {_DEEPEST_SOURCE} deep", "end the circle")
        try:
            lines = read_given_text(path, _MOST_SOURCE_BYTES).splitlines()
        except UnicodeDecodeError:
            raise BadValue(f"{path} cannot be read: it is not text in UTF-8", "give a text file of lines") from None
        except OSError as error:
            raise BadValue(f"{path} cannot be read: {reason(error)}", "give a text file of lines") from None
        self._depth += 1
        try:
            done = [self.execute(line) for line in lines if not self.over]
        finally:
            self._depth -= 1
        return Answer({"lines": len(done), "done": sum(done)}, ok=all(done))

    def _nearest_name(self, error: Exception) -> str:
        """What was meant by a name that Python does not know; empty of other errors."""
        if not isinstance(error, (AttributeError, NameError)) or not error.name:
            return ""
        if isinstance(error, AttributeError) and error.obj is None:
            # The class has said it itself.
            return ""
        known = dir(error.obj) if isinstance(error, AttributeError) else self.names
        return did_you_mean(error.name.lower(), [name for name in known if not name.startswith("_")])

    def _python(self, source: str) -> Answer:
        """Evaluate what the user typed: it is their own prompt, with their own rights."""
        try:
            try:
                code = compile(source, "<prompt>", "eval")
            except SyntaxError:
                with redirect_stdout(bare(sys.stdout)):
                    exec(compile(source, "<prompt>", "exec"), self.names)
                return Answer(None)
            with redirect_stdout(bare(sys.stdout)):
                value = eval(code, self.names)
        except TwinnetError:
            raise
        except Exception as error:
            raise BadValue(f"{type(error).__name__}: {error}", self._nearest_name(error)) from None
        return Answer(repr(value), "" if value is None else str(value), verbatim=True)


def first_word(line: str) -> str:
    """The first word of `line`; empty when it has none."""
    return line.split(maxsplit=1)[0] if line.strip() else ""


def _tell(line: str) -> None:
    print(wrapped(line, terminal_columns(sys.stderr)), file=sys.stderr, flush=True)


def _show(line: str) -> None:
    print(line, flush=True)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise BadValue(f"the line cannot be split: {error}", "close the quotation") from None


def _refuse_surplus(command: str, words: Sequence[str]) -> None:
    """Refuse words that `command` would leave aside."""
    if words and command in _ALONE:
        goes = f"write: {command} | tee {words[1]}" if words[0] == ">" and len(words) > 1 else f"write: {command}"
        raise BadValue(f"{command} takes nothing after it, and {' '.join(words)!r} was given", goes)


def _help(about: str = "") -> Answer:
    about = _HELPED_BY.get(about, about)
    if about and about not in COMMANDS:
        raise BadValue(f"there is no command {about!r}", did_you_mean(about, COMMANDS, "see: help"))
    rows = [[one.usage, one.help] for name, one in COMMANDS.items() if about in ("", name)]
    if not about:
        rows.append(["HOST PROGRAM...", "run a program in a host, in the background with & at the end"])

    def shown(columns: int | None) -> str:
        return table(["line", "does"], rows, columns)

    usages = {name: command.usage for name, command in COMMANDS.items() if about in ("", name)}
    return Answer(usages, shown(None), fitted=shown)


def _filtered(answer: Answer, command: str) -> Answer:
    """`answer` with its text as the shell command `command`, such as ``grep s1``, leaves it."""
    if not command.strip():
        raise BadValue("no command follows the |", "write for example: links | grep s1")
    done = subprocess.run(command, shell=True, input=answer.text + "\n", text=True, stdout=subprocess.PIPE, check=False)
    # grep ends with 1 when nothing matches; the shell ends with 126 and 127 when it could not start the program.
    return Answer(answer.data, done.stdout.rstrip("\n"), answer.ok and done.returncode < 126, verbatim=True)


def _outside(command: str) -> Answer:
    if not re.search(r"\S", command):
        raise BadValue("sh: no command was given", "write for example: sh ls")
    sys.stdout.flush()
    status = subprocess.run(command, shell=True, check=False).returncode
    return Answer({"status": status}, ok=status == 0)
