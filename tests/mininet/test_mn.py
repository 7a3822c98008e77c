"""``twinnet mn`` and the prompt: Mininet's options, commands and texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script, twinnet

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")

LINES = """\
nodes
net # with a comment
intfs
ports
links
h1 ping -c1 h2
py h1.IP()
px print('from px')
link s1 h1 down
pingall 1
link s1 h1 up
sh ls /sys/class/net
nonsense
h1
iperf h1
switch s9 stop
source {source}
"""


def test_a_test_from_options_ends_with_the_words_that_scripts_look_for() -> None:
    done = twinnet("mn", "--topo", "tree,depth=2,fanout=2", "--mac", "--arp", "--test", "pingall")
    assert done.returncode == 0
    assert "*** Results: 0% dropped (12/12 received)\n" in done.stderr
    assert "\ncompleted in " in done.stderr


def test_debugging_tells_more_than_what_is_told_anyway() -> None:
    told = {level: twinnet("mn", "-v", level, "--test", "none").stderr for level in ("output", "info", "debug")}
    assert told["output"] == ""
    # Each command, interface and namespace: what Mininet's own test looks for is more than 70 lines.
    assert 0 < told["info"].count("\n") < 40 < 70 < told["debug"].count("\n")
    assert "*** h1 : ('ifconfig', 'h1-eth0', 'up')" in told["debug"]


def test_the_prompt_reads_commands_to_the_end_of_its_input(tmp_path: Path) -> None:
    (tmp_path / "commands").write_text("dump\n")
    lines = LINES.format(source=tmp_path / "commands")
    done = twinnet("mn", "--switch", "ovsbr", "--controller", "none", folder=tmp_path, given=lines)
    said = done.stderr
    assert done.returncode == 0, said
    for expected in (
        "available nodes are: \nh1 h2 s1\n",
        "h1 h1-eth0:s1-eth1\nh2 h2-eth0:s1-eth2\ns1 lo:  s1-eth1:h1-eth0 s1-eth2:h2-eth0\n",
        "h1: h1-eth0\nh2: h2-eth0\ns1: lo,s1-eth1,s1-eth2\n",
        "s1 lo:0 s1-eth1:1 s1-eth2:2 \n",
        "h1-eth0<->s1-eth1 (OK OK) \n",
        "1 packets transmitted, 1 received, 0% packet loss",
        "\n10.0.0.1\n",
        "*** Results: 100% dropped (0/2 received)\n",
        "*** Unknown command: nonsense\n",
        "*** Please enter a command for node: h1 <cmd>\n",
        "invalid number of args: iperf src dst\n",
        "invalid switch: s9\n",
        "<Host h1: h1-eth0:10.0.0.1 pid=",
    ):
        assert expected in said, expected
    assert "from px\n" in done.stdout
    assert "s1-eth1\ns1-eth2\n" in done.stdout


def test_lines_before_and_after_tests_are_done_before_the_switches_start_and_while_they_run(tmp_path: Path) -> None:
    (tmp_path / "before").write_text("sh echo before: $(ovs-vsctl list-br)\nh1 A=kept; echo it is there\n")
    (tmp_path / "after").write_text("sh echo after: $(ovs-vsctl list-br)\nh1 echo $A\n")
    options = ("--switch", "ovsbr", "--controller", "none", "--pre", "before", "--post", "after")
    done = twinnet("mn", *options, "--test", "pingpair", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "before:\nafter: s1\n"), done.stderr
    places = [done.stderr.index(one) for one in ("it is there\n", "*** Starting 1 switches", "*** Results:", "kept\n")]
    assert places == sorted(places), done.stderr


def test_the_network_waits_for_its_switches_where_it_is_to() -> None:
    waiting = "*** Waiting for switches to connect\ns1 s2 \n"
    for options, waits in ((("--wait",), True), ((), False)):
        done = twinnet("mn", *options, "--topo", "linear,2", "--test", "none")
        assert (done.returncode, waiting in done.stderr) == (0, waits), done.stderr
        assert ("Waiting" in done.stderr) == waits


def test_connections_of_nodes_are_printed_byte_for_byte(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.log import setLogLevel
        from mininet.net import Mininet
        from mininet.topo import LinearTopo
        from mininet.util import dumpNodeConnections, dumpNetConnections, dumpPorts
        net = Mininet(topo=LinearTopo(2))
        alone = net.addHost("alone")
        setLogLevel("output")
        dumpNodeConnections(net.hosts)
        dumpNetConnections(net)
        dumpPorts(net.switches)
        setLogLevel("warning")
        """,
    )
    hosts = "h1 h1-eth0:s1-eth1\nh2 h2-eth0:s2-eth1\nalone\n"
    switches = "s1 lo:  s1-eth1:h1-eth0 s1-eth2:s2-eth2\ns2 lo:  s2-eth1:h2-eth0 s2-eth2:s1-eth2\n"
    ports = "s1 lo:0 s1-eth1:1 s1-eth2:2 \ns2 lo:0 s2-eth1:1 s2-eth2:2 \n"
    assert (done.stdout, done.stderr) == ("", f"{hosts}c0\n{switches}{hosts}{ports}")


def test_pings_between_all_hosts_go_on_when_one_is_unplugged() -> None:
    lines = "h2 ip link set h2-eth0 down\npingall 0.5\nh2 ip link set h2-eth0 up\npingall\n"
    done = twinnet("mn", "--switch", "ovsbr", "--controller", "none", "--topo", "single,3", given=lines)
    assert "h1 -> X h3 \nh2 -> X X \nh3 -> h1 X \n*** Results: 66% dropped (2/6 received)\n" in done.stderr
    assert "*** Results: 0% dropped (6/6 received)\n" in done.stderr


def test_custom_files_add_topologies_and_tests(tmp_path: Path) -> None:
    (tmp_path / "custom.py").write_text(
        "from mininet.topo import Topo\n"
        "class Pair(Topo):\n"
        "    def build(self, name='x'):\n"
        "        self.addLink(self.addHost(name + '1'), self.addHost(name + '2'))\n"
        "topos = {'pair': Pair}\n"
        "tests = {'names': lambda net: print(sorted(net.keys()))}\n"
    )
    done = twinnet("mn", "--custom", "custom.py", "--topo", "pair,name=q", "--test", "names", folder=tmp_path)
    assert done.stdout == "['c0', 'q1', 'q2']\n", done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--topo", "nosuch"), 1, "Exception: Invalid topo name nosuch"),
        (("--switch", "nosuch"), 1, "error: nosuch is unknown - please specify one of"),
        (("--nosuch",), 2, "mn: error: no such option: --nosuch"),
        (("--test", "nosuch"), 1, "Test nosuch is unknown - please specify one of"),
        (("--version",), 0, "2.3."),
        (("--clean",), 0, "*** Cleanup complete."),
    ],
)
def test_options_are_answered_as_mininet_answers_them(arguments: tuple[str, ...], status: int, words: str) -> None:
    done = twinnet("mn", *arguments)
    assert words in done.stdout + done.stderr
    assert done.returncode == status
