"""``python -m bench.mininet_scripts FOLDER``: published scripts of Mininet, run on twinnet as they are.

There are two sets: twenty that were known while twinnet was built, and others, by other authors, that were taken when
those worked (``--set second``). FOLDER has the scripts' repositories, each at ``OWNER/NAME``. Nothing is fetched. Each
script runs in a copy of its repository, with what its author would type, and is judged by what its output and its files
show. A script whose programs are missing here is told as such. The rows of the tables in ``docs/reference/mininet.md``
are printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.mininet_tests import COMMAND

__all__ = ["SCRIPTS", "SECOND_SET", "Script", "main", "run_script"]

_PATIENCE_S = 240
_FRR = "/usr/lib/frr/frrinit.sh"
_OF_FRR = ("/etc/frr", "/var/log/frr", "/run/frr")
_OWNED_BY_FRR = f"chown frr:frr {' '.join(_OF_FRR)}"
_OWN = 'for one in {own}; do mkdir -p $one; mount -t tmpfs none $one; done; {before}; exec "$@"'


@dataclass(frozen=True)
class Script:
    """A published script.

    Attributes
    ----------
    repository, commit, path
        Where it is, on GitHub.
    does
        The network and the work, in a few words.
    arguments, given
        Its arguments, and what is typed into it.
    folders
        Folders that its author had beside it.
    own, before
        Folders of the machine that its author filled: empty ones stand for them, where we are root. What fills them,
        for the shell.
    needs
        Programs that it runs, beside those of every Linux.
    packages
        Packages of Python that it imports, beside Mininet's.
    python_2
        Whether it is written for Python 2, and is run with ``--fix-prints``.
    output, files
        Patterns of what its output, and the files that it writes, have when it worked.
    """

    repository: str
    commit: str
    path: str
    does: str
    arguments: Sequence[str] = ()
    given: str = ""
    folders: Sequence[str] = ()
    own: Sequence[str] = ()
    before: str = ""
    needs: Sequence[str] = ()
    packages: Sequence[str] = ()
    python_2: bool = False
    output: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict[str, str])


_KATHARA = "mbroglio/mininet_kathara_comparison"
_THESIS = "Mininet/Thesis Scenarios"
_REACHED, _LOST = r"[ ,]0% packet loss", "100% packet loss"
SCRIPTS = (
    Script(
        "guntas-13/mininet-congestion-control",
        "70707886a6",
        "CongestionComp/congestion_ctrl.py",
        "congestion control over a lossy link, iperf3 from the background",
        ("c1", "reno"),
        "\nh3 sleep 3\nh1 ping -c 1 h7\nexit\n",
        folders=("logs",),
        needs=("iperf3",),
        output=(r"0% dropped \(42/42 received\)", _REACHED),
    ),
    Script(
        "magomez4/cn-Sp23-mininet",
        "107a58d219",
        "congestion_control.py",
        "a dumbbell of switches with equal DPIDs, two flows",
        ("reno", "10", "3"),
        folders=("reno",),
        needs=("iperf3",),
        files={"reno/s1.txt": "receiver", "reno/s2.txt": "receiver"},
    ),
    Script(
        "kristjoc/org-mininet",
        "ee094a52c6",
        "demo-api/1-demo.py",
        "ping and iperf over 10 Mbit/s and 5 ms",
        needs=("iperf",),
        files={"ping.log": _REACHED, "iperf.log": r" ([89]\.\d+|10\.0) Mbits/sec"},
    ),
    Script(
        "kristjoc/org-mininet",
        "ee094a52c6",
        "demo-api/5-demo.py",
        "the congestion window of one of two flows, by ss",
        folders=("data",),
        needs=("iperf", "ss"),
        files={"data/cwnd.dat": r"\d", "data/iperf_h1.dat": "bits/sec"},
    ),
    Script(
        "dbagal/mininet-network-emulation",
        "35603056b8",
        "PartC/myiperf.py",
        "routers with BIRD and netem, both ends of iperf3 from forked processes",
        given="h1 ping -c 1 h2\n",
        needs=("bird", "iperf3"),
        output=(_REACHED,),
    ),
    Script(
        _KATHARA,
        "bba4378baa",
        f"{_THESIS}/OSPF/OSPF.py",
        "OSPF by FRR in four routers, links after the start",
        own=_OF_FRR,
        before=f"{_OWNED_BY_FRR}; cd Copy_To_FRR; sed 's:sudo ::' ../config_frr.sh | bash; cd ..",
        needs=(_FRR,),
        # Its first ping asks for answers at one interface, and the far router has two equal ways: only the second says
        # something.
        output=(rf"packets transmitted[\s\S]*packets transmitted[\s\S]*{_REACHED}",),
    ),
    Script(_KATHARA, "bba4378baa", f"{_THESIS}/StaticRouting/StaticRouting.py", "static routes over two routers"),
    Script(
        _KATHARA,
        "bba4378baa",
        f"{_THESIS}/LoadBalancer/LoadBalancer.py",
        "a load balancer by rules of iptables",
        needs=("iptables-legacy", "iperf3"),
    ),
    Script(
        _KATHARA,
        "bba4378baa",
        f"{_THESIS}/Client - Server/WebServer.py",
        "a web server behind a router, iperf3",
        needs=("iperf3",),
    ),
    Script(
        "gregbo/mininet_frr",
        "483252f9a0",
        "two_router/mn_no_frr.py",
        "routes before the start",
        given="d1 ping -c 2 d2\n",
        output=("ttl=62", _REACHED),
    ),
    Script(
        "gregbo/mininet_frr",
        "483252f9a0",
        "bgp/mn_topo.py",
        "BGP by FRR between three systems",
        given="sh sleep 40\nd1 ping -c 2 d4\n",
        own=_OF_FRR,
        before=f"{_OWNED_BY_FRR}; sed 's:sudo ::' config_frr.sh | bash",
        needs=(_FRR,),
        output=(_REACHED,),
    ),
    Script(
        "raulsteinmetz/nat-mininet",
        "82fd0dbed9",
        "topo2-nat.py",
        "an exercise on address translation",
        given="h1 ping -c 1 h2\nh1 ping -c 1 -W 1 server1\n",
        needs=("iptables", "iperf", "ethtool"),
        output=(_REACHED, _LOST),
    ),
    Script(
        "adhak2014/Mininet-Network-Emulation",
        "acffba3022",
        "static_routes.py",
        "routers as hosts, standalone switches",
        given="h1 ping -c 1 h3\n",
        needs=("ifconfig",),
        output=(r"0% dropped \(30/30 received\)|" + _REACHED,),
    ),
    Script(
        "opendaylight/integration-test",
        "f65244a2a0",
        "csit/libraries/DynamicMininet.py",
        "a prompt of its own that adds switches",
        given="start 127.0.0.1 3\nadd_switch\nsh ovs-vsctl list-br\nexit\n",
        output=(r"s1\ns2\ns3\ns4\n",),
    ),
    Script(
        "knetsolutions/learn-sdn-with-ryu",
        "404fc7a862",
        "mininet_topologies/example1.py",
        "two switches, the controller that comes with Mininet",
        output=(r"0% dropped \(2/2 received\)",),
    ),
    Script(
        "knetsolutions/learn-sdn-with-ryu",
        "404fc7a862",
        "mininet_topologies/group_table_lb.py",
        "a diamond for a group of kind select, by an app of Ryu",
        needs=("ryu-manager",),
    ),
    Script(
        "lucasruchel/mininet-topos",
        "c7a6ee282a",
        "linear.py",
        "times of a cluster of controllers",
        needs=("onos",),
    ),
    Script(
        "bPavan16/mininet-eval",
        "aa8c7888ac",
        "q1/script.py",
        "losses and delays of each host, flows by ovs-ofctl",
        needs=("iperf", "ovs-ofctl"),
        files={"protocol_results.csv": r"802\.11n,[1-9]"},
    ),
    Script(
        "nps-ros2/mininet_testbed",
        "dfc7e99028",
        "scenarios/example1_mod.py",
        "a network of MiniEdit that is never stopped",
        output=(r"Post configure switches and hosts",),
    ),
    Script(
        "Erikascaltrito/On_Demand_Slicing",
        "9f73f04dfd",
        "topology_slice.py",
        "queues and slices by ovs-vsctl in shell files",
        given="h3 ping -c 2 -W 2 h4\n",
        needs=("iperf", "ovs-vsctl", "ovs-ofctl"),
        output=(_REACHED,),
    ),
)
"""The scripts, in the order of the list that they are from."""


def _all_of(number: int) -> str:
    return rf"0% dropped \({number}/{number} received\)"


_ALL = "pingall\nexit\n"
_BLOAT = ("--bw-host", "1000", "--bw-net", "1.5", "--delay", "10", "--dir", "out", "--time", "10", "--maxq", "20")
_RENO = (*_BLOAT, "--cong", "reno")
_TOOLS = "meodaiduoi/mininet-lab-tools"
_OWN_LAB = "stevenvo/mininet-lab"
SECOND_SET = (
    Script(
        "zugdev/mininet-bufferbloat",
        "b23073e2ae",
        "bufferbloat-tcp.py",
        "bufferbloat: iperf, pings and a web page over a short queue",
        _RENO,
        needs=("iperf", "curl"),
        files={"out/ping.txt": "time=", "out/q.txt": r"\d"},
    ),
    Script(
        "steffy-lo/csc458-bufferbloat",
        "54128ed8e6",
        "bufferbloat.py",
        "the same exercise, of another course",
        _RENO,
        needs=("iperf", "curl"),
        packages=("termcolor",),
        python_2=True,
        files={"out/ping.txt": "time=", "out/q.txt": r"\d"},
    ),
    Script(
        "Coner1/assignment2-bufferbloat",
        "6ebcb6421a",
        "main.py",
        "the same exercise, with the kernel's trace of TCP",
        ("20", "10", "reno", "out"),
        needs=("iperf", "/sys/kernel/debug/tracing/tracing_on"),
    ),
    Script(
        "Conoreby/CS244-shrew-attack",
        "39dee3f8de",
        "shrewattack.py",
        "a low-rate attack on TCP",
        (
            "-B",
            "10",
            "-b",
            "1.5",
            "--delay",
            "6",
            "-d",
            "out",
            "--iperf",
            "/usr/bin/iperf",
            "--period",
            "1",
            "--length",
            "0.15",
        ),
        needs=("iperf",),
        packages=("termcolor",),
        python_2=True,
    ),
    Script(
        "tanejavipul/Mininet",
        "d0700d8c19",
        "Topology/simple_topology.py",
        "a router between three networks",
        given=_ALL,
        needs=("route",),
        output=(_all_of(20),),
    ),
    Script(
        "tanejavipul/Mininet",
        "d0700d8c19",
        "Topology/multi_2_router.py",
        "two routers with static routes",
        given=_ALL,
        output=(_all_of(12),),
    ),
    Script(
        "jasseeeem/DDoS-Mininet",
        "cc9e8b764c",
        "counter/ddos.py",
        "nine hosts for an exercise on floods",
        given=_ALL,
        output=(_all_of(72),),
    ),
    Script(
        _TOOLS,
        "a8640a69e5",
        "network-kit/mn/mininet-cookbook/01.getting-started-with-mininet/hello-mn.py",
        "six hosts without a controller",
        given=_ALL,
        output=(_all_of(30),),
    ),
    Script(
        _TOOLS,
        "a8640a69e5",
        "network-kit/simple-http-server/old/ln2_limitedhost.py",
        "hosts with shares of processors",
        given=_ALL,
        output=(r"\(6/6 received\)|[1-5]/6 received",),
    ),
    Script(
        "pavithrabanvari/sdn-mininet-lab",
        "fd8ba6a461",
        "sdn-mininet-lab/single_topo.py",
        "three hosts, the controller that comes with Mininet",
        given=_ALL,
        output=(_all_of(6),),
    ),
    Script(
        "pavithrabanvari/sdn-mininet-lab",
        "fd8ba6a461",
        "sdn-mininet-lab/run_experiment.py",
        "rates and delays under three delays, by an app of Ryu",
        needs=("ryu-manager", "iperf3"),
    ),
    Script(
        _OWN_LAB,
        "677c35ae49",
        "lab1/minimal.py",
        "a first network",
        output=(_all_of(2),),
    ),
    Script(
        _OWN_LAB,
        "677c35ae49",
        "lab1/SingleSwitchTopo.py",
        "a topology of its own",
        python_2=True,
        output=(_all_of(12),),
    ),
    Script(
        _OWN_LAB,
        "677c35ae49",
        "lab2/controllers2.py",
        "two controllers, a tree of switches, built by hand",
        given="exit\n",
        python_2=True,
        output=(_all_of(12),),
    ),
    Script(
        _OWN_LAB,
        "677c35ae49",
        "lab3/limit.py",
        "rates of links, by iperf",
        ("10", "20"),
        needs=("iperf",),
        python_2=True,
        output=(r"9\.[4-6] Mbits/sec",),
    ),
    Script(
        "Ssingh5535/Mininet_Fundamentals",
        "be820d4fc5",
        "04_automating_experiments/automated_experiments.py",
        "lossy links, lines of the prompt from a file, iperf",
        needs=("iperf",),
        output=(r"[ 12]?\d?0% dropped", r"Mbits/sec"),
    ),
    Script(
        "lmendiboure/MQTT_Mininet_Basic_Example",
        "92f2b57740",
        "mqtt-example.py",
        "a network for MQTT",
        given=_ALL,
        output=(_all_of(6),),
    ),
    Script(
        "NS-Projects-Unina/Mininet_MITM",
        "4c2ebc4f33",
        "sourceCode/topology.py",
        "three hosts for an exercise on attacks",
        given=_ALL,
        output=(_all_of(6),),
    ),
    Script(
        "jglara/mininet_networking",
        "4a87a63058",
        "linuxrouter.py",
        "a router between two networks",
        given=_ALL,
        python_2=True,
        output=(_all_of(6),),
    ),
    Script(
        "jglara/mininet_networking",
        "4a87a63058",
        "linuxrouter_switch.py",
        "the same behind switches",
        given=_ALL,
        python_2=True,
        output=(_all_of(12),),
    ),
    Script(
        "Roua111/mininet_mysteries",
        "559b6ceca6",
        "topos/perf_linear_topo.py",
        "four switches in a row with losses, iperf between the ends",
        needs=("iperf",),
        python_2=True,
        output=(r"Results: \['[1-9]",),
    ),
    Script(
        "Roua111/mininet_mysteries",
        "559b6ceca6",
        "topos/CustomTopo.py",
        "a tree of 13 switches",
        given="exit\n",
        output=(r"Stopping 13 switches",),
    ),
    Script(
        "SoonyangZhang/tcp-congestion-mininet",
        "a50ac8de20",
        "5h-ipef.py",
        "routers in a chain",
        given="h1 ping -c 1 h2\nexit\n",
        python_2=True,
        output=(_REACHED,),
    ),
    Script(
        "jonathan-boyd-cs/portfolio-networks-IPerf_Mininet_Performance_Testing",
        "1b7e504dcc",
        "network_bottleneck.py",
        "TCP and UDP over a bottleneck, by iperf3",
        needs=("iperf3",),
        packages=("iperf3",),
        files={"test-results/final/output-tcp-10-100.json": r"[1-9]"},
    ),
    Script(
        "joeseverino/arp-spoofing-mininet-lab",
        "0f81db57dc",
        "topology.py",
        "an exercise on ARP, by an app of POX",
        needs=("pox.py",),
    ),
    Script(
        "Claudiof5/Mininet",
        "a457dc5f4b",
        "sim/sim.py",
        "a root node for the way to the Internet",
        needs=("/etc/network/interfaces",),
    ),
    Script(
        "lucadibello/mininet-yaml",
        "46ecc760c8",
        "emulation.py",
        "networks from files in YAML",
        ("examples/dumbell-network-no-cost.yaml",),
        given=_ALL,
        packages=("ortools",),
    ),
    Script(
        "Sankalpa200307/BGP_HIJACKING_MININET_DEMO",
        "5a5b974ddc",
        "bgp.py",
        "BGP between four systems",
        given="exit\n",
        needs=("/usr/lib/quagga/bgpd",),
        packages=("termcolor",),
    ),
    Script(
        "DINGDAMU/mininet_TCLink",
        "c70e7bd145",
        "topo.py",
        "losses of mobile links from a model",
        given=_ALL,
        python_2=True,
        output=(r"Results: ",),
    ),
)
"""Scripts by other authors, which were taken after twinnet ran those."""


def lacking(script: Script, folder: Path) -> str:
    """Return what of `script` is not here: its source in `folder`, or a program; empty: nothing."""
    if not (folder / script.repository / script.path).is_file():
        return "its source"
    absent = [Path(one).name for one in script.needs if shutil.which(one) is None and not Path(one).is_file()]
    absent += [one for one in script.packages if importlib.util.find_spec(one) is None]
    return ", ".join([*absent, *(["root"] if script.own and os.geteuid() != 0 else [])])


def run_script(script: Script, folder: Path, clock: str = "wall") -> str:
    """Run `script`, from its repository in `folder`, on `clock`, and return what it does not show; empty: it works."""
    with tempfile.TemporaryDirectory(prefix="mininet-script-") as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder / script.repository, copy, ignore=shutil.ignore_patterns(".git"), symlinks=True)
        place = (copy / script.path).parent
        for name in script.folders:
            (place / name).mkdir(exist_ok=True)
        old = ["--fix-prints"] if script.python_2 else []
        command = [*COMMAND, "--clock", clock, *old, Path(script.path).name, *script.arguments]
        if script.own:
            work = _OWN.format(own=" ".join(script.own), before=script.before)
            command = ["unshare", "--mount", "sh", "-c", work, "sh", *command]
        try:
            done = subprocess.run(
                command,
                cwd=place,
                input=script.given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=_PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            return f"not done within {_PATIENCE_S} s"
        if done.returncode != 0:
            return f"status {done.returncode}: {' '.join(done.stdout.split()[-20:])}"
        missing = [f"{pattern!r} in its output" for pattern in script.output if not re.search(pattern, done.stdout)]
        for name, pattern in script.files.items():
            if not (place / name).is_file() or not re.search(pattern, (place / name).read_text(errors="replace")):
                missing.append(f"{pattern!r} in {name}")
        return "; ".join(missing)


def main() -> int:
    """Run all scripts and print the rows of their table, and the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="scripts whose repository or path has this")
    parser.add_argument("--set", default="first", choices=("first", "second"), help="which of the sets")
    parser.add_argument("--clock", default="wall", choices=("wall", "virtual"), help="on which clock")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    for script in SCRIPTS if given.set == "first" else SECOND_SET:
        if given.only not in f"{script.repository}/{script.path}":
            continue
        absent = lacking(script, given.folder)
        wrong = "" if absent else run_script(script, given.folder, given.clock)
        outcome = f"not run: {absent} is not here" if absent else f"fails: {wrong}" if wrong else "works"
        counts[outcome.partition(":")[0]] += 1
        needs = ", ".join([*(Path(one).name for one in script.needs), *script.packages]) or "nothing"
        where = f"`{script.path}` of {script.repository} at {script.commit}"
        print(f"| {where} | {script.does} | {needs} | {outcome} |", flush=True)
    print(", ".join(f"{number} {name}" for name, number in counts.items()))
    return 1 if counts["fails"] else 0


if __name__ == "__main__":
    sys.exit(main())
