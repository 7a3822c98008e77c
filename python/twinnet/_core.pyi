"""The compiled part of the package, written in Rust. Private: its names may change without notice."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, final

version: str
"""Version of the extension; equal to the package's."""

class CoreError(Exception):
    """A refusal. `args` are three texts: its stable name, its message, and its remedy (which may be empty)."""

@final
class LabHandle:
    """A lab process as its owner holds it. Both descriptors belong to the caller, who closes them."""

    @property
    def pid(self) -> int:
        """Process identifier. The process is a child of the caller, who waits for it."""

    @property
    def pidfd(self) -> int:
        """Descriptor of the process: readable when it has ended; `os.waitid(os.P_PIDFD, ...)` takes leave of it."""

    @property
    def socket(self) -> int:
        """The owner's socket (`SOCK_SEQPACKET`), on which the lab is spoken to. The lab ends when it is closed."""

    @property
    def name(self) -> str:
        """The lab's name. Other terminals of the same user reach it at the abstract address `twinnet/<uid>/<name>`."""

def spawn_lab(name: str | None, python: str | PathLike[str], module: str | PathLike[str]) -> LabHandle:
    """Start a lab process in namespaces of its own.

    Parameters
    ----------
    name
        Name of the lab, unique among the caller's running labs; `None` for a generated one.
    python
        The interpreter that the lab process runs in (`sys.executable`).
    module
        File of this extension module (`twinnet._core.__file__`).

    Raises
    ------
    CoreError
        `InvalidLabName`, `LabNameTaken`, `NamespacesRefused` or `LabNotStarted`.
    """

def guest_main(given: str) -> None:
    """Become the first process of a guest; never returns."""

def lab_main(control: int, listener: int, name: str) -> None:
    """Become a lab and never return. Called in the process that `spawn_lab` made, by its bootstrap only."""

def open_interface(name: str) -> tuple[int, int, int, int]:
    """Open an interface of the machine for a lab.

    Parameters
    ----------
    name
        Its name in the network namespace of the calling thread.

    Returns
    -------
    tuple
        A packet socket, a socket that hears of the interface (both belong to the caller), its index and its MTU.

    Raises
    ------
    CoreError
        `NoSuchInterface`, `NotEthernet` or `PacketSocketRefused`.
    """

def kernel_has_open_vswitch() -> bool:
    """Return whether the kernel has Open vSwitch's datapath; asking loads its module where that is permitted."""

def enter_image(image: str, scratch: str) -> None:
    """Make an image (JSON, as a host of the lab protocol has it) the root of this process's mount namespace, whose
    mounts are private, and go to its folder; `scratch` is a folder that is covered. Raises `CoreError`
    `HostNotReady`."""

def keep_kernel_files(proc: bool) -> None:
    """Make what is the machine's in a ``/proc`` (else a ``/sys``) that was just mounted, in a mount namespace of the
    caller's own, read-only, where the caller could write it: all but what its network namespace has. Raises
    `OSError`."""

def show_control_groups(there: int) -> None:
    """Mount the tree of control groups at the descriptor `there` at ``/sys/fs/cgroup``, in a mount namespace of the
    caller's own whose ``/sys`` is fresh, for reading alone. Raises `OSError`; Linux before 5.12 has no such call."""

def start_apart(
    files: Sequence[str],
    arguments: Sequence[str],
    environment: Sequence[str],
    descriptors: tuple[int, int, int],
    *,
    own_session: bool,
) -> int:
    """Start a program in a network and a mount namespace of its own, whose ``/sys`` is that of the network, and return
    its number: the first of `files` that exists, with `environment` (``NAME=VALUE``) and no descriptors but the
    standard ones. This process is not copied for it. Raises `OSError`;
    `ValueError` for a text with a null character."""

def promote_lab(pid: int) -> bool:
    """Give the fabric of the lab process `pid` real-time scheduling, where the caller may; say whether it did."""

def error_names() -> list[str]:
    """The names of all refusals of labs."""

def lab_protocol() -> tuple[int, str, str]:
    """Version of the lab protocol, its requests as JSON (of each ``do``, ``is``, ``fields``, ``reply`` and the name of
    its ``answer``), and the JSON schemas of the answers: ``{"answers": {name: schema}, "types": {name: schema}}``."""

def list_labs() -> list[str]:
    """Names of the caller's running labs in this network namespace, sorted. Takes 1 s at most."""

