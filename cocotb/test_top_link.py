"""The card on a byte stream, as hwgen emits it: frames, CRCs, and the faults of a bad link.

Sends bytes, and compares the returned frames with the Python model; the bytes include the
hand-written frames of driver/wire/testdata.
"""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles

import frames
import model
import zwire
from bench import wait_cycles
from cards import LinkCard, run_card, usual
from streams import PATTERNS, Gate
from traffic import TOKEN, Contributions, Traffic, data_header, elements

CARDS = {
    "link8": ["-lanes", 1, "-workers", 3, "-chunk", 3, "-window", 2, "-link", 8],
    "link16": ["-lanes", 2, "-workers", 2, "-chunk", 6, "-window", 1, "-link", 16],
    "link32": ["-lanes", 1, "-workers", 4, "-chunk", 12, "-window", 2, "-link", 32],
    "link64": ["-lanes", 4, "-workers", 3, "-chunk", 12, "-window", 2, "-link", 64],
}


@pytest.mark.parametrize("card", usual(CARDS, "link16", "link32"))
def test_top_link(card):
    run_card(f"stream_{card}", [*CARDS[card], "-shell", "stream"])


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def answers_like_the_model(dut, idle, stall):
    card = LinkCard(dut, PATTERNS[idle], PATTERNS[stall], partial=idle != stall)
    await card.reset()
    traffic = Traffic(card, random.Random(f"{idle} {stall}"))
    for _ in range(40):
        await traffic.step()
    card.hurry()
    await card.check_registers()


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize(seed=range(8))
async def finds_frames_in_garbage(dut, seed):
    """Garbage, cut-off frames and frames with a flipped bit, with good frames in between."""
    rng = random.Random(seed)
    card = LinkCard(dut, PATTERNS["bursts"], PATTERNS["bursts"], partial=True)
    await card.reset()
    await card.set_up(epoch=9, token=TOKEN)
    for vid in range(12):
        for rank in range(card.ports):
            payload = elements(rng, card.chunk, card.format)
            good = model.frame(data_header(card, rank, vid, epoch=9), payload)
            await card.transmit(spoiled(rng, good))
            await card.transmit(good)
        # Enough bytes to complete any frame that the garbage seemed to begin.
        await card.transmit(bytes(card.format.bytes * card.chunk + 64))
    await card.check_registers()


def spoiled(rng, frame):
    """Returns bytes without a good frame: random bytes with sync words, a cut-off frame, or one
    flipped bit."""
    kind = rng.randrange(4)
    if kind == 0:
        words = [rng.choice([model.SYNC, rng.randbytes(rng.randint(1, 9))]) for _ in range(rng.randint(1, 10))]
        return b"".join(words)
    if kind == 1:
        return frame[: rng.randrange(1, len(frame))]
    bit = rng.randrange(8 * len(frame))
    return frame[: bit // 8] + bytes([frame[bit // 8] ^ 1 << bit % 8]) + frame[bit // 8 + 1 :]


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(seed=range(4))
async def a_link_that_goes_down_takes_its_host_with_it(dut, seed):
    """A fall of the link drops half a frame, the owner and the job; counters stay."""
    rng = random.Random(seed)
    card = LinkCard(dut, PATTERNS["bursts"], PATTERNS["alternate"])
    await card.reset()
    await card.set_up(epoch=3, token=TOKEN)
    for rank in range(card.ports):
        await card.exchange(rank, data_header(card, rank, 0, epoch=3), elements(rng, card.chunk, card.format))
    half = model.frame(data_header(card, 0, 1, epoch=3), elements(rng, card.chunk, card.format))
    await card.transmit(half[: rng.randrange(1, len(half))])
    dut.link_up.value = 0
    await wait_cycles(dut, rng.randint(2, 40))
    card.model.link_down()
    dut.link_up.value = 1
    await ClockCycles(dut.clk, 2)
    await card.check_registers()
    await card.set_up(epoch=4, token=1)
    for rank in range(card.ports):
        await card.exchange(rank, data_header(card, rank, 0, epoch=4), elements(rng, card.chunk, card.format))
    await card.check_registers()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def reads_the_hand_written_frames(dut):
    """Every frame that a host sends, and a card's own frames, which a card must skip."""
    card = LinkCard(dut)
    await card.reset()
    for raw, _, _ in frames.load().values():
        await card.transmit(raw)
    counts = {name: await card.read(name) for name in ("frames", "header_crc", "bad_job", "payload_crc")}
    # Data, ask, finish, two register accesses, and the read of frames itself. A card
    # expects shorter headers for kinds it does not accept, so their CRC is wrong.
    assert counts == {"frames": 6, "header_crc": 4, "bad_job": 3, "payload_crc": 0}
    await card.check_registers()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def frames_follow_one_another_without_a_pause(dut):
    """Frames of all ranks back to back; frames begin and end anywhere in the link's words."""
    rng = random.Random(7)
    card = LinkCard(dut)
    await card.reset()
    await card.set_up(epoch=2, token=TOKEN)
    data = b""
    for vid in range(card.window):
        for rank in range(card.ports):
            data += model.frame(data_header(card, rank, vid, epoch=2), elements(rng, card.chunk, card.format))
    await card.transmit(data)
    await card.check_registers()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def a_result_that_is_being_sent_is_not_overwritten(dut):
    """The host stops reading in the middle of a result; all ranks go on as if they had it, and
    refill its slot."""
    card = LinkCard(dut)
    card.tx.stall = gate = Gate()
    await card.reset()
    await card.set_up(epoch=2, token=TOKEN)
    chunks = 2 * card.window + 1
    data = Contributions(card, random.Random(8), chunks)
    for vid in range(chunks):
        for rank in range(card.ports):
            header = data_header(card, rank, vid, epoch=2) | {"flags": data.ecn[vid][rank]}
            card.put(model.frame(header, data.payloads[vid][rank]))
        if vid == 0:
            while len(card.bytes) < 40:  # past the header
                await ClockCycles(dut.clk, 1)
            gate.closed = True
    while card.busy():
        await ClockCycles(dut.clk, 1)
    await wait_cycles(dut, 200)
    gate.closed = False
    await card.quiet()
    sent = [(header["vid"], header["flags"], payload) for header, payload, _ in card.sent]
    assert sent == [(vid, data.flags(vid), data.sum(vid)) for vid in range(chunks)]
