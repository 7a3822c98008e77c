"""Settings of the network that a script makes in its machine for the hosts to come: ``sysctl -w
net.ipv4.tcp_congestion_control=reno``, as exercises on queues have it.

Linux gives a new network namespace those of the first one (``tcp_sk_init`` and ``devinet_init_net``), which is the
machine of Mininet's scripts. Ours is another, so hosts take over here what has changed there since the script began.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from twinnet.mininet.log import warn

__all__ = ["SETTINGS", "InheritedSettings"]

_FOLDER = Path("/proc/sys/net/ipv4")
_PLACES = {name: str(_FOLDER / name) for name in ("tcp_congestion_control", "tcp_rmem", "tcp_wmem", "ip_forward")}
_LONGEST = 4096


class InheritedSettings:
    """The settings of this machine that hosts take over."""

    def __init__(self) -> None:
        self._before: Mapping[str, str] | None = None
        self._told: set[str] = set()

    def remember(self) -> None:
        """The script begins: what it changes from now on is for its hosts."""
        self._before = _read()

    def changed(self) -> Mapping[str, str]:
        """Return what has changed in the namespace of this thread since then."""
        now = _read()
        if self._before is None:
            self._before = now
        return {name: value for name, value in now.items() if value != self._before.get(name)}

    def set(self, settings: Mapping[str, str]) -> None:
        """Set them in the namespace of this thread, which is new; tell once what Linux refuses."""
        for name, value in settings.items():
            try:
                (_FOLDER / name).write_text(value)
            except OSError as refused:
                if name not in self._told:
                    self._told.add(name)
                    why = "only root may" if refused.errno == errno.EPERM else refused.strerror
                    warn(f"twinnet: hosts do not take over net.ipv4.{name} = {value}: {why}\n")


def _read() -> dict[str, str]:
    found: dict[str, str] = {}
    for name, place in _PLACES.items():
        try:
            # Each host asks for them: without the layers of a file object.
            descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            # A kernel may have none such.
            continue
        try:
            found[name] = os.read(descriptor, _LONGEST).decode().strip()
        finally:
            os.close(descriptor)
    return found


SETTINGS = InheritedSettings()
"""Those of this process."""
