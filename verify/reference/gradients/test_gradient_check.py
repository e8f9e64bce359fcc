"""Tests of check.py: a checker must reject wrong sums."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent
WORKERS = [str(HERE / f"w{rank}.npy") for rank in range(4)]


def check(*args):
    """Runs check.py; returns its exit status and all that it printed."""
    done = subprocess.run([sys.executable, str(HERE / "check.py"), *args], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def sum_by_hand():
    """The tree of four, written out."""
    a, b, c, d = (np.load(path) for path in WORKERS)
    return (a + b) + (c + d)


def test_right(tmp_path):
    path = str(tmp_path / "sum.npy")
    np.save(path, sum_by_hand())
    code, said = check(path, *WORKERS)
    assert code == 0 and "all 50826 elements" in said


def test_mean(tmp_path):
    path = str(tmp_path / "mean.npy")
    np.save(path, sum_by_hand() / np.float32(4))
    assert check("--op", "mean", path, *WORKERS)[0] == 0
    assert check(path, *WORKERS)[0] == 1


def flip_last_bit(a):
    a.view(np.uint32)[-1] ^= 1
    return a


@pytest.mark.parametrize(
    "spoil, says",
    [
        (flip_last_bit, "the first is element [50825]"),
        (lambda a: a[:-1], "want float32 of shape (50826,)"),
        (lambda a: a.astype(np.float64), "float64 of shape"),
        (lambda a: a.reshape(2, -1), "of shape (2, 25413)"),
    ],
)
def test_wrong(tmp_path, spoil, says):
    path = str(tmp_path / "sum.npy")
    np.save(path, spoil(sum_by_hand()))
    code, said = check(path, *WORKERS)
    assert code == 1 and says in said


def test_other_order(tmp_path):
    a, b, c, d = (np.load(path) for path in WORKERS)
    path = str(tmp_path / "sum.npy")
    np.save(path, ((a + b) + c) + d)
    assert check(path, *WORKERS)[0] == 1


@pytest.mark.parametrize(
    "parts, want",
    [
        ([-0.0], 0x80000000),
        ([-0.0, -0.0], 0x80000000),
        ([-0.0, 0.0], 0x00000000),
        ([np.inf, -np.inf], 0x7FC00000),
        ([np.uint32(0xFFA00001).view(np.float32)], 0x7FC00000),
        ([2.0**24, 1, 1], 0x4B800000),  # (2^24 + 1) + 1: the ones are lost
        ([2.0**24, 1, 1, 1], 0x4B800001),  # (2^24 + 1) + (1 + 1)
        ([1, 2.0**24, 1, 1, 1], 0x4B800002),  # ((1 + 2^24) + (1 + 1)) + 1: a tie, to even
    ],
)
def test_known(tmp_path, parts, want):
    paths = []
    for k, part in enumerate(parts):
        paths.append(str(tmp_path / f"w{k}.npy"))
        np.save(paths[-1], np.full((1, 2), part, np.float32))
    path = str(tmp_path / "sum.npy")
    np.save(path, np.full((1, 2), want, np.uint32).view(np.float32))
    assert check(path, *paths) == (0, f"{path}: all 2 elements are NumPy's, bit for bit ({len(parts)} workers, sum)\n")
