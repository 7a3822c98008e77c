"""``import mininet`` in a script: the same module objects as those of this package."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["MODULES", "install"]

MODULES = ("clean", "cli", "link", "log", "moduledeps", "net", "node", "nodelib", "term", "topo", "topolib", "util")
"""The modules of Mininet that there are."""
_OF_SYSTEM = ("usr/lib/python3/dist-packages", "usr/local/lib/python3*/dist-packages", "usr/lib/python3*/site-packages")
"""Where systems have packages of Python that they install themselves."""
_BESIDE = {
    "clean": "CalledProcessError PIPE Popen cleanUpScreens co decode info time",
    "cli": "Cmd POLLIN atexit call dumpNodeConnections dumpPorts errno error info isatty makeTerms os output poll "
    "quietRun runX11 select sys time",
    "link": "re",
    "log": "Logger logging types",
    "moduledeps": "BaseString debug environ error exit info quietRun",
    "net": "BaseString ceil chain cleanUpScreens exit groupby makeTerms os random re select signal sleep",
    "node": "BaseString PIPE Popen Python3 StrictVersion exit findall getincrementaldecoder os pty re select signal "
    "sleep",
    "term": "environ errRun error quietRun",
    "topo": "irange natural naturalSeq",
    "util": "F_GETFL F_SETFL O_NONBLOCK PIPE POLLHUP POLLIN Popen RLIMIT_NOFILE RLIMIT_NPROC STDOUT call check_call "
    "exit fcntl getrlimit os partial poll re setrlimit sleep sys",
}
"""What else ``from mininet.X import *`` gives: scripts use these without importing them by themselves."""
_HOMES = {
    "cmd": "Cmd",
    "codecs": "getincrementaldecoder",
    "fcntl": "F_GETFL F_SETFL fcntl",
    "functools": "partial",
    "itertools": "chain groupby",
    "logging": "Logger",
    "math": "ceil",
    "os": "O_NONBLOCK environ isatty",
    "re": "findall",
    "resource": "RLIMIT_NOFILE RLIMIT_NPROC getrlimit setrlimit",
    "select": "POLLHUP POLLIN poll",
    "subprocess": "CalledProcessError PIPE Popen STDOUT call check_call",
    "sys": "exit",
    "time": "sleep",
    "twinnet.mininet.log": "debug error info output",
    "twinnet.mininet.term": "cleanUpScreens makeTerms runX11",
    "twinnet.mininet.util": (
        "BaseString Python3 StrictVersion decode dumpNodeConnections dumpPorts errRun irange natural naturalSeq "
        "quietRun"
    ),
}


def install() -> None:
    """Make ``mininet`` and ``mininet.X`` names of ``twinnet.mininet`` and its modules, in this process. Other modules
    of a package ``mininet`` that is installed are found under their names too, such as ``mininet.examples``: one on the
    path, or one of the system, which a virtual environment has not on its path."""
    package = importlib.import_module("twinnet.mininet")
    of_system = [str(place) for folders in _OF_SYSTEM for place in sorted(Path("/").glob(f"{folders}/mininet"))]
    on_path = pkgutil.extend_path(package.__path__, "mininet")
    package.__path__ = list(dict.fromkeys([*on_path, *of_system]))
    sys.modules["mininet"] = package
    for name in MODULES:
        module = sys.modules[f"mininet.{name}"] = importlib.import_module(f"twinnet.mininet.{name}")
        _add_names_beside(module, _BESIDE.get(name, "").split())


def _add_names_beside(module: ModuleType, names: list[str]) -> None:
    homes = {one: home for home, its in _HOMES.items() for one in its.split()}
    for name in names:
        if not hasattr(module, name):
            if name == "co":
                value = importlib.import_module("subprocess").check_output
            elif name in homes:
                value = getattr(importlib.import_module(homes[name]), name)
            else:
                value = importlib.import_module(name)
            setattr(module, name, value)
    # Lazy names whose package is not installed must not stop a script that does not use them.
    absent = {"pexpect"} if importlib.util.find_spec("pexpect") is None else set[str]()
    module.__dict__["__all__"] = [name for name in dict.fromkeys([*module.__all__, *names]) if name not in absent]
