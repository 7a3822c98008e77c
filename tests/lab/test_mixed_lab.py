"""Model hosts beside real ones in a lab on the wall clock: each reaches, serves and fetches from the other."""

from __future__ import annotations

import pytest
import twinnet as tn
from twinnet.errors import NotAvailable

MEGABYTE = 1_000_000


def mixed() -> tn.Network:
    net = tn.Network()
    switch = net.switch("s1")
    net.link(net.host("h1"), switch, rate="100 Mbit", delay="1 ms")
    for name in ("m1", "m2"):
        net.link(net.host(name, model=True), switch, rate="100 Mbit", delay="1 ms")
    return net


def test_real_and_model_hosts_ping_serve_and_fetch_from_each_other() -> None:
    with mixed().emulate() as lab:
        pinged = lab["h1"].run("ping -c 2 -i 0.2 m1")
        assert pinged.returncode == 0, pinged.stdout
        pings = [lab.start(tn.apps.ping("m1", to, count=2, interval="100 ms")) for to in ("h1", "m2")]
        fetched = [
            lab.start(tn.apps.http_get("m2", "h1", size="1 MB", port=8081)),
            lab.start(tn.apps.http_get("h1", "m1", size="1 MB", port=8082)),
        ]
        sent = [
            lab.start(tn.apps.tcp_bulk("m1", "h1", size="2 MB", port=5001)),
            lab.start(tn.apps.tcp_bulk("h1", "m2", size="2 MB", port=5002)),
            lab.start(tn.apps.udp("m2", "h1", rate="2 Mbit", duration="500 ms", port=5003)),
        ]
        assert lab.wait([*pings, *fetched, *sent], until=tn.units.Picoseconds(lab.now_ps() + 20 * 10**12))
        # What was sent last is on its way for 2 ms.
        lab.run_until(tn.units.Picoseconds(lab.now_ps() + 10**11))
        flows = {(report.host, report.kind, flow.flow): flow for report in lab.reports() for flow in report.flows}
    for handle, host in zip(pings, ("m1", "m1"), strict=True):
        ping = flows[(host, "ping", handle.flow)]
        assert ping.lost == 0
        # Two links of 1 ms each way; how much more is the machine's affair.
        assert ping.rtt is not None and ping.rtt.min >= 4e9
    assert [
        flows[(host, "http_client", handle.flow)].bytes for handle, host in zip(fetched, ("m2", "h1"), strict=True)
    ] == [
        MEGABYTE,
        MEGABYTE,
    ]
    assert flows[("h1", "tcp_sink", sent[0].flow)].bytes == 2 * MEGABYTE
    assert flows[("m2", "tcp_sink", sent[1].flow)].bytes == 2 * MEGABYTE
    source, sink = flows[("m2", "udp_source", sent[2].flow)], flows[("h1", "udp_sink", sent[2].flow)]
    assert source.packets is not None and sink.packets is not None
    assert sink.packets + (sink.lost or 0) == source.packets
    assert not any(flow.errors for flow in flows.values())


def test_a_model_host_runs_no_programs_and_says_so() -> None:
    with mixed().emulate() as lab:
        with pytest.raises(NotAvailable, match="m1 is a model"):
            lab["m1"].run("true")
        assert lab["h1"].run("getent hosts m2").returncode == 0
