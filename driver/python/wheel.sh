#!/usr/bin/env bash
# Builds the wheel of the Python package from a copy of its sources.
#
# usage: wheel.sh LIBRARY FOLDER    (libtributary.so; where the wheel goes)
set -euo pipefail

library=${1:?usage: wheel.sh LIBRARY FOLDER}
folder=${2:?usage: wheel.sh LIBRARY FOLDER}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
sources=$folder/sources

rm -rf "$folder"
mkdir -p "$sources/tributary/torch"
cp "$here/pyproject.toml" "$here/setup.py" "$here/README.md" "$here/../../LICENSE" "$sources"
cp "$here"/tributary/*.py "$here/tributary/py.typed" "$library" "$sources/tributary"
cp "$here"/tributary/torch/*.py "$sources/tributary/torch"
python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$folder" "$sources"
rm -rf "$sources"
ls "$folder"/tributary-*.whl
