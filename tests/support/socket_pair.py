"""Runs `twinnet recv` and then `twinnet send` in the namespaces that it is started in; prints what became of them.

Takes one JSON object: `recv` (arguments), `sends` (a list of arguments), `prefix` (before `twinnet recv`), `mtu` of the
loopback, `late` (the receiver starts when so many datagrams were sent to UDP port 5003 by the only sender).
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

TWINNET = [sys.executable, "-m", "twinnet"] if not (Path(sys.executable).parent / "twinnet").exists() else [
    str(Path(sys.executable).parent / "twinnet")
]  # fmt: skip


def _sent_before(arguments: list[str], count: int) -> subprocess.Popen[str]:
    """A sender of which `count` datagrams were taken from the receiver's port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("0.0.0.0", 5003))
        sender = subprocess.Popen(
            [*TWINNET, "send", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(count):
            taken.recv(100)
    return sender


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the receiver's and the senders' status and outputs."""
    subprocess.run(["ip", "link", "set", "lo", "up", "mtu", str(wanted.get("mtu", 1500))], check=True)
    receiver = early = None
    if wanted.get("late"):
        early = _sent_before(wanted["sends"].pop(), int(wanted["late"]))
    if wanted.get("recv") is not None:
        receiver = subprocess.Popen(
            [*wanted.get("prefix", []), *TWINNET, "recv", *wanted["recv"]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert receiver.stderr is not None
        ready = receiver.stderr.readline()
        if "Listening" not in ready:
            told = receiver.communicate()
            return {"recv": {"status": receiver.returncode, "out": told[0], "err": ready + told[1]}, "sends": []}
    sends = [
        subprocess.run([*TWINNET, "send", *arguments], capture_output=True, text=True, check=False, timeout=60)
        for arguments in wanted["sends"]
    ]
    if early is not None:
        out, err = early.communicate(timeout=60)
        sends.append(subprocess.CompletedProcess(early.args, early.returncode, out, err))
    found: dict[str, Any] = {
        "sends": [{"status": done.returncode, "out": done.stdout, "err": done.stderr} for done in sends]
    }
    if receiver is not None:
        if "--duration" not in wanted["recv"] and "--idle" not in wanted["recv"]:
            receiver.send_signal(signal.SIGTERM)
        told = receiver.communicate(timeout=60)
        found["recv"] = {"status": receiver.returncode, "out": told[0], "err": told[1]}
    return found


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
