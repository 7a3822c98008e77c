"""Scripts written for Mininet, run unchanged: nodes, links, switches, measurements, and the machine around them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import COMMAND, run_script, twinnet

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def test_all_hosts_of_a_topology_reach_each_other_by_the_default_controller(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        from mininet.topo import LinearTopo
        net = Mininet(topo=LinearTopo(3), waitConnected=True)
        net.start()
        print("lost", net.pingAll())
        net.stop()
        """,
    )
    assert done.stdout == "lost 0.0\n", done.stderr
    assert "*** Results: 0% dropped (6/6 received)\n" in done.stderr
    assert done.returncode == 0


def test_a_node_keeps_its_shell_with_folder_variables_and_jobs(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import subprocess
        from mininet.net import Mininet
        net = Mininet()
        h = net.addHost("h1", ip="10.0.0.7/24")
        h.cmd("cd /tmp; A=three")
        print(h.cmd("pwd").strip(), h.cmd("echo $A").strip())
        h.cmd("sleep 100 &")
        print(h.lastPid == int(h.cmd("echo $!")), "sleep 100" in h.cmd("jobs"))
        h.cmd("kill %sleep; wait")
        print(repr(h.cmd("jobs")), h.cmd("ps -o args= -p", h.pid).split()[-1])
        h.sendCmd("sleep 100")
        # As at any terminal, an interrupt before the shell has begun the program does not reach that.
        while b"sleep" not in subprocess.run(["ps", "-o", "comm=", "--ppid", str(h.pid)], stdout=-1).stdout:
            pass
        h.sendInt()
        print(repr(h.waitOutput()), h.waiting)
        print(h.pexec("sh", "-c", "echo out; echo err >&2; exit 3"))
        print(h.popen("cat", stdin=-1).communicate(b"through")[0])
        print(h.cmd("mnexec -a", h.pid, "ls /sys/class/net").split(), repr(h))
        """,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "/tmp three", done.stderr
    assert lines[1] == "True True"
    assert lines[2] == "'' mininet:h1"
    assert lines[3].endswith("False")
    assert lines[4:6] == ["('out\\n', 'err\\n', 3)", "b'through'"]
    assert re.fullmatch(r"\['lo'\] <Host h1:  pid=\d+> ", lines[6])


def test_shaped_lines_have_their_delays_between_hosts_and_through_switches(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        net = Mininet(switch=OVSBridge, link=TCLink, controller=None)
        h1, h2, s1 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1")
        r1, r2 = net.addHost("r1", ip="10.9.0.1/24"), net.addHost("r2", ip="10.9.0.2/24")
        net.addLink(h1, s1, delay="15ms")
        net.addLink(h2, s1)
        net.addLink(r1, r2, delay="10ms", bw=100)
        net.start()
        for host, to in ((h1, "10.0.0.2"), (r1, "10.9.0.2")):
            host.cmd("ping -c1", to)
            print(host.cmd("ping -c5 -i0.2 -q", to).split("\\n")[-2])
        """,
    )
    trips = [float(text) for text in re.findall(r"mdev = ([0-9.]+)/", done.stdout)]
    # The shortest round trip is the delay of both ways, and at most a few frames' handling more.
    assert 30 <= trips[0] < 31.5, done.stdout + done.stderr
    assert 20 <= trips[1] < 21.5


