"""What a script on the virtual clock does otherwise than on the wall clock: it draws numbers from the seed, tells when
it reads what is typed, and goes on at round moments.

How many calls of Linux a start takes, and so how long, depends on where Python is and on what it has compiled before.
What follows must not.
"""

from __future__ import annotations

import builtins
import os
import random
import sys
import time

from twinnet.lab.virtual_terminal import HAS_READ, READS
from twinnet.mininet.wishes import SEED_VARIABLE, TELLS_VARIABLE

__all__ = ["begin", "on_virtual_clock", "wait_for_a_round_moment"]

_ROUND_S = 1.0
_SHORT_ROUND_S = 0.1


def on_virtual_clock() -> bool:
    """Return whether this script runs on the virtual clock."""
    return SEED_VARIABLE in os.environ


def begin() -> None:
    """Prepare this process for a script; nothing on the wall clock."""
    if not on_virtual_clock():
        return
    random.seed(int(os.environ[SEED_VARIABLE]))
    if os.environ.pop(TELLS_VARIABLE, None) == "1":
        _tell_of_reading()
    _wait(_ROUND_S)
    # How many were drawn before, and when, depends on how this process was started.
    from twinnet.mininet import outside

    outside.begin_random_numbers_anew()


def wait_for_a_round_moment() -> None:
    """Wait until the clock shows a multiple of 0.1 s; on the wall clock not at all."""
    if on_virtual_clock():
        _wait(_SHORT_ROUND_S)


def _wait(round_s: float) -> None:
    now_s = time.monotonic()
    time.sleep((now_s // round_s + 1) * round_s - now_s)


def _tell_of_reading() -> None:
    """Have ``input`` tell when it reads."""
    own = builtins.input

    def read(prompt: object = "", /) -> str:
        sys.stdout.write(READS)
        sys.stdout.flush()
        try:
            return own(prompt)
        finally:
            sys.stdout.write(HAS_READ)
            sys.stdout.flush()

    builtins.input = read
