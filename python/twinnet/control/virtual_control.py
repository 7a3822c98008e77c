"""The controllers of a lab on the virtual clock: made, driven in lockstep, ended."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Mapping
from typing import Any

from twinnet.control.choice import APP_TARGET, ControllerChoice
from twinnet.control.controller import Controller
from twinnet.control.in_guest import GuestController, GuestPrograms
from twinnet.control.in_process import ChangeQueue, InProcess
from twinnet.control.lockstep import ControlledLab, InProcessEndpoint, Lockstep
from twinnet.control.lockstep_socket import SocketEndpoint
from twinnet.control.program import ControllerProgram
from twinnet.control.tls import connecting
from twinnet.errors import ControllerWarning, NotAvailable

__all__ = ["VirtualControl"]

_QUIET_S = 0.02
_PATIENCE_S = 10.0


class VirtualControl:
    """The controllers of a lab on the virtual clock, which run before time passes.

    Parameters
    ----------
    lab
        The lab.
    spec
        The network in the form of the lab protocol.
    choice
        The controller of the switches that name none.
    controller
        The controller in this process, where there is one.
    program
        The program that the lab has started as a controller.
    change_queue
        By which the controller in this process changes queues.
    programs
        The programs of real hosts, where there are any.

    Attributes
    ----------
    troubles
        The reasons why connections failed or ended, by switch and target.
    """

    def __init__(
        self,
        lab: ControlledLab,
        spec: Mapping[str, Any],
        choice: ControllerChoice | None,
        controller: Controller | None,
        program: ControllerProgram | None,
        change_queue: ChangeQueue | None = None,
        programs: GuestPrograms | None = None,
    ) -> None:
        self._lab = lab
        self._lockstep = Lockstep(lab)
        self.troubles: dict[tuple[str, str], str] = {}
        self._runtime: InProcess | None = None
        self._in_process: InProcessEndpoint | None = None
        self._sockets: dict[str, SocketEndpoint] = {}
        self._guest: GuestController | None = None
        self._now_ps = 0
        try:
            if choice is not None and choice.host is not None and choice.run is not None and programs is not None:
                self._guest = GuestController(programs, choice.host, choice.run, choice.target, self._note)
                for node in spec["nodes"]:
                    if node["kind"] == "switch" and choice.target in node.get("controllers", ()):
                        self._guest.prepare(node["name"])
            if controller is not None:
                self._runtime = InProcess(controller, spec, lambda: self._now_ps, change_queue=change_queue)
            for node in spec["nodes"]:
                context = connecting(node)
                for target in node.get("controllers", ()) if node["kind"] == "switch" else ():
                    self._connect(node["name"], target, (choice, program), context)
            self._lockstep.settle()
        except BaseException:
            self.end()
            raise

    def _connect(
        self,
        switch: str,
        target: str,
        of_network: tuple[ControllerChoice | None, ControllerProgram | None],
        context: ssl.SSLContext | None,
    ) -> None:
        choice, program = of_network
        if target.startswith(APP_TARGET):
            if self._runtime is None:
                raise NotAvailable(f"{switch} has the controller {target!r}, which this lab does not know")
            connection = self._lab.open_control(switch, target)
            self._runtime.open(connection, switch)
            # One for all switches: each asks every session what it has to say.
            self._in_process = self._in_process or InProcessEndpoint(self._runtime)
            self._lockstep.add(connection, self._in_process)
            return
        if self._guest is not None and choice is not None and choice.target == target:
            connection = self._lab.open_control(switch, target)
            self._guest.connect(switch, connection)
            self._lockstep.add(connection, self._guest)
            return
        endpoint = self._sockets.get(target)
        if endpoint is None:
            if choice is not None and choice.target == target:
                endpoint = SocketEndpoint(target, choice.quiet_s, choice.patience_s, program, self._note)
            else:
                endpoint = SocketEndpoint(target, _QUIET_S, _PATIENCE_S, None, self._note)
            self._sockets[target] = endpoint
        channel = endpoint.dial(switch, context)
        if channel is not None:
            connection = self._lab.open_control(switch, target)
            endpoint.add(connection, switch, channel)
            self._lockstep.add(connection, endpoint)

    def _note(self, switch: str, target: str, why: str) -> None:
        self.troubles[switch, target] = why
        warnings.warn(
            f"{switch} has lost its controller {target}: {why}; it goes on by its fail mode",
            ControllerWarning,
            stacklevel=2,
        )

    @property
    def in_guest(self) -> GuestController | None:
        """The controller that runs in a host of the network."""
        return self._guest

    @property
    def next_timer_ps(self) -> int | None:
        """The time at which the clock has to stop for a timer of the controller, in picoseconds."""
        return self._runtime.next_timer_ps if self._runtime is not None else None

    def settle(self, now_ps: int) -> None:
        """It is `now_ps`: run the timers that are due, and let controllers and switches speak until nobody has anything
        to say."""
        self._now_ps = now_ps
        if self._runtime is not None:
            self._runtime.run_timers()
        self._lockstep.settle()

    def end(self) -> None:
        """The lab has ended."""
        self._lockstep.end()
        for endpoint in self._sockets.values():
            endpoint.end()
        if self._runtime is not None:
            self._runtime.end()
