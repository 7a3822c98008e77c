"""The way from a script's machine to the network outside: by slirp4netns where it is installed, otherwise by
ourselves. Neither needs a right or leaves anything.

It holds an interface of the machine, and makes the connections of what comes in by it as a program of the user. It ends
with the machine, whatever ends that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from twinnet.outward.interface import INTERFACE, NETWORK

if TYPE_CHECKING:
    from twinnet._core import Outward

__all__ = ["UserModeNat"]

_PATIENCE_S = 5.0


class UserModeNat:
    """The ways that one machine has: one or none."""

    def __init__(self) -> None:
        self._slirp: subprocess.Popen[bytes] | None = None
        self._hold = -1
        self._own: Outward | None = None

    def open(self, process: int) -> bool:
        """Give the network namespace of `process` a way out by slirp4netns; return whether it has one."""
        if self._slirp is not None:
            return True
        if shutil.which("slirp4netns") is None:
            return False
        # When we are gone, by `kill -9` too, the pipe closes, and it ends.
        held, self._hold = os.pipe()
        ready, tell = os.pipe()
        words = ["slirp4netns", "--configure", "--mtu=1500", "--disable-host-loopback", f"--cidr={NETWORK}"]
        words += [f"--exit-fd={held}", f"--ready-fd={tell}", str(process), INTERFACE]
        try:
            self._slirp = subprocess.Popen(
                words,
                pass_fds=(held, tell),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            pass
        finally:
            for descriptor in (held, tell):
                os.close(descriptor)
        try:
            opened = os.read(ready, 1) == b"1"
        finally:
            os.close(ready)
        if not opened:
            self.end()
        return opened

    def carry(self, packets: int) -> bool:
        """Be the way out for what comes by the packet socket `packets`; return whether that can be."""
        from twinnet import outward

        with suppress(OSError):
            self._own = outward.carry(packets)
        return self._own is not None

    def end(self) -> None:
        """Take the way away."""
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1
        if self._slirp is not None:
            with suppress(subprocess.TimeoutExpired):
                self._slirp.wait(_PATIENCE_S)
            self._slirp.kill()
            self._slirp.wait()
            self._slirp = None
        if self._own is not None:
            self._own.close()
            self._own = None
