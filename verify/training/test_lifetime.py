"""Groups that end too early: timeouts, killed processes, forks, Ctrl-C, and programs that just end."""

import os

import pytest
import ranks
from conftest import CARD


@pytest.mark.parametrize("how", ["group", "call", "set"])
def test_timeout(run, how):
    """A call that a rank does not make ends with an error after the timeout, and so do later calls."""
    outcomes = run("timeouts", seconds=2 if how == "group" else 60, args={"how": how}, fails=True)
    for rank in (0, 2, 3):
        error, took, later = outcomes[rank].value
        assert "TimeoutError" in error or "MissingError" in error or "EndedError" in error, error
        assert 1.9 < took < 50 and later not in ("", "no error"), (error, took, later)


def _check_lost(found, texts, within):
    step, error, later, took = found
    assert step >= 2 and error != "no error"
    assert any(text in error for text in texts), error
    assert later, "the call after the failed one has no error"
    assert took < within, took


@pytest.mark.parametrize("who", [2, 0])
@pytest.mark.parametrize("served", ["daemon", "rank 0"])
def test_lost_rank(run, serve, who, served):
    """A rank that is killed in its backward pass ends the others' with an error that names it."""
    name = serve(f"sim:{CARD}")[0] if served == "daemon" else "cpu:"
    outcomes = run("lost", card=name, args={"kill": (who, None)}, seconds=100, fails=True, fresh="forkserver")
    assert outcomes[who].died
    for rank in {0, 1, 2, 3} - {who}:
        assert not outcomes[rank].error, outcomes[rank]
        _check_lost(outcomes[rank].value, [f"rank {who}", f"member {who}", f"worker {who}", f"ranks {who}"], 90)


def test_killed_daemon(run, serve):
    name, daemon = serve(f"sim:{CARD}")
    simulators = ranks_of(daemon.pid)
    for outcome in run("lost", card=name, args={"kill": (1, daemon.pid)}, seconds=100, fails=True, fresh="forkserver"):
        assert not outcome.error, outcome
        _check_lost(outcome.value, ["daemon", "connection", "gone"], 90)
    assert not [pid for pid in simulators if ranks.running(pid)], "the simulator outlives its daemon"


def ranks_of(pid):
    import cases

    return cases._children(pid)


@pytest.mark.parametrize("served", ["daemon", "rank 0"])
def test_killed_card(run, serve, served):
    name, pid = f"sim:{CARD}", None
    if served == "daemon":
        name, daemon = serve(name)
        pid = daemon.pid
    outcomes = run("lost_card", card=name, args={"daemon": pid}, seconds=100, fails=True, fresh="forkserver")
    for outcome in outcomes:
        assert not outcome.error, outcome
        _check_lost(outcome.value[1], ["card"], 90)
        assert not ranks.running(outcome.value[0])


def test_fork(run):
    """A forked child gets ForkedError, and leaves its parent's group alone, also when it ends."""
    for rank, (told, total) in enumerate(run("forked")):
        assert told == " ".join(["ForkedError"] * 4)
        assert (total == (8 if rank < 2 else 4)).all()


def test_data_loader(run):
    """Workers of a DataLoader that are forked beside a group."""
    for totals in run("loader"):
        assert totals == [4.0 * sum(range(10 * i, 10 * i + 10)) for i in range(4)] * 2


def test_exception_elsewhere(run):
    """A rank that fails outside of a call ends the calls of the others, which name it."""
    outcomes = run("raises", seconds=1000, fails=True, init=True)
    assert outcomes[1].error == "ArithmeticError"
    for rank in (0, 2, 3):
        assert "EndedError" in outcomes[rank].kinds and outcomes[rank].ranks == (1,), outcomes[rank]
        assert outcomes[rank].seconds < 60


@pytest.mark.parametrize("where", ["all_reduce", "work", "functional", "elsewhere"])
def test_ctrl_c(run, where):
    """Ctrl-C ends the waits, the groups, and the processes."""
    for outcome in run("interrupted", args={"where": where}, seconds=1000, fails=True, fresh="forkserver"):
        # A rank that gets Ctrl-C late may find that the others have left.
        assert outcome.error == "KeyboardInterrupt" or "EndedError" in outcome.kinds, outcome
        assert outcome.seconds < 60


@pytest.mark.parametrize("how", ["over", "under way"])
def test_exit_without_destroy(run, how):
    """A program may end with a group, and with calls under way."""
    for outcome in run("leave", init=False, args={"how": how}, fresh="spawn", whole=True):
        assert outcome.value == "leave"


def test_all_killed(_pool):
    """The folder of a socket whose processes were all killed is removed by a later group."""
    _pool.run("leave", init=False, args={"how": "killed"}, fresh="forkserver", fails=True)
    left = list(_pool.temporary.glob("tributary-*"))
    assert len(left) == 1
    os.utime(left[0], (0, 0))
    _pool.run("nothing")
    assert not left[0].exists()
