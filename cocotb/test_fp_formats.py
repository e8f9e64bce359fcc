"""The floating-point leaves that do not add: every encoding of 8 and 16 bits, and edges of
binary32."""

import os
import random
from fractions import Fraction

import cocotb
import pytest
from cocotb.triggers import RisingEdge, Timer

from arithmetic import Format
from bench import leaf, run, start

FLOATS = ["fp32", "bf16", "fp16", "fp8e5m2", "fp8e4m3"]


def shape(fmt, prefix=""):
    """Returns a leaf's parameters for a format."""
    return {prefix + "EXP": fmt.exp, prefix + "FRAC": fmt.frac}


def encodings(fmt):
    """Returns all encodings of a small format.

    A large format yields encodings around zero, the ends of ranges, infinity and NaN, and some
    random ones.
    """
    if fmt.bits <= 16:
        return list(range(1 << fmt.bits))
    rng = random.Random(1)
    some = [rng.getrandbits(fmt.bits) for _ in range(2000)]
    some += [x | fmt.top << fmt.frac for x in some[:500]]
    for field in (0, 1, fmt.bias, fmt.top - 1, fmt.top):
        for fraction in (0, 1, 1 << fmt.frac - 1, (1 << fmt.frac) - 1):
            some += [sign | field << fmt.frac | fraction for sign in (0, fmt.sign)]
    return some


def fmt_of_environment(name):
    return Format(os.environ[name])


# -- agg_fp_canon ----------------------------------------------------------------------------------


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def replaces_nans_alone(dut):
    """One cycle later, NaNs are the canonical NaN; all other encodings are unchanged."""
    fmt = fmt_of_environment("FORMAT")
    await start(dut)
    before = None
    for x in encodings(fmt) + [0]:
        dut.a.value = x
        await RisingEdge(dut.clk)
        if before is not None:
            assert int(dut.y.value) == (fmt.nan if fmt.is_nan(before) else before), f"{before:x}"
        before = x


@pytest.mark.parametrize("name", FLOATS)
def test_agg_fp_canon(name):
    fmt = Format(name)
    parameters = {**shape(fmt), "INFINITIES": int(fmt.infinity)}
    run("agg_fp_canon", parameters=parameters, testcase=["replaces_nans_alone"], env={"FORMAT": name})


# -- agg_fp_nonfinite ------------------------------------------------------------------------------


@cocotb.test()
async def finds_infinities_and_nans(dut):
    """Every lane reports its own element, among neighbours of all kinds."""
    fmt = fmt_of_environment("FORMAT")
    lanes, rng = len(dut.nonfinite), random.Random(2)
    all_of_them = encodings(fmt)
    rng.shuffle(all_of_them)
    for first in range(0, len(all_of_them) - lanes + 1, lanes):
        elements = all_of_them[first : first + lanes]
        dut.beat.value = sum(x << fmt.bits * i for i, x in enumerate(elements))
        await Timer(1, "ns")
        want = sum(1 << i for i, x in enumerate(elements) if x & fmt.sign - 1 > fmt.largest)
        assert int(dut.nonfinite.value) == want, f"{elements}"


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_agg_fp_nonfinite(name, lanes):
    fmt = Format(name)
    parameters = {"LANES": lanes, **shape(fmt), "INFINITIES": int(fmt.infinity)}
    run("agg_fp_nonfinite", parameters=parameters, testcase=["finds_infinities_and_nans"], env={"FORMAT": name})


# -- agg_fp_over -----------------------------------------------------------------------------------


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def blames_no_sum_of_infinities(dut):
    """Random operands and sums.

    over is high if the sum is nonfinite although all operands that many cycles earlier were
    finite.
    """
    fmt = fmt_of_environment("FORMAT")
    operands, latency = int(dut.OPERANDS.value), int(dut.LATENCY.value)
    rng = random.Random(3)
    numbers = [0, fmt.sign, 1, fmt.largest, fmt.sign | fmt.largest, fmt.bias << fmt.frac]
    strange = [fmt.largest + 1, fmt.sign | fmt.largest + 1, fmt.sign - 1, 2 * fmt.sign - 1]
    excused, blamed = [], 0
    await start(dut)
    for cycle in range(1000):
        usual = rng.random() < 0.5
        x = [rng.choice(numbers if usual or rng.random() < 0.8 else strange) for _ in range(operands)]
        y = rng.choice(rng.choice([numbers, strange]))
        dut.x.value = sum(e << fmt.bits * i for i, e in enumerate(x))
        dut.y.value = y
        excused.append(any(e in strange for e in x))
        await Timer(1, "ns")
        if cycle >= latency:
            want = y in strange and not excused[cycle - latency]
            assert int(dut.over.value) == want, f"cycle {cycle}"
            blamed += want
        await RisingEdge(dut.clk)
    assert 0 < blamed < cycle - latency


@pytest.mark.parametrize("name, operands, latency", [("fp32", 3, 28), ("bf16", 8, 2), ("fp8e4m3", 2, 14)])
def test_agg_fp_over(name, operands, latency):
    fmt = Format(name)
    run(
        "agg_fp_over",
        sources=[leaf(name) for name in ("agg_fp_over", "agg_fp_nonfinite", "agg_delay")],
        parameters={"OPERANDS": operands, "LATENCY": latency, **shape(fmt), "INFINITIES": int(fmt.infinity)},
        testcase=["blames_no_sum_of_infinities"],
        env={"FORMAT": name},
    )


# -- agg_fp_widen ----------------------------------------------------------------------------------


def meaning(x, fmt):
    """Returns an encoding's meaning, the same in every format; zeros have a sign."""
    if fmt.is_nan(x):
        return "nan"
    if x & fmt.sign - 1 > fmt.largest:
        return "-inf" if x & fmt.sign else "inf"
    return bool(x & fmt.sign), Fraction(fmt.value(x)) / 2 ** (fmt.bias - 1 + fmt.frac)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def widens_without_change(dut):
    """Two cycles later, the output is the same number in the wider format."""
    narrow, wide = fmt_of_environment("FORMAT"), fmt_of_environment("RESULT")
    await start(dut)
    fed = []
    for x in encodings(narrow) + [0, 0]:
        dut.a.value = x
        await RisingEdge(dut.clk)
        fed.append(x)
        if len(fed) > 2:
            x, y = fed[-3], int(dut.y.value)
            assert meaning(y, wide) == meaning(x, narrow), f"{x:x} becomes {y:x}"
            assert y == wide.nan or not narrow.is_nan(x), f"the NaN {x:x} becomes {y:x}"


PAIRS = [("bf16", "fp32"), ("fp16", "fp32")]
PAIRS += [(small, large) for small in ("fp8e5m2", "fp8e4m3") for large in ("bf16", "fp16", "fp32")]


@pytest.mark.parametrize("narrow, wide", PAIRS)
def test_agg_fp_widen(narrow, wide):
    parameters = {
        **shape(Format(narrow)),
        "INFINITIES": int(Format(narrow).infinity),
        **shape(Format(wide), "TO_"),
    }
    env = {"FORMAT": narrow, "RESULT": wide}
    run("agg_fp_widen", parameters=parameters, testcase=["widens_without_change"], env=env)
