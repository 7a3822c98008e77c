"""The description of a network: nodes, links and their settings, from code or from files."""

from twinnet.network.network import Network

__all__ = ["Network"]