@pytest.mark.quiet
def test_both_ends_of_iperf_tell_the_rate_of_a_shaped_link(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from functools import partial
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(2, lopts=dict(bw=10)), switch=OVSBridge, link=TCLink, controller=None)
        net.start()
        print(net.iperf(fmt="m", seconds=5))
        net.stop()
        """,
    )
    rates = [float(text) for text in re.findall(r"([0-9.]+) mbits/sec", done.stdout.lower())]
    assert len(rates) == 2, done.stdout + done.stderr
    # Of the 1514 bytes of a full frame that count, 1448 are payload: 9.56 Mbit/s.
    assert all(9.4 <= rate <= 9.6 for rate in rates), rates


@pytest.mark.parametrize("kind", ["use_htb", "use_hfsc", "use_tbf"])
def test_the_first_frames_of_a_shaped_link_keep_its_rate(tmp_path: Path, kind: str) -> None:
    (tmp_path / "receive.py").write_text(
        "import socket, time\n"
        "sock = socket.socket(type=socket.SOCK_DGRAM)\n"
        "sock.bind(('', 9000))\n"
        "print('ready', flush=True)\n"
        "for _ in range(2 * 8): print(sock.recv(2000)[:1].decode(), time.monotonic())\n"
    )
    (tmp_path / "send.py").write_text(
        "import socket, sys, time\n"
        "sock = socket.socket(type=socket.SOCK_DGRAM)\n"
        "begun = time.monotonic()\n"
        "for number in range(8): sock.sendto(sys.argv[1].encode() * 1472, ('10.0.0.2', 9000))\n"
        "print(begun)\n"
    )
    done = run_script(
        tmp_path,
        f"""
        import time
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import SingleSwitchTopo
        topo = SingleSwitchTopo(2, lopts=dict(bw=1, {kind}=True, max_queue_size=100))
        net = Mininet(topo=topo, switch=OVSBridge, link=TCLink, controller=None, autoStaticArp=True)
        net.start()
        h1, h2 = net.hosts
        receiver = h2.popen("python3", "receive.py", text=True)
        receiver.stdout.readline()
        for burst in "ab":
            print(burst, h1.cmd("python3 send.py", burst).strip(), flush=True)
            # A token bucket would be full again.
            time.sleep(1)
        print(receiver.communicate()[0], end="")
        net.stop()
        """,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 2 * (1 + 8), done.stdout + done.stderr
    frame_s = 1514 * 8 / 1e6
    for burst in "ab":
        begun, *arrived = [float(moment) for name, moment in lines if name == burst]
        # Each frame is whole at the switch before it goes on, over a second line. A late machine makes them later.
        assert all(at - begun >= (number + 2) * frame_s for number, at in enumerate(arrived)), (begun, arrived)


def test_links_go_down_and_up_and_shaping_changes_while_the_network_runs(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        net = Mininet(switch=OVSBridge, link=TCLink, controller=None)
        h1, h2, s1 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1")
        link = net.addLink(h1, s1)
        net.addLink(h2, s1)
        net.start()
        print(net.ping([h1, h2]))
        net.configLinkStatus("h1", "s1", "down")
        print(net.ping([h1, h2], timeout="0.5"))
        net.configLinkStatus("h1", "s1", "up")
        print(net.ping([h1, h2]))
        link.intf2.config(delay="40ms")
        print(40 <= float(h1.cmd("ping -c1 10.0.0.2").split("min/avg/max/mdev = ")[1].split("/")[0]) < 45)
        h3 = net.addHost("h3", ip="10.0.0.33/8")
        net.addLink(h3, s1)
        s1.attach("s1-eth3")
        h3.configDefault()
        print(net.ping([h2, h3]))
        net.delLinkBetween(h2, s1)
        print(net.ping([h1, h3]))
        """,
    )
    assert done.stdout.split() == ["0.0", "100.0", "0.0", "True", "0.0", "0.0"], done.stdout + done.stderr


