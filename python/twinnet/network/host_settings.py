"""The settings that hosts and routers share: keyword arguments of calls and keys of network files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from twinnet.errors import BadValue
from twinnet.network.impairments import JitterValue, jitter_spec
from twinnet.ranges import way_ps
from twinnet.settings import Delay, Flag, Number, Whole, size
from twinnet.units import Size

__all__ = ["HOST_DEFAULTS", "HostOptions", "ModelOptions", "coalescing_spec", "limits_spec", "processing_spec"]


_PROCESSORS = Number(BadValue, 0.01, 1024.0)
_MEMORY = size(1 << 20, 1 << 50, BadValue)


class ModelOptions(TypedDict, total=False):
    """The settings of the model that stands for a host on the virtual clock."""

    processing: Delay
    """The time that a model takes for each frame that arrives. A real host takes its own time
    (docs/reference/model-hosts.md)."""
    processing_jitter: JitterValue | None
    """How far single frames are from that, as jitter of a link."""
    interrupt_delay: Delay
    """How its network cards coalesce interrupts: a frame waits up to this time for others, and the host is told of all
    together (``ethtool -C rx-usecs``). Not at all by default."""
    interrupt_frames: Annotated[int, Whole(BadValue, 1, (1 << 32) - 1)] | None
    """The number of waiting frames at which the host is told earlier (``ethtool -C rx-frames``)."""


class HostOptions(ModelOptions, total=False):
    """The settings of a host or router, besides its name and addresses."""

    routes: Sequence[tuple[str, str]]
    """Routes: destination prefix and next hop."""
    sysctls: Mapping[str, str | int] | None
    """Kernel settings under ``net.``, such as ``{"net.ipv4.tcp_congestion_control": "cubic"}``."""
    model: Annotated[bool, Flag(BadValue)]
    """True for a model inside the fabric on the wall clock too: it runs apps and no programs. On the virtual clock
    every host is one, unless the lab has programs."""
    image: str | None
    """A container's image whose files it has in the place of the machine's: a folder, an archive as ``docker save``
    writes it, an OCI layout, or a name that ``docker images`` or ``podman images`` shows. What its programs write is
    gone with the lab. On the wall clock only."""
    volumes: Sequence[str] | None
    """Files and folders of the machine in the image: ``SOURCE:TARGET`` or ``SOURCE:TARGET:ro``."""
    environment: Mapping[str, str | int] | None
    """Variables of its programs, beside those of the image."""
    command: str | None
    """A program that runs in the image from the start. The image's own is not run."""
    processors: Annotated[float, _PROCESSORS] | None
    """The processor time that its programs may use at most, in processors: 0.5 is half of one. By a control group,
    where these may be made (as root)."""
    memory: Annotated[Size, _MEMORY] | None
    """The memory that its programs may have at most; the kernel ends programs that need more. As `processors`."""


HOST_DEFAULTS: HostOptions = {"model": False, "processing": "0 s", "interrupt_delay": "0 s"}
"""The settings of a host that is given none; those that are not here are empty."""


def processing_spec(time: object, jitter: object) -> dict[str, Any] | None:
    """Return how long a model host takes for a frame, in the form of the lab protocol; ``None`` when it is no time."""
    spec = {"delay_ps": way_ps(time, "processing"), "jitter": jitter_spec(jitter)}
    return spec if any(spec.values()) else None


def limits_spec(given: HostOptions) -> dict[str, Any] | None:
    """Return the limits of the programs of a host, in the form of the lab protocol; ``None``: there are none."""
    processors, memory = given.get("processors"), given.get("memory")
    if processors is None and memory is None:
        return None
    if given.get("model"):
        raise BadValue("a model runs no programs to be limited", "leave model away, or processors and memory")
    return {
        "processors": _PROCESSORS.read(processors, "processors") if processors is not None else None,
        "memory_bytes": _MEMORY.read(memory, "memory") if memory is not None else None,
        "groups": [],
    }


def coalescing_spec(delay: object, frames: object) -> dict[str, Any] | None:
    """Return how the network cards of a host coalesce interrupts, in the form of the lab protocol; ``None`` when they
    do not. Both values may be anything, because network files and callers give them unchecked."""
    delay_ps = way_ps(delay, "interrupt delay")
    if frames is not None and (isinstance(frames, bool) or not isinstance(frames, int) or frames < 1):
        raise BadValue(f"the number of frames of an interrupt is {frames!r}", "give a whole number from 1")
    if delay_ps == 0:
        if frames not in (None, 1):
            raise BadValue(
                f"an interrupt cannot wait for {frames} frames without a delay",
                'give interrupt_delay, such as "50 us": the longest that a frame waits for others',
            )
        return None
    return {"delay_ps": delay_ps, "frames": frames}
