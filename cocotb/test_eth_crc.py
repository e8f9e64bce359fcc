"""agg_crc32c_check, beside the definition of the CRC."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from bench import leaf, run, start
from castagnoli import closed, crc32c
from streams import PATTERNS

IDLE = ["never", "alternate", "at_random"]
LATENCY = 4  # from the last step to good


def damaged(rng, message):
    """Returns the message with one or two wrong bits, or two bytes exchanged."""
    wrong = bytearray(message)
    if rng.random() < 0.2 and len(set(message)) > 1:
        a, b = rng.sample(range(len(message)), 2)
        wrong[a], wrong[b] = wrong[b], wrong[a]
    for place in rng.sample(range(8 * len(wrong)), rng.randint(1, 2)):
        wrong[place // 8] ^= 1 << place % 8
    return bytes(wrong) if wrong != message else damaged(rng, message)


def steps_of(message, size, begin):
    """Returns the words of a message's steps, and the zero bytes after it."""
    line = bytes(begin) + message
    pad = -len(line) % size
    line += bytes(pad)
    return [int.from_bytes(line[i : i + size], "little") for i in range(0, len(line), size)], pad


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(idle=IDLE)
async def judges_messages(dut, idle):
    """Messages of all lengths modulo a step, right and damaged, with idle cycles within and between."""
    rng = random.Random(idle)
    size, begin = int(dut.BYTES.value), int(dut.START.value)
    assert crc32c(b"123456789") == 0xE3069283  # the value in every table of CRCs
    pattern = PATTERNS[idle]()
    due = {}  # by cycle: whether the message that ended was right
    now = 0

    async def step(valid, first, last, word, pad):
        nonlocal now
        dut.s_valid.value, dut.s_first.value, dut.s_last.value = int(valid), int(first), int(last)
        dut.s_data.value, dut.s_pad.value = word, pad
        await RisingEdge(dut.clk)
        now += 1
        if now in due:
            assert int(dut.good.value) == due.pop(now)

    dut.s_valid.value = 0
    await start(dut)
    lengths = [4, 5, 18, *range(60, 60 + size)]
    for length in [*lengths, *(rng.randint(4, 3 * size + 40) for _ in range(20))]:
        right = rng.random() < 0.5
        message = closed(rng.randbytes(length - 4))
        words, pad = steps_of(message if right else damaged(rng, message), size, begin)
        for place, word in enumerate(words):
            while next(pattern):
                await step(0, rng.randrange(2), rng.randrange(2), rng.getrandbits(8 * size), 0)
            ends = place == len(words) - 1
            if ends:
                # A register set by the edge of its cycle is read after the next one.
                due[now + LATENCY + 1] = int(right)
            await step(1, place == 0, ends, word, pad if ends else rng.randrange(size))
    for _ in range(LATENCY + 2):
        await step(0, 0, 0, 0, 0)
    assert not due


@pytest.mark.parametrize("size, begin", [(1, 0), (8, 2), (64, 42)])
def test_agg_crc32c_check(size, begin):
    run(
        "agg_crc32c_check",
        sources=[leaf("agg_crc32c"), leaf("agg_crc32c_check")],
        parameters={"BYTES": size, "START": begin},
        testcase=[f"judges_messages/idle={idle}" for idle in IDLE],
    )
