"""A bare client of the lab protocol (docs/reference/lab-protocol.md), for tests that look beneath the package."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

CORE_PATH = Path(__file__).parents[2] / "python" / "twinnet" / "_core.abi3.so"
PACKET_BYTES = 128 * 1024
ANSWER_TIMEOUT_S = 20.0


def load_core() -> ModuleType:
    """Load the extension by its path, as a lab does, without the package around it."""
    loader = importlib.machinery.ExtensionFileLoader("_core", str(CORE_PATH))
    spec = importlib.util.spec_from_loader("_core", loader, origin=str(CORE_PATH))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


core = load_core()


class Refused(Exception):
    """An error reply."""

    def __init__(self, error: dict[str, str]) -> None:
        super().__init__(f"{error['name']}: {error['message']} ({error['remedy']})")
        self.name = error["name"]
        self.message = error["message"]


class Client:
    """One end of a conversation with a lab."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        connection.settimeout(ANSWER_TIMEOUT_S)
        self.last_id = 0
        self.answers: dict[int, dict[str, Any]] = {}

    def send(self, do: str, descriptors: Sequence[int] = (), **fields: Any) -> int:
        self.last_id += 1
        text = json.dumps({"id": self.last_id, "do": do, **fields}).encode()
        if len(text) <= PACKET_BYTES:
            socket.send_fds(self.connection, [text], list(descriptors))
        else:
            memfd = os.memfd_create("request", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.write(memfd, text)
            socket.send_fds(
                self.connection, [json.dumps({"memfd": True, "id": self.last_id}).encode()], [memfd, *descriptors]
            )
            os.close(memfd)
        return self.last_id

    def receive(self) -> dict[str, Any]:
        text, descriptors, _, _ = socket.recv_fds(self.connection, 2 * PACKET_BYTES, 4)
        if not text:
            raise EOFError("the lab has closed the conversation")
        if descriptors:
            text = os.pread(descriptors[0], 1 << 28, 0)
            os.close(descriptors[0])
        return json.loads(text)

    def answer(self, number: int) -> Any:
        while number not in self.answers:
            reply = self.receive()
            self.answers[reply["id"]] = reply
        reply = self.answers.pop(number)
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["ok"]

    def ask(self, do: str, descriptors: Sequence[int] = (), **fields: Any) -> Any:
        return self.answer(self.send(do, descriptors, **fields))

    def spawn(self, host: str, *argv: str, stdout: int | None = None, **fields: Any) -> int:
        """Start a program with /dev/null in the place of what is not given; its job number."""
        null = os.open("/dev/null", os.O_RDWR)
        out = null if stdout is None else stdout
        try:
            return self.ask("spawn", [null, out, out], host=host, argv=list(argv), **fields)["job"]
        finally:
            os.close(null)

    def run(self, host: str, *argv: str, **fields: Any) -> tuple[dict[str, Any], str]:
        """Run a program to its end: how it ended, and what it wrote."""
        reader, writer = os.pipe()
        try:
            job = self.spawn(host, *argv, stdout=writer, **fields)
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        with os.fdopen(reader) as output:
            written = output.read()
        return self.ask("wait", job=job), written


class RawLab(Client):
    """A lab of one's own."""

    def __init__(self, name: str | None = None) -> None:
        handle = core.spawn_lab(name, sys.executable, str(CORE_PATH))
        self.pid: int = handle.pid
        self.pidfd: int = handle.pidfd
        self.name: str = handle.name
        super().__init__(socket.socket(fileno=handle.socket))
        self.user_namespace = str(Path(f"/proc/{self.pid}/ns/user").readlink())

    def start(self, network: dict[str, Any], **options: Any) -> dict[str, Any]:
        return self.ask("start", network=network, options=options)

    def processes(self) -> list[int]:
        """Processes in the lab's user namespace, seen from outside."""
        return processes_in(self.user_namespace)

    def close(self) -> None:
        """Let the lab go and wait until it is gone."""
        self.connection.close()
        os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED)
        os.close(self.pidfd)


def processes_in(user_namespace: str) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str((entry / "ns" / "user").readlink()) == user_namespace:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether the condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def star(hosts: int, **host_fields: Any) -> dict[str, Any]:
    """Hosts h1, h2, ... around one switch."""
    nodes: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    for number in range(1, hosts + 1):
        address = f"10.0.{number >> 8}.{number & 255}/8"
        mac = f"00:00:00:00:{number >> 8:02x}:{number & 255:02x}"
        port = {"name": f"h{number}-eth0", "mac": mac, "addresses": [address, f"fd00::{number:x}/64"]}
        nodes.append({"kind": "host", "name": f"h{number}", "ports": [port], **host_fields})
        links.append({"a": {"node": f"h{number}", "port": 0}, "b": {"node": "s1", "port": number - 1}})
    ports = [{"name": f"s1-eth{number}", "number": number} for number in range(1, hosts + 1)]
    nodes.append({"kind": "switch", "name": "s1", "dpid": 1, "ports": ports})
    return {"seed": 1, "nodes": nodes, "links": links}
