"""One session of the prompt: takes a line, does it, prints the answer."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import twinnet
from twinnet.cli.prompt import changing, measuring, programs, showing, watching
from twinnet.cli.prompt.answer import Answer
from twinnet.errors import BadValue, LabClosed, TwinnetError, did_you_mean
from twinnet.lab.lab import Lab
from twinnet.units import duration_ps

__all__ = ["COMMANDS", "Command", "Session"]

Work = Callable[[Lab, Sequence[str]], Answer]


class Command(NamedTuple):
    """A command of the prompt: its usage, what it does, and what may follow it (for completion)."""

    usage: str
    help: str
    follows: tuple[str, ...] = ()


COMMANDS: dict[str, Command] = {
    "nodes": Command("nodes", "list the nodes"),
    "net": Command("net", "show which interface leads to which"),
    "dump": Command("dump", "show every node with its addresses"),
    "links": Command("links", "show the links as they are now"),
    "ports": Command("ports [NAME]...", "show the counters of ports", ("node",)),
    "flows": Command("flows [SWITCH]...", "show flows", ("switch",)),
    "flow": Command("flow SWITCH add FLOW | del [MATCH]", "add or delete flows", ("switch", "flow")),
    "link": Command("link A B up | down | delay 10ms rate 5Mbit ...", "change a link", ("node", "node", "setting")),
    "pingall": Command("pingall [HOST]...", "ping between all hosts", ("host",)),
    "iperf": Command("iperf A B [5 s] [udp RATE]", "measure throughput between two hosts", ("host", "host")),
    "capture": Command(
        "capture INTERFACE FILE [ring N SIZE] | stop [INTERFACE]", "write frames to pcapng", ("interface",)
    ),
    "watch": Command(
        "watch INTERFACE... INTERVAL [DURATION] [FILE.csv] | stop [FILE.csv]",
        "show rates of ports, or write them",
        ("interface",),
    ),
    "tunnels": Command("tunnels", "show the tunnels to other speakers"),
    "fidelity": Command("fidelity [reset]", "tell how well the lab kept its schedule"),
    "jobs": Command("jobs", "show the programs that run"),
    "py": Command("py EXPR", "evaluate Python: lab, tn, and every host by its name"),
    "sh": Command("sh COMMAND", "run a command outside the lab"),
    "sleep": Command("sleep DURATION", "wait"),
    "help": Command("help", "show this"),
    "exit": Command("exit", "end the lab"),
}
"""The commands by name; every other line begins with a host and is a program for it."""


class Session:
    """The prompt of one lab.

    Parameters
    ----------
    lab
        The running lab.
    as_json
        Whether each answer is one line of JSON.
    """

    def __init__(self, lab: Lab, as_json: bool = False) -> None:
        self.lab = lab
        self.as_json = as_json
        self.over: bool = False
        self.captures: changing.Captures = changing.Captures()
        self.watches: watching.Watches = watching.Watches(None if as_json else _show)
        self.names: dict[str, Any] = {"tn": twinnet, "lab": lab}
        for host in lab.hosts:
            self.names.setdefault(host.name, host)
        self._works: dict[str, Work] = {
            "nodes": showing.nodes,
            "net": showing.net,
            "dump": showing.dump,
            "links": showing.links,
            "ports": showing.ports,
            "flows": showing.flows,
            "jobs": showing.jobs,
            "tunnels": showing.tunnels,
            "flow": changing.flow,
            "link": changing.link,
            "capture": self.captures.command,
            "watch": self.watches.command,
            "pingall": measuring.pingall,
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
            answer = self.answer(line)
        except LabClosed:
            raise
        except TwinnetError as error:
            if self.as_json:
                told = {"name": error.name, "message": error.message, "remedy": error.remedy}
                print(json.dumps({"command": line, "error": told}, ensure_ascii=False), flush=True)
            else:
                print(f"*** {error}", file=sys.stderr, flush=True)
            return False
        if self.as_json:
            print(json.dumps({"command": line, "ok": answer.ok, "result": answer.data}, ensure_ascii=False), flush=True)
        elif answer.text:
            print(answer.text, flush=True)
        return answer.ok

    def answer(self, line: str) -> Answer:
        """Return the answer to `line`."""
        first, _, rest = line.partition(" ")
        rest = rest.strip()
        if first in ("exit", "quit"):
            self.over = True
            return Answer({})
        if first in ("help", "?"):
            return _help()
        if first in ("py", "px"):
            return self._python(rest)
        if first in ("sh", "!"):
            return _outside(rest)
        if first == "sleep":
            self.lab.run_until(f"{self.lab.now() + duration_ps(rest, 'duration') / 1e12:.9f} s")
            return Answer({})
        if first in self._works:
            return self._works[first](self.lab, _words(rest))
        if first in self.lab.layout.names("host"):
            if not rest:
                raise BadValue(f"{first}: no program was given", f"write for example: {first} ping -c3 {first}")
            return programs.run_program(self.lab, first, rest, capture_output=self.as_json)
        # No command has a digit in it: who typed one meant a host.
        known = self.lab.layout.names("host") if any(sign.isdigit() for sign in first) else list(COMMANDS)
        raise BadValue(f"{first!r} is neither a command nor a host", f"{did_you_mean(first, known)}; see: help")

    def end(self) -> None:
        """Stop what the session began: its captures and samplers."""
        if self.lab.running:
            for told in (self.captures.stop(), self.watches.stop()):
                if told.text and not self.as_json:
                    print(told.text, flush=True)

    def _python(self, source: str) -> Answer:
        """Evaluate what the user typed: it is their own prompt, with their own rights."""
        try:
            try:
                code = compile(source, "<prompt>", "eval")
            except SyntaxError:
                exec(compile(source, "<prompt>", "exec"), self.names)
                return Answer(None)
            value = eval(code, self.names)
        except TwinnetError:
            raise
        except Exception as error:
            raise BadValue(f"{type(error).__name__}: {error}") from None
        return Answer(repr(value), "" if value is None else str(value))


def _show(line: str) -> None:
    print(line, flush=True)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise BadValue(f"the line cannot be split: {error}", "close the quotation") from None


def _help() -> Answer:
    width = max(len(command.usage) for command in COMMANDS.values())
    lines = [f"  {command.usage.ljust(width)}  {command.help}" for command in COMMANDS.values()]
    lines += [f"  {'HOST PROGRAM...'.ljust(width)}  run a program in a host, in the background with & at the end"]
    return Answer({name: command.usage for name, command in COMMANDS.items()}, "\n".join(lines))


def _outside(command: str) -> Answer:
    if not re.search(r"\S", command):
        raise BadValue("sh: no command was given", "write for example: sh ls")
    sys.stdout.flush()
    status = subprocess.run(command, shell=True, check=False).returncode
    return Answer({"status": status}, ok=status == 0)
