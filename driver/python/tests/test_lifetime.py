"""Who keeps what alive, the order of closing, and the end of the program."""

import gc
import signal
import subprocess
import sys
import weakref

import numpy as np
import pytest
import tributary
from tributary import _reductions


class Tracked(np.ndarray):
    """An array whose end can be seen."""


def ones():
    return np.ones(1000, np.float32).view(Tracked)


def test_dropped_pending_goes_on():
    """The array stays until the reduction is over, and the other member gets its sums."""
    with tributary.open("cpu:", workers=2) as card, card.job() as job:
        array = ones()
        alive = weakref.ref(array)
        job.member(0).start(array)  # nobody keeps the Pending
        del array
        gc.collect()
        assert alive() is not None
        assert (job.member(1).all_reduce(ones()) == 2).all()
        while alive() is not None:  # until the library reports the end to the next call
            _reductions._sweep()


def test_cancel():
    with tributary.open("cpu:", workers=2) as card:
        job = card.job()
        pending = job.member(0).start(ones(), detach=True)
        pending.cancel()
        with pytest.raises(tributary.CanceledError):
            pending.wait()
        assert (job.member(1).all_reduce(ones()) == 2).all()  # the job goes on
        pending = job.member(0).start(ones())
        pending.cancel()
        with pytest.raises(tributary.CanceledError):
            pending.wait()
        with pytest.raises(tributary.EndedError):
            job.member(1).all_reduce(ones())


def test_closing_order():
    card = tributary.open("cpu:", workers=2)
    job = card.job()
    member = job.member(0)
    pending = member.start(ones())
    with pytest.raises(tributary.InputError, match="rank 0 is in a call"):
        job.close()
    card.close()
    card.close()  # again
    assert pending.done()
    for call in (
        pending.wait,
        lambda: member.all_reduce(ones()),
        lambda: job.reduce([ones(), ones()]),
        card.job,
        job.close,
    ):
        with pytest.raises(tributary.ClosedError):
            call()
    member.close()


def test_failing_block_aborts():
    with tributary.open("cpu:", workers=2) as card:
        with pytest.raises(ZeroDivisionError), card.job() as job:
            pending = job.member(0).start(ones())
            1 / 0
        assert pending.done()
        with pytest.raises(tributary.EndedError):
            pending.wait()


def test_collected_job_frees_its_place():
    with tributary.open("cpu:jobs=1,workers=2") as card:
        for _ in range(3):
            card.job()
            gc.collect()
        with card.job() as job:
            assert (job.reduce([ones(), ones()]) == 2).all()


PREFIX = """
import numpy as np, signal, sys, threading, time, os
import tributary
card = tributary.open("cpu:", workers=2, timeout=60)
job = card.job()
"""


def run(program, **options):
    return subprocess.run(
        [sys.executable, "-c", PREFIX + program],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def test_exit_with_running_reductions():
    """The program ends at once, and nothing writes into arrays that are gone."""
    done = run(
        "pending = job.member(0).start(np.ones(1 << 20, np.float32))\n"
        "job.member(1).start(np.ones(1 << 20, np.float32))"
    )
    assert (done.returncode, done.stderr) == (0, "")


# A thread sends the signal once the main thread waits in this package.
INTERRUPT = """
main = threading.get_ident()
def waits():
    frame = sys._current_frames()[main]
    names = "wait", "interruptible"
    while frame and not ("tributary" in frame.f_code.co_filename and frame.f_code.co_name in names):
        frame = frame.f_back
    return frame is not None
def interrupt():
    while not waits():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
array = np.ones(100, np.float32)
interrupter = threading.Thread(target=interrupt)
"""


def test_interrupted_wait():
    """Ctrl-C ends the wait; the reduction and the job go on."""
    done = run(INTERRUPT + """
pending = job.member(0).start(array)
try:
    interrupter.start()
    pending.wait()
    sys.exit(1)
except KeyboardInterrupt:
    pass
assert not pending.done()
job.member(1).all_reduce(np.ones(100, np.float32))
assert pending.wait().tolist() == [2.0] * 100
job.close()
""")
    assert (done.returncode, done.stderr) == (0, "")


def test_interrupted_call():
    """Ctrl-C ends a blocking call, which gives its array back, and ends the job."""
    done = run(INTERRUPT + """
try:
    interrupter.start()
    job.member(0).all_reduce(array)
    sys.exit(1)
except KeyboardInterrupt:
    pass
try:
    job.member(1).all_reduce(array)
    sys.exit(2)
except tributary.EndedError:
    pass
with card.job() as job:
    assert job.reduce([array, array]).tolist() == [2.0] * 100
""")
    assert (done.returncode, done.stderr) == (0, "")


def test_interrupted_open(tmp_path):
    """Ctrl-C ends the wait for a card that does not reply."""
    done = run(
        INTERRUPT + """
import socket
listener = socket.socket(socket.AF_UNIX)
listener.bind("s")
listener.listen()
try:
    interrupter.start()
    tributary.open("unix:s", timeout=50)
    sys.exit(1)
except KeyboardInterrupt:
    pass
""",
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_interrupt_ends_a_program():
    done = run(INTERRUPT + "interrupter.start(); job.member(0).all_reduce(array)")
    assert done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert "KeyboardInterrupt" in done.stderr
