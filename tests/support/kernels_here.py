"""Whether this machine has a kernel for programs on the virtual clock."""

import pytest
from twinnet.errors import NotAvailable
from twinnet.guest import find

__all__ = ["a_kernel_is_here", "needs_a_kernel"]


def a_kernel_is_here() -> bool:
    try:
        return find() is not None
    except NotAvailable:
        return False


needs_a_kernel = pytest.mark.skipif(
    not a_kernel_is_here(), reason="there is no kernel for programs on the virtual clock; see `twinnet kernel show`"
)
