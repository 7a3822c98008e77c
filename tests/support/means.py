"""What a machine may lack for the tests: each by the name that ``TWINNET_LACKS`` takes, the reasons that tests give
when they skip for want of it, and a look whether it is here.

A test that skips for a reason without a name, or for want of something that is here, fails the whole run. Where
``TWINNET_LACKS`` is set, it has the say: what it does not name is here. ``python tests/support/means.py`` prints what
this machine lacks, in that form; with ``--least`` it fails when one of `LEAST` is among it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LEAST", "MEANS", "WANTED", "lacking", "means_of", "wrongly_skipped"]

VARIABLE = "TWINNET_LACKS"


@dataclass(frozen=True)
class Means:
    """Something that tests need of a machine."""

    reasons: str
    """A pattern that the reasons of skips contain."""
    is_here: Callable[[], bool]


def _programs(*names: str) -> Callable[[], bool]:
    return lambda: all(shutil.which(name) is not None for name in names)


def _works(*command: str) -> Callable[[], bool]:
    def try_it() -> bool:
        if shutil.which(command[0]) is None:
            return False
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0

    return try_it


def _labs() -> bool:
    from labs_here import can_run_labs

    return can_run_labs()


def _root() -> bool:
    return os.geteuid() == 0


def _freezer(*roots: str) -> Callable[[], bool]:
    """Whether control groups that freeze can be made in one of the folders, where they are mounted."""
    return lambda: _root() and any(os.access(f"{root}/cgroup.procs", os.W_OK) for root in roots)


def _own_network() -> bool:
    return _works("unshare", "-n", "true")() if _root() else False


def _slirp4netns() -> bool:
    return shutil.which("slirp4netns") is not None and os.access("/dev/net/tun", os.R_OK | os.W_OK)


def _ordinary_users() -> bool:
    if not _root():
        return _works("unshare", "-U", "true")()
    return _works("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "unshare", "-U", "true")()


def _kernel_open_vswitch() -> bool:
    from twinnet import _core

    return bool(_core.kernel_has_open_vswitch())


def _pinned_kernel() -> bool:
    from pinned_traces import PINNED
    from twinnet.guest import needed

    return _guest_kernel() and needed().version in PINNED


def _guest_kernel() -> bool:
    from kernels_here import a_kernel_is_here

    return a_kernel_is_here()


def _package_index() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        return _works(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "click")()


def _in_own_network(command: str) -> Callable[[], bool]:
    return _works("unshare", "-Urn", "sh", "-c", command)


MEANS: dict[str, Means] = {
    "labs": Means(
        r"permits no (such )?lab|permits no (network |user )?namespaces|no lab can run|cannot run labs|"
        r"user namespaces are refused|needs user namespaces|unshare failed",
        _labs,
    ),
    "namespaces": Means(r"(?!)", _own_network),
    "root": Means(r"only root|needs root", _root),
    "freezer-1": Means(r"no control group of version 1 that freezes", _freezer("/sys/fs/cgroup/freezer")),
    "freezer-2": Means(
        r"no control group of version 2 that freezes", _freezer("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
    ),
    "ordinary-users": Means(
        r"lets ordinary users make no user namespaces|root cannot become another user|"
        r"that an ordinary user may execute",
        _ordinary_users,
    ),
    "two-processors": Means(r"one processor cannot be taken", lambda: len(os.sched_getaffinity(0)) > 1),
    "tap": Means(r"TAPs are not permitted|no tap here", lambda: os.access("/dev/net/tun", os.R_OK | os.W_OK)),
    "veth": Means(r"no veth here", _in_own_network("ip link add type veth")),
    "vxlan": Means(r"no vxlan device", _in_own_network("ip link add type vxlan id 1 dstport 4789")),
    "gretap": Means(r"no gretap device", _in_own_network("ip link add type gretap local 10.0.0.1 remote 10.0.0.2")),
    "htb": Means(r"no HTB", _in_own_network("tc qdisc add dev lo root htb")),
    "time-namespaces": Means(r"time namespaces are refused", _works("unshare", "-UrT", "true")),
    "limits-of-namespaces": Means(
        r"the limit cannot be set", _works("unshare", "-Ur", "sh", "-c", "echo 1 > /proc/sys/user/max_pid_namespaces")
    ),
    "kernel-open-vswitch": Means(r"no Open vSwitch datapath", _kernel_open_vswitch),
    "open-vswitch": Means(
        r"ovs-\w+.* (is|are) (missing|not installed)|ovsdb-\w+ is not installed|apt install openvswitch|"
        r"Open vSwitch is not|ovs-vsctl",
        _programs("ovs-vswitchd", "ovsdb-server", "ovs-ofctl"),
    ),
    "os-ken": Means(r"os-ken is not installed", lambda: importlib.util.find_spec("os_ken") is not None),
    "os-ken-apps": Means(
        r"os-ken's own applications are not installed", lambda: bool(os.environ.get("TWINNET_OS_KEN_APPS"))
    ),
    "gymnasium": Means(r"gymnasium( is)? not installed", lambda: importlib.util.find_spec("gymnasium") is not None),
    "faucet": Means(
        r"Faucet is not installed", lambda: bool(os.environ.get("TWINNET_FAUCET") or shutil.which("faucet"))
    ),
    "slirp4netns": Means(r"slirp4netns is not installed, or has no /dev/net/tun", _slirp4netns),
    "podman": Means(r"podman is not installed, or may not run here", _works("podman", "info")),
    "iptables": Means(r"iptables is not installed", _programs("iptables")),
    "ffmpeg": Means(r"ffmpeg.* not installed", _programs("ffmpeg")),
    "vlc": Means(r"(VLC|vlc).* not installed", _programs("vlc")),
    "tshark": Means(r"tshark.* not installed", _programs("tshark")),
    "ping": Means(r"\bping is not installed", _programs("ping")),
    "curl": Means(r"curl is not installed", _programs("curl")),
    "iperf3": Means(r"iperf3.* not installed", _programs("iperf3")),
    "iperf": Means(r"iperf( and wget)? not installed", _programs("iperf")),
    "wget": Means(r"wget not installed", _programs("wget")),
    "perl": Means(r"perl not installed", _programs("perl")),
    "apache-bench": Means(r"\bab is not installed", _programs("ab")),
    "ethtool": Means(r"ethtool.* not installed", _programs("ethtool")),
    "openssl": Means(r"openssl.* not installed", _programs("openssl")),
    "openssh-server": Means(
        r"OpenSSH server and client are not installed",
        lambda: Path("/usr/sbin/sshd").exists() and shutil.which("ssh") is not None,
    ),
    "frr": Means(r"FRR is not installed", lambda: Path("/usr/lib/frr/zebra").exists()),
    "vi": Means(r"\bvi is not installed", _programs("vi")),
    "killall": Means(r"killall is not installed", _programs("killall")),
    "top": Means(r"\btop is not installed", _programs("top")),
    "iproute2": Means(r"\b(ip|tc|unshare|nsenter) is not installed", _programs("ip", "tc", "unshare", "nsenter")),
    "build-tools": Means(
        r"maturin and cargo|git and make|lacks what a build needs|make is not installed",
        _programs("cargo", "git", "make", "cc"),
    ),
    "c++": Means(r"g\+\+ is not installed", _programs("g++")),
    "clone": Means(r"these sources are no clone", lambda: (Path(__file__).parents[2] / ".git").exists()),
    "package-index": Means(r"packages that twinnet needs cannot be fetched", _package_index),
    "guest-kernel": Means(r"no kernel for programs on the virtual clock", _guest_kernel),
    "pinned-kernel": Means(r"no trace is kept for the kernel", _pinned_kernel),
    "kernel-tools": Means(
        r"tools that build a kernel( are not installed|$)",
        _programs("gcc", "make", "flex", "bison", "bc", "patch", "tar", "xz"),
    ),
    "chromium": Means(
        r"Chromium and Playwright are not installed",
        lambda: shutil.which("chromium") is not None and importlib.util.find_spec("playwright") is not None,
    ),
    "node": Means(r"Node is not installed", _programs("node")),
    "dev-full": Means(r"no /dev/full", lambda: Path("/dev/full").exists()),
}
"""By name."""

LEAST = ("labs", "iperf", "iperf3", "ping", "tshark", "ffmpeg", "open-vswitch", "os-ken", "faucet")
"""What the continuous integration must have: without it, most of what is compared with others would skip unseen."""

WANTED = ("guest-kernel", "chromium")
"""What the continuous integration makes where it can, and names where it cannot."""


def means_of(reason: str) -> list[str]:
    """Return what a test that gives this reason lacks; a documentation page may lack several things."""
    return [name for name, means in MEANS.items() if re.search(means.reasons, reason)]


def lacking() -> list[str]:
    """Return what this machine lacks: what ``TWINNET_LACKS`` says where it is set, else what is not found."""
    said = os.environ.get(VARIABLE)
    if said is not None:
        return [name.strip() for name in said.split(",") if name.strip()]
    return [name for name, means in MEANS.items() if not means.is_here()]


def wrongly_skipped(reasons: dict[str, str]) -> dict[str, str]:
    """Return the tests that should not have been skipped, and why; `reasons` are by test."""
    said = os.environ.get(VARIABLE)
    here: dict[str, bool] = {}

    def is_here(name: str) -> bool:
        if name not in here:
            here[name] = name not in lacking() if said is not None else MEANS[name].is_here()
        return here[name]

    wrong: dict[str, str] = {}
    for test, reason in reasons.items():
        wanted = means_of(reason)
        if not wanted:
            wrong[test] = f"no reason that tests/support/means.py knows: {reason}"
        elif all(is_here(name) for name in wanted):
            wrong[test] = f"this machine has {' and '.join(wanted)}: {reason}"
    return wrong


def main(arguments: list[str]) -> int:
    """Print what is lacking; with ``--least`` return 1 when that is too much."""
    absent = lacking()
    if arguments != ["--least"]:
        print(",".join(absent))
        return 0
    for name in (name for name in WANTED if name in absent):
        print(f"the continuous integration goes on without {name}: its tests are left out")
    needed = [name for name in LEAST if name in absent]
    if needed:
        print(f"the continuous integration must have {', '.join(LEAST)}; this machine lacks {', '.join(needed)}")
    return 1 if needed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
