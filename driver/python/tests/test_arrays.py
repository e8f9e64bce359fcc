"""Arrays that are refused, each by its name, before anything is sent."""

import numpy as np
import pytest
import tributary

GOOD = np.ones(8, np.float32)
READ_ONLY = np.ones(8, np.float32)
READ_ONLY.flags.writeable = False

REFUSED = {
    "list": ([1.0, 2.0], "it is a list"),
    "memoryview": (memoryview(GOOD), "it is a memoryview"),
    "masked": (np.ma.masked_array(GOOD), "it is a masked array"),
    "dtype": (np.ones(8), "its dtype is float64; the card needs float32"),
    "swapped": (np.ones(8, ">f4"), "its bytes are swapped"),
    "empty": (np.ones(0, np.float32), "it is empty"),
    "strided": (np.ones(16, np.float32)[::2], "it is not contiguous"),
    "transposed": (np.ones((3, 4), np.float32).T, "it is not contiguous"),
    "reversed": (np.ones(8, np.float32)[::-1], "it is not contiguous"),
}


@pytest.fixture(scope="module")
def job():
    with tributary.open("cpu:", workers=2) as card, card.job() as job:
        yield job


@pytest.mark.parametrize("kind", REFUSED)
def test_refused(job, kind):
    array, why = REFUSED[kind]
    with pytest.raises(tributary.ArrayError, match=f"^array: {why}"):
        job.member(0).all_reduce(array)
    with pytest.raises(tributary.ArrayError, match=f"^array of worker 1: {why}"):
        job.reduce([np.ones(np.shape(array) or 8, np.float32) if np.size(array) else GOOD, array])
    with pytest.raises(tributary.ArrayError, match=f"^out: {why}"):
        job.reduce([GOOD, GOOD], out=array)


def test_refused_results(job):
    with pytest.raises(tributary.ArrayError, match="^array: it is read-only"):
        job.member(0).all_reduce(READ_ONLY)
    with pytest.raises(tributary.ArrayError, match="^out: it is read-only"):
        job.reduce([GOOD, GOOD], out=READ_ONLY)
    with pytest.raises(tributary.ArrayError, match=r"^out: its shape is \(2, 4\), not \(8,\)"):
        job.reduce([GOOD, GOOD], out=np.ones((2, 4), np.float32))
    with pytest.raises(tributary.ArrayError, match=r"^array of worker 1: its shape is \(9,\)"):
        job.reduce([GOOD, np.ones(9, np.float32)])
    with pytest.raises(tributary.InputError, match="pass a list"):
        job.reduce(np.ones((2, 8), np.float32))
    whole = np.ones(9, np.float32)
    with pytest.raises(tributary.InputError, match="overlaps the result"):
        job.reduce([whole[:8], GOOD], out=whole[1:])
    assert job.reduce([GOOD, READ_ONLY]).tolist() == [2.0] * 8  # the job goes on


def test_bits_of_bf16():
    with tributary.open("cpu:", workers=2, format="bf16") as card, card.job() as job:
        with pytest.raises(tributary.ArrayError, match="the card needs uint16, with the bits of bf16"):
            job.reduce([GOOD, GOOD])
