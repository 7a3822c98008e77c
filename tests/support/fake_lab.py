"""A lab that plays a script: it answers requests over a socket pair as the lab protocol says, and remembers them."""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from twinnet.lab.lab import Lab
from twinnet.lab_process.connection import LabConnection
from twinnet.network.network import Network


class Refusal(Exception):
    """An answer with ``error``."""

    def __init__(self, name: str, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.error = {"name": name, "message": message, "remedy": remedy}


class FakeLab:
    """The far end: `answers` maps a request's name to a function of its fields; ``spawn`` runs programs here."""

    def __init__(self, network: Network) -> None:
        self.spec = network.to_spec()
        self.requests: list[dict[str, Any]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "describe": lambda _: self.spec,
            "stop": lambda _: {},
            "now": lambda _: {"now_ps": 1_500_000_000_000},
        }
        self.held: list[dict[str, Any]] = []
        self.programs: dict[int, subprocess.Popen[bytes]] = {}
        ours, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        self.lab = Lab(None, "fake")
        self.lab.adopt(LabConnection(ours))

    def asked(self, do: str) -> list[dict[str, Any]]:
        return [{k: v for k, v in one.items() if k not in ("id", "do")} for one in self.requests if one["do"] == do]

    def serve(self) -> None:
        while True:
            try:
                packet, ancillary, _, _ = self.far.recvmsg(1 << 20, socket.CMSG_SPACE(64))
            except OSError:
                return
            if not packet:
                return
            descriptors = array.array("i")
            for _, _, data in ancillary:
                descriptors.frombytes(data)
            request = json.loads(packet)
            if request.get("memfd"):
                request = json.loads(os.pread(descriptors[0], os.fstat(descriptors[0]).st_size, 0))
            self.requests.append(request)
            self.answer(request, list(descriptors))
            for descriptor in descriptors:
                os.close(descriptor)

    def answer(self, request: dict[str, Any], descriptors: list[int]) -> None:
        do = request["do"]
        try:
            if do == "spawn":
                self.reply(request, self.spawn(request, descriptors))
            elif do == "wait":
                threading.Thread(target=self.wait, args=(request,), daemon=True).start()
            elif do == "signal":
                os.killpg(self.programs[request["job"]].pid, request["signal"])
                self.reply(request, {})
            elif do == "hold":
                self.held.append(request)
            else:
                self.reply(request, self.answers[do](request))
        except Refusal as refusal:
            self.send({"id": request["id"], "error": refusal.error})

    def reply(self, request: dict[str, Any], ok: Any) -> None:
        self.send({"id": request["id"], "ok": ok})

    def send(self, message: dict[str, Any]) -> None:
        packet = json.dumps(message).encode()
        if len(packet) <= 128 * 1024:
            self.far.send(packet)
            return
        memory = os.memfd_create("reply")
        os.write(memory, packet)
        socket.send_fds(self.far, [b'{"memfd":true}'], [memory])
        os.close(memory)

    def spawn(self, request: dict[str, Any], streams: list[int]) -> dict[str, int]:
        try:
            program = subprocess.Popen(
                request["argv"], stdin=streams[0], stdout=streams[1], stderr=streams[2], start_new_session=True
            )
        except FileNotFoundError:
            raise Refusal("ProgramMissing", f"{request['argv'][0]} is not installed", "install it") from None
        number = len(self.programs) + 1
        self.programs[number] = program
        limit = request.get("limit_ps")
        if limit is not None:
            threading.Timer(limit / 1e12, program.kill).start()
        return {"job": number, "pid": program.pid}

    def wait(self, request: dict[str, Any]) -> None:
        code = self.programs[request["job"]].wait()
        limited = any(one.get("limit_ps") is not None for one in self.asked("spawn")) and code == -9
        ended = {"status": None if code < 0 else code, "signal": -code if code < 0 else None, "limit": limited}
        # The test may be over and its lab closed before a program that it left behind has ended.
        with contextlib.suppress(OSError):
            self.reply(request, ended | {"elapsed_ps": 10**9})

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.far.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.far.close()
        self.lab.connection.close()
        for program in self.programs.values():
            program.kill()
            program.wait()
