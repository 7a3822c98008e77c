"""What our own ``ovs-ofctl`` says of a flow that cannot be read: Open vSwitch's words first, for scripts look for them,
then ours with the place and the remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["in_known_words"]

_OURS = re.compile(r'column \d+: "(?P<word>[^"]*)" (?P<why>[^;]*)')
_ADDRESSES = r"(?:dl|eth)_(?:src|dst)|arp_[st]ha|nd_[st]ll"
_WORDS: Sequence[tuple[str, str]] = (
    (r"ends without actions", "must specify an action"),
    (r"is no action", "unknown action {word}"),
    (r"is no port", "{word}: output to unknown port"),
    (r"names no queue", '"enqueue" syntax is "enqueue:PORT:QUEUE" or "enqueue(PORT,QUEUE)"'),
    (r"is no field that can be set", "{word} is not a valid OXM field name"),
    (r"is no field whose bits can be named", "{word}: unknown field `{word}'"),
    (r"is no valid (priority|idle_timeout|hard_timeout)", 'invalid {name} "{word}"'),
    (r"is no valid table", 'unknown table "{word}"'),
    (r"is no valid (?:cookie|queue)", "invalid numeric format {word}"),
    (r"is no valid in_port", "{word}: invalid or unknown port for in_port"),
    (rf"is no valid (?:{_ADDRESSES})", "{word}: invalid Ethernet address"),
    (r"is no valid (?:nw_src|nw_dst|ip_src|ip_dst|arp_[st]pa)", "{word}: invalid IP address"),
    (r"is no valid mod_dl_(?:src|dst)", "invalid mac address {word}"),
    (r"is no valid mod_nw_(?:src|dst)", "{word}: could not convert to IP address"),
    (r"is no valid mod_vlan_vid", "{word}: not a valid VLAN VID"),
)


def in_known_words(said: str, words: Sequence[str]) -> str:
    """Return what is to be said where `said` tells what is wrong with one of `words`."""
    ours = _OURS.search(said)
    if ours is None:
        return said
    word, why = ours["word"], ours["why"]
    if why.startswith("is neither a field nor a property"):
        given = any(re.search(rf"(?:^|[\s,]){re.escape(word)}\s*=", one) for one in words)
        return f"unknown keyword {word} ({said})" if given else f"field {word} missing value ({said})"
    for pattern, theirs in _WORDS:
        if found := re.match(pattern, why):
            name = found[1] if found.groups() else ""
            return f"{theirs.format(word=word, name=name)} ({said})"
    return said
