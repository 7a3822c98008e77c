"""Scripts beside others and beside the caller's programs: nobody sees or ends what is not its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import COMMAND, run_script

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")

MEETING = """
    import os, subprocess, sys
    from mininet.net import Mininet
    from mininet.node import OVSBridge
    from mininet.topo import SingleSwitchTopo
    net = Mininet(topo=SingleSwitchTopo(int(sys.argv[1])), switch=OVSBridge, controller=None)
    net.start()
    net["h1"].cmd(f"echo > /dev/shm/of-{sys.argv[1]}; cd /tmp; MINE={sys.argv[1]}")
    print("ready", flush=True)
    input()
    print(net["h1"].cmd("echo $MINE").strip(), net.pingAll(), sorted(os.listdir("/sys/class/net"))[1:],
          subprocess.getoutput("ps ax -o args= | grep -c '[m]ininet:h'"), flush=True)
    input()
    print(net.pingAll(), flush=True)
    net.stop()
    """


def test_two_scripts_with_the_same_names_run_at_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(MEETING))
    settings = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    both = [subprocess.Popen([*COMMAND, "mininet", str(script), number], **settings) for number in ("2", "3")]
    said: list[list[str]] = []
    try:
        for step in ("", "\n"):
            for one in both:
                assert one.stdin is not None
                one.stdin.write(step)
                one.stdin.flush()
            said.append([read(one) for one in both])
        # The other goes on when one has ended.
        last, other = both
        assert last.communicate("\n", timeout=60)[0] == "0.0\n"
        assert other.communicate("\n", timeout=60)[0] == "0.0\n"
    finally:
        for one in both:
            one.kill()
            one.communicate()
    assert said == [
        ["ready", "ready"],
        ["2 0.0 ['s1', 's1-eth1', 's1-eth2'] 2", "3 0.0 ['s1', 's1-eth1', 's1-eth2', 's1-eth3'] 3"],
    ]


def read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.skipif(shutil.which("killall") is None, reason="killall is not installed")
def test_a_script_that_kills_by_name_kills_its_own_alone(tmp_path: Path) -> None:
    program = tmp_path / "server-of-a-lab"
    shutil.copy2("/bin/sleep", program)
    with subprocess.Popen([str(program), "1000"]) as outside:
        try:
            done = run_script(
                tmp_path,
                """
                import subprocess, time
                from mininet.net import Mininet
                net = Mininet(controller=None)
                h1 = net.addHost("h1")
                h1.cmd("./server-of-a-lab 1000 &")
                programs = lambda: subprocess.getoutput("ps ax -o args= | grep -c '[s]erver-of-a-lab 1000'")
                def until(count):
                    # A process has its name when it has become its program, and until its parent takes note of its end.
                    for _ in range(200):
                        if len(subprocess.getoutput("pidof server-of-a-lab").split()) == count:
                            return
                        time.sleep(0.05)
                until(1)
                print(programs(), end=" ")
                # As root of its machine, by three ways, in the machine and in a host.
                subprocess.run("killall -9 server-of-a-lab; pkill -9 -f server-of; mn -c", shell=True, stderr=-3)
                until(0)
                print(h1.cmd("killall -9 server-of-a-lab").strip().split(":")[-1].strip(), end=" ")
                print(programs())
                """,
            )
            assert done.stdout == "1 no process found 0\n", done.stdout + done.stderr
            assert outside.poll() is None
        finally:
            outside.kill()


@pytest.mark.parametrize(
    "command", [(*COMMAND, "mininet"), (sys.executable, "-m", "twinnet.mininet")], ids=["command", "module"]
)
def test_files_of_the_user_stand_in_for_nothing_of_ours(tmp_path: Path, command: tuple[str, ...]) -> None:
    for name in ("http", "queue", "random", "tempfile", "yaml"):
        (tmp_path / f"{name}.py").write_text(f"print('own {name}')\n")
    (tmp_path / "script.py").write_text(
        "from mininet.net import Mininet\nnet = Mininet(controller=None)\n"
        "print(net.addHost('h1').cmd('echo up').strip())\nimport yaml\n"
    )
    done = subprocess.run([*command, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("up\nown yaml\n", 0), done.stderr


def test_the_module_runs_a_script_as_the_command_does(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom mininet.net import Mininet\nnet = Mininet(controller=None)\n"
        "print(net.addHost('h1').cmd('hostname -s >/dev/null; echo', *sys.argv[1:]).strip())\nsys.exit(7)\n"
    )

    def module(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "twinnet.mininet", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    done = module("script.py", "-a", "two")
    assert (done.stdout, done.returncode) == ("-a two\n", 7), done.stderr
    usage = "usage: python -m twinnet.mininet SCRIPT [ARGUMENTS]; `twinnet mininet` has options\n"
    assert (module().returncode, module().stderr) == (2, usage)
    assert (module("--strict", "script.py").returncode, module("--help").stdout) == (2, usage)
    missing = module("nothing.py")
    assert (missing.returncode, missing.stderr) == (2, "twinnet: nothing.py: No such file or directory\n")
