"""The window below the largest exponent: each leaf compared with whole numbers, and whole lanes
of `fused`."""

import json
import os
import random
import shutil
import subprocess

import cocotb
import numpy as np
import pytest
from cocotb.triggers import RisingEdge

from arithmetic import Arithmetic, Format
from bench import BUILD, ROOT, leaf, number, run, start


async def stream(dut, vectors, timing, latency):
    """Feeds a vector per cycle and returns the outputs of each.

    vectors: dicts of inputs. timing: the cycle in which a vector's input is driven, by default
    0. latency: by output, the cycle in which it is read; other outputs are not read.
    """
    last = max([*timing.values(), *latency.values()])
    got = [{} for _ in vectors]
    inputs = [(name, getattr(dut, name), timing.get(name, 0)) for name in vectors[0]]
    outputs = [(name, getattr(dut, name), late) for name, late in latency.items()]
    for cycle in range(len(vectors) + last + 1):
        for name, handle, late in inputs:
            i = cycle - late
            if 0 <= i < len(vectors):
                handle.value = vectors[i][name]
        await RisingEdge(dut.clk)
        for name, handle, late in outputs:
            i = cycle - late
            if 0 <= i < len(vectors):
                got[i][name] = number(handle)
    return got


# -- the largest exponent --------------------------------------------------------------------------


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def finds_the_larger(dut):
    floor = int(dut.FLOOR.value)
    vectors = [{"a": a, "b": b} for a in range(1 << len(dut.a)) for b in range(1 << len(dut.b))]
    await start(dut)
    for v, got in zip(vectors, await stream(dut, vectors, {}, {"y": 1})):
        assert got["y"] == max(v["a"], v["b"], floor), v


@pytest.mark.parametrize("floor", [0, 1])
def test_agg_window_max(floor):
    run("agg_window_max", parameters={"EXP": 4, "FLOOR": floor}, testcase=["finds_the_larger"])


# -- the aligner -----------------------------------------------------------------------------------


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def aligns(dut):
    """Every operand of a small format with every exponent not below its own; random pairs of a
    large format."""
    exp, frac, infinity, window, marks, dsp = (
        int(getattr(dut, name).value) for name in ("EXP", "FRAC", "INFINITIES", "WINDOW", "MARK", "DSP")
    )
    top, rng = (1 << exp) - 1, random.Random(1)
    if exp + frac < 8:
        pairs = [(x, e) for x in range(2 << exp + frac) for e in range(1, top + 1)]
    else:
        ones = (1 << frac) - 1
        xs = [rng.getrandbits(1 + exp + frac) for _ in range(8000)]
        xs += [rng.getrandbits(1 + exp) << frac | rng.choice([0, 1, ones, ones >> rng.randrange(frac)]) for _ in range(4000)]
        pairs = [(x, min(top, max(1, x >> frac & top) + rng.choice([0, 1, rng.randrange(40), top]))) for x in xs]
    pairs = [(x, e) for x, e in pairs if e >= (x >> frac & top)]
    vectors = [{"x": x, "max": e, "special": int(infinity and e == top)} for x, e in pairs]
    await start(dut)
    latency = {"negative": 3, "top": 3, "magnitude": 5 if dsp or marks or window > 32 else 4, "mark": 5}
    for v, got in zip(vectors, await stream(dut, vectors, {"max": 1, "special": 2}, latency)):
        field, fraction = v["x"] >> frac & top, v["x"] & (1 << frac) - 1
        distance = v["max"] - max(field, 1)
        exact = ((field > 0) << frac | fraction) << window - frac - 1
        want = exact >> distance
        if v["special"]:
            want = exact = fraction << window - frac - 1 if field == top else 0
            distance = 0
        assert got["magnitude"] == want, v
        assert got["mark"] == int(marks and want << distance != exact), v
        assert got["negative"] == v["x"] >> exp + frac, v
        strange = field == top if infinity else v["x"] & (1 << exp + frac) - 1 == (1 << exp + frac) - 1
        assert got["top"] == strange, v


FUSED = [(3, 2, 1, 7), (4, 3, 0, 8), (5, 2, 1, 7), (8, 23, 1, 28), (5, 10, 1, 15), (8, 7, 1, 12)]
MARKED = [(3, 2, 1, 10), (3, 2, 0, 17), (8, 23, 1, 44), (8, 7, 1, 28), (8, 23, 1, 33), (8, 23, 1, 56)]
WHOLE = [(5, 10, 1, 40), (4, 3, 0, 18), (5, 2, 1, 32)]


