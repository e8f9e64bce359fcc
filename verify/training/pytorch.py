"""Runs PyTorch's own tests of torch.distributed under Gloo and under Tributary, and writes PYTORCH.md.

usage: python verify/training/pytorch.py [--results FOLDER] [NAME...]

NAME is a regular expression, default: all tests. Run it with the Python that has torch and the package tributary.
Results go to FOLDER (default build/pytorch) after each test; a later run goes on from there, and runs no test again.
PYTORCH.md is written when all tests have results, without names. One test runs at a time.

Errors: exit status 1 if a test that passes under Gloo does not pass under Tributary, and EXCEPTIONS lacks it, or if
EXCEPTIONS has one that passes.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
from importlib import metadata

HERE = pathlib.Path(__file__).resolve().parent
RUNNER = HERE / "pytorch_tests.py"
PAGE = HERE / "PYTORCH.md"

# Names of tests of GPUs alone. All others run, and skip themselves where they need one.
GPU = re.compile("cuda|nccl")
# The sums in these tests are gradients, but for a few counters.
DDP = re.compile("ddp|DistributedDataParallel|grad|hook|static|unused|LocalSGD", re.IGNORECASE)

# Tests that pass under Gloo and not under Tributary, and why.
EXCEPTIONS: dict[str, str] = {}

SMALL = "Skipped due to small world size."  # torch's reason where a test takes 8 processes

BATCH = 20  # tests of one process, whose start imports torch

Row = dict[str, object]


def run(backend: str, processes: int, names: list[str], folder: pathlib.Path) -> dict[str, Row]:
    """Runs the tests that have no result in the folder, and returns the results of all."""
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / f"{backend}-{processes}.jsonl"
    environment = {**os.environ, "BACKEND": backend, "WORLD_SIZE": str(processes)}
    missing = [name for name in names if name not in read(results)]
    with open(results.with_suffix(".log"), "ab") as log:  # what the tests print
        for i in range(0, len(missing), BATCH):
            command = [sys.executable, RUNNER, results, *missing[i : i + BATCH]]
            subprocess.run(command, env=environment, stderr=log, check=True)
    return {name: row for name, row in read(results).items() if name in names}


def read(results: pathlib.Path) -> dict[str, Row]:
    lines = results.read_text().splitlines() if results.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def names() -> list[str]:
    """Returns the names of all tests that are not of GPUs alone."""
    found = subprocess.run([sys.executable, RUNNER], check=True, capture_output=True, text=True).stdout.split()
    return [name for name in found if not GPU.search(name)]


def skipped_by_name() -> list[str]:
    """Returns the names of tests that torch skips for a backend that it does not know, and may not for Gloo."""
    program = (
        "from torch.testing._internal.distributed.distributed_test import DistributedTest\n"
        "for name, test in vars(DistributedTest._DistTestBase).items():\n"
        "    if getattr(test, '__unittest_skip__', False): print(name)"
    )
    environment = {**os.environ, "BACKEND": "tributary", "WORLD_SIZE": "4"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    return sorted(done.stdout.split())


def compare(names: list[str], folder: pathlib.Path) -> tuple[dict[str, Row], dict[str, Row]]:
    """Runs tests under Gloo, and under Tributary those that pass."""
    gloo, tributary = {}, {}
    for processes in (4, 8):
        rows = run("gloo", processes, names, folder)
        gloo |= rows
        tributary |= run("tributary", processes, passed(rows), folder)
        names = [name for name, row in rows.items() if row["reason"] == SMALL]
    return gloo, tributary


def passed(rows: dict[str, Row]) -> list[str]:
    return [name for name, row in rows.items() if row["result"] == "passed"]


def unexplained(gloo: dict[str, Row], tributary: dict[str, Row]) -> list[str]:
    """Returns sentences on tests whose results differ and EXCEPTIONS lacks, or that it need not have."""
    found = []
    for name in passed(gloo):
        result = tributary[name]["result"]
        if result != "passed" and name not in EXCEPTIONS:
            found.append(f"{name}: {result}: {last_line(tributary[name])}")
        if result == "passed" and name in EXCEPTIONS:
            found.append(f"{name} passes, and EXCEPTIONS has it")
    return found


def last_line(row: Row) -> str:
    return (str(row["reason"]).strip().splitlines() or [""])[-1]


def page(gloo: dict[str, Row], tributary: dict[str, Row]) -> str:
    """Returns the text of PYTORCH.md."""
    wanted = passed(gloo)
    both = [name for name in wanted if tributary[name]["result"] == "passed"]
    skipped = [name for name in skipped_by_name() if name in wanted]
    card, other = traffic([tributary[name] for name in wanted if DDP.search(name)])
    lines = [
        "# PyTorch's own tests",
        "",
        f"**{len(both)} of the {len(wanted)} tests that pass under Gloo pass under Tributary.** Written by",
        "`verify/training/pytorch.py`; do not edit.",
        "",
        "The tests are those of `torch.testing._internal.distributed.distributed_test` in torch's wheel,",
        "with 4 processes on one machine without a GPU, or with 8 where 4 are too few. `pytorch_tests.py`",
        "states what differs from PyTorch's own run.",
        "",
        "| | |",
        "|---|---|",
        f"| torch | {metadata.version('torch')} |",
        f"| tributary | {metadata.version('tributary')}, card `{os.environ.get('TRIBUTARY_CARD', 'cpu:jobs=8')}` |",
        f"| Python | {platform.python_version()}, {platform.system()} {platform.machine()} |",
        f"| tests run under Gloo | {len(gloo)}: {counts(gloo)} |",
        f"| tests run under Tributary | {len(wanted)}, those that pass under Gloo: {counts(tributary, wanted)} |",
        f"| bytes of sums of the DDP tests through the card | {share(card, other)} |",
        "",
        "Not run: tests whose names contain `cuda` or `nccl`. Not checked: events of torch's profiler, which",
        "the tests expect from backends that they name.",
        "",
        f"PyTorch skips {len(skipped)} of these tests for a backend whose name it does not know. They run here; the last",
        "column marks them.",
        "",
        "## Exceptions",
        "",
    ]
    missing = [name for name in wanted if name not in both]
    lines += ["| test | Tributary | reason |", "|---|---|---|"] if missing else ["None."]
    lines += [f"| `{name}` | {tributary[name]['result']} | {EXCEPTIONS.get(name, '')} |" for name in missing]
    lines += ["", "## Tests", ""]
    lines += ["The bytes are those of the all_reduce and reduce_scatter calls of all ranks."]
    lines += ["", "| test | processes | Gloo | Tributary | bytes by the card | bytes by Gloo | skip by name |"]
    lines += ["|---|---:|---|---|---:|---:|---|"]
    for name in sorted(wanted):
        row = tributary[name]
        cells = [f"`{name}`", row["processes"], "passed", row["result"], *map(number, traffic([row]))]
        cells.append("yes" if name in skipped else "")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "## Tests that do not pass under Gloo here", "", "| reason | tests |", "|---|---|"]
    lines += [f"| {reason} | {', '.join(f'`{name}`' for name in of)} |" for reason, of in by_reason(gloo)]
    return "\n".join(lines) + "\n"


def traffic(rows: list[Row]) -> tuple[int, int]:
    """Returns the bytes of the sums of all ranks, through the card and by Gloo."""
    return sum(row["card"] for row in rows), sum(row["gloo"] for row in rows)


def number(count: int) -> str:
    return f"{count:,}" if count else ""


def share(card: int, other: int) -> str:
    return f"{100 * card / max(1, card + other):.2f} % of {card + other:,}"


def counts(rows: dict[str, Row], of: list[str] | None = None) -> str:
    results = [rows[name]["result"] for name in (rows if of is None else of)]
    return ", ".join(f"{results.count(result)} {result}" for result in sorted(set(results)))


def by_reason(rows: dict[str, Row]) -> list[tuple[str, list[str]]]:
    """Groups the tests that did not pass."""
    found: dict[str, list[str]] = {}
    for name, row in sorted(rows.items()):
        if row["result"] != "passed":
            found.setdefault(f"{row['result']}: {last_line(row)}", []).append(name)
    return sorted(found.items(), key=lambda item: -len(item[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="run the tests that match one of these patterns (default: all)")
    parser.add_argument("--results", type=pathlib.Path, default=HERE.parents[1] / "build/pytorch", metavar="FOLDER")
    options = parser.parse_args()

    every = names()
    wanted = [name for name in every if not options.names or any(re.search(each, name) for each in options.names)]
    gloo, tributary = compare(wanted, options.results)
    if wanted == every:
        PAGE.write_text(page(gloo, tributary))
    problems = unexplained(gloo, tributary)
    print("\n".join(problems) or f"{len(passed(gloo))} tests pass under Gloo; exceptions: {len(EXCEPTIONS)}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
