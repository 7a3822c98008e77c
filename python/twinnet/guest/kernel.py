"""Which kernel programs on the virtual clock run in, and whether a file is such a kernel."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from twinnet.cache_folder import cache_folder
from twinnet.errors import KernelMissing, KernelUnusable, reason

__all__ = [
    "OLDEST",
    "PACKAGE",
    "REMEDY",
    "VARIABLE",
    "Kernel",
    "chosen_link",
    "described",
    "examine",
    "find",
    "kernels_folder",
    "needed",
    "version_number",
]

VARIABLE = "TWINNET_KERNEL"
"""The variable that names a kernel and goes before all others."""

PACKAGE = "twinnet_kernel"
"""The package that holds a kernel: ``pip install`` of the wheel that ``make kernel-wheel`` builds."""

OLDEST = (6, 16)
"""The shared calendar is in Linux since 6.11, catching system calls by seccomp since 6.16. ptrace, before that, takes
1.6 times as long, and gives other traces."""

REMEDY = (
    "build one with `twinnet kernel build`, or install one that somebody has built with `twinnet kernel install FILE`"
)
"""What to do where no kernel can be used."""

FoundBy = Literal["variable", "cache", "package", "file"]

_ANSWERS_WITHIN_S = 20.0
_MOST_ANSWERED = 1 << 20

_NEEDED_OPTIONS = {
    "CONFIG_UML_TIME_TRAVEL_SUPPORT": "time travel",
    "CONFIG_VIRTIO_UML": "virtio by vhost-user",
    "CONFIG_VIRTIO_NET": "network interfaces by virtio",
    "CONFIG_HOSTFS": "the machine's files (hostfs)",
    "CONFIG_OVERLAY_FS": "overlays",
    "CONFIG_TMPFS": "files in memory",
    "CONFIG_TMPFS_XATTR": "folders in the place of deleted ones",
    "CONFIG_NET_NS": "network namespaces",
    "CONFIG_PID_NS": "PID namespaces",
    "CONFIG_UTS_NS": "UTS namespaces",
    "CONFIG_INET": "IPv4",
    "CONFIG_IPV6": "IPv6",
}
_NEEDED_PARAMETERS = {
    "rngseed=": "a seed of its random numbers",
    "    RNDCLEARPOOL": "random numbers that begin anew when the hosts are built",
    "    RDRAND": "answers for the processor (RDRAND, RDTSC)",
    "ttcost=": "a cost of clock readings",
    "    Most readings are no system calls": "clock readings without system calls",
    "    Turns are taken by shared memory": "turns by shared memory",
    "ttsyscall=": "a cost of system calls",
    "    Nothing of the host is changed": "a hostfs that only reads",
}
_LEADS_TO_THE_MACHINE = (
    *("CONFIG_DEVMEM", "CONFIG_PROC_KCORE", "CONFIG_MODULES", "CONFIG_MCONSOLE", "CONFIG_BLK_DEV_UBD"),
    *("CONFIG_PORT_CHAN", "CONFIG_PTY_CHAN", "CONFIG_TTY_CHAN", "CONFIG_XTERM_CHAN", "CONFIG_UML_NET_VECTOR"),
)
_DRAWS_FROM_THE_MACHINE = ("CONFIG_UML_RANDOM", "CONFIG_HW_RANDOM", "CONFIG_RANDOM_TRUST_CPU")


@dataclass(frozen=True)
class Kernel:
    """A kernel of User Mode Linux.

    Parameters
    ----------
    path
        The executable.
    version
        What it answers to ``--version``, for example ``7.3.4-twinnet``.
    found_by
        ``variable`` (``TWINNET_KERNEL``), ``cache`` (`twinnet kernel build` or `install`), ``package``
        (``twinnet-kernel``), or ``file``: named by the caller.
    hz
        Timer interrupts a second: TCP's timers count in these.
    lacks
        What programs on the virtual clock need and it has not; empty when it can be used.
    """

    path: Path
    version: str
    found_by: FoundBy
    hz: int
    lacks: tuple[str, ...]

    @property
    def time_travel(self) -> bool:
        """Whether its time can go on as another process says."""
        return _NEEDED_OPTIONS["CONFIG_UML_TIME_TRAVEL_SUPPORT"] not in self.lacks

    @property
    def seed(self) -> bool:
        """Whether all its random numbers can come from a seed."""
        return _NEEDED_PARAMETERS["rngseed="] not in self.lacks

    def check(self, called: str = "") -> Kernel:
        """Return the kernel itself when programs on the virtual clock can run in it.

        Parameters
        ----------
        called
            What a refusal calls it; by default its path.

        Raises
        ------
        KernelUnusable
            It is too old, or lacks something; the message names all of it.
        """
        if not self.lacks:
            return self
        raise KernelUnusable(
            f"{called or self.where()}, Linux {self.version}, lacks what programs on the virtual clock need: "
            f"{'; '.join(self.lacks)}",
            _remedy(self.found_by),
        )

    def where(self) -> str:
        """Return the path, and what names it where that is the environment."""
        return f"{self.path} ({VARIABLE})" if self.found_by == "variable" else str(self.path)

    def to_record(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return {
            "path": str(self.path),
            "version": self.version,
            "found_by": self.found_by,
            "time_travel": self.time_travel,
            "seed": self.seed,
            "hz": self.hz,
            "lacks": list(self.lacks),
        }


def find() -> Kernel | None:
    """Return the kernel that programs on the virtual clock run in: what ``TWINNET_KERNEL`` names, else the one that
    `twinnet kernel build` or `twinnet kernel install` chose last, else that of the package ``twinnet-kernel``.

    Returns
    -------
    Kernel
        ``None`` when there is none.

    Raises
    ------
    KernelUnusable
        The first of these that is there cannot be used.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return examine(Path(named).absolute(), "variable").check()
    if (kept := _kept()) is not None:
        return examine(kept, "cache").check()
    if (packed := _packed()) is not None:
        return examine(packed, "package").check()
    return None