def test_a_controller_that_is_not_there_lets_only_flows_forward_and_one_in_the_machine_joins(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import subprocess
        from mininet.net import Mininet
        from mininet.node import RemoteController
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(2), controller=lambda name: RemoteController(name, port=17654))
        net.start()
        print(net.waitConnected(timeout=0.1), net.pingAll(timeout="0.3"))
        with subprocess.Popen(["controller", "ptcp:17654"]) as program:
            # On a busy machine the controller may say what to do some seconds after it has joined.
            print(net.waitConnected(timeout=20), min(net.pingAll(timeout="1") for _ in range(5)))
            program.kill()
        """,
    )
    assert done.stdout.split() == ["False", "100.0", "True", "0.0"], done.stderr
    assert "Unable to contact the remote controller at 127.0.0.1:17654" in done.stderr


def test_a_controller_beside_the_machine_is_reached_too(tmp_path: Path) -> None:
    script = """
        import sys
        from mininet.net import Mininet
        from mininet.node import RemoteController
        from mininet.topo import SingleSwitchTopo
        remote = RemoteController("c0", ip="127.0.0.1", port=int(sys.argv[1]))
        net = Mininet(topo=SingleSwitchTopo(2), controller=remote)
        net.start()
        print(net.waitConnected(timeout=20), net.pingAll())
        """
    module = [COMMAND[0], "-P", "-m", "twinnet.mininet.learning_controller", "ptcp:17653"]
    with subprocess.Popen(module) as program:
        done = run_script(tmp_path, script, "17653")
        program.kill()
    assert done.stdout.split() == ["True", "0.0"], done.stderr


def test_what_mininet_ignores_is_told_once_and_refused_when_strict(tmp_path: Path) -> None:
    script = """
        from mininet.link import TCLink
        from mininet.net import Mininet
        net = Mininet()
        one, other = net.addHost("h1"), net.addHost("h2")
        net.addLink(one, other, bw=10)
        net.addLink(one, other, bw=10)
        net.addLink(one, other, cls=TCLink, delay=5, use_htb=True, bandwith=3, cost=2)
        link = net.addLink(one, other, cls=TCLink, cost=7)
        assert link.intf1.params["cost"] == 7
        print("made")
        """
    done = run_script(tmp_path, script)
    assert done.stdout == "made\n", done.stderr
    assert done.stderr.count("bw given to a plain link, which Mininet ignores") == 1
    assert "delay=5 has no unit, and tc reads microseconds" in done.stderr
    assert "bandwith is no setting of a link, which Mininet keeps in params and ignores; write bw if" in done.stderr
    assert done.stderr.count("cost is no setting of a link") == 1 and "use_htb" not in done.stderr

    refused = twinnet("mininet", "--strict", str(tmp_path / "script.py"), folder=tmp_path)
    assert refused.returncode == 1
    assert "use link=TCLink" in refused.stderr


def test_words_of_a_shaped_link_that_tc_does_not_read_are_told_as_mininet_tells_them(tmp_path: Path) -> None:
    script = """
        import sys
        from mininet.link import TCLink
        from mininet.net import Mininet
        net = Mininet(link=TCLink, controller=None)
        ends = net.addHost("h1"), net.addHost("h2")
        words = {"jitter": {"jitter": "1ms"}, "delay": {"bw": 10, "delay": "5 ms"}, "bw": {"bw": "11Mbps"}}
        net.addLink(*ends, **words[sys.argv[1]])
        print("made")
        """
    jitter, delay, bw = (run_script(tmp_path, script, word) for word in ("jitter", "delay", "bw"))
    assert (jitter.stdout, delay.stdout, bw.stdout) == ("made\n", "made\n", "")
    assert "jitter='1ms' without delay, which Mininet leaves out; give delay too" in jitter.stderr
    assert '*** Error: Illegal "latency"\n' in delay.stderr
    assert bw.stderr.endswith("bw='11Mbps' is no number of Mbit/s (write bw=11 for 11 Mbit/s)\n")
    for word in ("jitter", "delay"):
        assert twinnet("mininet", "--strict", str(tmp_path / "script.py"), word, folder=tmp_path).returncode == 1


def test_commands_that_were_refused_are_told_at_the_end_and_fail_when_strict(tmp_path: Path) -> None:
    script = """
        import sys
        from mininet.net import Mininet
        net = Mininet(controller=None)
        s1 = net.addSwitch("s1", failMode="standalone")
        h1 = net.addHost("h1")
        net.addLink(h1, s1)
        net.start()
        for _ in range(2):
            h1.cmd("tc qdisc add dev h1-eth0 root cake bandwidth 10mbit")
        s1.cmd("ovs-vsctl set port s1-eth1 bond_mode=active-backup -- list-br")
        # These ask, or take away what is not there: the network is as it was to be.
        h1.cmd("tc qdisc del dev h1-eth0 root; tc -s qdisc show dev h1-eth0 root wrong")
        s1.cmd("ovs-vsctl br-exists s9; ovs-vsctl get bridge s9 name; ovs-vsctl --if-exists del-br s9; "
               "ovs-vsctl del-port s1 none; ovs-ofctl dump-flows s9")
        print("done")
        net.stop()
        if sys.argv[1] == "leaves":
            sys.exit(0)
        """
    for word in ("ends", "leaves"):
        done = run_script(tmp_path, script, word)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
        told = done.stderr.split("twinnet: 2 commands were refused, and the script went on without:\n")[1].splitlines()
        assert told[0].startswith(
            "    tc qdisc add dev h1-eth0 root cake bandwidth 10mbit: qdisc cake is not there; "
        ), told
        assert told[0].endswith("(2 times)"), told
        assert told[1].startswith("    ovs-vsctl set port s1-eth1 bond_mode=active-backup -- list-br: ovs-vsctl: ")
        assert not told[2:], told
        strict = twinnet("mininet", "--strict", str(tmp_path / "script.py"), word, folder=tmp_path)
        assert (strict.returncode, strict.stdout) == (1, "done\n"), strict.stderr


def test_addresses_and_routes_that_ip_refuses_are_told_and_refused_when_strict(tmp_path: Path) -> None:
    script = """
        import sys
        from mininet.net import Mininet
        settings = {
            "route": {"defaultRoute": "10.0.0.254"},
            "mac": {"mac": "00:00:00:00:00:zz"},
            "group": {"mac": "01:00:00:00:00:01"},
            "prefix": {"ip": "10.0.0.7/33"},
            "byte": {"ip": "10.0.0.300/24"},
            "six": {"ip": "fd00::1/64"},
            "short": {"ip": "10.7/8", "mac": "00:00:00:00:00:07", "defaultRoute": "dev h1-eth0"},
        }
        net = Mininet(controller=None)
        h1, h2 = net.addHost("h1", **settings[sys.argv[1]]), net.addHost("h2")
        net.addLink(h1, h2)
        net.start()
        if sys.argv[1] == "short":
            h1.setARP("10.0.0.300", "00:00:00:00:00:01")
            h1.setHostRoute("10.0.0.300", "h1-eth0")
        print(h1.cmd("ip -4 -br addr show h1-eth0").split()[2:], h1.IP())
        net.stop()
        """
    told = {
        "route": "h1 has no default route by 'dev 10.0.0.254' (",
        "mac": "h1-eth0 does not get the hardware address 00:00:00:00:00:zz (",
        "group": "h1-eth0 does not get the hardware address 01:00:00:00:00:01 (",
        "prefix": "h1-eth0 does not get the address 10.0.0.7/33 (/33 is no prefix length of IPv4); write ip=",
        "byte": "h1-eth0 does not get the address 10.0.0.300/24 (10.0.0.300: Unknown host); write ip=",
        "six": "write node.cmd('ip addr add fd00::1/64 dev h1-eth0'), for setIP is of IPv4 alone",
    }
    for word, expected in told.items():
        done = run_script(tmp_path, script, word)
        assert (done.returncode, done.stderr.count(expected)) == (0, 1), (word, done.stderr)
        strict = twinnet("mininet", "--strict", str(tmp_path / "script.py"), word, folder=tmp_path)
        assert (strict.returncode, strict.stdout, expected.split(";")[0] in strict.stderr) == (1, "", True), word
    short = run_script(tmp_path, script, "short")
    assert short.stdout == "['10.0.0.7/8'] 10.7\n", short.stderr
    assert "does not get" not in short.stderr and "no default route" not in short.stderr
    assert "h1 has no entry of 00:00:00:00:00:01 for 10.0.0.300 (" in short.stderr
    assert "h1 has no route to 10.0.0.300 by h1-eth0 (" in short.stderr


def test_a_script_that_raises_ends_with_its_own_traceback_and_one_that_exits_with_its_status(tmp_path: Path) -> None:
    raised = run_script(tmp_path, "from mininet.net import Mininet\n\ndef fail():\n    raise KeyError('a')\n\nfail()\n")
    assert raised.returncode == 1
    assert raised.stderr.startswith("Traceback (most recent call last):\n")
    assert "importlib" not in raised.stderr
    assert "twinnet/mininet/script.py" not in raised.stderr
    assert raised.stderr.endswith("KeyError: 'a'\n")
    assert run_script(tmp_path, "import sys; print(sys.argv[1:]); sys.exit(7)", "a", "-b").returncode == 7
    old = run_script(tmp_path, "print 'hello'\n")
    assert old.returncode == 1
    assert "is written for Python 2" in old.stderr


def test_the_script_has_a_machine_of_its_own_with_the_callers_files(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import os, subprocess
        from mininet.net import Mininet
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(2), controller=None)
        print(os.geteuid(), sorted(os.listdir("/sys/class/net")), os.getcwd())
        print(subprocess.getoutput("sudo -E A=3 whoami; which mn; ps ax -o args= | grep -c '[m]ininet:h'"))
        open("written", "w").write(net["h1"].cmd("echo by a host"))
        """,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == f"0 ['lo', 's1-eth1', 's1-eth2'] {tmp_path}", done.stderr
    assert lines[1] == "root"
    assert lines[2].endswith("/mn")
    assert lines[3] == "2"
    assert (tmp_path / "written").read_text().strip() == "by a host"


