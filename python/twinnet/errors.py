"""Every error that twinnet raises: a stable name, what was given and what is allowed, and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, cast

if TYPE_CHECKING:
    from twinnet.lab_process.job import Completed

__all__ = [
    "AddressInUse",
    "BadAddress",
    "BadFile",
    "BadFlow",
    "BadName",
    "BadPolicy",
    "BadProbability",
    "BadQuantity",
    "BadQueue",
    "BadTemplate",
    "BadTopology",
    "BadValue",
    "ControllerWarning",
    "DuplicateLink",
    "DuplicateName",
    "InterfaceNameTooLong",
    "KernelMissing",
    "KernelUnusable",
    "LabClosed",
    "LabError",
    "LimitReached",
    "MachineRefused",
    "NotAvailable",
    "PartEnded",
    "PortInUse",
    "ProgramFailed",
    "ProgramMissing",
    "ProgramRefused",
    "ReportUnreadable",
    "RequestRefused",
    "SettingRefused",
    "TimeLimit",
    "TwinnetError",
    "UnknownInLab",
    "UnknownNode",
    "UsageError",
]


class TwinnetError(Exception):
    """The root of all errors of this package.

    Parameters
    ----------
    message
        What was given and what is allowed.
    remedy
        What to do about it; empty when the message says all.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    @property
    def name(self) -> str:
        """The stable name of the error, to be told apart by programs."""
        return type(self).__name__

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class UsageError(TwinnetError, ValueError):
    """An invalid request, found before anything is built. The command line exits with 2."""


class BadValue(UsageError):
    """A value of the wrong kind, or outside its range."""


class BadQuantity(BadValue):
    """A duration, rate or size that cannot be read, has no unit, or is out of range."""


class BadProbability(BadValue):
    """A probability that is not between 0 and 1 (or 0 % and 100 %)."""


class BadName(BadValue):
    """A node name that cannot be a host name and the stem of an interface name."""


class InterfaceNameTooLong(BadName):
    """The interface's name would not fit into Linux' 15 bytes."""


class BadAddress(BadValue):
    """An IP or MAC address that cannot be read or used."""


class BadFlow(BadValue):
    """A flow that is not in ``ovs-ofctl`` syntax."""


class BadQueue(BadValue):
    """A queue configuration that contradicts itself."""


class BadPolicy(UsageError):
    """A QoS policy that contradicts itself, or that its network cannot carry out."""


class BadTemplate(BadValue):
    """A topology template that does not exist, or whose numbers are out of range."""


class BadTopology(UsageError):
    """A network that contradicts itself."""


class DuplicateName(BadTopology):
    """Two nodes with one name, or one datapath number."""


class UnknownNode(BadTopology):
    """A name that no node of the network has."""


class DuplicateLink(BadTopology):
    """Two nodes are linked already and a second link was not asked for by port number."""


class PortInUse(BadTopology):
    """A switch's port number that is taken."""


class AddressInUse(BadTopology):
    """An address that another interface of the network has."""


class BadFile(UsageError):
    """A file that cannot be read."""


class NotAvailable(TwinnetError):
    """Something that this version or this machine cannot do."""


class KernelMissing(NotAvailable):
    """There is no kernel for programs on the virtual clock."""


class KernelUnusable(NotAvailable):
    """A kernel that programs on the virtual clock cannot run in, or a file that is none."""


class LabError(TwinnetError):
    """A refusal of a lab; :attr:`name` is the name that the lab gave it, such as ``UnknownHost``. Its class is the kind
    that the name belongs to, such as `UnknownInLab`, so that programs can catch what they have an answer to.

    Examples
    --------
    >>> LabError("there is no host h9", "see nodes", "UnknownHost")
    UnknownInLab('there is no host h9')
    """

    def __new__(cls, message: str, remedy: str = "", name: str = "LabError") -> Self:
        """Return an error of the kind that `name` belongs to."""
        kind = cast("type[Self]", _KINDS.get(name, cls)) if cls is LabError else cls
        return super().__new__(kind, message)

    def __init__(self, message: str, remedy: str = "", name: str = "LabError") -> None:
        super().__init__(message, remedy)
        self._name = name

    def __reduce__(self) -> tuple[type[LabError], tuple[str, str, str]]:
        """Return how it is made anew in another process, also by libraries that do so without calling ``__init__``."""
        return type(self), (self.message, self.remedy, self._name)

    @property
    def name(self) -> str:
        """The name that the lab gave the refusal."""
        return self._name


class UnknownInLab(LabError):
    """A node, port, link, program, app, capture or sampler that the lab does not have."""


class SettingRefused(LabError):
    """A description, flow or setting that the lab cannot take; nothing was changed."""


class ProgramRefused(LabError):
    """A program that could not be started in its host."""


class MachineRefused(LabError):
    """This machine, or another one that carries a part, does not give what the lab needs."""


class LimitReached(LabError):
    """There are as many of something as the lab can have."""


class PartEnded(LabError):
    """A part of the lab has ended or has a fault: start it again."""


class RequestRefused(LabError):
    """A request that does not have the form of the lab protocol, or comes at the wrong time."""


class LabClosed(LabError):
    """The lab has ended."""

    def __init__(self, message: str, remedy: str = "", name: str = "LabClosed") -> None:
        super().__init__(message, remedy, name)


