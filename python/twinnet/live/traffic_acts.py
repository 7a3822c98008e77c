"""Traffic that the page starts and ends: a flow from a host, and apps and programs, whoever started them."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from twinnet.errors import BadValue
from twinnet.live.done import Done
from twinnet.qos.queue_text import as_python
from twinnet.traffic import apps
from twinnet.units import PS_PER_SECOND, duration_ps, format_duration

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.traffic.app import App

__all__ = ["TrafficActs"]

_INFO_INTERVAL_PS = PS_PER_SECOND // 10
"""Of the samples of a sender's TCP, among them its congestion window."""
_MOST_SAMPLES = 10_000
"""A flow that is to last longer has them less often: each look at its report takes them all."""


class _Known(NamedTuple):
    """An app that the page has started, and what makes it in Python."""

    app: App
    python: str


class TrafficActs:
    """Starts and ends what sends in `lab`. One thread at a time uses it."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._known: dict[int | None, _Known] = {}

    def send(self, what: str, source: str, sink: str, rest: Mapping[str, Any], port: int) -> Done:
        """Start a flow of `what` (``udp`` or ``tcp``) to a `port` of its own, so that a receiver that another has
        started is not in its way; `rest` has its ``duration`` and, of UDP, its ``rate``."""
        for host in (source, sink):
            self._lab.layout.node(host, "host")
        if source == sink:
            raise BadValue(f"{source} would send to itself", "choose another host")
        wanted = {"duration", "rate"} if what == "udp" else {"duration"}
        if set(rest) != wanted or not all(isinstance(value, str) for value in rest.values()):
            raise BadValue("what is to be sent is not understood", "give duration, and rate for udp")
        settings = {name: rest[name] for name in ("rate", "duration") if name in rest} | {"port": port}
        if what == "tcp":
            interval_ps = max(_INFO_INTERVAL_PS, duration_ps(rest["duration"], "duration") // _MOST_SAMPLES)
            settings["info_interval"] = format_duration(interval_ps)
        name = "udp" if what == "udp" else "tcp_bulk"
        flow = getattr(apps, name)(source, sink, **settings)
        handle = self._lab.start(flow)
        ends = f'"{source}", "{sink}", {", ".join(f"{key}={as_python(value)}" for key, value in settings.items())}'
        self._known[handle.sender] = _Known(flow.sender, f"tn.apps.{what}_source({ends})")
        self._known[handle.receiver] = _Known(flow.receiver, f'tn.apps.{what}_sink("{sink}", port={port})')
        python = f"lab.start(tn.apps.{name}({ends}))"
        return Done([f"py {python}"], [python], partial(self._stop, handle.app))

    def stop_app(self, number: int) -> Done:
        """Stop the app `number`, whoever has started it. It is started again where the page knows its settings."""
        report = self._lab.reports([number])[0]
        if report.finished:
            raise BadValue(f"the app {number} has ended already", "see the traffic as it is now")
        note = f"{report.kind} of {report.host} ends"
        if number not in self._known:
            note += "; this cannot be undone: the page has not started it, and the lab keeps no settings of apps"
        return self._stop(number, note)

    def stop_program(self, number: int) -> Done:
        """Ask the program `number` to end, by ``SIGTERM``."""
        job = next((one for one in self._lab.jobs() if one["job"] == number), None)
        if job is None or job["state"] != "running":
            raise BadValue(f"no program {number} runs", "see the traffic as it is now")
        self._lab.connection.signal(job=number, signal=signal.SIGTERM)
        python = f"lab.connection.signal(job={number}, signal=15)"
        note = f"{shlex.join(job['argv'])} in {job['host']} is asked to end; this cannot be undone"
        return Done([f"py {python}"], [python], None, f"{note}: what it had in its memory goes with it")

    def _stop(self, number: int, note: str = "") -> Done:
        self._lab.connection.app_stop(app=number)
        python = f"lab.connection.app_stop(app={number})"
        known = self._known.get(number)
        return Done([f"py {python}"], [python], None if known is None else partial(self._start_again, known), note)

    def _start_again(self, known: _Known) -> Done:
        number = self._lab.start(known.app).app
        self._known[number] = known
        python = f"lab.start({known.python})"
        note = "it begins anew, for the whole of its time"
        return Done([f"py {python}"], [python], partial(self._stop, number), note if "to" in known.app.fields else "")