def test_a_script_sees_the_control_groups_and_changes_none_and_its_verdict_knows_of_quotas(tmp_path: Path) -> None:
    groups = Path("/sys/fs/cgroup")
    done = run_script(
        tmp_path,
        """
        import errno, os
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import SingleSwitchTopo
        print(sorted(os.listdir("/sys/fs/cgroup")))
        refusals = set()
        for folder, folders, files in os.walk("/sys/fs/cgroup"):
            for name in "made", *files:
                try:
                    os.mkdir(f"{folder}/{name}") if name == "made" else open(f"{folder}/{name}", "w")
                    refusals.add(f"{folder}/{name} was changed")
                except OSError as refused:
                    refusals.add(errno.errorcode[refused.errno])
        print(sorted(refusals - {"EACCES"}))
        net = Mininet(topo=SingleSwitchTopo(2), switch=OVSBridge, controller=None)
        net.start()
        net.pingAll()
        net.stop()
        """,
    )
    there, refusals = done.stdout.splitlines()[:2]
    assert there == str(sorted(entry.name for entry in groups.iterdir())), done.stderr
    assert refusals in ("['EROFS']", "[]")
    assert "fidelity" in done.stderr
    if any(place.exists() for place in (groups / "cpu.stat", groups / "cpu" / "cpu.stat")):
        assert "cpu.stat" not in done.stderr


