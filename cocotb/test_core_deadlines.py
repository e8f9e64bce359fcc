"""Deadlines and lags, leaf by leaf: which slots are overdue, and how late each rank contributes."""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from bench import leaf, run, start


def mask(slots):
    return sum(1 << slot for slot in slots)


# agg_deadlines

IDLE, COLLECTING, CLOSED, STALLED = "idle", "collecting", "closed", "stalled"


class Slot:
    """A slot's timing."""

    def __init__(self):
        self.state, self.job = IDLE, 0
        self.began = None  # cycle in which its running deadline began, or None
        self.pauses = 0  # since it became overdue


class Times:
    """When each slot's time began, and whether the slot is overdue."""

    def __init__(self, slots, deadlines):
        self.slots = [Slot() for _ in range(slots)]
        self.deadlines = deadlines  # per job; 0: none

    def late(self, slot, cycle):
        """Returns how many cycles the slot has been overdue, or None."""
        deadline = self.deadlines[slot.job]
        if slot.began is None or not deadline or cycle - slot.began < deadline:
            return None
        return cycle - slot.began - deadline

    def event(self, event, number, job, cycle):
        slot = self.slots[number]
        if event == "turn_over":
            slot.state, slot.job, slot.began = COLLECTING, job, cycle
        elif event == "close":
            slot.state, slot.began = CLOSED, None
        elif event == "stall" and slot.state == CLOSED:
            slot.state, slot.began = STALLED, cycle

    def flush(self, numbers):
        for number in numbers:
            self.slots[number].state, self.slots[number].began = IDLE, None

    def watch(self, cycle, pause, acted):
        """Checks, every cycle, that no slot stays overdue for too long.

        The limit is one scan of all slots, plus four cycles for each overdue slot that is found,
        itself included; packets pause in two of these.
        """
        for number, slot in enumerate(self.slots):
            late = self.late(slot, cycle)
            slot.pauses = slot.pauses if late else 0
            if late is not None:
                slot.pauses += pause
                # A slot is found in the cycle before its pause.
                most = len(self.slots) + 2 * slot.pauses + int(number != acted)
                assert late <= most, f"slot {number} is overdue for {late} cycles, at most {most} are allowed"


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(longest=[3, 30, 300])
async def what_waits_for_too_long_is_found(dut, longest):
    """Slots turn over, close, stall and are flushed; every act is right, follows its pause, and
    is in time."""
    rng = random.Random(longest)
    slots, jobs = len(dut.flush_slots), len(dut.job_deadline) // 32
    for name in ("turn_over", "close", "stall", "flush", "flush_slots"):
        getattr(dut, name).value = 0
    times, acts, restarts = Times(slots, [0] * jobs), 0, 0
    paused = 0  # cycles of the current pause
    dut.job_deadline.value = 0
    await start(dut)
    busy = 1.0
    for cycle in range(4000):
        if cycle % 400 == 0:
            # All jobs end; others begin, with their own deadlines.
            busy = rng.choice([0.02, 0.2, 1.0])
            ended = set(range(jobs))
        else:
            ended = {j for j in range(jobs) if rng.random() < 0.5} if rng.random() < 0.01 else set()
        flushed = {s for s, slot in enumerate(times.slots) if slot.job in ended}
        events, number, job = set(), rng.randrange(slots), rng.randrange(jobs)
        if paused < 2 and job not in ended and number not in flushed and rng.random() < busy:
            events, job = random_events(rng, times.slots[number], job)
        for name in ("turn_over", "close", "stall"):
            getattr(dut, name).value = int(name in events)
        dut.slot.value, dut.job.value, dut.flush_slots.value = number, job, mask(flushed)
        dut.flush.value = mask(ended)
        await FallingEdge(dut.clk)
        acted = int(dut.act_slot.value) if int(dut.act.value) else None
        if acted is not None:
            slot = times.slots[acted]
            assert paused == 2, "packets were not kept from being judged"
            assert times.late(slot, cycle) is not None and acted not in flushed, f"slot {acted} is not overdue"
            assert int(dut.act_job.value) == slot.job
            acts += 1
        pause = int(dut.pause.value)
        paused = paused + 1 if pause else 0
        assert int(dut.act_next.value) == (paused == 2) and paused <= 2
        times.watch(cycle, pause, acted)
        if acted is not None:
            # Jobs with an odd number act as with partial sums: the act closes their slots.
            # Otherwise the time restarts.
            closes = slot.state == COLLECTING and slot.job % 2
            dut.slot.value, dut.close.value = acted, int(closes)
            if closes:
                times.event("close", acted, slot.job, cycle)
            else:
                slot.began = cycle
                restarts += 1
        for event in sorted(events, reverse=True):
            times.event(event, number, job, cycle)
        times.flush(flushed)
        await RisingEdge(dut.clk)
        if cycle % 400 == 0:
            times.deadlines = [rng.choice([0, rng.randint(1, longest), rng.randint(1, longest)]) for _ in range(jobs)]
            dut.job_deadline.value = sum(deadline << 32 * j for j, deadline in enumerate(times.deadlines))
    assert acts > 20 and restarts > 10


