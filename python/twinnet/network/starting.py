"""The one door from a description to the lab that runs it."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from twinnet.errors import BadValue
from twinnet.network.checks import checked_seed, flag
from twinnet.units import Duration, Size

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.machines.machine_lab import MachineLab
    from twinnet.network.network import Network

__all__ = ["Startable"]


class Startable:
    """Methods that start a network. The lab modules are imported only when you call one."""

    seed: int
    """The seed of all randomness in the network."""
    fabric_threads: int | Literal["auto"]
    """The number of threads that move the network on the wall clock, 1 to 64; ``auto``: by the processors that are
    free."""

    def emulate(
        self,
        name: str | None = None,
        interface: str = "auto",
        realtime: Literal["auto", "off"] = "auto",
        slip_after_ps: int | None = None,
        fabric_threads: int | Literal["auto"] | None = None,
    ) -> Lab:
        """Return a lab of this network on the wall clock, with real hosts; it starts when it is entered with ``with``.

        Parameters
        ----------
        name
            The name under which other terminals find the lab; twinnet chooses one when you give none.
        interface
            ``tap``, ``veth`` or ``auto`` (TAP where this machine allows it).
        realtime, slip_after_ps, fabric_threads
            As :class:`twinnet.Lab` documents them.
        """
        from twinnet.lab.lab import Lab
        from twinnet.machines.parts_lab import PartsLab

        network = cast("Network", self)
        if network.placement and name is not None:
            raise BadValue(
                "a network on several machines has no name by which other terminals find it", "leave the name away"
            )
        return (PartsLab if network.placement else Lab)(
            network,
            name=name,
            interface=interface,
            realtime=realtime,
            slip_after_ps=slip_after_ps,
            fabric_threads=fabric_threads,
        )

    def simulate(
        self,
        seed: int | None = None,
        static_neighbours: bool = False,
        hosts: Literal["models", "programs"] = "models",
        name: str | None = None,
        trace: str | Path | None = None,
        memory: Size | None = None,
        date: str | datetime.date | None = None,
        patience: Duration | None = None,
    ) -> Lab:
        """Return a lab of this network on the virtual clock; it starts when it is entered with ``with``. The same
        network, seed, traffic and version give the same events on every machine.

        Parameters
        ----------
        seed
            The seed of all randomness; default: the network's own.
        static_neighbours
            Whether hosts know each other's hardware addresses beforehand and need not ask by ARP or neighbour
            discovery, which flood a network of switches: for large networks, and where only the traffic matters.
        hosts
            ``models``, or ``programs``: hosts are real and run any program, but for those that are described as models.
            They live in a guest kernel, whose time goes on only while somebody waits for it.
        name
            The name under which other terminals find it, in which its time goes on while they wait for something.
            Without one they do not find it; an empty one is chosen.
        trace
            A file to write the trace into: each event that the trace hash covers and each frame that a program sends,
            a line for each. ``twinnet traces A B`` says where two of them part.
        memory
            With programs: the memory of all of them and of the files that they write, from 64 MiB; default 512 MiB.
            It is taken from the machine as it is used.
        date
            With programs: the date, or date and time, at which the lab begins, such as ``2026-11-28 16:30``, in UTC if
            it names no other zone; default 2026-01-01. Runs of two dates have two traces.
        patience
            With programs: the processor time that they may take at one moment of virtual time before the lab ends by
            ``ProgramSpins``; default 4.5 s. What they need to fill memory is added.

        Raises
        ------
        BadValue
            A value is out of range, or is for programs and there are none.
        """
        from twinnet.lab.guest_options import GuestOptions
        from twinnet.lab.lab import Lab

        if hosts not in ("models", "programs"):
            raise BadValue(f"hosts is {hosts!r}; allowed are 'models' and 'programs'")
        of_guest = {"memory": memory, "date": date, "patience": patience}
        if hosts != "programs" and any(value is not None for value in of_guest.values()):
            names = ", ".join(name for name, value in of_guest.items() if value is not None)
            raise BadValue(f"{names} is for hosts that run programs", 'leave it away, or give hosts="programs"')
        chosen = self.seed if seed is None else checked_seed(seed)
        known = flag(static_neighbours, "static_neighbours")
        return Lab(
            cast("Network", self),
            name=name,
            clock="virtual",
            seed=chosen,
            static_neighbours=known,
            programs=hosts == "programs",
            guest=GuestOptions.read(memory, date, patience),
            trace=Path(trace) if trace is not None else None,
        )

    def operate(self) -> MachineLab:
        """Return a lab of this network's physical machines (:meth:`twinnet.Network.machine`), on the real clock; it
        starts when it is entered with ``with``. twinnet reaches the machines over SSH. What joins them is the real
        network: the description says what that is meant to be.
        """
        from twinnet.machines.machine_lab import MachineLab

        return MachineLab(cast("Network", self))
