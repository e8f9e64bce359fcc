"""agg_eth_rx_cross and agg_eth_tx_cross: frames between a MAC's clock and the card's."""

import os
import random

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from bench import bits, leaf, number, run

# Periods of the MAC's clock and the card's, in ns, and bytes in a beat of the card: a thousand times as on real boards,
# because a bench has whole ns. A card of 1 byte is as fast as the MAC, or 0.05 % slower. One of 8 bytes may be
# much slower.
FAST_ENOUGH = [(8000, 8000, 1), (8000, 8004, 1), (8000, 9090, 8), (8000, 20000, 8), (8000, 8000, 8)]
TOO_SLOW = [(8000, 24000, 1), (8000, 300000, 8)]

LONGEST = 9018
GAP = 24  # cycles between frames on a line: FCS, gap, preamble
SETTLED = 80  # cycles in which all that is under way arrives


def clock(signal, ns):
    """Starts a clock."""
    cocotb.start_soon(Clock(signal, ns, unit="ns", period_high=ns // 2, impl="gpi").start())


async def start(dut):
    """Starts both clocks, and releases the MAC's reset and then the card's. Returns the bytes of a beat."""
    eth, card, size = (int(os.environ[name]) for name in ("ETH_NS", "CARD_NS", "BEAT_BYTES"))
    dut.s_axis_tvalid.value = 0
    dut.rst.value = dut.eth_rst.value = 1
    clock(dut.eth_clk, eth)
    clock(dut.clk, card)
    await ClockCycles(dut.clk, 4)
    await ClockCycles(dut.eth_clk, 4)
    dut.eth_rst.value = 0
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 4)
    return size


def beats(frame, size):
    """Returns the beats of a frame: data, keep, and whether it is the last."""
    for at in range(0, len(frame), size):
        part = frame[at : at + size]
        yield int.from_bytes(part, "little"), (1 << len(part)) - 1, at + size >= len(frame)


async def take(dut, size, frames, errors):
    """Collects frames at m_axis into frames, and whether each is bad into errors."""
    frame = b""
    while True:
        await RisingEdge(dut.clk)
        if not number(dut.m_axis_tvalid):
            continue
        places = bits(dut.m_axis_tdata)  # those that are not kept may be X
        keep, last = number(dut.m_axis_tkeep), number(dut.m_axis_tlast)
        assert keep & (keep + 1) == 0 and (last or keep == (1 << size) - 1)
        for at in range(size, size - keep.bit_length(), -1):
            frame += bytes([int(places[8 * at - 8 : 8 * at], 2)])
        if last:
            frames.append(frame)
            errors.append(number(dut.m_axis_tuser))
            frame = b""


def sizes(rng, some):
    """Returns sizes of frames: the shortest, the longest, all ends of a beat, and others."""
    return [60, LONGEST, 60, 60, *range(61, 70), *(rng.randrange(60, 400) for _ in range(some)), 1514]


# -- From the MAC ----------------------------------------------------------------------------------


async def arrive(dut, frames, gap):
    """Lets frames come from the MAC, each with whether it is bad."""
    await RisingEdge(dut.eth_clk)
    for frame, bad in frames:
        for i, byte in enumerate(frame):
            dut.s_axis_tvalid.value = 1
            dut.s_axis_tdata.value = byte
            dut.s_axis_tlast.value = int(i == len(frame) - 1)
            dut.s_axis_tuser.value = int(bad and i == len(frame) - 1)
            await RisingEdge(dut.eth_clk)
        dut.s_axis_tvalid.value = 0
        await ClockCycles(dut.eth_clk, gap)


@cocotb.test(timeout_time=10, timeout_unit="sec")
async def brings_every_frame(dut):
    """agg_eth_rx_cross: frames at line rate arrive byte for byte, and bad ones as bad."""
    rng = random.Random(1)
    size = await start(dut)
    sent = [(rng.randbytes(n), rng.random() < 0.3) for n in sizes(rng, 30)]
    frames, errors = [], []
    cocotb.start_soon(take(dut, size, frames, errors))
    await arrive(dut, sent, GAP)
    await ClockCycles(dut.clk, SETTLED)
    assert frames == [frame for frame, _ in sent]
    assert errors == [int(bad) for _, bad in sent]


@cocotb.test(timeout_time=10, timeout_unit="sec")
async def flags_what_is_cut(dut):
    """agg_eth_rx_cross: to a card that is too slow, a frame comes whole or is flagged; what is not flagged comes in
    order, and frames come again once there is room."""
    rng = random.Random(2)
    size = await start(dut)
    frames, errors = [], []
    cocotb.start_soon(take(dut, size, frames, errors))
    sent = []
    for _ in range(12):
        burst = [(rng.randbytes(rng.choice([1, 5, 9, 12, 60, 61, 100, 300])), False) for _ in range(15)]
        sent += burst
        await arrive(dut, burst, rng.choice([1, 3, 24]))
        await ClockCycles(dut.clk, SETTLED)
        alone = (rng.randbytes(size * 10), False)  # finds an empty memory
        sent.append(alone)
        await arrive(dut, [alone], 1)
        await ClockCycles(dut.clk, SETTLED)
        assert frames[-1] == alone[0] and not errors[-1]
    rest = iter([frame for frame, _ in sent])
    whole = [frame for frame, bad in zip(frames, errors) if not bad]
    assert all(frame in rest for frame in whole)  # a subsequence
    assert 12 < len(whole) < len(sent)
    assert sum(errors) > 12 and len(frames) <= len(sent)
    rest = iter([frame for frame, _ in sent])
    for frame, bad in zip(frames, errors):  # of a flagged frame came a beginning, and perhaps its last beat
        if bad and len(frame) > 2 * size:
            assert any(f[: len(frame) - size] == frame[: len(frame) - size] for f in rest)


# -- To the MAC ------------------------------------------------------------------------------------


async def offer(dut, frames, size, gap=0):
    """Offers frames of the card: no pause within one."""
    await RisingEdge(dut.clk)
    for frame in frames:
        for data, keep, last in beats(frame, size):
            dut.s_axis_tvalid.value = 1
            dut.s_axis_tdata.value = data
            dut.s_axis_tkeep.value = keep
            dut.s_axis_tlast.value = int(last)
            await RisingEdge(dut.clk)
            while not number(dut.s_axis_tready):
                await RisingEdge(dut.clk)
        dut.s_axis_tvalid.value = 0
        if gap:
            await ClockCycles(dut.clk, gap)


async def transmit(dut, frames, waits):
    """Plays a MAC: it takes a byte a cycle, and none during FCS, gap and preamble. Appends the frames, and for each
    whether it was late for line rate. A frame must not pause."""
    while True:
        dut.m_axis_tready.value = 0
        await ClockCycles(dut.eth_clk, GAP)
        waits.append(not number(dut.m_axis_tvalid))
        dut.m_axis_tready.value = 1
        frame, last = b"", False
        while not last:
            await RisingEdge(dut.eth_clk)
            if number(dut.m_axis_tvalid):
                frame += bytes([number(dut.m_axis_tdata)])
                last = number(dut.m_axis_tlast)
            else:
                assert not frame, "a frame pauses"
        frames.append(frame)


@cocotb.test(timeout_time=10, timeout_unit="sec")
@cocotb.parametrize(gap=[0, 40])
async def sends_every_frame(dut, gap):
    """agg_eth_tx_cross: frames leave byte for byte and without a pause, and at line rate while they are there."""
    rng = random.Random(3)
    dut.link_up.value = 1
    size = await start(dut)
    sent = [rng.randbytes(n) for n in sizes(rng, 30)]
    frames, waits = [], []
    cocotb.start_soon(transmit(dut, frames, waits))
    await offer(dut, sent, size, gap)
    while len(frames) < len(sent):
        await RisingEdge(dut.eth_clk)
    assert frames == sent
    if not gap:
        assert not any(waits[1 : len(sent)])


@cocotb.test(timeout_time=10, timeout_unit="sec")
async def drops_frames_without_a_link(dut):
    """agg_eth_tx_cross: without a link, frames are dropped whole, as fast as the card offers them; one that has begun
    ends, and with the link the next frame leaves whole."""
    rng = random.Random(4)
    dut.link_up.value = 0
    size = await start(dut)
    frames = []
    cocotb.start_soon(transmit(dut, frames, []))
    await offer(dut, [rng.randbytes(n) for n in (60, 61, 500, 64)], size)
    await ClockCycles(dut.eth_clk, 4 * SETTLED)
    assert frames == []
    dut.link_up.value = 1
    await ClockCycles(dut.eth_clk, 2)
    cut = [rng.randbytes(500), rng.randbytes(100)]
    cocotb.start_soon(offer(dut, cut, size))
    while not (number(dut.m_axis_tvalid) and number(dut.m_axis_tready)):
        await RisingEdge(dut.eth_clk)
    dut.link_up.value = 0
    await ClockCycles(dut.eth_clk, 1000)
    assert frames == cut[:1]
    dut.link_up.value = 1
    await ClockCycles(dut.eth_clk, 2)
    after = rng.randbytes(300)
    await offer(dut, [after], size)
    await ClockCycles(dut.eth_clk, 500)
    assert frames == [cut[0], after]


# -- Runs ------------------------------------------------------------------------------------------


def run_with(name, pair, testcase):
    """Runs tests of a leaf with the clock periods and beats of a pair."""
    eth, card, size = pair
    env = {"ETH_NS": str(eth), "CARD_NS": str(card), "BEAT_BYTES": str(size)}
    sources = [leaf(name) for name in (name, "agg_async_fifo", "agg_sync")]
    run(name, sources=sources, parameters={"BYTES": size}, testcase=testcase, env=env)


@pytest.mark.parametrize("pair", FAST_ENOUGH)
def test_agg_eth_rx_cross(pair):
    run_with("agg_eth_rx_cross", pair, ["brings_every_frame"])


@pytest.mark.parametrize("pair", TOO_SLOW)
def test_agg_eth_rx_cross_to_a_slow_card(pair):
    run_with("agg_eth_rx_cross", pair, ["flags_what_is_cut"])


@pytest.mark.parametrize("pair", FAST_ENOUGH)
def test_agg_eth_tx_cross(pair):
    run_with("agg_eth_tx_cross", pair, ["sends_every_frame/gap=0", "sends_every_frame/gap=40", "drops_frames_without_a_link"])
