"""Several jobs on one card: their packets, slots, counts and lifetimes stay separate.

First one packet at a time, compared with the model. Then workers of all jobs run at once, while
jobs end in various ways. New jobs replace them on other ports and slots, and late packets of
ended jobs keep arriving.
"""

import random

import cocotb
import pytest
from cocotb.triggers import Combine, Lock

import model
import zwire
from bench import wait_cycles
from cards import BareCard, LinkCard, manifest, run_card, usual
from streams import PATTERNS
from traffic import TOKEN, Traffic, data_header, elements
from workers import Reduction, deliver

CARDS = {
    "two": ["-jobs", 2, "-lanes", 2, "-workers", 3, "-chunk", 8, "-window", 4, "-shell", "none", "-registers", "bus"],
    "four": ["-jobs", 4, "-lanes", 1, "-workers", 4, "-chunk", 2, "-window", 4, "-sum", "exact", "-shell", "none", "-registers", "bus"],
    "two_link": ["-jobs", 2, "-lanes", 1, "-workers", 3, "-chunk", 6, "-window", 2, "-shell", "stream"],
    "four_link": ["-jobs", 4, "-lanes", 2, "-workers", 4, "-chunk", 8, "-window", 4, "-link", 64, "-shell", "stream"],
}


@pytest.mark.parametrize("card", usual(CARDS, "two", "two_link"))
def test_top_jobs(card):
    run_card(f"jobs_{card}", CARDS[card])


def connect(dut, idle="never", stall="never"):
    shell = BareCard if manifest()["shell"] == "none" else LinkCard
    return shell(dut, PATTERNS[idle], PATTERNS[stall])


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(idle=["never", "bursts"], stall=["at_random"])
async def answers_like_the_model(dut, idle, stall):
    card = connect(dut, idle, stall)
    await card.reset()
    traffic = Traffic(card, random.Random(f"{idle} {stall}"))
    for _ in range(80):
        await traffic.step()
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def slots_are_the_first_that_are_free(dut):
    """Jobs with random windows come and go; a job without free slots is refused."""
    rng = random.Random(4)
    card = connect(dut)
    await card.reset()
    blocks, refused = card.model.blocks, 0
    for epoch in range(1, 60):
        job = rng.randrange(card.jobs)
        if blocks[job].job and rng.random() < 0.6:
            await card.write("JOB_ABORT", job << 48 | blocks[job].last_epoch << 32)
        else:
            window = 1 << rng.randrange(card.window.bit_length())
            await card.set_up(epoch, ports=rng.randint(1, (1 << card.ports) - 1), window=window, token=TOKEN, job=job)
            refused += blocks[job].last_epoch != epoch
        for number in range(card.jobs):
            for name in ("JOB_STATE", "JOB_SLOTS", "JOB_MEMBERS"):
                await card.read(name, number)
    assert refused > 5


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def the_same_vids_of_all_jobs_do_not_meet(dut):
    """All jobs use all ports and one epoch; every rank sends each chunk for all jobs in turn."""
    rng = random.Random(5)
    card = connect(dut)
    await card.reset()
    window = card.window // card.jobs
    for job in range(card.jobs):
        await card.set_up(1, window=window, first=2**32 - 2, token=TOKEN, job=job)
    for vid in range(2**32 - 2, 2**32 + window):
        for rank in range(card.ports):
            for job in rng.sample(range(card.jobs), card.jobs):
                header = data_header(card, rank, vid, epoch=1, job=job) | {"flags": rng.choice(model.ECN_ORDER)}
                await card.exchange(rank, header, elements(rng, card.chunk, card.format))
    await card.check_registers()


