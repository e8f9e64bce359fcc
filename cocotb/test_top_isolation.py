"""How other jobs on a card affect a job: never its bits, and its cycles by no more than their
turns.

Job A runs alone, by a fixed schedule and at full speed. Then it runs again beside two jobs on
other ports. These stall, flood, send garbage, run at full rate, or are set up and ended all the
time.

The allowed delay follows from "Several jobs" in section 5 of the specification, in cycles of the
core. Commit costs one for each of the others' ports. The sum costs one chunk of each other job,
a beat per cycle. The start of a result costs one chunk of each again. A status, which is one
beat, may precede each of these and the result itself. A chunk that does not wait for its own job
is delayed by at most the sum of these. Back-to-back chunks are each delayed once more, at the
sum or at the results' start, by one chunk of each other job and those statuses.
"""

import random

import cocotb
from cocotb.triggers import ClockCycles, Combine, FallingEdge, RisingEdge

import model
import zwire
from bench import wait_cycles
from cards import BareCard, run_card
from streams import Gate
from traffic import TOKEN, elements
from workers import Reduction

CHUNKS = 32
PERIOD = 96  # of the fixed schedule, longer than any chunk takes

# Number, ports, elements of a chunk, and window. A's number lies between the others, so no fixed
# order favours it.
A = {"job": 2, "ports": 0b000011, "chunk": 6, "window": 8}
OTHERS = [
    {"job": 0, "ports": 0b001100, "chunk": 16, "window": 4},
    {"job": 3, "ports": 0b110000, "chunk": 5, "window": 4},
]
UNUSED = [1, 4, 6, 255]  # numbers without a job; the low bits of 6 are A's number


def test_top_isolation():
    run_card("isolation", "-jobs 4 -lanes 1 -workers 6 -chunk 16 -window 16 -shell none".split())


class Bench(BareCard):
    """The card, job A, and the members of the other jobs."""

    def __init__(self, dut):
        super().__init__(dut)
        self.gates = [Gate() for _ in self.sinks]
        for sink, gate in zip(self.sinks, self.gates):
            sink.stall = gate
        self.epoch = 0
        self.mine = []  # packets for A's ports
        self.peers = {}  # by port

    async def reset(self):
        await super().reset()
        cocotb.start_soon(self._sort())

    async def _sort(self):
        while True:
            await RisingEdge(self.dut.clk)
            for packet in self.sent:
                if packet[2] in self.peers:
                    self.peers[packet[2]].take(packet[0])
                else:
                    self.mine.append(packet)
            self.sent.clear()

    async def set_up_others(self):
        """Sets the other jobs up, with members that do nothing yet."""
        self.epoch += 1
        for shape in OTHERS:
            reduction = Reduction(self, random.Random(8), 1, self.epoch, first=2**32 - 5, **shape)
            assert await reduction.set_up(TOKEN)
            for rank, port in enumerate(reduction.members):
                self.peers[port] = Peer(self, reduction, rank)

    async def set_up_a(self):
        """Sets job A up."""
        self.epoch += 1
        a = Reduction(self, random.Random(7), CHUNKS, self.epoch, **A)
        assert await a.set_up(TOKEN)
        await wait_cycles(self.dut, 100)
        return a

    async def check_counts(self, a):
        """Checks job A's counts in the registers."""
        for name, value in a.counts().items():
            reply = await self.register({"kind": zwire.KIND_REGREAD, "vid": model.address_of(name, a.job), "length": 0})
            assert reply["mask"] == value, f"{name} of job A is {reply['mask']}, want {value}"

    async def run_a(self, a, scheduled):
        """Runs job A by the fixed schedule, or at full speed.

        Returns the cycle of each result beat at each of its ports, counted from the start, and
        the results.
        """
        began = {port: len(self.sinks[port].taken_at) for port in a.members}
        start = self.cycle
        work = self.follow if scheduled else self.saturate
        await Combine(*[cocotb.start_soon(work(a, worker, began)) for worker in a.workers])
        for port in a.members:
            await self.taken(a, port, began, CHUNKS)
        await ClockCycles(self.dut.clk, 2)
        cycles = {port: [c - start for c in self.sinks[port].taken_at[began[port] :]] for port in a.members}
        bits = [(port, header | {"epoch": 0}, payload) for header, payload, port in self.mine]
        assert len(bits) == CHUNKS * len(a.members)
        for port, header, payload in bits:
            assert payload == a.data.sum(header["vid"]) and header["flags"] == a.data.flags(header["vid"])
        self.mine.clear()
        return cycles, sorted(bits, key=lambda packet: (packet[1]["vid"], packet[0]))

    async def follow(self, a, worker, began):
        """Sends every chunk at its time; the rank that is first alternates."""
        for chunk in range(CHUNKS):
            worker.contribute(chunk)
            await wait_cycles(self.dut, PERIOD + (1 - 2 * worker.rank) * (chunk % 2 * 6 - 3))

    async def saturate(self, a, worker, began):
        """Sends every chunk as soon as the window allows."""
        for chunk in range(CHUNKS):
            await self.taken(a, worker.port, began, chunk - a.window + 1)
            worker.contribute(chunk)

    async def taken(self, a, port, began, chunks):
        """Waits until the port has that many results of A; looks in the middle of a cycle, when the sinks have run."""
        while len(self.sinks[port].taken_at) - began[port] < chunks * a.chunk // self.lanes:
            await FallingEdge(self.dut.clk)


