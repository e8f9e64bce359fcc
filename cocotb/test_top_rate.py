"""Latency and throughput of the card with bare ports, to the cycle, and independence of the
ports."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

import zwire
from bench import wait_cycles
from cards import BareCard, run_card, usual
from streams import Gate
from traffic import Contributions, data_header

EPOCH = 0xBEEF
CHUNKS = 40
QUEUE = 1  # cycles that a port's queue adds to the latency of the core
CORE = 16  # cycles that the core adds to the latency of a sum that takes long

# Cards with two beats per chunk for each port, at least as many as a result takes to start, and a
# window that covers the round trip: these cards sustain a beat per cycle.
CARDS = {
    "three_ports": ["-lanes", 2, "-workers", 3, "-chunk", 16, "-window", 16],
    "one_port": ["-lanes", 1, "-workers", 1, "-chunk", 6, "-window", 16],
    "odd": ["-lanes", 1, "-workers", 1, "-chunk", 7, "-window", 16],
    "fused": ["-lanes", 4, "-workers", 4, "-chunk", 32, "-window", 8, "-format", "bf16", "-sum", "fused"],
    "six_ports": ["-lanes", 1, "-workers", 6, "-chunk", 12, "-window", 16],
}


@pytest.mark.parametrize("card", usual(CARDS, "three_ports"))
def test_top_rate(card):
    run_card(f"rate_{card}", [*CARDS[card], "-shell", "none", "-registers", "bus"])


class Bench(BareCard):
    """A card with a job on all ports, and workers that send without a pause."""

    def __init__(self, dut):
        super().__init__(dut)
        self.data = Contributions(self, random.Random(1), CHUNKS)
        self.beats = self.manifest["beats"]
        # Results are picked in every second cycle. A short sum waits for it, or not.
        self.jitter = int(self.latency > self.manifest["sum_latency"] + CORE)
        self.strobes = []  # cycles in which a beat entered the trees

    async def reset(self):
        await super().reset()
        await self.set_up(EPOCH)
        cocotb.start_soon(self._watch_strobe())

    async def _watch_strobe(self):
        while True:
            await RisingEdge(self.dut.clk)
            if int(self.dut.beat_strobe.value):
                self.strobes.append(self.cycle)

    def send_chunk(self, port, vid):
        header = data_header(self, port, vid, EPOCH) | {"flags": self.data.ecn[vid][port]}
        self.send(port, header, self.data.payloads[vid][port])

    async def work(self, port, trusting=None):
        """Sends every chunk as soon as the window allows; trusting: a port whose results serve
        in place of its own."""
        witness = self.sinks[port if trusting is None else trusting]
        for vid in range(CHUNKS):
            while len(witness.taken_at) < (vid - self.window + 1) * self.beats:
                await FallingEdge(self.dut.clk)  # when the sinks have run
            self.send_chunk(port, vid)

    def check_results(self, port, chunks):
        """Checks that the port's first packets are the results of these chunks, in order."""
        sent = [packet for packet in self.sent if packet[2] == port][: len(chunks)]
        assert [header["vid"] for header, _, _ in sent] == list(chunks)
        for header, payload, _ in sent:
            assert payload == self.data.sum(header["vid"]), f"chunk {header['vid']} at port {port}"
            assert header["flags"] == self.data.flags(header["vid"])


