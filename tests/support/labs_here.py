"""Whether labs on the wall clock can run on this machine."""

import functools
import json

import pytest
from twinnet.errors import TwinnetError
from twinnet.network.network import Network

__all__ = ["can_run_labs", "needs_a_lab"]


@functools.cache
def can_run_labs() -> bool:
    """Whether this machine permits labs; a fault of the lab itself must fail the tests, not skip them."""
    from twinnet import _core
    from twinnet.cli.doctor_command import can_run_labs as judged

    return judged({one["ability"]: one["ok"] for one in json.loads(_core.doctor())})


@functools.cache
def a_lab_can_run():
    network = Network()
    network.link(network.host("h1"), network.switch("s1"))
    try:
        with network.emulate():
            return True
    except TwinnetError:
        return False


needs_a_lab = pytest.mark.skipif(not a_lab_can_run(), reason="no lab can run on this machine; see `twinnet doctor`")
