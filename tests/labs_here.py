"""Whether labs on the wall clock can run on this machine."""

import pytest
from twinnet.errors import TwinnetError
from twinnet.network import Network

__all__ = ["needs_a_lab"]


def a_lab_can_run():
    network = Network()
    network.link(network.host("h1"), network.switch("s1"))
    try:
        with network.emulate():
            return True
    except TwinnetError:
        return False


needs_a_lab = pytest.mark.skipif(not a_lab_can_run(), reason="no lab can run on this machine; see `twinnet doctor`")
