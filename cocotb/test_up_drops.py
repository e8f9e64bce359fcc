"""agg_up_drops: one pulse for each packet that was dropped, in order and as soon as possible."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from bench import number, run, start

MOST = 255  # packets that can wait for their pulse


@pytest.mark.parametrize("events", [2, 3, 9])
def test_agg_up_drops(events):
    run("agg_up_drops", parameters={"EVENTS": events})


class Drops:
    """The leaf, and the cycles in which pulses are due."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.events = len(dut.events)
        self.now = self.packets = 0
        self.free = 0  # the first cycle that has no pulse yet
        self.due = set()
        dut.events.value = 0

    async def cycle(self, count=0):
        """Spends a cycle in which any of the inputs, that many, report a packet; compares the output."""
        for _ in range(count):
            self.free = max(self.free, self.now + 1)
            self.due.add(self.free)
            self.free += 1
        self.packets += count
        self.dut.events.value = sum(1 << e for e in self.rng.sample(range(self.events), count))
        await RisingEdge(self.dut.clk)
        assert number(self.dut.dropped) == (self.now in self.due), (self.now, self.free)
        self.now += 1

    def waiting(self):
        """Returns the packets that have no pulse before this cycle's end."""
        return max(self.free - self.now, 0)

    async def drain(self):
        """Lets every pulse come, and checks that no other does."""
        for _ in range(self.waiting() + 20):
            await self.cycle()
        assert len(self.due) == self.packets


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def each_input_counts(dut):
    """Every input alone, and every number of inputs at once."""
    drops = Drops(dut, random.Random(1))
    await start(dut)
    for e in range(drops.events):
        dut.events.value = 1 << e
        shown = []
        for _ in range(4):
            await RisingEdge(dut.clk)
            shown.append(number(dut.dropped))
            dut.events.value = 0
        assert shown == [0, 1, 0, 0]
    for count in range(drops.events + 1):
        await drops.cycle(count)
        await drops.drain()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(chance=[0.05, 0.3, 0.9])
async def packets_have_a_pulse_each(dut, chance):
    """Events in any cycles, with more in some cycles than leave, then a burst of all inputs."""
    drops = Drops(dut, random.Random(chance))
    await start(dut)
    for _ in range(1000):
        some = drops.rng.random() < chance
        room = MOST - drops.waiting()
        await drops.cycle(min(drops.rng.randint(1, drops.events), room) if some else 0)
    await drops.drain()
    for _ in range(20):
        await drops.cycle(drops.events)
    await drops.drain()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def as_many_wait_as_the_header_has(dut):
    drops = Drops(dut, random.Random(2))
    await start(dut)
    while (room := MOST - drops.waiting()) > 0:
        await drops.cycle(min(drops.events, room + 1))
    for _ in range(50):
        await drops.cycle(1)
    await drops.drain()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def forgets_at_a_reset(dut):
    """Packets that wait, and those of the cycle itself."""
    drops = Drops(dut, random.Random(3))
    await start(dut)
    for _ in range(10):
        await drops.cycle(drops.events)
    dut.rst.value, dut.events.value = 1, 1
    await RisingEdge(dut.clk)
    dut.rst.value, dut.events.value = 0, 0
    for _ in range(20):
        await RisingEdge(dut.clk)
        assert number(dut.dropped) == 0
