"""The description of a network: nodes, links and their settings, from code or from files."""

from twinnet.network.network import Network, NetworkMoment, Side

__all__ = ["Network", "NetworkMoment", "Side"]
