#!/usr/bin/env bash
# Installs the programs that the tests compare with, from Debian's packages, as root. What cannot be had is named, and keeps
# nothing else away: tests/support/means.py says later what the machine lacks.
set -u
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "no packages are installed: this needs root, and apt-get"
    exit 0
fi
peers="iperf iperf3 wget apache2-utils iputils-ping iproute2 tshark ethtool openvswitch-switch ffmpeg vlc-bin vlc-plugin-base
    openssl openssh-client openssh-server frr vim-tiny procps psmisc util-linux python3-venv chromium
    gcc libc6-dev make flex bison bc patch xz-utils"
missing=
for peer in $peers; do
    dpkg -s "$peer" >/dev/null 2>&1 || missing="$missing $peer"
done
[ -n "$missing" ] || exit 0
export DEBIAN_FRONTEND=noninteractive
apt=(timeout 600 apt-get -o Acquire::Retries=3)
for wait_s in 0 10 30; do
    sleep "$wait_s"
    "${apt[@]}" update -qq && break
done
# All at once is quickest; one that cannot be had does not keep the others away.
"${apt[@]}" install -y -qq --no-install-recommends $missing >/dev/null 2>&1 && exit 0
for peer in $missing; do
    "${apt[@]}" install -y -qq --no-install-recommends "$peer" >/dev/null 2>&1 || echo "not installed: $peer"
done
