"""`twinnet kernel install` takes a kernel or a wheel, and leaves what was there when that is neither."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
import zipfile
from pathlib import Path

import pytest
from fake_kernels import PARAMETERS, configuration, elf_of_script, fake_kernel
from twinnet.cli import run
from twinnet.errors import BadFile, KernelUnusable, NotAvailable
from twinnet.guest import find, needed
from twinnet.guest import kernel_install as install_module
from twinnet.guest.kernel import VARIABLE, kernels_folder
from twinnet.guest.kernel_install import install


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def never() -> None:
    raise AssertionError("nothing else installs")


def wheel(path: Path, kernel: Path | None) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("twinnet_kernel/__init__.py", "")
        if kernel is not None:
            archive.write(kernel, "twinnet_kernel/linux")
    return path


def left() -> list[str]:
    return sorted(path.name for path in kernels_folder().iterdir() if not path.name.startswith("."))


def test_a_kernel_is_copied_and_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = fake_kernel(tmp_path / "linux")
    given.chmod(0o644)
    assert run(["kernel", "install", str(given)]) == 0
    assert "Linux 7.3.4-twinnet, built or installed here" in capsys.readouterr().out
    given.unlink()
    assert needed().version == "7.3.4-twinnet"
    assert len(left()) == 2


def test_a_file_is_read_and_not_run_when_it_is_installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mark = tmp_path / "was-run"
    written = [
        "Linux version 7.3.4-twinnet (them)",
        *(f"{line}\n" for line in configuration().splitlines()),
        PARAMETERS,
    ]
    given = tmp_path / "linux"
    given.write_bytes(elf_of_script(f"touch {mark}", written))
    digest = hashlib.sha256(given.read_bytes()).hexdigest()
    for _ in range(2):
        assert run(["kernel", "install", str(given)]) == 0
        out, err = capsys.readouterr()
        assert f"SHA-256 {digest}" in out and "was read, and not run" in err
    assert not mark.exists()
    # It is run when somebody needs it.
    assert run(["kernel", "show"]) == 1
    assert mark.exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"#!/bin/sh\ntouch was-run\n", "it is no ELF file of 64 bits"),
        (b"\x7fELF\x01\x01\x01" + bytes(100), "it is no ELF file of 64 bits"),
        (b"\x7fELF\x02\x02\x01" + bytes(100), "it is no ELF file of 64 bits"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(99), "it is no executable for x86-64"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\x00\x3e\x00" + bytes(99), "it is no executable for x86-64"),
        (elf_of_script("true"), "it has no line `Linux version`"),
        (elf_of_script("true", ["Linux version 7.3.4 (a)", "Linux version 7.4 (a)"]), "it has several versions"),
        (elf_of_script("true", ["Linux version 7.3.4 (a)", "CONFIG_X86=y\n"]), "it has no configuration of User Mode"),
    ],
)  # fmt: skip
def test_what_is_written_in_a_file_tells_that_it_is_no_kernel(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "linux").write_bytes(content)
    with pytest.raises(KernelUnusable) as refused:
        install(tmp_path / "linux", never)
    assert refused.value.message.startswith(f"{tmp_path / 'linux'} is no kernel of User Mode Linux: {why}")


def test_a_hash_that_was_asked_for_is_that_of_the_kernel_or_of_its_wheel(tmp_path: Path) -> None:
    kernel = fake_kernel(tmp_path / "linux")
    packed = wheel(tmp_path / "twinnet_kernel.whl", kernel)
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (kernel, packed)]
    with pytest.raises(BadFile, match=f"has the SHA-256 {hashes[0]}, not {'0' * 64}"):
        install(kernel, never, "0" * 64)
    assert run(["kernel", "install", "--sha256", "0" * 64, str(kernel)]) == 2
    assert find() is None
    for wanted in (*hashes, hashes[0].upper()):
        assert install(packed, never, wanted).version == "7.3.4-twinnet"


def test_a_wheel_is_told_by_its_content_whatever_its_name(tmp_path: Path) -> None:
    kernel = fake_kernel(tmp_path / "linux", "7.4.0")
    given = wheel(tmp_path / "twinnet_kernel.zip", kernel)
    assert install(given, never).version == "7.4.0"
    # The same kernel by itself is the same: it is there already.
    assert install(kernel, never).path == needed().path
    assert len(left()) == 2


def test_the_last_one_is_chosen_and_the_others_are_kept(tmp_path: Path) -> None:
    first, second = fake_kernel(tmp_path / "a", "7.1.0"), fake_kernel(tmp_path / "b", "7.2.0")
    for given, version in ((first, "7.1.0"), (second, "7.2.0"), (first, "7.1.0")):
        install(given, never)
        assert needed().version == version
    assert len(left()) == 3


def test_what_is_no_kernel_is_refused_by_its_own_name_and_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(fake_kernel(tmp_path / "good"), never)
    before = left()
    old = fake_kernel(tmp_path / "old", "6.1.0")
    with pytest.raises(KernelUnusable, match=rf"{old}, Linux 6\.1\.0, lacks .* Linux 6\.16 or later"):
        install(old, never)
    without = fake_kernel(tmp_path / "without", options=configuration(CONFIG_UML_TIME_TRAVEL_SUPPORT=""))
    with pytest.raises(KernelUnusable, match=rf"{without}, .* need: time travel \("):
        install(without, never)
    text = tmp_path / "text"
    text.write_text("nothing\n")
    with pytest.raises(KernelUnusable, match=f"{text} is no kernel of User Mode Linux: it is no ELF file of 64 bits"):
        install(text, never)
    empty = wheel(tmp_path / "empty.whl", None)
    with pytest.raises(BadFile, match=f"{empty} is no wheel of twinnet-kernel"):
        install(empty, never)
    with pytest.raises(BadFile, match="No such file"):
        install(tmp_path / "nothing", never)
    with pytest.raises(BadFile, match="it is a folder"):
        install(tmp_path, never)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadFile, match="it is a pipe"):
        install(tmp_path / "pipe", never)
    monkeypatch.setattr(install_module, "_MOST_BYTES", 1000)
    with pytest.raises(BadFile, match="is larger than"):
        install(tmp_path / "good", never)
    assert left() == before
    assert needed().version == "7.3.4-twinnet"


def test_a_cache_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = fake_kernel(tmp_path / "linux")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(NotAvailable, match=r"cannot be written: .*XDG_CACHE_HOME"):
        install(given, never)


def test_two_at_once_wait_for_each_other_and_remove_what_a_killed_one_left(tmp_path: Path) -> None:
    given = fake_kernel(tmp_path / "linux")
    kernels_folder().mkdir(parents=True)
    (kernels_folder() / "making-killed").mkdir()
    waited = threading.Event()
    with (kernels_folder() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        installing = threading.Thread(target=install, args=(given, waited.set))
        installing.start()
        assert waited.wait(30)
        assert find() is None
    installing.join(30)
    assert needed().version == "7.3.4-twinnet"
    assert "making-killed" not in left()
