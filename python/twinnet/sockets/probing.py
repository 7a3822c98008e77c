"""Estimates available bandwidth from this machine, and answers probers."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twinnet.errors import BadValue, LabError
from twinnet.results.flow_report import FlowReport
from twinnet.sockets.addresses import address_of
from twinnet.sockets.machine import HERE, Machine, Processor
from twinnet.traffic.app import App
from twinnet.traffic.bandwidth import BANDWIDTH_PORT, Probes, bandwidth_listener
from twinnet.traffic.estimator import Estimator, hand_to_the_core
from twinnet.units import Rate, duration_ps

__all__ = ["Probed", "listen_for_probes", "probe"]

_USUAL_PROBES = Probes()

_TURN_PS = 200_000_000_000


@dataclass(frozen=True)
class Probed:
    """An estimate made from this machine.

    Parameters
    ----------
    report
        What the prober reports; its `bandwidth` is the estimate.
    processor
        What the sending thread found about its processor. Doubt an estimate that was made on a shared one.
    """

    report: FlowReport
    processor: Processor

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons to doubt the estimate that come from this machine or the listener's."""
        estimate = self.report.bandwidth
        if estimate is None:
            return ()
        found: list[str] = []
        if estimate.interruptions > 0.01 * max(estimate.probe_packets, 1):
            found.append(f"the sender lost its processor in {estimate.interruptions} of {estimate.probe_packets} gaps")
        if estimate.least_generated_share is not None and (estimate.generated_share or 0.0) < 0.95:
            found.append(f"trains were sent at {100 * (estimate.generated_share or 0):.1f} % of the rates asked for")
        if estimate.trains and estimate.batched_trains > 0.2 * estimate.trains:
            batched = f"{estimate.batched_trains} of {estimate.trains} trains"
            found.append(f"{batched} arrived in batches (interrupt coalescence)")
        if estimate.overflowed:
            found.append(f"the listener's host threw {estimate.overflowed} datagrams away")
        if estimate.clock_steps:
            found.append(f"a clock was set during {estimate.clock_steps} trains")
        return tuple(found)


def probe(
    to: str, method: str | type[Estimator] = "hybrid", probes: Probes = _USUAL_PROBES, *, seed: int = 1, family: int = 0
) -> Probed:
    """Estimate the available bandwidth to the listener at `to`, a name or an address.

    Parameters
    ----------
    to
        The listener's host.
    method
        One of :data:`twinnet.bandwidth.METHODS`, or a class derived from `twinnet.Estimator`.
    probes
        The settings of the estimate.
    seed
        Seed of the method's random numbers.
    family
        ``socket.AF_INET`` or ``AF_INET6`` where a name has both; 0 for the first.

    Raises
    ------
    BadValue
        The name is not known, or a setting is not allowed.
    """
    app = App(HERE, "bandwidth_prober", {**probes.prober_fields(address_of("listener", to, family), method), "flow": 1})
    if code := app.fields["method"].get("code"):
        hand_to_the_core(code)
    with Machine() as machine:
        number = machine.start(app, seed=seed)
        try:
            machine.wait([number])
        except KeyboardInterrupt:
            machine.stop(number)
            machine.wait([number])
        return Probed(machine.reports([number])[0].flows[0], machine.processor())


def listen_for_probes(
    *,
    port: int = BANDWIDTH_PORT,
    most_rate: Rate = "10 Gbit",
    allow: Sequence[str] | None = None,
    duration: str | None = None,
    ready: Callable[[], None] | None = None,
) -> FlowReport:
    """Answer probers until `duration` is over or an interrupt; return what was counted.

    Parameters
    ----------
    port, most_rate, allow
        As for :func:`twinnet.bandwidth.bandwidth_listener`.
    duration
        When to end.
    ready
        Called when the port is open.

    Raises
    ------
    LabError
        The port is in use.
    """
    if allow is not None:
        for address in allow:
            try:
                ipaddress.ip_address(address)
            except ValueError:
                raise BadValue(f"{address!r} is no address", "give addresses such as 10.0.0.1") from None
    with Machine() as machine:
        number = machine.start(bandwidth_listener(HERE, port=port, most_rate=most_rate, allow=allow))
        first = machine.reports([number])[0]
        if first.finished:
            errors = "; ".join(error for flow in first.flows for error in flow.errors)
            raise LabError(
                f"UDP port {port} cannot be used: {errors}",
                f"end what uses it (ss -lnp sport = :{port}), or choose another port",
                "PortNotUsable",
            )
        if ready is not None:
            ready()
        end_ps = None if duration is None else machine.now_ps() + duration_ps(duration)
        with contextlib.suppress(KeyboardInterrupt):
            while end_ps is None or machine.now_ps() < end_ps:
                turn_ps = machine.now_ps() + _TURN_PS
                machine.wait([number], turn_ps if end_ps is None else min(turn_ps, end_ps))
        machine.stop(number)
        machine.wait([number])
        return machine.reports([number])[0].flows[0]
