"""Compares the Python model of a card with an up port with the Go model, by random traffic at all ports.

Both were written from driver/wire/TREES.md alone. test_top_parent.py compares the gateware with the Python model.
"""

import asyncio
import random
import subprocess

import pytest

import model
import zwire
from arithmetic import Arithmetic
from bench import BUILD, ROOT
from cards import REFUSAL_CYCLES, CardBench, describe, is_refusal, whole
from tree_traffic import TreeBench, TreeTraffic

CARDS = {
    "two_ports": {"lanes": 2, "ports": 2, "chunk": 4, "window": 4, "jobs": 1},
    "three_ports": {"lanes": 1, "ports": 3, "chunk": 2, "window": 4, "jobs": 4},
    "one_port": {"lanes": 1, "ports": 1, "chunk": 1, "window": 1, "jobs": 1},
}


class GoCard(TreeBench, CardBench):
    """A card of the Go model in another process, with the interface of a card in a simulator."""

    def __init__(self, program, rng, lanes, ports, chunk, window, jobs, arithmetic):
        self.rng = rng
        self.lanes, self.ports, self.chunk, self.window, self.jobs = lanes, ports, chunk, window, jobs
        self.arithmetic, self.format = arithmetic, arithmetic.format
        self.model = self.MODEL(lanes, ports, chunk, window, {"LINK": 0, "LATENCY": 0}, False, arithmetic, jobs)
        idents = arithmetic.idents
        sizes = {"lanes": lanes, "workers": ports, "chunk": chunk, "window": window, "jobs": jobs}
        sizes |= {"format": idents["FORMAT"] & 0xFF, "sum": idents["SUM"] & 0xFF}
        flags = [f"--{name}={value}" for name, value in sizes.items()]
        self.process = subprocess.Popen([program, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.seen = set()  # kinds of packets that were sent
        self.counted = set()  # counters of the up port that were not 0; a RESET clears them
        self.refused = False  # in the last exchange

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0

    def ask(self, *words):
        """Writes a line; returns the words of each line of its answer."""
        print(*words, file=self.process.stdin, flush=True)
        lines = []
        while (line := self.process.stdout.readline()) != ".\n":
            assert line, f"the Go model ended at {words}"
            lines.append(line.split())
        return lines

    def count_access(self):
        """Counts no frame: there is no link."""

    async def register(self, header):
        write = header["kind"] == zwire.KIND_REGWRITE
        ((code, value),) = self.ask(0, "write" if write else "read", header["vid"], header.get("mask", 0))
        return {"code": int(code), "mask": int(value)}

    def expand(self, expected):
        return [(whole(header, False), payload, ports) for header, payload, ports in expected]

    async def exchange(self, port, header, payload=b"", bad=False):
        header = {**dict.fromkeys(zwire.FIELDS, 0), "version": zwire.VERSION, **header}
        raw = model.pack(header, 22)
        after = REFUSAL_CYCLES if self.refused else self.rng.choice([0, 1, 20, 60, 100])  # often less than JOB_REPEAT
        span, *lines = self.ask(after, "packet", port, int(bad), raw.hex(), payload.hex() or "-")
        self.model.span = tuple(map(int, span))
        sent = [(whole(model.unpack(bytes.fromhex(h)), False), bytes.fromhex(p[1:]), int(ports)) for ports, h, p in lines]
        want = self.expand(self.model.packet(port, header, payload, bad))
        want += self.chosen(sent)
        assert sorted(sent, key=repr) == sorted(want, key=repr), (
            f"port {port} got {describe((header, payload, port))}\n"
            f"Go sent {[describe(s) for s in sent]}\nPython wants {[describe(w) for w in want]}"
        )
        self.refused = any(is_refusal(h) for h, _, _ in sent)
        self.counted |= {name for name in zwire.UP_COUNTER_NAMES if self.model.counters[name]}
        self.seen |= {"up " * (ports >> self.ports) + zwire.KINDS[h["kind"]][0] for h, _, ports in sent}


@pytest.fixture(scope="session")
def program():
    """Builds the Go model's program."""
    path = BUILD / "packets"
    subprocess.run(["go", "build", "-o", path, "./verify/protocol/packets"], cwd=ROOT, check=True)
    return path


@pytest.mark.parametrize("format, sum", [("fp32", "tree"), ("int32", "tree"), ("bf16", "exact"), ("fp8e4m3", "max")])
@pytest.mark.parametrize("card", CARDS)
def test_both_models_answer_alike(program, card, format, sum):
    rng = random.Random(f"{card} {format} {sum}")
    go = GoCard(program, rng, **CARDS[card], arithmetic=Arithmetic(format, sum=sum))
    asyncio.run(walk(go, rng, 1000))
    go.close()
    assert go.counted == set(zwire.UP_COUNTER_NAMES)
    assert {"up data", "up finish", "result", "replay", "status"} <= go.seen


async def walk(card, rng, steps):
    traffic = TreeTraffic(card, rng)
    for _ in range(steps):
        await traffic.step()
    await card.check_registers()
