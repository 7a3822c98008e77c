"""What programs on the virtual clock see of the machine's files: nothing of how the disk was filled."""

from __future__ import annotations

import os
from pathlib import Path

import twinnet as tn
from kernels_here import needs_a_kernel

pytestmark = needs_a_kernel

FOLDER = "import os, sys; print(*os.listdir(sys.argv[1]))"
NUMBERS = """
import os, sys
for folder, _, names in os.walk("."):
    for name in (".", *names):
        told = os.lstat(os.path.join(folder, name))
        print(folder, name, told.st_size, told.st_blocks, told.st_mtime_ns, told.st_atime_ns, told.st_ctime_ns)
    assert {entry.name: entry.inode() for entry in os.scandir(folder) if entry.is_file()} == {
        name: os.lstat(os.path.join(folder, name)).st_ino for name in names
    }
"""


def filled(folder: Path, names: list[str]) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_text(name)
        os.utime(folder / name, ns=(1, 2_000_000_000))
    os.utime(folder, ns=(1, 3_000_000_000))
    return folder


def printed(*commands: list[str], cwd: Path) -> list[str]:
    net = tn.Network(seed=7)
    net.host("h1")
    with net.simulate(hosts="programs") as lab:
        return [lab["h1"].run(command, check=True, cwd=str(cwd)).stdout for command in commands]


def test_folders_are_listed_by_name_whatever_the_order_in_which_they_were_filled(tmp_path: Path) -> None:
    names = [f"{number * 7919 % 2003}" for number in range(1500)]
    one, other = filled(tmp_path / "one", names), filled(tmp_path / "other", names[::-1])
    listed = printed(["python3", "-c", FOLDER, str(one)], ["python3", "-c", FOLDER, str(other)], cwd=tmp_path)
    assert listed[0].split() == sorted(names) and listed[1] == listed[0]
    assert printed(["ls", "-a"], cwd=one)[0].split()[:2] == [".", ".."]


def test_a_copy_of_a_folder_has_the_same_times_and_sizes(tmp_path: Path) -> None:
    one, other = filled(tmp_path / "one", ["a", "b", "c"]), filled(tmp_path / "other", ["c", "x", "b", "a"])
    (other / "x").unlink()
    os.utime(other, ns=(1, 3_000_000_000))
    (one / "a").read_text()
    told = printed(["python3", "-c", NUMBERS], cwd=one)
    assert told == printed(["python3", "-c", NUMBERS], cwd=other)
    assert told[0].splitlines()[1].split()[2:] == ["1", "8", "2000000000", "2000000000", "2000000000"]


def test_a_file_keeps_its_number_when_it_is_written_anew(tmp_path: Path) -> None:
    folder = filled(tmp_path / "one", ["a", "b"])
    ask = ["stat", "-c", "%i", "a", "b", "."]
    first = printed(ask, cwd=folder)[0].split()
    assert len(set(first)) == 3
    (folder / "a").rename(tmp_path / "old")
    (folder / "a").write_text("a")
    assert printed(ask, cwd=folder)[0].split() == first
