"""The adder: binary32 against NumPy's float32, and tiny formats of the same kind exhaustively against
exact integers."""

import os
import subprocess

import cocotb
import numpy as np
import pytest
from cocotb.triggers import RisingEdge

from bench import ROOT, RTL, VERILATOR_MAKEFLAGS, run, start

LATENCY = 4
PAIRS = 1 << 20  # of binary32, besides the structured ones


# -- binary32 --------------------------------------------------------------------------------------


def numpy_sum(a, b):
    """a + b as NumPy's float32 has it, every NaN the quiet one."""
    with np.errstate(all="ignore"):
        y = a.view(np.float32) + b.view(np.float32)
    bits = y.view(np.uint32).copy()
    bits[np.isnan(y)] = 0x7FC00000
    return bits


def structured_pairs():
    """Every distance of exponents, both signs, with fractions that tie, carry, cancel and stick; and
    everything with everything among zeros, subnormals, the largest, infinities and NaNs."""
    fractions = [0, 1, 2, 3, 0x400000, 0x3FFFFF, 0x400001, 0x7FFFFF, 0x7FFFFE, 0x555555]
    a, b = [], []
    for distance in range(0, 32):
        for low in (0, 1, 2, 5, 24, 100, 222):
            high = min(low + distance, 254)
            for fa in fractions:
                for fb in fractions:
                    for sign in (0, 0x80000000):
                        a.append(high << 23 | fa)
                        b.append(sign | low << 23 | fb)
    edges = [0, 1, 2, 0x3FFFFF, 0x400000, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0x1000000, 0x3F800000]
    edges += [0x7F000000, 0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF]
    edges += [e | 0x80000000 for e in edges]
    a += [x for x in edges for _ in edges]
    b += [y for _ in edges for y in edges]
    a, b = np.array(a, np.uint32), np.array(b, np.uint32)
    return np.concatenate([a, b]), np.concatenate([b, a])


def random_pairs(rng, count):
    """Pairs with exponents near each other, fractions with long runs of ones and zeros, near
    cancellation, subnormals; an eighth of them wholly at random."""
    a = rng.integers(0, 1 << 32, count, np.uint32)
    b = rng.integers(0, 1 << 32, count, np.uint32)
    kind = rng.integers(0, 8, count)
    near = (a >> 23 & 0xFF).astype(int) + rng.integers(-30, 31, count)
    near_b = (b & 0x807FFFFF) | (np.clip(near, 0, 254).astype(np.uint32) << 23)
    b = np.where(kind >= 1, near_b, b)
    runs = np.uint32(0x7FFFFF) >> rng.integers(0, 23, count).astype(np.uint32)
    a = np.where(kind == 2, a | runs, a)
    b = np.where(kind == 3, b & ~runs, b)
    b = np.where(kind == 4, a ^ 0x80000000 ^ rng.integers(0, 16, count).astype(np.uint32), b)
    a = np.where(kind == 5, a & 0x81FFFFFF, a)
    b = np.where(kind == 5, b & 0x80FFFFFF, b)
    b = np.where(kind == 6, b & ~runs | (runs ^ runs >> 1), b)
    return a.astype(np.uint32), b.astype(np.uint32)


def test_fp32_add(tmp_path):
    """More pairs than cocotb moves in a reasonable time: a Verilator model reads them from a file."""
    a, b = (np.concatenate(x) for x in zip(structured_pairs(), random_pairs(np.random.default_rng(1), PAIRS)))
    vectors = tmp_path / "vectors"
    np.stack([a, b, numpy_sum(a, b)], axis=1).tofile(vectors)
    model = tmp_path / "model"
    subprocess.run(
        ["verilator", "--cc", "--exe", "--build", "-Wall", "--Mdir", model, "-MAKEFLAGS", VERILATOR_MAKEFLAGS]
        + [RTL / "agg_fp32_add.v", ROOT / "cocotb" / "adder_vectors.cpp"],
        check=True,
        capture_output=True,
    )
    done = subprocess.run([model / "Vagg_fp32_add", vectors, str(LATENCY)], capture_output=True, text=True)
    assert done.stdout == f"0 wrong of {len(a)}\n"


# -- tiny formats ----------------------------------------------------------------------------------


