"""Scripts on the virtual clock: exact, the same each time, with their files brought back, and a prompt at which time
stands."""

from __future__ import annotations

import compileall
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import twinnet as tn
from kernels_here import needs_a_kernel
from mininet_scripts import COMMAND, twinnet
from ordinary_user import an_ordinary_user
from terminal_session import TerminalSession
from twinnet.mininet.written_files import WrittenFiles

pytestmark = needs_a_kernel
needs_iperf3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
needs_ping = pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
REPEATED = """
    import os, random, time
    from mininet.link import TCLink
    from mininet.net import Mininet
    from mininet.topo import SingleSwitchTopo
    net = Mininet(topo=SingleSwitchTopo(3, lopts=dict(bw=10, delay="3ms", loss=1)), link=TCLink, waitConnected=True)
    net.start()
    h1, h2, h3 = net.hosts
    print(h3.cmd("date +%s.%N"), random.random(), sorted({"a", "b", "c"}, key=hash), h1.MAC(), sorted(os.environ))
    h2.cmd("iperf3 -s -D")
    time.sleep(0.5)
    print(h1.cmd("iperf3 -c 10.0.0.2 -t 1"), h1.cmd("ping -D -c 3 -i 0.3 10.0.0.3"))
    print(h3.cmd("date +%s.%N"), time.time())
    net.stop()
    """


def run(
    folder: Path, text: str, *options: str, given: str = "", arguments: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run the script with `options` on the virtual clock."""
    (folder / "script.py").write_text(textwrap.dedent(text))
    return twinnet("mininet", "--clock", "virtual", *options, "script.py", *arguments, folder=folder, given=given)


@needs_ping
def test_round_trips_are_arithmetic_and_time_passes_as_the_script_says(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import sys, time
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        net = Mininet(link=TCLink, switch=OVSBridge, controller=None)
        s1 = net.addSwitch("s1")
        for n in (1, 2):
            net.addLink(net.addHost(f"h{n}"), s1, bw=10, delay="5ms")
        net.start()
        net["h1"].cmd("ping -c1 10.0.0.2")
        print(net["h1"].cmd("ping -c 10 10.0.0.2").splitlines()[-1])
        begin = time.time()
        time.sleep(50)
        print(round(time.time() - begin, 3), sys.argv[1:])
        net.stop()
        raise SystemExit(3)
        """,
        arguments=("--topo", "x"),
    )
    trips, slept = done.stdout.splitlines()
    least, mean, most = (float(one) for one in re.findall(r"[0-9.]+", trips)[:3])
    # Four times 5 ms, and 98 bytes at 10 Mbit/s as tc counts them; Linux's calls cost a few microseconds.
    assert 20.3136 <= least <= mean <= most < 20.3136 + 0.02, trips
    assert slept == "50.0 ['--topo', 'x']"
    assert re.search(r"^twinnet: fidelity: valid, [56]\d(\.\d+)? s, \d+ frames", done.stderr, re.M), done.stderr
    assert done.returncode == 3