class Peer:
    """A member of another job."""

    def __init__(self, card, reduction, rank):
        self.card, self.reduction, self.rank, self.port = card, reduction, rank, reduction.members[rank]
        self.rng = random.Random(self.port)
        self.next, self.got = 0, set()
        self.results = 0
        self.running = None  # the sending task

    def take(self, header):
        if header["kind"] in (zwire.KIND_RESULT, zwire.KIND_REPLAY):
            self.results += 1
            self.got.add((header["vid"] - self.reduction.first) % 2**32)

    def data(self, chunk):
        """Sends the chunk; all chunks have the same data."""
        header = self.reduction.header(zwire.KIND_DATA, self.rank, self.reduction.first + chunk)
        self.card.send(self.port, header, self.reduction.data.payloads[0][self.rank])

    def legitimate(self):
        """Sends the next chunk if the window allows it; returns whether it did."""
        behind = self.next - self.reduction.window
        if behind >= 0 and behind not in self.got:
            return False
        self.data(self.next)
        self.next += 1
        return True

    def flood(self):
        """Sends the next chunk, a repeated one, or an ask."""
        rng, known = self.rng, max(0, self.next - self.reduction.window)
        if rng.random() < 0.3 and self.legitimate():
            return
        chunk = rng.randint(known, self.next)
        if rng.random() < 0.3:
            self.data(chunk)
        else:
            self.card.send(self.port, self.reduction.header(zwire.KIND_ASK, self.rank, self.reduction.first + chunk))

    def garbage(self):
        """Sends a packet whose fields may all be wrong; it may carry A's number, but not from
        A's ports."""
        rng, card = self.rng, self.card
        if rng.random() < 0.3 and self.legitimate():
            return
        header = {
            "version": rng.choice([zwire.VERSION] * 9 + [0]),
            "kind": rng.choice([zwire.KIND_DATA] * 4 + [zwire.KIND_ASK, zwire.KIND_FINISH, 0, 5, 8, 15]),
            "flags": rng.getrandbits(8),
            "job": rng.choice([*[A["job"]] * 4, *[self.reduction.job] * 4, *UNUSED]),
            "format": rng.choice([card.format.number] * 9 + [0]),
            "epoch": rng.choice([card.epoch, self.reduction.epoch, rng.getrandbits(16)]),
            "rank": rng.choice([0, 1, self.rank, rng.getrandbits(8)]),
            "vid": rng.choice([rng.randrange(CHUNKS), self.reduction.first + self.next, rng.getrandbits(32)]) % 2**32,
            "length": rng.choice([A["chunk"], self.reduction.chunk, rng.getrandbits(16)]),
        }
        if header["kind"] == zwire.KIND_FINISH and header["job"] == self.reduction.job:
            header["epoch"] = 0  # the other jobs must not end
        size = rng.choice([A["chunk"], self.reduction.chunk, rng.randint(0, 40)])
        card.send(self.port, header, elements(rng, size, card.format), bad=rng.random() < 0.2)

    async def send(self, what, at_once):
        """Sends forever; keeps at_once beats queued in the port's source, if possible."""
        while True:
            while len(self.card.sources[self.port].queue) < at_once and what() is not False:
                pass
            await RisingEdge(self.card.dut.clk)

    def start(self, what):
        self.running = cocotb.start_soon(self.send(what, at_once=40))