def strangers_at_labs() -> list[tuple[str, int | None]]:
    """Listeners at addresses of the caller's labs that are somebody else's: the lab's name and the user's number
    (``None``: it lets nobody in, so that the kernel does not tell). Takes 1 s at most."""

def claim_lab(name: str | None) -> tuple[str, int]:
    """Take a name for a lab that lives in this process: `name`, or a free one. Returns it, and the socket that listens
    under it, which belongs to the caller.

    Raises
    ------
    CoreError
        `InvalidLabName`, `LabNameTaken`, or what the kernel says.
    """

def open_lab(name: str) -> int:
    """Connect to the caller's running lab `name`; nothing was said yet. The descriptor belongs to the caller.

    Raises
    ------
    CoreError
        `NotAvailable`: there is none, or only a stranger listens at its address.
    """

def doctor() -> str:
    """Examine what this machine can and cannot do for labs, by doing it.

    Returns
    -------
    str
        JSON: an array of `{"ability": text, "ok": bool, "found": text, "follows": text, "remedy": text}`.
    """

def analyze_capture(
    paths: Sequence[str | PathLike[str]],
    *,
    rtp_ports: Sequence[int],
    find_rtp: bool,
    clock_rates: Sequence[tuple[int, int]],
    interval_ns: int,
    every_packet: bool,
    most_conversations: int,
    most_packets: int,
) -> dict[str, Any]:
    """Read captures that follow each other in time as one, without the interpreter's lock.

    Returns
    -------
    dict
        `notes`, a list of texts; and tables by their name, each `{column: (kind, values)}` where `kind` is `"i"` or
        `"f"` with eight little-endian bytes for each value, or `"s"` with a list of texts.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It is no capture that can be looked into.
    """

def match_captures(paths: Sequence[str | PathLike[str]], *, payload_bytes: int, every_packet: bool) -> dict[str, Any]:
    """Match captures packet by packet; `segments`, `packets` and `notes` as of `analyze_capture`.

    Raises
    ------
    OSError
        A file cannot be opened.
    ValueError
        One is no capture; `args` are its index and a text.
    """

def check_queue(configuration: str) -> str:
    """Check a queue configuration (JSON, in the form of the lab protocol) and return it with every default written out.
    Raises `ValueError` with the path of what is wrong."""

def check_app(configuration: str) -> str:
    """As :func:`check_queue`, for an app whose `to` is an address."""

def vocabulary() -> str:
    """The contents that a description in the form of the lab protocol can have, as JSON: ``{group: {kind: {field:
    {...}}}}``.

    Groups are ``traffic``, ``estimator``, ``queue``, ``queue_class``, ``distribution``, ``jitter``, ``loss``, ``link``,
    ``tunnel``, ``switch`` and ``traffic_part``. A field has its ``type``, whether it is ``required``, and where they
    apply ``unit``, ``default`` (what stands for a field that is left out), ``nullable``, ``minimum``, ``maximum``,
    ``exclusive_minimum``, ``or_zero`` (0 besides the range), ``values`` (of a word), ``items`` (of an array or an
    object of entries, with ``least_items`` and ``most_items``), ``of`` (the group, and with a dot the kind, of what
    stands there) and ``description``."""

def check_flow(line: str) -> None:
    """Check a flow in `ovs-ofctl` syntax. Raises `ValueError` that tells column, word and remedy."""

def published_bandwidth_method(name: str) -> str | None:
    """The settings with which an estimator of available bandwidth was published, as JSON; ``None`` for ours."""

def replay_bandwidth(request: str) -> str:
    """Estimate available bandwidth from recorded trains; JSON in and out, or `ValueError`."""

