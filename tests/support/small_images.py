"""Images of containers for tests, made of programs of this machine."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def small_root(folder: Path, programs: tuple[str, ...]) -> Path:
    """A root file system with these programs of the machine and what they need."""
    for program in programs:
        found = shutil.which(program)
        assert found is not None, program
        told = subprocess.run(["ldd", found], capture_output=True, text=True, check=True).stdout
        libraries = re.findall(r"(/\S+) \(0x", told)
        for path in (found, *libraries):
            place = folder / ("bin/" + Path(path).name if path == found else path.lstrip("/"))
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(path).resolve(), place)
    return folder


def saved_image(path: Path, layers: Sequence[bytes], config: Mapping[str, Any]) -> Path:
    """An archive as ``docker save`` writes it."""
    names = [f"layer{number}.tar" for number in range(len(layers))]
    contents = dict(zip(names, layers, strict=True)) | {
        "config.json": json.dumps(config).encode(),
        "manifest.json": json.dumps([{"Config": "config.json", "Layers": names}]).encode(),
    }
    with tarfile.open(path, "w") as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def layer_of(root: Path) -> bytes:
    """A layer with all of `root`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(root, ".")
    return buffer.getvalue()
