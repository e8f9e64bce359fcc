"""Groups of some ranks, several groups, and refusals when a group is made."""

import numpy as np
import pytest
from conftest import CARD


def test_subgroups(run):
    """Every group is a job of its own: calls of one do not wait for another."""
    outcomes = run("subgroups", whole=True)
    for rank, (totals, world, mine) in enumerate(outcome.value for outcome in outcomes):
        half = 1.0 if rank < 2 else 5.0
        assert totals == [6.0, half, half if rank < 2 else float(rank)]
        assert world == (1, []) and mine == (2 if rank < 2 else 1, [])
    # Rank 0 prints the traffic of its groups.
    assert "12 kB of 12 kB (100 %) through the card, in 3 calls" in outcomes[0].stderr
    assert not any("through the card" in outcome.stderr for outcome in outcomes[1:])


def test_no_room(run):
    """Without room for its job, Gloo sums for a group. Its first rank warns once."""
    for rank, (found, told, where) in enumerate(run("no_room", card="cpu:jobs=1")):
        assert (found == (18 if rank else 0)).all()
        assert where == ((0, ["allreduce"]) if rank else None)
        if rank == 1:
            assert len(told) == 1 and "Gloo sums for this group of 3 ranks" in told[0] and "all are in use" in told[0]
        else:
            assert not told


def test_no_room_and_strict(run):
    outcomes = run("no_room", card="cpu:jobs=1", env={"TRIBUTARY_STRICT": "1"}, fails=True)
    for outcome in outcomes[1:]:
        assert outcome.error == "FullError" and "TRIBUTARY_STRICT" in outcome.text


def test_two_threads(run):
    for right in run("threads", args={"times": 30}):
        assert right == [30, 30]


def test_new_groups_after_others(run):
    """A destroyed group leaves its room on the card."""
    results = run("again", card="cpu:jobs=2")
    assert results[0] == results[2] == [(2.0 + 2 * i, 1, []) for i in range(4)]


def test_worlds(run):
    for found in run("worlds", init=False):
        assert found == [(6.0 + 4 * i, 1, []) for i in range(3)]


def test_groups_in_a_world_of_gloo(run):
    for rank, (found, where) in enumerate(run("within_gloo", init="gloo")):
        assert (found == (1 if rank < 2 else 5)).all() and where == (1, [])


def test_closed(run):
    for errors in run("closed"):
        assert all(error.startswith("ClosedError: the group is over") for error in errors), errors


# ---------------------------------------------------------------------------------------- refusals


def refused(outcomes, kind, *texts):
    for outcome in outcomes:
        assert outcome.error == kind, (outcome.error, outcome.text)
        assert all(text in outcome.text for text in texts), outcome.text


@pytest.mark.parametrize("card, kind, text", [
    ("cards:", "NoCardError", "cards:"),
    ("cpu:lanes=no", "NoCardError", "lanes"),
    ("sim:/nowhere", "NoCardError", "/nowhere"),
    ("serve:unix:/nowhere/s", "NoCardError", "/nowhere/s"),
    ("serve:", "NoCardError", "serve:"),
])
def test_no_such_card(run, card, kind, text):
    """All ranks report what rank 0 could not open."""
    outcomes = run("nothing", card=card, env={"XDG_RUNTIME_DIR": "/nowhere"}, fails=True)
    refused(outcomes, outcomes[0].error, text)
    assert kind in outcomes[0].kinds or "InputError" in outcomes[0].kinds
    assert all("rank 0: " in outcome.text for outcome in outcomes[1:])


def test_too_few_ports(run):
    outcomes = run("nothing", card="model:workers=3", fails=True)
    refused(outcomes, "InputError", "the card has 3 ports, and the group 4 ranks", "TRIBUTARY_CARD=model:workers=3")


def test_different_cards(run):
    outcomes = run("nothing", card=["cpu:", "cpu:", "model:", "cpu:"], fails=True)
    refused(outcomes, "InputError", "cpu: for rank 0", "model: for rank 2", "give all ranks one card")


def test_different_daemons(run, serve):
    """A rank that reaches another daemon is refused, and all ranks with it."""
    one, _ = serve("cpu:workers=4")
    other, _ = serve("cpu:workers=4")
    outcomes = run("nothing", card=[one, one, one, other], fails=True)
    assert all(outcome.error for outcome in outcomes)
    assert all("rank 3: " in outcome.text for outcome in outcomes[:3]), outcomes


def test_served_and_own(run, serve):
    name, _ = serve("cpu:workers=4")
    outcomes = run("nothing", card=[name, "cpu:", name, name], fails=True)
    refused(outcomes, "InputError", "cpu: for rank 1")


def test_machines(run):
    """Rank 0's own card is refused to ranks on other machines."""
    args = [{"name": "other" if rank == 2 else "this"} for rank in range(4)]
    refused(
        run("machine", init=False, args=args, fails=True), "InputError", "rank 2 is on ", "tributary serve -card cpu:"
    )


def test_machines_with_a_daemon(run, serve):
    name, _ = serve("cpu:workers=4")
    run("machine", init=False, args=[{"name": str(rank)} for rank in range(4)], card=name)


@pytest.mark.parametrize("values", [["yes"] * 4, ["0", "0", "1", "0"]])
def test_strict_of_ranks(run, values):
    """Ranks agree on what Gloo may sum."""
    outcomes = run("stricts", init=False, args=[{"strict": value} for value in values], fails=True)
    refused(outcomes, "InputError", "TRIBUTARY_STRICT", "yes" if values[0] == "yes" else "'1' for rank 2")


def test_rank_that_does_not_come(run):
    outcomes = run("nothing", seconds=4, fails=True, absent=(2,), fresh="forkserver")
    for rank in (0, 1, 3):
        assert "TimeoutError" in outcomes[rank].kinds, outcomes[rank]
        assert "rank 2 did not come to the group in 4 s" in outcomes[rank].text


def test_virtual_card_of_rank_0(run):
    """The simulator ends with the group."""
    for (result,), _ in run("sums", card=f"sim:{CARD}", args={"array": np.ones(100, np.float32)}):
        assert (result == 4).all()
