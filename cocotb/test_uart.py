"""A UART's receiver, transmitter and queue, with a model of the other end of the line."""

import itertools
import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, First, RisingEdge, Timer
from cocotb.utils import get_sim_time

from bench import CLOCK_PERIOD_NS, leaf, run, start
from streams import PATTERNS, StreamSink, StreamSource

# Cycles per bit: 3,000,000 baud at 60 MHz, the minimum, and an odd number.
DIVIDES = [20, 8, 87]


def simulator_of(divide):
    """Returns the simulator for a bench; Icarus is slow with long bits."""
    return "verilator" if divide > 20 else "icarus"


def bit_ns(dut):
    """Returns a bit's nominal time."""
    return int(dut.DIVIDE.value) * CLOCK_PERIOD_NS


def tolerance(divide):
    """Returns the largest deviation of a sender's rate, as in agg_uart_rx."""
    return (divide / 2 - divide // 8 - 1) / (10 * divide)


def some_bytes(rng, count):
    """Returns random bytes, and some whose bits are equal or alternate."""
    return [0x00, 0xFF, 0x55, 0xAA, 0x80, 0x01, *(rng.randrange(256) for _ in range(count))]


# -- agg_uart_rx -----------------------------------------------------------------------------------


class Sender:
    """Sends bytes with bits 1 + off times as long as nominal; edges fall anywhere between clock
    edges."""

    def __init__(self, dut, off=0.0):
        self.dut, self.bit = dut, bit_ns(dut) * (1 + off)
        self.due = None  # time of the next edge, in ns
        dut.line.value = 1

    async def hold(self, level, bits=1.0):
        """Holds a level for that many bits; rounding errors do not accumulate."""
        if self.due is None:
            self.due = get_sim_time("ns")
        self.dut.line.value = level
        self.due += bits * self.bit
        await Timer(max(1, round(self.due - get_sim_time("ns"))), "ns")

    async def idle(self, bits):
        """Sends nothing for that many bits; the next byte starts at a new phase of the clock."""
        self.dut.line.value = 1
        await Timer(max(1, round(bits * self.bit)), "ns")
        self.due = None

    async def send(self, byte, stop=1):
        """Sends a byte."""
        for level in (0, *(byte >> i & 1 for i in range(8)), stop):
            await self.hold(level)


class Received:
    """Records the receiver's bytes and their times."""

    def __init__(self, dut):
        self.bytes, self.times = [], []
        cocotb.start_soon(self._run(dut))

    async def _run(self, dut):
        while True:
            await RisingEdge(dut.m_byte_valid)
            await RisingEdge(dut.clk)
            self.bytes.append(int(dut.m_byte_data.value))
            self.times.append(get_sim_time("ns"))
            await FallingEdge(dut.clk)
            assert dut.m_byte_valid.value == 0


async def start_receiver(dut, off=0.0):
    """Resets the receiver; returns a sender and the record of received bytes."""
    sender = Sender(dut, off)
    received = Received(dut)
    await start(dut)
    await sender.idle(1)
    return sender, received


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(off=[-1.0, -0.6, 0.0, 0.6, 1.0], gaps=["none", "some"])
async def receives_every_byte(dut, off, gaps):
    """agg_uart_rx: receives bytes of a sender within the tolerance, back to back or with any
    pauses."""
    rng = random.Random(f"{off} {gaps}")
    sender, received = await start_receiver(dut, off * tolerance(int(dut.DIVIDE.value)))
    sent = some_bytes(rng, 60)
    for byte in sent:
        await sender.send(byte)
        if gaps == "some":
            await sender.idle(rng.uniform(0.05, 3))
    await sender.idle(2)
    assert received.bytes == sent


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def gives_a_byte_at_its_stop_bit(dut):
    """agg_uart_rx: a byte arrives VOTE + 3 or VOTE + 4 cycles after the middle of its stop bit."""
    divide = int(dut.DIVIDE.value)
    sender, received = await start_receiver(dut)
    for phase in range(1, CLOCK_PERIOD_NS):
        await Timer(phase, "ns")
        begun = get_sim_time("ns")
        sender.due = None
        await sender.send(0x5A)
        await sender.idle(1)
        behind = (received.times[-1] - begun - 9 * bit_ns(dut)) / CLOCK_PERIOD_NS - divide // 2 - divide // 8
        assert 3 <= behind <= 4 + 1, behind  # a read is an edge later
    assert received.bytes == [0x5A] * (CLOCK_PERIOD_NS - 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(off=[-0.3, 0.3])
async def another_rate_is_noticed(dut, off):
    """agg_uart_rx: does not receive the bytes of a sender whose rate is off by 30 %."""
    rng = random.Random(f"{off}")
    sender, received = await start_receiver(dut, off)
    sent = some_bytes(rng, 30)
    for byte in sent:
        await sender.send(byte)
    await sender.idle(20)
    assert received.bytes != sent
    # The receiver is then in step with a correct sender again.
    sender.bit, before = bit_ns(dut), len(received.bytes)
    for byte in sent:
        await sender.send(byte)
    await sender.idle(2)
    assert received.bytes[before:] == sent


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def glitches_change_no_bit(dut):
    """agg_uart_rx: a glitch of up to VOTE cycles anywhere in a bit, or between bytes, changes
    nothing."""
    rng = random.Random(2)
    vote = max(1, int(dut.DIVIDE.value) // 8) * CLOCK_PERIOD_NS
    bit = bit_ns(dut)
    sender, received = await start_receiver(dut)
    sent = some_bytes(rng, 80)
    for byte in sent:
        levels = [0, *(byte >> i & 1 for i in range(8)), 1]
        for place, level in enumerate(levels):
            wide = rng.randint(1, vote)
            # The start bit keeps its edge. The last glitch ends half a bit before the next byte.
            first = CLOCK_PERIOD_NS * 3 if place == 0 else 1
            last = bit // 2 if place == 9 else bit
            at = rng.randint(first, last - wide - 1)
            for value, time in ((level, at), (1 - level, wide), (level, bit - at - wide)):
                dut.line.value = value
                await Timer(time, "ns")
        if rng.random() < 0.3:  # a glitch while nobody sends
            await Timer(bit, "ns")
            dut.line.value = 0
            await Timer(rng.randint(1, vote), "ns")
            dut.line.value = 1
            await Timer(2 * bit, "ns")
    await Timer(2 * bit, "ns")
    assert received.bytes == sent


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def drops_bytes_without_a_stop_bit(dut):
    """agg_uart_rx: a byte with a low stop bit is dropped, and so is a line that stays low; the
    next byte is whole."""
    rng = random.Random(3)
    sender, received = await start_receiver(dut)
    good = []
    for low in [1.0, 1.5, 7.3, 11, 45, *(rng.uniform(1, 30) for _ in range(10))]:
        await sender.send(rng.randrange(256), stop=0)
        await sender.hold(0, low)
        await sender.idle(rng.uniform(0.2, 2))
        for byte in some_bytes(rng, 2):
            await sender.send(byte)
            good.append(byte)
        await sender.idle(1)
        await sender.hold(0, 10 + low)  # a break
        await sender.idle(1)
    assert received.bytes == good


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(level=[0, 1])
async def begins_with_a_high_line(dut, level):
    """agg_uart_rx: a line that is low at the end of reset yields no byte, nor does the reset."""
    received = Received(dut)
    dut.line.value = level
    await start(dut)
    await Timer(30 * bit_ns(dut), "ns")
    assert not received.bytes
    sender = Sender(dut)
    await sender.idle(0.2)
    await sender.send(0xA7)
    await sender.idle(1)
    assert received.bytes == [0xA7]
    # A reset in the middle of a byte drops it.
    sending = cocotb.start_soon(sender.send(0xFF))
    await Timer(4 * bit_ns(dut), "ns")
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    await sending
    await sender.send(0x31)
    await sender.idle(1)
    assert received.bytes == [0xA7, 0x31]


@pytest.mark.parametrize("divide", DIVIDES)
def test_agg_uart_rx(divide):
    run(
        "agg_uart_rx",
        sources=[leaf("agg_uart_rx"), leaf("agg_sync")],
        parameters={"DIVIDE": divide},
        simulator=simulator_of(divide),
        testcase=RECEIVER,
    )


RECEIVER = [
    *(f"receives_every_byte/off={o}/gaps={g}" for o in (-1.0, -0.6, 0.0, 0.6, 1.0) for g in ("none", "some")),
    "gives_a_byte_at_its_stop_bit",
    *(f"another_rate_is_noticed/off={o}" for o in (-0.3, 0.3)),
    "glitches_change_no_bit",
    "drops_bytes_without_a_stop_bit",
    *(f"begins_with_a_high_line/level={v}" for v in (0, 1)),
]


# -- agg_uart_tx -----------------------------------------------------------------------------------


class Line:
    """The transmitter's line: the level of each stretch, and its length in ns."""

    def __init__(self, dut):
        self.dut, self.held = dut, []
        self.level, self.since = 1, None
        cocotb.start_soon(self._run())

    async def _run(self):
        while True:
            await First(RisingEdge(self.dut.line), FallingEdge(self.dut.line))
            now = get_sim_time("ns")
            if self.since is not None:
                self.held.append((self.level, now - self.since))
            self.level, self.since = int(self.dut.line.value), now


async def read(dut, off, taken):
    """Reads bytes from the line like a receiver with an inexact clock: in the middle of each
    bit, counted from the start bit."""
    bit = bit_ns(dut) * (1 + off)
    while True:
        await FallingEdge(dut.line)
        begun = get_sim_time("ns")
        byte = 0
        for place in range(10):
            await Timer(round(begun + (place + 0.5) * bit - get_sim_time("ns")), "ns")
            level = int(dut.line.value)
            assert place or not level, "the start bit is high"
            assert place < 9 or level, "the stop bit is low"
            byte |= level << (place - 1) if 0 < place < 9 else 0
        taken.append(byte)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(off=[-0.04, 0.0, 0.04], idle=["never", "bursts"])
async def sends_every_byte(dut, off, idle):
    """agg_uart_tx: a receiver that is off by 4 % reads each byte; levels last for whole bits of
    nominal length."""
    rng = random.Random(f"{off} {idle}")
    sent, taken = some_bytes(rng, 40), []
    source = StreamSource(dut, "s_axis", PATTERNS[idle]())
    cocotb.start_soon(read(dut, off, taken))
    await start(dut)
    assert dut.line.value == 1
    line = Line(dut)
    source.put([{"tdata": b} for b in sent])
    await source.drained()
    await Timer(12 * bit_ns(dut), "ns")
    assert taken == sent
    assert dut.line.value == 1
    gap = int(dut.DIVIDE.value) * 10
    apart = [b - a for a, b in itertools.pairwise(source.accepted_at)]
    assert all(cycles >= gap for cycles in apart)
    if idle == "never":
        assert set(apart) == {gap}
        assert all(ns % bit_ns(dut) == 0 for _, ns in line.held)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def rests_high(dut):
    """agg_uart_tx: the line is high while idle, and immediately in a reset, even in the middle
    of a byte."""
    dut.s_axis_tvalid.value = 0
    await start(dut)
    for _ in range(50):
        await RisingEdge(dut.clk)
        assert dut.line.value == 1 and dut.s_axis_tready.value == 1
    dut.s_axis_tdata.value, dut.s_axis_tvalid.value = 0, 1
    await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.s_axis_tvalid.value = 0
    assert dut.line.value == 0 and dut.s_axis_tready.value == 0
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    assert dut.line.value == 1
    dut.rst.value = 0
    for _ in range(12 * int(dut.DIVIDE.value)):
        await RisingEdge(dut.clk)
        assert dut.line.value == 1


@pytest.mark.parametrize("divide", DIVIDES)
def test_agg_uart_tx(divide):
    run("agg_uart_tx", parameters={"DIVIDE": divide}, simulator=simulator_of(divide), testcase=TRANSMITTER)


TRANSMITTER = [
    *(f"sends_every_byte/off={o}/idle={i}" for o in (-0.04, 0.0, 0.04) for i in ("never", "bursts")),
    "rests_high",
]


# -- agg_uart_queue --------------------------------------------------------------------------------


async def feed(dut, byte):
    """Offers a byte for one cycle."""
    dut.s_byte_data.value, dut.s_byte_valid.value = byte, 1
    await RisingEdge(dut.clk)
    dut.s_byte_data.value, dut.s_byte_valid.value = byte ^ 0xFF, 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall=list(PATTERNS))
async def keeps_order(dut, stall):
    """agg_uart_queue: bytes that arrive no faster than they leave come out once and in order."""
    rng = random.Random(stall)
    dut.s_byte_valid.value = 0
    sink = StreamSink(dut, "m_axis", PATTERNS[stall]())
    await start(dut)
    sent = [rng.randrange(256) for _ in range(300)]
    for byte in sent:
        await feed(dut, byte)
        await ClockCycles(dut.clk, 19)
    assert [b["tdata"] for b in await sink.take(len(sent))] == sent


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def loses_what_has_no_place(dut):
    """agg_uart_queue: without a reader, it keeps its depth plus one byte; later bytes are lost."""
    places = 1 << int(dut.DEPTH_BITS.value)
    dut.s_byte_valid.value = 0
    dut.m_axis_tready.value = 0
    await start(dut)
    for byte in range(places + 9):
        await feed(dut, byte)
        await ClockCycles(dut.clk, 3)
    taken = []
    dut.m_axis_tready.value = 1
    for _ in range(4 * places):
        await FallingEdge(dut.clk)
        if dut.m_axis_tvalid.value == 1:
            taken.append(int(dut.m_axis_tdata.value))
        await RisingEdge(dut.clk)
    assert taken == list(range(places + 1))
    # Bytes that arrive then are kept again.
    await feed(dut, 0xEE)
    await RisingEdge(dut.m_axis_tvalid)
    assert dut.m_axis_tdata.value == 0xEE


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def stands_until_it_is_taken(dut):
    """agg_uart_queue: a byte is valid from the second cycle after it arrived; a reset empties
    the queue."""
    dut.s_byte_valid.value = 0
    dut.m_axis_tready.value = 0
    await start(dut)
    await feed(dut, 0x12)
    await FallingEdge(dut.clk)
    assert dut.m_axis_tvalid.value == 0
    await FallingEdge(dut.clk)
    assert dut.m_axis_tvalid.value == 1 and dut.m_axis_tdata.value == 0x12
    await feed(dut, 0x34)
    await ClockCycles(dut.clk, 20)
    assert dut.m_axis_tvalid.value == 1 and dut.m_axis_tdata.value == 0x12
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    for _ in range(20):
        await FallingEdge(dut.clk)
        assert dut.m_axis_tvalid.value == 0


def test_agg_uart_queue():
    run(
        "agg_uart_queue",
        sources=[leaf("agg_uart_queue"), leaf("agg_ram")],
        parameters={"DEPTH_BITS": 4},
        testcase=[*(f"keeps_order/stall={s}" for s in PATTERNS), "loses_what_has_no_place", "stands_until_it_is_taken"],
    )
