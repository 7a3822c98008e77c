"""The answers to the requests of the lab protocol (docs/reference/lab-protocol.md) as classes.

Written by ``python tools/lab_client.py`` from crates/lab/src/protocol; change it there.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from twinnet.lab_process.pending_reply import JsonObject

__all__ = [
    "AppReply",
    "AppRow",
    "BandRow",
    "BucketRow",
    "CaptureReply",
    "Captured",
    "ConnectionReply",
    "ControllerRow",
    "DeletedReply",
    "DirectionRow",
    "EndedReply",
    "FinishedReply",
    "FollowedFrame",
    "FollowedOutput",
    "FollowedStep",
    "GroupRow",
    "GroupsReply",
    "InterfaceRow",
    "JobEndedReply",
    "JobReply",
    "JobRow",
    "LearntRow",
    "LinkCounters",
    "LinkRow",
    "Message",
    "Messages",
    "MeterRow",
    "NextReply",
    "NowReply",
    "Passed",
    "PortCounters",
    "PortRow",
    "SamplerReply",
    "SamplesTold",
    "ShownReply",
    "StartedReply",
    "TunnelRow",
]


class AppReply(TypedDict):
    """The answer to `app.start`."""

    app: int
    """The app's number."""


class AppRow(TypedDict):
    """An app and what it counted."""

    app: int
    """Its number."""
    finished: bool
    """`true` if it has nothing more to do."""
    host: str
    """The host."""
    kind: str
    """Its kind."""
    report: JsonObject | None
    """Its report; `None` when it is gone with its host."""


class BandRow(TypedDict):
    """A band of a meter and what it has counted."""

    bytes: int
    """Their bytes."""
    frames: int
    """Frames above the rate."""
    raises: NotRequired[int | None]
    """How many steps the drop precedence of frames above the rate is raised by; absent: they are dropped."""
    rate: int
    """Its rate in the meter's unit."""


class BucketRow(TypedDict):
    """A way through a group and what it has counted."""

    actions: str
    """Its actions in the syntax of flows."""
    bytes: int
    """Their bytes."""
    frames: int
    """Frames that took it."""
    live: bool
    """True if a frame may take it now."""
    watch_group: NotRequired[int | None]
    """The group that must have a live bucket for it to be used; absent: none."""
    watch_port: NotRequired[int | None]
    """The port that must be up for it to be used; absent: none."""
    weight: int
    """Its share among those of a group of the kind `select`."""


class CaptureReply(TypedDict):
    """The answer to `capture.start`."""

    capture: int
    """The capture's number."""


class Captured(TypedDict):
    """The outcome of a capture."""

    dropped: int
    """Frames that are in none."""
    failure: str | None
    """Why it failed."""
    files: list[str]
    """The files that are there, the oldest first."""
    frames: int
    """Frames that are in files, also in those that a ring has removed since."""
    write_failed: bool
    """`true` if writing failed."""


class ConnectionReply(TypedDict):
    """The answer to `controller.open`."""

    connection: int
    """The connection's number."""


class ControllerRow(TypedDict):
    """A connection of a switch."""

    connection: NotRequired[int]
    """Its number."""
    errors: NotRequired[int]
    """Errors that it was answered."""
    messages: NotRequired[int]
    """Messages that came."""
    packet_ins: NotRequired[int]
    """Frames that it was sent."""
    peer: Literal["controller", "tool"]
    """The kind of the peer."""
    role: NotRequired[str]
    """`"equal"`, `"master"` or `"slave"`."""
    said: NotRequired[Messages | None]
    """What was said on it, where it was asked for."""
    switch: str
    """The switch."""
    target: str
    """The name of the peer."""
    version: NotRequired[str | None]
    """`"1.0"`, `"1.3"`, or `null` before both sides agreed and the controller said more than its hello."""


class DeletedReply(TypedDict):
    """The answer to `flows.delete`."""

    deleted: int
    """Entries that are gone."""


class DirectionRow(TypedDict):
    """A direction of a link."""

    config: JsonObject | None
    """Its settings."""
    counters: PortCounters
    """The counters of the port."""
    port: str
    """The port that sends into it."""
    up: bool | None
    """`true` if it carries anything."""


