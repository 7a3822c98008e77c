"""Packs of results that somebody has changed, with hashes and outcome that fit again."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
from twinnet.report.pack import write_pack

__all__ = ["PLAIN", "contents", "repacked", "whole_forgery", "written"]

PLAIN = """\
study: forged
title: A study whose results somebody changes
question: How long does it take?
network:
  hosts: {h1: , h2: }
  links: [{between: [h1, h2], rate: 2 Mbit, delay: 5 ms}]
traffic:
  - {name: call, app: voice, from: [h1], to: h2, port: 5006, duration: 1 s, record_packets: 1000}
  - {name: load, app: udp, from: [h1], to: h2, port: 5003, rate: 500 kbit, duration: 1 s, payload: 500 B,
     process: poisson}
measurements:
  delay: {of: delay}
  rate: {of: throughput, interval: 100 ms}
repetitions: 10
clock: virtual
settle: 100 ms
drain: 100 ms
statements:
  - {id: late, text: It takes more than five milliseconds., check: "mean(delay[flow=call]) > 5 ms"}
"""
"""Ten runs of two flows: the packets of one of them are kept."""


def contents(pack: Path) -> dict[str, bytes]:
    """The files of a pack by their names, the manifest among them."""
    with zipfile.ZipFile(pack) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path: Path, files: Mapping[str, bytes], manifest: bytes | None = None) -> Path:
    """Write a pack of `files` to `path`, with the hashes that they have now, or with this `manifest` as it is."""
    if manifest is None:
        given = json.loads(files["MANIFEST.json"])
        others = {name: content for name, content in files.items() if name != "MANIFEST.json"}
        given["files"] = {name: hashlib.sha256(content).hexdigest() for name, content in others.items()}
        manifest = json.dumps(given).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("MANIFEST.json", manifest)
        for name, content in files.items():
            if name != "MANIFEST.json":
                archive.writestr(name, content)
    return path


def repacked(pack: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """A pack beside `pack` whose files were changed, with hashes that fit."""
    files = contents(pack)
    change(files)
    return written(pack.with_name("repacked.zip"), files)


def whole_forgery(folder: Path, runs: list[str], change: Callable[[str, pl.DataFrame], pl.DataFrame]) -> Path:
    """A pack of the results in `folder` in which `change` was made to each table of `runs`, by its name, and in which
    all is evaluated anew: hashes and outcome fit."""
    forged = folder.with_name("forgery") / folder.name
    shutil.rmtree(forged.parent, ignore_errors=True)
    shutil.copytree(folder, forged)
    for run in runs:
        for path in (forged / run).glob("*.parquet"):
            change(path.stem, pl.read_parquet(path)).write_parquet(path)
    return write_pack(forged, forged.parent / "forgery.zip")
