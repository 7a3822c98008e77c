"""Packs the kernel that is chosen into a wheel of ``twinnet-kernel``: ``python tools/kernel_wheel.py [--out FOLDER]``.

It must be one that `twinnet kernel build` has built with the configuration and the patches of these sources: the wheel
holds both, and says of which source it was built. Two wheels of one kernel are the same to the byte. Beside the wheel
stands its SHA-256, for ``sha256sum -c`` and to be published in another place than the wheel.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sys
import zipfile
from pathlib import Path

from twinnet.errors import KernelMissing, KernelUnusable, TwinnetError
from twinnet.guest import kernel_build
from twinnet.guest.kernel import PACKAGE, chosen_link, examine

__all__ = ["main", "pack"]

RECIPE = Path(kernel_build.__file__).parent / "recipe"
TAG = "py3-none-manylinux2014_x86_64"
"""It is linked statically, and so needs no glibc at all; this is the oldest tag that every ``pip`` knows."""

INIT = '''"""The kernel in which twinnet runs programs on the virtual clock: ``linux`` beside this file."""
'''

SOURCE = """\
# Where the source of this kernel is

`linux` is Linux {version}, built for User Mode Linux. It is under the GPL, version 2 only (`COPYING`).

- SHA-256 of `linux`: {linux}. The same source, configuration and compiler build the same file again.
- Source: `{name}`, sha256 {sha256}. Debian has it in the package `linux-source-{series}`; {series} from kernel.org with
  the same patches serves as well.
- Changes: the patches in `recipe/patches`, in the order of their names (`patch -p1`).
- Configuration: `make ARCH=um defconfig`, then `recipe/config` added to `.config`, then `make ARCH=um olddefconfig`.
- Build: `make ARCH=um linux` with {variables}.

`twinnet kernel build --source {name}` does all of this.

Whoever passes this file on must pass the source on too, or offer it in writing (section 3 of the licence).
"""

METADATA = """\
Metadata-Version: 2.4
Name: twinnet-kernel
Version: {version}
Summary: The kernel in which twinnet runs programs on the virtual clock
License-Expression: GPL-2.0-only
License-File: COPYING
Requires-Python: >=3.11
Description-Content-Type: text/markdown

{source}"""

WHEEL = f"""\
Wheel-Version: 1.0
Generator: tools/kernel_wheel.py
Root-Is-Purelib: false
Tag: {TAG}
"""


def pack(out: Path) -> Path:
    """Write the wheel of the kernel that is chosen into the folder `out`, and return its path.

    Raises
    ------
    KernelMissing, KernelUnusable
        None is chosen, or it was not built with these sources.
    """
    folder = chosen_link().resolve()
    if not (folder / "linux").exists():
        raise KernelMissing("there is no kernel to pack", "build one with `twinnet kernel build`")
    kernel = examine(folder / "linux", "cache").check()
    record = json.loads((folder / "kernel.json").read_text(encoding="utf-8"))
    recipe_hash = kernel_build.recipe_hash()
    if record.get("recipe_sha256") != recipe_hash:
        raise KernelUnusable(
            f"{kernel.path} was not built with the configuration and the patches of these sources",
            "build it again with `twinnet kernel build`",
        )
    number = re.match(r"[\d.]+", kernel.version)
    assert number is not None
    version = f"{number.group()}+{recipe_hash[:8]}"
    source = SOURCE.format(
        version=kernel.version,
        name=Path(record["source"]).name,
        sha256=record["source_sha256"],
        linux=hashlib.sha256(kernel.path.read_bytes()).hexdigest(),
        series=".".join(number.group().split(".")[:2]),
        variables=", ".join(f"`{name}={value}`" for name, value in kernel_build.SAME_FOR_ALL.items()),
    )
    info = f"{PACKAGE}-{version}.dist-info"
    patches = kernel_build.patches()
    licence = (RECIPE / "patches" / "COPYING").read_bytes()
    files = {
        f"{PACKAGE}/__init__.py": INIT.encode(),
        f"{PACKAGE}/linux": kernel.path.read_bytes(),
        f"{PACKAGE}/SOURCE.md": source.encode(),
        f"{PACKAGE}/COPYING": licence,
        f"{PACKAGE}/recipe/config": (RECIPE / "config").read_bytes(),
        **{f"{PACKAGE}/recipe/patches/{path.name}": path.read_bytes() for path in patches},
        f"{info}/licenses/COPYING": licence,
        f"{info}/METADATA": METADATA.format(version=version, source=source).encode(),
        f"{info}/WHEEL": WHEEL.encode(),
    }
    out.mkdir(parents=True, exist_ok=True)
    return _write(out / f"{PACKAGE}-{version}-{TAG}.whl", files, f"{info}/RECORD")


def _write(path: Path, files: dict[str, bytes], record: str) -> Path:
    lines = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    files = {**files, record: "\n".join([*lines, f"{record},,", ""]).encode()}
    partial = path.with_name(f".{path.name}.partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            member.external_attr = (0o100755 if name.endswith("/linux") else 0o100644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content, compresslevel=9)
    made = partial.replace(path)
    hashed = hashlib.sha256(made.read_bytes()).hexdigest()
    made.with_name(f"{made.name}.sha256").write_text(f"{hashed}  {made.name}\n", encoding="ascii")
    return made


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main(arguments: list[str]) -> int:
    """Pack, and tell where the wheel is; return 1 and say why when it cannot be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("dist"))
    try:
        print(pack(parser.parse_args(arguments).out))
    except TwinnetError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