_KINDS: Mapping[str, type[LabError]] = {
    name: kind
    for kind, names in (
        (
            UnknownInLab,
            "AmbiguousLink NotASwitch UnknownApp UnknownCapture UnknownConnection UnknownHost UnknownJob "
            "UnknownLink UnknownNode UnknownPort UnknownSampler",
        ),
        (
            SettingRefused,
            "BadApp BadFlow BadLink BadParameter BadQueue BadRoute ControllerLoop InvalidLabName InvalidNetwork "
            "InvalidOption LabNameTaken MtuTooLarge NoRate OpenVswitch OtherMtu OtherRate OtherRoute OwnCodeFailed "
            "RealHost UnknownParameter WallClockOnly",
        ),
        (
            ProgramRefused,
            "HostNotReady ModelHost NoSuchDirectory NoSuchSignal ProgramNotExecutable ProgramNotFound "
            "ProgramNotStarted ProgramSpins",
        ),
        (
            MachineRefused,
            "AgentRefused CaptureFailed ControllerFailed GuestNotBuilt GuestNotStarted HostNotBuilt InterfaceDown "
            "InterfaceFailed InterfaceNotOffered LabNotStarted NamespacesRefused NoGuestKernel NoSuchAddress "
            "NoSuchInterface NoTwinnetThere NotALabProcess NotAvailable NotEthernet OpenVswitchFailed OutputLost "
            "OpenVswitchRefused OtherVersion PacketSocketRefused ParameterRefused PortNotUsable ProcNotMounted "
            "TraceFailed TunnelFailed UnderlayAddress UnderlayMtu UnderlayPort UnderlaySilent UnderlayTooSlow "
            "Unreachable",
        ),
        (LimitReached, "HostBusy OpenFilesExhausted TooManyApps TooManyClients TooManyInterfaces"),
        (
            PartEnded,
            "AgentEnded AgentFailed FabricFailed GuestEnded GuestStands HostEnded Internal LabStopped NoAnswer "
            "ProgramsEnded",
        ),
        (
            RequestRefused,
            "AlreadyStarted BadDescriptors BadFrame BadRequest MalformedRequest NotStarted ProtocolMismatch "
            "UnknownRequest",
        ),
    )
    for name in names.split()
}
"""The kind of each refusal by its name."""


class ControllerWarning(RuntimeWarning):
    """A switch of a lab on the virtual clock has lost its controller, and goes on by its fail mode; or a switch has
    refused a tool that would not speak TLS as it should; or a client of OVSDB has written what has no effect."""


class ProgramFailed(TwinnetError):
    """A program ended with a status other than 0 where ``check=True`` was asked for, or could not do its work."""


class ProgramMissing(TwinnetError):
    """A program that is not installed on this machine."""


class ReportUnreadable(TwinnetError):
    """A program's report that does not have the form that its adapter knows."""


class TimeLimit(TwinnetError):
    """A program was ended because its time was up; `completed` is what it wrote until then."""

    completed: Completed | None = None


def reason(error: Exception) -> str:
    """Return what went wrong in words: of an error of the system without its number and the path.

    Examples
    --------
    >>> reason(FileNotFoundError(2, "No such file or directory", "flows.yaml"))
    'No such file or directory'
    """
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


_OF_OTHER_TOOLS = {
    "bw": "rate",
    "bandwidth": "rate",
    "speed": "rate",
    "capacity": "rate",
    "latency": "delay",
    "max_queue_size": "queue",
    "qlen": "queue",
    "use_htb": "queue",
    "packet_loss": "loss",
    "drop": "loss",
    "nodes": "hosts",
    "edges": "links",
    "a": "between",
    "b": "between",
    "node1": "between",
    "node2": "between",
    "endpoints": "between",
    "ends": "between",
    "topology": "template",
    "topo": "template",
    "default_gateway": "gateway",
    "defaultroute": "gateway",
    "address": "ip",
    "datapath_id": "dpid",
    "protocol": "app",
    "src": "from",
    "source": "from",
    "dst": "to",
    "destination": "to",
    "time": "duration",
    "size": "bytes",
    "cc": "congestion_control",
    "repeats": "repetitions",
    "runs": "repetitions",
    "metrics": "measurements",
    "tail_drop": "fifo",
    "droptail": "fifo",
    "pfifo": "fifo",
    "bfifo": "fifo",
    "prio": "priority",
    "icmp": "ping",
    "goodput": "throughput",
    "average": "mean",
    "avg": "mean",
    "iperf": "tcp",
    "iperf3": "tcp",
    "max_rate": "rate",
    "loss_rate": "loss",
}
"""Words of other tools and papers, and what they are called here."""


def did_you_mean(given: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return ``did you mean 'x'?`` for the nearest of `known`, or their list when none is near.

    Words of other tools, such as ``bw``, are known by what they mean here. What to do if neither is meant may follow as
    `otherwise`.

    Examples
    --------
    >>> did_you_mean("dely", ["delay", "rate"])
    "did you mean 'delay'?"
    >>> did_you_mean("bw", ["delay", "rate"])
    "did you mean 'rate'?"
    >>> did_you_mean("bandwith", ["delay", "rate"])
    "did you mean 'rate'?"
    >>> did_you_mean("dely", ["delay", "rate"], "see: help")
    "did you mean 'delay'? Otherwise see: help"
    """
    found = _nearest(given, sorted(known))
    if not otherwise:
        return found
    return f"{found} Otherwise {otherwise}" if found.endswith("?") else f"{found}; {otherwise}"


def _nearest(given: str, names: Sequence[str]) -> str:
    meant = _OF_OTHER_TOOLS.get(given.lower().replace("-", "_"))
    if meant in names:
        return f"did you mean '{meant}'?"
    # Of names as short as h1, one letter in two may be wrong.
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.5 if len(given) <= 3 else 0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    words = [word for word, means in _OF_OTHER_TOOLS.items() if means in names]
    if misspelt := difflib.get_close_matches(given.lower(), words, n=1, cutoff=0.8):
        return f"did you mean '{_OF_OTHER_TOOLS[misspelt[0]]}'?"
    if not names:
        return "there is none"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"known: {shown}"
