#!/bin/sh
# Has Miri judge the `unsafe` code of crates/linux that asks the kernel for nothing but memory: the sockets' control
# messages and addresses, and the queues of a guest's network card. Exit status 3: Miri cannot be had here.
cd "$(dirname "$0")/.." || exit 1
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    timeout 300 rustup component add --toolchain nightly miri rust-src >/dev/null 2>&1
fi
if ! version=$(cargo +nightly miri --version 2>/dev/null); then
    echo "not judged: Miri cannot be had (rustup toolchain install nightly --component miri,rust-src)"
    exit 3
fi
echo "$version"
# Miri is not stable, and warns of what it leaves out only where a test needs it.
CARGO_TARGET_DIR=target/miri timeout 900 cargo +nightly miri test --quiet -p twinnet-linux --lib -- \
    agent::system guest::rings