@needs_iperf3
def test_an_idle_network_sleeps_and_a_line_without_a_rate_carries_what_a_fast_machine_does(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import re, time
        from pathlib import Path
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import SingleSwitchTopo
        net = Mininet(SingleSwitchTopo(2), switch=OVSBridge, controller=None, link=TCLink)
        net.start()
        h1, h2 = net.hosts
        def sleeps():
            places = [one for one in Path("/proc").glob("*/task/*") if one.parent.parent.name.isdigit()]
            (fabric,) = (one for one in places if (one / "comm").read_text().strip() == "fabric")
            return int(re.search("^voluntary_ctxt_switches:(.*)", (fabric / "status").read_text(), re.M)[1])
        h1.cmd("ping -c1 10.0.0.2")
        before = sleeps()
        time.sleep(100)
        print("sleeps", sleeps() - before)
        h2.cmd("iperf3 -s -D")
        for amount in ("400M", "4M"):
            print(h1.cmd(f"sleep 0.1; iperf3 -f m -n {amount} -c 10.0.0.2 | grep receiver"))
            h1.intfs[0].config(bw=100), h2.intfs[0].config(bw=100)
        net.stop()
        """,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"^sleeps (\d+)", done.stdout, re.M)
    # It looks once a second whether a wake-up was lost.
    assert found and int(found[1]) <= 120, done.stdout
    fast, slow = (float(one) for one in re.findall(r"([0-9.]+) Mbits/sec", done.stdout))
    # 27 us for a segment of 65160 bytes; both begin slowly.
    assert 17_000 < fast < 19_500 and 85 < slow < 96, done.stdout


@needs_iperf3
@needs_ping
def test_a_script_gives_the_same_to_the_nanosecond_whoever_runs_it(tmp_path: Path) -> None:
    (deep := tmp_path / "/".join(["a-folder"] * 5)).mkdir(parents=True)
    first = run(tmp_path, REPEATED)
    assert first.stdout.count("iperf Done") == 1, first.stdout + first.stderr
    # Its lines lose frames, and which is by the seed and the moment.
    assert "64 bytes from 10.0.0.3" in first.stdout, first.stdout
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        os.environ["ONE_MORE_VARIABLE"] = "x" * 1000
        second = run(deep, REPEATED)
    finally:
        del os.environ["ONE_MORE_VARIABLE"]
        for one in busy:
            one.kill()
            one.wait()
    assert (first.stdout, first.stderr) == (second.stdout, second.stderr)
    other = run(tmp_path, REPEATED, "--seed", "2", "--date", "2027-02-03", "--env", "COLOUR=blue")
    assert other.stdout.startswith("1801612801."), other.stdout
    assert "'COLOUR'" in other.stdout and "'ONE_MORE_VARIABLE'" not in second.stdout
    drawn = [re.search(r"^ (0\.\d+ \[.*?\] [0-9a-f:]+)", one.stdout, re.M) for one in (first, other)]
    assert drawn[0] and drawn[1] and drawn[0][1] != drawn[1][1]


@needs_iperf3
@needs_ping
def test_an_ordinary_user_gets_the_same_as_root() -> None:
    with an_ordinary_user() as user:
        (user.folder / "script.py").write_text(textwrap.dedent(REPEATED))
        kept = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "twinnet"
        if kept.is_dir():
            shutil.copytree(kept, user.folder / ".cache" / "twinnet", symlinks=True)
        # Who may not write there cannot keep what Python compiles.
        compileall.compile_dir(user.folder / "package", quiet=2)
        command = user.twinnet("mininet", "--clock", "virtual", "script.py")
        theirs = user.run(command)
        # By the same interpreter: another asks Linux for other things.
        mine = user.run(command[len(user.prefix) :])
    assert theirs.returncode == 0, theirs.stderr
    assert "iperf Done" in mine.stdout and (mine.stdout, mine.stderr) == (theirs.stdout, theirs.stderr)


def test_files_of_the_folder_are_brought_back_and_nothing_else_is_touched(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    kept = tmp_path / "kept"
    here = tmp_path / "here"
    own = tmp_path / "own"
    for folder in (outside, kept, here, own):
        folder.mkdir()
    (here / "deleted").write_text("it stays\n")
    (here / "changed").write_text("a long first text\n")
    (here / "same").write_text("same\n")
    (here / "leads-out").symlink_to(outside)
    (outside / "precious").write_text("precious\n")
    before = (here / "same").stat().st_mtime_ns
    (own / "script.py").write_text(
        textwrap.dedent(
            f"""
        import os
        from mininet.net import Mininet
        net = Mininet()
        h1 = net.addHost("h1")
        open(os.path.join(os.path.dirname(__file__), "beside"), "w").write("beside\\n")
        h1.cmd("mkdir -p results/deep; echo one > results/deep/one; echo new > changed; rm deleted; echo same > same")
        h1.cmd("printf '#!/bin/sh\\n' > tool; chmod 755 tool; ln -s /etc/passwd secrets; mkfifo pipe")
        h1.cmd("rm leads-out; mkdir leads-out; echo mine > leads-out/precious")
        h1.cmd("mkdir -p __pycache__; echo x > __pycache__/x")
        h1.cmd("echo two > {kept}/two; echo three > /var/three-of-a-test; echo four > /tmp/four-of-a-test")
        """
        )
    )
    done = twinnet("mininet", "--clock", "virtual", "--keep", str(kept), "../own/script.py", folder=here)
    assert done.returncode == 0, done.stderr
    assert (here / "results/deep/one").read_text() == "one\n"
    assert (here / "changed").read_text() == "new\n"
    assert (here / "tool").stat().st_mode & 0o111
    assert (here / "deleted").read_text() == "it stays\n"
    assert (here / "same").stat().st_mtime_ns == before
    assert (kept / "two").read_text() == "two\n"
    assert (own / "beside").read_text() == "beside\n"
    assert not (here / "secrets").exists() and not (here / "pipe").exists() and not (here / "__pycache__").exists()
    assert sorted(one.name for one in outside.iterdir()) == ["precious"]
    assert (outside / "precious").read_text() == "precious\n"
    assert not Path("/tmp/four-of-a-test").exists()
    brought = re.search(r"brought back from the virtual clock: (.*)", done.stderr)
    assert brought and set(brought[1].split(", ")) == {
        *("changed", "results/deep/one", "tool"),
        *(str(kept / "two"), str(own / "beside")),
    }
    assert "twinnet: not brought back: " in done.stderr and "leads-out/precious (Not a directory)" in done.stderr
    assert not Path("/var/three-of-a-test").exists()
    assert "written elsewhere, and gone (--keep FOLDER brings it back): /var/three-of-a-test\n" in done.stderr


def test_a_guest_that_lies_about_its_files_writes_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    done = run(
        tmp_path / "here",
        """
        import io, os, tarfile
        from mininet.net import Mininet
        net = Mininet()
        net.addHost("h1")
        open("wanted", "w").write("right")
        place = os.getcwd().lstrip("/")
        with tarfile.open("/lies.tar", "w", format=tarfile.GNU_FORMAT) as lies:
            lies_of = (("etc/lie", b"0"), (f"{place}/../lie", b"0"), (f"{place}/wanted", b"2"), ("/lie", b"0"))
            for name, kind in lies_of:
                member = tarfile.TarInfo(name)
                member.type, member.size, member.linkname = kind, 3 if kind == b"0" else 0, "/etc/passwd"
                lies.addfile(member, io.BytesIO(b"lie"))
        os.rename("/lies.tar", "/lies")
        path = os.popen("command -v tar").read().strip()
        os.remove(path)
        open(path, "w").write("#!/bin/sh\\ncat > /dev/null; cat /lies\\n")
        os.chmod(path, 0o755)
        """,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["here", "script.py"]
    assert not Path("/etc/lie").exists() and not Path("/lie").exists()


def test_what_the_guest_itself_writes_is_no_file_of_the_script(capfd: pytest.CaptureFixture[str]) -> None:
    net = tn.Network()
    net.host("h1")
    with net.simulate(hosts="programs") as lab:
        assert "/run/written/etc/hostname\n" in lab["h1"].run("find /run/written -type f").stdout
        WrittenFiles(lab, "h1", [Path("/etc"), Path("/var")]).bring_back()
        assert capfd.readouterr().err == ""


def test_the_network_and_the_page_of_a_run_are_written_elsewhere_too(tmp_path: Path) -> None:
    (there := tmp_path / "there").mkdir()
    (here := tmp_path / "here").mkdir()
    options = ("--export", str(there / "network.yaml"), "--report", str(there / "run.html"))
    done = run(
        here,
        """
        from mininet.net import Mininet
        net = Mininet(controller=None)
        net.addLink(net.addHost("h1"), net.addHost("h2"))
        net.start()
        net.stop()
        """,
        *options,
    )
    assert done.returncode == 0, done.stderr
    assert "h2" in (there / "network.yaml").read_text() and "<html" in (there / "run.html").read_text()


@pytest.mark.parametrize("clock", ["wall", "virtual"])
def test_a_controller_of_the_caller_is_started_first(tmp_path: Path, clock: str) -> None:
    (tmp_path / "script.py").write_text(
        textwrap.dedent(
            """
            from mininet.net import Mininet
            from mininet.node import RemoteController
            from mininet.topo import SingleSwitchTopo
            net = Mininet(topo=SingleSwitchTopo(2), controller=RemoteController, waitConnected=True)
            net.start()
            print("lost", net.pingAll())
            net.stop()
            """
        )
    )
    command = ("mininet", "--clock", clock, "--controller-run")
    done = twinnet(*command, "echo begins; exec controller ptcp:{port}", "script.py", folder=tmp_path)
    assert done.stdout == "lost 0.0\n", done.stderr
    assert (tmp_path / "controller.log").read_text().startswith("begins\n")
    failed = twinnet(*command, "echo cannot; exit 4", "script.py", folder=tmp_path)
    assert failed.returncode == 1 and not failed.stdout
    assert "the controller 'echo cannot; exit 4' ended with status 4: see controller.log" in failed.stderr
    assert (tmp_path / "controller.log").read_text() == "cannot\n"


def test_what_the_virtual_clock_does_not_have_is_told(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        from mininet.net import Mininet
        from mininet.node import CPULimitedHost, OVSBridge, RemoteController
        net = Mininet(host=CPULimitedHost, switch=OVSBridge, controller=None)
        net.addHost("h1", cpu=0.1)
        net.addSwitch("s1")
        net.addController("c0", RemoteController, port=7777)
        net.addNAT()
        net.start()
        print(net.runCpuLimitTest(0.5))
        net.stop()
        """,
    )
    assert "cpu=0.1 of h1 is left out: on the virtual clock programs take no processor time" in done.stderr
    assert done.stdout == "[]\n" and "runCpuLimitTest is left out: on the virtual clock" in done.stderr
    assert "no controller beside the script's machine is reached; start it with --controller-run" in done.stderr
    assert "nat0 reaches nothing beyond the machine of the script" in done.stderr


