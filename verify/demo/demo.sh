#!/usr/bin/env bash
# Sums the gradients of a real training step, four workers', through a virtual card made of the emitted
# gateware, and checks every bit of the sum against the Go model and against NumPy. `make demo` runs it.
#
# Leaves in build/demo: the card, sum.npy, and short.fst, a waveform of a reduction of a few chunks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

card=build/demo/card
gradients=(verify/gradients/w*.npy)

say() { printf '\n== %s\n' "$*"; }

# Types a command for the reader, and runs it.
run() {
  printf '$ %s\n' "$*"
  "$@"
}

# Reduces the first elements of every gradient through a card that writes a waveform.
waveform() {
  local short=build/demo/short socket=build/demo/short.sock
  mkdir -p "$short"
  rm -f "$socket"
  python - "$short" "${gradients[@]}" <<'PY'
import pathlib, sys
import numpy as np
for path in map(pathlib.Path, sys.argv[2:]):
    np.save(pathlib.Path(sys.argv[1]) / path.name, np.load(path)[:1024])
PY
  "$card/sim/build/card_trace" --listen "unix:$socket" --trace build/demo/short.fst --once &
  local server=$!
  trap 'kill $server 2>/dev/null || true' EXIT
  until [ -S "$socket" ]; do
    kill -0 $server 2>/dev/null || { echo "the virtual card did not start" >&2; return 1; }
    sleep 0.05
  done
  bin/tributary reduce -card "unix:$socket" -verify -o build/demo/short.npy "$short"/w*.npy
  wait $server
  trap - EXIT
}

say "A card with 16 lanes for 4 workers"
run bin/hwgen -lanes 16 -o "$card"

say "A virtual card made of its Verilog"
run make -s -C "$card/sim" all trace

say "The gradients of one training step of ${#gradients[@]} workers, summed by that card"
run bin/tributary reduce -card "sim:$card" -verify -stats -o build/demo/sum.npy "${gradients[@]}"

say "The same sum by NumPy"
run python verify/gradients/check.py build/demo/sum.npy "${gradients[@]}"

say "A waveform of a short reduction"
waveform

say "To look at"
cat <<END
  $card/block.svg   picture of the design
  $card/README.md   its datasheet
  build/demo/short.fst        waveform of the short reduction (gtkwave, surfer)
  build/demo/sum.npy          the sum of the gradients
END
