"""The parts that need no machine: topologies, addresses, and what parameters of links mean."""

from __future__ import annotations

import os
import signal

import pytest
from twinnet.mininet import addresses, names, util
from twinnet.mininet.execution import start_process
from twinnet.mininet.log import lg
from twinnet.mininet.shaping import Shaping, netem_time_ps
from twinnet.mininet.topo import LinearTopo, SingleSwitchReversedTopo, Topo
from twinnet.mininet.topolib import TorusTopo, TreeTopo


def test_topologies_name_nodes_and_number_ports() -> None:
    tree = TreeTopo(2, 3)
    assert tree.switches() == ["s1", "s2", "s3", "s4"]
    assert tree.hosts() == [f"h{number}" for number in range(1, 10)]
    assert tree.links(sort=True)[0] == ("s1", "s2")
    assert LinearTopo(2, 2).hosts() == ["h1s1", "h1s2", "h2s1", "h2s2"]
    assert SingleSwitchReversedTopo(3).port("h1", "s1") == (0, 3)
    assert len(TorusTopo(3, 4).links()) == 3 * 4 * 3
    with pytest.raises(Exception, match="3x3 or greater"):
        TorusTopo(2, 3)


def test_parallel_links_have_keys_and_settings_of_their_own() -> None:
    class Parallel(Topo):
        def build(self) -> None:  # type: ignore[override]
            self.addLink(self.addHost("a"), self.addHost("b"), bw=1)
            self.addLink("b", "a", bw=2)

    topo = Parallel()
    assert [info["bw"] for _, _, _, info in topo.iterLinks(withKeys=True, withInfo=True)] == [1, 2]
    assert topo.linkInfo("a", "b", 2)["node1"] == "b"
    assert topo.port("a", "b") == [(0, 0), (1, 1)]


def test_addresses_are_counted_and_written() -> None:
    assert addresses.ipAdd(3, 24, addresses.ipParse("192.168.5.0")) == "192.168.5.3"
    assert addresses.ipParse("10.1") == 0x0A000001
    assert addresses.netParse("10.0/8") == (0x0A000000, 8)
    assert addresses.macColonHex(258) == "00:00:00:00:01:02"
    assert sorted(["h10", "h2"], key=addresses.natural) == ["h2", "h10"]
    assert addresses.fmtBps("9560000") == "9.6 Mbits/sec"
    assert addresses.fmtBps(1500, "M") == "0.0 Mbits/sec"
    with pytest.raises(AssertionError, match="Not enough"):
        addresses.ipAdd(300, 24)


def test_times_are_read_as_netem_reads_them() -> None:
    assert netem_time_ps("5ms") == 5 * 10**9
    assert netem_time_ps("0.5s") == 5 * 10**11
    assert netem_time_ps(5) == 5 * 10**6
    assert netem_time_ps("fast") is None
    assert netem_time_ps("5 parsecs") is None


def test_parameters_become_a_line_and_its_queue() -> None:
    shaping = Shaping.of(10, "5ms", "1ms", 2, 50)
    assert shaping.direction() == {
        "framing": "none",
        "rate_bps": 10_000_000,
        "delay_ps": 5 * 10**9,
        "jitter": {"distribution": "uniform", "scale_ps": 10**9},
        "reorder": True,
        "loss": {"model": "bernoulli", "probability": 0.02},
    }
    assert shaping.queue == {"kind": "fifo", "limit_frames": 50}
    assert shaping.words() == "10.00Mbit 5ms delay 1ms jitter 2.00000% loss"
    assert Shaping().direction() == {"framing": "none"}
    marking = Shaping.of(10, None, None, None, None, enable_ecn=True)
    assert marking.queue is not None
    assert (marking.queue["kind"], marking.queue["ecn"], marking.words()) == ("red", True, "10.00Mbit ECN")


def test_classes_get_preset_arguments() -> None:
    made = util.customClass({"d": dict}, "d,a=1")
    assert made(b=2) == {"a": 1, "b": 2}
    assert util.splitArgs("tree,2,fanout=3") == ("tree", [2], {"fanout": 3})
    assert util.custom(dict, a=1)(a=2) == {"a": 1}
    with pytest.raises(Exception, match="is unknown"):
        util.customClass({}, "nosuch")


def test_modules_have_the_same_objects_under_both_names() -> None:
    import sys

    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "mininet"}
    try:
        names.install()
        for name in names.MODULES:
            assert sys.modules[f"mininet.{name}"] is sys.modules[f"twinnet.mininet.{name}"]
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "mininet"]:
            del sys.modules[name]
        sys.modules.update(before)


def test_options_of_mnexec_are_done_without_it(capfd: pytest.CaptureFixture[str]) -> None:
    process = start_process(["mnexec", "-cd", "sh", "-c", "ps -o sid= -p $$; echo $$"])
    assert process.wait() == 0
    session, pid = capfd.readouterr().out.split()
    assert session == pid == str(process.pid)


def test_a_script_s_own_preparation_of_a_process_follows_that_of_mnexec(capfd: pytest.CaptureFixture[str]) -> None:
    process = start_process(["mnexec", "-d", "sh", "-c", "echo ready"], preexec_fn=lambda: os.write(1, b"own\n"))
    assert process.wait() == 0
    assert capfd.readouterr().out.split() == ["own", "ready"]


def test_a_program_that_is_not_there_is_told_by_its_name(capfd: pytest.CaptureFixture[str]) -> None:
    for program in ("no-such-program", "/etc/passwd"):
        assert start_process(["mnexec", "-cd", program]).wait() == 1
    told = ["no-such-program: No such file or directory", "/etc/passwd: Permission denied"]
    assert capfd.readouterr().err.splitlines() == told
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        start_process(["no-such-program"])
    with pytest.raises(FileNotFoundError, match="no-such-folder"):
        start_process(["mnexec", "-cd", "true"], cwd="/no-such-folder")


def test_an_ignored_interrupt_of_the_script_is_none_of_its_processes() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = start_process(["mnexec", "-d", "sleep", "1000"])
    finally:
        signal.signal(signal.SIGINT, before)
    process.send_signal(signal.SIGINT)
    assert process.wait() == -signal.SIGINT


def test_messages_are_joined_by_blanks_and_never_taken_for_formats(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    handler = lg.ch
    write = handler.handle
    try:
        handler.handle = lambda record: said.append(record.getMessage())  # type: ignore[method-assign, return-value]
        lg.output("100%", "of", 3)
        lg.output("5% loss\n")
    finally:
        handler.handle = write  # type: ignore[method-assign]
    assert said == ["100% of 3", "5% loss\n"]
