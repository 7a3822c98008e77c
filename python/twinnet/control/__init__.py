"""Controllers: where they are, how switches reach them, and programs that are one."""

from twinnet.control.dialling import Dialling
from twinnet.control.program import ControllerProgram
from twinnet.control.targets import ListenTarget, Target, parse_listen, parse_target

__all__ = ["ControllerProgram", "Dialling", "ListenTarget", "Target", "parse_listen", "parse_target"]
