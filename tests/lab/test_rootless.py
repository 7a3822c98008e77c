"""An ordinary user without any privilege does all that the command line offers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from labs_here import can_run_labs
from ordinary_user import CannotSwitch, OrdinaryUser, an_ordinary_user
from small_images import layer_of, saved_image, small_root


@pytest.fixture(scope="module")
def user() -> Iterator[OrdinaryUser]:
    if not can_run_labs():
        pytest.skip("this machine permits no namespaces: see twinnet doctor")
    with an_ordinary_user() as found:
        yield found


def interfaces(user: OrdinaryUser) -> list[str]:
    """The kinds of interfaces that this user can have; veth can be had wherever labs can."""
    opened = user.call("sh", "-c", "exec 3<>/dev/net/tun").returncode == 0
    return ["tap", "veth"] if opened else ["veth"]


def test_the_user_is_an_ordinary_one(user: OrdinaryUser) -> None:
    assert user.call("id", "-u").stdout.strip() != "0"
    assert "CapEff:\t0000000000000000" in user.call("cat", "/proc/self/status").stdout


def test_the_doctor_says_that_labs_can_run(user: OrdinaryUser) -> None:
    done = user.run(user.twinnet("doctor", "--json"))
    assert done.returncode == 0, done.stdout + done.stderr
    findings = {one["ability"]: one for one in json.loads(done.stdout)}
    assert findings["user namespaces"]["ok"]
    assert all(one["ok"] or one["remedy"] for one in findings.values())


def test_the_first_study_runs_on_every_kind_of_interface(user: OrdinaryUser) -> None:
    def run(interface: str) -> subprocess.CompletedProcess[str]:
        options = ["--preset", "tiny", "--interface", interface, "--out", f"results-{interface}", "--json"]
        return user.run(user.twinnet("run", "tcp-udp-queues", "--no-report", *options))

    kinds = interfaces(user)
    with ThreadPoolExecutor(len(kinds)) as pool:
        for interface, done in zip(kinds, pool.map(run, kinds), strict=True):
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["runs"] == {"planned": 2, "finished": 2, "failed": 0}
            records = Path(user.folder, f"results-{interface}").rglob("run.json")
            used = [json.loads(path.read_text())["notes"]["lab"]["interface"] for path in records]
            assert used == [interface, interface]


def test_where_no_tap_can_be_had_virtual_ethernet_takes_its_place(user: OrdinaryUser) -> None:
    try:
        closed = user.without_tap(user.command("sh", "-c", "exec 3<>/dev/net/tun"))
    except CannotSwitch as reason:
        pytest.skip(str(reason))
    assert user.run(closed).returncode != 0
    lab = user.without_tap(user.twinnet("lab", "single:2", "-c", "h1 ping -c1 -W2 h2", "-c", "pingall"))
    done = user.run(lab)
    assert done.returncode == 0, done.stderr
    assert "0% dropped" in done.stdout
    done = user.run(user.without_tap(user.twinnet("lab", "single:2", "--interface", "tap", "-c", "nodes")))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "opening the TAP h1-eth0: Permission denied" in done.stderr
    assert "twinnet doctor" in done.stderr


def test_a_host_has_the_files_of_an_image_and_an_archive_is_unpacked_once(user: OrdinaryUser) -> None:
    root = small_root(user.folder / "root", ("sh", "cat", "ls", "mkdir", "rm"))
    (root / "kept").mkdir()
    (root / "kept" / "old").touch()
    saved_image(user.folder / "image.tar", [layer_of(root)], {"config": {"Env": ["PATH=/bin", "COLOUR=blue"]}})
    (user.folder / "notes").mkdir()
    (user.folder / "notes" / "note").write_text("from outside\n")
    volumes = "volumes: ['notes:/notes:ro']"
    (user.folder / "net.yaml").write_text(
        f"{{hosts: {{h1: {{image: image.tar, {volumes}}}, h2: {{}}}}, links: [{{between: [h1, h2]}}]}}"
    )
    for _ in range(2):
        # A folder that is replaced needs marks of the overlay that a user may set.
        said = 'h1 echo $COLOUR; cat /notes/note; rm -r /kept; mkdir /kept; ls /kept; echo x > /notes/note || echo "no"'
        done = user.run(user.twinnet("lab", "net.yaml", "-c", said))
        assert done.stdout == "blue\nfrom outside\nno\n", done.stderr
    assert len([*(user.folder / ".cache" / "twinnet" / "images").iterdir()]) == 1


def test_limits_that_nobody_may_set_are_refused(user: OrdinaryUser) -> None:
    (user.folder / "limited.yaml").write_text("{hosts: {h1: {processors: 0.5}, h2: {}}, links: [{between: [h1, h2]}]}")
    done = user.run(user.twinnet("lab", "limited.yaml", "-c", "nodes"))
    assert done.returncode == 1
    assert "the programs of h1 cannot be limited" in done.stderr


@pytest.fixture
def lab(user: OrdinaryUser) -> Iterator[str]:
    """The name of a lab of this user that another terminal holds."""
    name = "rootless"
    command = user.twinnet("lab", "single:2", "--name", name)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=user.environment, cwd=user.folder
    ) as terminal:
        assert terminal.stdin is not None
        assert terminal.stdout is not None
        terminal.stdin.write("h1 echo ready\n")
        terminal.stdin.flush()
        assert "ready" in terminal.stdout.readline()
        yield name
        terminal.stdin.close()
        assert terminal.wait(30) == 0


def test_exec_runs_programs_in_the_users_hosts_and_nothing_beyond(user: OrdinaryUser, lab: str) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return user.run(user.twinnet("exec", lab, "h1", "--", *arguments))

    assert run("sh", "-c", "exit 7").returncode == 7
    assert run("sh", "-c", "kill -TERM $$").returncode == 143
    assert run("ping", "-c", "1", "-W", "2", "h2").returncode == 0
    # Root within its own lab, and there only: what belongs to the machine's root stays so.
    assert run("id", "-u").stdout.strip() == "0"
    assert run("ip", "link", "set", "h1-eth0", "mtu", "1400").returncode == 0
    assert run("touch", "/etc/written-by-an-ordinary-user").returncode != 0
    assert lab in user.run(user.twinnet("labs")).stdout


@pytest.mark.parametrize("files", [48, 56, 64, 72, 80])
def test_a_limit_of_open_files_is_told_as_that(user: OrdinaryUser, files: int) -> None:
    limited = user.command("sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *user.twinnet()[len(user.prefix) :])
    done = user.run([*limited, "lab", "single:40", "-c", "nodes"])
    assert done.returncode == 1
    assert "No such file" not in done.stderr and "ulimit -n" in done.stderr, done.stderr
