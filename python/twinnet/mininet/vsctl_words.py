"""The words of command lines of ``ovs-vsctl``: options and commands, and the names of tables and columns.

Options before the first command, tables and columns may be cut short while one alone begins so (``ovs-vsctl(8)``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twinnet.mininet.column_checks import column_named, table_named
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["Line", "with_full_names"]

_NONE, _ONE, _PERHAPS = "none", "one", "perhaps"
"""How many values an option has."""
_OF_ALL = {
    "--db": _ONE,
    "--no-syslog": _NONE,
    "--no-wait": _NONE,
    "--dry-run": _NONE,
    "--oneline": _NONE,
    "--timeout": _ONE,
    "--retry": _NONE,
    "--leader-only": _NONE,
    "--no-leader-only": _NONE,
    "--shuffle-remotes": _NONE,
    "--no-shuffle-remotes": _NONE,
    "--version": _NONE,
    "--verbose": _PERHAPS,
    "--log-file": _PERHAPS,
    "--syslog-method": _ONE,
    "--syslog-target": _ONE,
    "--format": _ONE,
    "--data": _ONE,
    "--no-headings": _NONE,
    "--pretty": _NONE,
    "--bare": _NONE,
    "--max-column-width": _ONE,
    "--private-key": _ONE,
    "--certificate": _ONE,
    "--ca-cert": _ONE,
    "--bootstrap-ca-cert": _ONE,
    "--peer-ca-cert": _ONE,
}
"""The options for all commands of a line, in the order in which they are told where several are meant."""
_OF_COMMANDS = {
    "--if-exists": _NONE,
    "--id": _ONE,
    "--may-exist": _NONE,
    "--inactivity-probe": _ONE,
    "--real": _NONE,
    "--fake": _NONE,
    "--columns": _ONE,
    "--with-iface": _NONE,
    "--fake-iface": _NONE,
    "--all": _NONE,
}
_LETTERS = {
    "-t": "--timeout",
    "-f": "--format",
    "-d": "--data",
    "-V": "--version",
    "-v": "--verbose",
    "-p": "--private-key",
    "-c": "--certificate",
    "-C": "--ca-cert",
}


@dataclass(frozen=True)
class _Command:
    """How many words a command takes (`most` ``None``: any number), and the options that it has of its own."""

    least: int
    most: int | None
    options: tuple[str, ...] = ()


_COMMANDS = {
    "init": _Command(0, 0),
    "show": _Command(0, 0),
    "comment": _Command(0, None),
    "emer-reset": _Command(0, 0),
    "add-br": _Command(1, 3, ("--may-exist",)),
    "del-br": _Command(1, 1, ("--if-exists",)),
    "list-br": _Command(0, 0, ("--real", "--fake")),
    "br-exists": _Command(1, 1),
    "br-to-vlan": _Command(1, 1),
    "br-to-parent": _Command(1, 1),
    "br-set-external-id": _Command(2, 3),
    "br-get-external-id": _Command(1, 2),
    "list-ports": _Command(1, 1),
    "add-port": _Command(2, None, ("--may-exist",)),
    "add-bond": _Command(4, None, ("--may-exist", "--fake-iface")),
    "del-port": _Command(1, 2, ("--if-exists", "--with-iface")),
    "port-to-br": _Command(1, 1),
    "list-ifaces": _Command(1, 1),
    "iface-to-br": _Command(1, 1),
    "get-controller": _Command(1, 1),
    "del-controller": _Command(1, 1),
    "set-controller": _Command(1, None, ("--inactivity-probe",)),
    "get-fail-mode": _Command(1, 1),
    "del-fail-mode": _Command(1, 1),
    "set-fail-mode": _Command(2, 2),
    "get-manager": _Command(0, 0),
    "del-manager": _Command(0, 0),
    "set-manager": _Command(1, None, ("--inactivity-probe",)),
    "get-ssl": _Command(0, 0),
    "del-ssl": _Command(0, 0),
    "set-ssl": _Command(3, 3),
    "list": _Command(1, None, ("--if-exists", "--columns")),
    "find": _Command(1, None, ("--columns",)),
    "get": _Command(2, None, ("--if-exists", "--id")),
    "set": _Command(3, None, ("--if-exists",)),
    "add": _Command(4, None, ("--if-exists",)),
    "remove": _Command(4, None, ("--if-exists",)),
    "clear": _Command(3, None, ("--if-exists",)),
    "create": _Command(2, None, ("--id",)),
    "destroy": _Command(1, None, ("--if-exists", "--all")),
    "wait-until": _Command(2, None, ("--if-exists",)),
}
_FIRST_COLUMN = {"find": 1, "create": 1, "get": 2, "set": 2, "clear": 2, "add": 2, "remove": 2, "wait-until": 2}
"""The places among the words behind such a command where its columns begin."""
_ONE_COLUMN = ("add", "remove")
_COLUMN = re.compile(r"[\w-]+")


@dataclass(frozen=True)
class Line:
    """A command line, read.

    Parameters
    ----------
    settings
        The options for all of its commands, by their full names, with their values.
    commands
        Its commands, each with its own options first.
    """

    settings: dict[str, str]
    commands: list[list[str]]

    @classmethod
    def read(cls, arguments: Sequence[str]) -> Line:
        """Read `arguments`; raises :class:`Refused` in Open vSwitch's words."""
        settings: dict[str, str] = {}
        commands: list[list[str]] = [[]]
        rest = list(arguments)
        while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
            word = rest.pop(0)
            name, value = _long(word, rest) if word.startswith("--") else _short(word, rest)
            if name in _OF_COMMANDS:
                commands[-1].append(name if value is None else f"{name}={value}")
            else:
                settings[name] = value or ""
        for word in rest:
            if word == "--":
                commands.append([])
            else:
                commands[-1].append(word)
        return cls(settings, [command for command in commands if command])

    def check(self) -> None:
        """Raise :class:`Refused` unless its commands are there, with as many words and such options as they take."""
        if not self.commands:
            raise Refused("missing command name (use --help for help)")
        for command in self.commands:
            options = list(_options(command))
            name, *words = command[len(options) :] or [""]
            if not name:
                raise Refused("missing command name (use --help for help)")
            if name not in _COMMANDS:
                raise Refused(f"unknown command '{name}'; use --help for help")
            _check_options(name, options)
            known = _COMMANDS[name]
            if len(words) < known.least:
                raise Refused(f"'{name}' command requires at least {known.least} arguments")
            if known.most is not None and len(words) > known.most:
                raise Refused(f"'{name}' command takes at most {known.most} arguments")


