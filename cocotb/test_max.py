"""The node of the sum max compared with NumPy's order, and the sum of a whole row with NumPy's
maximum."""

import random

import cocotb
import numpy as np
import pytest
from cocotb.triggers import RisingEdge

import arithmetic
from bench import run, start

LATENCY = 2

# NumPy's types, by (EXP, FRAC).
TYPES = {(8, 23): np.float32, (5, 10): np.float16}


class Shape:
    """A floating-point format, given by its fields alone."""

    def __init__(self, exp, frac, infinity):
        self.exp, self.frac, self.infinity = exp, frac, infinity
        self.sign = 1 << exp + frac
        self.nan_floor = ((1 << exp) - 1 << frac) + 1 if infinity else self.sign - 1
        self.nan = ((1 << exp) - 1 << frac) | (1 << frac - 1 if infinity else (1 << frac) - 1)

    def is_nan(self, x):
        return x & self.sign - 1 >= self.nan_floor

    def number(self, x):
        """Returns the number as a multiple of the smallest; an infinity is the number above the
        largest."""
        field, fraction = x >> self.frac & (1 << self.exp) - 1, x & (1 << self.frac) - 1
        magnitude = (fraction | (field > 0) << self.frac) << max(field, 1) - 1
        return -magnitude if x & self.sign else magnitude

    def larger(self, a, b):
        if self.is_nan(a) or self.is_nan(b):
            return self.nan
        if self.number(a) == self.number(b):
            return a if not a & self.sign else b  # +0 before -0
        return a if self.number(a) > self.number(b) else b

    def hostile(self, rng, count):
        """Returns encodings around the ends of the range and of the format, of both signs, and
        random ones."""
        one, top = 1 << self.frac, self.sign - 1
        near = {0, 1, one - 1, one, one + 1, self.nan_floor - 2, self.nan_floor - 1, self.nan_floor, self.nan, top}
        near = sorted(x & top for x in near)
        return near + [x | self.sign for x in near] + [rng.getrandbits(1 + self.exp + self.frac) for _ in range(count)]


async def compare(dut, pairs, want):
    """Sends a pair every cycle and compares the result LATENCY cycles later."""
    await start(dut)
    due = []
    for pair in pairs + [(0, 0)] * (LATENCY + 1):
        dut.a.value, dut.b.value = pair
        due.append(pair)
        await RisingEdge(dut.clk)
        if len(due) > LATENCY:
            a, b = due[-LATENCY - 1]
            assert int(dut.y.value) == want(a, b), f"max({a:x}, {b:x}) is {int(dut.y.value):x}, not {want(a, b):x}"


def shape_of(dut):
    return Shape(int(dut.EXP.value), int(dut.FRAC.value), int(dut.INFINITIES.value))


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def every_pair(dut):
    """All pairs of a tiny format."""
    shape = shape_of(dut)
    everything = range(2 * shape.sign)
    await compare(dut, [(a, b) for a in everything for b in everything], shape.larger)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def hostile_pairs(dut):
    """Pairs around every border; where NumPy has the format, its maximum confirms the reference."""
    shape = shape_of(dut)
    values = shape.hostile(random.Random(3), 40)
    kind = TYPES.get((shape.exp, shape.frac))
    pairs = [(a, b) for a in values for b in values]
    if kind:
        for a, b in pairs:
            x, y = (np.array(v, f"u{np.dtype(kind).itemsize}").view(kind) for v in (a, b))
            want = np.maximum(x, y)
            got = np.array(shape.larger(a, b), f"u{np.dtype(kind).itemsize}").view(kind)
            assert np.isnan(want) and np.isnan(got) or want == got, f"the reference of {a:x}, {b:x}"
    await compare(dut, pairs, shape.larger)


@pytest.mark.parametrize("exp, frac, infinity", [(2, 2, 1), (2, 2, 0), (3, 3, 1), (4, 3, 0), (5, 2, 1)])
def test_agg_fp_max_tiny(exp, frac, infinity):
    run("agg_fp_max", parameters={"EXP": exp, "FRAC": frac, "INFINITIES": infinity}, testcase=["every_pair"])


@pytest.mark.parametrize("exp, frac", [(8, 23), (8, 7), (5, 10)])
def test_agg_fp_max(exp, frac):
    run("agg_fp_max", parameters={"EXP": exp, "FRAC": frac, "INFINITIES": 1}, testcase=["hostile_pairs"])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def larger_integer(dut):
    width, rng = len(dut.a), random.Random(4)
    half = 1 << width - 1
    values = [0, 1, 2 * half - 1, 2 * half - 2, half, half + 1, half - 1, half - 2]
    values += [rng.getrandbits(width) for _ in range(12)]
    await compare(dut, [(a, b) for a in values for b in values], lambda a, b: max(a, b, key=lambda x: (x ^ half)))


@pytest.mark.parametrize("width", [2, 5, 32])
def test_agg_int_max(width):
    run("agg_int_max", parameters={"WIDTH": width}, testcase=["larger_integer"])


@pytest.mark.parametrize("format", ["fp32", "fp16"])
def test_the_model_is_numpys_maximum(format):
    """The Python model's max of whole columns equals NumPy's; the test treats all NaNs as equal."""
    kind = {"fp32": np.float32, "fp16": np.float16}[format]
    rng = np.random.default_rng(5)
    bits = [rng.integers(0, 1 << 8 * np.dtype(kind).itemsize, 4000, dtype=np.uint32) for _ in range(5)]
    total, overflowed = arithmetic.Arithmetic(format, sum="max").sum([*bits, None])
    values = [b.astype(f"u{np.dtype(kind).itemsize}").view(kind) for b in bits]
    want = np.maximum.reduce(values)
    got = total.astype(f"u{np.dtype(kind).itemsize}").view(kind)
    np.testing.assert_array_equal(got, want)
    assert not overflowed.any()


def test_an_absent_port_changes_nothing():
    """In every format, a row of only the lowest number (or infinity) keeps it beside absent
    ports."""
    for name in ["fp32", "bf16", "fp16", "fp8e4m3", "fp8e5m2", "int32"]:
        lowest = arithmetic.zwire.IDENTITIES["max"][name]
        total, _ = arithmetic.Arithmetic(name, sum="max").sum([None, np.array([lowest], dtype=np.uint32), None])
        assert total[0] == lowest, name
