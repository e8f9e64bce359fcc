"""Draws the end of a chunk as an SVG: the last contribution, the adder tree, the sum.

    bin/hwgen -lanes 4 -chunk 64 -o build/page/card
    make -s -C build/page/card/sim trace
    python verify/system/waveform/draw.py build/page/card -o verify/system/waveform/sum.svg

The script sums four short arrays with `tributary trace` and reads the waveform that it writes. The card must be
one of fp32 with 4 workers.
"""

import argparse
import pathlib
import struct
import subprocess
import tempfile

import numpy as np
import pywellen

ROOT = pathlib.Path(__file__).parents[3]
WORKERS = 4
CORE = "TOP.agg_top.u_core."
LABELS, CYCLE, ROW, HEIGHT = 150, 29, 30, 18  # pixels; the HEIGHT is of a signal
SEAM = 26  # pixels between the two parts of the picture
BEFORE, SHOWN, AFTER = 2, 19, 9  # cycles: before the last beat, after it, and at the first sum

STYLE = """
text { font-family: sans-serif; font-size: 12px; fill: #16324f; }
.value { font-size: 10px; text-anchor: middle; }
.axis { font-size: 11px; text-anchor: middle; }
path { fill: none; stroke: #2b5b8c; stroke-width: 1.5; }
.grid { stroke: #dce6f0; stroke-width: 1; }
.bus { fill: #eef4fb; }
"""


def number(bits):
    """Returns the fp32 number of an encoding, as text."""
    return f"{struct.unpack('<f', struct.pack('<I', bits & 0xFFFFFFFF))[0]:g}"


PORT = "g_port[3].u_ingress.s_axis"

# Signal, label, and format of its value; a level has no text.
ROWS = [
    (f"{PORT}_tvalid", "port 3: tvalid", None),
    (f"{PORT}_tlast", "port 3: tlast", None),
    ("complete", "slot complete", None),
    ("rd_en", "read slot", None),
    *[(f"g_lane[0].u_lane.x_p{p}", f"lane 0: port {p}", number) for p in range(WORKERS)],
    ("g_lane[0].u_lane.y", "lane 0: sum", number),
    ("m_axis_tvalid", "result: tvalid", None),
    ("m_axis_tdata", "result: lane 0", number),
]


class Waveform:
    """The values of signals, by cycle. The clock is low at even times, before the cycle's edge."""

    def __init__(self, path):
        self.signals = {var.full_name: list(var.signal) for var in pywellen.Waveform(str(path)).all_vars()
                        if var.full_name.startswith(CORE)}

    def at(self, name, cycle):
        value = 0
        for time, changed in self.signals[CORE + name]:
            if time > 2 * cycle:
                return int(value)
            value = changed
        return int(value)

    def rises(self, name):
        """Returns the cycles in which the signal becomes nonzero."""
        changes = self.signals[CORE + name]
        return [(time + 1) // 2 for (_, before), (time, value) in zip(changes, changes[1:])
                if int(value) and not int(before)]


def trace(card, folder):
    """Traces a sum of simple arrays: 1, 10, 100 and 1000 times the beat's number."""
    elements = np.arange(64)
    for p in range(WORKERS):
        np.save(folder / f"w{p}.npy", (10.0**p * (1 + elements // 4 % 9)).astype(np.float32))
    files = [folder / f"w{p}.npy" for p in range(WORKERS)]
    subprocess.run([ROOT / "bin/tributary", "trace", card, "-o", folder / "out", *files], check=True,
                   stdout=subprocess.DEVNULL)
    return Waveform(folder / "out/card.fst")


def part(wave, row, cycles, left):
    """Draws one signal over consecutive cycles as SVG; left is the position of the first cycle."""
    name, _, text = ROWS[row]
    low, high = 40 + row * ROW + HEIGHT, 40 + row * ROW
    values = [wave.at(name, cycle) for cycle in cycles]
    if text is None:
        level = [low if not value else high for value in values]
        points = [f"{'M' if i == 0 else 'L'}{left + i * CYCLE} {y}H{left + (i + 1) * CYCLE}" for i, y in enumerate(level)]
        return [f'<path d="{"".join(points)}"/>']
    drawn = []
    start = 0
    for end in range(1, len(values) + 1):
        if end < len(values) and text(values[end]) == text(values[start]):
            continue
        x0, x1 = left + start * CYCLE, left + end * CYCLE
        drawn.append(f'<path class="bus" d="M{x0 + 2} {high}H{x1 - 2}L{x1} {(low + high) / 2:g}L{x1 - 2} {low}H{x0 + 2}'
                     f'L{x0} {(low + high) / 2:g}z"/>')
        drawn.append(f'<text class="value" x="{(x0 + x1) / 2:g}" y="{low - 5}">{text(values[start])}</text>')
        start = end
    return drawn


def draw(wave):
    first = wave.rises("m_axis_tvalid")[0]
    last = max(cycle for cycle in wave.rises(f"{PORT}_tvalid") if cycle < first)
    parts = [range(last - BEFORE, last + SHOWN), range(first - 3, first + AFTER - 3)]
    width = LABELS + sum(map(len, parts)) * CYCLE + SEAM + 10
    height = 40 + len(ROWS) * ROW + 10
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
           f"<style>{STYLE}</style>", f'<rect width="{width}" height="{height}" fill="#fff"/>']
    svg.append('<text x="10" y="20">cycle</text>')
    svg += [f'<text x="10" y="{40 + i * ROW + 13}">{label}</text>' for i, (_, label, _) in enumerate(ROWS)]
    left = LABELS
    for cycles in parts:
        for i, cycle in enumerate(cycles):
            x = left + i * CYCLE
            svg.append(f'<path class="grid" d="M{x} 28V{height - 10}"/>')
            svg.append(f'<text class="axis" x="{x + CYCLE / 2:g}" y="20">{cycle - last}</text>')
        for row in range(len(ROWS)):
            svg += part(wave, row, cycles, left)
        left += len(cycles) * CYCLE + SEAM
    svg.append(f'<text class="axis" x="{LABELS + len(parts[0]) * CYCLE + SEAM / 2}" y="20">…</text>')
    return "\n".join([*svg, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("card", type=pathlib.Path, help="folder of a card, with its card_trace built")
    parser.add_argument("-o", dest="out", type=pathlib.Path, required=True, help="the SVG to write")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        picture = draw(trace(args.card, pathlib.Path(folder)))
    args.out.write_text(picture)


if __name__ == "__main__":
    main()
