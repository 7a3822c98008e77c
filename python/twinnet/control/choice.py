"""The controller of a network and the connection of its switches to it, as plain data checked by
:meth:`Network.controller`."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twinnet.control.controller import Controller
from twinnet.control.controller_settings import CONTROLLER_DEFAULTS, ControllerOptions
from twinnet.control.targets import parse_target
from twinnet.control.tls import Tls, checked_tls
from twinnet.errors import BadValue, NotAvailable, did_you_mean
from twinnet.own_modules import load_own
from twinnet.settings import settings_of
from twinnet.units import PS_PER_SECOND

__all__ = ["APP_TARGET", "SHIPPED", "ControllerChoice", "app_factory"]

APP_TARGET = "app:"
"""The prefix of the target of a switch whose controller runs in the lab's process."""
_DEFAULT_CONNECT = ":127.0.0.1:6653"
_PORT = "{port}"
_PORT_IN_GUEST = "6653"
_CHOSEN = f":127.0.0.1:{_PORT}"
_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*\Z")

SHIPPED = {
    "learning": "twinnet.control.learning:LearningSwitch",
    "shortest-path": "twinnet.control.shortest_path:ShortestPath",
    "tree-flooding": "twinnet.control.tree_flooding:TreeFlooding",
}
"""The controllers of this package that can be named in a file."""


@dataclass(frozen=True)
class ControllerChoice:
    """The controller of the switches that name none.

    Attributes
    ----------
    target
        Where it is: ``tcp:ADDRESS:PORT``, ``ssl:ADDRESS:PORT``, or ``app:NAME`` for one in the lab's process.
    run
        A program that is started with the lab.
    factory
        What makes the controller in the lab's process.
    delay_ps
        What the way between switch and controller takes, each way.
    quiet_s, patience_s
        On the virtual clock: the real time of silence after which a controller counts as done, and after which one that
        owes an answer is given up.
    tls
        The key and certificates of the switches that have none of their own.
    host
        The host in which the program runs on the virtual clock.
    """

    target: str
    run: str | Sequence[str] | None
    factory: Callable[[], Controller] | None
    delay_ps: int
    quiet_s: float
    patience_s: float
    tls: Tls | None = None
    host: str | None = None

    @classmethod
    def of(
        cls, controller: str | Controller | Callable[[], Controller] | None, settings: ControllerOptions
    ) -> ControllerChoice:
        """Check what :meth:`Network.controller` was given; raises `BadValue`."""
        given: ControllerOptions = {**CONTROLLER_DEFAULTS, **settings}
        known = settings_of(ControllerOptions)
        delay_ps, quiet_ps, patience_ps = (
            known[name].read(given.get(name), name) for name in ("delay", "quiet", "patience")
        )
        if patience_ps <= quiet_ps:
            words = f"the patience {given.get('patience')!r} is no longer than the quiet {given.get('quiet')!r}"
            raise BadValue(words, "give it more")
        quiet_s, patience_s = quiet_ps / PS_PER_SECOND, patience_ps / PS_PER_SECOND
        run, tls, host = given.get("run"), given.get("tls"), given.get("host")
        if host is not None and (run is None or tls is not None):
            raise BadValue(
                f"a controller in the host {host!r} is a program that the lab starts, and is not reached over TLS",
                "give its command as run, and leave tls away",
            )
        if controller is None or isinstance(controller, str):
            over = "tcp" if tls is None else "ssl"
            if _wants_port(run):
                if controller is not None:
                    raise BadValue(
                        f"the controller's port is chosen ({_PORT}), and it is at {controller!r}", "leave connect away"
                    )
                return cls(over + _CHOSEN, run, None, delay_ps, quiet_s, patience_s, tls, host)
            target = over + _DEFAULT_CONNECT if controller is None else controller
            if not parse_target(target).tls and tls is not None:
                raise BadValue(f"the controller is at {target!r} and has TLS", "write ssl: there, or leave tls away")
            checked_tls("the controller", [target], tls)
            return cls(target, run, None, delay_ps, quiet_s, patience_s, tls, host)
        if tls is not None:
            raise BadValue("a controller of this process is not reached over TLS", "leave tls away")
        if run is not None:
            raise BadValue("a controller of this process is not run as a program", "leave run away")
        factory, name = _factory(controller)
        return cls(APP_TARGET + name, None, factory, delay_ps, quiet_s, patience_s)

    def at_free_port(self, in_guest: bool = False) -> ControllerChoice:
        """Return the choice with a port that is free now where its program needs one; otherwise itself. All are
        free in a host `in_guest`."""
        if not self.target.endswith(_CHOSEN) or self.run is None:
            return self
        port = _PORT_IN_GUEST
        if not in_guest:
            with socket.create_server(("127.0.0.1", 0)) as taken:
                port = str(taken.getsockname()[1])
        words = [self.run] if isinstance(self.run, str) else self.run
        run = [word.replace(_PORT, port) for word in words]
        return replace(self, target=self.target.replace(_PORT, port), run=run[0] if isinstance(self.run, str) else run)


def _wants_port(run: str | Sequence[str] | None) -> bool:
    return run is not None and any(_PORT in word for word in ([run] if isinstance(run, str) else run))


def _factory(controller: Controller | Callable[[], Controller]) -> tuple[Callable[[], Controller], str]:
    if isinstance(controller, Controller):
        return lambda: controller, type(controller).__name__
    if not callable(controller):
        raise BadValue(
            f"the controller is {controller!r}",
            'give an address such as "tcp:127.0.0.1:6653", a Controller, or a class of controllers',
        )

    def make() -> Controller:
        made: object = controller()
        if not isinstance(made, Controller):
            raise BadValue(f"{controller!r} makes {made!r}", "give what makes a twinnet.control.Controller")
        return made

    return make, getattr(controller, "__name__", "controller")


def app_factory(name: str) -> Callable[[], Controller]:
    """Return what makes the controller called `name`: one of :data:`SHIPPED`, or ``module:Class``.

    The module is loaded when a lab starts, not before.

    Raises
    ------
    BadValue
        When `name` is neither.
    """
    place = SHIPPED.get(name, name)
    if not _CLASS.match(place):
        raise BadValue(f"there is no controller {name!r}", did_you_mean(name, SHIPPED, 'write "module:Class"'))

    def make() -> Any:
        try:
            kind = load_own(place)
        except (ImportError, AttributeError) as error:
            remedy = "see that the module is installed or lies in the current folder, and has that class"
            raise NotAvailable(f"the controller {name!r} cannot be loaded: {error}", remedy) from None
        made: object = kind()
        if not isinstance(made, Controller):
            raise BadValue(f"{name} is no controller", "name a class that derives from twinnet.control.Controller")
        return made

    make.__name__ = name
    return make
