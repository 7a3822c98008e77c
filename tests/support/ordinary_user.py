"""An ordinary user who runs twinnet: the one who runs the tests, or `nobody` when that is root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import twinnet

NOBODY = 65534
PACKAGE = Path(twinnet.__file__).parent


class CannotSwitch(Exception):
    """Why no ordinary user can run twinnet here."""


class OrdinaryUser:
    """Commands of an ordinary user, in `folder`, with a copy of the package that this user can read.

    Parameters
    ----------
    folder
        A new folder that all users can reach (pytest's are for their owner alone).
    """

    def __init__(self, folder: Path) -> None:
        self.prefix: list[str] = []
        if os.geteuid() == 0:
            if shutil.which("setpriv") is None:
                raise CannotSwitch("setpriv is not installed, so root cannot become another user")
            # The shell in between looks the program up with the rights of the new user.
            user = ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
            self.prefix = ["setpriv", *user, "sh", "-c", 'exec "$@"', "sh"]
        self.folder = folder
        folder.chmod(0o777)
        path = [folder / "package"]
        shutil.copytree(PACKAGE, path[0] / "twinnet", ignore=shutil.ignore_patterns("__pycache__"))
        libraries = Path(sysconfig.get_path("purelib"))
        if self.call("test", "-r", str(libraries / "pydantic" / "__init__.py")).returncode != 0:
            shutil.copytree(libraries, folder / "libraries", copy_function=_link)
            libraries = folder / "libraries"
        path.append(libraries)
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
        }
        self.python = self._python()

    def _python(self) -> str:
        """An interpreter of our version that the user may execute."""
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        candidates = [sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"]
        for one in candidates:
            found = self.call(one, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
            if found.stdout.strip() == version:
                return one
        raise CannotSwitch(f"no Python {version} that an ordinary user may execute; tried {', '.join(candidates)}")

    def command(self, *arguments: str) -> list[str]:
        """The command line that runs `arguments` as this user."""
        return [*self.prefix, *arguments]

    def twinnet(self, *arguments: str) -> list[str]:
        """The command line that runs twinnet as this user."""
        return self.command(self.python, "-c", "from twinnet.cli import main; main()", *arguments)

    def without_tap(self, command: list[str]) -> list[str]:
        """`command` where /dev/net/tun cannot be opened, as on many machines; only root can make that so."""
        if os.geteuid() != 0:
            raise CannotSwitch("only root can hide /dev/net/tun from a program")
        closed = self.folder / "closed"
        closed.touch(0o600)
        script = 'mount --bind "$1" /dev/net/tun && shift && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", str(closed), *command]

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program as this user."""
        return self.run(self.command(*arguments))

    def run(self, command: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run what :meth:`twinnet` or :meth:`command` gave."""
        environment = getattr(self, "environment", None)
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.folder,
            timeout=120,
            check=False,
        )


@contextlib.contextmanager
def an_ordinary_user() -> Iterator[OrdinaryUser]:
    """An ordinary user who may make user namespaces; the test skips where there is none."""
    with tempfile.TemporaryDirectory(prefix="ordinary-") as folder:
        try:
            found = OrdinaryUser(Path(folder))
        except CannotSwitch as reason:
            pytest.skip(str(reason))
        if found.call("unshare", "--user", "true").returncode != 0:
            pytest.skip("this machine lets ordinary users make no user namespaces: see twinnet doctor")
        yield found


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
