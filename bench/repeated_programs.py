"""Whether real programs on the virtual clock give the same frames each time, whatever the machine does meanwhile.

Each run is a process of its own: ``python -m bench.repeated_programs SCENARIO`` makes one and prints its trace.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import twinnet as tn
from twinnet.guest import find

from bench.figure import Figure
from bench.quiet import Quiet

TITLE = "Equal runs of programs on the virtual clock"
MEASURES = ("bench/repeated_programs.py", "crates/lab", "crates/linux", "python/twinnet/guest")

RUNS = 24
BUSY = 4
FILES = 300
NUMBERS = "numbers that the processor gives"
_PROGRAM = "BENCH_PROGRAM"
_PROGRAM_SOURCE = Path(__file__).with_name("processor_numbers.cpp")
_LIMIT_S = 300.0
_ROOT = Path(__file__).parents[1]


def _pair(rate: str = "10 Mbit", delay: str = "10 ms", **settings: str) -> tn.Network:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate=rate, delay=delay, **settings)
    return net


def _star(hosts: int) -> tn.Network:
    net = tn.Network()
    switch = net.switch("s1")
    for number in range(1, hosts + 1):
        net.link(net.host(f"h{number}"), switch, rate="100 Mbit", delay="1 ms")
    return net


def _iperf3(lab: tn.Lab, options: str, server: str = "h2", client: str = "h1") -> None:
    lab[server].popen("iperf3 -s -1", stdout=tn.lab.DEVNULL)
    lab.run_until("1 s")
    lab[client].run(f"iperf3 -c {server} -t 3 {options}", check=True)


def _pings(lab: tn.Lab) -> None:
    lab["h1"].run("ping -c 50 -i 0.1 h2", check=True)


def _web(lab: tn.Lab) -> None:
    lab["h2"].run("mkdir -p /srv/page")
    lab["h2"].run("dd if=/dev/zero of=/srv/page/big bs=1000 count=300", check=True)
    lab["h2"].popen("python3 -m http.server 8000 --directory /srv/page", stdout=tn.lab.DEVNULL)
    lab.run_until("5 s")
    for _ in range(5):
        lab["h1"].run(f"curl -s -f -o /dev/null http://{lab['h2'].ip}:8000/big", check=True)


def _many_pings(lab: tn.Lab) -> None:
    jobs = [lab[f"h{number}"].popen(f"ping -c 20 -i 0.2 h{number % 8 + 1}") for number in range(1, 9)]
    for job in jobs:
        job.communicate()


def _four_flows(lab: tn.Lab) -> None:
    for number in range(1, 5):
        lab["h8"].popen(f"iperf3 -s -1 -p {5200 + number}", stdout=tn.lab.DEVNULL)
    lab.run_until("1 s")
    jobs = [lab[f"h{number}"].popen(f"iperf3 -c h8 -t 2 -p {5200 + number}") for number in range(1, 5)]
    for job in jobs:
        job.communicate()


def _cut(lab: tn.Lab) -> None:
    lab["h2"].popen("iperf3 -s -1", stdout=tn.lab.DEVNULL)
    lab.run_until("1 s")
    job = lab["h1"].popen("iperf3 -c h2 -t 4")
    lab.run_until("2 s")
    lab.link("h1", "h2").set(up=False)
    lab.run_until("3 s")
    lab.link("h1", "h2").set(up=True)
    job.communicate()


def _numbers_of_the_processor(lab: tn.Lab) -> None:
    """A C++ program sends what `std::random_device`, RDRAND, RDSEED and RDTSC give it."""
    lab["h1"].run([os.environ[_PROGRAM], lab["h2"].ip], check=True)
    lab.run_until("1 s")


SCENARIOS: dict[str, tuple[Callable[[], tn.Network], Callable[[tn.Lab], None]]] = {
    "pings over 10 ms": (_pair, _pings),
    "CUBIC over 10 Mbit/s": (_pair, lambda lab: _iperf3(lab, "-C cubic")),
    "BBR over 10 Mbit/s": (_pair, lambda lab: _iperf3(lab, "-C bbr")),
    "Reno with losses": (lambda: _pair(loss="0.5 %"), lambda lab: _iperf3(lab, "-C reno")),
    "UDP of 8 Mbit/s": (_pair, lambda lab: _iperf3(lab, "-u -b 8M")),
    "TCP over IPv6": (_pair, lambda lab: _iperf3(lab, "-6")),
    "a web server and curl": (_pair, _web),
    "eight hosts that ping": (lambda: _star(8), _many_pings),
    "four flows into one link": (lambda: _star(8), _four_flows),
    "a link that is cut": (_pair, _cut),
    NUMBERS: (_pair, _numbers_of_the_processor),
}
"""By what they are: the network, and what is done in it."""

ROWS = tuple(SCENARIOS)
"""What can be measured by itself."""

Condition = tuple[str, Callable[[list[str], Path], list[str]], Mapping[str, str]]


def _without_privileges(command: list[str], folder: Path) -> list[str]:
    """As an ordinary user who owns these files: in a user namespace whose user is not root."""
    return ["unshare", "--user", "--map-user=1000", "--map-group=1000", *command]


def conditions() -> list[Condition]:
    """Return the ways in which runs are made: what each is called, its command, and what it adds to the environment."""
    found: list[Condition] = [
        ("as it is", lambda command, _: command, {}),
        ("other variables", lambda command, _: command, {"LANG": "de_DE.UTF-8", "TZ": "Asia/Tokyo", "X": "x" * 3000}),
        (f"beside {BUSY} busy programs", lambda command, _: command, {"BENCH_BUSY": str(BUSY)}),
        ("in a folder with a long name", lambda command, _: command, {"TMPDIR": "a-folder-with-a-long-name/" * 6}),
        (f"beside {FILES} other files", lambda command, _: command, {"BENCH_FILES": str(FILES)}),
        *(
            (f"an interpreter that {how}", lambda command, _: command, {"BENCH_PYTHON": kind})
            for how, kind in (("a script starts", "script"), ("a link names", "link"), ("was copied", "copy"))
        ),
    ]
    if (other := _another_python()) is not None:
        found.append(("an interpreter of the machine's own", lambda command, _: command, {"BENCH_PYTHON": other}))
    if shutil.which("taskset"):
        found.append(("on one processor", lambda command, _: ["taskset", "-c", "0", *command], {}))
    if shutil.which("setarch"):
        found.append(("addresses not at random", lambda command, _: ["setarch", "-R", *command], {}))
    if os.geteuid() == 0 and shutil.which("unshare"):
        found.append(("as an ordinary user", _without_privileges, {}))
    return found


def measure(quick: bool, quiet: Quiet, rows: Sequence[str] = ROWS) -> Iterator[Figure]:
    """Yield the figures of the scenarios `rows`; none where there is no kernel for the guest."""
    kernel = find()
    if kernel is None:
        return
    runs = len(conditions()) if quick else RUNS
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        folder.chmod(0o755)
        copy = folder / "linux"
        shutil.copy(kernel.path, copy)
        copy.chmod(0o755)
        for scenario in rows:
            if scenario == NUMBERS and not build_program(folder):
                continue
            traces: dict[str, list[str]] = {}
            for number in range(runs):
                name, command, environment = conditions()[number % len(conditions())]
                traces.setdefault(trace_of(scenario, command, environment, folder), []).append(name)
            others = sorted({name for names in list(traces.values())[1:] for name in names})
            yield Figure(
                scenario,
                "traces",
                [float(len(traces))],
                {},
                f"1 in {runs} runs",
                len(traces) == 1,
                strain=float(len(traces)),
                note=", ".join(traces) + (f"; others: {', '.join(others)}" if others else ""),
                deterministic=True,
            )


def trace_of(
    scenario: str, command: Callable[[list[str], Path], list[str]], environment: Mapping[str, str], folder: Path
) -> str:
    """Return the trace of a run in a process of its own, in a new folder below `folder`; raises `OSError` when it
    fails."""
    here = Path(tempfile.mkdtemp(dir=folder))
    here.chmod(0o777)
    given = {
        **os.environ,
        **environment,
        "TWINNET_KERNEL": str(folder / "linux"),
        "PYTHONPATH": str(_ROOT),
        _PROGRAM: str(folder / _PROGRAM_SOURCE.stem),
    }
    for number in range(int(environment.get("BENCH_FILES", "0"))):
        (here / f"a file {number}").touch()
    if "TMPDIR" in environment:
        given["TMPDIR"] = str(here / environment["TMPDIR"])
        Path(given["TMPDIR"]).mkdir(parents=True)
    with _busy(int(environment.get("BENCH_BUSY", "0"))):
        made = subprocess.run(
            command([sys.executable, "-m", "bench.repeated_programs", scenario], folder),
            env=given,
            cwd=here,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
        )
    if made.returncode != 0:
        raise OSError(f"{scenario}: {made.stderr.strip().splitlines()[-1:] or made.returncode}")
    return made.stdout.strip()


@contextlib.contextmanager
def _busy(programs: int) -> Iterator[None]:
    spins = f"import time\nend = time.monotonic() + {_LIMIT_S}\nwhile time.monotonic() < end: pass"
    spinning = [subprocess.Popen([sys.executable, "-c", spins]) for _ in range(programs)]
    try:
        yield
    finally:
        for one in spinning:
            one.kill()
            one.wait()


def build_program(folder: Path) -> bool:
    """Build the program that asks the processor for numbers, in `folder`; return whether there is a compiler for it."""
    compiler = shutil.which("g++")
    if compiler is None:
        return False
    command = [compiler, "-O1", "-mrdrnd", "-mrdseed", str(_PROGRAM_SOURCE), "-o", str(folder / _PROGRAM_SOURCE.stem)]
    subprocess.run(command, check=True, capture_output=True, timeout=_LIMIT_S)
    return True


def _another_python() -> str | None:
    """The machine's own interpreter, where it is another than this one and can load the same extension modules."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = shutil.which(f"python{version}", path="/usr/bin:/usr/local/bin")
    return found if found is not None and not Path(found).samefile(sys.executable) else None


def _interpreter(kind: str, folder: Path) -> str:
    """The interpreter of this process for the guest: by a ``script`` that takes other programs, system calls and random
    numbers to start it, by a ``link``, or as a ``copy``; else `kind` is the path of another."""
    place = folder / "python"
    if kind == "script":
        place.write_text(f'#!/bin/sh\n/bin/true\nod -An -N64 /dev/urandom >/dev/null\nexec {sys.executable} "$@"\n')
        place.chmod(0o755)
    elif kind == "link":
        place.symlink_to(sys.executable)
    elif kind == "copy":
        shutil.copy(Path(sys.executable).resolve(), place)
    else:
        return kind
    return str(place)


def main(scenario: str) -> int:
    """Make one run of `scenario`, and print its trace and the moment at which it ended."""
    build, act = SCENARIOS[scenario]
    if (kind := os.environ.get("BENCH_PYTHON")) is not None:
        sys.executable = _interpreter(kind, Path.cwd())
    with build().simulate(hosts="programs", seed=7) as lab:
        act(lab)
        print(lab.trace_hash, f"{lab.now():.9f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
