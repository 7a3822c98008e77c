"""An owner of labs that goes through the life of one lab after the other until it is killed, and tells on its standard
output what it is about to do. Whatever happens to a lab, the next one is begun."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from lab_protocol import RawLab, Refused, core, star

PHASES = ["creating", "building", "running", "traffic", "capture", "stopping"]


def tell(word: str) -> None:
    print(word, flush=True)


def live(folder: Path) -> None:
    tell("creating")
    lab = RawLab()
    tell(f"lab {lab.pid} {lab.user_namespace}")
    try:
        tell("building")
        lab.start(star(3))
        tell("running")
        lab.spawn("h1", "sleep", "100")
        lab.spawn("h2", "sh", "-c", "setsid sleep 100 & sleep 100")
        lab.run("h3", "true")
        tell("traffic")
        sink = lab.ask("app.start", host="h2", app={"kind": "tcp_sink", "port": 5001, "interval_ps": 10**11})
        source = {"kind": "tcp_source", "to": "10.0.0.2", "port": 5001, "flow": 1, "duration_ps": 5 * 10**10}
        source["interval_ps"] = 10**11
        started = lab.ask("app.start", host="h1", app=source)
        lab.ask("app.wait", apps=[started["app"]], until_ps=None)
        lab.ask("app.report", app=sink["app"])
        tell("capture")
        file = os.open(folder / "capture.pcapng", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            capture = lab.ask("capture.start", [file], port="s1-eth1", limit_bytes=None, snap=None)["capture"]
            lab.run("h1", "ping", "-c", "3", "-i", "0.01", "-W", "1", "10.0.0.3")
            lab.ask("capture.stop", capture=capture)
        finally:
            os.close(file)
        tell("stopping")
        lab.ask("stop")
    finally:
        lab.close()
        tell("gone")


def main() -> None:
    folder = Path(sys.argv[1])
    while True:
        try:
            live(folder)
        except (Refused, EOFError, OSError) as error:
            # That is how a killed lab looks to its owner. Nothing to read on standard output means nobody to live for.
            tell(f"lost {type(error).__name__}")
            time.sleep(0)
        except core.CoreError as error:
            tell(f"lost {error.args[0]}")


if __name__ == "__main__":
    main()
