"""A PHY at RGMII pins, at 1 Gbit/s in full duplex: the line at its other side.

A byte takes a cycle of RXC: its low nibble at the rising edge, its high one at the falling edge. RX_CTL is high for
both in a frame. Between frames, RXD has the PHY's status: link, 125 MHz, full duplex (RGMII 2.0, in-band status).
RXD changes half-way between RXC's edges, as with a PHY that delays RXC. TXD is sampled half-way between TXC's edges,
as with an FPGA or a PHY that delays TXC.
"""

import zlib

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from bench import number

PERIOD_NS = 8
PREAMBLE = b"\x55" * 7 + b"\xd5"
GAP = 12  # bytes between frames, at least
UP, DOWN = 0b1101, 0b0100  # in-band status: 125 MHz, and full duplex with a link


def fcs(frame):
    """Returns the FCS of a frame: CRC-32 of IEEE 802.3, low byte first."""
    return zlib.crc32(frame).to_bytes(4, "little")


class Phy:
    """Sends frames to the MAC, and receives its own.

    prefix: the names of the pins begin with it.
    status: the in-band status, UP or DOWN.
    arrived: what the MAC sent: (frame with FCS, whether RX_ER's kind of error marked it), and gaps: the idle
        cycles before each.
    """

    def __init__(self, dut, prefix="rgmii"):
        names = ("rx_clk", "rx_ctl", "rx_data", "tx_clk", "tx_ctl", "tx_data")
        self.rx_clk, self.rx_ctl, self.rx_data, self.tx_clk, self.tx_ctl, self.tx_data = (
            getattr(dut, f"{prefix}_{name}") for name in names
        )
        self.status = UP
        self.arrived, self.gaps = [], []
        self._queue = []
        cocotb.start_soon(self._drive())
        cocotb.start_soon(self._sample())

    def send(self, frame, tail=None, gap=GAP, preamble=PREAMBLE):
        """Queues a frame, with its FCS or another tail, and the idle cycles behind it."""
        self._queue.append((preamble + frame + (fcs(frame) if tail is None else tail), gap))

    async def drained(self):
        """Waits until all frames have been sent."""
        while self._queue or self._busy:
            await RisingEdge(self.rx_clk)

    async def _drive(self):
        self._busy = False
        while True:
            line, gap = self._queue.pop(0) if self._queue else (b"", 1)
            self._busy = bool(line)
            for byte in line:
                await self._cycle(byte & 15, byte >> 4, 1)
            for _ in range(gap):
                await self._cycle(self.status, self.status, 0)

    async def _cycle(self, low, high, control):
        """Drives a cycle. Data is stable a quarter of a period before and after each edge of RXC."""
        quarter = Timer(PERIOD_NS // 4, unit="ns")
        self.rx_data.value, self.rx_ctl.value = low, control
        await quarter
        self.rx_clk.value = 1
        await quarter
        self.rx_data.value = high
        await quarter
        self.rx_clk.value = 0
        await quarter

    async def _sample(self):
        frame, gap, quarter = b"", 0, Timer(PERIOD_NS // 4, unit="ns")
        while True:
            await RisingEdge(self.tx_clk)
            await quarter
            low, first = number(self.tx_data), number(self.tx_ctl)
            await FallingEdge(self.tx_clk)
            await quarter
            high, second = number(self.tx_data), number(self.tx_ctl)
            assert first == second, "TX_CTL signals an error"
            if first:
                frame += bytes([low | high << 4])
                continue
            if frame:
                assert frame.startswith(PREAMBLE), frame[:10].hex()
                self.arrived.append(frame[len(PREAMBLE) :])
                self.gaps.append(gap)
                frame, gap = b"", 0
            gap += 1
