"""Check that no line of Rust, Python or JavaScript has more than 120 columns: ``python tools/check_lines.py``.

The formatters do not see to it: rustfmt wraps neither comments nor strings, and leaves the code round a long string
as it is. As ruff does, it lets a comment hang over that a tool reads at the end of a line (``# pyright: ignore[...]``),
because it has no other place. Git says which files there are; code of others (``vendored``, ``.min.js``) is theirs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_COLUMNS = 120
PATTERNS = ("*.rs", "*.py", "*.pyi", "*.js", ":!*/vendored/*", ":!*.min.js")
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
        print("git lists no file of Rust, Python or JavaScript here")
        return 1
    found = [
        f"{name}:{at}: {columns} columns; at most {MOST_COLUMNS}, wrap the line"
        for name in files
        for at, columns in long_lines((ROOT / name).read_text(encoding="utf-8"))
    ]
    print("\n".join(found) if found else f"{len(files)} files, no line over {MOST_COLUMNS} columns")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
