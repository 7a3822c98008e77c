"""The libraries of others that the page carries: what they are, unchanged, with licence, and small."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import twinnet.live

VENDORED = Path(twinnet.live.__file__).parent / "vendored"
SUMS = "SHA256SUMS"
MOST_BYTES = 300_000


def test_each_file_is_the_one_whose_hash_was_written_down() -> None:
    lines = (VENDORED / SUMS).read_text().splitlines()
    written = {name: digest for digest, name in (line.split("  ") for line in lines)}
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDORED.iterdir() if path.name != SUMS
    }
    assert found == written


def test_each_library_has_its_licence() -> None:
    libraries = {path.stem for path in VENDORED.iterdir() if path.suffix in (".js", ".css")}
    assert libraries == {path.stem for path in VENDORED.glob("*.LICENSE")} != set()


def test_all_of_it_is_small() -> None:
    assert sum(len(gzip.compress(path.read_bytes())) for path in VENDORED.iterdir()) < MOST_BYTES
