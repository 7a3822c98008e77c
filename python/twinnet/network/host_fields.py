"""What the settings of a host or router come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twinnet.network.checks import checked_routes, checked_sysctls, flag
from twinnet.network.host_image import image_spec
from twinnet.network.host_settings import HOST_DEFAULTS, HostOptions, coalescing_spec, limits_spec, processing_spec

__all__ = ["host_fields"]


def host_fields(settings: HostOptions, default: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """Return the fields of a host or router that `settings` say, with the `default` route before the others."""
    given: HostOptions = {**HOST_DEFAULTS, **settings}
    return {
        "routes": checked_routes([*default, *given.get("routes", ())]),
        "sysctls": checked_sysctls(given.get("sysctls")),
        "model": flag(given.get("model"), "model"),
        "processing": processing_spec(given.get("processing"), given.get("processing_jitter")),
        "coalescing": coalescing_spec(given.get("interrupt_delay"), given.get("interrupt_frames")),
        "image": image_spec(given),
        "limits": limits_spec(given),
    }
