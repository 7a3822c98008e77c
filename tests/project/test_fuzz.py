"""``tools/fuzz.sh``: a target that does not compile fails; random bytes are for machines without libFuzzer alone.

What it found is kept by ``tools/keep_fuzz_inputs.py``.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tools.keep_fuzz_inputs import LONGEST, MOST, chosen, reached

ROOT = Path(__file__).parents[2]
CARGO = """#!/bin/sh
echo "$*" >>"$FUZZ_ROOT/called"
case "$*" in
    test*) exit 0 ;;
    *"-p libfuzzer-sys"*) test "$LIBFUZZER" = yes ;;
    *"--bin broken"*) echo "error: expected one of ..." >&2; exit 101 ;;
    *"--bin "*)
        folder=$FUZZ_ROOT/target/fuzz/$(rustc -vV | sed -n 's/^host: //p')/release
        mkdir -p "$folder"
        for name; do :; done
        cp "$FUZZ_ROOT/target-$name" "$folder/$name" ;;
esac
"""
SOUND = "#!/bin/sh\necho 'stat::number_of_executed_units: 7'\necho 'stat::slowest_unit_time_sec: 0'\n"
SLOW = "#!/bin/sh\necho 'ALARM: working on the last Unit for 11 seconds'\nexit 70\n"


def fuzzed(folder: Path, *targets: str, libfuzzer: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the script on a crate with `targets`, with a cargo that plays its part."""
    sources = folder / "crates" / "some" / "fuzz" / "fuzz_targets"
    sources.mkdir(parents=True)
    (sources.parent / "Cargo.toml").touch()
    for name in targets:
        (sources / f"{name}.rs").touch()
        script = folder / f"target-{name}"
        script.write_text(SLOW if name == "slow" else SOUND)
        script.chmod(0o755)
    programs = folder / "programs"
    programs.mkdir()
    (programs / "cargo").write_text(CARGO)
    (programs / "cargo").chmod(0o755)
    (folder / "target").mkdir()
    environment = {
        **os.environ,
        "FUZZ_ROOT": str(folder),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "LIBFUZZER": "yes" if libfuzzer else "no",
    }
    return subprocess.run(
        [ROOT / "tools" / "fuzz.sh", "1"], env=environment, capture_output=True, text=True, timeout=60
    )


def test_a_target_that_does_not_compile_fails(tmp_path: Path) -> None:
    done = fuzzed(tmp_path, "broken", "sound")
    assert done.returncode == 1
    assert "some/broken: does not compile" in done.stderr and "error: expected one of" in done.stderr
    assert "some/sound: 7 runs and 7 of large inputs, of which the slowest took 0 s" in done.stdout
    assert "any_bytes" not in (tmp_path / "called").read_text()


def test_without_libfuzzer_random_bytes_take_its_place(tmp_path: Path) -> None:
    done = fuzzed(tmp_path, "sound", libfuzzer=False)
    assert done.returncode == 0, done.stderr
    assert "some/sound: libFuzzer cannot be built here" in done.stdout
    assert "test --quiet -p twinnet-some --test any_bytes" in (tmp_path / "called").read_text()


@pytest.mark.parametrize("target", ["sound", "slow"])
def test_a_target_fails_by_its_status_which_is_that_of_too_long_a_time_too(tmp_path: Path, target: str) -> None:
    done = fuzzed(tmp_path, target)
    assert done.returncode == (1 if target == "slow" else 0)
    assert ("ALARM" in done.stderr) == (target == "slow")


CONTROL = """3
0
corpus/ab
corpus/c d
corpus/e
STARTED 0 2
FT 0 7 9
COV 0 4
STARTED 1 3
FT 1
COV 1
STARTED 2 1
FT 2 7 8 9
COV 2 4 5
"""


def test_what_an_input_reaches_is_read_from_a_merge() -> None:
    assert reached(CONTROL) == {"corpus/ab": {7, 9}, "corpus/c d": set(), "corpus/e": {7, 8, 9}}


def test_the_inputs_that_together_reach_most_are_kept() -> None:
    inputs = {
        one: frozenset(parts) for one, parts in ((b"xyz", (1, 2, 3)), (b"aa", (1, 2)), (b"b", (4,)), (b"c", (4,)))
    }
    # What reaches nothing more is left out, however short it is; of equals the first is taken.
    assert chosen(inputs) == [b"b", b"xyz"]
    assert chosen(inputs, most=1) == [b"xyz"]


@pytest.mark.parametrize("source", sorted(ROOT.glob("crates/*/fuzz/fuzz_targets/*.rs")), ids=lambda path: path.stem)
def test_each_target_has_kept_inputs_within_bounds_which_its_crate_runs(source: Path) -> None:
    tests = source.parents[2] / "tests" / "any_bytes"
    inputs = [bytes.fromhex(line) for line in (tests / "kept.txt").read_text().splitlines()]
    assert 10 < len(inputs) <= MOST and len(set(inputs)) == len(inputs)
    assert all(0 < len(one) <= LONGEST for one in inputs)
    assert (
        f'include_str!("kept.txt")).iter().for_each(|input| exercise::{source.stem}(input)'
        in (tests / "main.rs").read_text()
    )