def test_what_comes_by_a_pipe_is_read_and_a_pipe_without_end_is_refused(tmp_path: Path) -> None:
    done = twinnet("mn", "--clock", "virtual", "--controller", "none", folder=tmp_path, given="xterm h1\npy 6*7\n")
    assert "No terminal of this machine reaches the virtual clock; for h1 type: noecho h1 bash\n" in done.stderr
    assert "\n42\n" in done.stderr.replace("mininet> ", "\n") and "completed in" in done.stderr, done
    (tmp_path / "script.py").write_text("print(input())")
    command = [*COMMAND, "mininet", "--clock", "virtual", "script.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=-1, stdout=-1, stderr=-1, text=True) as silent:
        assert silent.wait(60) == 2
        assert silent.stderr and "add < /dev/null, or close the pipe" in silent.stderr.read()


def test_mn_takes_the_settings_of_the_virtual_clock_before_its_own(tmp_path: Path) -> None:
    own = ("--switch", "ovsk", "--controller", "remote", "--test", "pingpair", "--post", "lines")
    (tmp_path / "lines").write_text("h1 date +%F > day\nsh echo $COLOUR > colour\n")
    done = twinnet(
        *("mn", "--clock", "virtual", "--date", "2027-02-03", "--memory", "600 MiB", "--patience", "30 s"),
        *("--seed", "7", "--keep", ".", "--env", "COLOUR=blue", "--controller-run", "controller ptcp:{port}", *own),
        folder=tmp_path,
    )
    assert "0% dropped" in done.stderr and done.returncode == 0, done.stderr
    assert ((tmp_path / "day").read_text(), (tmp_path / "colour").read_text()) == ("2027-02-03\n", "blue\n")
    late = twinnet("mn", *own, "--clock", "virtual", folder=tmp_path)
    assert late.returncode == 2 and "--clock comes after an option of mn" in late.stderr


def test_lines_of_both_outputs_keep_their_order_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys\nfor n in range(3):\n    print(n)\n    print(n, file=sys.stderr)\n")
    with (tmp_path / "log").open("wb") as log:
        command = [*COMMAND, "mininet", "--clock", "virtual", "script.py"]
        subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True, timeout=60)
    assert (tmp_path / "log").read_text() == "0\n0\n1\n1\n2\n2\n"


