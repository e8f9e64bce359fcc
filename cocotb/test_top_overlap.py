"""Workers that all send at once, lose, repeat and ask, on the card with bare ports.

The order of events in the card is random here. The checks hold for any order: every rank gets
every sum, correct in every bit, and marked as a replay if it was sent before. The card adds
every contribution exactly once.
"""

import random

import cocotb
import pytest

import model
import zwire
from cards import BareCard, run_card, usual
from streams import PATTERNS
from traffic import TOKEN
from workers import Reduction, deliver

EPOCH = 77
CHUNKS = 30

CARDS = {
    "three_ports": ["-lanes", 2, "-workers", 3, "-chunk", 8, "-window", 2],
    "five_ports": ["-lanes", 1, "-workers", 5, "-chunk", 2, "-window", 4],
    "exact": ["-lanes", 2, "-workers", 3, "-chunk", 8, "-window", 2, "-sum", "exact"],
    "undecided": ["-lanes", 2, "-workers", 4, "-chunk", 8, "-window", 2, "-sum", "exact"],
}


@pytest.mark.parametrize("card", usual(CARDS, "three_ports"))
def test_top_overlap(card):
    run_card(f"overlap_{card}", [*CARDS[card], "-shell", "none", "-registers", "bus"])


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def every_contribution_is_added_exactly_once(dut, idle, stall):
    rng = random.Random(f"{idle} {stall}")
    card = BareCard(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    reduction = Reduction(card, rng, CHUNKS, EPOCH, first=rng.choice([0, 2**32 - 7]))
    await reduction.set_up(TOKEN)
    cocotb.start_soon(deliver(card, [reduction]))
    await reduction.reduce()
    await reduction.finish()
    await card.quiet()
    await check_counters(card, reduction)


async def check_counters(card, reduction):
    """Checks the counters that do not depend on the order of events."""
    data, counts = reduction.data, reduction.counts()
    expected = {
        "stored": len(data) * card.ports,
        "chunks": len(data),
        "beats": len(data) * card.manifest["beats"],
        "payload_crc": sum(worker.bad for worker in reduction.workers),
        "nonfinite_in": counts["JOB_NONFINITE_IN"],
        "nonfinite_out": counts["JOB_NONFINITE_OUT"],
        "overflow": counts["JOB_OVERFLOW"],
        "ce": sum(mark == zwire.ECN_CE for chunk in data.ecn for mark in chunk),
        "early": 0,
    }
    for name in ("bad_version", "bad_kind", "bad_job", "bad_epoch", "bad_rank", "bad_format", "bad_length"):
        expected[name] = 0
    assert card.judged[model.STORED] == expected["stored"] and not card.judged[model.FLUSHED]
    for name, value in expected.items():
        header = {"kind": zwire.KIND_REGREAD, "vid": model.address_of(name), "length": 0}
        reply = await card.register(header)
        assert reply["mask"] == value, f"{name} is {reply['mask']}, want {value}"
