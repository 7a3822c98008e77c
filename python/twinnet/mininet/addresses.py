"""Numbers and texts of IPv4 and hardware addresses, as Mininet's scripts use them."""

from __future__ import annotations

import re

__all__ = [
    "checkFloat",
    "checkInt",
    "colonHex",
    "fmtBps",
    "ipAdd",
    "ipNum",
    "ipParse",
    "ipStr",
    "irange",
    "macColonHex",
    "makeNumeric",
    "natural",
    "naturalSeq",
    "netParse",
    "unitScale",
]

_DEFAULT_PREFIX = 24
_PREFIXES = "kMGTP"


def colonHex(val: int, bytecount: int) -> str:
    """Return the last `bytecount` bytes of `val` in hexadecimal, with colons between them."""
    return ":".join(f"{val >> 8 * place & 0xFF:02x}" for place in reversed(range(bytecount)))


def macColonHex(mac: int) -> str:
    """Return the text of the hardware address `mac`."""
    return colonHex(mac, 6)


def ipStr(ip: int) -> str:
    """Return the text of the IPv4 address `ip`."""
    return ".".join(str(byte) for byte in (ip & 0xFFFFFFFF).to_bytes(4, "big"))


def ipNum(w: int, x: int, y: int, z: int) -> int:
    """Return the number of the IPv4 address w.x.y.z."""
    return w << 24 | x << 16 | y << 8 | z


def ipAdd(i: int, prefixLen: int = 8, ipBaseNum: int = 0x0A000000) -> str:
    """Return the `i`-th address of the network of `ipBaseNum`; raises `AssertionError` when it has fewer."""
    most = 0xFFFFFFFF >> prefixLen
    assert i <= most, "Not enough IP addresses in the subnet"
    return ipStr((ipBaseNum & ~most) + i)


def ipParse(ip: str) -> int:
    """Return the number of an IPv4 address; missing bytes stand before the last: ``10.1`` is 10.0.0.1."""
    parts = [int(part) for part in ip.split(".")]
    while len(parts) < 4:
        parts.insert(len(parts) - 1, 0)
    return ipNum(*parts)


def netParse(ipstr: str) -> tuple[int, int]:
    """Return address and prefix length of a network; the length is 24 when none is given."""
    address, slash, length = ipstr.partition("/")
    return ipParse(address), int(length) if slash else _DEFAULT_PREFIX


def checkInt(s: str) -> bool:
    """Return whether `s` is a whole number."""
    try:
        int(s)
    except ValueError:
        return False
    return True


def checkFloat(s: str) -> bool:
    """Return whether `s` is a number."""
    try:
        float(s)
    except ValueError:
        return False
    return True


def makeNumeric(s: str) -> int | float | str:
    """Return the number that `s` is, or `s`."""
    if checkInt(s):
        return int(s)
    return float(s) if checkFloat(s) else s


def natural(text: object) -> list[int | str]:
    """Return a key that sorts h2 before h10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(text))]


def naturalSeq(t: object) -> list[list[int | str]]:
    """Return the natural keys of a sequence."""
    return [natural(one) for one in t]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType, reportUnknownArgumentType]


def irange(start: int, end: int) -> range:
    """Return the numbers from `start` to `end`, both included."""
    return range(start, end + 1)


def unitScale(num: float | str, prefix: str = "") -> tuple[str, float]:
    """Return the prefix of a unit that suits `num`, or `prefix`, and its factor."""
    if prefix:
        return prefix, float(1000 ** (_PREFIXES.lower().index(prefix.lower()) + 1))
    power = 0
    while power < len(_PREFIXES) and float(num) >= 1000 ** (power + 1):
        power += 1
    return _PREFIXES[power - 1] if power else "", float(1000**power)


def fmtBps(bps: float | str, prefix: str = "", fmt: str = "%.1f %sbits/sec") -> str:
    """Return the rate `bps` (bits per second) as iperf prints it."""
    shown, factor = unitScale(bps, prefix or "")
    return fmt % (float(bps) / factor, shown)
