#!/usr/bin/env python3
"""Says what nextpnr reports of a design, and fails when a clock, or what crosses between two, is too slow.

    python timing.py report.json clk=50 usb_clk=60

Each NAME=MHZ is a clock that the design must have, with the constraint that it must have: one that has lost
its constraint on the way, or that nobody named, fails as well. Paths between pads and registers are said, but
not judged: nextpnr knows neither the pads nor what is behind them.
"""

import json
import sys


PADS = "<async>"  # what nextpnr calls what no clock moves
CARD = "clk"  # the card's clock


def clocks(report):
    """Of each clock: whether it is the card's; MHz that it can have, and MHz that it must.

    A net may have any of its names in the report. The card's clock is that whose longest path begins in the card.
    """
    own = [p for p in report["critical_paths"] if p["from"] == p["to"]]
    cards = {p["from"].split()[-1] for p in own if p["path"][0]["from"]["cell"].startswith("u_card.")}
    return [(net in cards, fmax["achieved"], fmax["constraint"]) for net, fmax in report["fmax"].items()]


def longest(report, wanted):
    """The longest path, in ns, of those whose ends are as wanted."""
    paths = [p for p in report["critical_paths"] if wanted(p["from"], p["to"])]
    return max((sum(step["delay"] for step in p["path"]) for p in paths), default=0)


def main(path, *wanted):
    """Prints what the report says; returns 1 when something is wrong with it."""
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
