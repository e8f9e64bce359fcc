"""Throughput of the card on Ethernet, behind MACs of 10 and 100 Gbit/s, and frames back to back.

The wire carries 24 bytes beside each frame: FCS, gap and preamble. Results are the fuller direction: as many as
contributions, with 16 bytes more each.
"""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge

import zwire
from traffic import Contributions, data_header
from udp_card import UdpCard, run_udp_card

BESIDE = 24  # bytes of the wire beside a frame

# Of the wire, in a cycle: 10 Gbit/s at 156.25 MHz, 100 Gbit/s at 200 MHz.
WIRE = {64: 8, 512: 62.5}

# From the first chunk's last copy to the last chunk's.
CYCLES = {64: 12926, 512: 92 * 18}

SHORT = {"kind": zwire.KIND_ASK, "epoch": 0x77, "vid": 0}  # in a frame of 60 bytes

CARDS = {
    "rate64": "-lanes 4 -format int32 -workers 4 -chunk 256 -window 4 -link 64".split(),
    "rate512": "-lanes 16 -format int32 -workers 4 -chunk 256 -window 4 -link 512".split(),
}


@pytest.mark.parametrize("card", CARDS)
def test_top_udp_rate(card):
    run_udp_card(card, CARDS[card])


class Wire:
    """The transmit side of a MAC, as a pattern of stalls: it takes words while it is at most a frame's gap behind."""

    def __init__(self, rate):
        self.rate, self.behind = rate, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.behind = max(0, self.behind - self.rate)
        return self.behind > 4 * self.rate

    def take(self, count, last):
        self.behind += count + (BESIDE if last else 0)


class Gaps:
    """The receive side, as a pattern of idle cycles: the wire has not yet brought the next word."""

    def __init__(self, rate):
        self.rate, self.behind, self.sizes = rate, 0, []  # bytes of the wire for each word

    def __iter__(self):
        return self

    def __next__(self):
        self.behind = max(self.behind, 0) - self.rate
        if self.behind > 0 or not self.sizes:
            return True
        self.behind += self.sizes.pop(0)
        return False


class Bench(UdpCard):
    """A card whose MAC has the rate of a wire."""

    def __init__(self, dut):
        super().__init__(dut)
        self.rate = WIRE[8 * self.word]
        self.tx.stall = self.wire = Wire(self.rate)
        self.gaps = None

    def paced(self):
        """Lets frames come as the wire brings them, from now on."""
        self.rx.idle = self.gaps = Gaps(self.rate)

    def put(self, frame, bad=False):
        super().put(frame, bad)
        if self.gaps:
            words = [len(frame[at : at + self.word]) for at in range(0, len(frame), self.word)]
            self.gaps.sizes += words[:-1] + [words[-1] + BESIDE]

    def _collect(self, beat):
        self.wire.take(beat["tkeep"].bit_length(), beat["tlast"])
        super()._collect(beat)

    async def counters(self):
        """Returns the counters that are not 0, without comparison with the model."""
        found = {}
        for name in [*(name for name, _ in zwire.COUNTER_NAMES), *zwire.NETWORK_COUNTER_NAMES]:
            reply = await self.register({"kind": zwire.KIND_REGREAD, "vid": self.model.address_of(name)})
            found |= {name: reply["mask"]} if reply["mask"] else {}
        return found


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def results_fill_the_wire(dut):
    """Four members behind one port, payloads of 1 KiB: each sends as soon as its window allows."""
    chunks = 24
    card = Bench(dut)
    await card.reset()
    await card.set_up(epoch=1)
    data = Contributions(card, random.Random(1), chunks)
    frames = [[contribution(card, data, rank, vid) for rank in range(card.ports)] for vid in range(chunks)]
    card.frames.clear()
    card.paced()
    for vid in range(chunks):
        while len(card.sent) < (vid - card.window + 1) * card.ports:
            await FallingEdge(dut.clk)
        for rank in range(card.ports):
            card.put(frames[vid][rank])
    await card.quiet()
    got = [(header["kind"], header["vid"], to, header["flags"], payload) for header, payload, to in card.sent]
    assert got == [
        (zwire.KIND_RESULT, vid, member, data.flags(vid), data.sum(vid))
        for vid in range(chunks)
        for member in card.members
    ]
    (first, one), (last, _) = card.frames[card.ports - 1], card.frames[-1]
    least = (len(card.frames) - card.ports) * (len(one) + BESIDE) / card.rate
    print(f"{8 * card.word} bits: {last - first} cycles, the wire needs {least}: {least / (last - first):.4f}")
    assert last - first == CYCLES[8 * card.word] and least / (last - first) >= 0.98
    found = await card.counters()
    assert "dropped" not in found and "stranger" not in found and found["results"] == chunks


def contribution(card, data, rank, vid):
    """Returns the frame of a member's contribution."""
    header = data_header(card, rank, vid, epoch=1) | {"flags": data.ecn[vid][rank]}
    return card.frame(card.members[rank], header, data.payloads[vid][rank])


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(pause=[True, False])
async def the_shortest_frames_are_all_judged(dut, pause):
    """Frames of 60 bytes at the wire's rate, and with no gap at all; each is counted once, whatever it is."""
    card = Bench(dut)
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
    card = Bench(dut)
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
