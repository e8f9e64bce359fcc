"""The build script of a board, run with stub tools: its outputs and its failures.

The real tools take twenty minutes: `make bitstream` runs them.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
MET = {"clk": [41.0, 40.0], "usb": [65.0, 60.0024]}


@pytest.fixture
def board(tmp_path):
    """Makes the board folder of a small card, and one-line tools in tmp_path/tools."""
    card = tmp_path / "card"
    flags = "-board ecpix5 -lanes 1 -workers 2 -chunk 4 -window 1 -clock 40".split()
    subprocess.run([ROOT / "bin" / "hwgen", *flags, "-o", card], check=True, capture_output=True)
    tools = tmp_path / "tools"
    tools.mkdir()
    tool(tools / "python", f'case "$1" in *usb_device.py) echo made >new.v;; *) exec {sys.executable} "$@";; esac')
    netlist = {"modules": {"top": {"attributes": {"top": 1}, "ports": {}, "cells": {}}}}
    tool(tools / "yosys", f"echo '{json.dumps(netlist)}' >synthesized.json")
    tool(tools / "nextpnr-ecp5", f"cp {tmp_path}/report.json . && echo made >new.config")
    tool(tools / "ecppack", "echo bits >new.bit")
    tool(tools / "openFPGALoader", f'echo "$@" >{tmp_path}/loaded')
    report(tmp_path, MET)
    return card / "board"


def tool(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def report(folder, clocks, cells=7, crossing=1):
    """Writes the report of place and route."""
    fmax = {name: {"achieved": can, "constraint": must} for name, (can, must) in clocks.items()}
    step = {"delay": 2.5, "from": {"cell": "u_card.u_core.x"}}
    paths = [
        {"from": "<async>", "to": "posedge clk", "path": [step, step]},
        {"from": "posedge usb", "to": "posedge clk", "path": [step] * crossing},
        {"from": "posedge clk", "to": "posedge clk", "path": [step] * 10},
    ]
    used = {"TRELLIS_COMB": {"used": cells}, "DP16KD": {"used": 0}}
    text = json.dumps({"fmax": fmax, "critical_paths": paths, "utilization": used})
    (folder / "report.json").write_text(text)


def make(board, *arguments):
    tools = board.parents[1] / "tools"
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHON": f"{tools}/python"}
    for name in ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES"):
        env.pop(name, None)
    return subprocess.run(["make", "-C", board, *arguments], env=env, capture_output=True, text=True)


def built(board):
    return {f.name for f in (board / "build").iterdir() if not f.name.endswith(".log")}


def test_builds_a_bitstream(board):
    done = make(board)
    assert done.returncode == 0, done.stderr
    assert (board / "build" / "ecpix5.bit").read_text() == "bits\n"
    for line in ("clk        41.0 MHz; must have 40", "usb_clk    65.0 MHz; must have 60",
                 "crossing    2.5 ns from one clock to the other; must be below 16.7", "pads        5.0 ns from a pin", "TRELLIS_COMB 7"):  # fmt: skip
        assert line in done.stdout, done.stdout
    assert not [name for name in built(board) if name.startswith("new.")]
    # A second build makes nothing; another serial number rebuilds the device and its dependents.
    assert "synthesis" not in make(board).stdout
    assert "synthesis" in make(board, "SERIAL=0002").stdout


@pytest.mark.parametrize("order", ["clk usb", "usb clk"])
def test_tells_clocks_of_equal_mhz_apart(board, order):
    both = {"clk": [62.0, 60.0024], "usb": [65.0, 60.0024]}
    report(board.parents[1], {name: both[name] for name in order.split()})
    arguments = [board / "timing.py", board.parents[1] / "report.json", "clk=60", "usb_clk=60"]
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line in ("clk        62.0 MHz; must have 60", "usb_clk    65.0 MHz; must have 60"):
        assert line in done.stdout, done.stdout


@pytest.mark.parametrize(
    "clocks, said",
    [
        ({**MET, "clk": [39.9, 40.0]}, "clk has 39.9 MHz, not 40"),
        ({**MET, "usb": [59.0, 60.0024]}, "usb_clk has 59.0 MHz, not 60"),
        ({"clk": MET["clk"]}, "no clock is constrained to the 60 MHz of usb_clk"),
        ({**MET, "clk": [90.0, 12.0]}, "no clock is constrained to the 40 MHz of clk"),
        ({**MET, "third": [90.0, 12.0]}, "a clock is constrained to 12.0 MHz that is none of the card's"),
    ],
)
def test_fails_when_a_clock_misses_its_constraint(board, clocks, said):
    report(board.parents[1], clocks)
    done = make(board)
    assert done.returncode != 0
    assert said in done.stderr
    assert not {"ecpix5.bit", "ecpix5.config"} & built(board)


def test_fails_when_a_crossing_is_too_long(board):
    report(board.parents[1], MET, crossing=7)
    done = make(board)
    assert done.returncode != 0
    assert "a path between the clocks takes 17.5 ns" in done.stderr


@pytest.mark.parametrize("name, made", [("yosys", "json"), ("nextpnr-ecp5", "config"), ("ecppack", "bit")])
def test_a_tool_that_fails_leaves_nothing_and_is_heard(board, name, made):
    """The failing tool may have begun to write, like nextpnr when a pin is missing in the .lpf."""
    tool(board.parents[1] / "tools" / name, f"echo half >new.{made}; echo 'this is why'; exit 1")
    done = make(board)
    assert done.returncode != 0
    assert "this is why" in done.stderr
    assert f"ecpix5.{made}" not in built(board)


def test_program_loads_the_bitstream(board):
    done = make(board, "program")
    assert done.returncode == 0, done.stderr
    assert (board.parents[1] / "loaded").read_text() == "--board ecpix5 build/ecpix5.bit\n"
    assert make(board, "program", "CABLE=some").returncode == 0
    assert (board.parents[1] / "loaded").read_text() == "--cable some build/ecpix5.bit\n"
    done = make(board, "program", "PROGRAMMER=")
    assert done.returncode != 0 and "say CABLE=NAME" in done.stderr
    done = make(board, "program", "LOADER=no-such-loader")
    assert done.returncode != 0
    assert "no-such-loader is not on PATH: apt install openfpgaloader" in done.stderr