def _options(command: Sequence[str]) -> Iterator[str]:
    for word in command:
        if not word.startswith("--"):
            return
        yield word


def _check_options(name: str, options: Sequence[str]) -> None:
    for word in options:
        option, given, _ = word.partition("=")
        if option not in _COMMANDS[name].options:
            raise Refused(f"'{name}' command has no '{option}' option")
        if given and _OF_COMMANDS[option] == _NONE:
            raise Refused(f"'{option}' option on '{name}' does not accept an argument")
        if not given and _OF_COMMANDS[option] == _ONE:
            raise Refused(f"missing argument to '{option}' option on '{name}' command")


def _long(word: str, rest: list[str]) -> tuple[str, str | None]:
    """The option that `word` means and its value, which may be the first of `rest`."""
    name, given, value = word.partition("=")
    known = _OF_ALL | _OF_COMMANDS
    meant = [name] if name in known else [one for one in known if one.startswith(name)]
    if not meant:
        raise Refused(f"unrecognized option '{name}'")
    if len(meant) > 1:
        said = " ".join(f"'{one}'" for one in meant)
        raise Refused(f"option '{name}' is ambiguous; possibilities: {said}")
    values = known[meant[0]]
    if given and values == _NONE:
        raise Refused(f"option '{meant[0]}' doesn't allow an argument")
    if not given and values == _ONE:
        if not rest:
            raise Refused(f"option '{meant[0]}' requires an argument")
        return meant[0], rest.pop(0)
    return meant[0], value if given else None


def _short(word: str, rest: list[str]) -> tuple[str, str | None]:
    name, value = _LETTERS.get(word[:2]), word[2:]
    if name is None:
        raise Refused(f"invalid option -- '{word[1:2]}'")
    if _OF_ALL[name] == _ONE and not value:
        if not rest:
            raise Refused(f"option requires an argument -- '{word[1]}'")
        value = rest.pop(0)
    return name, value


def with_full_names(command: Sequence[str]) -> list[str]:
    """Return `command` with the full names of its table and columns; raises :class:`Refused` where a name is that of
    none, or of several."""
    options = list(_options(command))
    name, *words = command[len(options) :]
    if name == "add-port":
        return [*options, name, *words[:2], *(_with_column("Port", word) for word in words[2:])]
    if name not in _FIRST_COLUMN and name not in ("list", "destroy"):
        return list(command)
    table = table_named(words[0])
    options = [_with_columns(table, one) if one.startswith("--columns=") else one for one in options]
    first = _FIRST_COLUMN.get(name, len(words))
    last = first + 1 if name in _ONE_COLUMN else len(words)
    columns = [_with_column(table, word) for word in words[first:last]]
    return [*options, name, table, *words[1:first], *columns, *words[last:]]


def _with_columns(table: str, option: str) -> str:
    names = [one for one in re.split(r"[,\s]+", option.removeprefix("--columns=")) if one]
    if not names:
        raise Refused("must specify at least one column name")
    return "--columns=" + ",".join(column_named(table, one) for one in names)


def _with_column(table: str, word: str) -> str:
    """A word that begins with a column's name: alone, or before a key and a value."""
    found = _COLUMN.match(word)
    if found is None:
        raise Refused(f"{word}: missing column name")
    return column_named(table, found[0]) + word[found.end() :]
