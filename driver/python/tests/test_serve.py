"""A process that serves its card."""

import gc
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import time

import members
import numpy as np
import pytest
import tributary
from test_lifetime import INTERRUPT, run


def ones():
    return np.ones(10, np.float32)


@pytest.fixture
def address(tmp_path_factory):
    """A path that is short enough for a socket."""
    return f"unix:{tmp_path_factory.mktemp('s')}/s"


def path_of(address):
    return address.removeprefix("unix:")


def started(program, *arguments):
    """Starts a Python program, and waits for the first line that it prints."""
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"serving\n"
    return process


@pytest.mark.parametrize("card", ["cpu:", "model:"])
def test_two_processes(address, card):
    """The process that serves is rank 0. Both end at once, and the other one finishes in the grace."""
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    with tributary.serve(card, address, workers=2) as server:
        assert (server.address, server.name, server.card) == (address, "serve:" + address, card)
        assert stat.S_IMODE(os.stat(path_of(address)).st_mode) == 0o600
        with tributary.open(server.name, timeout=60) as opened, opened.job(here=[0]) as job:
            other = spawn.Process(target=members.small, args=(job.ticket, answers))
            other.start()
            assert job.member(0).all_reduce(ones()).tolist() == [2.0] * 10
    assert answers.get(timeout=60) == [2.0] * 10
    other.join(60)
    assert other.exitcode == 0
    assert not os.path.exists(path_of(address))


def test_options(address):
    with tributary.serve("cpu:", address, workers=5, format="bf16", timeout=60) as server:
        with tributary.open(server.name) as card:
            assert (card.info.ports, card.info.format) == (5, "bf16")


def test_port():
    with tributary.serve("cpu:", "tcp:127.0.0.1:0") as server:
        assert server.address.startswith("tcp:127.0.0.1:") and not server.address.endswith(":0")
        tributary.open(server.name).close()


@pytest.mark.parametrize("wrong", ["", "unix:", "unix:@s", "/s", "unix:/nothing/s", "tcp:0.0.0.0:0", "unix:a\0", 7])
def test_refused_addresses(wrong):
    with pytest.raises(tributary.InputError, match="address: "):
        tributary.serve("cpu:", wrong)


def test_taken_address(address):
    with tributary.serve("cpu:", address):
        with pytest.raises(tributary.InputError, match="another program listens"):
            tributary.serve("cpu:", address)
    tributary.serve("cpu:", address).close()


def test_no_card(address):
    with pytest.raises(tributary.NoCardError):
        tributary.serve("unix:/nothing/here", address)
    assert not os.path.exists(path_of(address))


def test_close(address):
    server = tributary.serve("cpu:", address, workers=2)
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(tributary.InputError, match="grace"):
            server.close(wrong)
    tributary.open(server.name).close()  # it goes on
    card = tributary.open(server.name)
    pending = card.job().member(0).start(ones())
    server.close(grace=0)
    server.close()  # again
    server.abort()
    with pytest.raises((tributary.EndedError, tributary.DiedError)):
        pending.wait(60)
    assert not os.path.exists(path_of(address))


def test_failing_block_ends_at_once(address):
    """The end does not wait for a job of this process, which nobody finishes."""
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError), tributary.serve("cpu:", address, workers=2, timeout=3600) as server:
        server.close = None  # no grace
        pending = tributary.open(server.name, timeout=3600).job().member(0).start(ones())
        1 / 0
    with pytest.raises((tributary.EndedError, tributary.DiedError)):
        pending.wait(60)
    assert time.monotonic() - began < 60


def test_collected_server_ends(address):
    tributary.serve("cpu:", address)
    gc.collect()
    assert not os.path.exists(path_of(address))


def test_end_of_the_program(address):
    """A program that ends with a running job leaves no socket."""
    done = run(
        "server = tributary.serve('cpu:', os.environ['ADDRESS'], workers=2)\n"
        "served = tributary.open(server.name)\n"
        "pending = served.job().member(0).start(np.ones(1 << 20, np.float32))",
        env={**os.environ, "ADDRESS": address},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not os.path.exists(path_of(address))


SERVE = """
import os, sys, time
import tributary
server = tributary.serve("cpu:", sys.argv[1], workers=2)
"""


def test_killed_server(address):
    """The socket of a killed process stays, and the next one replaces it."""
    killed = started(SERVE + "print('serving', flush=True); time.sleep(600)", address)
    killed.kill()
    killed.communicate(timeout=60)
    assert os.path.exists(path_of(address))
    with tributary.serve("cpu:", address) as server:
        tributary.open(server.name).close()


def test_interrupted_serve(tmp_path):
    """Ctrl-C ends the wait for a card that does not reply."""
    done = run(
        INTERRUPT + """
import socket
listener = socket.socket(socket.AF_UNIX)
listener.bind("card")
listener.listen()
try:
    interrupter.start()
    tributary.serve("unix:card", "unix:s", timeout=50)
    sys.exit(1)
except KeyboardInterrupt:
    pass
""",
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_interrupted_close(tmp_path):
    """Ctrl-C ends the grace: a job that runs ends at once."""
    done = run(
        INTERRUPT + """
server = tributary.serve("cpu:", "unix:s", workers=2)
pending = tributary.open(server.name, timeout=3600).job().member(0).start(array)
try:
    interrupter.start()
    server.close(grace=3600)
    sys.exit(1)
except KeyboardInterrupt:
    pass
try:
    pending.wait(60)
    sys.exit(2)
except (tributary.EndedError, tributary.DiedError):
    pass
assert not os.path.exists("s")
""",
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_forked(address):
    """A child gets an error, and the parent serves on."""
    with tributary.serve("cpu:", address) as server:
        child = os.fork()
        if child == 0:
            try:
                tributary.serve("cpu:", address + "2")
            except tributary.ForkedError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        tributary.open(server.name).close()


# A child that lives on, as workers of a DataLoader do for some seconds. The parent has two sockets of its own,
# which the child keeps.
FORK = """
import socket
pair = socket.socketpair()
def sockets():
    links = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{fd}"))
        except FileNotFoundError:
            pass  # of the list itself
    return sum(link.startswith("socket:") for link in links)
assert sockets() > 2
if os.fork() == 0:
    assert sockets() == 2, sockets()
    print("serving", flush=True)
    os.read(0, 1)
    os._exit(0)
os.wait()
"""


def test_killed_server_with_a_child(address):
    """A forked child keeps neither the socket nor the connections of a killed server."""
    use = "card = tributary.open(server.name); job = card.job()\n"
    killed = started(SERVE + use + FORK, address)
    killed.kill()
    killed.wait()
    with tributary.serve("cpu:", address):
        pass
    killed.stdin.close()  # ends the child


JOIN = """
import os, sys, time
import tributary
member = tributary.join(sys.argv[1])
"""


@pytest.mark.parametrize("address", ["unix:s", "tcp:127.0.0.1:0"])
def test_killed_member_with_a_child(address, tmp_path, monkeypatch):
    """A forked child keeps no connection of a killed member."""
    monkeypatch.chdir(tmp_path)
    with tributary.serve("model:", address, workers=2) as server, tributary.open(server.name) as card:
        job = card.job(here=[0])
        killed = started(JOIN + FORK, job.ticket)
        killed.kill()
        killed.wait()
        with pytest.raises(tributary.MemberLostError):
            job.member(0).all_reduce(ones())
        killed.stdin.close()