def random_events(rng, slot, job):
    """Returns a packet's random events at the slot, and its job."""
    if slot.state == COLLECTING:
        return {"close"}, slot.job
    if slot.state != IDLE and rng.random() < 0.6:
        return {"stall"}, slot.job
    job = job if slot.state == IDLE else slot.job
    return {"turn_over", "close"} if rng.random() < 0.2 else {"turn_over"}, job


@pytest.mark.parametrize("jobs, job_bits, slot_bits", [(1, 1, 1), (4, 2, 3), (2, 1, 5)])
def test_agg_deadlines(jobs, job_bits, slot_bits):
    run(
        "agg_deadlines",
        parameters={"JOBS": jobs, "JOB_BITS": job_bits, "SLOT_BITS": slot_bits},
        testcase=[f"what_waits_for_too_long_is_found/longest={n}" for n in (3, 30, 300)],
    )


# agg_lags


class Lags:
    """The counts of all jobs and ranks."""

    def __init__(self):
        self.since = {}  # per slot: when the chunk's first contribution was stored
        self.counts = {}  # by (job, rank, bucket); cleared counts exist too

    def clear(self, job, ranks):
        self.counts |= {(job, rank, bucket): 0 for rank in range(ranks) for bucket in range(16)}

    def store(self, now, first, slot, job, rank):
        """Counts a stored contribution; returns its bucket."""
        if first:
            self.since[slot] = now
        lag = now - self.since[slot]
        bucket = 0 if lag == 0 else next((k for k in range(1, 15) if lag < 4**k), 15)
        self.counts[job, rank, bucket] += 1
        return bucket


