"""A network that is running."""

from twinnet.lab.lab import DEVNULL, PIPE, AppHandle, Capture, Completed, Job, Lab
from twinnet.lab.running_labs import LabInfo, attach, labs

__all__ = ["DEVNULL", "PIPE", "AppHandle", "Capture", "Completed", "Job", "Lab", "LabInfo", "attach", "labs"]
