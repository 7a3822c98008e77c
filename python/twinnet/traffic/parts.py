"""Bases of the kinds of traffic: one app in one host, or a flow between two. A kind adds settings and their checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from twinnet.traffic.app import App, Flow
from twinnet.traffic.traffic_settings import TrafficSettings

__all__ = ["AppSettings", "FlowSettings", "SourceSettings"]


@dataclass(frozen=True)
class AppSettings(TrafficSettings, App):
    """Base class of a kind of traffic that is one app in `host`: a sink or server, or a source (`SourceSettings`)."""

    app_kind: ClassVar[str]
    """The kind in the lab protocol."""

    host: str
    kind: str = field(init=False, repr=False)
    fields: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep("kind", self.app_kind)
        self._keep("fields", self.app_fields())

    def app_fields(self) -> dict[str, Any]:
        """Return the fields in the lab protocol; by default those of all settings that are given."""
        return self.given()


@dataclass(frozen=True)
class SourceSettings(AppSettings):
    """Base class of a source or client in `host`, to the host or address `to`."""

    to: str

    def source_fields(self) -> dict[str, Any]:
        """Return the fields in the lab protocol besides ``to``."""
        return {"flow": None} | self.given()

    def app_fields(self) -> dict[str, Any]:
        """Return the fields in the lab protocol."""
        return {"to": self.to} | self.source_fields()


@dataclass(frozen=True)
class FlowSettings(TrafficSettings, Flow):
    """Base class of a kind of traffic between two hosts: what receives there, and what sends or asks."""

    receiver: App = field(init=False, repr=False)
    sender: App = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep("receiver", self.made_receiver())
        self._keep("sender", self.made_sender())

    def made_receiver(self) -> App:
        """Return the sink or server."""
        raise NotImplementedError

    def made_sender(self) -> App:
        """Return the source or client."""
        raise NotImplementedError
