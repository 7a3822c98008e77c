"""Applications of one's own: Python classes that send and answer datagrams in model hosts, on the virtual clock."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, ClassVar, Literal, cast

from twinnet.errors import BadValue
from twinnet.settings import Setting
from twinnet.traffic.app import App
from twinnet.traffic.own_code import brought, name_of_class
from twinnet.traffic.parts import AppSettings, FlowSettings, SourceSettings
from twinnet.traffic.traffic_settings import Dscp, FlowNumber, Port, RunTime
from twinnet.traffic.udp import CountedPackets

__all__ = ["Application", "Datagram", "Own", "OwnSink", "OwnSource", "hand_to_the_core"]

HEADER_BYTES = 16
"""What stands before the data of each datagram: sequence number, flow, time of sending."""
_LONGEST = 65_507
_NEXT_S = 1e-9


@dataclass(frozen=True)
class Datagram:
    """A datagram that arrived.

    Attributes
    ----------
    flow
        The number of its flow.
    data
        What the other end wrote.
    length
        The UDP payload in bytes: `data`, 16 bytes before it, and what fills it up.
    sent_s
        When it was sent, in seconds of the lab's clock.
    """

    flow: int
    data: bytes
    length: int
    sent_s: float


class Application:
    """An application of your own, in model hosts on the virtual clock; write a subclass of it.

    One object stands for each source of a flow, and one for the host that they send to. It is told what happens, and
    sends. All that arrives at the latter is counted as any UDP is: delay, loss, jitter, reordering. A method may not
    ask the lab anything: the lab waits for it.

    Parameters
    ----------
    settings
        Those of the traffic's `settings`.

    Attributes
    ----------
    sends
        True for a source.
    now_s
        The lab's time in seconds.
    random
        The object's own random numbers: the same seed of a run draws the same.
    """

    sends: bool = False
    now_s: float = 0.0
    random: Random = Random(0)
    _to_send: tuple[tuple[bytes, int], ...] = ()
    _wake_s: float | None = None
    _finished: bool = False

    def __init__(self, **settings: Any) -> None:
        if settings:
            raise BadValue(f"{type(self).__name__} takes no settings {', '.join(settings)}", "write its __init__")

    def started(self) -> None:
        """The application begins."""

    def woken(self) -> None:
        """The moment of :meth:`wake_at` has come."""

    def received(self, datagram: Datagram) -> None:
        """A datagram arrived from the other end."""

    def stopped(self) -> None:
        """It is over: what is sent now still goes out."""

    def send(self, data: bytes = b"", length: int | None = None) -> None:
        """Send a datagram now: from a source to the other end, and from there to who sent last.

        Parameters
        ----------
        data
            What it says.
        length
            The UDP payload in bytes, which is filled up to that; default: `data` and the 16 bytes before it.
        """
        whole = HEADER_BYTES + len(data) if length is None else length
        if not HEADER_BYTES + len(data) <= whole <= _LONGEST:
            raise BadValue(
                f"a datagram of {whole} bytes with {len(data)} bytes of data",
                f"{HEADER_BYTES} bytes stand before the data, and at most {_LONGEST} fit into one",
            )
        self._to_send = (*self._to_send, (data, whole))

    def wake_at(self, at_s: float) -> None:
        """Call :meth:`woken` at the lab's time `at_s`, which is later than now; it replaces the moment before."""
        if not at_s > self.now_s:
            raise BadValue(f"wake_at({at_s}) is not later than now, {self.now_s} s", "give a later moment")
        self._wake_s = at_s

    def wake_in(self, after_s: float) -> None:
        """As :meth:`wake_at`, after so many seconds."""
        self.wake_at(self.now_s + after_s)

    def finish(self) -> None:
        """End this source; the lab goes on."""
        self._finished = True

    def _told(
        self, what: Literal["started", "woken", "stopped", "received"], now_s: float, *told: Any
    ) -> tuple[list[tuple[bytes, int]], float | None, bool]:
        """What the core calls; returns what is to be sent, when to wake, and whether it is over."""
        self.now_s = now_s
        if what == "started":
            self.sends, seed = told
            self.random = Random(seed)
            self.started()
        elif what == "woken":
            self._wake_s = None
            self.woken()
        elif what == "received":
            self.received(Datagram(*told))
        else:
            self.stopped()
            self._wake_s = None
        if self._wake_s is not None:
            # What is due at this very moment comes at the next.
            self._wake_s = max(self._wake_s, now_s + _NEXT_S)
        to_send, self._to_send = self._to_send, ()
        return list(to_send), self._wake_s, self._finished


