"""Workers that all send at once, lose, repeat and ask, on the card with bare ports.

The order in which things meet in the card is left to chance here; what must hold whatever it is, is checked:
every rank gets every sum, right in every bit, marked as a replay when it had it before, and the card has
added every contribution exactly once.
"""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, Combine

import zwire
from cards import BareCard, run_card
from streams import PATTERNS
from traffic import Contributions, data_header

EPOCH = 77
CHUNKS = 30

CARDS = {
    "three_ports": ["-lanes", 2, "-workers", 3, "-chunk", 8, "-window", 2],
    "five_ports": ["-lanes", 1, "-workers", 5, "-chunk", 2, "-window", 4],
    "exact": ["-lanes", 2, "-workers", 3, "-chunk", 8, "-window", 2, "-sum", "exact"],
    "undecided": ["-lanes", 2, "-workers", 4, "-chunk", 8, "-window", 2, "-sum", "exact"],
}


@pytest.mark.parametrize("card", CARDS)
def test_top_overlap(card):
    run_card(f"overlap_{card}", [*CARDS[card], "-shell", "none"])


class Worker:
    """A worker as section 8 of the specification has it, but impatient, repetitive, and at times unlucky."""

    def __init__(self, card, port, data, first, rng):
        self.card, self.rank, self.data, self.first, self.rng = card, port, data, first, rng
        self.next = 0  # chunk to be sent next
        self.got = {}  # chunk: how often its result came
        self.bad = 0  # payloads sent with a wrong CRC
        self.finished = False

    async def run(self):
        while len(self.got) < len(self.data):
            self.take()
            self.act()
            await ClockCycles(self.card.dut.clk, self.rng.randint(1, 2 * self.card.manifest["beats"]))
        while not self.finished:
            self.send(zwire.KIND_FINISH, len(self.data))
            await ClockCycles(self.card.dut.clk, 200)
            self.take()

    def act(self):
        window = self.card.window
        overdue = [c for c in range(self.next) if c not in self.got]
        chance = self.rng.random()
        if self.next < len(self.data) and all(c in self.got for c in range(self.next - window + 1)):
            if chance < 0.1:
                self.bad += 1
                return self.contribute(self.next, bad=True)
            self.next += 1
            return self.contribute(self.next - 1)
        if not overdue or self.card.sources[self.rank].queue:
            return
        if chance < 0.2:
            self.contribute(self.rng.choice(overdue))
        elif chance < 0.4:
            self.send(zwire.KIND_ASK, self.rng.choice(overdue))
        elif chance < 0.5 and self.next > window:
            self.contribute(self.rng.randrange(self.next - window, self.next))

    def contribute(self, chunk, bad=False):
        header = data_header(self.card, self.rank, self.first + chunk, EPOCH)
        header["flags"] = self.data.ecn[chunk][self.rank]
        self.card.send(self.rank, header, self.data.payloads[chunk][self.rank], bad)

    def send(self, kind, chunk):
        vid = (self.first + chunk) % 2**32
        self.card.send(self.rank, {"kind": kind, "epoch": EPOCH, "rank": self.rank, "vid": vid})

    def take(self):
        """Looks at what has come for this rank."""
        mine = [packet for packet in self.card.sent if packet[2] == self.rank]
        for packet in mine:
            self.card.sent.remove(packet)
            header, payload, _ = packet
            if header["kind"] == zwire.KIND_STATUS:
                self.take_status(header)
            else:
                self.take_result(header, payload)

    def take_status(self, header):
        assert header["rank"] == self.rank and header["epoch"] == EPOCH
        self.finished |= header["code"] == zwire.CODE_DONE
        if header["code"] == zwire.CODE_SEND:
            assert header["mask"] >> self.rank & 1
            self.contribute((header["vid"] - self.first) % 2**32)
        if header["code"] == zwire.CODE_WAIT:
            assert header["mask"] and not header["mask"] >> self.rank & 1

    def take_result(self, header, payload):
        chunk = (header["vid"] - self.first) % 2**32
        assert chunk < self.next, f"a result for chunk {chunk}, which was not sent"
        assert payload == self.data.sum(chunk), f"rank {self.rank}: wrong bits in chunk {chunk}"
        assert header["flags"] == self.data.flags(chunk)
        assert header["mask"] == (1 << self.card.ports) - 1
        assert header["epoch"] == EPOCH and header["length"] == self.card.chunk
        if chunk in self.got:
            assert header["kind"] == zwire.KIND_REPLAY, f"chunk {chunk} came again as a result"
        self.got[chunk] = self.got.get(chunk, 0) + 1


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def every_contribution_is_added_exactly_once(dut, idle, stall):
    rng = random.Random(f"{idle} {stall}")
    card = BareCard(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    first = rng.choice([0, 2**32 - 7])
    await card.set_up(EPOCH, first=first)
    data = Contributions(card, rng, CHUNKS)
    workers = [Worker(card, port, data, first, random.Random(rng.random())) for port in range(card.ports)]
    await Combine(*[cocotb.start_soon(worker.run()) for worker in workers])
    await card.quiet()
    await check_counters(card, data, workers)


async def check_counters(card, data, workers):
    """What the card counted that does not depend on the order of events."""
    contributions = [payload for chunk in data.payloads for payload in chunk]
    sums = [data.sum(chunk) for chunk in range(len(data))]
    expected = {
        "stored": len(contributions),
        "chunks": len(data),
        "beats": len(data) * card.manifest["beats"],
        "payload_crc": sum(worker.bad for worker in workers),
        "nonfinite_in": sum(1 for payload in contributions if nonfinite(card.format, payload)),
        "nonfinite_out": sum(nonfinite(card.result, payload) for payload in sums),
        "ce": sum(mark == zwire.ECN_CE for chunk in data.ecn for mark in chunk),
        "early": 0,
    }
    for name in ("bad_version", "bad_kind", "bad_job", "bad_epoch", "bad_rank", "bad_format", "bad_length"):
        expected[name] = 0
    for name, value in expected.items():
        header = {"kind": zwire.KIND_REGREAD, "vid": zwire.REG_COUNTERS + 8 * counter_index(name), "length": 0}
        reply = await card.register(header)
        assert reply["mask"] == value, f"{name} is {reply['mask']}, want {value}"


def counter_index(name):
    return [n for n, _ in zwire.COUNTER_NAMES].index(name)


def nonfinite(format, payload):
    return int(format.nonfinite(format.elements(payload)).sum())
