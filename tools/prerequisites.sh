#!/bin/sh
# Says, in one line each, what is missing to build twinnet; exit status 1 if anything is.
missing=0
need() { # need COMMAND WHAT REMEDY
    command -v "$1" >/dev/null 2>&1 && return
    echo "twinnet needs $2: $3" >&2
    missing=1
}
need cc "a C compiler" "install gcc or clang (Debian, Ubuntu: apt install gcc; Fedora: dnf install gcc)"
need cargo "Rust 1.85 or later" "install it from your distribution or with rustup"
need "${PYTHON:-python3}" "Python 3.11 or later" "install python3 (Debian, Ubuntu: apt install python3 python3-venv)"
[ "$missing" = 0 ] || exit 1
version=$(cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
# shellcheck disable=SC2086
set -- $version
if [ "$#" != 2 ]; then
    echo "twinnet needs Rust 1.85 or later, and cargo here does not run: see cargo --version (rustup: rustup default stable)" >&2
    missing=1
elif [ "$1" -lt 1 ] || { [ "$1" -eq 1 ] && [ "$2" -lt 85 ]; }; then
    echo "twinnet needs Rust 1.85 or later, this is $1.$2: update it from your distribution or with rustup" >&2
    missing=1
fi
if ! "${PYTHON:-python3}" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "twinnet needs Python 3.11 or later, this is $("${PYTHON:-python3}" --version 2>&1): install a newer one and name it with PYTHON=python3.x" >&2
    missing=1
elif ! "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "twinnet needs Python's venv module: install it (Debian, Ubuntu: apt install python3-venv)" >&2
    missing=1
fi
exit "$missing"
