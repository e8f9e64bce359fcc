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
PER_FOUND = 10  # cycles for each slot found overdue, in addition to its cycle of the scan
TO_EVENT = 6  # cycles from a grant to the event


class Slot:
    """A slot's timing."""

    def __init__(self):
        self.state, self.job = IDLE, 0
        self.began = None  # cycle in which its running deadline began, or None
        self.found = 0  # slots found overdue since it became overdue, itself included
        self.waited = 0  # cycles in which a found slot waited for its grant since then


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
        elif event == "stall":
            slot.state, slot.began = STALLED, cycle

    def clear(self, number):
        self.slots[number].state, self.slots[number].began = IDLE, None

    def watch(self, cycle, found, waits, ending):
        """Checks, every cycle, that no slot stays overdue for too long; found: a slot is found
        in this cycle; waits: it waits for its grant; ending: jobs whose slots do not count."""
        for number, slot in enumerate(self.slots):
            late = self.late(slot, cycle) if slot.job not in ending else None
            slot.found, slot.waited = (slot.found + found, slot.waited + waits) if late else (0, 0)
            if late is not None:
                # One may have been found before the slot became overdue.
                most = len(self.slots) + 1 + PER_FOUND * (slot.found + 1) + slot.waited
                assert late <= most, f"slot {number} is overdue for {late} cycles, at most {most} are allowed"


class DeadlinesBench:
    """Drives agg_deadlines as agg_slots, agg_arbiter and agg_jobs do."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.slots, self.jobs = 1 << len(dut.slot), len(dut.flush)
        self.times = Times(self.slots, [0] * self.jobs)
        self.cycles = 0  # since the start
        self.quiet_from = 0  # no packet has its event in this cycle or the one before
        self.granted = None  # cycle of the last grant, until its event
        self.valid_was = False
        self.acts = self.restarts = self.refused = 0
        self.ending = set(range(self.jobs))
        dut.job_deadline.value = dut.clear_slot.value = 0
        dut.flush.value = mask(self.ending)
        self.drive()

    def drive(self, events=(), slot=0, job=0, clear=None):
        dut = self.dut
        for name in ("start", "stop", "acted"):
            getattr(dut, name).value = int(name in events)
        dut.slot.value, dut.job.value = slot, job
        dut.clear.value, dut.clear_slot.value = int(clear is not None), clear or 0

    async def cycle(self, events=(), number=0, job=0, clear=None, grants=True):
        """Runs a cycle with events of a packet, or with a slot being cleared."""
        dut, times, now = self.dut, self.times, self.cycles
        timers = {{"turn_over": "start", "stall": "start", "close": "stop"}[event] for event in events}
        acted = self.granted is not None and now == self.granted + TO_EVENT
        if acted:
            timers = self.act(self.ok_was)
            number, job = int(dut.act_slot.value), int(dut.act_job.value)
        grant = grants and self.valid_was and self.granted is None and self.rng.random() < 0.5
        dut.act_grant.value = int(grant)
        self.drive(timers, number, job, clear)
        await FallingEdge(dut.clk)
        valid = int(dut.act_valid.value)
        assert valid or not grant
        times.watch(now, valid and not self.valid_was, valid and not grant, self.ending)
        self.ok_was = int(dut.act_ok.value)
        self.valid_was = bool(valid) and not grant
        if acted:
            self.granted = None
        if grant:
            self.granted = now
        for event in sorted(events, reverse=True):
            times.event(event, number, job, now)
        if clear is not None:
            times.clear(clear)
        await RisingEdge(dut.clk)
        self.cycles += 1

    def act(self, ok):
        """Returns the events of an act. Jobs with an odd number act as with partial sums: the act
        closes their slots. Otherwise the time restarts."""
        slot, job = int(self.dut.act_slot.value), int(self.dut.act_job.value)
        its = self.times.slots[slot]
        overdue = self.times.late(its, self.cycles) is not None and its.job not in self.ending
        if not ok:
            self.refused += 1
            return set()
        assert overdue and job == its.job, f"slot {slot} is not overdue"
        self.acts += 1
        if its.state == COLLECTING and job % 2:
            self.times.event("close", slot, job, self.cycles)
            return {"acted", "stop"}
        its.began = self.cycles
        self.restarts += 1
        return {"acted"}

    async def packets(self, cycles, busy):
        """Runs cycles, with a packet's event in every second one at most, and none near an act."""
        for _ in range(cycles):
            rng = self.rng
            number, job = rng.randrange(self.slots), rng.randrange(self.jobs)
            near = self.granted is not None and self.cycles - self.granted >= TO_EVENT - 1
            if near or self.cycles < self.quiet_from or rng.random() >= busy:
                await self.cycle()
                continue
            slot = self.times.slots[number]
            if slot.state != IDLE:
                job = slot.job
            events = random_events(rng, slot) if job not in self.ending else set()
            self.quiet_from = self.cycles + 2
            await self.cycle(events, number, job)

    async def end(self, jobs, longest):
        """Ends jobs, clears their slots while nothing is granted, and sets them up again."""
        rng = self.rng
        while self.granted is not None:
            await self.cycle(grants=False)
        self.ending = set(jobs)
        self.dut.flush.value = mask(jobs)
        await self.packets(rng.randrange(12), 0.5)
        while self.granted is not None:
            await self.cycle(grants=False)
        everything = len(self.ending) == self.jobs
        for number, slot in enumerate(self.times.slots):
            if everything or slot.job in self.ending:
                await self.cycle(clear=number, grants=False)
        for _ in range(8):
            await self.cycle(grants=False)
        for job in jobs:
            self.times.deadlines[job] = rng.choice([0, rng.randint(1, longest), rng.randint(1, longest)])
        deadlines = sum(deadline << 32 * j for j, deadline in enumerate(self.times.deadlines))
        self.ending = set()
        self.dut.flush.value, self.dut.job_deadline.value = 0, deadlines
        for _ in range(4):
            await self.cycle(grants=False)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(longest=[3, 30, 300])
