#!/usr/bin/env bash
# Runs a command with PyTorch and the package that `make wheel` has built, which stays uninstalled.
#
# usage: run.sh TORCH COMMAND ARGUMENT...    (TORCH: the virtual environment of `make setup-torch`)
set -euo pipefail

torch=${1:?usage: run.sh TORCH COMMAND ARGUMENT...}
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
site=$root/build/python/site

rm -rf "$site"
"$torch/bin/python" -m pip install -q --disable-pip-version-check --no-deps --target "$site" "$root"/build/python/tributary-*.whl
PYTHONPATH=$site PATH=$torch/bin:$PATH exec "$@"
