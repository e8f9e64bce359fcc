"""The card with bare AXI4-Stream ports, as hwgen emits it: the core, and a queue behind each port.

One packet at a time, right and wrong, and what comes of it compared with the Python model.
"""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles

from cards import BareCard, run_card
from streams import PATTERNS
from traffic import Traffic, data_header

CARDS = {
    "three_ports": ["-lanes", 2, "-workers", 3, "-chunk", 8, "-window", 4],
    "one_port": ["-lanes", 1, "-workers", 1, "-chunk", 3, "-window", 1],
    "five_ports": ["-lanes", 1, "-workers", 5, "-chunk", 5, "-window", 2],
}


@pytest.mark.parametrize("card", CARDS)
def test_top_bare(card):
    run_card(f"bare_{card}", [*CARDS[card], "-shell", "none"])


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def answers_like_the_model(dut, idle, stall):
    card = BareCard(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    traffic = Traffic(card, random.Random(f"{idle} {stall}"))
    for _ in range(100):
        await traffic.step()
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def every_register_reads_as_the_model_says(dut):
    card = BareCard(dut)
    await card.reset()
    await card.check_registers()
    assert await card.read("CONFIG_HASH") == int(card.manifest["config_hash"], 16)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def answers_a_refusal_when_the_last_is_long_ago(dut):
    card = BareCard(dut)
    await card.reset()
    await card.set_up(epoch=5)
    wrong = {"bad_job": {"job": 3}, "bad_epoch": {"epoch": 4}, "early": {"vid": 4096}, "bad_format": {"format": 2}}
    for refusal, change in wrong.items():
        await card.exchange(0, data_header(card, 0, 0, epoch=5) | change, bytes(4 * card.chunk))
        assert card.model.counters[refusal] == 1
        await ClockCycles(dut.clk, 1024)
    assert card.statuses_left_out == 0
    await card.check_registers()
