"""What Mininet does in silence, said once: with what Mininet would have done, which is done too."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from twinnet.errors import BadValue
from twinnet.mininet.log import warn
from twinnet.mininet.shaping import netem_time_ps

__all__ = ["STRICT_VARIABLE", "Advice"]

STRICT_VARIABLE = "TWINNET_MININET_STRICT"
"""The variable that has such settings refused."""
_MEANT = {
    "bandwidth": "bw",
    "capacity": "bw",
    "rate": "bw",
    "latency": "delay",
    "queue": "max_queue_size",
    "queue_size": "max_queue_size",
}
"""Words of other tools, and what they are called here."""
_IPV4_BITS = 32
_SHAPING = ("bw", "delay", "jitter", "loss", "max_queue_size")


class Advice:
    """The messages of one script; each is shown once. With `STRICT_VARIABLE` set to 1 they are errors."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def tell(self, key: str, message: str, remedy: str) -> None:
        """Tell `message` once for each `key`, or raise `BadValue` where scripts are to be strict."""
        if os.environ.get(STRICT_VARIABLE) == "1":
            raise BadValue(message, remedy)
        if key not in self._said:
            self._said.add(key)
            warn(f"twinnet: {message}; {remedy}\n")

    def of_plain_link(self, params: dict[str, Any]) -> None:
        """Tell of shaping that a plain link does not have."""
        given = [name for name in _SHAPING if params.get(name) is not None]
        if given:
            said = f"{', '.join(given)} given to a plain link, which Mininet ignores"
            self.tell("plain link", said, "use link=TCLink, or cls=TCLink for this link")

    def of_unknown(self, params: Iterable[str], known: Iterable[str]) -> None:
        """Tell of settings of a link that nothing reads but a script itself. Only those that are nearly `known` are
        refused where scripts are to be strict."""
        known = sorted(known)
        words = [*known, *_MEANT]
        for name in params:
            if name in known:
                continue
            near = next((_MEANT.get(one, one) for one in get_close_matches(name, words, 1, 0.75)), None)
            said = f"{name} is no setting of a link, which Mininet keeps in params and ignores"
            if near in known:
                self.tell(f"unknown {name}", said, f"write {near} if that is meant")
            elif f"unknown {name}" not in self._said:
                self._said.add(f"unknown {name}")
                warn(f"twinnet: {said}\n")

    def of_node(self, name: str, params: Iterable[str], known: Iterable[str]) -> None:
        """Tell of settings of the node `name` that nothing reads and that are nearly `known` ones. Others are the
        script's own: topologies keep what they want there."""
        by_letters = {word.lower(): word for word in known}
        for given in params:
            near = get_close_matches(given.lower().replace("_", ""), by_letters, 1, 0.85)
            if given not in by_letters.values() and near:
                said = f"{name}: {given} is no setting of it, which Mininet keeps in params and ignores"
                self.tell(f"unknown {given}", said, f"write {by_letters[near[0]]} if that is meant")

    def of_time(self, name: str, value: str | float | None) -> None:
        """Tell of a time without a unit, or one that cannot be read."""
        if not value:
            return
        time_ps = netem_time_ps(value)
        if time_ps is None:
            said = f"{name}={value!r} is no time, and tc refuses it"
            self.tell(f"bad {name}", said, f"write {name}='5ms'")
        elif time_ps and str(value).strip()[-1].isdigit():
            said = f"{name}={value!r} has no unit, and tc reads microseconds"
            self.tell(f"bare {name}", said, f"write {name}='{value}ms' if milliseconds are meant")

    def of_refusal(self, without: str, said: str, remedy: str) -> None:
        """Tell `without` what a script goes on, for a program refused it and `said` so; nothing where it said nothing.
        Mininet throws these words away."""
        if said.strip():
            self.tell(without, f"{without} ({said.strip().splitlines()[0]})", remedy)

    def of_address(self, interface: str, address: str, said: str) -> None:
        """Tell of an address that ``ifconfig`` refused, as it `said`, or whose prefix length it takes without a word
        although IPv4 has none such."""
        length = address.rpartition("/")[2]
        if not said.strip() and not (length.isdigit() and int(length) <= _IPV4_BITS):
            said = f"/{length} is no prefix length of IPv4"
        remedy = "write ip='10.0.0.7/8'"
        if ":" in address:
            remedy = f"write node.cmd('ip addr add {address} dev {interface}'), for setIP is of IPv4 alone"
        self.of_refusal(f"{interface} does not get the address {address}", said, remedy)

    def of_loss(self, value: float | None) -> None:
        """Tell of a loss that is none."""
        if value is not None and not 0 <= value <= 100:
            said = f"loss={value!r} is no share of 0 to 100 per cent, which Mininet leaves out"
            self.tell("loss", said, "write loss=1 for one per cent")
