#!/usr/bin/env bash
# Installs Faucet into target/faucet, an environment of its own: it wants an older os-ken than ours, and that an older
# setuptools to be built. Exit status 3: it cannot be had.
set -u
cd "$(dirname "$0")/.." || exit 1
faucet=target/faucet
[ ! -x "$faucet/bin/faucet" ] || exit 0
mkdir -p target
echo "setuptools<70" >target/faucet-constraints.txt
for wait_s in 0 10; do
    sleep "$wait_s"
    python3 -m venv "$faucet" && PIP_CONSTRAINT=$PWD/target/faucet-constraints.txt timeout 600 \
        "$faucet/bin/pip" install --quiet "setuptools<70" faucet==1.10.11 && exit 0
done
rm -rf "$faucet"
exit 3
