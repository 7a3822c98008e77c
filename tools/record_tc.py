"""Record what Linux answers to lines of ``tc``: ``python3 tools/record_tc.py tests/mininet/tc_of_linux.json``.

It reads the lines in the file, does each as root in a network namespace of its own, where only the interface ``x`` is,
and writes the answers beside them. The kernel needs all disciplines and filters that the lines name. Fields that are
not answers, such as what is refused here by choice, stay as they are.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["asks", "main", "numbered", "shown_after"]

_NAMESPACE = "record-tc"
_OWN_HANDLE = re.compile(r"\b8[0-9a-f]{3}(?=:)")


def main(path: Path) -> int:
    """Write the answers into the file `path`."""
    said = json.loads(path.read_text())
    for words in (["add", _NAMESPACE], ["exec", _NAMESPACE, "ip", "link", "add", "x", "type", "veth", "peer", "y"]):
        subprocess.run(["ip", "netns", *words], check=True)
    try:
        for end in "xy":
            _inside("ip", "link", "set", end, "up")
        for case in said["lines"]:
            _record(case, said["before"].get(case.get("before"), []))
    finally:
        subprocess.run(["ip", "netns", "del", _NAMESPACE], check=True)
    version = subprocess.run(["tc", "-V"], capture_output=True, text=True, check=True).stdout.strip()
    said["made"] |= {"kernel": f"Linux {platform.release()}", "tc": version}
    lines = ",\n".join(json.dumps(case) for case in said.pop("lines"))
    head = json.dumps(said, indent=1).removesuffix("\n}")
    path.write_text(f'{head},\n "lines": [\n{lines}\n]\n}}\n')
    return 0


def numbered(text: str) -> str:
    """Return `text` with the handles that the kernel chose by itself counted from 8001, as in a fresh kernel."""
    seen: dict[str, str] = {}
    return _OWN_HANDLE.sub(lambda found: seen.setdefault(found[0], f"{0x8001 + len(seen):x}"), text)


def asks(line: str) -> bool:
    """Return whether the line shows something, and changes nothing."""
    return re.match(r"(-[a-z]+ )*[a-z]+ (sh|l)", line) is not None


def shown_after(line: str) -> tuple[str, ...]:
    """Return what is shown after the line: filters after those of filters, all others after all others."""
    return ("filter",) if line.startswith("filter") else ("qdisc", "class")


def _record(case: dict[str, Any], before: list[str]) -> None:
    for place in ("root", "ingress"):
        _tc(f"qdisc del dev x {place}")
    for line in before:
        if (done := _tc(line)).returncode:
            raise SystemExit(f"{line}: {done.stderr}")
    done = _tc(case["tc"])
    # The usage that tc prints below a message is left out.
    case |= {"status": done.returncode, "err": re.split(r"^Usage:", done.stderr, maxsplit=1, flags=re.MULTILINE)[0]}
    shown = [done.stdout]
    if not done.returncode and not asks(case["tc"]):
        shown += [_tc(f"{what} show dev x").stdout for what in shown_after(case["tc"])]
    case["shown"] = numbered("".join(shown))


def _tc(line: str) -> subprocess.CompletedProcess[str]:
    return _inside("tc", *line.split())


def _inside(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", "netns", "exec", _NAMESPACE, *command], capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
