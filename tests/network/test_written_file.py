"""A network that is written as a file is the same network when the file is opened."""

from __future__ import annotations

from typing import Any

import pytest
import twinnet as tn
from twinnet.network.topology_file import parse_network
from twinnet.network.written_file import written_network
from twinnet.network.written_link import written_settings
from twinnet.qos.queue_text import as_python, queue_from_spec, queue_from_text, queue_text


def by_name(spec: dict[str, Any]) -> dict[str, Any]:
    return spec | {"nodes": sorted(spec["nodes"], key=lambda node: node["name"])}


def impaired() -> tn.Network:
    net = tn.Network(seed=7)
    net.switch("s1", dpid=9, fail_mode="secure", flows=["priority=3,ip,actions=output:2"], delay="3 us")
    net.switch("s2", vlans={1: {"tag": 10}, 2: {"trunks": [10, 20]}}, mirrors=[{"to": {"port": 2}, "all": True}])
    net.switch("edge", controllers=["tcp:127.0.0.1:6653"], control_delay="2 ms", protocols=["OpenFlow13"])
    net.host("h1", ip="10.1.0.1/24", ip6=False, mac="02:00:00:00:00:77", gateway="10.1.0.254")
    net.host(
        "h2", sysctls={"net.ipv4.tcp_congestion_control": "reno"}, processing="5 us", processing_jitter="1 us normal"
    )
    net.host("h3", model=True, interrupt_delay="50 us", interrupt_frames=8)
    net.router("r1", routes=[("10.9.0.0/16", "10.1.0.7")], image="frr:latest", processors=1.5, memory="64 MiB")
    volumes = ["/srv/a:/a", "/srv/b:/b:ro"]
    net.host("h4", image="i.tar", volumes=volumes, environment={"COLOUR": "dark blue"}, command="sh -c 'sleep 9'")
    net.link("h1", "s1", rate="10 Mbit", delay="1.5 ms", loss="1 %", mtu=1400)
    net.link("s1", "r1", address_b="10.1.0.254/24", port_a=7, up=False, jitter="1 ms pareto_normal", reorder=True)
    net.link("s1", "s2", a_to_b={"rate": "1 Mbit"}, b_to_a={"rate": "2 Mbit", "loss": tn.GilbertElliott(0.01, 0.2)})
    net.link("s2", "s1", parallel=True, duplicate="0.3 %", corrupt="33.3 %", framing="hdlc")
    net.link("h2", "s2", jitter=tn.JitterTable(["0 s", "1 ms"]), tunnel=tn.vxlan(42))
    net.link("h2", "edge", address_a="10.7.0.1/24", delivery_trace=[1, 2, 2, 5])
    net.link("h3", "edge", queue_b=tn.qos.Htb(rate="5 Mbit", queues={1: tn.qos.HtbQueue(min_rate="1 Mbit")}))
    net.at("2 s").link("s2", "h2").set("ab", rate="3 Mbit", loss=None)
    return net


@pytest.mark.parametrize(
    "net",
    [
        tn.templates.single(3, rate="10 Mbit"),
        tn.templates.tree(2, 3, delay="1 ms", queue=tn.qos.Codel(target="7 ms")),
        tn.templates.dumbbell(3, rate="100 Mbit", bottleneck={"rate": "10 Mbit"}),
        impaired(),
    ],
)
def test_a_written_network_opens_as_the_same(net: tn.Network) -> None:
    spec = net.to_spec()
    text = written_network(spec, ["The first line.", "The second."])
    assert text.startswith("# The first line.\n# The second.\n")
    assert by_name(parse_network(text).to_spec()) == by_name(spec)


def test_what_is_as_by_default_is_left_out() -> None:
    lines = written_network(tn.templates.single(2).to_spec()).splitlines()
    assert lines[0] == "seed: 1"
    assert not [line for line in lines if "10.0.0" in line or "delay" in line or "dpid" in line]


def test_the_controller_in_the_process_is_written_by_its_name() -> None:
    net = tn.templates.single(2)
    net.controller("tcp:127.0.0.1:6653")
    spec = net.to_spec()
    assert by_name(parse_network(written_network(spec)).to_spec()) == by_name(spec)
    spec["nodes"][0]["controllers"] = ["app:learning"]
    assert "controller: {app: learning}" in written_network(spec)


def test_what_a_file_cannot_say_is_refused_and_named() -> None:
    net = tn.templates.single(2)
    net.tunnel("s1", tn.vxlan(7, remote="192.0.2.1"))
    with pytest.raises(tn.errors.NotAvailable, match="tun1 is a tunnel"):
        written_network(net.to_spec())
    spec = tn.templates.single(2).to_spec()
    spec["nodes"][1]["ports"][0]["name"] = "eth77"
    with pytest.raises(tn.errors.NotAvailable, match=r"nodes\[\d\]\.ports\[0\]\.name would be another"):
        written_network(spec)


@pytest.mark.parametrize(
    "settings",
    [
        {"rate": "10 Mbit/s", "delay": "1.5 ms", "jitter": "1 ms normal", "loss": "12.5 %"},
        {"rate": None, "delay": "0 s", "jitter": None, "loss": None, "duplicate": 0, "reorder": True, "up": False},
        {"loss": "33.3 %", "corrupt": "0.1 %", "framing": "none", "jitter": "3 us"},
    ],
)
def test_settings_are_written_as_they_are_read(settings: dict[str, Any]) -> None:
    from twinnet.network.link_settings import direction_spec

    assert written_settings(direction_spec(settings)) == settings


@pytest.mark.parametrize("text", ["fifo", "fifo,limit=64KiB", "codel,target=7ms,ecn=true", "red,min=30kB", "sfq"])
def test_a_queue_is_written_as_it_is_read(text: str) -> None:
    queue = queue_from_text(text)
    assert queue_text(queue) == text
    again = queue_from_spec(queue.to_spec())
    assert again.to_spec() == queue.to_spec()
    assert eval(as_python(again), {"tn": tn}).to_spec() == queue.to_spec()


def test_a_queue_with_queues_in_it_has_python_and_no_text() -> None:
    queue = tn.qos.Htb(rate="5 Mbit", queues={1: tn.qos.HtbQueue(min_rate="1 Mbit", queue=tn.qos.Codel())})
    again = queue_from_spec(queue.to_spec())
    assert again.to_spec() == queue.to_spec()
    assert queue_text(again) is None
    assert eval(as_python(again), {"tn": tn}).to_spec() == queue.to_spec()
