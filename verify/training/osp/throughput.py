"""Samples a second of OSP, DDP and a parameter server on links that a token bucket limits.

    python verify/training/osp/throughput.py --json FILE --plot FILE.svg

Each rank has a network namespace and a cable to a bridge. A token bucket (tc tbf) limits each direction of
the cable. The namespaces end with their processes. It runs as root, or where users may make namespaces.

T_c is the time of a computation, M the gradient's bytes, and M/b the time that a reduction of all of it
takes at the link's rate. In a ring all-reduce of N ranks each rank sends and receives 2(N-1)/N * M bytes, so
the link's rate is b * 2(N-1)/N. The sharded parameter server sends as many (parameter_server.py).

wait: the computation is a timed wait, a third forward and two thirds backward, as on an accelerator that
leaves the processor free. real: the computation is a real one; its time depends on what else the machine does.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

INSIDE = "TRIBUTARY_THROUGHPUT_INSIDE"
FOLDER = pathlib.Path(__file__).parent
RATIOS = (0.5, 1.0, 2.0)  # M/b over T_c
MTU = 9000
BURST = 64 * 1024  # bytes: the longest segment that TCP hands to the queue
QUEUE = 8 * 2**20  # bytes: more than a step has in flight, so nothing is dropped

VARIANTS = {
    "bsp": "BSP, parameter server (ours)",
    "asp": "ASP, parameter server (ours)",
    "sync": "BSP, all-reduce without overlap",
    "ddp": "DDP with its overlap",
    "osp": "OSP",
}


def formula(computation: float, reduction: float, share: float) -> float:
    """The gain of OSP over BSP without overlap: (T_c + M/b) / (max(T_c, U M/b) + (1-U) M/b)."""
    return (computation + reduction) / (max(computation, share * reduction) + (1 - share) * reduction)


def link_rate(elements: int, ranks: int, reduction: float) -> float:
    """Bytes a second of a link where a ring all-reduce of float32 elements takes `reduction` seconds."""
    return 2 * (ranks - 1) / ranks * 4 * elements / reduction


@dataclass
class Rank:
    """A process in a network namespace of its own."""

    number: int
    process: subprocess.Popen[str]

    def send(self, command: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"throughput: rank {self.number} has ended; its error is above")
        reply: dict[str, Any] = json.loads(line)
        return reply


class Network:
    """Ranks whose links have a rate. It must be used in a network namespace of its own."""

    def __init__(self, ranks: int, realtime: bool) -> None:
        hosts = [f"10.0.0.{1 + rank}" for rank in range(ranks)]
        environment = {
            **os.environ,
            "RANK_HOSTS": " ".join(hosts),
            "GLOO_SOCKET_IFNAME": "eth0",
            "TORCH_CPP_LOG_LEVEL": "ERROR",  # PyTorch warns where addresses have no names
        }
        # A rank's namespace ends with its last process, and a rank with this program, however that ends.
        command = ["unshare", "--net", "setpriv", "--pdeathsig", "KILL", sys.executable, str(FOLDER / "throughput_rank.py")]
        self.ranks = [
            Rank(
                rank,
                subprocess.Popen(
                    [*command, str(rank), *(["realtime"] if realtime else [])],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=environment,
                    start_new_session=True,  # Ctrl-C reaches this program alone
                ),
            )
            for rank in range(ranks)
        ]
        for rank in self.ranks:
            rank.receive()  # it is in its namespace
        _ip("link", "add", "bridge0", "mtu", str(MTU), "type", "bridge")
        _ip("link", "set", "bridge0", "up")
        for rank, host in zip(self.ranks, hosts, strict=True):
            port, pid = f"port{rank.number}", str(rank.process.pid)
            _ip("link", "add", port, "mtu", str(MTU), "type", "veth", "peer", "name", "eth0", "mtu", str(MTU), "netns", pid)
            _ip("link", "set", port, "master", "bridge0", "up")
            for arguments in (
                ["link", "set", "lo", "up"],
                ["address", "add", f"{host}/24", "dev", "eth0"],
                ["link", "set", "eth0", "up"],
            ):
                _run("nsenter", "--target", pid, "--net", "--", "ip", *arguments)
        for rank in self.ranks:
            rank.send({})

    def limit(self, rate: float) -> None:
        """Limits all links, each direction, to a rate in bytes a second."""
        bucket = ["root", "tbf", "rate", f"{8 * rate:.0f}bit", "burst", str(BURST), "limit", str(QUEUE)]
        for rank in self.ranks:
            _run("tc", "qdisc", "replace", "dev", f"port{rank.number}", *bucket)
            inside = ["nsenter", "--target", str(rank.process.pid), "--net", "--"]
            _run(*inside, "tc", "qdisc", "replace", "dev", "eth0", *bucket)

    def dropped(self) -> int:
        """The frames that queues have dropped since the last limit."""
        count = 0
        for rank in self.ranks:
            for inside in ([], ["nsenter", "--target", str(rank.process.pid), "--net", "--"]):
                shown = json.loads(_run(*inside, "tc", "-s", "-j", "qdisc", "show"))
                count += sum(queue.get("drops", 0) for queue in shown if queue["kind"] == "tbf")
        return count

    def run(self, command: dict[str, Any]) -> list[dict[str, Any]]:
        """All ranks run a command. Returns their replies."""
        for rank in self.ranks:
            rank.send(command)
        return [rank.receive() for rank in self.ranks]

    def close(self) -> None:
        """Ends the ranks, and removes the links. Another network may be made then."""
        for link in ("bridge0", *(f"port{rank.number}" for rank in self.ranks)):
            subprocess.run(["ip", "link", "delete", link], capture_output=True)
        for rank in self.ranks:
            rank.process.kill()
        for rank in self.ranks:
            rank.process.wait()


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"throughput: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def measure(network: Network, work: dict[str, Any], reduction: float, steps: int, rounds: int) -> dict[str, Any]:
    """Times all variants, in turns, at a time of reduction in seconds.

    Returns the steps a second of a rank in each round, the shares that OSP agreed on, and the measured times
    of the computation and of a reduction.
    """
    network.limit(link_rate(work["elements"], len(network.ranks), reduction))
    speeds: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    shares, alone, reductions = [], [], []
    for _ in range(rounds):
        alone += [reply["seconds"] / steps for reply in network.run({**work, "variant": "alone", "steps": steps})]
        for variant in VARIANTS:
            replies = network.run({**work, "variant": variant, "steps": steps})
            speeds[variant].append(statistics.mean(steps / reply["seconds"] for reply in replies))
            if variant == "osp":
                shares.append(replies[0]["share"])
            if variant == "sync":
                reductions += [reply["reduction"] for reply in replies]
    return {
        "steps_per_second": speeds,
        "share": shares,
        "computation": statistics.median(alone),
        "reduction": statistics.median(reductions),
        "dropped_frames": network.dropped(),
    }


def summary(result: dict[str, Any], computation: float, reduction: float, samples: int) -> dict[str, Any]:
    """Samples a second of all ranks together, and the gains of OSP beside the formula."""
    medians = {variant: statistics.median(speeds) for variant, speeds in result["steps_per_second"].items()}
    share = statistics.median(result["share"])
    hidden = 1 / medians["ddp"] <= 1.1 * computation
    return {
        "samples_per_second": {variant: samples * speed for variant, speed in medians.items()},
        "formula": formula(computation, reduction, share),
        "osp_over_sync": medians["osp"] / medians["sync"],
        "osp_over_bsp": medians["osp"] / medians["bsp"],
        "osp_over_asp": medians["osp"] / medians["asp"],
        # DDP already hides the traffic: its step is at most a tenth longer than the computation.
        "osp_over_ddp": None if hidden else medians["osp"] / medians["ddp"],
        "agreed_share": share,
    }


def table(results: dict[str, Any]) -> str:
    """The results in Markdown."""
    lines = [
        f"| M/b | {' | '.join(VARIANTS.values())} | U | OSP over BSP without overlap | formula "
        "| over BSP, server | over ASP | over DDP |",
        f"|---|{'---|' * (len(VARIANTS) + 6)}",
    ]
    for ratio, result in results["ratios"].items():
        seen = result["summary"]
        cells = [f"{speed:.1f}" for speed in seen["samples_per_second"].values()]
        cells += [f"{seen['agreed_share']:.2f}"]
        cells += [f"{seen[key]:.2f}" for key in ("osp_over_sync", "formula", "osp_over_bsp", "osp_over_asp")]
        gain = seen["osp_over_ddp"]
        cells += ["no claim: DDP hides the traffic" if gain is None else f"{gain:.2f}"]
        lines.append(f"| {ratio} T_c | {' | '.join(cells)} |")
    return "\n".join(lines)


def title(kind: str, result: dict[str, Any]) -> str:
    """One line on a computation."""
    what = "a timed wait" if kind == "wait" else "real forward and backward passes"
    return f"computation: {what}, T_c {1e3 * result['seconds']:.0f} ms; M {4e-6 * result['elements']:.1f} MB"


def plot(results: dict[str, Any], file: str) -> None:
    """Draws samples a second, and what the formula expects of OSP."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = ""  # the same file from the same results
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(len(results), 1, figsize=(8, 3.4 * len(results)), layout="constrained", squeeze=False)
    colors = ["#b8b8b8", "#8c8c8c", "#606060", "#5b8fc9", "#d9822b"]
    for axes, (kind, result) in zip(panels[:, 0], results.items(), strict=True):
        width = 0.8 / len(VARIANTS)
        for i, (variant, label) in enumerate(VARIANTS.items()):
            places = [x + (i - (len(VARIANTS) - 1) / 2) * width for x in range(len(result["ratios"]))]
            heights = [seen["summary"]["samples_per_second"][variant] for seen in result["ratios"].values()]
            axes.bar(places, heights, 0.9 * width, color=colors[i], label=label)
            if variant == "osp":
                expected = [
                    seen["summary"]["samples_per_second"]["sync"] * seen["summary"]["formula"]
                    for seen in result["ratios"].values()
                ]
                axes.hlines(
                    expected,
                    [x - width / 2 for x in places],
                    [x + width / 2 for x in places],
                    color="black",
                    label="OSP by the formula",
                )
        axes.set(ylabel="samples a second", title=title(kind, result))
        axes.set_xticks(range(len(result["ratios"])), [f"M/b = {ratio} T_c" for ratio in result["ratios"]])
        axes.spines[["top", "right"]].set_visible(False)
    panels[0, 0].legend(frameon=False, ncols=2, loc="upper right", fontsize="small")
    panels[0, 0].set_ylim(top=1.4 * panels[0, 0].get_ylim()[1])
    figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)


