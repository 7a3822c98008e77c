"""The controllers of one lab, on either clock: started after the lab, ended before it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinnet.control.choice import APP_TARGET, ControllerChoice
from twinnet.control.controller import Controller
from twinnet.control.dialling import Dialling
from twinnet.control.in_guest import GuestController
from twinnet.control.in_process import ChangeQueue
from twinnet.control.in_process_thread import InProcessThread
from twinnet.control.program import ControllerProgram
from twinnet.control.targets import answers, parse_target
from twinnet.control.virtual_control import VirtualControl
from twinnet.errors import BadTopology, NotAvailable
from twinnet.lab_process.requests import LabRequests
from twinnet.open_vswitch import Bridge, is_open_vswitch
from twinnet.qos.fifo import Fifo
from twinnet.qos.queue import Queue

if TYPE_CHECKING:
    from twinnet.lab.virtual_connection import VirtualConnection

__all__ = ["LabControllers"]

# A program closes its connections a moment before it is gone.
_END_PATIENCE_S = 0.5


def queue_changer(lab: LabRequests, spec: Mapping[str, Any]) -> ChangeQueue:
    """Return what gives a port of a switch of `spec` (of the lab protocol) another queue in the running `lab`.

    It raises `BadTopology` when the switch has no such port, and what the lab raises when it refuses the queue.
    """
    switches: Mapping[str, Mapping[str, Any]] = {
        node["name"]: node for node in spec["nodes"] if node["kind"] == "switch"
    }

    def change(switch: str, port: int, queue: Queue | None) -> None:
        node = switches.get(switch)
        numbers = [] if node is None else [one.get("number") for one in node["ports"]]
        if node is None or port not in numbers:
            raise BadTopology(f"there is no port {port} of a switch {switch}", f"its ports are {numbers}")
        index, chosen = numbers.index(port), Fifo() if queue is None else queue
        if is_open_vswitch(node):
            Bridge(lab, node).set_queue(node["ports"][index]["name"], index, chosen)
        else:
            lab.queues_set(node=switch, port=index, queue=chosen.to_spec())

    return change


class LabControllers:
    """The controllers of a lab's switches, which run outside of it.

    Parameters
    ----------
    choice
        The controller of the switches that name none; ``None``: there is none. One for this process is made now, so
        that one that cannot be made is known before anything is built.
    in_guest
        Whether hosts are real and live in a guest, so that one of them can run it.

    Attributes
    ----------
    controller
        The controller in this process; ``None``: none is.
    """

    def __init__(self, choice: ControllerChoice | None, in_guest: bool = False) -> None:
        self._in_guest = in_guest and choice is not None and choice.host is not None
        self._network_target = choice.target if choice is not None else None
        self._choice = choice.at_free_port(self._in_guest) if choice is not None else None
        self.controller: Controller | None = (
            choice.factory() if choice is not None and choice.factory is not None else None
        )
        self._program: ControllerProgram | GuestController | None = None
        self._dialling: Dialling | None = None
        self._thread: InProcessThread | None = None
        self._virtual: VirtualControl | None = None

    def place(self, spec: Mapping[str, Any]) -> None:
        """Write into `spec` (of the lab protocol) where the controller is whose port was chosen now."""
        if self._choice is None or self._choice.target == self._network_target:
            return
        for node in spec["nodes"]:
            if self._network_target in node.get("controllers", ()):
                node["controllers"] = [self._choice.target]

    def start(self, lab: LabRequests, spec: Mapping[str, Any]) -> None:
        """Start them for a lab on the wall clock."""
        self.start_program()
        self._dialling = Dialling(lab, spec["nodes"])
        if self.controller is not None and self._choice is not None:
            self._thread = InProcessThread(lab, spec, self.controller, self._choice.target, queue_changer(lab, spec))

    def dial(self, switch: str, held: Sequence[str], targets: Sequence[str]) -> None:
        """Connect `switch`, whose controllers are `held`, to `targets` and to no others, while the lab runs.

        Raises
        ------
        BadValue
            One of them is no controller's address.
        NotAvailable
            The lab is not on the wall clock, or the controller in this process would come or go.
        """
        if self._dialling is None:
            raise NotAvailable("controllers cannot change on the virtual clock", "name them before the lab starts")
        for text in sorted({*held} ^ {*targets}):
            if text.startswith(APP_TARGET):
                raise NotAvailable(
                    f"the controller {text} in this process cannot come or go while the lab runs",
                    "name it before the lab starts: net.controller(...)",
                )
        self._dialling.dial(switch, targets)

    def start_in_lockstep(self, lab: VirtualConnection, spec: Mapping[str, Any]) -> None:
        """Start them for a lab on the virtual clock.

        Raises
        ------
        NotAvailable
            When a switch is to listen: tools of the machine live in real time.
        """
        listening = [node["name"] for node in spec["nodes"] if node.get("listen")]
        if listening:
            raise NotAvailable(
                f"{listening[0]} cannot listen on the virtual clock",
                "leave listen away, or use net.emulate(); flows are shown by lab.switch(...).dump_flows()",
            )
        if not any(node.get("controllers") for node in spec["nodes"]):
            return
        beside = None if self._in_guest else self.start_program()
        try:
            programs = lab.programs if self._in_guest else None
            self._virtual = VirtualControl(
                lab, spec, self._choice, self.controller, beside, queue_changer(lab, spec), programs
            )
            self._program = self._virtual.in_guest or beside
        except BaseException:
            self.end()
            raise
        lab.control = self._virtual

    def start_program(self) -> ControllerProgram | None:
        """Start the program that is the controller, where there is one, and return it.

        Raises
        ------
        NotAvailable
            Another program listens there already, or it cannot be started.
        """
        choice = self._choice
        if choice is None or choice.run is None:
            return None
        if answers(parse_target(choice.target)):
            raise NotAvailable(
                f"a controller is to be started at {choice.target}, and another program listens there already",
                "end that, or have a free port chosen: write {port} in run, and leave connect away",
            )
        self._program = program = ControllerProgram(choice.run).start()
        return program

    def check(self) -> None:
        """Raise what the controller in this process has raised, if it has."""
        if self._thread is not None and self._thread.failure is not None:
            raise self._thread.failure

    def check_program(self) -> None:
        """Raise `NotAvailable` when the program that the lab has started as its controller has ended."""
        if self._program is not None and not self._program.running:
            end = self.program_end()
            if "osken-manager: No such file" in end:
                raise NotAvailable(end, "os-ken 4 has no osken-manager: have the application start itself and run it")
            raise NotAvailable(end, "run it by hand to see what is wrong")

    def program_end(self) -> str:
        """Return how the program has ended that the lab has started, and what it wrote last; empty while it runs, or
        when there is none. One that is about to end is waited for."""
        if self._program is None or not self._program.ends_within(_END_PATIENCE_S):
            return ""
        words = self._program.last_words()
        return f"the controller {shlex.join(self._program.argv)} has ended with status {self._program.status}" + (
            f"; its last output: {words}" if words else " and wrote nothing"
        )

    @property
    def gone(self) -> bool:
        """True if the controller cannot come back: its program has ended, or what runs in this process has raised."""
        failed = self._thread is not None and self._thread.failure is not None
        return failed or (self._program is not None and not self._program.running)

    def wait_served(self, switches: Sequence[str], timeout_s: float) -> bool:
        """Wait until the controller in this process has served those of `switches` that are its own; return whether it
        has within `timeout_s` seconds. Nothing is waited for on the virtual clock, or where there is none."""
        if self._thread is None or self._choice is None:
            return True
        own = [name for name in switches if name in self._thread.switches]
        return self._thread.runtime.wait_served(own, timeout_s)

    @property
    def troubles(self) -> Mapping[tuple[str, str], str]:
        """The reasons why connections failed or ended that have not been made again, by switch and target."""
        if self._virtual is not None:
            return self._virtual.troubles
        return self._dialling.troubles if self._dialling is not None else {}

    def last_words(self) -> str:
        """Return the end of what the program wrote that the lab has started."""
        return self._program.last_words() if self._program is not None else ""

    def trouble(self, switch: str, target: str) -> str | None:
        """Return why the last connection of `switch` to `target` failed or ended; ``None``: no trouble."""
        own = self._choice is not None and target == self._choice.target
        why = self._thread.trouble(switch) if own and self._thread is not None else self.troubles.get((switch, target))
        if why is None or not own or self._program is None or self._program.running:
            return why
        said = self._program.last_words().splitlines()
        status = f"its program has ended with status {self._program.status}"
        return f"{status}: {said[-1].strip()}" if said else status

    def pauses(self, reset: bool) -> Mapping[str, int]:
        """Return the longest pause of the controller in this process, as the record of fidelity has it; nothing where
        there is none. With `reset` it is forgotten."""
        if self._thread is None:
            return {}
        pauses = {"longest_pause_ps": round(self._thread.longest_pause_s * 1e12)}
        if reset:
            self._thread.longest_pause_s = 0.0
        return pauses

    def end(self) -> BaseException | None:
        """End them; returns what the controller in this process has raised, if it has and nobody has heard of it."""
        if self._dialling is not None:
            self._dialling.end()
        if self._virtual is not None:
            self._virtual.end()
        failure = None
        if self._thread is not None:
            self._thread.end()
            failure, self._thread = self._thread.failure, None
        if self._program is not None:
            self._program.stop()
        return failure
