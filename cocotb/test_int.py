"""Integers: exact sums, and the conversion back to the format."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from bench import run, start


def signed(x, width):
    """Returns the value of width bits in two's complement."""
    return x - (x >> width - 1 << width)


def edges(width, rng, count):
    """Returns the ends of the range, numbers around zero, and some random ones."""
    half = 1 << width - 1
    return [0, 1, 2 * half - 1, half, half - 1, half + 1] + [rng.getrandbits(width) for _ in range(count)]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def adds_exactly(dut):
    width, rng = len(dut.a), random.Random(1)
    pairs = [(a, b) for a in edges(width, rng, 10) for b in edges(width, rng, 10)]
    await start(dut)
    for a, b in pairs:
        dut.a.value, dut.b.value = a, b
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        assert signed(int(dut.y.value), width + 1) == signed(a, width) + signed(b, width), f"{a:x} + {b:x}"


@pytest.mark.parametrize("width", [2, 4, 32])
def test_agg_int_add(width):
    run("agg_int_add", parameters={"WIDTH": width}, testcase=["adds_exactly"])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def brings_back_what_fits(dut):
    """Converts sums around the ends of both formats, and random ones."""
    wide, narrow, saturate = len(dut.a), len(dut.y), int(dut.SATURATE.value)
    least, most = -(1 << narrow - 1), (1 << narrow - 1) - 1
    rng = random.Random(2)
    values = [end + step for end in (least, most, 0) for step in range(-3, 4)]
    values += [signed(x, wide) for x in edges(wide, rng, 200)]
    values = [x for x in values if signed(x & (1 << wide) - 1, wide) == x]
    await start(dut)
    for value in values:
        dut.a.value = value & (1 << wide) - 1
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        fits = least <= value <= most
        want = min(max(value, least), most) if saturate else value
        assert int(dut.y.value) == want & (1 << narrow) - 1, f"{value}"
        assert int(dut.over.value) == (not fits), f"{value}"


@pytest.mark.parametrize("wide", [32, 33, 38])
@pytest.mark.parametrize("saturate", [0, 1])
def test_agg_int_clamp(wide, saturate):
    parameters = {"IN": wide, "OUT": 32, "SATURATE": saturate}
    run("agg_int_clamp", parameters=parameters, testcase=["brings_back_what_fits"])