@pytest.mark.parametrize(
    "exp, frac, infinity, window, marks, dsp",
    [(*shape, 0, dsp) for shape in FUSED for dsp in (0, 1)]
    + [(*shape, 1, 0) for shape in MARKED]
    + [(*shape, 0, 0) for shape in WHOLE],
)
def test_agg_window_align(exp, frac, infinity, window, marks, dsp):
    parameters = {"EXP": exp, "FRAC": frac, "INFINITIES": infinity, "WINDOW": window, "MARK": marks, "DSP": dsp}
    sources = [leaf("agg_window_align"), leaf("agg_window_multiply")]
    simulator = "verilator" if marks and frac > 2 else "icarus"
    run("agg_window_align", sources=sources, parameters=parameters, simulator=simulator, testcase=["aligns"])


# -- the sum ---------------------------------------------------------------------------------------


def signed(x, width):
    """Returns the value of width bits in two's complement."""
    return x - (x >> width - 1 << width)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def adds_with_relative_signs(dut):
    width = len(dut.a)
    some = range(1 << width)
    signs = [(p, a, b) for p in (0, 1) for a in (0, 1) for b in (0, 1)]
    vectors = [
        {"plain": p, "a_negative": m, "b_negative": n, "a": a, "b": b} for p, m, n in signs for a in some for b in some
    ]
    random.Random(1).shuffle(vectors)
    await start(dut)
    got = await stream(dut, vectors, {"a": 1, "b": 1}, {"y_negative": 1, "y": 2})
    for v, g in zip(vectors, got):
        a, b = signed(v["a"], width), signed(v["b"], width)
        subtract = v["a_negative"] != v["b_negative"] and not v["plain"]
        assert signed(g["y"], width + 1) == (a - b if subtract else a + b), v
        assert g["y_negative"] == v["a_negative"], v


def test_agg_window_add():
    run("agg_window_add", parameters={"WIDTH": 4}, testcase=["adds_with_relative_signs"])


# -- special values --------------------------------------------------------------------------------


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def tells_special_values(dut):
    infinity, n, top = int(dut.INFINITIES.value), len(dut.top), (1 << len(dut.max)) - 1
    vectors = [
        {"max": e, "top": t, "negative": s} for e in (1, top - 1, top) for t in range(1 << n) for s in range(1 << n)
    ]
    # The largest exponent marks an operand as an infinity or a NaN.
    vectors = [v for v in vectors if not infinity or (v["max"] == top) == (v["top"] > 0)]
    random.Random(1).shuffle(vectors)
    await start(dut)
    latency = {"special": 1, "nonfinite": 4, "nan": 4, "minus": 4, "all_negative": 4}
    for v, got in zip(vectors, await stream(dut, vectors, {"top": 2, "negative": 2}, latency)):
        plus, minus = v["top"] & ~v["negative"], v["top"] & v["negative"]
        assert got["special"] == bool(infinity and v["max"] == top), v
        assert got["nonfinite"] == (v["top"] > 0), v
        assert got["nan"] == bool(plus and minus if infinity else v["top"]), v
        assert got["minus"] == (minus > 0), v
        assert got["all_negative"] == (v["negative"] == (1 << n) - 1), v


@pytest.mark.parametrize("infinity", [0, 1])
def test_agg_window_special(infinity):
    parameters = {"EXP": 3, "INFINITIES": infinity, "OPERANDS": 3}
    run("agg_window_special", parameters=parameters, testcase=["tells_special_values"])


