"""Successive hosts on a card with a byte stream: no state of the first host reaches the second.

The card's chunks are long, so the core is still summing when the link comes up again.
"""

import random

import cocotb
from cocotb.triggers import RisingEdge

import model
import zwire
from bench import wait_cycles
from cards import LinkCard, run_card
from traffic import TOKEN, data_header, elements


def test_top_hosts():
    run_card("stream_hosts", "-lanes 1 -workers 2 -chunk 128 -window 2 -link 32 -shell stream".split())


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def what_waits_for_the_old_job_to_drain_is_not_the_next_hosts(dut):
    """The link falls for a cycle at any moment around the arrival of an ask, while a chunk is
    summed.

    The link once came up before the sum had drained: the held-back ask was then refused to the
    new host.
    """
    rng = random.Random(1)
    card = LinkCard(dut)
    await card.reset()
    for moment in range(24):
        epoch = moment + 1
        await card.set_up(epoch, token=TOKEN + moment)
        contributions = b"".join(
            model.frame(data_header(card, rank, 0, epoch), elements(rng, card.chunk, card.format)) for rank in range(card.ports)
        )
        card.put(contributions + model.frame({"kind": zwire.KIND_ASK, "epoch": epoch, "vid": 0}))
        while not int(dut.beat_strobe.value):
            await RisingEdge(dut.clk)
        await wait_cycles(dut, moment)
        await card.link_fails(1)
        assert not card.busy()
        assert await card.read("OWNER") == 0
        await card.quiet()
        assert not card.sent, "the new host is sent what the old one is answered"
    for counter in ["link_down", *(name for name, code in zwire.COUNTER_NAMES if code)]:
        await card.read(counter)
