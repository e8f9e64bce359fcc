"""An Ethernet port of a board at its RGMII pins: the MAC that ethernet_mac.py writes, both crossings, and a card that
returns each good frame."""

import random
import subprocess
import sys

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from bench import BUILD, ROOT, leaf, number, run
from rgmii import DOWN, GAP, UP, Phy, fcs

MAC = ROOT / "hwgen" / "emit" / "board" / "ethernet" / "ethernet_mac.py"
PINS = ROOT / "verify" / "system" / "board" / "pins"
SHORTEST, LONGEST = 60, 9018
CARD_NS = {1: 8, 8: 9}  # period of the card's clock, by the bytes of its beats


class Port:
    """The port after its resets, with a PHY at its pins. errors counts frames that came bad."""

    def __init__(self, dut):
        self.dut, self.errors = dut, 0

    async def start(self):
        dut = self.dut
        dut.rst.value = dut.eth_rst.value = 1
        period = CARD_NS[int(dut.BYTES.value)]
        cocotb.start_soon(Clock(dut.clk, period, unit="ns", period_high=period // 2, impl="gpi").start())
        self.phy = Phy(dut)
        await ClockCycles(dut.clk, 8)
        dut.eth_rst.value = 0
        await ClockCycles(dut.clk, 8)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 30)
        cocotb.start_soon(self._count())

    async def _count(self):
        while True:
            await RisingEdge(self.dut.clk)
            self.errors += number(self.dut.error)
            assert not number(self.dut.dropped)

    async def settle(self, frames):
        """Waits until as many frames have returned, and a little longer."""
        await self.phy.drained()
        for _ in range(20000):
            if len(self.phy.arrived) >= frames:
                break
            await RisingEdge(self.dut.clk)
        await ClockCycles(self.dut.clk, 300)


async def started(dut):
    """Returns a port with a link."""
    port = Port(dut)
    await port.start()
    assert dut.link_up.value == 1
    return port


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def returns_frames_at_line_rate(dut):
    """The shortest and the longest frames, back to back: each returns byte for byte with its FCS, and the shortest
    gap between them."""
    rng = random.Random(1)
    port = await started(dut)
    sizes = [SHORTEST] * 20 + [LONGEST] + [*range(SHORTEST, SHORTEST + 9)] + [1514, LONGEST, SHORTEST, 1514]
    frames = [rng.randbytes(size) for size in sizes]
    for frame in frames:
        port.phy.send(frame)
    await port.settle(len(frames))
    assert port.phy.arrived == [frame + fcs(frame) for frame in frames]
    assert port.errors == 0
    assert min(port.phy.gaps[1:]) == GAP
    assert port.phy.gaps[1:20] == [GAP] * 19  # the card has them, so they leave at line rate


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def flags_damaged_frames(dut):
    """A frame with a flipped bit or a wrong FCS is flagged, and the frames beside it return."""
    rng = random.Random(2)
    port = await started(dut)
    good = []
    for i in range(24):
        frame = rng.randbytes(rng.randrange(SHORTEST, 200))
        port.phy.send(frame)
        good.append(frame + fcs(frame))
        flipped = bytearray(frame)
        flipped[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
        wrong = bytearray(fcs(frame))
        wrong[rng.randrange(4)] ^= 1 << rng.randrange(8)
        if i % 2:
            port.phy.send(bytes(flipped), fcs(frame))
        else:
            port.phy.send(frame, bytes(wrong))
    await port.settle(len(good))
    assert port.phy.arrived == good
    assert port.errors == 24


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def survives_fragments(dut):
    """What is not a frame disturbs at most the frame after it: a preamble without data, one without its end, one that
    is too short, and fragments of a few bytes."""
    rng = random.Random(3)
    port = await started(dut)
    for line in [b"\x55" * 7, b"\x55" * 3 + b"\xd5", b"", b"\xd5"]:
        port.phy.send(b"", b"", preamble=line, gap=30)
    for size in range(1, 12):
        port.phy.send(rng.randbytes(size), b"", gap=30)
        port.phy.send(rng.randbytes(100), b"\0\0\0\0", gap=30)  # may be taken for the fragment's rest
    frames = [rng.randbytes(100) for _ in range(5)]
    short = b"\x55" * 2 + b"\xd5"
    port.phy.send(frames[0], preamble=short)
    for frame in frames[1:]:
        port.phy.send(frame)
    await port.settle(len(frames))
    assert port.phy.arrived == [frame + fcs(frame) for frame in frames]


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def follows_the_link(dut):
    """Without a link, link_up is low and frames do not leave; with a link again they do."""
    rng = random.Random(4)
    port = await started(dut)
    frames = [rng.randbytes(100) for _ in range(3)]
    port.phy.status = DOWN
    await ClockCycles(dut.clk, 20)
    assert dut.link_up.value == 0
    port.phy.send(frames[0])
    await port.settle(1)
    assert port.phy.arrived == []
    port.phy.status = UP
    await ClockCycles(dut.clk, 20)
    assert dut.link_up.value == 1
    for frame in frames[1:]:
        port.phy.send(frame)
    await port.settle(2)
    assert port.phy.arrived == [frame + fcs(frame) for frame in frames[1:]]


@pytest.mark.parametrize("size", CARD_NS)
def test_ethernet_port(size):
    mac = BUILD / "ethernet_port" / "agg_eth_mac.v"
    mac.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, MAC, "--tx-delay", "2000", "--rx-delay", "0", "-o", mac], check=True)
    leaves = ["agg_eth_rx_cross", "agg_eth_tx_cross", "agg_async_fifo", "agg_sync", "agg_frame_queue"]
    cells = [PINS / "cells" / f"{name}.sv" for name in ("DELAYG", "IDDRX1F", "ODDRX1F")]
    run(
        "ethernet_port",
        sources=[PINS / "generated.vlt", *(ROOT / "cocotb" / f"{name}.v" for name in ("ethernet_port", "ethernet_card")), mac, *cells, *(leaf(name) for name in leaves)],
        parameters={"BYTES": size, "DEPTH_BITS": 15 if size == 1 else 12},
        simulator="verilator",
    )