def needed() -> Kernel:
    """Return what :func:`find` finds.

    Raises
    ------
    KernelMissing
        There is none.
    KernelUnusable
        As :func:`find`.
    """
    found = find()
    if found is None:
        raise KernelMissing("there is no kernel for programs on the virtual clock", REMEDY)
    return found


def examine(path: Path, found_by: FoundBy = "file", called: str = "") -> Kernel:
    """Ask the executable at `path` for its version, configuration and parameters, in about 20 ms.

    Parameters
    ----------
    path
        The executable.
    found_by
        What led to it.
    called
        What a refusal calls it; by default its path.

    Raises
    ------
    KernelUnusable
        It is no kernel of User Mode Linux.
    """
    asked = _Asked(path, found_by, called or str(path))
    version = asked.answer("--version").strip()
    if not re.fullmatch(r"\d+\.\d+\S*", version):
        raise asked.no_kernel("its answer to --version is no version of Linux")
    configuration = asked.answer("--showconfig")
    if _options(configuration).get("CONFIG_UML") != "y":
        raise asked.no_kernel("its answer to --showconfig is no configuration of User Mode Linux")
    return described(path, found_by, version, configuration, asked.answer("--help"))


def described(path: Path, found_by: FoundBy, version: str, configuration: str, parameters: str) -> Kernel:
    """Return the kernel at `path` of this `version`, whose `configuration` and `parameters` are what it answers to
    ``--showconfig`` and ``--help``."""
    options = _options(configuration)
    return Kernel(path, version, found_by, _whole(options.get("CONFIG_HZ")), _lacks(version, options, parameters))


def version_number(version: str) -> tuple[int, int]:
    """Return the two numbers that a version of Linux begins with.

    Examples
    --------
    >>> version_number("6.16-rc3")
    (6, 16)
    """
    first, second = version.split(".")[:2]
    return _whole(first), _whole(second)


def kernels_folder() -> Path:
    """Return the folder of the kernels that were built and installed here, in the user's cache folder."""
    return cache_folder() / "kernels"


def chosen_link() -> Path:
    """Return the link to the kernel's folder that was built or installed last."""
    return kernels_folder() / "chosen"


def _kept() -> Path | None:
    try:
        # The folder itself: the path stays true when another kernel is chosen.
        path = chosen_link().resolve() / "linux"
        return path if path.exists() else None
    except (OSError, RuntimeError):
        # RuntimeError: there is no home.
        return None


def _packed() -> Path | None:
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    return next((Path(place) / "linux" for place in places if (Path(place) / "linux").exists()), None)


@dataclass(frozen=True)
class _Asked:
    """An executable that may be a kernel."""

    path: Path
    found_by: FoundBy
    called: str

    def answer(self, question: str) -> str:
        try:
            asked = subprocess.run(
                [self.path, question], stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWERS_WITHIN_S, env={}
            )
        except subprocess.TimeoutExpired:
            raise self.no_kernel(f"it does not answer to {question}") from None
        except OSError as error:
            raise self.no_kernel(f"it cannot be executed: {reason(error)}") from None
        return asked.stdout[:_MOST_ANSWERED].decode(errors="replace")

    def no_kernel(self, why: str) -> KernelUnusable:
        by = f" ({VARIABLE})" if self.found_by == "variable" else ""
        return KernelUnusable(f"{self.called}{by} is no kernel of User Mode Linux: {why}", _remedy(self.found_by))


def _remedy(found_by: FoundBy) -> str:
    return f"name another in {VARIABLE}, or unset it; {REMEDY}" if found_by == "variable" else REMEDY


def _options(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE))


def _lacks(version: str, options: Mapping[str, str], parameters: str) -> tuple[str, ...]:
    found: list[str] = []
    if version_number(version) < OLDEST:
        found.append(f"Linux {OLDEST[0]}.{OLDEST[1]} or later")
    found += [name for option, name in _NEEDED_OPTIONS.items() if options.get(option) != "y"]
    found += [name for parameter, name in _NEEDED_PARAMETERS.items() if f"\n{parameter}" not in f"\n{parameters}"]
    found += [
        f"{option}=n" for option in (*_DRAWS_FROM_THE_MACHINE, *_LEADS_TO_THE_MACHINE) if options.get(option) == "y"
    ]
    return tuple(found)


def _whole(digits: str | None) -> int:
    found = re.match(r"\d{1,9}", digits or "")
    return int(found.group()) if found else 0
