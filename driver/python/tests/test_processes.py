"""Members in several processes, and how they may come into being."""

import multiprocessing
import subprocess
import sys
import time

import members
import numpy as np
import pytest
import tributary


# The last one is a virtual card, simulated from its Verilog. `make usb-card` builds it.
CARDS = ["model:workers=4", "cpu:workers=4", "sim:{root}/build/usb/card"]


@pytest.mark.parametrize("card", CARDS, ids=["model", "cpu", "sim"])
def test_four_processes(serve, command, root, card, tmp_path):
    """Four processes sum the gradients of `make demo`. The bits are those of `tributary reduce`."""
    card = card.format(root=root)
    gradients = [str(root / f"verify/reference/gradients/w{rank}.npy") for rank in range(4)]
    subprocess.run([command, "reduce", "-card", card, "-o", tmp_path / "sum.npy", *gradients], check=True, timeout=120)
    expected = np.load(tmp_path / "sum.npy")
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    with tributary.open(serve(card), timeout=60) as shared, shared.job(workers=4, here=[0]) as job:
        others = [spawn.Process(target=members.total, args=(job.ticket, gradients, answers)) for _ in range(3)]
        for other in others:
            other.start()
        got = {0: members.in_two_calls(job.member(0), gradients)}
        for _ in others:
            rank, sums = answers.get(timeout=120)
            assert rank > 0, sums
            got[rank] = sums
    for other in others:
        other.join(60)
    assert sorted(got) == [0, 1, 2, 3]
    for sums in got.values():
        assert sums.tobytes() == expected.tobytes()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_start_method(serve, method):
    """A new process works, also after this one has loaded the library."""
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    with tributary.open(serve("model:workers=2"), timeout=60) as card, card.job(workers=2, here=[1]) as job:
        other = context.Process(target=members.small, args=(job.ticket, answers))
        other.start()
        assert job.member(1).all_reduce(np.ones(10, np.float32)).tolist() == [2.0] * 10
        assert answers.get(timeout=60) == [2.0] * 10
        other.join(60)
        assert other.exitcode == 0


def test_fork_after_load():
    """A child that is forked after the library was loaded gets an error, and the parent goes on."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with tributary.open("cpu:", workers=2) as card, card.job() as job:
        other = context.Process(target=members.small, args=(None, answers))
        other.start()
        assert answers.get(timeout=60) == "ForkedError"
        other.join(60)
        assert other.exitcode == 0
        assert job.reduce([np.ones(3, np.float32)] * 2).tolist() == [2.0] * 3


def test_fork_before_load():
    """A program that has only imported the package may fork."""
    program = """
import multiprocessing, members, tributary
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    others = [context.Process(target=members.small, args=(None, answers)) for _ in range(2)]
    for other in others:
        other.start()
    members.small(None, answers)
    assert all(answers.get(timeout=60) == (2).to_bytes(4, "little") * 10 for _ in range(3))
    for other in others:
        other.join()
        assert other.exitcode == 0
"""
    folder = members.__file__.rsplit("/", 1)[0]
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({folder!r})\n" + program], check=True, timeout=60
    )


def test_member_lost(serve):
    spawn = multiprocessing.get_context("spawn")
    with tributary.open(serve("model:workers=2"), timeout=60) as card:
        job = card.job(workers=2, here=[0])
        other = spawn.Process(target=members.die, args=(job.ticket,))
        other.start()
        member = job.member(0)
        member.all_reduce(np.ones(10, np.float32))
        with pytest.raises(tributary.MemberLostError) as caught:
            member.all_reduce(np.ones(10, np.float32))
        assert caught.value.ranks == (1,)
        assert isinstance(caught.value, tributary.EndedError)
        with pytest.raises(tributary.MemberLostError):
            job.close()
        other.join(60)


def test_failing_block(serve):
    """A member whose with block fails leaves at once, and the others learn that."""
    with tributary.open(serve("model:workers=2"), timeout=60) as card:
        job = card.job(workers=2, here=[0])
        pending = job.member(0).start(np.ones(10, np.float32))
        with pytest.raises(ZeroDivisionError), tributary.join(job.ticket, 1):
            1 / 0
        with pytest.raises(tributary.TributaryError):
            pending.wait(60)


@pytest.mark.parametrize("card", ["model:workers=2", "cpu:workers=2"])
@pytest.mark.parametrize("elements, op", [(9, "sum"), (10, "mean")])
def test_calls_differ(serve, card, elements, op):
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    with tributary.open(serve(card), timeout=60) as shared:
        job = shared.job(workers=2, here=[0])
        other = spawn.Process(target=members.differing, args=(job.ticket, elements, op, answers))
        other.start()
        with pytest.raises(tributary.CallsDifferError, match=f"the {op} of {elements} elements of fp32") as caught:
            job.member(0).all_reduce(np.ones(10, np.float32))
        assert sorted(caught.value.ranks) == [0, 1] and "the sum of 10 elements of fp32" in str(caught.value)
        name, ranks = answers.get(timeout=60)
        assert name == "CallsDifferError" and sorted(ranks) == [0, 1]
        other.join(60)


def test_joining(serve):
    with tributary.open(serve("model:workers=3"), timeout=60) as card:
        job = card.job(workers=3, here=[1])
        with pytest.raises(tributary.InputError, match="workers"):
            tributary.join(job.ticket, workers=2)
        with pytest.raises(tributary.InputError, match="format"):
            tributary.join(job.ticket, format="fp16")
        with pytest.raises(tributary.RefusedError, match="rank 1 is taken"):
            tributary.join(job.ticket, rank=1)
        ticket = job.ticket
        job.abort()
        with pytest.raises(tributary.RefusedError):
            tributary.join(ticket)


def test_not_started(serve):
    with tributary.open(serve("model:workers=2"), timeout=60) as card:
        for wait in 0.3, 3, 30:  # on a busy machine, it may be over before rank 1 has joined
            with pytest.raises((tributary.NotStartedError, tributary.RefusedError)) as caught:
                job = card.job(workers=2, here=[1], wait=wait)
                job.member(1).all_reduce(np.ones(10, np.float32))
            if caught.type is tributary.NotStartedError and caught.value.ranks == (0,):
                break
        assert caught.value.ranks == (0,) and isinstance(caught.value, TimeoutError)


@pytest.mark.parametrize("scheme", ["cpu:", "model:"])
def test_timeout(scheme):
    for timeout in 0.3, 3, 30:  # on a busy machine, it may be over before the card has a job
        try:
            card = tributary.open(scheme, workers=2, timeout=timeout)
            job = card.job()
            break
        except (tributary.NoCardError, tributary.TimeoutError):
            pass
    with card:
        began = time.monotonic()
        with pytest.raises(tributary.MissingError) as caught:
            job.member(0).all_reduce(np.ones(10, np.float32))
        assert caught.value.ranks == (1,) and isinstance(caught.value, TimeoutError)
        assert time.monotonic() - began >= timeout
        with pytest.raises(tributary.TributaryError):
            job.member(1).all_reduce(np.ones(10, np.float32))


def test_wait_with_timeout():
    with tributary.open("cpu:", workers=2) as card, card.job() as job:
        array = np.ones(10, np.float32)
        pending = job.member(0).start(array)
        for timeout in (0, 0.05, 0.25):
            with pytest.raises(tributary.RunningError):
                pending.wait(timeout)
        assert not pending.done()
        job.member(1).all_reduce(np.ones(10, np.float32))
        assert pending.wait(60) is array
