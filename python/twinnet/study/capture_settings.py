"""What a study says of the frames that its runs keep."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from twinnet.errors import BadValue, UnknownNode, did_you_mean
from twinnet.network.named_ports import port_named
from twinnet.network.network import Network
from twinnet.study.field_types import STRICT, Count, SizeBytes
from twinnet.units import format_size

__all__ = ["CaptureSettings"]

_USUAL_LIMIT = 10_000_000
_MOST_FILES = 100
_MOST_BYTES = 400_000_000
"""They travel with the run's tables from another machine, in one message."""


class CaptureSettings(BaseModel):
    """The captures that runs keep in the results.

    Attributes
    ----------
    at
        Hosts and switches, all ports of which are meant, and ports: `s1-eth2`, `s1 to h2`.
    limit
        The most bytes of each file, 10 MB when left out; later frames are counted only.
    snap
        The bytes of each frame that are kept; default: all.
    direction
        What a port's node receives (`in`), what it sends (`out`), or `both`.
    repetitions
        How many repetitions of each combination of levels keep captures, from the first on.
    """

    model_config: ClassVar[ConfigDict] = STRICT

    at: Annotated[list[str], Field(min_length=1, max_length=_MOST_FILES)]
    limit_bytes: Annotated[SizeBytes, Field(ge=4096, le=256_000_000)] = Field(default=_USUAL_LIMIT, alias="limit")
    snap_bytes: Annotated[SizeBytes, Field(ge=14, le=262_144)] | None = Field(default=None, alias="snap")
    direction: Literal["both", "in", "out"] = "both"
    repetitions: Count = 1

    def ports(self, network: Network) -> list[str]:
        """The names of the ports of `network` that are captured.

        Raises
        ------
        UnknownNode, BadTopology
            A name means none.
        BadValue
            They might be larger together than a run may keep.
        """
        found = list(dict.fromkeys(port for name in self.at for port in ports_of(network, name)))
        if len(found) * self.limit_bytes > _MOST_BYTES:
            raise BadValue(
                f"{len(found)} captures of {format_size(self.limit_bytes)} are more than the {format_size(_MOST_BYTES)}"
                " that a run may keep",
                "give a smaller 'limit', or fewer ports",
            )
        return found


def ports_of(network: Network, name: str) -> list[str]:
    """The ports of the host `name` of `network`, or the one port that it names; raises `UnknownNode`, `BadTopology`."""
    if name in network:
        return [port.name for port in network.nodes[name].ports]
    try:
        return [port_named(network, name).name]
    except UnknownNode as error:
        close = did_you_mean(name, network.nodes)
        raise UnknownNode(error.message, f"or a host: {close}; {error.remedy}") from None
