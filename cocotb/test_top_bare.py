"""The card with bare AXI4-Stream ports, as hwgen emits it: the core, and a queue behind each port.

Sends one packet at a time, valid and invalid, and compares the outcome with the Python model.
"""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles

import zwire
from bench import wait_cycles
from cards import BareCard, run_card, usual
from streams import PATTERNS
from traffic import Traffic, data_header, elements

LEAD = 5  # most cycles by which a commit may precede the ask and still be judged after it

CARDS = {
    "three_ports": ["-lanes", 2, "-workers", 3, "-chunk", 8, "-window", 4],
    "one_port": ["-lanes", 1, "-workers", 1, "-chunk", 3, "-window", 1],
    "five_ports": ["-lanes", 1, "-workers", 5, "-chunk", 5, "-window", 2],
}


@pytest.mark.parametrize("card", usual(CARDS, "three_ports"))
def test_top_bare(card):
    run_card(f"bare_{card}", [*CARDS[card], "-shell", "none", "-registers", "bus"])


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
    wrong = {"bad_job": {"job": 3}, "bad_epoch": {"epoch": 4}, "early": {"vid": 4096}, "bad_format": {"format": 99}}
    for refusal, change in wrong.items():
        await card.exchange(0, data_header(card, 0, 0, epoch=5) | change, bytes(card.format.bytes * card.chunk))
        assert card.model.counters[refusal] == 1
        await wait_cycles(dut, 1024)
    assert card.statuses_left_out == 0
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_result_under_way_keeps_its_receivers(dut):
    """JOB_COMMIT moves the ranks to other ports at any moment around a replay.

    A result's ports were once derived from the current ranks at every beat: its head went to one
    port, its tail to another.
    """
    rng = random.Random(1)
    card = BareCard(dut)
    block = card.model.blocks[0]
    await card.reset()
    everyone = (1 << card.ports) - 1
    members = [everyone >> 1 or 1, everyone & ~1 or 1]  # all but the last port, all but the first
    replays = []

    async def send_later(port, header):
        await wait_cycles(dut, LEAD)
        card.send(port, header)

    for gap in range(24 + LEAD):
        epoch = gap + 1
        await card.set_up(epoch=2 * epoch, ports=members[0])
        port = block.members[0]
        for rank, member in enumerate(block.members):
            await card.exchange(member, data_header(card, rank, 0, epoch=2 * epoch), elements(rng, card.chunk, card.format))
        await card.write("JOB_PORTS", members[1])
        ask = {**dict.fromkeys(zwire.FIELDS, 0), "version": zwire.VERSION, "kind": zwire.KIND_ASK, "epoch": 2 * epoch}
        replay = card.expand(card.model.packet(port, ask))
        assert [header["kind"] for header, _, _ in replay] == [zwire.KIND_REPLAY]
        asking = cocotb.start_soon(send_later(port, ask))
        await wait_cycles(dut, gap)
        await card.write("JOB_COMMIT", 2 * epoch + 1 << 32)
        await asking
        await card.quiet()
        assert card.sent in ([], replay), f"commit {gap - LEAD} cycles after the ask: {card.sent}"
        replays.append(bool(card.sent))
        card.sent.clear()
        for rank, member in enumerate(block.members):
            await card.exchange(member, data_header(card, rank, 0, epoch=2 * epoch + 1), elements(rng, card.chunk, card.format))
    # A replay that has not begun is dropped when the job ends.
    assert set(replays) == {False, True}


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_link_that_is_down_for_one_cycle_takes_its_host_with_it(dut):
    """The link falls for one cycle at any moment of an incoming contribution, which is then
    dropped, neither counted nor answered.

    The link was once down only while link_up was low, and the incoming packet was refused to the
    next host.
    """
    rng = random.Random(2)
    card = BareCard(dut)
    await card.reset()
    for moment in range(card.manifest["beats"] + 8):
        epoch = moment + 1
        await card.set_up(epoch)
        card.send(0, data_header(card, 0, 0, epoch), elements(rng, card.chunk, card.format))
        await wait_cycles(dut, epoch)
        dut.link_up.value = 0
        await ClockCycles(dut.clk, 1)
        dut.link_up.value = 1
        card.model.link_down()
        for register in ("OWNER", "JOB_STATE"):
            await card.read(register)
        await card.quiet()
        assert not [s for s in card.sent if s[0]["kind"] == zwire.KIND_STATUS]
    for counter in ["link_down", *(name for name, code in zwire.COUNTER_NAMES if code)]:
        await card.read(counter)