@final
class OpenFlow13:
    """The messages of OpenFlow 1.3 between a switch and its controller, whole and as bytes."""

    VERSION: Literal[4]
    """In the header."""
    NAME: Literal["1.3"]

    def __init__(self) -> None: ...
    def request(self, kind: str, xid: int) -> bytes:
        """A message that is the same for every switch: ``hello`` (which offers 1.0, too), ``features``,
        ``whole_frames`` (a set-config), ``barrier``, ``port_description``, or a question for ``flows``, ``tables``,
        ``ports``, ``queues``, ``groups`` or ``meters``. Raises `ValueError` for another name."""

    def echo_reply(self, xid: int, data: bytes) -> bytes:
        """The answer to an echo request."""

    def flow(self, command: str, line: str, tell_when_removed: bool, buffer: int, xid: int) -> bytes:
        """A flow-mod: `command` is ``add``, ``modify`` or ``delete``, `line` a flow (conditions, to delete) in
        `ovs-ofctl` syntax. Raises `ValueError` that tells column, word and remedy."""

    def meter(self, command: str, meter: int, rate_kbps: int, burst_kbit: int, xid: int) -> bytes:
        """A meter-mod: `command` is ``add``, ``modify`` or ``delete``; the meter drops what exceeds its rate (in
        kbit/s) after its burst (in kbit). Raises `ValueError` for another command."""

    def packet_out(self, in_port: int, actions: str, data: bytes, buffer: int, xid: int) -> bytes:
        """A packet-out with actions in `ovs-ofctl` syntax. Raises `ValueError` that tells column, word and remedy."""

    def decode(self, message: bytes) -> tuple[str, int, dict[str, Any]]:
        """Read one whole message: its name, its transaction, and what it says. Raises `ValueError` when it is none of
        the version."""

@final
class OpenFlow10:
    """The messages of OpenFlow 1.0 of one connection, as :class:`OpenFlow13` has them.

    What the version cannot say raises `NotImplementedError` that names it. A deletion by cookie is one message for each
    flow with that cookie that was written before.
    """

    VERSION: Literal[1]
    """In the header."""
    NAME: Literal["1.0"]

    def __init__(self) -> None: ...
    def request(self, kind: str, xid: int) -> bytes:
        """A message that is the same for every switch: ``features`` (whose answer has the ports), ``whole_frames``,
        ``barrier``, or a question for ``flows``, ``tables``, ``ports`` or ``queues``."""

    def echo_reply(self, xid: int, data: bytes) -> bytes:
        """The answer to an echo request."""

    def flow(self, command: str, line: str, tell_when_removed: bool, buffer: int, xid: int) -> bytes:
        """Flow-mods, for a deletion none or several."""

    def meter(self, command: str, meter: int, rate_kbps: int, burst_kbit: int, xid: int) -> bytes:
        """Raise `NotImplementedError`."""

    def packet_out(self, in_port: int, actions: str, data: bytes, buffer: int, xid: int) -> bytes:
        """A packet-out with actions in `ovs-ofctl` syntax."""

    def decode(self, message: bytes) -> tuple[str, int, dict[str, Any]]:
        """Read one whole message; the ports of statistics have no `lived_s`."""

def port_experiment(experiment: str) -> str:
    """Feed one port of a fabric with arrivals and sizes of known laws and tell what became of the frames.

    Parameters
    ----------
    experiment
        JSON: `seed`, `direction` and `queue` (as in docs/reference/lab-protocol.md), `sources` (each with `frames`,
        `gap_ps`, `size_bytes` and optionally `start_ps` and `queue`; gaps and sizes are
        `{"law": "constant", "value": n}` or `{"law": "exponential", "mean": x, "least": n, "most": n}`), `batches`,
        and `records` where every frame is to be told of.

    Returns
    -------
    str
        JSON: `sources` (`offered`, `delivered`, `delivered_bytes`), `batches` (`offered`, `delivered`, `wait_ps`,
        summed), `records` (`source`, `bytes`, `sent_ps`, `received_ps`) and `end_ps`.

    Raises
    ------
    ValueError
        When a value is out of range; it names the value and what is allowed.
    """

def parse_duration(text: str) -> int:
    """A duration such as `"5 ms"`, in picoseconds. Raises `ValueError` that tells what is allowed."""

def parse_rate(text: str) -> int:
    """A rate such as `"10 Mbit"`, in bits per second. Raises `ValueError` that tells what is allowed."""

def parse_size(text: str) -> int:
    """A size such as `"1500 B"`, in bytes. Raises `ValueError` that tells what is allowed."""

def format_duration(picoseconds: int) -> str:
    """Picoseconds as text that `parse_duration` reads back."""

def format_rate(bits_per_second: int) -> str:
    """Bits per second as text that `parse_rate` reads back. Raises `ValueError` for zero."""

def format_size(bytes: int) -> str:
    """Bytes as text that `parse_size` reads back."""

