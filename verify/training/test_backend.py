"""Sums through the process group, against the Go model, Gloo and plain sums."""

import numpy as np
import pytest
from conftest import CARD


def numbers(size, count, seed=0):
    """Arrays of fp32 of many magnitudes, one of each rank: their sum depends on the order of the additions."""
    random = np.random.default_rng(seed)
    return [
        (random.standard_normal(count) * 2.0 ** random.integers(-20, 20, count)).astype(np.float32) for _ in range(size)
    ]


def bits16(array):
    """Rounds fp32 to the bits of bf16, to nearest even."""
    bits = array.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


CARD_ALONE = (1, [])  # one call through the card, none of Gloo


def test_fp32_equals_model(run, serve, model):
    """A virtual card that a daemon shares gives the bits of the Go model, twice in a row."""
    arrays = numbers(4, 3001)
    expected = model(f"model:{CARD}", arrays)
    assert not np.array_equal(expected, arrays[3] + arrays[2] + arrays[1] + arrays[0])  # the order matters
    name, _ = serve(f"sim:{CARD}")
    for results, where in run("sums", card=name, args=[{"array": a, "times": 2} for a in arrays]):
        assert [result.tobytes() for result in results] == [expected.tobytes()] * 2
        assert where == (2, [])


def test_card_of_rank_0(run, model):
    """Rank 0 opens a card that no daemon has, and shares it."""
    arrays = numbers(3, 1000)
    expected = model("model:sum=exact", arrays)
    for (result,), where in run("sums", 3, card="model:sum=exact", args=[{"array": a} for a in arrays]):
        assert result.tobytes() == expected.tobytes() and where == CARD_ALONE


@pytest.mark.parametrize(
    "format, dtype, result",
    [
        ("bf16", "bfloat16", "bf16"),
        ("fp16", "float16", "fp16"),
        ("fp8e4m3", "float8_e4m3fn", "fp8e4m3"),
        ("fp8e5m2", "float8_e5m2", "fp8e5m2"),
        ("bf16", "bfloat16", "fp32"),
        ("fp16", "float16", "fp32"),
    ],
)
def test_formats(run, model, format, dtype, result):
    """The sums of each format are those of the model. A wider result is rounded to the tensor's format."""
    whole = numbers(4, 1000)
    small = [(a * 2.0**-18).clip(-100, 100) for a in whole]  # 8 and 16 bits hold them
    if format == "fp16":
        arrays = [a.astype(np.float16) for a in small]
    elif format == "bf16":
        arrays = [bits16(a) for a in whole]
    else:
        arrays = [np.random.default_rng(r).integers(0, 0x58, 1000).astype(np.uint8) for r in range(4)]
    flags = [] if format == "fp16" else ["-format", format]
    expected = model(f"model:format={format},result={result}", arrays, *flags)
    if result == "fp32":
        assert expected.dtype == np.float32
        expected = bits16(expected) if format == "bf16" else expected.astype(np.float16)
    args = [{"array": array, "dtype": dtype} for array in arrays]
    for (sums,), where in run("sums", card=f"cpu:format={format},result={result}", args=args):
        assert sums.tobytes() == expected.tobytes() and where == CARD_ALONE


def test_int32_equals_gloo(run):
    """Sums of integers wrap around as Gloo's do."""
    arrays = [np.random.default_rng(r).integers(-(2**31), 2**31, 5000).astype(np.int32) for r in range(4)]
    args = [{"array": a} for a in arrays]
    theirs = run("sums", args=args, init="gloo")
    for card in ("cpu:format=int32", "model:format=int32"):
        for ((ours,), where), ((expected,), _) in zip(run("sums", card=card, args=args), theirs):
            assert ours.tobytes() == expected.tobytes() and where == CARD_ALONE


@pytest.mark.parametrize("size", [3, 4])
def test_average(run, model, size):
    """The mean is the card's sum divided once by the number of ranks."""
    arrays = numbers(size, 1000)
    expected = model("model:", arrays, "-op", "mean")
    for (mean,), where in run("sums", size, args=[{"array": a, "op": "AVG"} for a in arrays]):
        assert mean.tobytes() == expected.tobytes() and where == CARD_ALONE


