"""What programs on the virtual clock are told by the machine's own processor (CPUID): nothing makes all processors
answer alike, so a lab's record says which instructions its programs could find."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

__all__ = ["differing", "features"]

_CHOSEN_BY = re.compile(
    r"abm|adx|aes|amx_\w+|avx\w*|bmi[12]|erms|f16c|fma4?|fsrm|gfni|movbe|pclmulqdq|rdrand|rdseed|sha\w*|tbm|vaes"
    r"|vpclmulqdq|xop"
)
"""Those beyond x86-64-v2 by which compilers and libraries choose their routines, in the words of Linux."""


def features(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Return the instructions of this machine's processor by which programs choose their routines, in order; none where
    `cpuinfo` does not tell them."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    words = next((line.partition(":")[2] for line in lines if line.startswith("flags")), "")
    return sorted({word for word in words.split() if _CHOSEN_BY.fullmatch(word)})


def differing(one: object, other: object) -> str:
    """Return the instructions that one of two machines had alone, by what :func:`features` said there, in words that
    follow others; empty where that is not known, or nothing differs."""
    if not isinstance(one, list) or not isinstance(other, list):
        return ""
    apart = sorted(set(map(str, cast("list[object]", one))) ^ set(map(str, cast("list[object]", other))))
    return f"; only one of the two processors has {', '.join(apart)}, and programs may look for that" if apart else ""
