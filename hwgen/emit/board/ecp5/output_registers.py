#!/usr/bin/env python3
"""Moves registers behind block RAMs into the block RAMs of an ECP5.

    python output_registers.py synthesized.json new.json

A block RAM of an ECP5 (DP16KD) takes 5.8 ns from the clock to its outputs, and has a register behind them
that takes a fraction of that (OUTREG). Yosys does not use it. This program reads the netlist that `synth_ecp5`
wrote, and moves the flip-flops after a block RAM into it where that changes nothing: each output of the RAM
that is used drives the data input of one flip-flop and nothing else, and these flip-flops have the RAM's
clock and edge, one clock enable, no reset, and start as zeros. The RAM's outputs have no reset and no register
yet. The netlist stays the same, cycle for cycle.

It prints what it moved. The exit status is 1 if the file is not a netlist of Yosys with one top module.
"""

import collections
import json
import sys


def sinks(module):
    """Returns, for each net's number, the list of (cell, port) that it drives; ("", port) is a port of the module."""
    found = collections.defaultdict(list)
    for name, port in module["ports"].items():
        if port["direction"] != "input":
            for bit in port["bits"]:
                found[bit].append(("", name))
    for name, cell in module["cells"].items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] != "output":
                for bit in bits:
                    found[bit].append((name, port))
    return found


def enable(cell):
    """Returns the net of a flip-flop's clock enable, "0" or "1"; None if it is inverted."""
    mux = cell["parameters"].get("CEMUX", "CE").strip()
    if mux in ("0", "1"):
        return mux
    return cell["connections"]["CE"][0] if mux == "CE" else None


def registers(module, driven, ram):
    """Returns the flip-flops that can move into a block RAM, by the RAM's outputs; empty if not all of them can."""
    parameters, connections = ram["parameters"], ram["connections"]
    # The RAM's reset is also that of the register behind it, which would be zero a cycle early.
    if connections["RSTB"] != ["0"] or parameters["REGMODE_B"] != "NOREG":
        return {}
    # Port B reads. A word of 36 bits also has the outputs of port A, whose register has the clock that writes.
    wide = (
        int(parameters["DATA_WIDTH_B"], 2) == 36
        and connections["CLKA"] == connections["CLKB"]
        and parameters.get("CLKAMUX", "CLKA") == "CLKA"
    )
    moved = {}
    for output, (bit,) in connections.items():
        if not output.startswith("DO") or not driven[bit]:
            continue
        cell, port = driven[bit][0]
        if len(driven[bit]) != 1 or port != "DI" or not (wide or output.startswith("DOB")):
            return {}
        flop = module["cells"][cell]
        simple = (
            flop["type"] == "TRELLIS_FF"
            and flop["parameters"].get("CLKMUX", "CLK") == "CLK"
            and parameters.get("CLKBMUX", "CLKB") == "CLKB"
            and flop["connections"]["CLK"] == connections["CLKB"]
            and flop["connections"].get("LSR", ["0"]) == ["0"]
            and flop["parameters"].get("REGSET", "RESET") == "RESET"
            and enable(flop) is not None
        )
        if not simple:
            return {}
        moved[output] = cell
    if len({enable(module["cells"][cell]) for cell in moved.values()}) > 1:
        return {}
    return moved


def move(module):
    """Moves the registers. Returns the number of flip-flops moved, of block RAMs that took them, and of all."""
    driven = sinks(module)
    rams = [cell for cell in module["cells"].values() if cell["type"] == "DP16KD"]
    flops = taken = 0
    for ram in rams:
        moved = registers(module, driven, ram)
        if not moved:
            continue
        for output, cell in moved.items():
            flop = module["cells"].pop(cell)
            ram["connections"]["OCE" + output[2]] = ram["connections"]["OCEB"] = [enable(flop)]
            ram["connections"][output] = flop["connections"]["Q"]
        ram["parameters"]["REGMODE_B"] = "OUTREG"
        if any(output.startswith("DOA") for output in moved):
            ram["parameters"]["REGMODE_A"] = "OUTREG"
        flops += len(moved)
        taken += 1
    return flops, taken, len(rams)


def main(source, target):
    """Rewrites a netlist. Returns the exit status."""
    try:
        with open(source) as file:
            netlist = json.load(file)
        tops = [m for m in netlist["modules"].values() if "top" in m["attributes"]]
    except (ValueError, TypeError, KeyError, AttributeError):  # not JSON, or not a netlist
        tops = []
    if len(tops) != 1:
        print(f"{source} is not a netlist of Yosys with one top module", file=sys.stderr)
        return 1
    flops, taken, rams = move(tops[0])
    with open(target, "w") as file:
        json.dump(netlist, file)
    print(f"  {flops} flip-flops moved into {taken} of {rams} block RAMs")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
