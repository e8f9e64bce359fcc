"""A dozen of PyTorch's own tests under Tributary; PYTORCH.md has the results of all.

Run it with the Python that has torch and the package tributary: `make torch`.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import pytorch

RUNNER = pathlib.Path(__file__).with_name("pytorch_tests.py")

# True: its sums go through the card. The others take Gloo, which has their calls.
TESTS = {
    "test_all_reduce_sum": True,
    "test_all_reduce_sum_async": True,
    "test_all_reduce_sum_complex": True,
    "test_all_reduce_coalesced_sum": True,
    "test_all_reduce_full_group_sum": True,
    "test_all_reduce_full_group_max": False,
    "test_broadcast_full_group": False,
    "test_barrier_full_group": False,
    "test_destroy_group": False,
    "test_new_subgroups_with_group_param": False,
    "test_DistributedDataParallelCPU": True,
    "test_DistributedDataParallelCPU_grad_is_view": True,
    "test_accumulate_gradients_no_sync_allreduce_hook": True,
    "test_ddp_logging_data_cpu": True,
}


def run(folder: pathlib.Path, names: list[str], program: str = "", **environment: str) -> dict[str, dict]:
    """Runs tests, and returns their results by name. program: the runner, with tests of its own."""
    results = folder / "results"
    environment = {**os.environ, "BACKEND": "tributary", "WORLD_SIZE": "4", **environment}
    command = ["-c", program] if program else [RUNNER]
    done = subprocess.run(
        [sys.executable, *command, results, *names], env=environment, cwd=RUNNER.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in map(json.loads, results.read_text().splitlines())}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run(tmp_path_factory.mktemp("pytorch"), [*TESTS, "test_barrier_cuda"])


@pytest.mark.parametrize("name", TESTS)
def test_passes(results, name):
    row = results[name]
    assert row["result"] == "passed", row["reason"]
    if TESTS[name]:
        assert row["card"] > 0


def test_gradients_of_ddp_go_through_the_card(results):
    row = results["test_DistributedDataParallelCPU"]
    assert row["card"] >= 0.95 * (row["card"] + row["gloo"])


def test_of_a_gpu_is_skipped_and_not_passed(results):
    assert results["test_barrier_cuda"]["result"] == "skipped"


def test_without_its_card_fails(tmp_path):
    row = run(tmp_path, ["test_barrier"], TRIBUTARY_CARD="nothing:")["test_barrier"]
    assert row["result"] == "failed"
    assert "exit code" in row["reason"]


def test_with_a_rank_that_dies_at_its_end_fails(tmp_path):
    """torch itself looks at the exit code of rank 0."""
    program = """
import os, sys, pytorch_tests

def test_death(self):
    if self.rank == 3:
        sys.exit = lambda code: os._exit(3)

pytorch_tests.Test.test_death = test_death
pytorch_tests.main(sys.argv[1:])
"""
    row = run(tmp_path, ["test_death"], program)["test_death"]
    assert row["result"] == "failed"
    assert "item [3]" in row["reason"]
    assert "exit codes of the ranks" in row["reason"]


ROWS = {"passed": {"result": "passed", "reason": ""}, "skipped": {"result": "skipped", "reason": "no\nroom"}}


@pytest.mark.parametrize(
    "result, exceptions, expected",
    [
        ("passed", {}, []),
        ("skipped", {}, ["test_a: skipped: room"]),
        ("skipped", {"test_a": "why"}, []),
        ("passed", {"test_a": "why"}, ["test_a passes, and EXCEPTIONS has it"]),
    ],
)
def test_exceptions_are_the_tests_that_do_not_pass(monkeypatch, result, exceptions, expected):
    monkeypatch.setattr(pytorch, "EXCEPTIONS", exceptions)
    gloo = {"test_a": ROWS["passed"], "test_b": ROWS["skipped"]}
    assert pytorch.unexplained(gloo, {"test_a": ROWS[result]}) == expected


def test_share_of_the_card_counts_tests_of_ddp_alone(monkeypatch):
    row = {"result": "passed", "reason": "", "processes": 4}
    gloo = {
        "test_ddp_a": row | {"card": 900, "gloo": 0},
        "test_ddp_b": row | {"card": 0, "gloo": 100},
        "test_reduce": row | {"card": 0, "gloo": 7},
    }
    monkeypatch.setattr(pytorch, "skipped_by_name", lambda: [])
    assert "| 90.00 % of 1,000 |" in pytorch.page(gloo, gloo)
