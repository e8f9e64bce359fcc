"""The build script of a board that Vivado builds: its outputs and its failures.

A Tcl interpreter runs it, with stubs for Vivado's commands. The behaviour of Vivado itself is
not tested.
"""

import os
import re
import subprocess

import pytest
from test_board_build import ROOT, built, make, tool

# The worst paths of a card that meets timing: kind, from, to, slack, delay, end.
MET = {
    ("max", "clk", "clk"): (2.0, 14.6),
    ("min", "clk", "clk"): (0.1, 0.3),
    ("max", "fifo_clk", "fifo_clk"): (6.0, 10.6),
    ("max", "clk", "fifo_clk"): (13.0, 3.6),
    ("max", "fifo_clk", "clk"): (14.0, 2.6),
    ("max", "inputs", "registers"): (4.5, 2.0),
    ("min", "inputs", "registers"): (0.2, 1.0),
    ("max", "registers", "outputs"): (0.7, 3.0),
    ("min", "registers", "outputs"): (3.0, 3.0),
}
# Modules where signals change clocks: module, path, its clock and the other one. Those of a FIFO are the reader's and the
# writer's.
CELLS = """
  agg_sync u_cross/u_acknowledged fifo_clk clk
  agg_sync u_cross/u_asked clk fifo_clk
  agg_async_fifo u_cross/u_rx clk fifo_clk
  agg_sync u_cross/u_rx/u_rd_seen fifo_clk clk
  agg_sync u_cross/u_rx/u_wr_seen clk fifo_clk
  agg_async_fifo u_cross/u_tx fifo_clk clk
  agg_sync u_cross/u_tx/u_rd_seen clk fifo_clk
  agg_sync u_cross/u_tx/u_wr_seen fifo_clk clk
  agg_board_reset u_reset clk fifo_clk
"""
STEPS = "read_verilog read_xdc synth_design opt_design place_design phys_opt_design route_design write_bitstream".split()


@pytest.fixture
def board(tmp_path, monkeypatch):
    """Makes the board folder of a small card, and tools in tmp_path/tools."""
    card = tmp_path / "card"
    flags = "-board nexys-video -lanes 1 -workers 2 -chunk 4 -window 1 -clock 60".split()
    subprocess.run([ROOT / "bin" / "hwgen", *flags, "-o", card], check=True, capture_output=True)
    (tmp_path / "tools").mkdir()
    tool(tmp_path / "tools" / "vivado", f'exec tclsh {ROOT}/verify/system/board/vivado.tcl "$@"')
    tool(tmp_path / "tools" / "openFPGALoader", f'echo "$@" >{tmp_path}/loaded')
    top = (card / "board" / "board_top.v").read_text()
    monkeypatch.setenv("PORTS", " ".join(f"{{{port}}}" for port in ports(top)))
    # 100 MHz, multiplied and divided by a PLL as in AMD's UG472.
    dividers = {name: int(n) for name, n in re.findall(r"\.(INPUT|FEEDBACK|PRIMARY)\s*\((\d+)\)", top)}
    period = 10.0 * dividers["INPUT"] / dividers["FEEDBACK"] * dividers["PRIMARY"]
    monkeypatch.setenv("PINS", f"u_pll/u_pll/CLKOUT0 {period}")
    monkeypatch.setenv("CELLS", CELLS)
    paths(monkeypatch, MET)
    return card / "board"


def ports(top):
    """Returns the bits of a top's ports, as written in constraints."""
    for wide, name in re.findall(r"^    (?:input|output|inout)\s+wire\s+(?:\[(\d+):0\]\s+)?(\w+)", top, re.MULTILINE):
        yield from [f"{name}[{i}]" for i in range(int(wide) + 1)] if wide else [name]


def paths(monkeypatch, worst):
    words = (f"{' '.join(ends)} {slack} {delay} u_card/some_reg/D" for ends, (slack, delay) in worst.items())
    monkeypatch.setenv("PATHS", " ".join(words))


def test_builds_a_bitstream(board):
    done = make(board)
    assert done.returncode == 0, done.stderr
    assert (board / "build" / "nexys-video.bit").read_text() == "bits\n"
    assert (board / "build" / "calls").read_text().split() == STEPS
    for line in (
        "clk        68.2 MHz; must have 60",
        "fifo_clk   93.8 MHz; must have 60",
        "crossing    3.6 ns from clk to fifo_clk; must be below 16.666",
        "crossing    2.6 ns from fifo_clk to clk",
        "pads       4.50 ns left from a pin to a register (setup)",
        "pads       0.70 ns left from a register to a pin (setup)",
    ):
        assert line in done.stdout, done.stdout
    assert {"timing.rpt", "utilization.rpt", "io.rpt", "cdc.rpt"} <= built(board)
    assert "new.bit" not in built(board)
    assert "synthesis" not in make(board).stdout  # nothing is made twice


def crossings(board, module, path=""):
    """Returns modules and paths of the instances below a module that have a script."""
    source = board / f"{module}.v"
    if not source.exists():
        return
    for kind, name in re.findall(r"^  (\w+) (?:#\([^;]*\) )?(\w+) \($", source.read_text(), re.MULTILINE):
        if (board / f"{kind}.tcl").exists():
            yield f"{kind} {path}{name}"
        yield from crossings(board, kind, f"{path}{name}/")