class EndedReply(TypedDict):
    """The answer to `controller.attach`."""

    ended: str
    """Why the connection ended."""


class FinishedReply(TypedDict):
    """The answer to `app.wait` and `controllers.wait` on the wall clock."""

    finished: bool
    """`true` if all apps have finished, or all controllers have joined."""


class FollowedFrame(TypedDict):
    """What would become of a frame in a switch."""

    outputs: list[FollowedOutput]
    """Where it would leave."""
    steps: list[FollowedStep]
    """What would be done with it, in order."""


class FollowedOutput(TypedDict):
    """A frame that would leave a switch."""

    frame: str
    """The frame as it would leave, in hexadecimal."""
    port: int
    """The number of the port."""
    queue: int
    """The queue of that port."""


class FollowedStep(TypedDict):
    """One thing that is done with a frame."""

    kind: Literal["table", "group", "meter", "rewrite", "learn", "normal", "controller", "drop"]
    """What it is."""
    number: NotRequired[int | None]
    """The number of the table, group, meter or controller."""
    text: NotRequired[str | None]
    """The flow entry, the new values of fields, the bucket of a group, or why the frame is dropped. A table without: no
    flow matches.
    """


class GroupRow(TypedDict):
    """A group and what it has counted."""

    age_ps: int
    """The time since it was added."""
    buckets: list[BucketRow]
    """Its ways."""
    bytes: int
    """Their bytes."""
    frames: int
    """Frames that came to it."""
    group: int
    """Its number."""
    kind: Literal["all", "select", "indirect", "fast_failover"]
    """Which of its buckets a frame takes."""


class GroupsReply(TypedDict):
    """The answer to `groups`."""

    groups: list[GroupRow]
    """The groups, by number."""
    meters: list[MeterRow]
    """The meters, by number."""


class InterfaceRow(TypedDict):
    """An interface of the machine."""

    interface: str
    """Its name."""
    node: str | None
    """The node that it is."""
    state: Literal["up", "down", "gone"]
    """Its state."""


class JobEndedReply(TypedDict):
    """The answer to `wait`."""

    elapsed_ps: int
    """The time that it ran, in picoseconds."""
    limit: bool
    """`true` if its time was over."""
    signal: int | None
    """The signal that ended it otherwise."""
    status: int | None
    """Its exit status, when it exited."""


class JobReply(TypedDict):
    """The answer to `spawn`."""

    job: int
    """The program's number."""
    pid: int
    """Its process."""


class JobRow(TypedDict):
    """A program."""

    argv: list[str]
    """The program and its arguments."""
    host: str
    """The host."""
    job: int
    """Its number."""
    pid: int | None
    """Its process, once it runs."""
    signal: int | None
    """The signal that ended it otherwise."""
    state: str
    """`starting`, `running`, `ended` or `lost`."""
    status: int | None
    """Its exit status, when it exited."""


class LearntRow(TypedDict):
    """An address that a switch has learnt."""

    age_ps: int
    """The time since it was seen."""
    mac: str
    """The address."""
    port: int
    """The number of the port at which it was seen last."""
    vlan: int
    """The VLAN; 0: none."""


class LinkCounters(TypedDict):
    """What changes often of links."""

    columns: list[str]
    """The name of each place of a row."""
    rows: list[list[int]]
    """Two rows for each link: from `a` to `b`, and back."""


class LinkRow(TypedDict):
    """A link."""

    a: str
    """The node at one end."""
    ab: DirectionRow
    """From `a` to `b`."""
    b: str
    """The node at the other end."""
    ba: DirectionRow
    """From `b` to `a`."""
    link: int
    """Its number."""


class Message(TypedDict):
    """A message."""

    at_ps: int
    """When it came or was sent."""
    bytes: int
    """Its length with the header."""
    sent: bool
    """`true`: the switch sent it."""
    type: str
    """Its type."""
    xid: int
    """Its transaction."""


class Messages(TypedDict):
    """What was said on a connection."""

    newest: list[Message]
    """The newest ones, the oldest of them first; 32 at most."""
    received: dict[str, int]
    """How many messages came, by type: the name in the specification without `OFPT_`."""
    sent: dict[str, int]
    """How many were sent, by type."""


