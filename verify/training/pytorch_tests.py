"""Runs PyTorch's own tests of torch.distributed under one backend, one after the other.

usage: BACKEND=tributary python pytorch_tests.py RESULTS [NAME...]

The tests are those of torch.testing._internal.distributed.distributed_test, from the installed wheel, each with
WORLD_SIZE processes (default 4). A line of JSON for each test is appended to RESULTS; a test that has one is not
run again. Without names, the program lists the tests.

What differs from PyTorch's own run:

* The processes are forked, not spawned: 20 CPU seconds less for each test.
* A test that asks for the backend by name (`BACKEND == "gloo"`, to skip itself or to choose CPU tensors) finds
  Tributary to be Gloo as well, and skips nothing that Gloo's run does not. torch itself gets the true name.
* The results of the tests of all_reduce are compared with the values that these tests expect. torch 2.15 makes the
  calls alone.
* The exit codes of all ranks count, not the first one's alone.
* The tests' file barrier waits 120 s for a rank, not 10 s. With many processes on few cores, 10 s are too short.
"""

import json
import os
import pathlib
import sys
import time
import unittest

BACKEND = os.environ.setdefault("BACKEND", "tributary")
os.environ.setdefault("WORLD_SIZE", "4")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # four processes share the cores
os.environ["BACKEND"] = "gloo"  # decides skips, while the tests are imported
os.environ["INIT_METHOD"] = "file://"  # likewise; each test has a file of its own

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402


class Named(str):
    """A backend's name that equals Gloo's too."""

    def __eq__(self, other: object) -> bool:
        return other == "gloo" or str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


os.environ["BACKEND"], distributed_test.BACKEND = BACKEND, Named(BACKEND)
distributed_test.Barrier.sync.__func__.__defaults__ = (None, 120)

# Calls of a group whose bytes are sums, as Traffic.gloo names them.
SUMS = ("allreduce", "allreduce_coalesced", "reduce_scatter", "reduce_scatter_base", "reduce_scatter_single")


class Test(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    traffic: dict[str, int]  #: bytes of the sums of all ranks, by the card and by Gloo
    _expected: complex | None = None  #: elements of the result of an all_reduce

    def setUp(self) -> None:
        self.traffic = {"card": 0, "gloo": 0}
        super().setUp()
        distributed_test.INIT_METHOD = os.environ["INIT_METHOD"]
        self._start_processes(torch.multiprocessing.get_context("fork").Process)

    def tearDown(self) -> None:
        for path in pathlib.Path(os.environ["TEMP_DIR"]).glob("traffic-*"):
            ranks = json.loads(path.read_text())
            self.traffic = {where: size + self.traffic[where] for where, size in ranks.items()}
        processes = self.processes
        super().tearDown()  # terminates them
        for process in processes:
            process.join(10)
            if process.exitcode is None:
                process.kill()
                process.join()
        pathlib.Path(self.file_name).unlink(missing_ok=True)

    def _check_return_codes(self, fn, elapsed) -> None:
        super()._check_return_codes(fn, elapsed)
        if fn not in self.skip_return_code_checks:
            codes = [process.exitcode for process in self.processes]
            self.assertEqual(codes, [0] * len(codes), "exit codes of the ranks")

    def _test_all_reduce_helper(self, group, group_id, rank, op, mine, others, expected, **options) -> None:
        self._expected = expected
        super()._test_all_reduce_helper(group, group_id, rank, op, mine, others, expected, **options)

    def call_dist_op(self, title, is_async, op, *arguments, **options) -> None:
        super().call_dist_op(title, is_async, op, *arguments, **options)
        if op is dist.all_reduce and self._expected is not None:
            self.assertEqual(arguments[0], torch.full_like(arguments[0], self._expected))

    @classmethod
    def _run(cls, rank, name, file_name, pipe, **options) -> None:
        """Runs a test as one rank, which leaves its group's bytes in the folder of the test."""
        destroy = dist.destroy_process_group

        def record(group=None) -> None:
            world = dist.group.WORLD
            destroy(group)
            traffic = getattr(world, "traffic", None)
            if traffic is not None and group in (None, world):
                at_gloo = sum(traffic.gloo.get(name, 0) for name in SUMS)
                text = json.dumps({"card": traffic.card, "gloo": at_gloo})
                pathlib.Path(os.environ["TEMP_DIR"], f"traffic-{rank}").write_text(text)

        dist.destroy_process_group = record
        super()._run(rank, name, file_name, pipe, **options)


class Result(unittest.TestResult):
    """Keeps what became of one test."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome, self.reason = "no result", ""

    def _set(self, outcome: str, reason: str = "") -> None:
        self.outcome, self.reason = outcome, reason

    def addSuccess(self, test) -> None:
        self._set("passed")

    def addSkip(self, test, reason) -> None:
        self._set("skipped", reason)

    def addFailure(self, test, error) -> None:
        self._set("failed", "".join(self._exc_info_to_string(error, test)))

    addError = addFailure

    def addUnexpectedSuccess(self, test) -> None:
        self._set("failed", "passed, and was expected to fail")


def names() -> list[str]:
    return unittest.TestLoader().getTestCaseNames(Test)


def main(arguments: list[str]) -> None:
    if len(arguments) < 2:
        print("\n".join(names()))
        return
    path, wanted = pathlib.Path(arguments[0]), arguments[1:]
    done = {json.loads(line)["name"] for line in path.read_text().splitlines()} if path.exists() else set()
    for name in wanted:
        if name in done:
            continue
        test, result, start = Test(name), Result(), time.monotonic()
        test.run(result)
        row = {
            "name": name,
            "backend": BACKEND,
            "processes": int(os.environ["WORLD_SIZE"]),
            "result": result.outcome,
            "reason": result.reason,
            "seconds": round(time.monotonic() - start, 1),
            **test.traffic,
        }
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{BACKEND} {name}: {result.outcome}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