# -- normalizing -----------------------------------------------------------------------------------


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def normalizes(dut):
    """normal with rest is the magnitude, shifted left as far as needed and allowed."""
    growth, bits = int(dut.GROWTH.value), int(dut.BITS.value)
    width, keep, exp = len(dut.sum), len(dut.normal), len(dut.exponent)
    rng, fields = random.Random(1), (1 << exp) - 1
    if width < 9:
        pairs = [(s, e) for s in range(1 << width) for e in range(1, fields + 1)]
    else:
        sums = [rng.getrandbits(width) >> rng.randrange(width) for _ in range(8000)]
        sums += [1 << i for i in range(width)] + [(1 << i) - 1 for i in range(1, width)]
        sums += [-s & (1 << width) - 1 for s in sums]
        pairs = [(s, rng.choice([fields, rng.randint(1, fields), rng.randint(1, min(fields, width))])) for s in sums]
    vectors = [{"sum": s, "exponent": e} for s, e in pairs]
    await start(dut)
    late = 6 if bits == 32 else 7  # counted from exponent, which precedes its sum by a cycle
    latency = {name: late for name in ("inverted", "zero", "shift", "normal", "rest")}
    for v, got in zip(vectors, await stream(dut, vectors, {"sum": 1}, latency)):
        total = signed(v["sum"], width)
        assert got["inverted"] == (total < 0) and got["zero"] == (total == 0), v
        if total == 0:
            assert got["normal"] == 0 and not got["rest"], v
            continue
        # An inverted sum is one less in the lowest place, with ones below it.
        held = total if total > 0 else -total - 1
        places = 2 * bits  # bits below the sum, so that nothing is lost
        word = held << places | (0 if total > 0 else (1 << places) - 1)
        leading = width - 1 - held.bit_length()
        limit = v["exponent"] + growth - 1
        # If all bits below the sum are ones, it needs no leading bit of its own.
        assert got["shift"] == min(leading, limit) or (held == 0 and got["shift"] <= limit), v
        word <<= got["shift"]
        assert got["normal"] == word >> places + width - 1 - keep if keep < places + width else word, v
        below = (abs(total) << places << got["shift"]) & (1 << places + width - 1 - keep) - 1
        assert got["rest"] == (below != 0), v


@pytest.mark.parametrize(
    "parameters",
    [
        {"EXP": 4, "WIDTH": 8, "GROWTH": 1, "KEEP": 4},
        {"EXP": 3, "WIDTH": 7, "GROWTH": 2, "KEEP": 3},
        {"EXP": 8, "WIDTH": 32, "GROWTH": 3, "KEEP": 25},
        {"EXP": 8, "WIDTH": 33, "GROWTH": 4, "KEEP": 25},
        {"EXP": 5, "WIDTH": 19, "GROWTH": 3, "KEEP": 12},
        {"EXP": 8, "WIDTH": 52, "GROWTH": 3, "BITS": 64, "KEEP": 40},
    ],
)
def test_agg_window_normalize(parameters):
    run("agg_window_normalize", parameters=parameters, testcase=["normalizes"])


# -- rounding --------------------------------------------------------------------------------------


class TinyFormat(Format):
    """A format of any size, of the same kinds as in the wire table."""

    def __init__(self, exp, frac, infinity):
        self.exp, self.frac, self.infinity, self.bits = exp, frac, infinity, 1 + exp + frac
        self.sign, self.top = 1 << exp + frac, (1 << exp) - 1
        self.largest = (self.top << frac) - 1 if infinity else self.sign - 2
        self.nan = self.top << frac | (1 << frac - 1 if infinity else (1 << frac) - 1)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def rounds(dut):
    """All normalized sums of a small format."""
    infinity, growth, frac = (int(getattr(dut, name).value) for name in ("INFINITIES", "GROWTH", "FRAC"))
    exp, keep = len(dut.exponent), len(dut.normal)
    f = TinyFormat(exp, frac, infinity)
    vectors, want = [], []
    for normal in range(1 << keep):
        for exponent in range(1, (1 << exp) - infinity):
            for shift in range(exponent + growth):
                field = exponent + growth - shift
                if normal >> keep - 1 == 0 and field > 1:
                    continue
                for inverted in (0, 1):
                    for rest in (0, 1):
                        # In units of the smallest subnormal, times 2^places.
                        places = keep + 1 - frac
                        if inverted:
                            exact = ((normal << 2) + (2 if rest else 4)) << field - 1
                        else:
                            exact = ((normal << 2) + (2 if rest else 0)) << field - 1
                        negative = normal & 1
                        v = dict(inverted=inverted, zero=int(exact == 0), exponent=exponent, shift=shift, normal=normal)
                        vectors.append(v | dict(rest=rest, negative=negative, nonfinite=0, nan=0, minus=0, all_negative=1))
                        sign = f.sign if exact == 0 or negative != inverted else 0
                        want.append(sign | rounded(f, exact, places))
    for nan, minus, zero in [(n, m, z) for n in (0, 1) for m in (0, 1) for z in (0, 1)]:
        v = dict(inverted=0, zero=zero, exponent=f.top, shift=0, normal=1 << keep - 1, rest=0, negative=0)
        vectors.append(v | dict(nonfinite=1, nan=nan or 1 - infinity, minus=minus, all_negative=0))
        number = infinity and not nan and zero
        want.append((f.sign if minus else 0) | f.largest + 1 if number else f.nan)
    want = [f.nan if w & f.sign - 1 > f.largest and not infinity else w for w in want]
    order = list(range(len(vectors)))
    random.Random(1).shuffle(order)
    vectors, want = [vectors[i] for i in order], [want[i] for i in order]
    await start(dut)
    for v, w, got in zip(vectors, want, await stream(dut, vectors, {}, {"y": 4, "over": 4})):
        assert got["y"] == w, f"{v}: {got['y']:x}, not {w:x}"
        assert got["over"] == (w & f.sign - 1 > f.largest and not v["nonfinite"]), v


