"""The programs that scripts find in their machine: ``mn``, ``mnexec``, ``sudo`` and the learning controller."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from twinnet.interpreter import PYTHON
from twinnet.mininet.kernel import mount

__all__ = ["FOLDER", "install"]

FOLDER = Path(__file__).parent / "tools"
"""Where they are, in the machine only."""

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
    exec $detach unshare -n -m sh -c 'mount -t sysfs sysfs /sys; exec "$@"' sh "$@"
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


def _module(name: str) -> str:
    words = " ".join(f"'{word}'" for word in PYTHON)
    return f'exec {words} -m twinnet.mininet.{name} "$@"\n'


def install() -> None:
    """Put the programs into :data:`FOLDER`, in memory: only the machine of this process sees them."""
    mount("twinnet", str(FOLDER), "tmpfs", 0, "mode=755")
    programs = {"mnexec": _MNEXEC, "sudo": _SUDO, "mn": _module("mn"), "controller": _module("learning_controller")}
    if shutil.which("python") is None:
        programs["python"] = f"exec '{sys.executable}' \"$@\"\n"
    for name, text in programs.items():
        path = FOLDER / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