async def what_waits_for_too_long_is_found(dut, longest):
    """Slots turn over, close, stall and are cleared; every act is right, and in time."""
    bench = DeadlinesBench(dut, random.Random(longest))
    await start(dut)
    bench.cycles = 0
    for _ in range(30):
        some = [job for job in range(bench.jobs) if bench.rng.random() < 0.3]
        every = list(range(bench.jobs))
        await bench.end(every if bench.cycles == 0 or not some else some, longest)
        await bench.packets(400, bench.rng.choice([0.01, 0.02, 0.2, 1.0]))
    assert bench.acts > 20 and bench.restarts > 10 and (bench.refused or longest > 3)


def random_events(rng, slot):
    """Returns a packet's random events at the slot."""
    if slot.state == COLLECTING:
        return {"close"} if rng.random() < 0.5 else set()
    if slot.state == CLOSED and rng.random() < 0.6:
        return {"stall"}
    return {"turn_over", "close"} if rng.random() < 0.2 else {"turn_over"}


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
    """Stores contributions and reads a count every two cycles; compares it with the count ten
    cycles earlier."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.model = dut, rng, Lags()
        self.jobs, self.ranks, self.slots = (1 << len(signal) for signal in (dut.job, dut.rank, dut.slot))
        self.now = 0  # the leaf's clock, except for its start
        self.past = []  # the counts before this cycle, and before the previous nine
        self.stored = False  # in the last cycle
        self.looks = [None, None, None]  # the counts that were addressed in the last cycles
        self.buckets = set()
        dut.store.value = dut.turn_over.value = dut.clear.value = 0

    async def cycle(self, slot=None, first=False, job=0, rank=0, later=0):
        """Runs a cycle, which stores a contribution if slot is given; later: cycles to skip on
        the clock."""
        dut = self.dut
        dut.store.value, dut.turn_over.value = int(slot is not None), int(first)
        dut.slot.value, dut.job.value, dut.rank.value = slot or 0, job, rank
        self.looks = [*self.looks[-3:], self.look(job, rank)]
        await FallingEdge(dut.clk)
        if later:
            dut.now_reg.value = (int(dut.now_reg.value) + later) % 2**32
            self.now += later
        self.past = [*self.past[-9:], dict(self.model.counts)]
        then, looked_at = self.past[0], self.looks[0]
        if looked_at == self.looks[1] and looked_at in then:
            shown, want = int(dut.value.value), then[looked_at]
            assert shown == want, f"{looked_at}: {shown}, want {want}"
        self.stored = slot is not None
        if self.stored:
            self.buckets.add(self.model.store(self.now, first, slot, job, rank))
        await RisingEdge(dut.clk)
        self.now += 1

    def look(self, job, rank):
        """Selects a count to read for two cycles, often one about to be incremented."""
        if not self.model.counts:
            return None
        if self.looks[-1] and self.looks[-1] != self.looks[-2]:
            return self.looks[-1]
        likely = (job, rank, self.rng.randrange(4))
        of = likely if self.rng.random() < 0.5 else self.rng.choice(list(self.model.counts))
        self.dut.rd_job.value, self.dut.rd_rank.value, self.dut.rd_bucket.value = of
        return of

    async def store(self, jobs):
        """Stores a job's contribution in any slot, or none; sometimes several equal ones, two or
        three cycles apart. Returns the cycles."""
        rng = self.rng
        if not jobs or self.stored or rng.random() < 0.3:
            await self.cycle()
            return 1
        slot, job, rank = rng.randrange(self.slots), rng.choice(jobs), rng.randrange(self.ranks)
        first = slot not in self.model.since or rng.random() < 0.3
        cycles = 0
        for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
            if cycles:
                pause = rng.choice([1, 1, 2])
                for _ in range(pause):
                    await self.cycle()
                cycles += pause
            await self.cycle(slot, first, job, rank)
            cycles += 1
        return cycles

    async def clear(self, job, others):
        """Sets the job up while others run, seven cycles after its last contribution: clears a count
        per cycle, except when another job's count is written."""
        dut = self.dut
        quiet = 0
        while quiet < 7:
            quiet += await self.store(others)
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
    for lag in sorted({2, 2**32 - 1, *(4**k - d for k in range(1, 16) for d in (0, 1))}):
        slot, job, rank = rng.randrange(bench.slots), rng.randrange(bench.jobs), rng.randrange(bench.ranks)
        await bench.cycle(slot, True, job, rank)
        await bench.cycle()
        await bench.cycle(slot, False, job, rank, later=lag - 2)
        for _ in range(3):  # the clock does not skip while a lag is taken
            await bench.cycle()
    assert bench.buckets == set(range(16))
    for of in list(bench.model.counts):
        dut.rd_job.value, dut.rd_rank.value, dut.rd_bucket.value = of
        dut.store.value = 0
        for _ in range(8):
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
