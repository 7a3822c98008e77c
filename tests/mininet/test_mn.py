"""``twinnet mn`` and the prompt: Mininet's options, commands and texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import twinnet

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
