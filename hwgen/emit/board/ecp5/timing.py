#!/usr/bin/env python3
"""Prints the clocks and paths of nextpnr's report, and fails if a clock, or a path between clocks, is too slow.

    python timing.py report.json clk=50 usb_clk=60

Each NAME=MHZ is a required clock with its required constraint. A clock without its constraint fails, and so
does a clock that no argument names. Paths between pads and registers are printed, but not checked: nextpnr
knows neither the delays of the pads nor the devices behind them.
"""

import json
import sys


PADS = "<async>"  # nextpnr's name for ends without a clock
CARD = "clk"  # the card's clock


def clocks(report):
    """Returns, for each clock: whether it is the card's, its achieved MHz, its required MHz.

    The report may name a net by any of its names. The card's clock is the one whose longest path begins in the
    card.
    """
    own = [p for p in report["critical_paths"] if p["from"] == p["to"]]
    cards = {p["from"].split()[-1] for p in own if p["path"][0]["from"]["cell"].startswith("u_card.")}
    return [(net in cards, fmax["achieved"], fmax["constraint"]) for net, fmax in report["fmax"].items()]


def longest(report, wanted):
    """Returns the longest path, in ns, for whose two clocks wanted(from, to) holds; 0 if there is none."""
    paths = [p for p in report["critical_paths"] if wanted(p["from"], p["to"])]
    return max((sum(step["delay"] for step in p["path"]) for p in paths), default=0)


def main(path, *wanted):
    """Prints the report's clocks and paths. Returns the exit status: 1 if any is wrong, else 0."""
    with open(path) as file:
        report = json.load(file)
    found = clocks(report)
    wrong = []
    for name, mhz in (argument.split("=") for argument in wanted):
        # Its constraint says which it is, or where all have the same whether it is the card's.
        fit = [c for c in found if abs(c[2] - float(mhz)) < 0.001 * float(mhz)]
        if not fit:
            wrong.append(f"no clock is constrained to the {mhz} MHz of {name}")
            continue
        clock = next((c for c in fit if c[0] == (name == CARD)), fit[0])
        found.remove(clock)
        _, can, must = clock
        print(f"  {name:8} {can:6.1f} MHz; must have {mhz}")
        if can < must:
            wrong.append(f"{name} has {can:.1f} MHz, not {mhz}")
    wrong += [f"a clock is constrained to {must:.1f} MHz that is none of the card's" for _, _, must in found]
    # The bits of a Gray code are seen in their order when none is a period later than another.
    crossing = longest(report, lambda a, b: a != b and PADS not in (a, b))
    period = 1000 / max(float(argument.split("=")[1]) for argument in wanted)
    print(f"  crossing {crossing:6.1f} ns from one clock to the other; must be below {period:.1f}")
    if crossing >= period:
        wrong.append(f"a path between the clocks takes {crossing:.1f} ns")
    print(f"  pads     {longest(report, lambda a, b: a == PADS != b):6.1f} ns from a pin to a register, "
          f"{longest(report, lambda a, b: a != PADS == b):.1f} ns from a register to a pin, "
          f"{longest(report, lambda a, b: a == PADS == b):.1f} ns from pin to pin")  # fmt: skip
    used = {name: cells["used"] for name, cells in report["utilization"].items() if cells["used"]}
    print("  cells   ", ", ".join(f"{name} {used[name]}" for name in sorted(used)))
    for sentence in wrong:
        print(f"timing: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
