"""Times all_reduce of 4 processes: the backend, the daemon's C interface, and Gloo, in turns.

    make overhead

Ranks live for the whole run. A round asks each of the three for the same calls, one after another, so that all
see the same machine. The time of a call is the slowest rank's; a row has the median of all calls, and the ratios
of the medians of the rounds.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

RANKS = 4
SIZES = [(1, 40), (25, 8), (100, 3)]  # MB of fp32, and the calls of a round
HERE = pathlib.Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tributary", required=True, help="the command tributary")
    parser.add_argument("--library", required=True, help="the folder of libtributary.so")
    parser.add_argument("--rounds", type=int, default=7, help="(default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/allreduce"
        header = HERE.parents[2] / "driver/capi"
        subprocess.run(
            ["cc", "-O2", "-Wall", f"-I{header}", HERE / "allreduce.c", "-o", program, f"-L{options.library}", "-ltributary", f"-Wl,-rpath,{options.library}"],
            check=True,
        )
        daemon = subprocess.Popen(
            [options.tributary, "serve", "-card", f"cpu:workers={RANKS},jobs=2", "-listen", f"unix:{folder}/s"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            daemon.stdout.readline()
            rows = compare(program, f"serve:unix:{folder}/s", folder, options.rounds)
        finally:
            daemon.terminate()
            daemon.wait()
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"all_reduce of fp32 by {RANKS} processes, medians of {options.rounds} rounds in turns, card cpu: of one daemon\n")
    print(f"{'':>8}{'backend':>12}{'from C':>12}{'ratio':>8}{'Gloo':>12}{'ratio':>8}")
    for row in rows:
        print(
            f"{row['MB']:>5} MB{1e3 * row['backend']:>9.2f} ms{1e3 * row['c']:>9.2f} ms{row['over_c']:>8.3f}"
            f"{1e3 * row['gloo']:>9.2f} ms{row['over_gloo']:>8.3f}"
        )
    print("\nratio: the backend's time over the other's; at most 1.1 over C is asked for")


def compare(program: str, card: str, folder: str, rounds: int) -> list[dict[str, float]]:
    peers = {
        "c": [[program, card, f"{folder}/ticket", str(rank), str(RANKS)] for rank in range(RANKS)],
        "backend": [[sys.executable, __file__, "rank", "tributary", f"{folder}/backend", str(rank)] for rank in range(RANKS)],
        "gloo": [[sys.executable, __file__, "rank", "gloo", f"{folder}/gloo", str(rank)] for rank in range(RANKS)],
    }
    environment = {**os.environ, "TRIBUTARY_CARD": card, "OMP_NUM_THREADS": "1"}
    running = {
        name: [subprocess.Popen(c, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) for c in commands]
        for name, commands in peers.items()
    }
    rows = []
    for megabytes, calls in SIZES:
        for peer in running.values():
            ask(peer, megabytes, 2)  # the first calls touch new memory
        times: dict[str, list[list[float]]] = {name: [] for name in running}
        for _ in range(rounds):
            for name, peer in running.items():
                times[name].append(ask(peer, megabytes, calls))
        medians = {name: [statistics.median(round) for round in all] for name, all in times.items()}
        row = {"MB": megabytes} | {name: statistics.median(sum(all, [])) for name, all in times.items()}
        row["over_c"] = statistics.median(a / b for a, b in zip(medians["backend"], medians["c"], strict=True))
        row["over_gloo"] = statistics.median(a / b for a, b in zip(medians["backend"], medians["gloo"], strict=True))
        rows.append(row)
    for peer in running.values():
        for rank in peer:
            rank.stdin.close()
        for rank in peer:
            rank.wait(timeout=60)
    return rows


def ask(peer: list["subprocess.Popen[str]"], megabytes: int, calls: int) -> list[float]:
    """Returns the time of each call: that of the slowest rank."""
    for rank in peer:
        rank.stdin.write(f"{megabytes * 250_000} {calls}\n")
        rank.stdin.flush()
    return [max(times) for times in zip(*([float(t) for t in rank.stdout.readline().split()] for rank in peer), strict=True)]


def rank(backend: str, path: str, number: int) -> None:
    """A rank that answers on standard output, like allreduce.c."""
    import torch
    import torch.distributed as dist

    dist.init_process_group(backend, store=dist.FileStore(path, RANKS), rank=number, world_size=RANKS)
    for line in sys.stdin:
        elements, calls = (int(word) for word in line.split())
        tensor, times = torch.zeros(elements), []  # sums stay finite
        for _ in range(calls):
            start = time.monotonic()
            dist.all_reduce(tensor)
            times.append(time.monotonic() - start)
        print(*(f"{t:.9f}" for t in times), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        rank(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
