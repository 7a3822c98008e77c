"""Images of containers as root file systems: folders, archives as ``docker save`` writes them, OCI layouts, and names
that an engine of this machine knows.

Layers are unpacked once, into the user's cache, by the rules of the OCI image specification (*Image Layer Filesystem
Changeset*): a later layer takes files away by names that begin with ``.wh.``. Devices and owners are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from twinnet.cache_folder import cache_folder
from twinnet.errors import BadValue
from twinnet.given_files import given_json

__all__ = ["Image", "find_image"]

_ENGINES = ("docker", "podman")
_GONE, _OPAQUE = ".wh.", ".wh..wh..opq"
_HOW = "give a folder, an archive (docker save NAME -o image.tar), an OCI layout, or a name that docker images shows"
_MOST_INDEXES = 4
_MOST_JSON_BYTES = 16 << 20
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Image:
    """A root file system, and what its image says of programs in it.

    Parameters
    ----------
    root
        The folder.
    environment
        Variables that programs have.
    command
        The program that a container of it runs, with arguments; empty: none.
    folder
        Where programs start.
    """

    root: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    command: Sequence[str] = ()
    folder: str = "/"

    def variables(self) -> dict[str, str]:
        """Return the variables of programs in it: the usual ones, and its own."""
        return {"PATH": _USUAL_PATH, "TERM": os.environ.get("TERM", "dumb"), "HOME": "/root", **self.environment}

    def has(self, program: str) -> bool:
        """Return whether `program` is in one of the usual folders."""
        folders = ("bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin")
        return any(os.path.lexists(self.root / folder / program) for folder in folders)


def find_image(name: str) -> Image:
    """Return the image `name`, unpacked; raises `BadValue`."""
    path = Path(name).expanduser()
    if path.is_dir() and not (path / "oci-layout").is_file():
        return Image(path.resolve())
    if path.exists():
        index = path / "index.json" if path.is_dir() else path
        state = index.stat()
        return _unpacked(path, f"{path.resolve()} {state.st_mtime_ns} {state.st_size}", name)
    for engine in (one for one in _ENGINES if shutil.which(one)):
        asked = [engine, "image", "inspect", "--format", "{{.Id}}", name]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return _saved(engine, name, done.stdout.strip())
    raise BadValue(f"the image {name} is not here", _HOW)


def _folder_of(key: str) -> Path:
    return cache_folder() / "images" / hashlib.sha256(key.encode()).hexdigest()[:32]


def _saved(engine: str, name: str, identifier: str) -> Image:
    if (_folder_of(identifier) / "image.json").is_file():
        return _unpacked(Path(), identifier, name)
    with tempfile.TemporaryDirectory(prefix="twinnet-image-") as scratch:
        archive = Path(scratch) / "image.tar"
        saved = subprocess.run(
            [engine, "image", "save", "-o", archive, name], capture_output=True, text=True, check=False
        )
        if saved.returncode != 0:
            raise BadValue(f"{engine} does not give the image {name}: {saved.stderr.strip()}", _HOW)
        return _unpacked(archive, identifier, name)


def _unpacked(place: Path, key: str, name: str) -> Image:
    folder = _folder_of(key)
    if not (folder / "image.json").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            (made / "root").mkdir()
            config = _unpack(place, made / "root")
            (made / "image.json").write_text(json.dumps(config))
            made.rename(folder)
        except (OSError, tarfile.TarError, ValueError, KeyError, IndexError, TypeError) as refused:
            shutil.rmtree(made, ignore_errors=True)
            if not (folder / "image.json").is_file():
                raise BadValue(f"the image {name} cannot be unpacked: {refused}", _HOW) from None
    config = json.loads((folder / "image.json").read_text())
    pairs = (one.partition("=") for one in config.get("Env") or ())
    command = [*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())]
    variables = {variable: value for variable, _, value in pairs}
    return Image(folder / "root", variables, command, config.get("WorkingDir") or "/")


class _Files:
    """The files of an archive or a folder."""

    def __init__(self, place: Path) -> None:
        self._folder = place
        self._tar: tarfile.TarFile | None = None if place.is_dir() else tarfile.open(place)  # noqa: SIM115

    def open(self, name: str) -> IO[bytes]:
        if self._tar is None:
            return (self._folder / name).open("rb")
        found = self._tar.extractfile(name)
        if found is None:
            raise KeyError(name)
        return found

    def json(self, name: str) -> Any:
        with self.open(name) as file:
            return given_json(file.read(_MOST_JSON_BYTES))

    def blob(self, descriptor: dict[str, str]) -> str:
        return "blobs/" + descriptor["digest"].replace(":", "/")

    def close(self) -> None:
        if self._tar is not None:
            self._tar.close()


def _unpack(place: Path, root: Path) -> dict[str, Any]:
    """Put the layers of the image at `place` into `root`, and return its configuration."""
    files = _Files(place)
    try:
        try:
            [manifest, *_] = files.json("manifest.json")
            config, layers = manifest["Config"], manifest["Layers"]
        except (KeyError, FileNotFoundError):
            manifest = files.json("index.json")
            for _ in range(_MOST_INDEXES):
                if "layers" in manifest:
                    break
                manifest = files.json(files.blob(manifest["manifests"][0]))
            config, layers = files.blob(manifest["config"]), [files.blob(one) for one in manifest["layers"]]
        for layer in layers:
            with files.open(layer) as file, tarfile.open(fileobj=file, mode="r:*") as tar:
                _apply(tar, root)
        return files.json(config).get("config") or {}
    finally:
        files.close()


def _apply(tar: tarfile.TarFile, root: Path) -> None:
    for member in tar:
        place = root / member.name.lstrip("/")
        if place.name == _OPAQUE or place.name.startswith(_GONE):
            parent = place.parent
            gone = list(parent.iterdir()) if place.name == _OPAQUE else [parent / place.name.removeprefix(_GONE)]
            for one in gone:
                _remove_within(one, root)
        elif not (member.ischr() or member.isblk()):
            if place.is_symlink() or (place.exists() and not (place.is_dir() and member.isdir())):
                # A later layer may put another kind of file there.
                _remove_within(place, root)
            _extract(tar, member, root)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    member.name, member.mode = member.name.lstrip("/"), member.mode & 0o755
    member.linkname = member.linkname.lstrip("/") if member.islnk() else member.linkname
    member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
    for name in (member.name, *([member.linkname] if member.islnk() else [])):
        if not (root / name).resolve().is_relative_to(root.resolve()):
            raise ValueError(f"{name} lies outside of the image")
    # The filters of tarfile are not in Python before 3.11.4, such as Debian 12's; later ones want to be given one.
    tar.extraction_filter = _as_it_is
    tar.extract(member, root)


def _as_it_is(member: tarfile.TarInfo, _path: str) -> tarfile.TarInfo:
    return member


def _remove_within(place: Path, root: Path) -> None:
    if not place.parent.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"{place} lies outside of the image")
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