@dataclass(frozen=True)
class ApplicationName(Setting):
    """A class of one's own, by the name that it is known by."""

    def read(self, value: object, what: str) -> str:
        """Return the name; a class is made known for it."""
        if isinstance(value, type) and issubclass(value, Application):
            return name_of_class(value)
        if isinstance(value, str) and brought(value) is not None:
            return value
        raise self.error(
            f"{value!r} is no application; in Python give a class derived from tn.Application, in studies module:Class"
        )

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: the name of a class."""
        return {"type": "string", "pattern": r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"}


@dataclass(frozen=True)
class OwnSettings(Setting):
    """The settings of an application of one's own: what its class takes."""

    def read(self, value: object, what: str) -> str:
        """Return them as JSON."""
        if isinstance(value, str):
            value = json.loads(value)
        if not isinstance(value, Mapping):
            raise self.error(f"{what} is {value!r}; names with their values are allowed")
        given = dict(cast("Mapping[object, object]", value))
        for name, one in given.items():
            if not (isinstance(name, str) and name.isidentifier() and isinstance(one, int | float | str | bool)):
                raise self.error(f"the setting {name!r} is {one!r}; a number, a text or a truth value is allowed")
        return json.dumps(given, sort_keys=True)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: an object of simple values."""
        return {"type": "object", "additionalProperties": {"type": ["number", "string", "boolean"]}}


OwnClass = Annotated[str | type[Application], ApplicationName(called="code")]
"""A class of one's own."""
Given = Annotated[Mapping[str, float | str | bool] | str, OwnSettings(called="settings")]
"""The settings that a class of one's own takes."""


@dataclass(frozen=True)
class OwnSource(SourceSettings):
    """The source of an application of your own in `host`, to the host or address `to`.

    Parameters
    ----------
    of
        The class.
    port
        The port of the other end.
    flow
        The flow's number in reports; default: chosen by the lab.
    settings
        What the class takes.
    dscp
        Differentiated services code point, 0 to 63.
    duration
        When it ends; without it when it says so.
    """

    app_kind: ClassVar[str] = "own_source"

    of: OwnClass = field(kw_only=True)
    port: Port = field(default=5020, kw_only=True)
    flow: FlowNumber | None = field(default=None, kw_only=True)
    settings: Given = field(default="{}", kw_only=True)
    dscp: Dscp | None = field(default=None, kw_only=True)
    duration: RunTime | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class OwnSink(CountedPackets, AppSettings):
    """The other end of an application of your own in `host`, which counts what arrives.

    Parameters
    ----------
    of
        The class.
    port
        Where it receives.
    settings
        What the class takes.
    """

    app_kind: ClassVar[str] = "own_sink"

    of: OwnClass = field(kw_only=True)
    port: Port = field(default=5020, kw_only=True)
    settings: Given = field(default="{}", kw_only=True)


@dataclass(frozen=True)
class Own(CountedPackets, FlowSettings):
    """An application of your own between host `source` and host `sink`, on the virtual clock.

    Parameters
    ----------
    of
        A class derived from `tn.Application`, of which each end has an object; in studies `module:Class`.
    port
        The destination port; default: 5020.
    flow
        The flow's number in reports; default: chosen by the lab.
    settings
        What the class takes: names with numbers, texts and truth values.
    dscp
        Differentiated services code point of what the source sends, 0 to 63.
    duration
        When the source ends; without it when it says so.
    """

    source: str
    sink: str
    of: OwnClass = field(kw_only=True)
    port: Port = field(default=5020, kw_only=True)
    flow: FlowNumber | None = field(default=None, kw_only=True)
    settings: Given = field(default="{}", kw_only=True)
    dscp: Dscp | None = field(default=None, kw_only=True)
    duration: RunTime | None = field(default=None, kw_only=True)

    in_words: ClassVar[str] = "datagrams of an own application"
    needed_in_studies: ClassVar[tuple[str, ...]] = ("of", "port", "duration")
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset({"flow", "interval", "path_mtu"})

    def made_receiver(self) -> App:
        """Return the end that counts."""
        return OwnSink(self.sink, of=self.of, port=self.port, settings=self.settings, **self.counted())

    def made_sender(self) -> App:
        """Return the source."""
        given = {"port": self.port, "flow": self.flow, "dscp": self.dscp, "duration": self.duration}
        return OwnSource(self.source, self.sink, of=self.of, settings=self.settings, **cast("dict[str, Any]", given))


_handed: set[str] = set()


def hand_to_the_core(name: str) -> None:
    """Let the model hosts of this process run the application `name` that was brought along."""
    from twinnet import _core

    application = brought(name)
    if name in _handed or application is None:
        return

    def start(settings: str) -> Application:
        made = application.load()
        if not (isinstance(made, type) and issubclass(made, Application)):
            raise BadValue(f"{application.name} is no application", "write: class Mine(tn.Application)")
        return made(**json.loads(settings))

    _core.register_application(name, start)
    _handed.add(name)
