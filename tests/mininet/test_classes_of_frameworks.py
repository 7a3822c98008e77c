"""Frameworks on Mininet's classes (IPMininet, Containernet, ComNetsEmu, MiniCPS) override what its own code calls,
and read attributes that it keeps: the layout is part of the interface. The classes here do what theirs do."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def test_a_node_with_a_way_of_its_own_to_start_its_shell_is_used_as_any(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        r"""
        import os, pty, select
        from subprocess import Popen
        from mininet.net import Mininet
        from mininet.node import Host, Node, OVSBridge

        class OwnShell(Host):
            def startShell(self, mnopts=None):
                assert self.shell is None and not self.waiting
                self.master, self.slave = pty.openpty()
                words = ["mnexec", "-cdn", "env", "PS1=" + chr(127), "bash", "--norc", "--noediting", "-is"]
                words.append("mininet:" + self.name)
                self.shell = self._popen(words, stdin=self.slave, stdout=self.slave, stderr=self.slave, close_fds=False)
                self.stdin = os.fdopen(self.master, "r")
                self.stdout, self.pid = self.stdin, self.shell.pid
                self.pollOut = select.poll()
                self.pollOut.register(self.stdout)
                self.outToNode[self.stdout.fileno()] = self
                self.inToNode[self.stdin.fileno()] = self
                self.execed, self.lastCmd, self.lastPid, self.readbuf = False, None, None, ""
                while not self.read(1024).endswith(chr(127)):
                    self.pollOut.poll()
                self.waiting = False
                self.cmd("unset HISTFILE; stty -echo; set +m")

        class Wrapped(Host):
            def _popen(self, cmd, **params):
                options = 3 if "a" in cmd[1] else 2
                return super()._popen([*cmd[:options], "env", "OF=" + self.name, *cmd[options:]], **params)

        net = Mininet(host=OwnShell, switch=OVSBridge, controller=None)
        own, wrapped, switch = net.addHost("h1"), net.addHost("h2", cls=Wrapped), net.addSwitch("s1")
        for host in own, wrapped:
            net.addLink(host, switch)
        net.start()
        print(f"{net.pingAll():.0f}", own.cmd("cd /; A=3; echo $A").strip(), own.cmd("pwd; echo $A").split())
        print(wrapped.cmd("echo $OF").strip(), isinstance(own.shell, Popen), own.intfNames(), own.IP())
        print(Node.fdToNode(own.stdout.fileno()) is own, Node.outToNode[own.stdout.fileno()] is own)
        own.sendCmd("sleep 0.1; echo done")
        print(own.waiting, own.waitOutput().strip(), own.waiting, repr(own.readbuf), own.lastCmd)
        print(own.pexec("echo", "by itself"), wrapped.popen(["printenv", "OF"], text=True).communicate())
        net.stop()
        print(own.shell, len(Node.outToNode))
        """,
    )
    assert done.stdout.splitlines() == [
        "0 3 ['/', '3']",
        "h2 True ['h1-eth0'] 10.0.0.1",
        "True True",
        "True done False '' sleep 0.1; echo done",
        "('by itself\\n', '', 0) ('h2\\n', '')",
        "None 0",
    ], done.stdout + done.stderr


def test_networks_interfaces_and_links_may_override_what_mininet_calls(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        r"""
        from mininet.link import Intf, Link, TCIntf, TCLink
        from mininet.net import Mininet
        from mininet.node import Host, Node, OVSBridge
        from mininet.topo import Topo

        class OwnIntf(TCIntf):
            def __init__(self, name, node=None, port=None, link=None, mac=None, **params):
                self.said = []
                super().__init__(name, node, port, link, mac, **params)

            def config(self, bw=None, igp=None, **params):
                self.igp = igp
                return super().config(bw=bw, **params)

            def setIP(self, ipstr, prefixLen=None):
                self.said.append((ipstr, prefixLen))
                return super().setIP(ipstr, prefixLen)

        class OwnLink(Link):
            def __init__(self, node1, node2, params1=None, params2=None, **settings):
                super().__init__(
                    node1, node2, cls1=OwnIntf, cls2=OwnIntf, params1={**settings, **(params1 or {})},
                    params2={**settings, **(params2 or {})},
                )

        class Router(Node):
            def __init__(self, name, inNamespace=True, *, daemons=(), **params):
                super().__init__(name, inNamespace, **params)
                self.daemons = daemons
                self.loopback = Intf("lo", node=self, port=-1, moveIntfFn=lambda *_: None)

            def config(self, **params):
                told = super().config(**params)
                self.cmd("sysctl -w net.ipv4.ip_forward=1")
                return told

            def terminate(self):
                print("ends", self.name)
                super().terminate()

        class OwnTopo(Topo):
            def addRouter(self, name, **settings):
                return self.addNode(name, isRouter=True, **settings)

            def routers(self, sort=True):
                return [node for node in self.nodes(sort) if self.isNodeType(node, "isRouter")]

            def isNodeType(self, node, key):
                return self.nodeInfo(node).get(key, False)

            def hosts(self, sort=True):
                return [node for node in super().hosts(sort) if not self.isNodeType(node, "isRouter")]

            def build(self, *args, **params):
                router = self.addRouter("r1", daemons=("one",))
                for number in 1, 2:
                    net = f"10.0.{number}"
                    host = self.addHost(f"h{number}", ip=f"{net}.2/24", defaultRoute=f"via {net}.1")
                    self.addLink(host, router, params2={"ip": f"{net}.1/24"}, igp=number, bw=100)

        class OwnNet(Mininet):
            def __init__(self, router=Router, link=OwnLink, **settings):
                self.router, self.routers = router, []
                super().__init__(link=link, controller=None, **settings)

            def addRouter(self, name, cls=None, **settings):
                self.routers.append(made := (cls or self.router)(name, **settings))
                self.nameToNode[name] = made
                return made

            def buildFromTopo(self, topo=None):
                for name in topo.routers():
                    settings = dict(topo.nodeInfo(name))
                    settings.pop("isRouter")
                    self.addRouter(name, **settings)
                return super().buildFromTopo(topo)

            def build(self):
                super().build()
                for router in self.routers:
                    router.config()
                self.built = True

            def stop(self):
                for router in self.routers:
                    router.terminate()
                super().stop()

        net = OwnNet(topo=OwnTopo())
        net.start()
        router = net["r1"]
        print(net.built, router.daemons, [str(intf) for intf in router.intfList()], sorted(router.ports.values()))
        print([intf.igp for intf in router.intfList() if isinstance(intf, OwnIntf)], router.nameToIntf["r1-eth1"].ip)
        print(router.intfs[0].said, {type(link).__name__ for link in net.links}, router.params)
        print(net.ping([net["h1"], net["h2"]]))
        net.stop()
        """,
    )
    assert done.stdout.splitlines() == [
        "True ('one',) ['lo', 'r1-eth0', 'r1-eth1'] [-1, 0, 1]",
        "[1, 2] 10.0.2.1",
        "[('10.0.1.1/24', None)] {'OwnLink'} {}",
        "0.0",
        "ends r1",
    ], done.stdout + done.stderr