def test_closed_streams_and_texts_that_are_none_are_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys\nprint('said', file=sys.stderr)\n")
    start = 'exec "$@" <&- >&-'
    command = ["sh", "-c", start, "sh", *COMMAND, "mininet", "--clock", "virtual", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "said\n")
    command = [*COMMAND, "mininet", "--clock", "virtual", "script.py", b"\xe9"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, text=True)
    assert done.returncode == 2 and "is no text in UTF-8" in done.stderr and "Traceback" not in done.stderr


def test_settings_of_the_virtual_clock_are_refused_on_the_wall_clock(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("")
    for option in (("--seed", "3"), ("--env", "A=b"), ("--keep", "."), ("--memory", "1 GiB")):
        done = twinnet("mininet", *option, "script.py", folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{option[0]} is for --clock virtual" in done.stderr
    for option, said in (("--keep", "is no folder"), ("--env", "you have no such variable")):
        done = twinnet("mininet", "--clock", "virtual", option, "NO_SUCH_ONE", "script.py", folder=tmp_path)
        assert done.returncode == 2 and said in done.stderr
    assert "it has no name" in twinnet("mn", "--clock", "virtual", "--env", "=x", folder=tmp_path).stderr
    done = twinnet("mininet", "--clock", "virtual", str(tmp_path / "script.py"), folder=Path("/dev/shm"))
    assert done.returncode == 2 and "/dev/shm is not there on the virtual clock" in done.stderr


def test_a_script_that_spins_is_told_and_one_that_is_interrupted_ends_with_its_files(tmp_path: Path) -> None:
    spins = run(tmp_path, "while True: pass", "--patience", "1 s")
    assert spins.returncode == 1 and "computes without end" in spins.stderr and "--patience" in spins.stderr
    text = """
        import time
        from mininet.net import Mininet
        net = Mininet(controller=None)
        open("begun", "w").write("x")
        print("ready", flush=True)
        try:
            while True:
                time.sleep(1)
        except KeyboardInterrupt:
            print("interrupted")
            raise SystemExit(7)
        """
    (tmp_path / "script.py").write_text(textwrap.dedent(text))
    command = [*COMMAND, "mininet", "--clock", "virtual", "script.py"]
    for number, status, said in ((signal.SIGINT, 7, "interrupted\n"), (signal.SIGTERM, 128 + signal.SIGTERM, "")):
        (tmp_path / "begun").unlink(missing_ok=True)
        with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, text=True) as one:
            assert one.stdout and one.stdout.readline() == "ready\n"
            one.send_signal(number)
            out, error = one.communicate(timeout=60)
        assert (one.returncode, out) == (status, said), error
        assert (tmp_path / "begun").read_text() == "x"


@needs_ping
def test_time_stands_while_somebody_types(tmp_path: Path) -> None:
    command = [*COMMAND, "mn", "--clock", "virtual", "--controller", "none", "--switch", "ovsbr"]
    session = TerminalSession(command, {**os.environ, "TERM": "xterm", "PWD": str(tmp_path)})
    session.await_text("mininet> ")

    begin = time.monotonic()
    session.type("nodes\n")
    session.await_text("mininet> ")
    time.sleep(3)
    session.type("nodes\n")
    session.await_text("mininet> ")
    assert time.monotonic() - begin > 3
    # More than is read at once, and lines that wait for their turn.
    session.type(f"sh echo {'x' * 1500} | wc -c\n")
    session.await_text("\n1501")
    session.type("nodes\nnodes\nh1 bash\n")
    session.await_text("available nodes")
    session.await_text("available nodes")
    session.await_text("# ")
    session.type("\x04")
    session.await_text("mininet> ")
    session.type("h1 ping -c 2 h2\n")
    session.await_text("0% packet loss")
    session.await_text("mininet> ")
    session.type("h1 sleep 1000\n")
    session.await_text("sleep 1000\r\n")
    session.type("\x03")
    session.await_text("mininet> ")
    session.type("exit\n")
    session.await_text("*** Done")
    session.await_text("completed in ")
    took = float(session.screen.split()[0])
    # One second for the two pings, little for what was typed, and none for the three seconds of silence.
    assert took < 3.5
    assert session.status() == 0


def test_programs_of_hosts_may_make_user_namespaces() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit")
    with net.simulate(hosts="programs") as lab:
        done = lab["h1"].run("unshare --user --map-root-user --pid --fork --mount-proc --net ls /proc/1 /sys/class/net")
        assert done.returncode == 0 and "lo\n" in done.stdout, done.stderr
        assert lab["h1"].run(["sh", "-c", "echo x > /etc/one; cat /run/written/etc/one"]).stdout == "x\n"
        assert lab["h1"].run(["sh", "-c", "echo y > /run/written/etc/one"]).returncode != 0
