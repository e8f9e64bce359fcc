"""Cards with sums that their lanes cannot decide: the cost, and the state after a job's end."""

import random

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles

from bench import wait_cycles
from cards import BareCard, run_card, usual
from streams import PATTERNS
from traffic import TOKEN, data_header, doubtful

CARDS = {
    "fp32": ["-lanes", 4, "-workers", 3],
    "bf16": ["-lanes", 2, "-workers", 5, "-format", "bf16"],
    "bf16_fp32": ["-lanes", 2, "-workers", 3, "-format", "bf16", "-result", "fp32"],
}


@pytest.mark.parametrize("card", usual(CARDS, "bf16"))
def test_top_exact(card):
    lanes = CARDS[card][1]
    run_card(f"exact_{card}", [*CARDS[card], "-sum", "exact", "-chunk", 4 * lanes, "-window", 16, "-shell", "none", "-registers", "bus"])


def payloads(card, rng):
    """Returns a chunk for every port, without elements that one pass decides."""
    rows = [doubtful(rng, card.format, card.result, card.ports) for _ in range(card.chunk)]
    return [card.format.payload(column) for column in np.array(rows, dtype=np.uint32).T]


def send(card, vid, epoch, chunk):
    """Queues a chunk on all ports; returns the expected packets."""
    expected = []
    for port, payload in enumerate(chunk):
        header = data_header(card, port, vid, epoch)
        card.send(port, header, payload)
        expected += card.model.packet(port, header | {"flags": 0, "job": 0, "code": 0, "version": 2}, payload, False)
    return expected


async def taken(card):
    """Waits until everything queued is in the card."""
    while card.busy():
        await ClockCycles(card.dut.clk, 1)


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(stall=["never", "at_random"])
async def every_beat_takes_what_is_said(dut, stall):
    """A window of chunks that one pass decides nowhere: checks the sums, the counters and the
    time."""
    rng = random.Random(stall)
    card = BareCard(dut, stall=PATTERNS[stall])
    await card.reset()
    await card.set_up(1, token=TOKEN)
    cost = card.manifest["undecided"]
    beats = card.manifest["beats"]
    for first in range(0, 2 * card.window, card.window):
        expected = [e for vid in range(first, first + card.window) for e in send(card, vid, 1, payloads(card, rng))]
        await taken(card)
        began = card.cycle
        while len(card.sent) < card.ports * card.window:
            await ClockCycles(dut.clk, 1)
            assert card.cycle - began < 1000 + card.window * beats * cost["beat_cycles"]
        if stall == "never":
            took = card.cycle - began
            all_beats = card.window * beats
            assert took <= all_beats * cost["beat_cycles"] + card.latency + beats + 60
            assert took >= (all_beats - 2) * card.lanes * cost["element_cycles"] - card.window * beats
        await card.expect(expected)
    assert await card.read("undecided") == 2 * card.window * beats
    assert await card.read("stalled") > 0  # the undecided beats exceed the queue
    await card.check_registers()


@cocotb.test(timeout_time=200, timeout_unit="ms")
async def a_job_that_ends_leaves_nothing_behind(dut):
    """The job ends in any cycle of the work on undecided beats, in any way; the next job is
    unaffected."""
    rng = random.Random(2)
    card = BareCard(dut)
    await card.reset()
    window = 4
    span = card.manifest["beats"] * window * card.manifest["undecided"]["beat_cycles"]
    epoch = 1
    for moment in range(0, span, max(7, span // 20)):
        await card.set_up(epoch, window=window, token=TOKEN)
        for vid in range(window):
            for port, payload in enumerate(payloads(card, rng)):
                card.send(port, data_header(card, port, vid, epoch), payload)
        await taken(card)
        await wait_cycles(dut, moment)
        how = rng.choice(["commit", "abort", "link", "reset"])
        if how == "abort":
            await card.write("JOB_ABORT", epoch << 32)
        elif how == "link":
            dut.link_up.value = 0
            card.model.link_down()
            await wait_cycles(dut, rng.randint(1, 40))
            dut.link_up.value = 1
        elif how == "reset":
            await card.write("RESET", TOKEN)
        await card.set_up(epoch + 1, window=window, token=TOKEN)
        card.sent.clear()
        chunk = payloads(card, rng)
        await card.expect(send(card, 0, epoch + 1, chunk))
        for name in ("JOB_NONFINITE_OUT", "JOB_OVERFLOW"):
            await card.read(name)
        epoch += 2
