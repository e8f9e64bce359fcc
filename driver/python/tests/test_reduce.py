"""Sums, means and formats in one process."""

import threading

import numpy as np
import pytest
import tributary

# Encodings of 1, 2 and 1.5, or of 4, 8 and 6 for int32, in the arrays of a format.
FORMATS = {
    "fp32": (np.float32, 1, 2, 1.5),
    "bf16": (np.uint16, 0x3F80, 0x4000, 0x3FC0),
    "fp16": (np.float16, 1, 2, 1.5),
    "fp8e4m3": (np.uint8, 0x38, 0x40, 0x3C),
    "fp8e5m2": (np.uint8, 0x3C, 0x40, 0x3E),
    "int32": (np.int32, 4, 8, 6),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("scheme", ["cpu:", "model:"])
def test_every_format(scheme, format):
    dtype, one, two, between = FORMATS[format]
    with tributary.open(scheme, workers=2, format=format) as card, card.job() as job:
        assert (card.info.format, card.info.result, card.info.ports) == (format, format, 2)
        assert card.info.dtype == card.info.result_dtype == dtype
        ones, twos = np.full((2, 50), one, dtype), np.full((2, 50), two, dtype)
        both = job.reduce([ones, ones])
        assert both.dtype == dtype and both.shape == (2, 50) and (both == two).all()
        assert (job.reduce([ones, twos], op="mean") == between).all()


def test_wider_result():
    with tributary.open("cpu:format=bf16,result=fp32,workers=2") as card, card.job() as job:
        ones = np.full(20, 0x3F80, np.uint16)
        assert job.reduce([ones, ones]).tolist() == [2.0] * 20
        one, two = job.member(0), job.member(1)
        pending = one.start(ones)
        out = np.empty(20, np.float32)
        assert two.all_reduce(ones, out=out) is out
        assert pending.wait().tolist() == out.tolist() == [2.0] * 20
        assert (ones == 0x3F80).all()


def test_in_place_and_out():
    with tributary.open("cpu:", workers=2) as card, card.job() as job:
        a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
        one, two = job.member(0), job.member(1)
        assert (one.rank, one.size, two.rank, job.size) == (0, 2, 1, 2)
        pending = one.start(a)
        out = np.zeros((2, 3), np.float32)
        assert two.all_reduce(b, op="mean", out=out) is out
        assert pending.wait() is a and pending.done() and pending.partials == []
        assert a.tolist() == [[1, 2, 3], [4, 5, 6]] and (out == a / 2).all() and (b == 1).all()
        assert job.reduce([a, b], out=b) is b
        assert b.tolist() == [[2, 3, 4], [5, 6, 7]]
        b.flags.writeable = False  # an input may be read-only
        job.reduce([a, b])
        scalar = np.array(2, np.float32)
        assert job.reduce([scalar, scalar]) == 4


def test_bytes_at_odd_addresses():
    raw = np.zeros(41, np.uint8)
    array = raw[1:].view(np.float32)
    array[:] = 3
    with tributary.open("cpu:", workers=2) as card, card.job() as job:
        assert job.reduce([array, array], out=array).tolist() == [6.0] * 10


def test_partial_sums():
    with tributary.open("model:", workers=2) as card, card.job(deadline=0.05, partial=True) as job:
        pending = job.member(0).start(np.full(64, 8, np.float32), op="mean")
        assert pending.wait().tolist() == [8.0] * 64
        assert pending.partials == [tributary.Partial(0, 64, (0,))]
        job.abort()


def test_threads():
    def work(rank):
        member = job.member(rank)
        for round in range(50):
            array = np.full(100, rank + round, np.float32)
            results[rank] &= bool((member.all_reduce(array) == 6 + 4 * round).all())

    results = [True] * 4
    with tributary.open("model:chunk=32,window=4", workers=4) as card, card.job() as job:
        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(results)


def test_wrong_arguments():
    for open in (
        lambda: tributary.open("cpu:", format="fp64"),
        lambda: tributary.open("cpu:", workers=65),
        lambda: tributary.open("cpu:", timeout=0),
        lambda: tributary.open("cpu:\0"),
        lambda: tributary.join("no ticket"),
        lambda: tributary.join("no ticket", rank=64),
    ):
        with pytest.raises(tributary.InputError):
            open()
    with pytest.raises(tributary.NoCardError, match="/nothing/here"):
        tributary.open("unix:/nothing/here")
    with tributary.open("cpu:", workers=2) as card:
        for make in (
            lambda: card.job(workers=3),
            lambda: card.job(here=[]),
            lambda: card.job(here=[0]),  # the card is not shared
            lambda: card.job(deadline=-1),
        ):
            with pytest.raises(tributary.InputError):
                make()
        with card.job() as job:
            assert job.ticket is None
            for call in (
                lambda: job.member(2),
                lambda: job.reduce([np.ones(3, np.float32)]),
                lambda: job.reduce([np.ones(3, np.float32)] * 2, op="max"),
            ):
                with pytest.raises(tributary.InputError):
                    call()