def test_maximum(run):
    """A card of maxima does MAX, and Gloo does SUM beside it; a card of sums leaves MAX to Gloo."""
    arrays = numbers(4, 100)
    args = [{"array": a, "op": "MAX"} for a in arrays]
    for card, where in (("cpu:sum=max", CARD_ALONE), ("cpu:", (0, ["allreduce"]))):
        for (found,), went in run("sums", card=card, args=args):
            assert np.array_equal(found, np.maximum.reduce(arrays)) and went == where
    whole = [np.full(3, rank, np.float32) for rank in range(4)]
    for (found,), went in run("sums", card="cpu:sum=max", args=[{"array": a} for a in whole]):
        assert (found == 6).all() and went == (0, ["allreduce"])


@pytest.mark.parametrize("op", ["MIN", "PRODUCT"])
def test_gloo_does_the_rest(run, op):
    arrays = [np.arange(1, 9, dtype=np.float32) + rank for rank in range(4)]
    expected = (np.minimum if op == "MIN" else np.multiply).reduce(arrays)
    for (found,), where in run("sums", args=[{"array": a, "op": op} for a in arrays]):
        assert np.array_equal(found, expected) and where == (0, ["allreduce"])


def test_world_of_one(run):
    ((result,), _), = run("sums", 1, args={"array": np.arange(5, dtype=np.float32)})
    assert np.array_equal(result, np.arange(5))


def test_coalesced(run):
    for (first, empty, last), where in run("coalesced"):
        assert (first == 24).all() and empty.size == 0 and np.array_equal(last, 24 * np.arange(5))
        assert where == (4, [])


def test_functional(run):
    total = 4 * np.arange(8) + 6
    for rank, (results, where) in enumerate(run("functional")):
        source, summed, mean, part, first, second, scattered, gathered = results
        assert np.array_equal(source, np.arange(8) + rank)
        assert np.array_equal(summed, total) and np.array_equal(mean, total / 4)
        assert np.array_equal(part, total[2 * rank : 2 * rank + 2]) and np.array_equal(gathered, total)
        assert np.array_equal(first, total) and np.array_equal(second, 2 * total)
        assert np.array_equal(scattered, part)
        assert where == (6, ["all_gather_single_coalesced"])


@pytest.mark.parametrize(
    "variant", ["list", "tensor", "async", "average", "matrix", "not contiguous", "in place"]
)
def test_reduce_scatter(run, variant):
    for rank, (part, where) in enumerate(run("scattered", args={"variant": variant})):
        expected = 10 * np.arange(12).reshape(4, 3)[rank] / (4 if variant == "average" else 1)
        assert np.array_equal(part.reshape(-1), expected) and where == CARD_ALONE


@pytest.mark.parametrize("variant", ["different parts", "too short"])
def test_reduce_scatter_refusals(run, variant):
    for outcome in run("scattered", args={"variant": variant}, fails=True):
        assert "ValueError" in outcome.kinds and "elements" in outcome.text


# --------------------------------------------------------------------------------- several at once


def test_waits_in_reverse(run):
    """Calls end in their order, whatever the order of the waits."""
    for results, ended in run("reverse", args={"calls": 20, "count": 3000}):
        assert results == [(6.0 + 4 * i,) * 2 for i in range(20)]
        assert ended == list(range(20))


def test_forgotten_tensors(run):
    """A call keeps its tensors until it is over."""
    for results, last in run("dropped"):
        assert results == [True] * 10 and (last == 4).all()


def test_work(run):
    for before, after in run("work_methods"):
        assert before == [False, False, None, False, "RunningError"]
        assert after == [True, True, True, None, True, True]


def test_callback_that_waits(run):
    """A callback of a future may make a call, and wait for it."""
    for result, _ in run("nested"):
        assert (result == 96).all()


def test_power_sgd(run):
    """PowerSGD waits in callbacks; all replicas stay equal."""
    results = run("power_sgd")
    assert all(result.tobytes() == results[0].tobytes() for result in results)
    assert np.isfinite(results[0]).all()


@pytest.mark.parametrize("start", ["contiguous", "transposed"])
def test_one_tensor_in_several_calls(run, start):
    """Calls of one memory are as if made one after another."""
    for least, most, once, twice in run("same_tensor", args={"start": start}):
        assert least == most == 64
        assert once == twice == 4  # Gloo's sums, too: each tensor of a call is read before any is written