def test_limits_the_crossings(board):
    known = [" ".join(line.split()[:2]) for line in CELLS.strip().splitlines()]
    assert sorted(known) == sorted(crossings(board, "board_top"))
    assert make(board).returncode == 0
    limits = set((board / "build" / "limits").read_text().splitlines())
    said = lambda *words: " ".join("{%s}" % word if "[" in word else word for word in (*words, "16.666"))
    assert limits == {
        said("delay", other, f"{path}/{register}[*]")
        for module, path, own, other in map(str.split, CELLS.strip().splitlines())
        for register in {"agg_sync": ["first_reg_reg"], "agg_async_fifo": ["m_tdata_reg_reg"], "agg_board_reset": ["run_reg_reg"]}[module]
    } | {said("delay", "clk", "u_reset/phy_run_reg_reg[*]")} | {
        said("skew", f"u_cross/{fifo}/{side}_gray_reg_reg[*]", f"u_cross/{fifo}/u_{side}_seen/first_reg_reg[*]")
        for fifo in ("u_rx", "u_tx")
        for side in ("wr", "rd")
    }


@pytest.mark.parametrize(
    "ends, slack, said",
    [
        (("max", "clk", "clk"), -0.5, "clk has 58.3 MHz, not 60"),
        (("max", "fifo_clk", "fifo_clk"), -0.1, "fifo_clk has 59.6 MHz, not 60"),
        (("min", "clk", "clk"), -0.2, "u_card/some_reg/D misses its hold time by 0.20 ns"),
        (("max", "clk", "fifo_clk"), -1.0, "a path from clk to fifo_clk takes 3.6 ns"),
        (("max", "fifo_clk", "clk"), -1.0, "a path from fifo_clk to clk takes 2.6 ns"),
        (("max", "inputs", "registers"), -0.3, "a path from a pin to a register misses its setup time by 0.30 ns"),
        (("min", "inputs", "registers"), -0.3, "a path from a pin to a register misses its hold time by 0.30 ns"),
        (("max", "registers", "outputs"), -0.3, "a path from a register to a pin misses its setup time by 0.30 ns"),
        (("min", "registers", "outputs"), -0.3, "a path from a register to a pin misses its hold time by 0.30 ns"),
        (("max", "clk", "clk"), None, "no path of clk is timed"),
        (("max", "registers", "outputs"), None, "no path from a register to a pin is timed"),
        (("max", "fifo_clk", "clk"), None, "what goes from fifo_clk to clk has no limit"),
    ],
)
def test_fails_when_a_path_misses_its_time(board, monkeypatch, ends, slack, said):
    worst = {**MET, ends: (slack, MET[ends][1])}
    paths(monkeypatch, {ends: path for ends, path in worst.items() if path[0] is not None})
    refuses(board, said)
    assert (board / "build" / "calls").read_text().split() == STEPS[:-1]


def refuses(board, said):
    """Checks that the build ends with the status and the word, and leaves no bitstream."""
    done = make(board)
    assert done.returncode != 0
    assert said in done.stderr, done.stderr
    assert not [name for name in built(board) if name.endswith(".bit")]


@pytest.mark.parametrize(
    "line, instead, said",
    [
        (r"set_property -dict \{PACKAGE_PIN P19 .*", "", "fifo_rd_n has no pin"),
        (r"PACKAGE_PIN R18 IOSTANDARD LVCMOS33", "PACKAGE_PIN R18", "fifo_data[6] has no I/O standard"),
        (r"get_ports \{fifo_oe_n\}", "get_ports {fifo_oe}", "[Vivado 12-584] nothing matched 'fifo_oe'"),
        (r"u_pll/u_pll/CLKOUT0", "u_pll/CLKOUT0", "[Vivado 12-508] nothing matched"),
        (r"create_clock -name fifo_clk .*", "", "[Vivado 12-627] nothing matched 'fifo_clk'"),
        (r"create_clock -name clk_in .*", "", "there is no clock clk_in"),
        (r"-period 16.666", "-period 20", "fifo_clk has a period of 20 ns, not that of 60 MHz"),
        (r"set_max_delay .* -to \[get_clocks clk\] .*", "", "what goes from fifo_clk to clk has no limit"),
        (r"(set_max_delay .* -to \[get_clocks fifo_clk\]) .*", r"\1 20", "what goes from clk to fifo_clk has no limit, or a longer one than 16.66"),
    ],
)
def test_fails_when_a_constraint_is_lost(board, line, instead, said):
    path = board / "nexys-video.xdc"
    text, count = re.subn(line, instead, path.read_text())
    assert count
    path.write_text(text)
    refuses(board, said)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_leaves_nothing_and_is_heard(board, monkeypatch, step):
    monkeypatch.setenv("FAILS", step)
    refuses(board, "this is why")


def test_a_bitstream_from_before_does_not_stand_for_one(board, monkeypatch):
    assert make(board).returncode == 0
    os.utime(board / "board_top.v")
    paths(monkeypatch, {**MET, ("max", "clk", "clk"): (-0.5, 17.1)})
    assert make(board).returncode != 0
    assert "new.bit" not in built(board)
    assert make(board).returncode != 0, "what was made before is older than its sources"


def test_says_what_to_install(board):
    done = make(board, "VIVADO=no-such-vivado")
    assert done.returncode != 0
    assert "no-such-vivado is not on PATH: install AMD's Vivado" in done.stderr
    assert "settings64.sh" in done.stderr


def test_program_loads_the_bitstream(board):
    done = make(board, "program")
    assert done.returncode == 0, done.stderr
    assert (board.parents[1] / "loaded").read_text() == "--board nexysVideo build/nexys-video.bit\n"
