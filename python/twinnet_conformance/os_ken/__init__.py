"""The switch tests of Ryu as the package os-ken has them: JSON files with which a tester tries a target over cables.

They were written by others, and read back what a controller wrote as well as what becomes of frames. Only the files and
the codecs of the installed package are needed: the runner is our own, waits for answers and not for a time, and has
both switches in one process.
"""

from __future__ import annotations

from twinnet_conformance.os_ken.files import SwitchTest, all_tests, why_not
from twinnet_conformance.os_ken.run import run_tests

__all__ = ["SwitchTest", "all_tests", "run_tests", "why_not"]
