"""Captures at the prompt, into files and into programs such as Wireshark: ``capture``."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

from twinnet.cli.prompt.answer import Answer
from twinnet.errors import BadValue, did_you_mean
from twinnet.lab.lab import Capture, Lab

__all__ = ["Captures"]

_USAGE = (
    "write: capture s1-eth1 out.pcapng [ring 5 10MB] [direction in], capture s1-eth1 | wireshark -k -i -, "
    "or: capture stop [s1-eth1]"
)
_PROGRAM_PATIENCE_S = 5.0


class Captures:
    """The captures that run, by interface, and the programs that read them."""

    def __init__(self) -> None:
        self.running: dict[str, Capture] = {}
        self._programs: dict[str, subprocess.Popen[bytes]] = {}

    def command(self, lab: Lab, arguments: Sequence[str]) -> Answer:
        """Begin or stop a capture: ``capture s1-eth1 out.pcapng [ring 5 10MB] [direction in]``, ``capture stop
        [s1-eth1]``."""
        if list(arguments[:1]) == ["stop"]:
            names = list(arguments[1:]) or list(self.running)
            return self.stop(names)
        if not arguments:
            names = {name: one.path for name, one in self.running.items()}
            lines = [f"{name} {path if path.startswith('| ') else f'-> {path}'}" for name, path in names.items()]
            return Answer(names, "\n".join(lines) or "no capture runs")
        if len(arguments) < 2:
            raise BadValue("capture needs an interface and a file", _USAGE)
        interface, path, *words = arguments
        if path == "-":
            raise BadValue(
                "the prompt itself writes to standard output",
                f"write: capture {interface} | wireshark -k -i -, or in another terminal: "
                f"twinnet capture {lab.name} {interface} - | wireshark -k -i -",
            )
        settings = _capture_settings(words)
        self._refuse_second(interface)
        self.running[interface] = lab.capture(interface, path, **settings)
        return Answer({"capture": interface, "path": path})

    def into_program(self, lab: Lab, arguments: Sequence[str], command: str) -> Answer:
        """Begin a capture whose pcapng goes to the standard input of the shell command `command` while it runs."""
        if not arguments or arguments[0] == "stop" or not command:
            raise BadValue("a capture into a program needs an interface and a command", _USAGE)
        interface, *words = [word for word in arguments if word != "-"]
        settings = _capture_settings(words)
        self._refuse_second(interface)
        lab.layout.port(interface)
        # A group of its own: Ctrl-C at the prompt is not meant for the program that shows the capture.
        program = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, process_group=0)
        assert program.stdin is not None
        try:
            capture = lab.capture(interface, program.stdin, **settings)
        finally:
            program.stdin.close()
        capture.path = f"| {command}"
        self.running[interface], self._programs[interface] = capture, program
        return Answer({"capture": interface, "command": command, "pid": program.pid})

    def stop(self, names: Sequence[str] | None = None) -> Answer:
        """Stop the captures of `names` (default: all) and tell what they hold."""
        data: dict[str, Any] = {}
        lines: list[str] = []
        for name in list(self.running) if names is None else names:
            if name not in self.running:
                raise BadValue(f"{name} is not captured", did_you_mean(name, self.running))
            one = self.running.pop(name).stop()
            data[name] = {"path": one.path, "frames": one.frames, "dropped": one.dropped, "files": one.files}
            if name in self._programs:
                self._await_program(self._programs.pop(name))
                where = f"sent to {one.path.removeprefix('| ')}"
            else:
                where = f"in {one.path}" if one.files == [one.path] else f"in {one.files[0]} to {one.files[-1]}"
            dropped = f", {one.dropped} dropped" if one.dropped else ""
            failure = f" ({one.failure})" if one.failure else ""
            lines.append(f"{name}: {one.frames} frames {where}{dropped}{failure}")
        return Answer(data, "\n".join(lines))

    @staticmethod
    def _await_program(program: subprocess.Popen[bytes]) -> None:
        """Let a program that reads to the end (tshark) write its last lines; one with a window stays open."""
        try:
            program.wait(_PROGRAM_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return

    def _refuse_second(self, interface: str) -> None:
        if interface in self.running:
            raise BadValue(f"{interface} is captured already, to {self.running[interface].path}", "capture stop first")


def _capture_settings(words: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    rest = list(words)
    while rest:
        name = rest.pop(0)
        if name == "ring" and len(rest) >= 2 and rest[0].isdecimal():
            settings["ring"] = (int(rest[0]), rest[1])
            del rest[:2]
        elif name in ("limit", "snap", "direction") and rest:
            settings[name] = rest.pop(0)
        else:
            raise BadValue(f"capture does not understand {name!r} there", _USAGE)
    return settings