class LagsBench:
    """Stores contributions and reads a count every cycle; compares it with the count three
    cycles earlier."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.model = dut, rng, Lags()
        self.jobs, self.ranks, self.slots = (1 << len(signal) for signal in (dut.job, dut.rank, dut.slot))
        self.now = 0  # the leaf's clock, except for its start
        self.past = []  # the counts before this cycle, and before the previous two
        self.looked_at, self.buckets = None, set()
        dut.store.value = dut.turn_over.value = dut.clear.value = 0

    async def cycle(self, slot=None, first=False, job=0, rank=0, later=0):
        """Runs a cycle, which stores a contribution if slot is given; later: cycles to skip on
        the clock."""
        dut = self.dut
        dut.store.value, dut.turn_over.value = int(slot is not None), int(first)
        dut.slot.value, dut.job.value, dut.rank.value = slot or 0, job, rank
        looks_at = self.look(job, rank)
        await FallingEdge(dut.clk)
        if later:
            dut.now_reg.value = (int(dut.now_reg.value) + later) % 2**32
            self.now += later
        self.past = [*self.past[-2:], dict(self.model.counts)]
        then = self.past[0]
        if self.looked_at in then:
            shown, want = int(dut.value.value), then[self.looked_at]
            assert shown == want, f"{self.looked_at}: {shown}, want {want}"
        self.looked_at = looks_at
        if slot is not None:
            self.buckets.add(self.model.store(self.now, first, slot, job, rank))
        await RisingEdge(dut.clk)
        self.now += 1

    def look(self, job, rank):
        """Selects a count to read, often one about to be incremented."""
        if not self.model.counts:
            return None
        likely = (job, rank, self.rng.randrange(4))
        of = likely if self.rng.random() < 0.5 else self.rng.choice(list(self.model.counts))
        self.dut.rd_job.value, self.dut.rd_rank.value, self.dut.rd_bucket.value = of
        return of

    async def store(self, jobs):
        """Stores a job's contribution in any slot, or none; sometimes several equal ones back to
        back."""
        rng = self.rng
        if not jobs or rng.random() < 0.3:
            await self.cycle()
            return 1
        slot, job, rank = rng.randrange(self.slots), rng.choice(jobs), rng.randrange(self.ranks)
        first = slot not in self.model.since or rng.random() < 0.3
        times = rng.choice([1, 1, 1, 2, 3, 6])
        for _ in range(times):
            await self.cycle(slot, first, job, rank)
        return times

    async def clear(self, job, others):
        """Sets the job up while others run: clears a count per cycle, except when another job's
        count is written."""
        dut = self.dut
        for counts in (self.model.counts, *self.past):
            for of in [of for of in counts if of[0] == job]:
                del counts[of]
        dut.clear.value, dut.clear_job.value = 1, job
        await self.cycle()
        dut.clear.value = 0
        stored = sum(self.model.counts.values())
        cycles = await self.store(others)
        assert not int(dut.ready.value), "ready before a count is cleared"
        while not int(dut.ready.value):
            cycles += await self.store(others)
            # The bench polls every few cycles.
            most = 16 * self.ranks + sum(self.model.counts.values()) - stored + 8
            assert cycles <= most, f"not ready after {cycles} cycles"
        self.model.clear(job, self.ranks)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def lags_are_counted_by_job_and_rank(dut):
    """Counts stay right back to back, while they are read, and while another job is set up."""
    rng = random.Random(1)
    bench = LagsBench(dut, rng)
    await start(dut)
    jobs = []
    for job in range(bench.jobs):
        await bench.clear(job, jobs)
        jobs.append(job)
    for _ in range(6):
        for _ in range(300):
            await bench.store(jobs)
        job = rng.choice(jobs)
        await bench.clear(job, [other for other in jobs if other != job])
    assert bench.buckets >= {0, 1, 2, 3}


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_bucket_has_its_bounds(dut):
    rng = random.Random(2)
    bench = LagsBench(dut, rng)
    await start(dut)
    for job in range(bench.jobs):
        await bench.clear(job, [])
    for lag in sorted({1, 2**32 - 1, *(4**k - d for k in range(1, 16) for d in (0, 1))}):
        slot, job, rank = rng.randrange(bench.slots), rng.randrange(bench.jobs), rng.randrange(bench.ranks)
        await bench.cycle(slot, True, job, rank)
        await bench.cycle(slot, False, job, rank, later=lag - 1)
    assert bench.buckets == set(range(16))
    for of in list(bench.model.counts):
        dut.rd_job.value, dut.rd_rank.value, dut.rd_bucket.value = of
        dut.store.value = 0
        for _ in range(4):
            await RisingEdge(dut.clk)
        assert int(dut.value.value) == bench.model.counts[of]


@pytest.mark.parametrize("rank_bits, job_bits, slot_bits", [(1, 1, 1), (3, 2, 4)])
def test_agg_lags(rank_bits, job_bits, slot_bits):
    run(
        "agg_lags",
        [leaf("agg_lags"), leaf("agg_ram")],
        parameters={"RANK_BITS": rank_bits, "JOB_BITS": job_bits, "SLOT_BITS": slot_bits},
        testcase=["lags_are_counted_by_job_and_rank", "every_bucket_has_its_bounds"],
    )