def test_nothing_is_left_of_a_script_that_is_killed_or_stops_nothing(tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}"
    script = tmp_path / "script.py"
    script.write_text(
        "import time\nfrom mininet.net import Mininet\nfrom mininet.topo import SingleSwitchTopo\n"
        "net = Mininet(topo=SingleSwitchTopo(2))\nnet.start()\n"
        f"net['h1'].cmd('bash -c \"exec -a {mark} sleep 1000\" &')\n"
        "print('ready', flush=True)\ntime.sleep(1000)\n"
    )
    before = interfaces()
    with subprocess.Popen([*COMMAND, "mininet", str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            # The shell has started it, and it may not have its name yet.
            assert become(mark, 1) == 1
        finally:
            process.send_signal(signal.SIGKILL)
    assert become(mark, 0) == 0
    assert interfaces() == before


@pytest.mark.parametrize("to_all", [True, False])
def test_an_interrupt_reaches_the_script_once_whether_it_is_sent_to_all_or_to_the_command_alone(
    tmp_path: Path, to_all: bool
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import time\nfrom mininet.net import Mininet\nnet = Mininet()\nnet.addHost('h1')\n"
        "try:\n    print('ready', flush=True)\n    time.sleep(100)\nexcept KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "time.sleep(0.5)\nprint(net['h1'].cmd('echo goes on').strip())\nraise SystemExit(7)\n"
    )
    command = [*COMMAND, "mininet", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            if to_all:
                os.killpg(process.pid, signal.SIGINT)
            else:
                process.send_signal(signal.SIGINT)
            assert process.stdout.read() == "interrupted\ngoes on\n"
            assert process.wait(20) == 7
        finally:
            process.kill()


def become(mark: str, wanted: int) -> int:
    """Return how many processes are called `mark`, when they are as many as `wanted` or after 10 s."""
    deadline = time.monotonic() + 10
    while (found := len(processes(mark))) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def interfaces() -> list[str]:
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


def processes(mark: str) -> list[str]:
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == mark.encode():
                found.append(folder.name)
    return found


def test_a_forked_child_and_its_parent_both_use_a_node_that_was_just_made(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import os
        from mininet.net import Mininet

        net = Mininet()
        h1 = net.addHost("h1")
        child = os.fork()
        if child == 0:
            print(h1.cmd("echo child").strip(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(h1.cmd("echo parent").strip())
        net.stop()
        """,
    )
    assert done.stdout.split() == ["child", "parent"], done.stderr


def test_commands_of_a_node_whose_shell_has_ended_return_instead_of_waiting(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import subprocess
        from mininet.net import Mininet
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(3), controller=None)
        net.start()
        print(repr(net["h1"].cmd("kill -9 $$")), net["h1"].cmd("true"))
        subprocess.run(["mn", "-c"], stderr=subprocess.DEVNULL)
        print(net["h2"].cmd("true"))
        net["h3"].sendCmd("true")
        print(repr(net["h3"].waitOutput()))
        net.stop()
        """,
    )
    assert done.stdout == "'' None\nNone\n''\n", done.stderr
    assert "(h1 exited - ignoring cmd('true',))" in done.stderr
