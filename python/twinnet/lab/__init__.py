"""A network that is running."""

from twinnet.lab.lab import Lab, attach, labs

__all__ = ["Lab", "attach", "labs"]
