"""Which kernel programs on the virtual clock run in, and what is said of one that they cannot run in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from fake_kernels import PARAMETERS, configuration, fake_kernel
from twinnet.cli import run
from twinnet.cli.kernel_command import finding
from twinnet.errors import KernelMissing, KernelUnusable
from twinnet.guest import find, needed
from twinnet.guest import kernel as kernel_module
from twinnet.guest.kernel import VARIABLE, examine, version_number

COMMANDS = ("`twinnet kernel build`", "`twinnet kernel install FILE`")


@pytest.fixture(autouse=True)
def no_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has no kernel; the path is its cache folder."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_module, "PACKAGE", "twinnet_kernel_of_this_test")
    return tmp_path / "cache"


def chosen(cache: Path, name: str, version: str) -> Path:
    path = fake_kernel(cache / "twinnet" / "kernels" / name / "linux", version)
    (cache / "twinnet" / "kernels" / "chosen").symlink_to(name)
    return path


def test_where_there_is_none_the_refusal_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert find() is None
    with pytest.raises(KernelMissing) as refused:
        needed()
    assert all(command in str(refused.value) for command in COMMANDS)
    assert run(["kernel", "show"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "there is no kernel" in line and all(command in line for command in COMMANDS)


def test_the_variable_goes_before_the_cache_and_that_before_the_package(
    no_kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = fake_kernel(tmp_path / "site" / "twinnet_kernel_of_this_test" / "linux", "7.1.0")
    (packed.parent / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    found = needed()
    assert (found.path, found.version, found.found_by) == (packed, "7.1.0", "package")

    kept = chosen(no_kernel, "abc", "7.2.0")
    found = needed()
    assert (found.path, found.version, found.found_by) == (kept, "7.2.0", "cache")

    named = fake_kernel(tmp_path / "named", "7.3.0")
    monkeypatch.setenv(VARIABLE, str(named))
    found = needed()
    assert (found.path, found.version, found.found_by) == (named, "7.3.0", "variable")


def test_show_tells_version_place_and_abilities(
    no_kernel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = chosen(no_kernel, "abc", "7.3.4-twinnet")
    assert run(["kernel", "show"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Linux 7.3.4-twinnet, built or installed here",
        f"  {path}",
        "  time travel: yes; random numbers from a seed: yes; 250 Hz",
    ]
    assert run(["kernel", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "path": str(path),
        "version": "7.3.4-twinnet",
        "found_by": "cache",
        "time_travel": True,
        "seed": True,
        "hz": 250,
        "lacks": [],
    }


@pytest.mark.parametrize(
    ("version", "options", "parameters", "lack"),
    [
        ("6.15.9", {}, PARAMETERS, "Linux 6.16 or later"),
        ("7.3.4", {"CONFIG_UML_TIME_TRAVEL_SUPPORT": ""}, PARAMETERS, "time travel"),
        ("7.3.4", {"CONFIG_IPV6": "m"}, PARAMETERS, "IPv6"),
        ("7.3.4", {"CONFIG_HW_RANDOM": "y"}, PARAMETERS, "CONFIG_HW_RANDOM=n"),
        ("7.3.4", {}, PARAMETERS.replace("rngseed=", "seed="), "a seed of its random numbers"),
        (
            "7.3.4",
            {},
            PARAMETERS.replace("RNDCLEARPOOL", ""),
            "random numbers that begin anew when the hosts are built",
        ),
        ("7.3.4", {}, PARAMETERS.replace("ttsyscall=", ""), "a cost of system calls"),
        ("7.3.4", {}, PARAMETERS.replace("Most readings", ""), "clock readings without system calls"),
        ("7.3.4", {}, PARAMETERS.replace("Turns are", ""), "turns by shared memory"),
        ("7.3.4", {}, PARAMETERS.replace("is changed", ""), "a hostfs that only reads"),
        ("7.3.4", {"CONFIG_DEVMEM": "y"}, PARAMETERS, "CONFIG_DEVMEM=n"),
    ],
)
def test_a_kernel_that_lacks_something_is_refused_by_the_name_of_that(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    options: dict[str, str],
    parameters: str,
    lack: str,
) -> None:
    path = fake_kernel(tmp_path / "linux", version, configuration(**options), parameters)
    assert examine(path).lacks == (lack,)
    monkeypatch.setenv(VARIABLE, str(path))
    with pytest.raises(KernelUnusable) as refused:
        find()
    told = str(refused.value)
    assert f"{path} (TWINNET_KERNEL), Linux {version}, lacks" in told and lack in told
    assert "unset it" in told and all(command in told for command in COMMANDS)


def test_all_that_a_kernel_lacks_is_told_at_once(tmp_path: Path) -> None:
    kernel = examine(fake_kernel(tmp_path / "linux", "6.1.0", "CONFIG_UML=y\n", ""))
    assert {"Linux 6.16 or later", "time travel", "a seed of its random numbers", "IPv6"} <= set(kernel.lacks)
    assert not kernel.time_travel and not kernel.seed and kernel.hz == 0


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, "it cannot be executed: No such file or directory"),
        ("#!/bin/sh\nexit 0\n", "its answer to --version is no version of Linux"),
        ("#!/bin/sh\necho GNU coreutils 9.1\n", "its answer to --version is no version of Linux"),
        ("#!/bin/sh\necho 7.3.4\n", "its answer to --showconfig is no configuration of User Mode Linux"),
        ("no program\n", "it cannot be executed: Exec format error"),
        ("#!/bin/sh\nexec sleep 60\n", "it does not answer to --version"),
    ],
)
def test_a_file_that_is_no_kernel_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, why: str
) -> None:
    path = tmp_path / "linux"
    if script is not None:
        path.write_text(script)
        path.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(path))
    if why.startswith("it does not answer"):
        monkeypatch.setattr(kernel_module, "_ANSWERS_WITHIN_S", 0.5)
    with pytest.raises(KernelUnusable) as refused:
        find()
    assert refused.value.message == f"{path} (TWINNET_KERNEL) is no kernel of User Mode Linux: {why}"
    assert all(command in refused.value.remedy for command in COMMANDS)


def test_a_program_that_is_no_file_for_this_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(KernelUnusable, match="cannot be executed: Permission denied"):
        find()


def test_the_doctor_has_a_line_for_it(no_kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = finding()
    assert (told["ok"], told["found"]) == (False, "none")
    assert all(command in str(told["remedy"]) for command in COMMANDS)
    path = chosen(no_kernel, "abc", "7.3.4-twinnet")
    assert finding() == {
        "ability": "kernel for programs on the virtual clock",
        "ok": True,
        "found": f"Linux 7.3.4-twinnet, built or installed here: {path}",
    }
    fake_kernel(path, "6.1.0")
    told = finding()
    assert told["ok"] is False and "Linux 6.16 or later" in str(told["found"])


@pytest.mark.parametrize(("version", "number"), [("7.3.4-twinnet", (7, 3)), ("6.16-rc3", (6, 16)), ("10.0", (10, 0))])
def test_versions_are_compared_by_their_numbers(version: str, number: tuple[int, int]) -> None:
    assert version_number(version) == number