@final
class Outward:
    """A thread that carries what a network has to say outward: TCP, UDP and ICMP echo of IPv4 go on as ordinary
    sockets in the network namespace that the caller stands in.

    Parameters
    ----------
    packets
        A packet socket (`SOCK_RAW`) for IPv4 on one end of an interface, whose other end has the hardware address
        02:00:00:00:53:01. It is copied.
    gateway, prefix
        The address that is the next hop on the interface, and the bits that all addresses there begin with.
    names
        The address there that stands for `resolver`, ``ADDRESS:PORT``.
    """

    def __new__(cls, packets: int, gateway: str, prefix: int, names: str, resolver: str | None = None) -> Outward: ...
    def close(self) -> None:
        """End the thread and all connections."""

@final
class SocketAgent:
    """A thread that runs apps on sockets of this machine, in the network namespace that the caller stands in.

    Requests and answers are those about apps of docs/reference/lab-protocol.md, as JSON; its only host is `"machine"`.

    Raises
    ------
    CoreError
        `AgentFailed`, where the kernel is too old.
    """

    def __new__(cls, zero_ns: int | None = None) -> SocketAgent: ...
    def now_ps(self) -> int:
        """Picoseconds since `CLOCK_MONOTONIC` showed `zero_ns` (default: 0); all times of this agent stand on it."""

    def request(self, body: str) -> str:
        """Answer `body`. Raises `CoreError` when the agent refuses, `ValueError` when `body` is not JSON."""

    def usage(self) -> str:
        """JSON: `cpu_s`, `user_s`, `waited_s`, `involuntary_switches`, `shared` and `realtime` of the thread."""

    def timeliness(self) -> str:
        """JSON: how well the thread kept to its timers since its start, as the record of fidelity has it under
        `agent`."""

    def close(self) -> None:
        """End the thread and close all sockets."""

@final
class Acknowledgement:
    """What acknowledgements told: of one, or of all since the last call where that comes once a round trip."""

    @property
    def now_s(self) -> float:
        """The lab's time in seconds."""

    @property
    def acknowledged(self) -> int:
        """Segments newly acknowledged cumulatively."""

    @property
    def delivered(self) -> int:
        """Segments newly acknowledged, cumulatively or selectively."""

    @property
    def lost(self) -> int:
        """Segments newly found lost."""

    @property
    def in_flight(self) -> int:
        """Segments in flight now."""

    @property
    def round_trip_s(self) -> float | None:
        """The newest round trip in seconds, or the least since the last call; ``None`` where none was measured."""

    @property
    def least_round_trip_s(self) -> float | None:
        """The least round trip of the connection in the last 300 s, in seconds."""

    @property
    def smoothed_round_trip_s(self) -> float | None:
        """The smoothed round trip (RFC 6298) in seconds."""

    @property
    def rate_bps(self) -> float | None:
        """The delivery rate of payload in bits per second (draft-cheng-iccrg-delivery-rate-estimation)."""

    @property
    def app_limited(self) -> bool:
        """True if the app, and not the network, limited that rate."""

    @property
    def window_limited(self) -> bool:
        """True if the window limited the sender."""

    @property
    def in_recovery(self) -> bool:
        """True while losses are repaired."""

    @property
    def segment_bytes(self) -> int:
        """The payload of a full segment."""

def register_congestion_control(name: str, start: Callable[[int, int], object]) -> None:
    """Let model hosts of this process use the congestion control `name`, of 1 to 15 letters. For each connection
    `start` is called with the initial window in segments and a seed. Raises `ValueError` for a name that cannot be."""

def register_application(name: str, called: str, start: Callable[[str], object]) -> None:
    """Let hosts of this process run the application `name`, which messages call `called`. `start` is called for each
    end with its settings (JSON), and what it returns is told by its method ``_told`` what happens."""

def register_discipline(name: str, called: str, start: Callable[[str, int], object]) -> None:
    """Let the ports of labs in this process use the discipline `name`, which messages call `called`. `start` is called
    for each port with its settings (JSON) and a seed, and what it returns is told by its methods ``_arrived`` and
    ``_next`` what happens."""

def register_estimator(name: str, called: str, start: Callable[[str, str], object]) -> None:
    """Let probers of this process ask the estimator `name`, which messages call `called`. `start` is called for each
    estimate with its settings and what is known of its probes (JSON), and what it returns is told by its method
    ``_told`` what became of its trains."""

