"""The card on Ethernet, as hwgen emits it, by frames: packets, requests, and the faults of a bad network.

Sends frames, and compares all that leaves with the Python model (network_model.py), which is written from
driver/wire/NETWORK.md.
"""

import random

import cocotb
import pytest

from streams import PATTERNS
from traffic import Traffic
from udp_card import UdpCard, run_udp_card

CARDS = {
    "udp8": "-lanes 1 -workers 3 -chunk 3 -window 2 -link 8".split(),
    "udp64": "-lanes 2 -workers 4 -chunk 6 -window 4 -jobs 2 -link 64".split(),
    "udp512": "-lanes 16 -format int32 -workers 3 -chunk 32 -window 1 -link 512".split(),
}


@pytest.mark.parametrize("card", CARDS)
def test_top_udp(card):
    run_udp_card(card, CARDS[card])


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize(idle=["never", "bursts"], stall=["never", "bursts", "mostly"])
async def answers_like_the_model(dut, idle, stall):
    card = UdpCard(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    traffic = Traffic(card, random.Random(f"{idle} {stall}"))
    for _ in range(40):
        await traffic.step()
    card.hurry()
    await card.check_registers()
