"""Nodes of scripts: used from threads, with folders of their own, joined to themselves, and with long names."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def test_nodes_are_used_from_threads_at_once(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import os
        from concurrent.futures import ThreadPoolExecutor
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(8), switch=OVSBridge, controller=None)
        net.start()

        def use(host):
            said = [host.cmd(f"A={number}; echo {host} $A").strip() for number in range(30)]
            assert said == [f"{host} {number}" for number in range(30)], said
            pinged = host.popen("ping -c1 -W5 10.0.0.1", text=True).communicate()[0]
            return host.pexec("echo", host)[0].strip(), "1 received" in pinged, host.cmd("echo $A").strip()

        with ThreadPoolExecutor(8) as pool:
            print(sorted(pool.map(use, net.hosts)) == [(f"h{n}", True, "29") for n in range(1, 9)])
        # A thread waits for a program in one node, while other nodes are used.
        os.mkfifo("told")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(net["h1"].cmd, "cat told")
            print(net["h2"].cmd("echo now").strip())
            net["h3"].cmd("echo through > told")
            print(waiting.result().strip())
        net.stop()
        """,
    )
    assert done.stdout == "True\nnow\nthrough\n", done.stdout + done.stderr


def test_the_prompt_leaves_commands_of_other_threads_alone_and_stops_its_own(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import threading, time
        from mininet.cli import CLI
        from mininet.net import Mininet
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(2))
        h1, h2 = net.get("h1", "h2")
        told = []

        def work():
            net.start()
            told.append(h1.cmd("sleep 0.5; echo slept").strip())

        thread = threading.Thread(target=work)
        thread.start()
        h2.sendCmd("sleep 1000")
        CLI(net)
        thread.join()
        print(told, h2.waiting, net.pingAll())
        net.stop()
        """,
    )
    assert done.stdout.endswith("['slept'] False 0.0\n"), done.stdout + done.stderr


def test_private_folders_are_of_their_node_alone_and_those_with_a_place_keep_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "before").touch()
    done = run_script(
        tmp_path,
        f"""
        import subprocess
        from mininet.net import Mininet
        from mininet.node import Host
        from functools import partial
        private = ["/var/run", ("{tmp_path}/shared", "{tmp_path}/kept-%(name)s")]
        net = Mininet(controller=None, host=partial(Host, privateDirs=private))
        h1, h2, plain = net.addHost("h1"), net.addHost("h2"), net.addHost("h3", cls=Host)
        for host in h1, h2, plain:
            host.cmd(f"echo {{host}} > {tmp_path}/shared/whose")
        for host in h1, h2:
            host.cmd(f"echo {{host}} > /var/run/whose-of-{{host}}")
        for host in h1, h2, plain:
            print(host.cmd("cat {tmp_path}/shared/whose; ls {tmp_path}/shared /var/run/whose* 2>&-; true").split())
        print(h1.privateDirs[0], plain.privateDirs, subprocess.getoutput("ls /var/run/whose* 2>&-"))
        net.stop()
        """,
    )
    listed = [f"['{host}', '/var/run/whose-of-{host}', '{tmp_path}/shared:', 'whose']" for host in ("h1", "h2")]
    plain = f"['h3', '{tmp_path}/shared:', 'before', 'whose']"
    assert done.stdout.splitlines() == [*listed, plain, "/var/run [] "], done.stdout + done.stderr
    written = {one.parent.name: one.read_text() for one in tmp_path.glob("*/whose")}
    assert written == {"kept-h1": "h1\n", "kept-h2": "h2\n", "shared": "h3\n"}
    assert not list(Path("/var/run").glob("whose*"))


def test_a_link_of_a_switch_to_itself_is_there_and_does_no_harm(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge, OVSSwitch
        from mininet.util import dumpNodeConnections
        from functools import partial
        for switch in (OVSBridge, partial(OVSSwitch, failMode="standalone")):
            net = Mininet(switch=switch, controller=None)
            h1, h2, s1 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1")
            for host in h1, h2:
                net.addLink(host, s1)
            net.addLink(s1, s1)
            net.addLink(s1, s1, cls=TCLink, bw=10)
            net.start()
            print(s1.intfNames()[1:], net.pingAll())
            dumpNodeConnections(net.switches)
            net.stop()
        """,
    )
    intfs = [f"s1-eth{number}" for number in range(1, 7)]
    assert done.stdout == f"{intfs} 0.0\n" * 2, done.stdout + done.stderr
    pairs = " s1-eth3:s1-eth4 s1-eth4:s1-eth3 s1-eth5:s1-eth6 s1-eth6:s1-eth5\n"
    assert done.stderr.count(f"s1 lo:  s1-eth1:h1-eth0 s1-eth2:h2-eth0{pairs}") == 2
    assert done.returncode == 0


