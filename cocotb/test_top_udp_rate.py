"""Throughput of the card on Ethernet, behind MACs of 10 and 100 Gbit/s, and frames back to back.

Results are the fuller direction: as many as contributions, with 16 bytes more each.
"""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge

import zwire
from cards import usual
from traffic import Contributions, data_header
from udp_card import run_udp_card
from wires import WiredCard, check_rate

CHUNKS = {256: 24, 1024: 8, 2048: 6}  # by elements

SHORT = {"kind": zwire.KIND_ASK, "epoch": 0x77, "vid": 0}  # in a frame of 60 bytes

# A card for short chunks has shorter queues.
CARDS = {
    "rate64": "-lanes 4 -format int32 -workers 4 -chunk 2048 -window 4 -link 64".split(),
    "rate512_short": "-lanes 16 -format int32 -workers 4 -chunk 256 -window 4 -link 512".split(),
    "rate512": "-lanes 16 -format int32 -workers 4 -chunk 2048 -window 4 -link 512".split(),
}


@pytest.mark.parametrize("card", usual(CARDS, "rate512_short"))
def test_top_udp_rate(card):
    run_udp_card(card, CARDS[card])


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def results_fill_the_wire(dut):
    """Four members behind one port, payloads of 1, 4 and 8 KiB, a job after the other."""
    card = WiredCard(dut)
    await card.reset()
    for epoch, size in enumerate(CHUNKS):
        if size <= card.chunk:
            await fill(card, epoch, size)
    found = await card.counters()
    assert "dropped" not in found and "stranger" not in found


async def fill(card, epoch, size):
    """Sums chunks of so many elements; each member sends as soon as its window allows."""
    chunks = CHUNKS[size]
    await card.set_up(epoch, chunk=size)
    data = Contributions(card, random.Random(1), chunks, size=size)
    frames = [[contribution(card, data, rank, vid, epoch) for rank in range(card.ports)] for vid in range(chunks)]
    card.frames.clear()
    card.sent.clear()
    card.paced()
    for vid in range(chunks):
        while len(card.sent) < (vid - card.window + 1) * card.ports:
            await FallingEdge(card.dut.clk)
        for rank in range(card.ports):
            card.put(frames[vid][rank])
    await card.quiet()
    got = [(header["kind"], header["vid"], to, header["flags"], payload) for header, payload, to in card.sent]
    assert got == [
        (zwire.KIND_RESULT, vid, member, data.flags(vid), data.sum(vid))
        for vid in range(chunks)
        for member in card.members
    ]
    (first, one), (last, _) = card.frames[card.ports - 1], card.frames[-1]  # the last copies of two chunks
    check_rate(card, len(one), last - first, len(card.frames) - card.ports)


def contribution(card, data, rank, vid, epoch):
    """Returns the frame of a member's contribution."""
    payload = data.payloads[vid][rank]
    length = len(payload) // card.format.bytes
    header = data_header(card, rank, vid, epoch) | {"length": length, "flags": data.ecn[vid][rank]}
    return card.frame(card.members[rank], header, payload)


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(pause=[True, False])
async def the_shortest_frames_are_all_judged(dut, pause):
    """Frames of 60 bytes at the wire's rate, and with no gap at all; each is counted once, whatever it is."""
    card = WiredCard(dut)
    await card.reset()
    await card.set_up(epoch=0x77)
    before = await card.counters()
    frames, count = [], 60
    for n in range(count):
        ask = SHORT | {"rank": n % card.ports}
        member = card.members[ask["rank"]]
        frames.append((card.frame(member._replace(port=9), ask), False))  # stranger
        frames.append((card.frame(member, ask, bad=True), False))  # datagram_crc
        frames.append((card.frame(member, ask), True))  # fcs
        frames.append((card.frame(member, ask)[:59], False))  # runt
        damaged = bytearray(card.frame(member, ask))
        damaged[24] ^= 1
        frames.append((bytes(damaged), False))  # ip_checksum
    assert {len(frame) for frame, _ in frames} == {59, 60}
    if pause:
        card.paced()
    for frame, bad in frames:
        card.put(frame, bad)
    await card.quiet()
    found = await card.counters()
    for reason in ("datagram_crc", "fcs", "runt", "ip_checksum"):
        assert found[reason] == count, f"{reason}: {found[reason]}"
    assert found["stranger"] == count and "dropped" not in found and not card.sent


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def asks_come_as_fast_as_the_wire_brings_them(dut):
    """Packets that the core answers. At 100 Gbit/s they come faster than it takes them, and some are dropped whole."""
    card = WiredCard(dut)
    await card.reset()
    await card.set_up(epoch=0x77)
    count = 200
    card.paced()
    for n in range(count):
        rank = n % card.ports
        card.put(card.frame(card.members[rank], SHORT | {"rank": rank}))
    await card.quiet()
    found = await card.counters()
    lost = found.get("dropped", 0)
    print(f"{8 * card.word} bits: {lost} of {count} asks dropped")
    # Before the first commit's chunk, an ask for VID 0 is answered `send` or refused; each is counted once.
    assert found.get("asks", 0) + found.get("late", 0) + found.get("early", 0) == count - lost
    assert card.word > 8 or not lost