class Lives:
    """Runs successive jobs under all numbers at once."""

    MOST_CYCLES = 400  # before a job is ended

    def __init__(self, card, rng):
        self.card, self.rng = card, rng
        self.registers = Lock()  # one access at a time; the staged registers belong to one job
        self.reductions = []  # includes ended jobs
        self.whole = 0  # jobs that ended because all had finished
        cocotb.start_soon(deliver(card, self.reductions))

    async def live(self, job, count):
        """Runs count jobs under the number, one after another."""
        last, epoch = None, self.rng.getrandbits(16)
        for _ in range(count):
            epoch = (epoch + self.rng.choice([1, 2, 1000])) % 2**16
            last = await self.begin(job, epoch, last)
            reducing = cocotb.start_soon(last.reduce())
            if self.rng.random() < 0.6:
                await reducing
                await self.finish(last)
            else:
                await wait_cycles(self.card.dut, self.rng.randint(1, self.MOST_CYCLES))
                if self.rng.random() < 0.5:
                    await self.abort(last)
                # Otherwise the next job replaces it while it runs.
        await self.abort(last)

    async def begin(self, job, epoch, last):
        """Sets up a job that fits among the others and replaces the last one, which leaves late
        packets."""
        while True:
            reduction = self.some_job(job, epoch)
            async with self.registers:
                begun = await reduction.set_up(TOKEN)
                if begun:
                    self.reductions.append(reduction)
                    await self.read_block(job)
            if last is not None and (begun or last.ended):
                last.ended = True
                for _ in range(self.rng.randint(0, 4)):
                    last.late()
            if begun:
                return reduction
            await wait_cycles(self.card.dut, 100)

    def some_job(self, job, epoch):
        rng, card = self.rng, self.card
        return Reduction(
            card,
            rng,
            chunks=rng.randint(1, 14),
            epoch=epoch,
            job=job,
            ports=rng.randint(1, (1 << card.ports) - 1),
            chunk=card.lanes * rng.randint(1, card.chunk // card.lanes),
            window=1 << rng.randrange(card.window.bit_length()),
            first=rng.choice([0, 2**32 - 3, rng.getrandbits(32)]),
        )

    async def read_block(self, job):
        """Reads the registers that only register accesses and the last finish change."""
        for name in ("JOB_STATE", "JOB_MEMBERS", "JOB_SLOTS"):
            await self.card.read(name, job)

    async def abort(self, reduction):
        async with self.registers:
            await self.card.write("JOB_ABORT", reduction.job << 48 | reduction.epoch << 32)
            reduction.ended = True
            await self.read_block(reduction.job)

    async def finish(self, reduction):
        """All ranks finish, which ends the job; checks its counts in the registers."""
        self.whole += 1
        async with self.registers:
            await reduction.finish()
            for rank, port in enumerate(reduction.members):
                header = reduction.header(zwire.KIND_FINISH, rank, 0) | {"version": zwire.VERSION}
                self.card.model.packet(port, header)
            await self.read_block(reduction.job)
            await self.card.read("JOB_FINISHED", reduction.job)
            found = {name: await self.held(name, reduction.job) for name in model.JOB_COUNTS}
        counts = reduction.counts()
        assert {name: found[name] for name in counts} == counts
        for name in counts:
            first = found[name.replace("JOB_", "JOB_FIRST_").replace("NONFINITE_", "")]
            assert first >> 63 == (counts[name] > 0)
            chunk = (first - reduction.first) % 2**32
            if name == "JOB_NONFINITE_IN" and first:
                assert reduction.data.strange(chunk)[first >> 32 & 0xFF]
            elif first:
                assert reduction.data.strange_sums(chunk)[name == "JOB_OVERFLOW"]

    async def held(self, name, job):
        """Returns the value of a register that the model does not follow."""
        reply = await self.card.register({"kind": zwire.KIND_REGREAD, "vid": model.address_of(name, job), "length": 0})
        return reply["mask"]


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize((("idle", "stall"), [("never", "never"), ("bursts", "at_random")]))
async def jobs_come_and_go_beside_one_another(dut, idle, stall):
    rng = random.Random(f"{idle} {stall}")
    card = connect(dut, idle, stall)
    await card.reset()
    lives = Lives(card, rng)
    await Combine(*[cocotb.start_soon(lives.live(job, 6)) for job in range(card.jobs)])
    await card.quiet()
    assert lives.whole > 1


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_link_that_goes_down_ends_all_jobs(dut):
    """The link falls while all jobs' workers are busy; packets in ports' queues, or partly sent,
    may still arrive."""
    rng = random.Random(6)
    card = connect(dut)
    await card.reset()
    reductions = []
    cocotb.start_soon(deliver(card, reductions))
    for epoch in range(1, 9):
        fresh = [Reduction(card, rng, 20, epoch, job, window=max(1, card.window // card.jobs)) for job in range(card.jobs)]
        for reduction in fresh:
            assert await reduction.set_up(TOKEN + epoch)
        reductions += fresh
        running = [cocotb.start_soon(reduction.reduce()) for reduction in fresh]
        await wait_cycles(dut, rng.randint(1, 200))
        for reduction in fresh:
            reduction.ended = True
        await card.link_fails(rng.choice([1, 2, 60]))
        await Combine(*running)
        await card.quiet()
        for job in range(card.jobs):
            for name in ("JOB_STATE", "JOB_SLOTS", "JOB_FINISHED", "JOB_MEMBERS"):
                await card.read(name, job)
        await card.read("OWNER")
        await card.read("link_down")
