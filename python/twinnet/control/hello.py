"""Choose the version that two hellos agree on (OpenFlow 1.3, 6.3.1)."""

from __future__ import annotations

from twinnet.control.framing import HEADER, HEADER_BYTES

__all__ = ["agreed_version"]

_BITMAP = 1


def agreed_version(one: bytes, other: bytes) -> int | None:
    """Return the version (of the wire) that both hellos offer: the highest in both bitmaps, or else the smaller of the
    headers'; ``None`` when there is none.

    Examples
    --------
    >>> agreed_version(bytes.fromhex("0400001000000001 0001000800000012"), bytes.fromhex("0100000800000000"))
    1
    """
    maps = [_bitmap(hello) for hello in (one, other)]
    versions = [HEADER.unpack_from(hello)[0] for hello in (one, other)]
    if maps[0] is not None and maps[1] is not None:
        return (maps[0] & maps[1]).bit_length() - 1 if maps[0] & maps[1] else None
    least = min(versions)
    # A switch that offers 1.0 and 1.3 has a bitmap without 1.1 and 1.2.
    return least if all(found is None or found >> least & 1 for found in maps) else None


def _bitmap(hello: bytes) -> int | None:
    """The versions in a hello's bitmap, bit n for version n; ``None``: it has none."""
    at = HEADER_BYTES
    while len(hello) >= at + 4:
        kind, length = int.from_bytes(hello[at : at + 2], "big"), int.from_bytes(hello[at + 2 : at + 4], "big")
        if length < 4:
            return None
        if kind == _BITMAP:
            words = hello[at + 4 : at + length]
            return sum(int.from_bytes(words[n : n + 4], "big") << 8 * n for n in range(0, len(words) - 3, 4))
        at += -(-length // 8) * 8
    return None