def test_an_interface_name_of_16_characters_is_refused_by_name_and_one_of_15_works(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        net = Mininet(switch=OVSBridge, controller=None)
        h1, h2, s1 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1")
        long = net.addHost("ahostwithalongname")
        for ends, words in (((h1, s1), {"intfName1": "a" * 16}), ((long, s1), {}), ((h1, h2), {"intfName2": "b" * 16})):
            try:
                net.addLink(*ends, **words)
            except Exception as refused:
                print(refused)
        net.addLink(h1, s1, intfName1="a" * 15, intfName2="c" * 15)
        net.addLink(long, s1, intfName1="eth0")
        net.start()
        print(net.ping([h1, long]), h1.cmd("ls /sys/class/net").split())
        net.stop()
        """,
    )
    said = "the interface name '{}' is longer than 15 bytes"
    lines = done.stdout.splitlines()
    assert [line.partition(": ")[2].strip() for line in lines[:3]] == [
        said.format("a" * 16),
        said.format("ahostwithalongname-eth0"),
        said.format("b" * 16),
    ], done.stdout + done.stderr
    assert all(line.startswith("Error creating interface pair (") for line in lines[:3])
    assert lines[3] == f"0.0 ['{'a' * 15}', 'lo']", done.stderr


def test_hosts_take_over_what_a_script_sets_in_its_machine_before(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import os
        from mininet.net import Mininet
        first = [name for name in open("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read().split()]
        usual = open("/proc/sys/net/ipv4/tcp_congestion_control").read().strip()
        other = next(name for name in first if name != usual)
        net = Mininet()
        def settings(name):
            host = net.addHost(name)
            told = host.cmd("sysctl -n net.ipv4.tcp_congestion_control net.ipv4.tcp_rmem net.ipv4.ip_forward").split()
            return told[0].replace(usual, "usual").replace(other, "other"), told[1:]
        before = settings("h1")
        os.system(f"sysctl -qw net.ipv4.tcp_congestion_control={other} net.ipv4.tcp_rmem='4096 50000 60000'")
        os.system("sysctl -qw net.ipv4.ip_forward=1")
        print(before[0], before[1][3], settings("h2"))
        # What is there already keeps what it has.
        print(net["h1"].cmd("sysctl -n net.ipv4.tcp_rmem").split() == before[1][:3])
        os.system(f"sysctl -qw net.ipv4.tcp_congestion_control={usual}")
        print(settings("h3")[0])
        """,
    )
    assert done.stdout.splitlines() == [
        "usual 0 ('other', ['4096', '50000', '60000', '1'])",
        "True",
        "usual",
    ], done.stdout + done.stderr


def test_shells_begin_with_nothing_of_the_script_s_but_its_folder_mask_and_environment(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    done = run_script(
        tmp_path,
        r"""
        import os, signal, subprocess
        from mininet.node import Host, Node
        from twinnet.mininet.execution import start_process

        kept = os.open("below", os.O_RDONLY)
        os.set_inheritable(kept, True)
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        os.chdir("below")
        os.umask(0o027)
        os.environ["ODD"] = "a\udcff b"
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        hosts = [Host(f"h{number}") for number in range(30)]
        signal.setitimer(signal.ITIMER_REAL, 0)
        h1 = hosts[0]
        print(len(seen) > 0, isinstance(h1.shell, subprocess.Popen), h1.shell.args[0])
        print(h1.cmd("echo /proc/$$/fd/*").replace(f"/proc/{h1.pid}/fd/", "").split())
        print(h1.cmd("pwd").strip().endswith("/below"), h1.cmd("umask").strip())
        print(repr(h1.cmd("printenv ODD | od -An -tx1").split()))
        ignored = int(h1.cmd("sh -c 'grep SigIgn /proc/self/status'").split()[1], 16)
        print([signal.Signals(number).name for number in range(1, 32) if ignored >> (number - 1) & 1])
        spaces = {os.readlink(f"/proc/{node.pid}/ns/{kind}") for node in hosts[:2] for kind in ("net", "mnt")}
        print(len(spaces), all(os.getsid(node.pid) == node.pid for node in hosts))
        print(h1.cmd("ls /sys/class/net").split(), h1.shell.poll())
        switch = Node("s1", inNamespace=False)
        print(os.readlink(f"/proc/{switch.pid}/ns/net") == os.readlink("/proc/self/ns/net"))

        null = os.open("/dev/null", os.O_RDWR)
        streams = dict(stdin=null, stdout=null, stderr=null)
        children = len(os.listdir("/proc"))
        usual = os.environ
        for cmd, env in (["no-such"], usual), (["/no/such"], usual), (["true"], {"PATH": "/no:/etc/passwd"}):
            print(start_process(["mnexec", "-cdn", *cmd], env=env, **{**streams, "stderr": 2}).wait())
        try:
            start_process(["mnexec", "-cdn", "tr\0ue"], env=os.environ, **streams)
        except ValueError:
            print("refused")
        print(start_process(["mnexec", "-cdn", "sh", "-c", "exit 3"], env=os.environ, **streams).wait())
        print(len(os.listdir("/proc")) - children)
        """,
    )
    assert done.stdout.splitlines() == [
        "True True bash",
        # 255 is bash's own, and 3 the folder that it reads for this.
        "['0', '1', '2', '255', '3']",
        "True 0027",
        "['61', 'ff', '20', '62', '0a']",
        "['SIGUSR1']",
        "4 True",
        "['lo'] None",
        "True",
        "1",
        "1",
        "1",
        "refused",
        "3",
        "0",
    ], done.stdout + done.stderr