def without_bubble(cycles, count, jitter=0):
    """Returns whether there are count cycles, all consecutive except for jitter cycles."""
    return len(cycles) == count and cycles[-1] - cycles[0] <= count - 1 + jitter


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def the_latency_is_the_manifests(dut):
    """From the last beat in to the first beat out, whichever port comes last, in odd and even
    cycles."""
    card = Bench(dut)
    await card.reset()
    seen = set()
    for vid in range(2 * card.ports):
        last = vid // 2
        for port in [p for p in range(card.ports) if p != last] + [last]:
            await wait_cycles(dut, 50 + (card.cycle + vid) % 2)
            card.send_chunk(port, vid)
        await card.quiet()
        for sink in card.sinks:
            waited = sink.taken_at[-card.beats] - card.sources[last].accepted_at[-1]
            seen.add(waited - QUEUE)
    assert seen == set(range(card.latency - card.jitter, card.latency + 1)), f"{seen} cycles, the manifest says {card.latency}"
    assert await card.read("LATENCY") == card.latency
    assert card.latency <= max(card.manifest["sum_latency"] + CORE, 24)
    assert card.manifest["throughput"]["chunk_cycles"] == card.beats


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def chunks_follow_without_a_bubble(dut):
    """All ports saturated: a beat per cycle enters every port and the trees, and leaves every
    port."""
    card = Bench(dut)
    await card.reset()
    for port in range(card.ports):
        cocotb.start_soon(card.work(port))
    await wait_cycles(dut, CHUNKS * card.beats)
    await card.quiet()
    count = CHUNKS * card.beats
    for port in range(card.ports):
        assert without_bubble(card.sources[port].accepted_at, count), f"bubbles into port {port}"
        assert without_bubble(card.sinks[port].taken_at, count, card.jitter), f"bubbles out of port {port}"
        card.check_results(port, range(CHUNKS))
    assert without_bubble(card.strobes, count), "bubbles into the trees"


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_port_that_takes_nothing_holds_up_no_other(dut):
    """Port 0 takes no result but keeps sending, guided by port 1's results: the other ports are
    unaffected."""
    card = Bench(dut)
    if card.ports == 1:
        return  # there is no other port
    card.sinks[0].stall = gate = Gate(closed=True)
    await card.reset()
    await ClockCycles(dut.clk, 2)
    for port in range(card.ports):
        cocotb.start_soon(card.work(port, trusting=1 if port == 0 else None))
    await wait_cycles(dut, CHUNKS * card.beats)
    await card.quiet()
    count = CHUNKS * card.beats
    for port in range(1, card.ports):
        assert without_bubble(card.sinks[port].taken_at, count, card.jitter), f"port {port} was held up"
        card.check_results(port, range(CHUNKS))
    assert not card.sinks[0].taken_at
    gate.closed = False
    await card.quiet()
    waited = [header["vid"] for header, payload, port in card.sent if port == 0]
    # The results in its queue, and those of slots that had not turned over.
    assert waited == sorted(waited) and len(waited) > card.window
    for header, payload, port in card.sent:
        assert payload == card.data.sum(header["vid"]), f"chunk {header['vid']} at port {port}"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def packets_are_taken_whatever_the_other_ports_do(dut):
    """Only one port sends, and no port takes results: that port's packets enter without a pause."""
    card = Bench(dut)
    for sink in card.sinks:
        sink.stall = Gate(closed=True)
    await card.reset()
    for port in range(card.ports):
        before = len(card.sources[port].accepted_at)
        for vid in range(2 * card.window + 4):
            card.send_chunk(port, vid)
        await card.sources[port].drained()
        assert without_bubble(card.sources[port].accepted_at[before:], (2 * card.window + 4) * card.beats)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def asks_are_answered_while_another_port_sends(dut):
    """A port that stops in the middle of a packet delays no other port's ask."""
    card = Bench(dut)
    await card.reset()
    card.sources[0].idle = gate = Gate()
    card.send_chunk(0, 0)
    await ClockCycles(dut.clk, 3)
    gate.closed = True
    for port in range(1, card.ports):
        card.send(port, {"kind": zwire.KIND_ASK, "epoch": EPOCH, "rank": port, "vid": 0})
        await wait_cycles(dut, 40)
        ((status, _, to),) = card.sent
        assert (status["kind"], status["code"], to) == (zwire.KIND_STATUS, zwire.CODE_SEND, port)
        card.sent.clear()
    gate.closed = False
    await card.quiet()
    assert len(card.sources[0].accepted_at) == card.beats
