"""The programs that scripts find in their machine: ``mn``, ``mnexec``, ``sudo``, the learning controller, and those of
switches."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

from twinnet.interpreter import PYTHON
from twinnet.mininet.kernel import mount
from twinnet.mininet.tool_clients import client
from twinnet.mininet.virtual_time import on_virtual_clock

__all__ = ["FOLDER", "MODULES", "OPEN_VSWITCH", "install"]

FOLDER = Path(__file__).parent / "tools"
"""Where they are, in the machine only."""

OPEN_VSWITCH = Path("/run/openvswitch")
"""Where Open vSwitch's tools look for its sockets."""
MODULES = FOLDER / "modules"
"""Where other programs in Python find ``mininet``."""

_MNEXEC = """\
# Programs in the namespaces of a node, as Mininet's mnexec.
pid= ; detach= ; new= ; print=
while [ $# -gt 0 ]; do
    case "$1" in
        -*) letters=${1#-}; shift ;;
        *) break ;;
    esac
    while [ -n "$letters" ]; do
        letter=${letters%"${letters#?}"}; letters=${letters#?}
        case "$letter" in
            c) ;;
            d) detach=setsid ;;
            n) new=1 ;;
            p) print=1 ;;
            a) pid=$1; shift ;;
            g|r) shift ;;
            v) echo 2.3.1b4; exit 0 ;;
            *) echo "usage: mnexec [-cdnp] [-a PID] [-g GROUP] [-r PRIORITY] COMMAND" >&2; exit 1 ;;
        esac
    done
done
[ -n "$print" ] && printf '\\001%d\\n' $$
[ $# -gt 0 ] || exit 0
if [ -n "$pid" ]; then
    exec $detach nsenter -t "$pid" -n -m --wd="$PWD" "$@"
elif [ -n "$new" ]; then
    exec $detach unshare -n -m sh -c '
        mount -t sysfs sysfs /sys
        # What belongs to the whole machine is not for a node to change.
        [ -w /sys/kernel ] && mount --bind /sys/devices/virtual/net /sys/devices/virtual/net \\
            && mount -o remount,bind,ro /sys
        exec "$@"' sh "$@"
fi
exec $detach "$@"
"""

_SUDO = """\
# Everything here runs as root already.
while [ $# -gt 0 ]; do
    case "$1" in
        -u|-g|-h|-p|-C|-r|-t|-U) shift 2 ;;
        --) shift; break ;;
        -*) shift ;;
        *=*) export "$1"; shift ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || exit 0
exec "$@"
"""


def _module(name: str, first: str = "") -> str:
    words = " ".join(f"'{word}'" for word in PYTHON)
    return f'exec {words} -m twinnet.mininet.{name} {first} "$@"\n'


_IVS_CTL = """\
# The Indigo switches of a script are switches of the fabric.
if [ "$1" = show ]; then exec ovs-vsctl show; fi
echo "ivs-ctl: only show is there; ovs-vsctl changes the switches of scripts" >&2
exit 1
"""

_PACKAGE = """\
import sys
sys.path += {paths!r}
from twinnet.mininet import names
names.install()
"""


def install() -> None:
    """Put the programs into :data:`FOLDER`, in memory: only the machine of this process sees them."""
    mount("twinnet", str(FOLDER), "tmpfs", 0, "mode=755")
    programs = {"mnexec": _MNEXEC, "sudo": _SUDO, "mn": _module("mn"), "controller": _module("learning_controller")}
    programs |= {name: _module("reference_switch", name) for name in ("ofdatapath", "ofprotocol")}
    programs["ivs-ctl"] = _IVS_CTL
    # On the virtual clock how many folders a shell looks through, which takes time, is not to depend on where ours is.
    ours = ("python", "python3") if on_virtual_clock() else ("python",) if shutil.which("python") is None else ()
    programs |= dict.fromkeys(ours, f"exec '{sys.executable}' \"$@\"\n")
    for name, text in programs.items():
        path = FOLDER / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
    asking = ["ovs-vsctl", "ovs-appctl", "ovs-dpctl", "tc"]
    if shutil.which("ovs-ofctl") is None:
        # The installed one can do more.
        asking.append("ovs-ofctl")
    for name in asking:
        path = FOLDER / name
        path.write_text(client())
        path.chmod(0o755)
    folders = [str(Path(__file__).parents[2]), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    package = MODULES / "mininet"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(_PACKAGE.format(paths=list(dict.fromkeys(folders))))
