"""The answers to ``ovs-vsctl`` and its kin, ``tc`` and clients of OVSDB in a script's machine, given by the script's
process.

The programs in the machine send their arguments by a socket; clients of OVSDB find theirs where Open vSwitch has it.
"""

from __future__ import annotations

import os
import re
import select
import socket
import struct
import threading
import time
import traceback
from contextlib import nullcontext, suppress
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

from twinnet.errors import TwinnetError
from twinnet.mininet.datapath_tools import DATAPATH_TOOLS, DatapathTools
from twinnet.mininet.execution import start_process
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.line_control import LineControl, LineRefused, NoLine
from twinnet.mininet.log import debug, error
from twinnet.mininet.programs import FOLDER
from twinnet.mininet.refused_commands import REFUSED_COMMANDS
from twinnet.mininet.switch_database import SwitchDatabase
from twinnet.mininet.tool_clients import AT_TERMINAL, asked_words, reply_bytes
from twinnet.mininet.tool_doors import RUN_VARIABLE, bound
from twinnet.ovsdb.qos_rows import Refused

if TYPE_CHECKING:
    from twinnet.mininet.followed_database import FollowedDatabase

__all__ = ["serve"]

_REQUEST_BYTES = 1 << 26
_PATIENCE_S = 10.0
_PAUSE_S = 0.1
_serving: set[int] = set()


class _Database:
    """The database behind ``ovs-vsctl``; clients of OVSDB see it from the first of them on."""

    def __init__(self, folder: Path) -> None:
        self._switches = SwitchDatabase(FABRIC)
        self._followed: FollowedDatabase | None = None
        self._lock = threading.RLock()
        self._door = bound(folder / "db.sock")
        self._door.listen(1)
        threading.Thread(target=self._await_client, name="twinnet-ovsdb-door", daemon=True).start()

    def _await_client(self) -> None:
        select.select([self._door], [], [])
        with self._lock:
            self._follow()

    def _follow(self) -> FollowedDatabase:
        """Return the database that clients see."""
        if self._followed is None:
            # Most scripts have no such client, and the schema takes time to read.
            from twinnet.mininet.followed_database import FollowedDatabase

            self._followed = FollowedDatabase(self._switches, self._door)
        return self._followed

    def reply(self, asked: list[str]) -> dict[str, Any]:
        """Do the command line `asked`."""
        with self._lock, self._followed.server.lock if self._followed else nullcontext():
            reply = self._done(asked)
            if self._followed is not None:
                self._followed.pull()
                self._followed.server.tell_changes()
            return reply

    def _done(self, asked: list[str]) -> dict[str, Any]:
        database = self._switches
        managers, database.notes = database.managers, []
        try:
            out = database.run(asked)
            if database.managers != managers:
                self._follow().follow_managers()
            reply = {"out": out, "err": "".join(f"ovs-vsctl: {note}\n" for note in database.notes), "status": 0}
        except (Refused, TwinnetError, OSError, IndexError, ValueError) as refused:
            reason = "the command lacks words" if isinstance(refused, IndexError) else str(refused)
            reply = {"out": "", "err": f"ovs-vsctl: {reason}\n", "status": 2 if "br-exists" in asked else 1}
        FABRIC.settle()
        return reply


def _line_reply(lines: LineControl, asked: list[str], caller: int) -> dict[str, Any]:
    """What ``tc`` of the process `caller` is to print; the status -1 has the kernel's ``tc`` do it."""
    try:
        return {"out": lines.run(asked), "err": "", "status": 0}
    except NoLine:
        return _all_reply(lines, asked, caller) if lines.shows_all(asked) else {"out": "", "err": "", "status": -1}
    except LineRefused as refused:
        return {"out": "", "err": f"{refused}\n", "status": refused.status}
    except (TwinnetError, IndexError, ValueError) as refused:
        return {"out": "", "err": f"{refused}\n", "status": 2}


