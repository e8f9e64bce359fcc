"""The adder: binary32 and binary16 compared with NumPy, and tiny formats exhaustively with exact
integers."""

import os
import subprocess

import cocotb
import numpy as np
import pytest
from cocotb.triggers import RisingEdge

from bench import OPTIMIZE, ROOT, VERILATOR_MAKEFLAGS, leaf, library_objects, run, start

LATENCY = 14
PAIRS = 1 << 20  # for either format, besides the structured pairs


# -- binary32 and binary16 -------------------------------------------------------------------------

FLOATS = {(8, 23): (np.float32, np.uint32), (5, 10): (np.float16, np.uint16)}


def numpy_sum(a, b, exp, frac):
    """Returns NumPy's a + b, with the quiet NaN for every NaN."""
    number, word = FLOATS[exp, frac]
    with np.errstate(all="ignore"):
        y = a.astype(word).view(number) + b.astype(word).view(number)
    bits = y.view(word).astype(np.uint32)
    bits[np.isnan(y)] = (2 << exp) - 1 << frac - 1
    return bits


def structured_pairs(exp, frac):
    """Returns structured pairs.

    They cover every distance of exponents and both signs, with fractions that tie, carry, cancel
    and stick; and all pairs of zeros, subnormals, the largest numbers, infinities and NaNs.
    """
    ones, half, one, top, sign_bit = (1 << frac) - 1, 1 << frac - 1, 1 << frac, (1 << exp) - 1, 1 << exp + frac
    fractions = [0, 1, 2, 3, half, half - 1, half + 1, ones, ones - 1, ones // 3]
    a, b = [], []
    for distance in range(0, min(32, top)):
        for low in (0, 1, 2, 5, top // 10, top * 2 // 5, top - 33):
            low = max(low, 0)
            high = min(low + distance, top - 1)
            for fa in fractions:
                for fb in fractions:
                    for sign in (0, sign_bit):
                        a.append(high << frac | fa)
                        b.append(sign | low << frac | fb)
    edges = [0, 1, 2, half - 1, half, ones, one, one + 1, 2 * one - 1, 2 * one, top // 2 * one]
    edges += [(top - 1) * one, top * one - 2, top * one - 1, top * one, top * one + 1, top * one + half - 1]
    edges += [top * one + half, sign_bit - 1]
    edges += [e | sign_bit for e in edges]
    a += [x for x in edges for _ in edges]
    b += [y for _ in edges for y in edges]
    a, b = np.array(a, np.uint32), np.array(b, np.uint32)
    return np.concatenate([a, b]), np.concatenate([b, a])


def random_pairs(rng, count, exp, frac):
    """Returns random pairs.

    They have close exponents, fractions with long runs of ones and zeros, cancellation of any
    number of leading bits, and subnormals; an eighth is fully random.
    """
    ones, top, sign_bit = np.uint32((1 << frac) - 1), (1 << exp) - 1, np.uint32(1 << exp + frac)
    a = rng.integers(0, 2 << exp + frac, count).astype(np.uint32)
    b = rng.integers(0, 2 << exp + frac, count).astype(np.uint32)
    kind = rng.integers(0, 8, count)
    near = (a >> frac & top).astype(int) + rng.integers(-frac - 7, frac + 8, count)
    near_b = (b & (sign_bit | ones)) | (np.clip(near, 0, top - 1).astype(np.uint32) << frac)
    b = np.where(kind >= 1, near_b, b)
    runs = ones >> rng.integers(0, frac, count).astype(np.uint32)
    a = np.where(kind == 2, a | runs, a)
    b = np.where(kind == 3, b & ~runs, b)
    b = np.where(kind == 4, a ^ sign_bit ^ rng.integers(0, 16, count).astype(np.uint32), b)
    few = sign_bit | ones | 3 << frac
    a = np.where(kind == 5, a & few, a)
    b = np.where(kind == 5, b & (few ^ 2 << frac), b)
    b = np.where(kind == 6, b & ~runs | (runs ^ runs >> 1), b)
    b = np.where(kind == 7, a ^ sign_bit ^ rng.integers(0, 1 << frac, count).astype(np.uint32) & runs, b)
    return a.astype(np.uint32), b.astype(np.uint32)


@pytest.mark.parametrize("exp, frac", FLOATS)
def test_fp_add(tmp_path, exp, frac):
    """Compares more pairs than cocotb can feed in reasonable time: a Verilator model reads them
    from a file."""
    pairs = structured_pairs(exp, frac), random_pairs(np.random.default_rng(1), PAIRS, exp, frac)
    a, b = (np.concatenate(x) for x in zip(*pairs))
    vectors = tmp_path / "vectors"
    np.stack([a, b, numpy_sum(a, b, exp, frac)], axis=1).tofile(vectors)
    model = tmp_path / "model"
    subprocess.run(
        ["verilator", "--cc", "--exe", "--build", "-Wall", "--Mdir", model, "--output-split", "0"]
        + ["-MAKEFLAGS", f"{VERILATOR_MAKEFLAGS} OPT_FAST={OPTIMIZE}", "-LDFLAGS", library_objects()]
        + [f"-GEXP={exp}", f"-GFRAC={frac}", leaf("agg_fp_add"), ROOT / "cocotb" / "adder_vectors.cpp"],
        check=True,
        capture_output=True,
    )
    done = subprocess.run([model / "Vagg_fp_add", vectors, str(LATENCY)], capture_output=True, text=True)
    assert done.stdout == f"0 wrong of {len(a)}\n"


# -- tiny formats ----------------------------------------------------------------------------------


def exact_sum(a, b, exp, frac, infinity=True):
    """Returns a + b rounded to nearest, ties to even, over encodings of 1 + exp + frac bits.

    Every finite number is a multiple of the smallest subnormal, so the sum of two is exact. In a
    format without infinities, all ones is the only NaN.
    """
    top = (1 << exp) - 1
    sign_bit, field_bits = 1 << exp + frac, exp + frac
    ones = (1 << field_bits) - 1
    # The first encoding that is not a finite number: the result of an overflow.
    beyond = top << frac if infinity else ones

    def units(x):
        field, fraction = x >> frac & top, x & (1 << frac) - 1
        magnitude = fraction if field == 0 else (fraction | 1 << frac) << field - 1
        return -magnitude if x & sign_bit else magnitude

    nan = top << frac | 1 << frac - 1 if infinity else ones
    if any(x & ones > (beyond if infinity else ones - 1) for x in (a, b)):
        return nan
    infinite = [x for x in (a, b) if x & ones == beyond]
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
    # Exponent field and fraction form one number, so a carry is handled correctly.
    encoding = kept + (drop << frac)
    if encoding < beyond:
        return sign | encoding
    return sign | beyond if infinity else nan


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def agrees_with_exact_sums(dut):
    """All pairs of a tiny format."""
    exp, frac, infinity = (int(os.environ[name]) for name in ("EXP", "FRAC", "INFINITIES"))
    width = 1 + exp + frac
    await start(dut)
    pairs = [(a, b) for a in range(1 << width) for b in range(1 << width)]
    for cycle in range(len(pairs) + LATENCY):
        if cycle < len(pairs):
            dut.a.value, dut.b.value = pairs[cycle]
        await RisingEdge(dut.clk)
        # The output at this edge belongs to the input LATENCY edges earlier.
        if cycle >= LATENCY:
            a, b = pairs[cycle - LATENCY]
            got, want = int(dut.y.value), exact_sum(a, b, exp, frac, infinity)
            assert got == want, f"{a:0{width}b} + {b:0{width}b} = {want:0{width}b}, not {got:0{width}b}"


@pytest.mark.parametrize("exp, frac, infinity", [(3, 2, 1), (2, 4, 1), (4, 2, 1), (3, 2, 0), (2, 4, 0)])
def test_fp_add_tiny(exp, frac, infinity):
    parameters = {"EXP": exp, "FRAC": frac, "INFINITIES": infinity}
    env = {name: str(value) for name, value in parameters.items()}
    run("agg_fp_add", parameters=parameters, testcase=["agrees_with_exact_sums"], env=env)


# NumPy confirms exact_sum itself.
@pytest.mark.parametrize("exp, frac", FLOATS)
def test_exact_sum_agrees_with_numpy(exp, frac):
    a, b = random_pairs(np.random.default_rng(2), 20000, exp, frac)
    got = np.array([exact_sum(x, y, exp, frac) for x, y in zip(a.tolist(), b.tolist())], np.uint32)
    assert np.array_equal(got, numpy_sum(a, b, exp, frac))
