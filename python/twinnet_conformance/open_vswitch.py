"""Open vSwitch as a target: its userspace datapath, with the devices and the clock of its tests (``--enable-dummy``).

It runs in a private directory and touches neither the machine's own Open vSwitch nor a network interface.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from twinnet_conformance.target import NotPossible

__all__ = ["OpenVSwitch", "why_not"]

PROGRAMS = ("setpriv", "ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
PORTS = 4
CONTROLLERS = 4
"""Controllers that the bridge is given; it connects to those that listen."""
PATIENCE_S = 5.0
PCAP_HEAD, RECORD_HEAD = 24, 16
LARGEST_ANSWER = 1 << 16


def why_not() -> str | None:
    """Return why Open vSwitch cannot be run here; `None`: it can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing or not SCHEMA.exists():
        return f"{', '.join(missing) or SCHEMA} is missing: apt install openvswitch-switch"
    return None


class OpenVSwitch:
    """A bridge of Open vSwitch with the datapath in user space."""

    patience_s = 2.0
    takes_ports_down = False

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="twinnet-ovs-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        self._listeners: list[socket.socket] = []
        self._read: dict[int, int] = {}
        self._generation = 0
        self._free: list[int] = []
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        version = subprocess.run(["ovs-vswitchd", "--version"], capture_output=True, text=True, check=True).stdout
        self.name = "Open vSwitch " + version.split("\n")[0].split()[-1]

    def _start(self) -> None:
        folder = self._folder
        subprocess.run(["ovsdb-tool", "create", folder / "conf.db", SCHEMA], check=True, capture_output=True)
        database = f"unix:{folder}/db.sock"
        self._run(["ovsdb-server", f"--remote=p{database}", f"--unixctl={folder}/ovsdb.ctl", folder / "conf.db"])
        _wait_for(folder / "db.sock")
        self._vsctl("--no-wait", "init")
        self._run(["ovs-vswitchd", "--enable-dummy", "--disable-system", f"--unixctl={folder}/ovs.ctl", database])
        self._control = _connected(folder / "ovs.ctl")
        self._control.settimeout(PATIENCE_S)
        # Two tags instead of one, which is all that it looks at by default.
        self._vsctl("set", "Open_vSwitch", ".", "other_config:vlan-limit=2")
        self.tell("time/stop")

    @property
    def ports(self) -> Sequence[int]:
        """Numbers of the ports."""
        return range(1, PORTS + 1)

    def _run(self, command: Sequence[str | Path]) -> None:
        environment = {**os.environ, **{name: str(self._folder) for name in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR")}}
        quiet = subprocess.DEVNULL
        log = ["--log-file=" + str(self._folder / f"{command[0]}.log"), "-vconsole:off", "-vsyslog:off"]
        # When we are killed, so are they.
        leash = ["setpriv", "--pdeathsig", "KILL"]
        self._processes.append(
            subprocess.Popen([*leash, *command, *log], cwd=self._folder, env=environment, stdin=quiet, stderr=quiet)
        )

    def _vsctl(self, *arguments: str) -> str:
        command = ["ovs-vsctl", f"--db=unix:{self._folder}/db.sock", "--timeout=10", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"ovs-vsctl: {done.stderr.strip()}")
        return done.stdout

    def tell(self, command: str, *arguments: str) -> str:
        """Do what ``ovs-appctl`` does, over a connection that stays."""
        self._control.sendall(json.dumps({"id": 0, "method": command, "params": arguments}).encode())
        answer = b""
        while True:
            part = self._control.recv(LARGEST_ANSWER)
            if not part:
                raise OSError("ovs-vswitchd has ended")
            answer += part
            with contextlib.suppress(json.JSONDecodeError):
                parsed = json.loads(answer)
                if parsed["error"] is not None:
                    raise OSError(f"{command}: {parsed['error']}")
                return str(parsed["result"] or "")

    def reset(self) -> None:
        """Take the bridge away and make another one: nothing of the last case is left."""
        for listener in self._listeners:
            listener.close()
        before, self._generation = self._generation, self._generation + 1
        here = self._generation
        self._listeners = [self._listen(f"controller{here}-{number}") for number in range(CONTROLLERS)]
        self._read.clear()
        bridge = f"br{here}"
        change = ["--if-exists", "del-br", f"br{before}", "--", "add-br", bridge]
        controllers: list[str] = []
        for number in range(CONTROLLERS):
            controllers.append(f"@c{number}")
            change += ["--", f"--id=@c{number}", "create", "controller", "inactivity_probe=0"]
            change += [f'target="unix:{self._folder}/controller{here}-{number}"', "connection_mode=out-of-band"]
        change += ["--", "set", "bridge", bridge, "datapath-type=dummy", "fail-mode=secure"]
        change += [f"controller=[{','.join(controllers)}]", "other-config:datapath-id=0000000000000001"]
        for port in self.ports:
            name = self._device(port)
            change += ["--", "add-port", bridge, name, "--", "set", "interface", name, "type=dummy"]
            change += [f"ofport_request={port}", f"options:tx_pcap={self._folder}/{name}.pcap"]
            (self._folder / f"p{before}-{port}.pcap").unlink(missing_ok=True)
        self._vsctl(*change)
        self._free = list(range(CONTROLLERS))

    def _device(self, port: int) -> str:
        return f"p{self._generation}-{port}"

    def _listen(self, name: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._folder / name))
        listener.listen()
        listener.settimeout(PATIENCE_S)
        return listener

    def connect(self, version: int) -> SocketConnection:
        """Answer the bridge, which has connected to all of its controllers."""
        if not self._free:
            raise NotPossible(f"the bridge has {CONTROLLERS} controllers")
        return SocketConnection(self._listeners[self._free.pop(0)].accept()[0])

    def settle(self) -> None:
        """Wait until the datapath's cache has followed the tables, which takes it longer than a barrier's answer."""
        self.tell("revalidator/purge")

    def _lookups(self) -> int:
        """Return how many packets the datapath has dealt with."""
        for line in self.tell("dpctl/show", "dummy@ovs-dummy").splitlines():
            if "lookups:" in line:
                counts = dict(one.split(":") for one in line.split()[1:])
                return int(counts["hit"]) + int(counts["missed"])
        return 0

    def send(self, port: int, frame: bytes) -> None:
        """Let a frame arrive, and wait until the datapath has looked at it."""
        before = self._lookups()
        self.tell("netdev-dummy/receive", self._device(port), frame.hex())
        deadline = time.monotonic() + 0.2
        # A frame that is refused before it is looked up is never counted.
        while self._lookups() == before and time.monotonic() < deadline:
            pass
        self.tell("version")

    def arrived(self) -> list[tuple[int, bytes]]:
        """Return what the devices have written into their captures."""
        arrived: list[tuple[int, bytes]] = []
        for port in self.ports:
            path = self._folder / f"{self._device(port)}.pcap"
            at = self._read.get(port, PCAP_HEAD)
            with path.open("rb") as capture:
                capture.seek(at)
                data = capture.read()
            here = 0
            while here + RECORD_HEAD <= len(data):
                length = int.from_bytes(data[here + 8 : here + 12], "little")
                if here + RECORD_HEAD + length > len(data):
                    break
                arrived.append((port, data[here + RECORD_HEAD : here + RECORD_HEAD + length]))
                here += RECORD_HEAD + length
            self._read[port] = at + here
        return arrived

    def advance(self, seconds: float) -> None:
        """Turn the clock, in steps so that all that is due meanwhile is done."""
        self.tell("time/warp", str(round(seconds * 1000)), "100")

    def set_link(self, port: int, up: bool) -> None:
        """Its devices have no carrier."""
        raise NotPossible("the devices that Open vSwitch has for tests have no carrier")

    def set_queues(self, port: int, rates: Sequence[tuple[int, int]]) -> None:
        """Its devices have no queues."""
        raise NotPossible("the devices that Open vSwitch has for tests have no queues")

    def stop(self) -> None:
        """End the processes and take the directory away."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait()
        for listener in self._listeners:
            listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class SocketConnection:
    """A connection over a socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        if connected.family != socket.AF_UNIX:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.closed = False

    def send(self, data: bytes) -> None:
        """Send bytes; that the switch has left shows when it is listened to."""
        self._socket.settimeout(PATIENCE_S)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def receive(self, patience_s: float) -> bytes:
        """Return what has come."""
        if self.closed:
            return b""
        self._socket.settimeout(patience_s)
        try:
            data = self._socket.recv(LARGEST_ANSWER)
        except (TimeoutError, BlockingIOError):
            return b""
        except ConnectionResetError:
            data = b""
        self.closed = not data
        return data

    def close(self) -> None:
        """End it."""
        self.closed = True
        self._socket.close()


def _wait_for(path: Path) -> None:
    """Wait until a program has made its socket."""
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        if time.monotonic() > deadline:
            raise OSError(f"{path.name} was not made: look into its log")
        time.sleep(0.01)


def _connected(path: Path) -> socket.socket:
    """Return a connection to a program: its socket is there before the program listens at it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        opened = socket.socket(socket.AF_UNIX)
        try:
            opened.connect(str(path))
            return opened
        except (FileNotFoundError, ConnectionRefusedError) as error:
            opened.close()
            if time.monotonic() > deadline:
                raise OSError(f"nobody listens at {path.name}: look into its log") from error
            time.sleep(0.01)
