"""Open vSwitch as the switches of a lab: an instance that the lab starts for itself, and the face of its bridges."""

from twinnet.open_vswitch.bridge import Bridge
from twinnet.open_vswitch.instance import Instance
from twinnet.open_vswitch.programs import Programs, find_programs, is_open_vswitch

__all__ = ["Bridge", "Instance", "Programs", "find_programs", "is_open_vswitch"]