def compute(network: Network, work: dict[str, Any], steps: int) -> float:
    """The seconds of a computation, with all ranks at work."""
    replies = network.run({**work, "variant": "alone", "steps": steps})
    return statistics.mean(reply["seconds"] for reply in replies) / steps


def experiment(kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """All ratios of one kind of computation."""
    network = Network(options.ranks, options.realtime and kind == "wait")
    try:
        work: dict[str, Any] = {"computation": kind, "elements": options.elements, "seconds": options.computation}
        samples = options.ranks  # a timed wait is one sample of each rank
        if kind == "real":
            # The batch whose computation takes about as long as the wait.
            work["batch"] = 64
            work["batch"] = max(1, round(64 * options.computation / compute(network, work, options.steps)))
            work["seconds"] = compute(network, work, options.steps)
            samples *= work["batch"]
        results: dict[str, Any] = {**work, "ranks": options.ranks, "samples": samples, "ratios": {}}
        for ratio in RATIOS:
            reduction = ratio * work["seconds"]
            result = measure(network, work, reduction, options.steps, options.rounds)
            # The wait is known; real computations take what they took.
            computation = work["seconds"] if kind == "wait" else result["computation"]
            result["summary"] = summary(result, computation, reduction, samples)
            results["ratios"][f"{ratio:g}"] = result
        return results
    finally:
        network.close()


def enter() -> None:
    """Starts this program again in a network namespace of its own. Returns in that namespace."""
    if INSIDE in os.environ:
        return
    unshare = shutil.which("unshare")
    if unshare is None:
        sys.exit("throughput: unshare is missing; install util-linux")
    flags = ["--net"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--net"]
    if subprocess.run([unshare, *flags, "true"]).returncode:
        sys.exit("throughput: this system lets this user make no network namespace; run it as root")
    os.environ[INSIDE] = "1"
    os.execv(unshare, [unshare, *flags, sys.executable, *sys.argv])


def save(results: dict[str, Any], options: argparse.Namespace) -> None:
    """Writes the files that the user asked for."""
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    if options.plot:
        plot(results, options.plot)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4, help="processes (default %(default)s)")
    parser.add_argument("--only", choices=("wait", "real"), help="one kind of computation (default both)")
    parser.add_argument("--computation", type=float, default=0.4, help="T_c in seconds (default %(default)s)")
    parser.add_argument("--elements", type=int, default=2**20, help="of the gradient, float32 (default %(default)s)")
    parser.add_argument("--steps", type=int, default=12, help="timed steps of a run (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each variant (default %(default)s)")
    parser.add_argument("--realtime", action="store_true", help="waiting ranks run before all else on this machine; for root")
    parser.add_argument("--json", metavar="FILE", help="write all results into FILE")
    parser.add_argument("--plot", metavar="FILE", help="draw the results into FILE, such as throughput.svg")
    options = parser.parse_args()
    enter()
    results = {}
    try:
        for kind in [options.only] if options.only else ["wait", "real"]:
            results[kind] = experiment(kind, options)
            print(f"{title(kind, results[kind])}\n\n{table(results[kind])}\n", flush=True)
            save(results, options)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