def _all_reply(lines: LineControl, asked: list[str], caller: int) -> dict[str, Any]:
    """What ``tc qdisc show`` prints of all interfaces where `caller` is: the kernel's words, and ours of our lines."""
    program = next(
        (
            place
            for folder in os.get_exec_path()
            if folder != str(FOLDER) and os.access(place := f"{folder}/tc", os.X_OK)
        ),
        None,
    )
    if program is None:
        return {"out": "", "err": "", "status": -1}
    command = ["mnexec", "-a", str(caller), program, *asked]
    out, err = start_process(command, stdout=PIPE, stderr=PIPE, text=True).communicate()
    blocks = re.split(r"^(?=qdisc )", out, flags=re.MULTILINE)
    said, before = "", None
    for block in blocks:
        found = re.search(r" dev (\S+)", block.partition("\n")[0])
        name = found[1] if found else None
        try:
            # A discipline has a block, and ours of an interface come together. Asked for one, `tc` leaves its name out.
            ours = lines.run([*asked, "dev", name]) if name is not None and name != before else ""
            said += re.sub(r"^(qdisc \S+ \S+) ", rf"\1 dev {name} ", ours, flags=re.MULTILINE)
        except (NoLine, LineRefused):
            said, name = said + block, None
        before = name
    return {"out": said, "err": err, "status": 0 if not err else 1}


def _datapath_reply(tools: DatapathTools, program: str, asked: list[str]) -> dict[str, Any]:
    try:
        return {"out": tools.run(program, asked), "err": "", "status": 0}
    except (Refused, TwinnetError) as refused:
        return {"out": "", "err": f"{program}: {refused}\n", "status": 1}


def _pid_at(sock: socket.socket) -> int:
    """The process at the other end (unix(7), ``SO_PEERCRED``)."""
    pid, _, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid)


def _fault_reply(program: str, fault: Exception) -> dict[str, Any]:
    """What is to be printed where we fail at a command: the next one is answered all the same."""
    debug("".join(traceback.format_exception(fault)))
    error(f"*** {program}: a fault of twinnet: {fault!r}\n")
    return {"out": "", "err": f"{program}: a fault of twinnet: {fault!r}\n", "status": 1}


def serve() -> None:
    """Answer ``ovs-vsctl``, ``tc`` and their kin in a script's machine from a thread of this process; once. The
    switches and lines of a process are known as long as it lives."""
    folder = os.environ.get(RUN_VARIABLE)
    if folder is None or os.getpid() in _serving:
        return
    _serving.add(os.getpid())
    database, lines, tools = _Database(Path(folder)), LineControl(FABRIC), DatapathTools(FABRIC)
    listener = bound(Path(folder) / f"{os.getpid()}.vsctl")
    listener.listen(64)

    def reply_of(program: str, asked: list[str], caller: int) -> dict[str, Any]:
        if program == "tc":
            return _line_reply(lines, asked, caller)
        if program in DATAPATH_TOOLS:
            return _datapath_reply(tools, program, asked)
        return database.reply(asked)

    def answer() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                # A script may have no descriptor left for the moment.
                time.sleep(_PAUSE_S)
                continue
            # A program that was killed meanwhile, or says nothing, must not keep others waiting for ever.
            sock.settimeout(_PATIENCE_S)
            with suppress(OSError, ValueError), sock, sock.makefile("rwb") as stream:
                program, *asked = asked_words(stream.read(_REQUEST_BYTES))
                try:
                    reply = reply_of(program, asked, _pid_at(sock))
                except Exception as fault:
                    reply = _fault_reply(program, fault)
                if reply["status"] > 0:
                    # A program at a terminal has said so in a word of its own.
                    REFUSED_COMMANDS.note(program, [word for word in asked if word != AT_TERMINAL], reply["err"])
                stream.write(reply_bytes(**reply))

    threading.Thread(target=answer, name="twinnet-vsctl", daemon=True).start()
