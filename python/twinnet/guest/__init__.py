"""The kernel in which programs run on the virtual clock: found, examined, built and installed.

It is User Mode Linux: an ordinary program that holds the network stack, the processes and the clock of all hosts.
Its time goes on only as the fabric says (``time-travel=ext``). It is a program of its own, under the GPL, that
installing and testing the rest of twinnet never needs.
"""

from twinnet.guest.kernel import Kernel, find, needed

__all__ = ["Kernel", "find", "needed"]
