"""Marks of tests that need Open vSwitch: its programs, and its datapath in the kernel."""

from __future__ import annotations

import pytest
from twinnet import _core
from twinnet.errors import NotAvailable
from twinnet.open_vswitch import find_programs

__all__ = ["needs_kernel", "needs_ovs"]


def _missing() -> str:
    try:
        find_programs()
    except NotAvailable as error:
        return str(error)
    return ""


needs_ovs = pytest.mark.skipif(bool(_missing()), reason=_missing() or "there")
needs_kernel = pytest.mark.skipif(
    not _core.kernel_has_open_vswitch(), reason="the kernel has no Open vSwitch datapath: modprobe openvswitch"
)
