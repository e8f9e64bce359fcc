"""DDP through a daemon and a virtual card."""

import re

from conftest import CARD

STEPS = 20


def test_ddp_equals_model(run, serve):
    """Replicas are equal after each step. The loss curve is that of a loop that sums with the Go model."""
    name, _ = serve(f"sim:{CARD}")
    outcomes = run("train", card=name, args={"steps": STEPS}, whole=True)
    losses, replicas, _ = zip(*(outcome.value for outcome in outcomes))
    for step in range(STEPS):
        assert len({replica[step] for replica in replicas}) == 1, f"replicas differ after step {step}"
    assert len(set(replicas[0])) == STEPS  # they learn
    (expected,) = run("train_with_model", 1, init=False, args={"steps": STEPS, "card": f"model:{CARD}", "workers": 4})
    assert [list(of_step) for of_step in zip(*losses)] == expected
    assert sum(expected[-1]) < 0.6 * sum(expected[0])

    for outcome in outcomes:
        card, gloo, gradients = outcome.value[2]
        assert card == gradients and "allreduce" not in gloo and card >= 0.95 * (card + sum(gloo.values()))
    lines = [re.findall(r"^tributary: .*$", outcome.stderr, re.M) for outcome in outcomes]
    assert [len(found) for found in lines] == [1, 0, 0, 0]
    card = rf"tributary: {name}: [\d.]+ kB of [\d.]+ kB \([\d.]+ %\) through the card, in \d+ calls"
    assert re.fullmatch(card + "; by Gloo: .*", lines[0][0])


def test_order_of_sum_matters(run):
    """The curve of a loop with another sum differs: the test above can fail."""
    args = {"steps": STEPS, "workers": 4}
    ours = run("train_with_model", 1, init=False, args={**args, "card": f"model:{CARD}"})
    other = run("train_with_model", 1, init=False, args={**args, "card": "cpu:sum=exact"})
    assert ours != other
