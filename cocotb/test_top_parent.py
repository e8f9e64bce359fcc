"""A card with an up port and bare AXI4-Stream ports: members at its ports, and a parent above it.

First one packet at a time, compared with the Python model. Then workers and the parent act at once; each sum is compared
with the arithmetic of its level.
"""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles

import zwire
from bench import wait_cycles
from cards import BareCard, run_card, usual
from streams import PATTERNS
from traffic import data_header, elements
from tree_traffic import TreeBench, TreeTraffic
from tree_workers import reduce_in_a_tree

CARDS = {
    "three_ports": ["-lanes", 2, "-workers", 3, "-chunk", 8, "-window", 4, "-jobs", 2],
    "one_port": ["-lanes", 1, "-workers", 1, "-chunk", 3, "-window", 1],
    "exact": ["-lanes", 1, "-workers", 4, "-chunk", 4, "-window", 4, "-jobs", 4, "-sum", "exact"],
    "fused": ["-lanes", 1, "-workers", 2, "-chunk", 2, "-window", 2, "-sum", "fused", "-format", "bf16"],
    "int32": ["-lanes", 4, "-workers", 2, "-chunk", 8, "-window", 4, "-jobs", 2, "-format", "int32"],
}


@pytest.mark.parametrize("card", usual(CARDS, "int32", "fused"))
def test_top_parent(card):
    run_card(f"parent_{card}", [*CARDS[card], "-parent", "-shell", "none", "-registers", "bus"])


class ParentCard(TreeBench, BareCard):
    """A bare card with an up port, which is the port after the last."""

    def port_names(self):
        return [*super().port_names(), "up"]

    def header_bytes(self, port):
        return 22 if port == self.ports else 14

    def judges(self, port, header):
        return port < self.ports and super().judges(port, header)

    def expand(self, expected):
        """Returns the packets with whole headers: those for the parent end in a mask of 0."""
        return [({"mask": 0} | header, payload, port) for header, payload, port in super().expand(expected)]

    def calm(self):
        return super().calm() + 12 * self.manifest["slots"]  # a search for own sums


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize((("idle", "stall"), [("never", "never"), ("bursts", "at_random"), ("at_random", "mostly")]))
async def answers_like_the_model(dut, idle, stall):
    card = ParentCard(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    calm = card.calm()
    traffic = TreeTraffic(card, random.Random(f"{idle} {stall}"), repeats=(1, calm, 3 * calm, 10 * calm))
    for _ in range(120):
        await traffic.step()
    await card.check_registers()


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize((("idle", "stall"), [("never", "never"), ("bursts", "at_random"), ("never", "mostly")]))
async def sums_through_a_tree(dut, idle, stall):
    card = ParentCard(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    await reduce_in_a_tree(card, random.Random(f"{idle} {stall}"), lives=3)


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def all_members_finish_at_once(dut):
    """All but one of them get done, and the parent gets one finish, also behind replays that are on their way."""
    card = ParentCard(dut)
    await card.reset()
    for gap in range(0, 48, 6):
        await one_chunk(card, epoch=gap + 1, repeat=10_000)
        header = {"job": 0, "epoch": gap + 1}
        await down(card, gap + 1)
        card.sent.clear()
        for rank in range(card.ports):
            card.send(rank, header | {"kind": zwire.KIND_ASK, "rank": rank, "vid": 0})
        await wait_cycles(dut, gap)
        for rank in range(card.ports):
            card.send(rank, header | {"kind": zwire.KIND_FINISH, "rank": rank, "vid": 1})
        await card.quiet()
        done = [port for h, _, port in card.sent if (h["kind"], h["code"]) == (zwire.KIND_STATUS, zwire.CODE_DONE)]
        assert len(done) == len(set(done)) == card.ports - 1, f"{gap} cycles after asks: done at ports {done}"
        assert [h["kind"] for h, _, port in card.sent if port == card.ports] == [zwire.KIND_FINISH], f"after {gap} cycles"
        card.sent.clear()


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(finish=[False, True])
async def a_repeat_comes_at_any_moment_around_the_sending(dut, finish):
    """It owes nothing again: JOB_REPEAT is long. A finish was once sent twice when its repeat came in one cycle with
    its sending."""
    card = ParentCard(dut)
    await card.reset()
    before = 0 if finish else card.latency + 2 * card.manifest["beats"]
    for gap in range(1, before + 24):
        epoch, kind = gap, repeated(card, finish)
        if finish:
            await one_chunk(card, epoch, repeat=10_000)
            await down(card, epoch)
            for rank in range(card.ports):
                card.send(rank, {"kind": kind, "job": 0, "epoch": epoch, "rank": rank, "vid": 1})
        else:
            await one_chunk(card, epoch, repeat=10_000, wait=False)
        while card.busy():
            await ClockCycles(dut.clk, 1)
        await wait_cycles(dut, gap)
        repeat(card, kind, epoch)
        await card.quiet()
        up = [h["kind"] for h, _, port in card.sent if port == card.ports]
        assert up == [zwire.KIND_DATA, zwire.KIND_FINISH][: 1 + finish], f"after {gap} cycles: {up}"
        card.sent.clear()
    assert await card.register({"kind": zwire.KIND_REGREAD, "vid": card.model.address_of("up_repeats")}) == {"code": 0, "mask": 0}


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(finish=[False, True])
async def one_of_two_repeats_owes_it_again(dut, finish):
    """They are 2 JOB_REPEAT apart, and anywhere in time."""
    card = ParentCard(dut)
    await card.reset()
    period = 3 * card.calm()
    for epoch in range(1, 11):
        kind = repeated(card, finish)
        await one_chunk(card, epoch, repeat=period)
        if finish:
            await down(card, epoch)
            for rank in range(card.ports):
                card.send(rank, {"kind": kind, "job": 0, "epoch": epoch, "rank": rank, "vid": 1})
            await card.quiet()
        card.sent.clear()
        await wait_cycles(dut, period + epoch * period // 2)
        for _ in range(2):
            sent = len([port for _, _, port in card.sent if port == card.ports])
            repeat(card, kind, epoch)
            await wait_cycles(dut, 2 * period)
            again = len([port for _, _, port in card.sent if port == card.ports]) - sent
            assert again <= 1
        assert sent + again > 0, f"no repeat of epoch {epoch} was taken"
        card.sent.clear()


def repeated(card, finish):
    """Returns the kind of a repeat."""
    return zwire.KIND_FINISH if finish else card.rng.choice([zwire.KIND_DATA, zwire.KIND_ASK])


async def one_chunk(card, epoch, repeat, wait=True):
    """Sets a tree job up, and has all members send VID 0. wait: until its own sum has left."""
    await card.set_up(epoch, parent=1, repeat=repeat)
    for rank in range(card.ports):
        card.send(rank, data_header(card, rank, 0, epoch), elements(card.rng, card.chunk, card.format))
    if wait:
        await card.quiet()


async def down(card, epoch):
    """Sends the final sum of VID 0."""
    header = data_header(card, 0, 0, epoch) | {"kind": zwire.KIND_RESULT, "mask": card.model.setups[0].ranks}
    card.send(card.ports, header, elements(card.rng, card.chunk, card.format))
    await card.quiet()


def repeat(card, kind, epoch):
    """Repeats what rank 0 sent of the kind, or what the own sum of VID 0 came from."""
    if kind == zwire.KIND_DATA:
        return card.send(0, data_header(card, 0, 0, epoch), elements(card.rng, card.chunk, card.format))
    card.send(0, {"kind": kind, "job": 0, "epoch": epoch, "rank": 0, "vid": int(kind == zwire.KIND_FINISH)})
