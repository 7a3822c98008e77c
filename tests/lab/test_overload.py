"""A lab that is asked for more than the machine can do must say so."""

from __future__ import annotations

import os
import signal
import time

import pytest
import twinnet as tn
from twinnet.errors import LabError, NotAvailable


@pytest.fixture
def needs_labs():
    try:
        with tn.Network().emulate():
            pass
    except (LabError, NotAvailable) as error:
        pytest.skip(f"this machine cannot run labs: {error}")


def test_a_lab_that_is_overloaded_on_purpose_is_caught(needs_labs):
    """Eight sources of 9 Gbit/s each, over four switches: one thread sends and receives them all, and another reads and
    writes them, so that 72 Gbit/s are copied several times over by each. Small datagrams do not do: in trains
    4,000,000 a second were seen to pass without a loss."""
    network = tn.Network()
    left, *rest = [network.switch(f"s{number}") for number in range(1, 5)]
    previous = left
    for switch in rest:
        network.link(previous, switch, rate="100 Gbit")
        previous = switch
    for number in range(1, 9):
        network.link(network.host(f"a{number}"), left, rate="10 Gbit")
        network.link(network.host(f"b{number}"), previous, rate="10 Gbit")
    with network.emulate() as lab:
        flows = [
            lab.start(tn.apps.udp(f"a{number}", f"b{number}", rate="9 Gbit", duration="2 s")) for number in range(1, 9)
        ]
        lab.wait(flows, until="10 s")
        verdict = lab.fidelity().verdict()
        senders = [report for report in lab.reports() if report.kind == "udp_source"]
    complaints = [error for sender in senders for flow in sender.flows for error in flow.errors]
    assert len(senders) == 8
    assert verdict.state != "valid", (verdict, complaints)
    if any("could not keep up" in error for error in complaints):
        assert any("could not keep up" in reason for reason in verdict.reasons), verdict


def test_a_lab_that_stood_still_is_invalid_and_says_for_how_long(needs_labs):
    network = tn.templates.single(2, rate="10 Mbit")
    with network.emulate() as lab:
        # Some frame is on its way at any moment, so that something is due meanwhile.
        flow = lab.start(tn.apps.udp("h1", "h2", rate="9 Mbit", payload="1000 B", duration="1500 ms"))
        lab.run_until("500 ms")
        os.kill(lab.pid, signal.SIGSTOP)
        try:
            time.sleep(0.3)  # The machine's other work, as the lab sees it: nothing is waited for here.
        finally:
            os.kill(lab.pid, signal.SIGCONT)
        lab.wait([flow], until="5 s")
        record = lab.fidelity()
    assert record.longest_slip_ps > 250e9
    verdict = record.verdict()
    assert verdict.state == "invalid"
    assert any("stood still" in reason for reason in verdict.reasons), verdict


def test_a_lab_with_next_to_nothing_to_do_is_valid_or_blames_the_machine(needs_labs):
    network = tn.templates.single(2, rate="10 Mbit")
    with network.emulate() as lab:
        lab["h1"].run("ping -c 5 -i 0.05 h2", check=True)
        record = lab.fidelity()
    assert record.handed_over >= 10
    assert record.overload_drop_share == 0
    for reason in record.verdict().reasons:
        assert "slipped" in reason or "stood still" in reason or "handed over" in reason or "hypervisor" in reason