class MeterRow(TypedDict):
    """A meter and what it has counted."""

    age_ps: int
    """The time since it was added."""
    bands: list[BandRow]
    """Its bands."""
    bytes: int
    """Their bytes."""
    frames: int
    """Frames that were measured."""
    meter: int
    """Its number."""
    unit: Literal["kbps", "pktps"]
    """The unit of the rates of its bands."""


class NextReply(TypedDict):
    """The answer to `events.next`."""

    next_ps: int | None
    """The time of the next event."""


class NowReply(TypedDict):
    """The answer to `now`."""

    now_ps: int
    """The lab's time."""


class Passed(TypedDict):
    """The virtual time that was reached."""

    controllers: bool
    """`true` if controllers are to be told something at this moment."""
    finished: NotRequired[bool | None]
    """`true` if what was waited for has come; of `advance` nothing is said."""
    now_ps: int
    """The lab's time."""
    paused: bool
    """`true` if the caller's patience ended first."""
    programs: NotRequired[bool]
    """`true` if programs have done something at this moment that the lab's owner is to be told first."""


class PortCounters(TypedDict):
    """The counters of a port."""

    backlog_bytes: int
    """Their bytes at the link layer."""
    backlog_frames: int
    """Frames that wait at it."""
    corrupted: int
    """Frames with a flipped bit."""
    dropped_down: int
    """Frames that met a link that was down, or were on it when it went down."""
    dropped_early: int
    """Frames that the queue discipline dropped early."""
    dropped_loop: int
    """Frames that ended here because they had passed too many switches."""
    dropped_overlimit: int
    """Frames that the queue discipline refused for its limit."""
    dropped_oversize: int
    """Frames longer than the link's MTU allows."""
    dropped_unclassified: int
    """Frames that no class of the queue discipline takes."""
    dropped_unfragmentable: int
    """Frames that a tunnel would have had to cut into fragments, and may not."""
    duplicated: int
    """Frames that arrived twice."""
    frames: int
    """Frames whose last bit has left."""
    link_bytes: int
    """Their bytes."""
    lost: int
    """Frames lost by the loss model."""
    marked: int
    """Frames that the queue discipline marked as having met congestion (ECN) instead of dropping them."""
    received_bytes: int
    """Their bytes at the link layer."""
    received_frames: int
    """Frames that arrived at it."""
    wire_bytes: int
    """Their bytes with the link's framing."""


class PortRow(TypedDict):
    """A port."""

    classes: list[JsonObject]
    """The counters of the classes of its queue discipline."""
    counters: PortCounters
    """Its counters."""
    port: str
    """Its interface name."""


class SamplerReply(TypedDict):
    """The answer to `samples.start`."""

    sampler: int
    """The sampler's number."""


class SamplesTold(TypedDict):
    """The columns of a sampler."""

    full: bool
    """`true` if it ended because it keeps no more."""
    interval_ps: int
    """The length of an interval."""
    ports: dict[str, dict[str, list[int]]]
    """For each port its columns by name."""
    start_ps: int
    """The time when the first that is told began."""


class ShownReply(TypedDict):
    """The answer to `ports.shown`."""

    frames: int
    """Frames that were written to interfaces."""
    left_out: int
    """Frames that were not."""


class StartedReply(TypedDict):
    """The answer to `start`."""

    fabric_threads: int
    """Threads that move the network."""
    hosts: int
    """Real hosts."""
    interface: str
    """The way hosts are joined to the fabric: `tap` or `veth`."""
    pid: int
    """The process of the lab."""
    protocol: int
    """The version of the protocol."""
    realtime: bool
    """`true` if the loop runs under real-time scheduling."""
    setup_ms: float
    """Milliseconds that it took to build the network."""


class TunnelRow(TypedDict):
    """A tunnel to another speaker."""

    counters: dict[str, int]
    """Its counters, as its end counts them."""
    inner_mtu: int
    """The longest packet that goes through it."""
    node: str
    """The node that it is."""
    path_mtu: int
    """The MTU of the way to the remote."""
    refused: dict[str, int]
    """The numbers of what its socket has refused, by reason."""
    remote: str
    """The other speaker."""
    tunnel: JsonObject
    """The encapsulation."""
