"""Keep what fuzzing has found for every run of the tests: ``tools/fuzz.sh 60 && python tools/keep_fuzz_inputs.py``.

For each target, libFuzzer tells which parts of the program each input in `target/fuzz-corpus` reaches. Of those of at
most `LONGEST` bytes, the ones that together reach most are chosen one by one, up to `MOST`. They become
`crates/CRATE/tests/any_bytes/kept.txt`, a line of hexadecimal digits each; the tests of the crate run them without
libFuzzer.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["LONGEST", "MOST", "chosen", "main", "reached"]

ROOT = Path(__file__).resolve().parents[1]
MOST = 200
LONGEST = 400


def reached(control: str) -> dict[str, frozenset[int]]:
    """Return what each input reaches, by the control file of a merge: its names, and a line ``FT`` for each input."""
    lines = control.splitlines()
    count = int(lines[0])
    # Behind the number of inputs and the number of those that are there already.
    names = lines[2 : 2 + count]
    parts = (re.fullmatch(r"FT (\d+)((?: \d+)*)", line) for line in lines[2 + count :])
    return {names[int(part[1])]: frozenset(map(int, part[2].split())) for part in parts if part is not None}


def chosen(inputs: Mapping[bytes, frozenset[int]], most: int = MOST) -> list[bytes]:
    """Return at most `most` inputs, each of which reaches the most that those before it do not; in order of length."""
    left, found = dict(inputs), list[bytes]()
    while left and len(found) < most:
        best = min(left, key=lambda one: (-len(left[one]), len(one), one))
        new = left.pop(best)
        if not new:
            break
        found.append(best)
        left = {one: parts - new for one, parts in left.items()}
    return sorted(found, key=lambda one: (len(one), one))


def main() -> int:
    """Write the files; return 1 when nothing was fuzzed."""
    told = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    machine = next(line.removeprefix("host: ") for line in told.splitlines() if line.startswith("host: "))
    for source in sorted(ROOT.glob("crates/*/fuzz/fuzz_targets/*.rs")):
        crate, name = source.parents[2].name, source.stem
        program = ROOT / "target" / "fuzz" / machine / "release" / name
        corpus = ROOT / "target" / "fuzz-corpus" / f"{crate}-{name}"
        if not program.exists() or not corpus.exists():
            print(f"{crate}/{name} was not fuzzed here: tools/fuzz.sh first")
            return 1
        with tempfile.TemporaryDirectory() as folder:
            control, merged = Path(folder) / "control", Path(folder) / "merged"
            merged.mkdir()
            # Of a merge that looks for the smallest set, the file has all that each input reaches; places, not counts.
            how = ("-set_cover_merge=1", "-use_counters=0", f"-merge_control_file={control}")
            subprocess.run([program, *how, merged, corpus], capture_output=True, check=True)
            found = {Path(path).read_bytes(): parts for path, parts in reached(control.read_text()).items()}
        kept = chosen({one: parts for one, parts in found.items() if 0 < len(one) <= LONGEST})
        path = ROOT / "crates" / crate / "tests" / "any_bytes" / "kept.txt"
        path.write_text("".join(f"{one.hex()}\n" for one in kept))
        everything = frozenset[int]().union(*found.values())
        share = len(frozenset[int]().union(*(found[one] for one in kept))) / len(everything)
        print(f"{path.relative_to(ROOT)}: {len(kept)} of {len(found)} inputs, which reach {share:.0%} of what all do")
    return 0


if __name__ == "__main__":
    sys.exit(main())
