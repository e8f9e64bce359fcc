"""A card of shell udp on a board, at its RGMII pins: the whole FPGA but for its PLL, with hosts on the line.

The clock of the card is that of the board. The PHY's reset is shortened, as it lasts milliseconds.
"""

import random
import re
import shutil
import struct
import subprocess
import sys

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from scapy.layers.l2 import ARP, Ether

import model
import zwire
from bench import BUILD, ROOT, number, run
from ethernet import datagram, ethernet, judge, udp_frame
from rgmii import Phy, fcs

CELLS = ROOT / "verify" / "system" / "board" / "pins" / "cells"
GENERATED = CELLS.parent / "generated.vlt"
CARD_NS = 12  # 83 MHz; hwgen's default for the board is 80

CARD = (0x025452420001, 0xC0A85442, 21570)  # as hwgen -h has it
OWNER = (0x061122334455, 0xC0A85401, 40000)
MEMBERS = [(0x061122334455, 0xC0A85401, 40001), (0x0A0000000002, 0xC0A85402, 40002)]
CHUNK, ELEMENT = 8, "f"
TOKEN = 0x1234567890ABCDEF


class Network:
    """Hosts behind the PHY. They take frames in their order."""

    def __init__(self, dut):
        self.dut, self.tag = dut, 0

    async def start(self):
        """Starts the clocks of card and PHY."""
        dut = self.dut
        self.phy = Phy(dut, "rgmii_p0")
        cocotb.start_soon(Clock(dut.clk_in, CARD_NS, unit="ns", period_high=CARD_NS // 2, impl="gpi").start())
        await ClockCycles(dut.clk_in, 10)

    async def next(self):
        """Returns the next frame from the card, without its FCS, which holds."""
        for _ in range(3000):
            if self.phy.arrived:
                frame = self.phy.arrived.pop(0)
                assert frame[-4:] == fcs(frame[:-4])
                return frame[:-4]
            await RisingEdge(self.dut.clk_in)
        raise AssertionError("the card sends nothing")

    async def receive(self, member):
        """Returns the next datagram, which is for a member: header and payload."""
        frame = await self.next()
        parsed = judge(frame)
        assert (parsed.dst, parsed["IP"].dst, parsed["UDP"].dport) == (mac_text(member[0]), ip_text(member[1]), member[2])
        assert (parsed.src, parsed["IP"].src, parsed["UDP"].sport) == (mac_text(CARD[0]), ip_text(CARD[1]), CARD[2])
        data = bytes(parsed["UDP"].payload)[: parsed["UDP"].len - 8]
        size = model.header_bytes(data[0] >> zwire.HDR_KIND_LSB & 15, shared=True)
        assert datagram(model.unpack(data[:size]), data[size:-4]) == data
        return model.unpack(data[:size]), data[size:-4]

    async def access(self, kind, address, value=0):
        """Accesses a register as the owner, and returns code and value."""
        self.tag += 1
        header = {"version": zwire.VERSION, "kind": kind, "vid": address, "length": self.tag, "mask": value}
        self.phy.send(udp_frame(OWNER, CARD, datagram(header)))
        reply, _ = await self.receive(OWNER)
        assert (reply["kind"], reply["vid"], reply["length"]) == (zwire.KIND_REPLY, address, self.tag)
        return reply["code"], reply["mask"]

    async def write(self, address, value):
        code, _ = await self.access(zwire.KIND_REGWRITE, address, value)
        assert code == zwire.CODE_DONE, hex(address)

    async def set_up(self, epoch):
        """Takes the card and sets a job up for all members."""
        await self.write(zwire.REG_OWNER, TOKEN)
        for port, (mac, ip, udp) in enumerate(MEMBERS):
            at = zwire.REG_MEMBER_STRIDE * port
            await self.write(zwire.REG_MEMBER_ADDRESS + at, ip | udp << 32)
            await self.write(zwire.REG_MEMBER_MAC + at, mac)
        staged = {"TOKEN": TOKEN, "PORTS": 3, "CHUNK": CHUNK, "WINDOW": 1, "DEADLINE": 0, "COMMIT": epoch << 32}
        for name, value in staged.items():
            await self.write(getattr(zwire, f"REG_JOB_{name}"), value)

    def contribute(self, rank, vid, epoch, values, tail=None):
        """Sends a chunk of a member, with its FCS or another tail."""
        header = {"version": zwire.VERSION, "kind": zwire.KIND_DATA, "format": zwire.FORMAT_FP32, "epoch": epoch}
        header |= {"rank": rank, "vid": vid, "length": CHUNK}
        payload = struct.pack(f"<{CHUNK}{ELEMENT}", *values)
        self.phy.send(udp_frame(MEMBERS[rank], CARD, datagram(header, payload)), tail)


def mac_text(mac):
    return mac.to_bytes(6, "big").hex(":")


def ip_text(ip):
    return ".".join(map(str, ip.to_bytes(4, "big")))


async def started(dut):
    """Returns the network of a board whose power is on."""
    network = Network(dut)
    await network.start()
    return network


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def starts_with_the_phy(dut):
    """Power comes: the PHY is in reset for a while; the LED then shows its link. The tests below go on from here."""
    await started(dut)
    assert dut.rgmii_p0_rst_n.value == 0 and dut.led_link.value == 1  # LEDs are lit when low
    await RisingEdge(dut.rgmii_p0_rst_n)
    await ClockCycles(dut.clk_in, 100)
    assert dut.led_link.value == 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def answers_at_the_pins(dut):
    """ARP, an echo and a register: each answer leaves as a whole frame."""
    network = await started(dut)
    asked = Ether(src=mac_text(OWNER[0]), dst="ff:ff:ff:ff:ff:ff") / ARP(
        op=1, hwsrc=mac_text(OWNER[0]), psrc=ip_text(OWNER[1]), pdst=ip_text(CARD[1])
    )
    network.phy.send(bytes(asked).ljust(60, b"\0"))
    answer = Ether(await network.next())
    assert (answer.dst, answer[ARP].op, answer[ARP].hwsrc) == (mac_text(OWNER[0]), 2, mac_text(CARD[0]))
    code, value = await network.access(zwire.KIND_REGREAD, zwire.REG_PORTS)
    assert (code, value) == (zwire.CODE_DONE, len(MEMBERS))
    network.phy.send(ethernet(OWNER[0], 0x0A0000000009, 0x0800, bytes(100)))  # for another card
    code, value = await network.access(zwire.KIND_REGREAD, zwire.REG_SHELL)
    assert (code, value) == (zwire.CODE_DONE, zwire.SHELL_UDP)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def sums_at_the_pins(dut):
    """Two members on the line: each sum reaches both. A frame with a wrong FCS is in no sum, lights the error LED,
    and counts."""
    rng = random.Random(5)
    network = await started(dut)
    await network.set_up(epoch=7)
    assert dut.led_error.value == 1
    for vid in range(6):
        whole = [[rng.randrange(-1000, 1000) for _ in range(CHUNK)] for _ in MEMBERS]  # sums of fp32 are exact
        network.contribute(0, vid, 7, [9] * CHUNK, tail=b"\x11\x22\x33\x44")
        for rank, values in enumerate(whole):
            network.contribute(rank, vid, 7, values)
        want = struct.pack(f"<{CHUNK}{ELEMENT}", *map(sum, zip(*whole)))
        for member in MEMBERS:
            header, payload = await network.receive(member)
            assert (header["kind"], header["vid"], header["mask"]) == (zwire.KIND_RESULT, vid, 3)
            assert payload == want
    assert dut.led_error.value == 0
    assert not network.phy.arrived


def whole_board(folder):
    """Generates the card and returns the Verilog of its FPGA, with a short reset of the PHY and another PLL."""
    shutil.rmtree(folder, ignore_errors=True)
    flags = f"-board ecpix5 -shell udp -lanes 2 -workers {len(MEMBERS)} -chunk {CHUNK} -window 2"
    subprocess.run([ROOT / "bin" / "hwgen", *flags.split(), "-o", folder], check=True, capture_output=True)
    board = folder / "board"
    makefile = (board / "Makefile").read_text()
    delays = re.search(r"--tx-delay (\d+).*?--rx-delay (\d+)", makefile, re.DOTALL).groups()
    mac = board / "agg_eth_mac.v"
    subprocess.run([sys.executable, board / "ethernet_mac.py", "--tx-delay", delays[0], "--rx-delay", delays[1], "-o", mac], check=True)
    top = board / "board_top.v"
    short, count = re.subn(r"\.PHY_CYCLES\(\d+\)", ".PHY_CYCLES(50)", top.read_text())
    assert count == 1
    top.write_text(short)
    (board / "agg_pll.v").unlink()
    return [*sorted(folder.glob("*.v")), *sorted(board.glob("*.v"))]


def test_ethernet_board():
    folder = BUILD / "cards" / "ethernet_board"
    sources = whole_board(folder)
    cells = [CELLS / f"{name}.sv" for name in ("DELAYG", "IDDRX1F", "ODDRX1F")]
    run(
        "board_top",
        sources=[GENERATED, ROOT / "cocotb" / "board_pll.v", *cells, *sources],
        includes=[folder],
        simulator="verilator",
    )
