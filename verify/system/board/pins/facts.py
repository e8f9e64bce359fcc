#!/usr/bin/env python3
"""Prints what fpga.h and board.h must know of a board, as C++, from the board's file.

    python facts.py ../../../../constraints/ecpix5.json >facts.h
"""

import json
import pathlib
import sys


def facts(board):
    """Returns the lines of a struct for a board, given its file of constraints/."""
    leds, supply, ulpi = board["leds"], board.get("supply", {}), board.get("ulpi", {})
    high, low = leds.get("held_high", []), leds.get("held_low", [])
    return [
        ("uint64_t", "OSCILLATOR_MHZ", board["clock"]["mhz"]),
        ("bool", "ULPI", int("ulpi" in board)),
        ("bool", "FIFO", int("fifo" in board)),
        ("bool", "CLOCK_FROM_PHY", int(ulpi.get("clock") == "from PHY")),
        ("bool", "RESET_LEVEL", int(ulpi.get("reset") == "high")),
        ("bool", "LIT_LEVEL", int(leds["lit"] == "high")),
        ("int", "HELD_PINS", len(high) + len(low)),
        ("int", "HELD_LEVELS", (1 << len(high)) - 1),
        ("int", "SUPPLY_PINS", len(supply.get("set", []))),
        ("double", "SUPPLY_PERCENT", supply.get("percent", 0)),
    ]


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1])
    print(f"// Of {path.name}, by facts.py.\n#pragma once\n#include <cstdint>\n\nstruct Facts {{")
    for kind, name, value in facts(json.loads(path.read_text())):
        print(f"    static constexpr {kind} {name} = {value};")
    print("};")
