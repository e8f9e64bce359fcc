"""The unit that sums one element exactly, number by number, compared with unbounded integers."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

from bench import run, start

EXP = 8
LATENCY = 33  # cycles from the last number to done
GAP = 33  # least cycles from a sum's last number to the next sum's first
SPACING = 3  # least cycles from one number to the next


def units(x, frac):
    """Returns a finite number as a multiple of the smallest subnormal."""
    field, fraction = x >> frac & 255, x & (1 << frac) - 1
    magnitude = fraction if field == 0 else (fraction | 1 << frac) << field - 1
    return -magnitude if x >> frac + EXP else magnitude


def exact(numbers, frac):
    """Returns the exact sum, rounded once to nearest, ties to even; and whether it overflowed."""
    sign_bit, infinity = 1 << frac + EXP, 255 << frac
    total = sum(units(x, frac) for x in numbers)
    if total == 0:
        return (sign_bit if all(x == sign_bit for x in numbers) else 0), False
    sign, magnitude = (sign_bit, -total) if total < 0 else (0, total)
    drop = max(0, magnitude.bit_length() - (frac + 1))
    kept, rest = magnitude >> drop, magnitude & (1 << drop) - 1
    if 2 * rest > 1 << drop or (2 * rest == 1 << drop and kept & 1):
        kept += 1
    # Exponent field and fraction form one number, so a carry is handled correctly.
    encoding = kept + (drop << frac)
    return sign | min(encoding, infinity), encoding >= infinity


class Operands:
    """Sets of difficult operands."""

    def __init__(self, rng, frac):
        self.rng, self.frac = rng, frac

    def number(self, field, fraction=None, sign=None):
        rng, frac = self.rng, self.frac
        ones = (1 << frac) - 1
        if fraction is None:
            run_of_ones = ones >> rng.randrange(frac)
            fraction = rng.choice([0, ones, 1 << rng.randrange(frac), run_of_ones, ones & ~run_of_ones, rng.getrandbits(frac)])
        sign = rng.getrandbits(1) if sign is None else sign
        return sign << frac + EXP | min(max(field, 0), 254) << frac | fraction

    def opposite(self, x):
        return x ^ 1 << self.frac + EXP

    def any(self, n):
        return [self.number(self.rng.randrange(255)) for _ in range(n)]

    def near(self, n):
        field = self.rng.randrange(255)
        return [self.number(field - self.rng.randrange(self.frac + 8)) for _ in range(n)]

    def cancelling(self, n):
        """Pairs of opposites, some off by one last place, and a remainder far below them."""
        numbers = self.any(n // 2)
        numbers += [self.opposite(x) ^ (self.rng.random() < 0.3) for x in numbers]
        return numbers + [self.number(self.rng.choice([0, 1, self.rng.randrange(255)])) for _ in range(n - len(numbers))]

    def ladder(self, n):
        """Numbers a significand's width apart, down through all exponents."""
        field = self.rng.randrange(255)
        return [self.number(field - i * (self.frac + self.rng.randint(0, 2))) for i in range(n)]

    def tie(self, n):
        """A number and half of its last place; perhaps the smallest number, which breaks the
        tie."""
        rng = self.rng
        field = rng.randint(self.frac + 2, 254)
        sign = rng.getrandbits(1)
        rest = [self.number(0, rng.choice([0, 0, 1])) for _ in range(n - 2)]
        return [self.number(field, sign=sign), self.number(field - self.frac - 1, 0, sign), *rest][:n]

    def largest(self, n):
        """Numbers around the overflow threshold."""
        sign = self.rng.getrandbits(1)
        numbers = [self.number(254 - self.rng.randrange(3), sign=sign) for _ in range(n - n // 2)]
        return numbers + [self.number(254 - self.frac - self.rng.randrange(3), 0) for _ in range(n // 2)]

    def subnormal(self, n):
        return [self.number(self.rng.randrange(2)) for _ in range(n)]

    def zeros(self, n):
        minus = self.rng.choice([0, 0.5, 1])
        return [self.number(0, 0, int(self.rng.random() < minus)) for _ in range(n)]

    def same(self, n):
        return [self.number(self.rng.choice([0, 1, 127, 254]))] * n

    KINDS = [any, near, cancelling, ladder, tie, largest, subnormal, zeros, same]

    def draw(self):
        n = self.rng.choice([1, 2, 3, 8, self.rng.randint(2, 64)])
        numbers = self.rng.choice(self.KINDS)(self, n)
        self.rng.shuffle(numbers)
        return numbers


class Unit:
    def __init__(self, dut):
        self.dut = dut
        self.rng = random.Random(len(dut.in_x))
        self.due = []  # (cycle, sum, overflow)
        self.cycle = 0
        dut.in_valid.value = 0

    async def step(self, x=None, last=None):
        """Runs a cycle, in which a number may enter; an output must be due."""
        dut, rng = self.dut, self.rng
        dut.in_valid.value = int(x is not None)
        dut.in_x.value = rng.getrandbits(len(dut.in_x)) if x is None else x
        dut.in_last.value = rng.getrandbits(1) if last is None else int(last)
        await FallingEdge(dut.clk)
        if self.due and self.due[0][0] == self.cycle:
            _, want, over = self.due.pop(0)
            assert int(dut.done.value) == 1, "not done in time"
            assert int(dut.y.value) == want, f"{int(dut.y.value):x}, want {want:x}"
            assert int(dut.over.value) == int(over)
        else:
            assert int(dut.done.value) == 0, f"done too early or twice, in cycle {self.cycle}"
        await RisingEdge(dut.clk)
        self.cycle += 1

    async def idle(self, cycles):
        for _ in range(cycles):
            await self.step()

    async def sum(self, numbers, frac):
        """Sums numbers at full speed or slower."""
        slow = self.rng.random() < 0.3
        for i, x in enumerate(numbers):
            last = i == len(numbers) - 1
            if last:
                self.due.append((self.cycle + LATENCY, *exact(numbers, frac)))
            await self.step(x, last)
            await self.idle((GAP if last else SPACING) - 1 + (self.rng.randrange(20) if slow else 0))


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def sums_exactly(dut):
    """Sets of every kind, back to back; each sum is done in its exact cycle."""
    frac = len(dut.in_x) - 1 - EXP
    unit = Unit(dut)
    await start(dut)
    await unit.idle(GAP)
    operands = Operands(unit.rng, frac)
    overflows = 0
    for _ in range(500):
        numbers = operands.draw()
        overflows += exact(numbers, frac)[1]
        await unit.sum(numbers, frac)
    await unit.idle(LATENCY)
    assert not unit.due and overflows > 10


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_reset_leaves_nothing_behind(dut):
    """A reset in any cycle of a sum of three numbers drops that sum; the next one is right."""
    frac = len(dut.in_x) - 1 - EXP
    unit = Unit(dut)
    await start(dut)
    await unit.idle(GAP)
    operands = Operands(unit.rng, frac)
    for moment in range(2 * SPACING + LATENCY + 1):
        for cycle in range(moment):
            at, between = divmod(cycle, SPACING)
            comes = at < 3 and between == 0
            await unit.step(operands.number(254) if comes else None, at == 2 if comes else None)
        dut.in_valid.value = 0
        dut.rst.value = 1
        await ClockCycles(dut.clk, 1)
        dut.rst.value = 0
        await unit.idle(GAP)
        await unit.sum(operands.cancelling(4), frac)
    await unit.idle(LATENCY)
    assert not unit.due


@pytest.mark.parametrize("frac", [23, 7])
def test_exact_unit(frac):
    run("agg_exact_unit", parameters={"FRAC": frac}, testcase=["sums_exactly", "a_reset_leaves_nothing_behind"])
