#!/usr/bin/env bash
# Installs what `make demo-net` runs besides the card: ip, ping and iperf3. As root it runs apt-get;
# otherwise, and inside `unshare -Urn`, it prints the command to type.
set -euo pipefail

missing() {
  command -v ip >/dev/null || echo iproute2
  command -v ping >/dev/null || echo iputils-ping
  command -v iperf3 >/dev/null || echo iperf3
}

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

packages=$(missing | tr '\n' ' ')
[ -n "$packages" ] || exit 0
type=("Debian packages are missing. Type this, outside of unshare, then run make again:"
  "    sudo apt-get install -y --no-install-recommends $packages")
# The root of a user namespace maps fewer users than the machine has.
[ "$(id -u)" = 0 ] && [ "$(awk '{ print $3 }' /proc/self/uid_map)" = 4294967295 ] || fail "${type[@]}"
echo "setup: installing $packages"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # several words
apt-get install -y -qq --no-install-recommends $packages >/dev/null || { apt-get update -qq &&
  apt-get install -y -qq --no-install-recommends $packages >/dev/null; } || fail "${type[@]}"
