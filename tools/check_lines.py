"""Check that no line of Rust or Python has more than 120 columns: ``python tools/check_lines.py``.

The formatters do not see to it: rustfmt wraps neither comments nor strings, and leaves the code round a long string
as it is. As ruff does, it lets a comment hang over that a tool reads at the end of a line (``# pyright: ignore[...]``),
because it has no other place. Git says which files there are.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_COLUMNS = 120
PATTERNS = ("*.rs", "*.py", "*.pyi")
NOT_YET = (
    "crates/fabric/src/engine/",
    "crates/fabric/src/line/",
    "crates/lab/src/assemble.rs",
    "crates/lab/src/network/",
    "crates/linux/src/wall/",
)
"""Where long lines are left. An entry without one is an error, so that the list only gets shorter."""
FOR_TOOLS = re.compile(r"\s*#\s*(pyright|type|noqa|fmt)\b.*$")


def long_lines(text: str) -> list[tuple[int, int]]:
    """Return the number and the columns of each line of `text` that is too long."""
    return [
        (at, len(line))
        for at, line in enumerate(text.split("\n"), 1)
        if len(line) > MOST_COLUMNS and len(FOR_TOOLS.sub("", line)) > MOST_COLUMNS
    ]


def main() -> int:
    """Print each line that is too long; return 1 when there is one."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *PATTERNS]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = sorted({name for name in listed.split("\0") if name and (ROOT / name).is_file()})
    if not files:
        print("git lists no file of Rust or Python here")
        return 1
    found: list[str] = []
    left = dict.fromkeys(NOT_YET, 0)
    for name in files:
        lines = long_lines((ROOT / name).read_text(encoding="utf-8"))
        place = next((place for place in NOT_YET if name.startswith(place)), None)
        if place is not None:
            left[place] += len(lines)
        else:
            found += [f"{name}:{at}: {columns} columns; at most {MOST_COLUMNS}, wrap the line" for at, columns in lines]
    found += [
        f"{place} has no long line any more: take it off the list in {Path(__file__).name}"
        for place in NOT_YET
        if not left[place]
    ]
    print("\n".join(found) if found else f"{len(files)} files, {sum(left.values())} lines over {MOST_COLUMNS} left")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
