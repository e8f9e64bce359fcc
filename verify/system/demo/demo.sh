#!/usr/bin/env bash
# Sums the gradients of four workers, from a real training step, through a simulated card. It compares every
# bit of the sum with the Go model and with NumPy. `make demo` runs it.
#
# It writes into build/demo: card, sum.npy, and trace, the waveform of a short reduction.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

card=build/demo/card
gradients=(verify/reference/gradients/w*.npy)

say() { printf '\n== %s\n' "$*"; }

# Prints a command, and runs it.
run() {
  printf '$ %s\n' "$*"
  "$@"
}

# Writes files with the first 1024 elements of each gradient.
shorten() {
  mkdir -p "$1"
  python - "$1" "${gradients[@]}" <<'PY'
import pathlib, sys
import numpy as np
for path in map(pathlib.Path, sys.argv[2:]):
    np.save(pathlib.Path(sys.argv[1]) / path.name, np.load(path)[:1024])
PY
}

say "A card with 16 lanes for 4 workers"
run bin/hwgen -lanes 16 -o "$card"

say "A virtual card, compiled from its Verilog"
run make -s -C "$card/sim" all trace

say "The gradients of one training step of ${#gradients[@]} workers, summed by that card"
run bin/tributary reduce -card "sim:$card" -verify -stats -o build/demo/sum.npy "${gradients[@]}"

say "The same sum by NumPy"
run python verify/reference/gradients/check.py build/demo/sum.npy "${gradients[@]}"

say "A waveform of a short reduction"
shorten build/demo/short
run bin/tributary trace "$card" -o build/demo/trace build/demo/short/w*.npy

say "Results"
cat <<END
  $card/block.svg   picture of the design
  $card/README.md   its datasheet
  build/demo/trace            waveform of the short reduction, with views for GTKWave and Surfer
  build/demo/sum.npy          the sum of the gradients
END
