"""Which tensors go to the card, and what becomes of the others."""

import numpy as np
import pytest

BASE = np.arange(120.0).reshape(6, 20)
SPARSE = np.where(BASE > 50, BASE, 0)


def views(name, whole):
    """Does to an array what a kind of cases.KINDS does to a tensor."""
    return {
        "contiguous": lambda: whole,
        "transposed": lambda: whole.T,
        "every second": lambda: whole[::2, 1::2],
        "one column": lambda: whole[:, 3],
        "channels last": lambda: whole.reshape(2, 3, 4, 5),
        "negative": lambda: whole,
        "imaginary part": lambda: whole,
        "0-dim": lambda: whole[1, 1],
        "0-dim view": lambda: whole[1, 1, ...],
        "one element": lambda: whole[1:2, 1:2],
        "expanded by one": lambda: whole[:, 3].reshape(1, 6),
        "offset": lambda: whole.reshape(-1)[7:],
    }[name]()


VIEWS = [
    *("contiguous", "transposed", "every second", "one column", "channels last", "negative", "imaginary part"),
    *("0-dim", "0-dim view", "one element", "expanded by one", "offset"),
]


@pytest.mark.parametrize("name", VIEWS)
def test_strided(run, name):
    """Tensors of all strides are summed by the card, and nothing beside them changes."""
    for rank, (found, where, around) in enumerate(run("kind", args={"name": name})):
        assert where == (1, [])
        assert np.array_equal(found, views(name, 4 * BASE + 6))
        if name not in ("channels last", "negative", "imaginary part", "0-dim"):  # these are copies
            expected = BASE + rank
            views(name, expected)[...] = views(name, 4 * BASE + 6)
            assert np.array_equal(around, expected)


def test_complex(run):
    """torch sums complex64 as pairs of float32."""
    total = 4 * BASE + 6
    for found, where, _ in run("kind", args={"name": "complex"}):
        assert where == (1, []) and np.array_equal(found, total + 2j * total)


def test_conjugate(run):
    """torch refuses views of complex tensors as pairs while they are conjugate, with any backend."""
    ours = run("kind", args={"name": "conjugate"}, fails=True)
    theirs = run("kind", args={"name": "conjugate"}, fails=True, init="gloo")
    assert all(our.error == their.error == "RuntimeError" for our, their in zip(ours, theirs))
    assert all(our.text == their.text for our, their in zip(ours, theirs))


@pytest.mark.parametrize(
    "name, expected",
    [
        ("float64", 4 * BASE + 6),
        ("int64", 4 * BASE + 6),
        ("complex128", (1 + 2j) * (4 * BASE + 6)),
        ("sparse", sum(np.where(BASE + r > 50, BASE + r, 0) for r in range(4))),
    ],
)
def test_gloo_sums(run, name, expected):
    for found, where, _ in run("kind", args={"name": name}):
        assert where == (0, ["allreduce"]) and np.array_equal(found, expected)


@pytest.mark.parametrize("name", ["empty", "no elements"])
def test_empty(run, name):
    """A call of no elements is over at once, and counts as none of Gloo's."""
    for found, where, _ in run("kind", args={"name": name}):
        assert found.size == 0 and where == (0, [])


def test_expanded(run):
    """Elements that share memory are refused on every rank, and the group goes on."""
    for outcome in run("kind", args={"name": "expanded"}, fails=True):
        assert outcome.error == "InputError" and "contiguous()" in outcome.text


@pytest.mark.parametrize("strict", ["0", "1"])
def test_other_device(run, strict):
    for outcome in run("kind", args={"name": "meta"}, env={"TRIBUTARY_STRICT": strict}, fails=True):
        assert outcome.error == "InputError"
        assert "a tensor is on meta" in outcome.text and "tensor.cpu()" in outcome.text


def test_leaf(run):
    for tensor, gradient, parameter, inner in run("leaf"):
        assert (tensor == 6).all() and (gradient == 10).all() and (parameter == 4).all() and (inner == 4).all()


def test_devices(run):
    """A name for each device gives both backends, in the world and in its groups."""
    for rank, (summed, where, config, kind, asked, gpu, last) in enumerate(run("devices", init=False)):
        assert (summed == 6).all() or rank < 2
        assert where == (1, []) and config == "cpu:tributary,cuda:gloo" and kind == "Group"
        assert asked and gpu == "gloo"
        assert (last == (12 if rank < 2 else 6)).all()


STRICT = ["float64", "min", "reduce", "sparse", "coalesced", "scatter"]
NO_REDUCTION = ["broadcast", "gather", "barrier", "objects", "send"]


@pytest.mark.parametrize("call", STRICT)
def test_strict(run, call):
    """TRIBUTARY_STRICT refuses Gloo's reductions, on all ranks."""
    run("strict", args={"call": call})
    for outcome in run("strict", args={"call": call}, env={"TRIBUTARY_STRICT": "1"}, fails=True):
        assert outcome.error == "InputError" and "TRIBUTARY_STRICT is set" in outcome.text


@pytest.mark.parametrize("call", NO_REDUCTION)
def test_strict_of_all(run, call):
    """TRIBUTARY_STRICT=all refuses every call of Gloo's."""
    run("strict", args={"call": call}, env={"TRIBUTARY_STRICT": "1"})
    outcomes = run("strict", args={"call": call}, env={"TRIBUTARY_STRICT": "all"}, fails=True)
    for outcome in outcomes[:2] if call == "send" else outcomes:
        assert outcome.error == "InputError" and "TRIBUTARY_STRICT is set" in outcome.text


def test_strict_lets_the_card_sum(run):
    for calls, gloo in run("strict", args={"call": "float32"}, env={"TRIBUTARY_STRICT": "all"}):
        assert (calls, gloo) == (1, [])


