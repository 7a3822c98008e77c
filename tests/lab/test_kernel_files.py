"""What programs of hosts may set of the kernel: what is their network's, and nothing of the machine's, as root too."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import can_run_labs, needs_a_lab
from mininet_scripts import run_script
from ordinary_user import OrdinaryUser, an_ordinary_user
from small_images import small_root

OF_MACHINE = (
    "/proc/sys/vm/stat_interval",
    "/proc/sys/kernel/printk_ratelimit_burst",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/panic",
    "/proc/sys/fs/file-max",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/kernel/mm/transparent_hugepage/enabled",
)
TRIED = "for file in " + " ".join(OF_MACHINE) + '; do if true 2>/dev/null >>"$file"; then echo "opens $file"; fi; done'
"""Opens each of them for writing, and writes nothing."""
WALKED = (
    "find /proc/sys /proc/irq /proc/sysrq-trigger /sys ( -path /proc/sys/net -o -path /sys/devices/virtual/net ) "
    "-prune -o -type f -writable -print"
)
SETTING = Path("/proc/sys/vm/stat_interval")


@pytest.fixture
def setting() -> Iterator[str]:
    """The value of a setting of the machine, which is there afterwards, whatever a test does."""
    before = SETTING.read_text().strip()
    yield before
    if SETTING.read_text().strip() != before:
        SETTING.write_text(before)


def two_hosts() -> tn.Network:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"))
    return net


@needs_a_lab
def test_a_host_changes_no_setting_of_the_machine(setting: str) -> None:
    with two_hosts().emulate() as lab:
        host = lab["h1"]
        wanted = int(setting) + 1
        assert host.run(["sh", "-c", f"echo {wanted} > {SETTING}"]).returncode != 0
        assert SETTING.read_text().strip() == setting
        assert host.run(["sh", "-c", TRIED]).stdout == ""


@needs_a_lab
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may write files of the machine's kernel")
def test_no_file_of_the_machine_is_left_to_a_host_of_root() -> None:
    with two_hosts().emulate() as lab:
        assert lab["h1"].run(WALKED.split()).stdout == ""


@needs_a_lab
def test_a_host_sets_what_is_its_networks() -> None:
    with two_hosts().emulate() as lab:
        host = lab["h1"]
        host.run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"], check=True)
        assert host.run(["cat", "/proc/sys/net/ipv4/ip_forward"], check=True).stdout == "1\n"
        host.run(["sh", "-c", "echo uplink > /sys/class/net/h1-eth0/ifalias"], check=True)
        assert "alias uplink" in host.run(["ip", "link", "show", "h1-eth0"], check=True).stdout
        assert lab["h2"].run(["cat", "/proc/sys/net/ipv4/ip_forward"], check=True).stdout == "0\n"


@needs_a_lab
def test_a_host_with_an_image_does_neither(tmp_path: Path) -> None:
    net = tn.Network()
    root = small_root(tmp_path / "root", ("sh", "cat"))
    net.link(net.host("h1", image=str(root)), net.host("h2"))
    with net.emulate() as lab:
        assert lab["h1"].run(["sh", "-c", TRIED]).stdout == ""
        lab["h1"].run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"], check=True)


SCRIPT = """
    import subprocess
    from mininet.net import Mininet
    from mininet.topo import SingleSwitchTopo

    TRIED, WANTED = {tried!r}, {wanted!r}
    print("script:", subprocess.run(["sh", "-c", TRIED], capture_output=True, text=True).stdout)
    print("script: status", subprocess.run(["sh", "-c", f"echo {{WANTED}} > /proc/sys/vm/stat_interval"]).returncode)
    net = Mininet(SingleSwitchTopo(2))
    net.start()
    h1 = net["h1"]
    print("node:", h1.cmd(TRIED))
    print("mnexec:", subprocess.run(["mnexec", "-n", "sh", "-c", TRIED], capture_output=True, text=True).stdout)
    h1.cmd("echo 1 > /proc/sys/net/ipv4/ip_forward")
    print("net:", h1.cmd("cat /proc/sys/net/ipv4/ip_forward"))
    h1.cmd("echo uplink > /sys/class/net/h1-eth0/ifalias")
    print("alias:", h1.cmd("cat /sys/class/net/h1-eth0/ifalias"))
    net.stop()
"""


@needs_a_lab
def test_a_mininet_script_changes_no_setting_of_the_machine(tmp_path: Path, setting: str) -> None:
    done = run_script(tmp_path, SCRIPT.format(tried=TRIED, wanted=str(int(setting) + 1)))
    assert SETTING.read_text().strip() == setting
    assert "opens" not in done.stdout
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    assert said["script"] != "status 0"
    assert (said["net"].strip(), said["alias"].strip()) == ("1", "uplink")


@pytest.fixture(scope="module")
def user() -> Iterator[OrdinaryUser]:
    if not can_run_labs():
        pytest.skip("this machine permits no namespaces: see twinnet doctor")
    with an_ordinary_user() as found:
        yield found


def test_an_ordinary_user_finds_the_same(user: OrdinaryUser) -> None:
    (user.folder / "probe.sh").write_text(TRIED)
    (user.folder / "probe.sh").chmod(0o755)
    done = user.run(
        user.twinnet(
            "lab",
            "single:2",
            "-c",
            "h1 sh probe.sh",
            "-c",
            "h1 sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'",
            "-c",
            "h1 cat /proc/sys/net/ipv4/ip_forward",
        )
    )
    assert "opens" not in done.stdout
    assert done.stdout.splitlines()[-1] == "1", done.stderr


def test_the_machine_has_such_files() -> None:
    """Else nothing would have been tried."""
    assert sum(Path(one).exists() for one in OF_MACHINE) >= 5
    assert shutil.which("find") is not None
