"""The source distribution holds what a build needs, and nothing that a build has left."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MATURIN = Path(sys.executable).parent / "maturin"
INCLUDED = re.compile(r'include_(?:str|bytes)!\("([^"]+)"\)')


def needed() -> set[str]:
    """The files that a build reads, as they are named in the clone."""
    crates = {*ROOT.glob("crates/*/Cargo.toml"), *ROOT.glob("crates/*/src/**/*.rs")}
    included = {
        (source.parent / name).resolve()
        for source in crates
        if source.suffix == ".rs"
        for name in INCLUDED.findall(source.read_text())
    }
    package = {*ROOT.glob("python/twinnet/**/*.py"), *ROOT.glob("python/twinnet/studies/**/*.yaml")}
    own = {ROOT / name for name in ("pyproject.toml", "Cargo.toml", "Cargo.lock", "LICENSE", "README.md")}
    return {str(path.relative_to(ROOT)) for path in crates | included | package | own}


@pytest.mark.skipif(
    not MATURIN.exists() or shutil.which("cargo") is None,
    reason="a source distribution needs maturin and cargo: make test has both",
)
def test_it_holds_what_a_build_needs_and_nothing_built(tmp_path: Path) -> None:
    command = [str(MATURIN), "sdist", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = tmp_path.glob("twinnet-*.tar.gz")
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert needed() <= names, sorted(needed() - names)
    assert not any(name.endswith((".so", ".pyc")) or name.startswith(("target/", "tests/")) for name in names)
