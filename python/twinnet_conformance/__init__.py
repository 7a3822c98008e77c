"""A test suite for OpenFlow switches, by the sections of the specifications 1.3.5 and 1.0.2.

Written once and run against any switch: ours (`Bare`), Open vSwitch (`OpenVSwitch`), or one that listens for a
controller and whose ports are interfaces of this machine (`Remote`).
"""

from __future__ import annotations

from twinnet_conformance.case import Case, Failure, all_cases
from twinnet_conformance.outcome import Outcome, run_case, run_cases

__all__ = ["Case", "Failure", "Outcome", "all_cases", "run_case", "run_cases"]
