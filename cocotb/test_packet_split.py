"""agg_packet_split: each store of an Ethernet port sees the packets that have a receiver there, and no others."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from bench import leaf, number, run, start

STEPS = ("takes_first", "takes_word")
LATER = ("word_valid", "last")  # a cycle after a step


class Split:
    """Steps of packets, as agg_datagram_steps and agg_datagram_sums make them, and the stores that must see them."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.ethernet, self.ports = len(dut.m_last), len(dut.s_dest) - 1
        self.jobs, self.delay = int(dut.JOBS.value), int(dut.DELAY.value)
        self.behind = 0
        self.later = {}  # signals of LATER and sums that are due: {cycle: {name: stores}}
        self.now = 0
        self.seen = [0] * (self.ethernet + 1)  # packets, by the number of their stores
        for name in (*STEPS, "s_word_valid", "s_last", "s_sums_valid", "behind", "s_dest", "s_job", "reply_ethernet"):
            getattr(dut, name).value = 0

    def place(self, port, job, at):
        """Puts a port's member of a job behind an Ethernet port, or behind none."""
        for e in range(self.ethernet):
            bit = 1 << (e * self.jobs + job) * self.ports + port
            self.behind = self.behind | bit if e == at else self.behind & ~bit
        self.dut.behind.value = self.behind

    def receivers(self, dest, job, reply_at):
        """Returns the receivers of a packet behind each Ethernet port, as in m_dest."""
        found = [0] * self.ethernet
        for port in range(self.ports):
            for e in range(self.ethernet):
                if dest >> port & 1 and self.behind >> (e * self.jobs + job) * self.ports + port & 1:
                    found[e] |= 1 << port
        if dest >> self.ports and reply_at < self.ethernet:
            found[reply_at] |= 1 << self.ports
        return found

    async def packet(self, dest, job, reply_at, words, idle):
        """Passes a packet; idle: the chance of a cycle without a step. A packet without words is one step."""
        receivers = self.receivers(dest, job, reply_at)
        stores = sum(1 << e for e, there in enumerate(receivers) if there)
        self.seen[stores.bit_count()] += 1
        await self.cycle({"takes_first": stores}, receivers, last=words == 0, of=(dest, job, reply_at))
        left = words
        while left:
            if self.rng.random() < idle:
                await self.cycle()
                continue
            takes_word = left == 1 or self.rng.random() < 0.7  # other steps are a part of a word
            left -= takes_word
            steps = {"takes_word": stores} if takes_word else {}
            await self.cycle(steps, last=left == 0, stores=stores)

    async def cycle(self, steps=None, receivers=None, last=False, of=None, stores=None):
        """Spends a cycle, and compares what each store sees."""
        dut, rng, steps = self.dut, self.rng, steps or {}
        stores = steps.get("takes_first", stores)
        if "takes_word" in steps:
            self.due(1)["word_valid"] = stores
        if last:
            self.due(1)["last"] = stores
            self.due(1 + self.delay)["sums_valid"] = stores
        shown = self.later.pop(self.now, {})
        want = dict.fromkeys((*STEPS, *LATER, "sums_valid"), 0) | steps | shown
        for name in STEPS:
            getattr(dut, name).value = int(name in steps)
        for name in (*LATER, "sums_valid"):
            getattr(dut, f"s_{name}").value = int(name in shown)
        # Without a packet, the receivers of any.
        some = rng.getrandbits(self.ports + 1), rng.randrange(self.jobs), rng.randrange(self.ethernet)
        dut.s_dest.value, dut.s_job.value, dut.reply_ethernet.value = of or some
        await RisingEdge(dut.clk)
        for name, value in want.items():
            assert number(getattr(dut, f"m_{name}")) == value, f"{name}: want {value:b}"
        if receivers is not None:
            found = number(dut.m_dest)
            width = self.ports + 1
            assert [found >> width * e & (1 << width) - 1 for e in range(self.ethernet)] == receivers
        self.now += 1

    def due(self, cycles):
        return self.later.setdefault(self.now + cycles, {})


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(idle=[0, 0.4])
async def stores_see_their_packets(dut, idle):
    """Packets for any members and replies, back to back and with pauses; members move between packets."""
    rng = random.Random(idle)
    split = Split(dut, rng)
    for job in range(split.jobs):
        for port in range(split.ports):
            split.place(port, job, rng.randrange(split.ethernet))
    await start(dut)
    for _ in range(1500):
        if rng.random() < 0.2:  # the address table changes, also to a port without an entry
            split.place(rng.randrange(split.ports), rng.randrange(split.jobs), rng.randrange(split.ethernet + 1))
        reply = rng.random() < 0.2
        dest = 1 << split.ports if reply else rng.getrandbits(split.ports)
        if rng.random() < 0.3:
            dest &= rng.getrandbits(split.ports + 1) | reply << split.ports
        words = 0 if reply else rng.choice([0, 1, 1, 2, 6])
        await split.packet(dest, rng.randrange(split.jobs), rng.randrange(split.ethernet), words, idle)
        while rng.random() < idle:
            await split.cycle()
    for _ in range(split.delay + 3):
        await split.cycle()
    assert not split.later and split.seen[0] and min(split.seen[1:3]) > 50, split.seen


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_forgets_the_packet(dut):
    split = Split(dut, random.Random(1))
    for job in range(split.jobs):
        split.place(0, job, 1)
    await start(dut)
    await split.cycle({"takes_first": 0b10}, of=(1, 0, 0))
    dut.rst.value = 1
    await split.cycle()
    dut.rst.value = 0
    dut.s_word_valid.value = dut.s_last.value = dut.takes_word.value = 1
    await RisingEdge(dut.clk)
    assert number(dut.m_word_valid) == number(dut.m_last) == number(dut.m_takes_word) == 0


@pytest.mark.parametrize("ports, ethernet, jobs, delay", [(4, 2, 1, 6), (5, 4, 3, 7), (16, 8, 2, 8)])
def test_agg_packet_split(ports, ethernet, jobs, delay):
    job_bits = max(1, (jobs - 1).bit_length())
    run(
        "agg_packet_split",
        [leaf("agg_packet_split"), leaf("agg_delay")],
        {"PORTS": ports, "ETHERNET": ethernet, "JOBS": jobs, "JOB_BITS": job_bits, "DELAY": delay},
    )