def rounded(f, magnitude, places):
    """Returns a multiple of 2^-places of the smallest subnormal, rounded to the format."""
    shift = max(places, magnitude.bit_length() - f.frac - 1)
    kept, rest = magnitude >> shift, magnitude & (1 << shift) - 1
    half = 1 << shift - 1
    kept += rest > half or (rest == half and kept & 1)
    return min((shift - places << f.frac) + kept, f.largest + 1)


@pytest.mark.parametrize("infinity, growth, frac, keep", [(1, 1, 2, 4), (1, 3, 2, 5), (0, 2, 3, 5)])
def test_agg_window_round(infinity, growth, frac, keep):
    parameters = {"EXP": 3, "FRAC": frac, "INFINITIES": infinity, "GROWTH": growth, "KEEP": keep}
    run("agg_window_round", parameters=parameters, testcase=["rounds"])


# -- whole lanes -----------------------------------------------------------------------------------


def hostile_row(f, rng, ports):
    """Returns elements with close exponents that cancel, tie, or are zero, subnormal, infinite
    or NaN."""
    base, spread = rng.randrange(f.top + 1), rng.choice([0, 1, 3, f.frac, f.frac + 6, f.top])
    row = []
    for _ in range(ports):
        field = max(0, base - rng.randint(0, spread))
        fraction = rng.choice([0, 1, (1 << f.frac) - 1, 1 << rng.randrange(f.frac), rng.getrandbits(f.frac)])
        row.append(rng.getrandbits(1) << f.bits - 1 | field << f.frac | fraction)
    kind = rng.randrange(8)
    if kind == 0:
        row = [rng.choice(row[: i + 1]) ^ f.sign if i else x for i, x in enumerate(row)]
    elif kind == 1:
        row = [rng.choice([0, f.sign, x]) for x in row]
    elif kind == 2:
        row = [f.sign] * ports
    elif kind == 3:
        row[rng.randrange(ports)] = rng.choice([0, f.sign]) | f.top << f.frac
    return row


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def sums_as_the_model(dut):
    lane = json.loads(os.environ["LANE"])
    arithmetic = Arithmetic(lane["format"], lane["result"], "fused")
    ports, latency = lane["ports"], lane["latency"]
    rng = random.Random(1)
    rows = [hostile_row(arithmetic.format, rng, ports) for _ in range(4000)]
    want, over = arithmetic.sum([np.array(column, dtype=np.uint32) for column in zip(*rows)])
    await start(dut)
    vectors = [{f"x_p{p}": x for p, x in enumerate(row)} for row in rows]
    for i, got in enumerate(await stream(dut, vectors, {}, {"y": latency, "over": latency})):
        assert got["y"] == want[i], f"{[hex(x) for x in rows[i]]}: {got['y']:x}, not {want[i]:x}"
        assert got["over"] == over[i], f"{[hex(x) for x in rows[i]]}"


LANES = [("fp32", n, ()) for n in (1, 2, 5, 8, 17)] + [("fp32", 8, ("-dsp",)), ("fp16", 6, ("-dsp",))]
LANES += [("fp8e4m3", 33, ()), ("bf16", 4, ("-result", "fp32")), ("fp8e4m3", 3, ("-result", "bf16"))]


@pytest.mark.parametrize("format, ports, flags", LANES)
def test_fused_lane(format, ports, flags):
    folder = BUILD / "lanes" / "_".join([format, str(ports), *flags])
    shutil.rmtree(folder, ignore_errors=True)
    what = ["-lanes", "1", "-workers", str(ports), "-shell", "none", "-format", format, "-sum", "fused"]
    subprocess.run([ROOT / "bin" / "hwgen", *what, *flags, "-o", folder], check=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    lane = {"format": format, "result": manifest["result"], "ports": ports, "latency": manifest["lane_latency"]}
    leaves = [f for f in manifest["files"] if f.startswith(("agg_window_", "agg_fp_", "agg_delay"))]
    run(
        "agg_lane",
        sources=[folder / f for f in [*leaves, "agg_lane.v"]],
        simulator="icarus" if ports < 8 else "verilator",
        testcase=["sums_as_the_model"],
        env={"LANE": json.dumps(lane)},
    )
