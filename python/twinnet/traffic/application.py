"""Applications of one's own: Python classes that send and answer in the hosts, by UDP or TCP, on both clocks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, ClassVar, Literal, cast

from twinnet.errors import BadValue
from twinnet.settings import Setting
from twinnet.traffic.app import App
from twinnet.traffic.connection import Act, Connection
from twinnet.traffic.own_code import OWN_PATTERN, OwnCode, brought, handed_once, name_of_class
from twinnet.traffic.parts import AppSettings, FlowSettings, SourceSettings
from twinnet.traffic.traffic_settings import Dscp, FlowNumber, Port, RunTime, TrafficSettings
from twinnet.traffic.udp import CountedPackets

__all__ = [
    "Application",
    "Datagram",
    "OfOwnClass",
    "Own",
    "OwnSink",
    "OwnSource",
    "SendsAsOwnClass",
    "hand_to_the_core",
]

HEADER_BYTES = 16
"""What stands before the data of each datagram: sequence number, flow, time of sending."""
_LONGEST = 65_507
_Of = Literal["connected", "read", "drained", "ended", "lost"]
"""What happens to connections."""
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
    """An application of your own, in model hosts on the virtual clock and in all hosts on the wall clock; write a
    subclass of it.

    One object stands for each source of a flow, and one for the host that they send to. It is told what happens, and
    sends: datagrams where it was started as `own`, by connections where as `own_tcp`. All that arrives at the latter is
    counted as any UDP is (delay, loss, jitter, reordering), or as any TCP. A method may not ask the lab anything: the
    lab waits for it. On the wall clock it must be quick: all apps of real hosts wait for it.

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
    _over_tcp: bool = False
    _to_send: tuple[tuple[bytes, int], ...] = ()
    _acts: tuple[Act, ...] = ()
    _begun: int = 0
    _wake_s: float | None = None
    _finished: bool = False
    time_passes: bool = False
    """True on the wall clock, where time passes by itself: a moment may be past before it is asked for."""

    def __init__(self, **settings: Any) -> None:
        if settings:
            raise BadValue(f"{type(self).__name__} takes no settings {', '.join(settings)}", "write its __init__")

    def started(self) -> None:
        """The application begins."""

    def woken(self) -> None:
        """The moment of :meth:`wake_at` has come."""

    def received(self, datagram: Datagram) -> None:
        """A datagram arrived from the other end."""

    def connected(self, connection: Connection) -> None:
        """A connection stands: of a source one that it asked for, and at the other end one that a source made."""

    def read(self, connection: Connection, data: bytes) -> None:
        """Bytes came by a connection: as many as there are, however they were written."""

    def drained(self, connection: Connection) -> None:
        """TCP has taken all that was written: there is room for more."""

    def ended(self, connection: Connection) -> None:
        """The other end has finished; by default this one does, too."""
        connection.finish()

    def lost(self, connection: Connection, why: str) -> None:
        """The connection is no more, or was never made."""

    def stopped(self) -> None:
        """It is over: datagrams that are sent now still go out, and of connections what TCP has taken."""

    def send(self, data: bytes = b"", length: int | None = None) -> None:
        """Send a datagram now: from a source to the other end, and from there to who sent last.

        Parameters
        ----------
        data
            What it says.
        length
            The UDP payload in bytes, which is filled up to that; default: `data` and the 16 bytes before it.
        """
        if self._over_tcp:
            raise BadValue("datagrams of an application with connections", "start it as own, or write to a connection")
        whole = HEADER_BYTES + len(data) if length is None else length
        if not HEADER_BYTES + len(data) <= whole <= _LONGEST:
            raise BadValue(
                f"a datagram of {whole} bytes with {len(data)} bytes of data",
                f"{HEADER_BYTES} bytes stand before the data, and at most {_LONGEST} fit into one",
            )
        self._to_send = (*self._to_send, (data, whole))

    def connect(self) -> Connection:
        """Return a new TCP connection to the other end; :meth:`connected` or :meth:`lost` follows. What is written
        before is sent then. Only a source connects, as often as it likes."""
        if not (self._over_tcp and self.sends):
            what = "the end that is connected to" if self._over_tcp else "an application with datagrams"
            raise BadValue(f"a connection of {what}", "start it as own_tcp, and connect where self.sends is true")
        self._begun += 1
        self._act(("connect", self._begun, b"", 0))
        return self._connection(self._begun, 0)

    def wake_at(self, at_s: float) -> None:
        """Call :meth:`woken` at the lab's time `at_s`, which is later than now; it replaces the moment before. On the
        wall clock it is called at once where the moment is past."""
        if not at_s > self.now_s and not (self.time_passes and at_s <= self.now_s):
            raise BadValue(f"wake_at({at_s}) is not later than now, {self.now_s} s", "give a later moment")
        self._wake_s = at_s

    def wake_in(self, after_s: float) -> None:
        """As :meth:`wake_at`, after so many seconds."""
        self.wake_at(self.now_s + after_s)

    def finish(self) -> None:
        """End this source; the lab goes on."""
        self._finished = True

    def _act(self, act: Act) -> None:
        self._acts = (*self._acts, act)

    def _connection(self, number: int, flow: int) -> Connection:
        """The connection of this number, made where it is new."""
        known: dict[int, Connection] = self.__dict__.setdefault("_connections", {})
        if number not in known:
            known[number] = Connection(number, flow, self._act)
        return known[number]

    def _told_of(self, what: _Of, number: int, given: Any = None) -> None:
        """Something happened to a connection."""
        connection = self._connection(number, 0)
        if what == "connected":
            connection.flow = given
            self.connected(connection)
        elif what == "read":
            self.read(connection, given)
        elif what == "lost":
            del self.__dict__["_connections"][number]
            self.lost(connection, given)
        else:
            (self.drained if what == "drained" else self.ended)(connection)

    def _told(
        self, what: Literal["started", "woken", "stopped", "received"] | _Of, now_s: float, *given: Any
    ) -> tuple[list[tuple[bytes, int]], list[Act], float | None, bool]:
        """What the core calls; returns what is to be sent, what is wanted of connections, when to wake, and whether it
        is over."""
        self.now_s = now_s
        if what == "started":
            self.sends, self._over_tcp, seed = given
            self.random = Random(seed)
            self.started()
        elif what == "woken":
            self._wake_s = None
            self.woken()
        elif what == "received":
            self.received(Datagram(*given))
        elif what == "stopped":
            self.stopped()
            self._wake_s = None
        else:
            self._told_of(what, *given)
        if self._wake_s is not None:
            # What is due at this very moment, or was before, comes at the next.
            self._wake_s = max(self._wake_s, now_s + _NEXT_S)
        to_send, self._to_send = self._to_send, ()
        acts, self._acts = self._acts, ()
        return list(to_send), list(acts), self._wake_s, self._finished


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
        return {"type": "string", "pattern": OWN_PATTERN}


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


