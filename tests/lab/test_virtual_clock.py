"""The virtual clock: the same events for the same seed, time that passes only when asked, and what models cannot do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import twinnet as tn
from fake_lab import FakeLab
from shared_processors import stretched_s
from twinnet import _core, errors
from twinnet.lab import virtual_connection
from twinnet.lab.lab import Lab

SOURCE = str(Path(tn.__file__).parent.parent)
PAIRS = 3


def pairs(**link: object) -> tn.Network:
    """Pairs of hosts a1-b1, a2-b2, ... that share nothing."""
    network = tn.Network(seed=5)
    for number in range(1, PAIRS + 1):
        network.link(network.host(f"a{number}"), network.host(f"b{number}"), **({"rate": "10 Mbit"} | link))
    return network


def poisson(number: int) -> tn.apps.Flow:
    settings = {"rate": "2 Mbit", "process": "poisson", "duration": "2 s", "interval": "10 ms"}
    return tn.apps.udp(f"a{number}", f"b{number}", **settings)


def endless(lab: Lab) -> None:
    """Work that takes this machine far longer than any of these tests."""
    for number in range(1, PAIRS + 1):
        lab.start(tn.apps.udp(f"a{number}", f"b{number}", rate="9 Mbit", payload="100 B", duration="1000 h"))


def trace(seed: int, steps: int = 1) -> str:
    with pairs(loss="1 %").simulate(seed=seed) as lab:
        for number in range(1, PAIRS + 1):
            lab.start(poisson(number))
        for step in range(1, steps + 1):
            lab.run_until(f"{step * 3000 // steps} ms")
        return lab.trace_hash


def test_the_same_seed_gives_the_same_events_and_another_seed_others() -> None:
    assert trace(7) == trace(7) != trace(8)
    assert len(trace(7)) == 16
    int(trace(7), 16)


def test_events_are_the_same_in_another_process() -> None:
    code = "import sys; sys.path += sys.argv[1:]; import test_virtual_clock; print(test_virtual_clock.trace(7))"
    here = Path(__file__).parent
    found = {
        subprocess.run(
            [sys.executable, "-c", code, str(here), str(here.parent / "support")],
            env={**os.environ, "PYTHONPATH": SOURCE, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {trace(7)}


def test_how_time_is_sliced_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trace(7)
    assert trace(7, steps=100) == whole
    monkeypatch.setattr(virtual_connection, "_PATIENCE_S", 0.0)
    assert trace(7) == whole


def test_another_flow_leaves_the_random_numbers_of_the_others_as_they_were() -> None:
    def counts(*order: int) -> list[tuple[int, ...]]:
        with pairs().simulate() as lab:
            flows = {number: lab.start(poisson(number)) for number in order}
            lab.run_until("3 s")
            found = [flows[number].report().intervals for number in (1, 2)]
        return [one.packets for one in found if one is not None]

    assert counts(1, 2) == counts(3, 2, 1)
    assert counts(1, 2)[0] != counts(1, 2)[1]


def test_equal_flows_of_one_host_have_random_numbers_of_their_own() -> None:
    with pairs().simulate() as lab:
        flows = [lab.start(poisson(1)) for _ in range(2)]
        lab.run_until("3 s")
        first, second = (flow.report().intervals for flow in flows)
    assert first is not None
    assert second is not None
    assert first.packets != second.packets


def test_time_passes_only_when_it_is_asked_to() -> None:
    with pairs().simulate() as lab:
        assert (lab.clock, lab.now_ps()) == ("virtual", 0)
        flow = lab.start(tn.apps.udp("a1", "b1", rate="1 Mbit", duration="5 s"), at="2 s")
        assert lab.now_ps() == 0
        lab.run_until("1 s")
        assert lab.now_ps() == 10**12
        lab.run_until("500 ms")
        assert lab.now_ps() == 10**12
        assert lab.wait([flow], until="100 s")
        assert lab.now() == pytest.approx(7.0, abs=0.1)


def test_a_wait_for_what_never_ends_stops_at_its_time() -> None:
    with pairs().simulate() as lab:
        sink = lab.start(tn.apps.udp_sink("b1"))
        assert not lab.wait([sink], until="3 s")
        assert lab.now_ps() == 3 * 10**12


def test_equal_sources_into_an_overloaded_port_have_equal_shares() -> None:
    network = tn.Network(seed=11)
    switch = network.switch("s1")
    network.link(switch, network.host("sink"), rate="4 Mbit", queue=tn.qos.Fifo(20))
    for number in range(1, 9):
        network.link(network.host(f"h{number}"), switch, rate="100 Mbit")
    with network.simulate() as lab:
        flows = [
            lab.start(tn.apps.udp(f"h{number}", "sink", rate="1 Mbit", payload="1000 B", duration="60 s"))
            for number in range(1, 9)
        ]
        lab.run_until("62 s")
        received = [flow.report().bytes or 0 for flow in flows]
    fair = sum(received) / len(received)
    assert fair * 8 * 8 / 60 == pytest.approx(4e6 * 1000 / 1066, rel=0.02)
    assert all(abs(one - fair) <= 0.05 * fair for one in received), received


def test_programs_need_real_hosts_and_the_refusal_names_host_and_remedy() -> None:
    with pairs().simulate() as lab:
        for call in (lambda: lab["a1"].run("ls"), lambda: lab["a1"].popen(["ls"])):
            with pytest.raises(errors.NotAvailable, match=r"a1 is a model on the virtual clock.*net.emulate\(\)"):
                call()
        with pytest.raises(errors.NotAvailable, match="this lab has no name"):
            _ = lab.name
        with pytest.raises(errors.NotAvailable, match="no process of its own"):
            _ = lab.pid
        assert lab.jobs() == []


def test_a_model_on_the_wall_clock_runs_no_programs_either(fake: FakeLab) -> None:
    fake.spec["nodes"][1]["model"] = True
    name = fake.spec["nodes"][1]["name"]
    with pytest.raises(errors.NotAvailable, match=f"{name} is a model and runs no programs.*model=True"):
        fake.lab[name].run("ls")
    assert fake.asked("spawn") == []


def test_the_wall_clock_has_no_trace_hash(fake: FakeLab) -> None:
    with pytest.raises(errors.NotAvailable, match=r"net.simulate\(\)"):
        _ = fake.lab.trace_hash


@pytest.mark.parametrize("act", ["start", "at"])
def test_the_past_cannot_be_changed(act: str) -> None:
    with pairs().simulate() as lab:
        lab.run_until("2 s")
        with pytest.raises(errors.BadValue, match="the moment '1 s' is past: the lab's clock shows 2 s"):
            if act == "start":
                lab.start(poisson(1), at="1 s")
            else:
                lab.at("1 s")


def test_the_end_of_the_clock_is_refused_where_it_is_named() -> None:
    with pairs().simulate() as lab, pytest.raises(errors.BadQuantity, match="out of range; allowed are"):
        lab.run_until("5000 h")


def test_options_of_real_hosts_are_refused() -> None:
    with pytest.raises(errors.BadValue, match="no interfaces of the kernel"):
        Lab(pairs(), interface="tap", clock="virtual")
    with pytest.raises(errors.BadValue, match="neither realtime nor slip_after_ps"):
        Lab(pairs(), clock="virtual", realtime="off")


def test_a_refusal_of_the_lab_keeps_its_name() -> None:
    with pairs().simulate() as lab, pytest.raises(errors.LabError) as caught:
        lab.connection.link_set(link=77, set={"up": False})
    assert caught.value.name == "UnknownLink"


def test_a_capture_is_a_file_of_frames(tmp_path: Path) -> None:
    path = tmp_path / "a1.pcapng"
    with pairs().simulate() as lab:
        with lab.capture("a1-eth0", str(path)) as capture:
            lab.wait([lab.start(tn.apps.ping("a1", "b1", count=3, interval="100 ms"))], until="5 s")
        assert capture.frames >= 6
    assert path.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    assert path.stat().st_size > 6 * 98


def test_who_only_looks_changes_no_hash(tmp_path: Path) -> None:
    def trace(looked_at: bool) -> str | None:
        with pairs().simulate(seed=4) as lab:
            if looked_at:
                lab.sample(["a1-eth0"], "10 ms")
                lab.capture("a1-eth0", str(tmp_path / "a1.pcapng"))
            lab.start(tn.apps.tcp_bulk("a1", "b1", duration="500 ms"))
            lab.run_until("1 s")
            return lab.trace_hash

    assert trace(looked_at=True) == trace(looked_at=False)


def test_an_interrupt_is_heard_within_a_second() -> None:
    with pairs().simulate() as lab:
        endless(lab)
        struck: list[float] = []

        def strike() -> None:
            struck.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(0.3, strike)
        # Should the interrupt not be heard, the lab is ended, and the test fails instead of going on for ever.
        given_up = threading.Timer(20, lab.stop)
        # Who starts tests in the background may have told them to ignore interrupts.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            timer.start()
            given_up.start()
            with pytest.raises(KeyboardInterrupt):
                lab.run_until("1000 h")
            assert time.monotonic() - struck[0] < stretched_s(1.0)
        finally:
            given_up.cancel()
            timer.join()
            signal.signal(signal.SIGINT, before)


def test_a_lab_that_another_thread_ends_tells_who_waits() -> None:
    with pairs().simulate() as lab:
        endless(lab)
        timer = threading.Timer(0.2, lab.stop)
        timer.start()
        with pytest.raises(errors.LabClosed):
            lab.run_until("1000 h")
        timer.join()


def test_other_threads_run_while_time_passes() -> None:
    network = json.dumps(pairs().to_spec())
    lab = _core.VirtualLab(network)
    with pairs().simulate() as described:
        sender = {"kind": "udp_source", "to": described["b1"].ip, "port": 5003, "flow": 1, "payload_bytes": 100}
    app = sender | {"rate_bps": 9_000_000, "process": "constant", "duration_ps": 10**15}
    lab.request(json.dumps({"do": "app.start", "host": "a1", "app": app, "at_ps": None, "seed": 1}))
    advance = json.dumps({"do": "advance", "until_ps": 10**15})
    thread = threading.Thread(target=lambda: lab.request(advance, 0.5))
    begin = time.monotonic()
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
        time.sleep(0.001)
    # Were the interpreter's lock held, the first turn would last until the end.
    assert turns > 20
    assert time.monotonic() - begin >= 0.3


def test_processing_time_breaks_the_phase_in_which_a_small_buffer_meets_segments() -> None:
    def goodput_mbit(**processing: str) -> float:
        net = tn.Network(seed=1)
        s1, s2 = net.switch("s1"), net.switch("s2")
        net.link(net.host("a", **processing), s1, rate="1 Gbit")
        net.link(net.host("b", **processing), s2, rate="1 Gbit")
        net.link(s1, s2, rate="10 Mbit", delay="5 ms", queue_a=tn.qos.Fifo(limit="3028 B"))
        with net.simulate(seed=1) as lab:
            flow = lab.start(tn.apps.tcp_bulk("a", "b", duration="20 s", congestion_control="reno"))
            lab.run_until("20 s")
            return flow.report().bytes * 8 / 20e6

    # Linux, with 40 us between acknowledgement and segment, gets 3.9 Mbit/s (docs/explanation/tcp-beside-linux.md).
    assert goodput_mbit() > 7
    assert 3.5 < goodput_mbit(processing="40 us", processing_jitter="20 us normal") < 5