def exact_sum(a, b, exp, frac):
    """a + b rounded to nearest, ties to even, over encodings of 1 + exp + frac bits.

    Every finite number is a whole multiple of the smallest subnormal; the sum of two such is exact.
    """
    top = (1 << exp) - 1
    sign_bit, field_bits = 1 << exp + frac, exp + frac

    def parts(x):
        field, fraction = x >> frac & top, x & (1 << frac) - 1
        return x & sign_bit, field, fraction

    def units(x):
        sign, field, fraction = parts(x)
        magnitude = fraction if field == 0 else (fraction | 1 << frac) << field - 1
        return -magnitude if sign else magnitude

    nan = top << frac | 1 << frac - 1
    if any(parts(x)[1] == top and parts(x)[2] for x in (a, b)):
        return nan
    infinite = [x for x in (a, b) if parts(x)[1] == top]
    if infinite:
        return infinite[0] if len(set(infinite)) == 1 else nan
    total = units(a) + units(b)
    if total == 0:
        return sign_bit if a == b == sign_bit else 0
    sign, magnitude = (sign_bit, -total) if total < 0 else (0, total)
    drop = max(0, magnitude.bit_length() - (frac + 1))
    kept, rest = magnitude >> drop, magnitude & (1 << drop) - 1
    if 2 * rest > 1 << drop or (2 * rest == 1 << drop and kept & 1):
        kept += 1
    # Exponent field and fraction are one number, in which a carry does the right thing.
    encoding = kept + (drop << frac)
    return sign | min(encoding, top << frac) if encoding < 1 << field_bits else sign | top << frac


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def agrees_with_exact_sums(dut):
    """All pairs of a tiny format."""
    exp, frac = int(os.environ["EXP"]), int(os.environ["FRAC"])
    width = 1 + exp + frac
    await start(dut)
    pairs = [(a, b) for a in range(1 << width) for b in range(1 << width)]
    for cycle in range(len(pairs) + LATENCY):
        if cycle < len(pairs):
            dut.a.value, dut.b.value = pairs[cycle]
        await RisingEdge(dut.clk)
        # What is read at this edge was fed LATENCY edges before.
        if cycle >= LATENCY:
            a, b = pairs[cycle - LATENCY]
            got, want = int(dut.y.value), exact_sum(a, b, exp, frac)
            assert got == want, f"{a:0{width}b} + {b:0{width}b} = {want:0{width}b}, not {got:0{width}b}"


@pytest.mark.parametrize("exp, frac", [(3, 2), (2, 4), (4, 2)])
def test_fp32_add_tiny(exp, frac):
    run(
        "agg_fp32_add",
        parameters={"EXP": exp, "FRAC": frac},
        testcase=["agrees_with_exact_sums"],
        env={"EXP": str(exp), "FRAC": str(frac)},
    )


# The exact sums of binary32 agree with NumPy as well; the helper is not wrong in its own way.
def test_exact_sum_agrees_with_numpy():
    a, b = random_pairs(np.random.default_rng(2), 20000)
    got = np.array([exact_sum(x, y, 8, 23) for x, y in zip(a.tolist(), b.tolist())], np.uint32)
    assert np.array_equal(got, numpy_sum(a, b))


# -- the canonicaliser -----------------------------------------------------------------------------


@cocotb.test(timeout_time=100, timeout_unit="us")
async def replaces_nans_alone(dut):
    """agg_fp32_canon: one cycle later, NaNs are the quiet one and all else is as it was."""
    rng = np.random.default_rng(3)
    edges = [0x7F800000, 0xFF800000, 0x7F800001, 0xFF800001, 0x7FC00000, 0xFFC00000, 0xFFFFFFFF, 0x7F7FFFFF]
    edges += [0, 0x80000000, 1, 0x80000001, 0x7FFFFFFF, 0x7FA00000]
    values = edges + rng.integers(0, 1 << 32, 2000).tolist() + (rng.integers(0, 1 << 32, 500) | 0x7F800000).tolist()
    await start(dut)
    for value in values:
        dut.a.value = value
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        nan = np.isnan(np.array([value], np.uint32).view(np.float32)[0])
        assert int(dut.y.value) == (0x7FC00000 if nan else value), f"{value:08x}"


def test_fp32_canon():
    run("agg_fp32_canon", testcase=["replaces_nans_alone"])