def cost(statuses):
    """Returns the most cycles by which the other jobs delay a chunk of A: once, and for each
    back-to-back chunk."""
    ports = sum(shape["ports"].bit_count() for shape in OTHERS)
    beats = sum(shape["chunk"] for shape in OTHERS)
    between = len(OTHERS) + 1 if statuses else 0
    return ports + beats + beats + between, beats + between


def compare(alone, beside, scheduled, statuses=True):
    """Checks that the bits are equal and the delays allowed; returns the last result's delay."""
    assert beside[1] == alone[1]
    once, each = cost(statuses)
    for port, cycles in alone[0].items():
        beats = zip(cycles, beside[0][port], strict=True)
        for i, (before, now) in enumerate(beats):
            most = once if scheduled else once + each * (i // A["chunk"] + 1)
            assert before <= now <= before + most, f"beat {i} at port {port} in cycle {now}, alone in {before}"
    return max(beside[0][port][-1] - cycles[-1] for port, cycles in alone[0].items())


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(scheduled=[True, False])
async def jobs_that_stall_cost_no_cycle(dut, scheduled):
    """One member of each other job is silent; the rest send all they may, and no member takes a
    result."""
    card = Bench(dut)
    await card.reset()
    alone = await card.run_a(await card.set_up_a(), scheduled)
    await card.set_up_others()
    for port in card.peers:
        card.gates[port].closed = True
    for chunk in range(3 * OTHERS[0]["window"]):
        for peer in card.peers.values():
            # The last rank sends none of the last chunks; its earlier data prove that it holds
            # their predecessors.
            if chunk < 2 * OTHERS[0]["window"] or peer.rank == 0:
                peer.data(chunk)
        await card.quiet()
    assert not any(peer.results for peer in card.peers.values())
    a = await card.set_up_a()
    assert await card.run_a(a, scheduled) == alone
    await card.check_counts(a)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(scheduled=[True, False], how=["legitimate", "flood", "garbage"])
async def jobs_that_send_cost_their_turns(dut, scheduled, how):
    card = Bench(dut)
    await card.reset()
    alone = await card.run_a(await card.set_up_a(), scheduled)
    await card.set_up_others()
    a = await card.set_up_a()
    for peer in card.peers.values():
        peer.start(getattr(peer, how))
    await wait_cycles(dut, 500)
    beside = await card.run_a(a, scheduled)
    late = compare(alone, beside, scheduled, statuses=how != "legitimate")
    assert scheduled or late > 0, "the other jobs were not felt"
    assert all(peer.results > 4 for peer in card.peers.values())
    await card.check_counts(a)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(scheduled=[True, False])
async def jobs_that_come_and_go_cost_no_more(dut, scheduled):
    """The other jobs are aborted, or replaced by new ones, all the time; their members keep
    sending unaware."""
    card = Bench(dut)
    await card.reset()
    alone = await card.run_a(await card.set_up_a(), scheduled)
    await card.set_up_others()
    a = await card.set_up_a()
    for peer in card.peers.values():
        peer.start(peer.flood)
    running = cocotb.start_soon(card.run_a(a, scheduled))
    epoch = card.epoch
    while not running.done():
        epoch += 1
        for shape in OTHERS:
            reduction = Reduction(card, random.Random(8), 1, epoch, first=2**32 - 5, **shape)
            await reduction.set_up(TOKEN)
            for rank, port in enumerate(reduction.members):
                card.peers[port].reduction, card.peers[port].next = reduction, 0
                card.peers[port].got.clear()
            await wait_cycles(dut, 60)
            if epoch % 2:
                await card.write("JOB_ABORT", shape["job"] << 48 | epoch << 32)
    compare(alone, running.result(), scheduled)
    await card.check_counts(a)