@final
class VirtualLab:
    """A network on the virtual clock, in the caller's process; real hosts live in a guest, where settings of it are.

    Requests and answers are those of docs/reference/lab-protocol.md, as JSON; requests of several threads are answered
    one after the other, and the interpreter's lock is released meanwhile.
    """

    def __new__(cls, network: str, guest: str | None = None, trace: str | None = None) -> VirtualLab: ...
    def end_trace(self) -> None:
        """End the trace that is written into the file `trace`; raises `CoreError` where not all of it could be."""

    def spawn(self, body: str, fed: bool, size: tuple[int, int] | None = None) -> str:
        """Start a program as the request ``spawn`` says, which reads what is fed to it if it is `fed`; return its
        number at once. Raises `CoreError` where the host is a model."""

    def resize(self, job: int, rows: int, columns: int) -> None:
        """Say that the terminal of the program `job` has another size."""

    def feed(self, job: int, bytes: bytes | None) -> None:
        """Have the program `job` read `bytes`; ``None`` ends its input."""

    def end_programs(self) -> None:
        """End all programs, and the guest that they live in."""

    def take_news(self) -> list[tuple[int, str | None, int, bytes]]:
        """Take what programs have done, in order: the program's number, what it did as JSON (``started``, ``refused``,
        ``ended``), or the stream, 1 or 2, and what it wrote there."""

    def take_control(self) -> list[tuple[int, bytes, str | None]]:
        """Take what controllers are to get now, in order: the connection's number, whole messages, and why the
        connection is over then, if it is."""

    def give_control(self, connection: int, bytes: bytes) -> None:
        """Hand in what the controller at the other end of `connection` says. Raises `CoreError` when it was closed."""

    def request(self, body: str, patience_s: float | None = None) -> str:
        """Answer `body`; after `patience_s` seconds an answer that takes virtual time comes early: ``"paused": true``.

        Raises
        ------
        CoreError
            When the lab refuses.
        ValueError
            When `body` is not JSON, or an earlier request has failed in the lab itself.
        """

@final
class BareSwitch:
    """A switch of the fabric with nothing around it but who asks, on a clock of its own that begins at zero."""

    def __init__(
        self,
        ports: int,
        *,
        dpid: int = 1,
        versions: list[int] = ...,
        standalone: bool = False,
        rate_bps: int | None = None,
        seed: int = 1,
    ) -> None:
        """Make a switch with ports 1 to `ports`, each at a line of `rate_bps`, and an agent that speaks `versions`
        (1: OpenFlow 1.0, 4: 1.3)."""

    def open(self, connection: int) -> None:
        """Connect a controller, under a number that no other connection has."""

    def close(self, connection: int) -> None:
        """End a connection."""

    def say(self, connection: int, data: bytes) -> None:
        """Send `data` from a controller."""

    def heard(self) -> list[tuple[int, bytes, str | None]]:
        """Return what controllers have been sent since the last call: connection, bytes, and why the connection ends
        then."""

    def send(self, port: int, frame: bytes) -> None:
        """Send a frame from the host at `port`. Raises `ValueError` when there is no such port."""

    def send_all(self, port: int, frames: list[bytes]) -> int:
        """Send frames from the host at `port` without a pause and tell how many came out somewhere; they are not kept.
        Raises `ValueError` when there is no such port."""

    def arrived(self) -> list[tuple[int, bytes]]:
        """The frames that have come to hosts since the last call, each with its port's number."""

    def advance(self, nanoseconds: int) -> None:
        """Let time pass."""

    def set_link(self, port: int, up: bool) -> None:
        """Take the link at `port` up or down. Raises `ValueError` when there is no such port."""

    def set_queue(self, port: int, queue: str) -> None:
        """Give `port` another queue discipline (JSON). Raises `ValueError` when it is refused."""

class CabledSwitches:
    """Two switches of one fabric, 0 and 1, whose ports of the same number are joined, on a clock of their own."""

    def __init__(self, ports: int, *, seed: int = 1) -> None:
        """Make two switches with ports 1 to `ports`, which speak OpenFlow 1.0 and 1.3."""

    def open(self, switch: int, connection: int) -> None:
        """Connect a controller, under a number that no other connection of the switch has."""

    def close(self, switch: int, connection: int) -> None:
        """End a connection."""

    def say(self, switch: int, connection: int, data: bytes) -> None:
        """Send `data` from a controller; what is due now is done."""

    def heard(self) -> list[tuple[int, int, bytes, str | None]]:
        """Return what controllers have been sent since the last call: switch, connection, bytes, and why it ends
        then."""

    def advance(self, nanoseconds: int) -> None:
        """Let time pass."""