@dataclass(frozen=True, kw_only=True)
class OfOwnClass(TrafficSettings):
    """What each end of an application of your own has.

    Parameters
    ----------
    of
        A class derived from `tn.Application`, of which each end has an object; in studies `module:Class`.
    port
        The destination port; default: 5020.
    settings
        What the class takes: names with numbers, texts and truth values.
    """

    of: OwnClass
    port: Port = 5020
    settings: Given = "{}"


@dataclass(frozen=True, kw_only=True)
class SendsAsOwnClass(OfOwnClass):
    """What the end that sends has besides.

    Parameters
    ----------
    flow
        The flow's number in reports; default: chosen by the lab.
    dscp
        Differentiated services code point of what the source sends, 0 to 63.
    duration
        When the source ends; without it when it says so.
    """

    flow: FlowNumber | None = None
    dscp: Dscp | None = None
    duration: RunTime | None = None


@dataclass(frozen=True)
class OwnSource(SendsAsOwnClass, SourceSettings):
    """The source of an application of your own in `host`, to the host or address `to`; the settings are those of
    `SendsAsOwnClass`."""

    app_kind: ClassVar[str] = "own_source"


@dataclass(frozen=True)
class OwnSink(OfOwnClass, CountedPackets, AppSettings):
    """The other end of an application of your own in `host`, which counts what arrives; the settings are those of
    `OfOwnClass` and of `CountedPackets`."""

    app_kind: ClassVar[str] = "own_sink"


@dataclass(frozen=True)
class Own(SendsAsOwnClass, CountedPackets, FlowSettings):
    """An application of your own between host `source` and host `sink`.

    The settings are those of `SendsAsOwnClass` and of `CountedPackets`.
    """

    source: str
    sink: str

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


@handed_once
def hand_to_the_core(name: str, own: OwnCode) -> None:
    """Let the hosts of this process run the application `name` that was brought along."""
    from twinnet import _core

    def start(settings: str) -> Application:
        return own.load_class(Application, "application", "tn.Application")(**json.loads(settings))

    _core.register_application(name, own.name, start)
