"""Jobs and registers, leaf by leaf: ranks, jobs from set-up to end, the register bank, the
counters."""

import collections
import itertools
import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer

import zwire
from bench import bits, leaf, number, run, start
from streams import PATTERNS, StreamSink, StreamSource


def part(handle, job, jobs):
    """Returns a job's part of a vector of all jobs; job 0 has the lowest bits."""
    width = len(handle) // jobs
    return number(handle) >> width * job & (1 << width) - 1


def joined(handle, values):
    """Drives a vector of all jobs."""
    width = len(handle) // len(values)
    handle.value = sum(int(value) << width * job for job, value in enumerate(values))


def ranks_of(dut, ports, job, jobs):
    """Returns each member port's rank in the job, read from member and rank_of_port."""
    member, ranks = part(dut.member, job, jobs), part(dut.rank_of_port, job, jobs)
    return {p: ranks >> 8 * p & 255 for p in range(ports) if member >> p & 1}


def members_of(ports):
    """Returns the ports in a mask, in ascending order: the port of each rank."""
    return [p for p in range(ports.bit_length()) if ports >> p & 1]


# agg_ranks, agg_port_ranks


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def ranks_follow_the_ports(dut):
    rng = random.Random(1)
    jobs, ports = int(dut.JOBS.value), len(dut.ports)
    dut.start.value = dut.ports.value = dut.job.value = 0
    await start(dut)
    chosen = [list(range(ports)) for _ in range(jobs)]
    for _ in range(40):
        for job in range(jobs):
            assert ranks_of(dut, ports, job, jobs) == {p: rank for rank, p in enumerate(chosen[job])}
        members, job = rng.randint(1, (1 << ports) - 1), rng.randrange(jobs)
        chosen[job] = members_of(members)
        dut.start.value, dut.ports.value, dut.job.value = 1, members, job
        await RisingEdge(dut.clk)
        dut.start.value, dut.ports.value = 0, rng.getrandbits(ports)
        for waited in range(ports + 3):
            await FallingEdge(dut.clk)
            if int(dut.done.value):
                break
            await RisingEdge(dut.clk)
        assert int(dut.done.value), f"not done after {waited} cycles"


@pytest.mark.parametrize("ports, port_bits, jobs, job_bits", [(1, 1, 1, 1), (5, 3, 2, 1), (8, 3, 4, 2)])
def test_agg_ranks(ports, port_bits, jobs, job_bits):
    parameters = {"PORTS": ports, "PORT_BITS": port_bits, "JOBS": jobs, "JOB_BITS": job_bits}
    run("agg_ranks", parameters=parameters, testcase=["ranks_follow_the_ports"])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def ports_become_ranks(dut):
    """A set of ports enters each cycle, and its ranks leave STAGES cycles later."""
    rng = random.Random(2)
    ports, wants = len(dut.ports), collections.deque()
    await start(dut)
    for _ in range(300):
        members = members_of(rng.randint(1, (1 << ports) - 1))
        # A port without a rank keeps its earlier value, which may be anything.
        ranks = {p: members.index(p) if p in members else rng.randrange(ports) for p in range(ports)}
        chosen = rng.getrandbits(ports)
        dut.member.value, dut.ports.value = sum(1 << p for p in members), chosen
        dut.rank_of_port.value = sum(rank << 8 * p for p, rank in ranks.items())
        wants.append(sum(1 << rank for rank, p in enumerate(members) if chosen >> p & 1))
        await FallingEdge(dut.clk)
        if len(wants) > int(dut.STAGES.value):
            assert int(dut.ranks.value) == wants.popleft()
        await RisingEdge(dut.clk)


@pytest.mark.parametrize("ports, port_bits, stages", [(1, 1, 1), (5, 3, 1), (16, 4, 2), (64, 6, 2)])
def test_agg_port_ranks(ports, port_bits, stages):
    parameters = {"PORTS": ports, "PORT_BITS": port_bits, "STAGES": stages}
    run("agg_port_ranks", parameters=parameters, testcase=["ports_become_ranks"])


# agg_jobs

CHUNK, WINDOW, LANES = 24, 8, 4
PARTIAL = 1 << 32  # asks for partial sums, in JOB_DEADLINE


class Job:
    """The expected state of one job number."""

    def __init__(self):
        self.running = self.ever = self.complete = False
        self.epoch, self.setup, self.base = 0, None, 0
        self.finished, self.evicted = set(), set()  # ranks

    def end(self):
        self.running, self.finished = False, set()

    def ranks(self):
        """Returns the ranks that were not evicted."""
        return set(range(self.setup[0].bit_count())) - self.evicted

    def end_if_finished(self):
        """Ends the job if all remaining ranks have finished."""
        if self.finished >= self.ranks():
            self.end()
            self.complete = True

    def slots(self):
        """Returns the mask of the slots that the job has, or had."""
        return ((1 << 2 * self.setup[2]) - 1) << self.base


class Jobs:
    """The expected state of all jobs, from sections 4 and 5 of the specification."""

    def __init__(self, ports, jobs):
        self.ports = ports
        self.jobs = [Job() for _ in range(jobs)]

    def commit(self, number, epoch, setup, whole=-1, same=True):
        """Returns the code of JOB_COMMIT.

        whole: the ports whose members have an address; same: the members' addresses are the running job's.
        """
        members, chunk, window, _, deadline = setup
        if number >= len(self.jobs):
            return zwire.CODE_BAD_JOB
        job = self.jobs[number]
        newer = (epoch - job.epoch) % 2**16
        if job.running and epoch == job.epoch:
            return zwire.CODE_DONE if setup == job.setup and same else zwire.CODE_EPOCH_IN_USE
        if job.ever and (newer == 0 or newer >= 2**15):
            return zwire.CODE_STALE_EPOCH
        if members == 0 or members >> self.ports:
            return zwire.CODE_BAD_PORTS
        if members & ~whole:
            return zwire.CODE_BAD_MEMBER
        if chunk == 0 or chunk % LANES or chunk > CHUNK:
            return zwire.CODE_BAD_CHUNK
        if window == 0 or window & (window - 1) or window > WINDOW:
            return zwire.CODE_BAD_WINDOW
        if deadline >> 33 or deadline == PARTIAL:
            return zwire.CODE_BAD_DEADLINE
        base = self.free(2 * window, job)
        if base is None:
            return zwire.CODE_NO_SLOTS
        job.running = job.ever = True
        job.complete = False
        job.epoch, job.setup, job.base = epoch, setup, base
        job.finished, job.evicted = set(), set()
        return zwire.CODE_DONE

    def free(self, count, job):
        """Returns the first of that many free slots, or None."""
        used = 0
        for other in self.jobs:
            used |= other.slots() if other.running and other is not job else 0
        places = range(0, 2 * WINDOW, count)
        return next((base for base in places if not used >> base & (1 << count) - 1), None)

    def abort(self, number, epoch):
        """Returns the code of JOB_ABORT."""
        if number >= len(self.jobs):
            return zwire.CODE_BAD_JOB
        job = self.jobs[number]
        if job.running and epoch != job.epoch:
            return zwire.CODE_BAD_EPOCH
        job.end()
        return zwire.CODE_DONE

    def end_all(self):
        for job in self.jobs:
            job.end()

    def finish(self, number, rank):
        job = self.jobs[number]
        if job.running:
            job.finished.add(rank)
            job.end_if_finished()

    def evict(self, number, ranks):
        self.jobs[number].evicted |= ranks
        self.jobs[number].end_if_finished()


# The outputs that may change only while no packet is judged, except for those that an eviction
# changes.
STABLE = ("job_valid", "flush", "job_complete", "job_ever", "job_epoch", "job_chunk", "job_last", "job_window")
STABLE += ("slot_mask", "slot_base", "job_first", "job_deadline", "job_partial", "member", "rank_of_port")
EVICTED = ("evicted", "present")


class JobsBench:
    """Drives agg_jobs with commits that are judged for eight cycles, and reductions that take a
    while to drain."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.jobs = len(dut.job_valid)
        self.model = Jobs(len(dut.member) // self.jobs, self.jobs)
        self.touched = range(self.jobs)  # jobs that may change now
        self.forget()
        self.evictions = self.ended_by_eviction = 0
        self.clearing, self.cleared_job = 0, None  # cycles until that job's counts are cleared
        self.judged = []  # for each packet that is judged: cycles until its event
        self.held = True  # in the last cycle
        self.since_clear = 99  # cycles
        self.drained = 0  # jobs that end and have drained
        self.walked = 0  # slots cleared since flush rose
        self.evict_ranks = [0] * int(dut.STAGES.value)  # those of the last cycles
        self.evicting = None  # the evicted ranks, in the cycle of their eviction
        self.stable = [getattr(dut, name) for name in STABLE + EVICTED]
        self.was = None  # the stable outputs' bits, and whether they may change
        self.reduced = False  # reduces was high in the last cycle
        self.everyone = (1 << self.model.ports) - 1
        self.addresses = self.everyone, True  # members_whole and members_same of the next operation
        dut.op_valid.value = dut.finish.value = dut.link_down.value = dut.evict.value = 0
        dut.evict_ranks.value = dut.reduces.value = 0
        dut.idle.value = dut.cleared.value = 1
        dut.drained.value = (1 << self.jobs) - 1

    def forget(self):
        """Forgets the observed ends."""
        self.flushed = self.cleared_slots = self.dropped = self.quiet = 0

    async def cycle(self):
        """Runs a cycle in which each job is drained or not; checks that jobs not in touched do not
        change."""
        dut, rng = self.dut, self.rng
        self.judge()
        drained, reduces = rng.getrandbits(self.jobs), rng.random() < 0.3
        dut.drained.value, dut.reduces.value = drained, int(reduces)
        dut.evict_ranks.value = self.evict_ranks.pop()
        self.evict_ranks.insert(0, rng.getrandbits(self.model.ports) if self.evicting is None else self.evicting)
        await FallingEdge(dut.clk)
        flush, valid = number(dut.flush), number(dut.job_valid)
        self.check_clear(flush, valid)
        self.reduced = reduces
        self.check_stable()
        self.drained = flush & (self.drained | drained)
        self.held = number(dut.hold_commits)
        self.flushed |= flush
        self.dropped |= number(dut.drop_statuses)
        self.quiet |= number(dut.quiet_reg)
        assert not flush & valid, "a job ends and is set up"
        assert number(dut.hold) or not flush
        assert self.held or not number(dut.quiet_reg), "packets are judged though all jobs end"
        for which, job in enumerate(self.model.jobs):
            if which not in self.touched:
                assert valid >> which & 1 == job.running and not flush >> which & 1, f"job {which} is disturbed"
        if self.clearing:
            self.clearing -= 1
            assert number(dut.sets_up_job) == self.cleared_job
            assert not valid >> self.cleared_job & 1, "set up before what was counted is cleared"
            assert not number(dut.op_done)
        sets_up = number(dut.sets_up)
        if sets_up:
            self.clearing, self.cleared_job = rng.choice([0, 1, 4, 9]), sets_up.bit_length() - 1
            assert sets_up == 1 << self.cleared_job and number(dut.sets_up_job) == self.cleared_job
        code = number(dut.op_code) if number(dut.op_done) else None
        await RisingEdge(dut.clk)
        dut.cleared.value = int(not self.clearing)
        return code

    def judge(self):
        """Grants a packet now and then, as agg_arbiter does: none in the cycles after a hold."""
        self.judged = [left - 1 for left in self.judged if left]
        if not self.held and 6 not in self.judged and self.rng.random() < 0.5:
            self.judged.append(7)
        self.dut.idle.value = int(not self.judged)

    async def event_comes(self):
        """Runs cycles until the next one has a packet's event."""
        while 1 not in self.judged:
            await self.cycle()

    def check_clear(self, flush, valid):
        """Checks that a slot is cleared only for a job that has drained, once, and while nothing is
        judged."""
        dut = self.dut
        self.since_clear += 1
        if not flush:
            self.walked = 0
        if not number(dut.clear):
            return
        slot = 1 << number(dut.clear_slot)
        assert number(dut.hold_commits) and not self.judged and not self.reduced
        assert flush and self.drained & flush == flush, "a slot is cleared whose job has not drained"
        assert not self.walked & slot, "a slot is cleared twice"
        assert not any(valid >> n & 1 and job.slots() & slot for n, job in enumerate(self.model.jobs) if job.setup)
        self.walked |= slot
        self.cleared_slots |= slot
        self.since_clear = 0

    def check_stable(self):
        """Checks that no output changes while a packet is judged, except by an eviction."""
        dut = self.dut
        now = [bits(handle) for handle in self.stable]
        if self.was is None or now != self.was[0]:
            assert not any("X" in value for value in now), dict(zip(STABLE + EVICTED, now))
        if self.was:
            was, may_change, evicts = self.was
            if now != was:
                changed = [name for name, a, b in zip(STABLE + EVICTED, was, now) if a != b]
                assert may_change or (evicts and set(changed) <= set(EVICTED)), changed
            if "1" not in now[1] and "1" in was[1]:
                assert self.since_clear > 4, "a job has ended before all slots are cleared"
        self.was = now, number(dut.hold_commits) and not self.judged, number(dut.evict)

    async def operate(self, kind, job, epoch, setup):
        self.ask(kind, job, epoch, setup)
        code = None
        while code is None:
            code = await self.cycle()
        self.let_go()
        return code

    def ask(self, kind, job, epoch, setup):
        """Drives an operation."""
        dut = self.dut
        dut.op_valid.value = 1
        dut.op_commit.value, dut.op_abort.value = int(kind == "commit"), int(kind == "abort")
        dut.op_job.value, dut.op_epoch.value = job, epoch
        dut.op_ports.value, dut.op_chunk.value, dut.op_window.value, dut.op_first.value, dut.op_deadline.value = setup
        dut.members_whole.value, dut.members_same.value = self.addresses

    def let_go(self):
        """Drives no operation, with random values in its fields."""
        self.dut.op_valid.value = 0
        for field in ("op_ports", "op_chunk", "op_window", "op_first", "op_deadline", "op_epoch"):
            getattr(self.dut, field).value = self.rng.getrandbits(16)
        self.dut.members_whole.value = self.rng.getrandbits(self.model.ports)
        self.dut.members_same.value = self.rng.getrandbits(1)

    async def settle(self):
        for _ in range(4):
            await self.cycle()
        while int(self.dut.hold.value):
            await self.cycle()

    def check(self):
        for number, job in enumerate(self.model.jobs):
            self.check_job(number, job)

    def check_job(self, number, job):
        def shown(name):
            return part(getattr(self.dut, name), number, self.jobs)

        assert shown("job_valid") == int(job.running)
        assert shown("job_ever") == int(job.ever)
        assert shown("job_complete") == int(job.complete)
        assert shown("job_epoch") == job.epoch
        assert shown("job_finished") == sum(1 << r for r in job.finished)
        assert shown("job_evicted") == sum(1 << r for r in job.evicted)
        if job.running:
            members, chunk, window, first, deadline = job.setup
            assert shown("job_chunk") == chunk and shown("job_last") == chunk // LANES - 1
            assert shown("job_window") == window and shown("slot_mask") == 2 * window - 1
            assert shown("job_first") == first and shown("slot_base") == job.base
            ranks = {p: r for r, p in enumerate(members_of(members))}
            assert ranks_of(self.dut, self.model.ports, number, self.jobs) == ranks
            evicted = sum(1 << p for p, r in ranks.items() if r in job.evicted)
            assert (shown("evicted"), shown("present")) == (evicted, members & ~evicted)
            assert shown("job_deadline") == deadline % PARTIAL and shown("job_partial") == deadline // PARTIAL

    async def step(self):
        """Applies a random action to a job, or to all."""
        rng, model = self.rng, self.model
        self.forget()
        before = [(job.running, job.epoch, job.running and job.slots()) for job in model.jobs]
        number = rng.randrange(self.jobs)
        asked = rng.choice([number] * 9 + [number + self.jobs])
        job = model.jobs[number]
        action = rng.choice(["commit"] * 20 + ["abort"] * 4 + ["end", "link_down"] + ["finish"] * 12 + ["evict"] * 8)
        self.touched = range(self.jobs) if action in ("end", "link_down") else [number]
        deadline = rng.choice([0, 9, PARTIAL + 9, PARTIAL + 9])
        good = ((1 << model.ports) - 1, CHUNK, rng.choice([1, 1, 1, 2, 4, 8]), 7, deadline)
        setup = job.setup if job.setup and rng.random() < 0.2 else good
        setup = tuple(v if rng.random() < 0.85 else self.wrong(i) for i, v in enumerate(setup))
        epoch = (job.epoch + rng.choice([0, 1, 1, 1, 5, 2**15 - 1, 2**15, -1])) % 2**16
        whole = self.everyone if rng.random() < 0.8 else rng.getrandbits(model.ports)
        self.addresses = whole, rng.random() < 0.7
        code = zwire.CODE_DONE
        if action == "commit":
            code = model.commit(asked, epoch, setup, *self.addresses)
            assert await self.operate(action, asked, epoch, setup) == code
        elif action == "abort":
            assert await self.operate(action, asked, epoch, setup) == model.abort(asked, epoch)
        elif action == "end":
            assert await self.operate(action, asked, epoch, setup) == zwire.CODE_DONE
            model.end_all()
        elif action == "link_down":
            self.dut.link_down.value = 1
            await self.settle()
            self.dut.link_down.value = 0
            model.end_all()
        elif action == "evict":
            await self.evict(number)
        else:
            await self.finish(number)
        await self.settle()
        self.check_ends(action, before)
        self.check()
        return code

    def check_ends(self, action, before):
        """Checks that ended jobs and their slots were flushed. Their statuses were dropped,
        unless all ranks had finished."""
        for number, (job, (running, epoch, slots)) in enumerate(zip(self.model.jobs, before)):
            if not running or (job.running and job.epoch == epoch):
                continue
            assert self.flushed >> number & 1, f"{action} ended job {number} without a flush"
            assert self.cleared_slots == ((1 << 2 * WINDOW) - 1 if self.quiet else slots)
            dropped, kept = self.dropped >> number & 1, action in ("finish", "evict")
            assert dropped != kept, f"{action}: statuses of job {number} dropped: {dropped}"
            assert self.quiet or action not in ("end", "link_down"), "packets are judged though all jobs end"

    async def finish(self, number):
        job = self.model.jobs[number]
        rank = self.rng.choice(sorted(job.ranks()) or [0]) if job.setup else 0
        port = members_of(job.setup[0])[rank] if job.setup else 0
        await self.event_comes()
        self.dut.finish.value, self.dut.finish_job.value = 1, number
        self.dut.finish_bit.value, self.dut.finish_ports.value = 1 << rank, 1 << port
        self.model.finish(number, rank)
        await self.changing()
        self.dut.finish.value = 0

    async def evict(self, number):
        """Evicts some ranks of a job with partial sums; evict_ranks includes the ranks evicted
        earlier."""
        job, dut = self.model.jobs[number], self.dut
        if not job.running or job.setup[4] < PARTIAL:
            return
        left, ports = sorted(job.ranks()), members_of(job.setup[0])
        ranks = set(self.rng.sample(left, self.rng.randint(1, len(left))))
        await self.event_comes()
        dut.evict.value, dut.evict_job.value = sum(1 << ports[r] for r in ranks), number
        self.evicting = sum(1 << r for r in job.evicted | ranks)
        self.model.evict(number, ranks)
        self.evictions += 1
        self.ended_by_eviction += not job.running
        await self.changing()
        dut.evict.value, self.evicting = 0, None

    async def changing(self):
        """Runs the cycle in which the driven inputs change the job."""
        touched, self.touched = self.touched, range(self.jobs)
        await self.cycle()
        self.touched = touched

    def wrong(self, which):
        """Returns another value of members, chunk, window, first VID or deadline, valid or not."""
        rng = self.rng
        values = [
            [0, 1, 1 << self.model.ports, 1 << 63],
            [0, 1, LANES, 2 * LANES, CHUNK + LANES, 1 << 40],
            [0, 1, 2, 3, 2 * WINDOW, 1 << 32],
            [0, 2**32 - 1],
            [0, 2**32 - 1, PARTIAL, 2 * PARTIAL - 1, 2 * PARTIAL, 1 << 63 | 9],
        ]
        return rng.choice(values[which])


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(seed=[1, 2, 3])
async def jobs_live_as_specified(dut, seed):
    bench = JobsBench(dut, random.Random(seed))
    await start(dut)
    await bench.settle()
    bench.check()
    codes = set()
    for _ in range(350):
        codes.add(await bench.step())
    assert zwire.CODE_NO_SLOTS in codes or bench.jobs == 1
    assert zwire.CODE_BAD_DEADLINE in codes and bench.ended_by_eviction
    assert zwire.CODE_BAD_MEMBER in codes
    assert bench.evictions > bench.ended_by_eviction or bench.model.ports == 1


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_commit_ends_with_the_host_that_asked_for_it(dut):
    """The link goes down in any cycle of a commit, with and without running jobs, until all has
    ended.

    Once, when the link went down during a commit, a job without an owner was set up, with
    whatever value op_epoch had then.
    """
    bench = JobsBench(dut, random.Random(5))
    model = bench.model
    everyone = (1 << model.ports) - 1
    setup = (everyone, CHUNK, WINDOW // bench.jobs, 7, PARTIAL + 9)
    await start(dut)
    await bench.settle()
    outcomes = set()
    for trial in range(400):
        running, before = trial % 2 == 0, trial // 2 % 80
        for number, job in enumerate(model.jobs if running else []):
            epoch = (job.epoch + 1) % 2**16
            assert await bench.operate("commit", number, epoch, setup) == model.commit(number, epoch, setup)
            await bench.settle()
        number = trial % bench.jobs
        job = model.jobs[number]
        epochs = (job.epoch, (job.epoch + 1) % 2**16)
        bench.ask("commit", number, epochs[1], setup)
        code = None
        for _ in range(before):
            code = await bench.cycle()
            if code is not None:
                bench.let_go()
                break
        dut.link_down.value = 1
        await bench.cycle()
        bench.let_go()
        settled = 0
        while settled < 3:  # agg_link_session waits until all has ended
            assert await bench.cycle() is None, "an operation is done whose host is gone"
            settled = 0 if int(dut.hold.value) else settled + 1
        dut.link_down.value = 0
        for _ in range(20):
            assert await bench.cycle() is None, "an operation is done whose host is gone"
        assert not int(dut.job_valid.value) and not int(dut.hold.value), "a job without an owner"
        model.end_all()
        now = part(dut.job_epoch, number, bench.jobs)
        outcomes.add((running, code is not None, epochs.index(now)))
        job.epoch, job.ever = now, bool(part(dut.job_ever, number, bench.jobs))
    # The link fell before the new epoch was set, after that, and after the answer.
    assert outcomes >= {(r, *o) for r in (False, True) for o in ((False, 0), (False, 1), (True, 1))}


@pytest.mark.parametrize("ports, port_bits, jobs, job_bits", [(1, 1, 1, 1), (3, 2, 2, 1), (5, 3, 4, 2)])
def test_agg_jobs(ports, port_bits, jobs, job_bits):
    run(
        "agg_jobs",
        [leaf("agg_jobs"), leaf("agg_job_checks"), leaf("agg_job_places"), leaf("agg_ranks")],
        parameters={
            "PORTS": ports,
            "PORT_BITS": port_bits,
            "JOBS": jobs,
            "JOB_BITS": job_bits,
            "CHUNK": CHUNK,
            "WINDOW": WINDOW,
            "SLOT_BITS": 4,
            "INDEX_BITS": 3,
            "LANE_BITS": 2,
            "STAGES": 1 if jobs == 1 else 2,
        },
        simulator="icarus" if jobs == 1 else "verilator",
        testcase=[f"jobs_live_as_specified/seed={seed}" for seed in (1, 2, 3)]
        + ["a_commit_ends_with_the_host_that_asked_for_it"],
    )


# agg_registers

TOKEN = 0x1122_3344_5566_7788
STAGED = {"JOB_TOKEN": "token", "JOB_PORTS": "op_ports", "JOB_CHUNK": "op_chunk", "JOB_WINDOW": "op_window"}
STAGED |= {"JOB_DEADLINE": "op_deadline"}
WRITABLE = [name for name, (_, access, _) in zwire.REGISTERS.items() if access != "RO"]
IDENT = {"LANES": 3, "PORTS": 5, "FORMAT": 0x0101, "SUM": 1, "SHELL": 1, "CHUNK": 99, "WINDOW": 4}
IDENT |= {"LINK": 32, "LATENCY": 13, "CONFIG_HASH": 0x0123_4567_89AB_CDEF}
RANK_BITS = 3  # bits of a rank

# The signals of agg_jobs and agg_job_counts for each job, and the registers that show them
# unchanged.
JOB_SHOWN = {
    "job_finished": "JOB_FINISHED",
    "job_members": "JOB_MEMBERS",
    "job_evicted": "JOB_EVICTED",
    "nonfinite_in": "JOB_NONFINITE_IN",
    "nonfinite_out": "JOB_NONFINITE_OUT",
    "overflows": "JOB_OVERFLOW",
    "first_in": "JOB_FIRST_IN",
    "first_out": "JOB_FIRST_OUT",
    "first_overflow": "JOB_FIRST_OVERFLOW",
}


def lag_address(job, rank, bucket):
    return zwire.REG_JOB_LAG + 0x2000 * job + 0x80 * rank + 8 * bucket


class Bank:
    """The expected registers and replies; agg_jobs' codes come from the bench."""

    def __init__(self, jobs):
        self.owner = self.last_code = 0
        self.staged = dict.fromkeys(STAGED, 0)
        self.constants = IDENT | {"MAGIC": zwire.MAGIC, "VERSION": zwire.VERSION, "JOBS": jobs}
        self.blocks = [{} for _ in range(jobs)]  # each job's registers

    def access(self, name, block, write, value, job, partial=False, stranger=False):
        """Returns the code, the value after the access, and the operation requested of agg_jobs, or
        None.

        block: the job whose block is accessed; job: the operation's code; partial: a write lacks
        bytes; stranger: its host may not write.
        """
        reply = self.perform(name, block, write, value, job, partial, stranger)
        if write:
            self.last_code = reply[0]
        return reply

    def perform(self, name, block, write, value, job, partial, stranger):
        """As access, without LAST_CODE."""
        if name is None:
            return zwire.CODE_BAD_ADDRESS, 0, None
        if not write:
            return zwire.CODE_DONE, self.read(name, block), None
        if partial and name in WRITABLE:
            return zwire.CODE_BAD_LENGTH, 0, None
        if stranger and name in WRITABLE:
            return zwire.CODE_BUSY, 0, None
        if name == "OWNER":
            self.owner = self.owner or value
            return zwire.CODE_DONE, self.owner, None
        if name in STAGED:
            self.staged[name] = value
            return zwire.CODE_DONE, value, None
        if name in ("RELEASE", "RESET"):
            return self.let_go(name, value)
        if name in ("JOB_COMMIT", "JOB_ABORT"):
            if not self.owner or self.staged["JOB_TOKEN"] != self.owner:
                return zwire.CODE_BUSY, 0, None
            return job, 0, name
        return zwire.CODE_READ_ONLY, 0, None

    def let_go(self, name, value):
        if self.owner and value != self.owner:
            return zwire.CODE_BUSY, 0, None
        operation = "END" if self.owner or name == "RESET" else None
        self.owner = 0
        if name == "RESET":
            self.staged = dict.fromkeys(STAGED, 0)
        return zwire.CODE_DONE, 0, operation

    def read(self, name, block):
        return {"OWNER": self.owner, "LAST_CODE": self.last_code, **self.staged, **self.constants, **self.blocks[block]}.get(name, 0)


class RegistersBench:
    def __init__(self, dut, idle, stall, rng):
        self.dut, self.rng, self.bank = dut, rng, Bank(len(dut.job_valid))
        self.accesses = StreamSource(dut, "s_reg", idle, ("write", "addr", "wdata", "partial", "stranger"), "valid", "ready")
        self.answers = StreamSink(dut, "m_reg", stall, ("code", "value"), "valid", "ready")
        self.counters = {}
        self.lags = {}  # the count to be read, by (job, rank, bucket)
        self.job_code, self.operation, self.cleared = 0, None, 0
        dut.link_down.value = dut.op_done.value = dut.op_code.value = 0
        dut.s_code_valid.value = dut.s_code.value = dut.clear_staged.value = 0
        self.show_jobs()
        cocotb.start_soon(self.jobs())

    def show_jobs(self):
        """Drives random job outputs of agg_jobs and agg_job_counts."""
        shown = {name: [] for name in ("job_valid", "job_ever", "job_epoch", "job_base", "job_slots", *JOB_SHOWN)}
        for name, values in shown.items():
            handle = getattr(self.dut, name)
            values += [self.rng.getrandbits(len(handle) // len(self.bank.blocks)) for _ in self.bank.blocks]
            joined(handle, values)
        for number, block in enumerate(self.bank.blocks):
            of = {name: values[number] for name, values in shown.items()}
            block["JOB_STATE"] = number << 32 | of["job_epoch"] << 16 | of["job_ever"] << 1 | of["job_valid"]
            block["JOB_SLOTS"] = (of["job_slots"] << 16 | of["job_base"]) * of["job_valid"]
            block |= {register: of[signal] for signal, register in JOB_SHOWN.items()}
            block["ever"] = of["job_ever"]

    async def jobs(self):
        """Stands in for agg_jobs, agg_counters and agg_lags."""
        dut, looks, indexes = self.dut, [], []
        while True:
            await FallingEdge(dut.clk)
            if self.lags:
                # The value is the count that was selected three cycles ago and in the cycle after that.
                selected = tuple(int(s.value) for s in (dut.lag_job, dut.lag_rank, dut.lag_bucket))
                looks = [*looks[-3:], selected]
                stable = len(looks) == 4 and looks[0] == looks[1]
                dut.lag_value.value = self.lags.get(looks[0] if stable else None, self.rng.getrandbits(32))
            # The counter's value is that of the index three cycles ago.
            indexes = [*indexes[-3:], dut.counter_index.value]
            index = indexes[0]
            dut.counter_value.value = self.counters.get(int(index), 0) if index.is_resolvable else 0
            asked = dut.op_valid.value.is_resolvable and int(dut.op_valid.value)
            done = asked and self.rng.random() < 0.3
            dut.op_done.value, dut.op_code.value = int(done), self.job_code
            if done:
                kind = "JOB_COMMIT" if int(dut.op_commit.value) else "JOB_ABORT" if int(dut.op_abort.value) else "END"
                fields = ("op_job", "op_epoch", "op_first", "op_ports", "op_chunk", "op_window", "op_deadline")
                self.operation = (kind, {f: int(getattr(dut, f).value) for f in fields})
                await Timer(1, "ns")
                self.cleared += int(dut.clear_counters.value)
                await RisingEdge(dut.clk)
                dut.op_done.value = 0

    async def step(self):
        """Makes a random access and compares it with the bank."""
        rng = self.rng
        often = ["OWNER", "JOB_TOKEN", "JOB_COMMIT", "JOB_ABORT", "RELEASE", "LAST_CODE"]
        often += ["counter", "JOB_LAG", "JOB_LAG", None]
        name = rng.choice([*zwire.REGISTERS, *often])
        self.lags = {}
        write = rng.random() < 0.5
        value = rng.choice([TOKEN, TOKEN, 0, rng.getrandbits(64)])
        address, block = zwire.REGISTERS[name][0] if name in zwire.REGISTERS else None, 0
        if name in self.bank.blocks[0]:
            block = rng.randrange(len(self.bank.blocks))
            address += zwire.REG_JOB_STRIDE * block
        if name == "counter":
            index = rng.randrange(len(zwire.COUNTER_NAMES))
            self.counters = {index: rng.getrandbits(32)}
            self.bank.constants["counter"] = self.counters[index]
            address = zwire.REG_COUNTERS + 8 * index
        elif name == "JOB_LAG":
            block, rank, bucket = rng.randrange(len(self.bank.blocks)), rng.randrange(IDENT["PORTS"]), rng.randrange(16)
            self.lags = {(block, rank, bucket): rng.getrandbits(32)}
            # The lags of a job number that was never set up read as 0.
            self.bank.constants["JOB_LAG"] = self.lags[block, rank, bucket] * self.bank.blocks[block]["ever"]
            address = lag_address(block, rank, bucket)
        elif name is None:
            known = {a for a, _, _ in zwire.REGISTERS.values()}
            after = zwire.REG_COUNTERS + 8 * len(zwire.COUNTER_NAMES)
            behind = zwire.REG_JOBS_BASE + zwire.REG_JOB_STRIDE * len(self.bank.blocks)
            unknown = [4, 0x0F8, after, after + 8, 0x401, rng.getrandbits(32) | 1 << 20, 1 << 31]
            unknown += [behind, behind + 0x20, behind - 8, zwire.REG_JOB_EVICTED + 8, zwire.REG_JOB_STATE - 8]
            unknown += [zwire.REG_JOB_LAG - 8, lag_address(0, 1, 2) + 4, lag_address(0, IDENT["PORTS"], 0)]
            unknown += [lag_address(len(self.bank.blocks), 0, 0), lag_address(len(self.bank.blocks) - 1, 63, 15)]
            address = rng.choice(unknown)
            assert address not in known
        self.job_code = rng.choice([zwire.CODE_DONE, zwire.CODE_STALE_EPOCH])
        self.operation, self.cleared = None, 0
        ends = name in ("RELEASE", "RESET")
        self.job_code = zwire.CODE_DONE if ends else self.job_code
        staged = dict(self.bank.staged)
        partial = rng.random() < 0.1  # of no meaning to a read
        stranger = rng.random() < 0.1
        code, after, operation = self.bank.access(name, block, write, value, self.job_code, partial, stranger)
        beat = {"write": int(write), "addr": address, "wdata": value}
        self.accesses.put(beat | {"partial": int(partial), "stranger": int(stranger)})
        (answer,) = await self.answers.take(1)
        what = f"{'write' if write else 'read'} of {name} at {address:#x}: {answer}"
        assert answer["code"] == code, f"{what}, want code {code}"
        if name != "CYCLES" or write:
            assert answer["value"] == after, f"{what}, want {after:#x}"
        assert (self.operation and self.operation[0]) == operation, what
        if operation in ("JOB_COMMIT", "JOB_ABORT"):
            fields = self.operation[1]
            assert fields["op_job"] == value >> 48 & 255 and fields["op_epoch"] == value >> 32 & 0xFFFF
            assert fields["op_first"] == value & 0xFFFF_FFFF
            assert all(fields[f] == staged[n] for n, f in STAGED.items() if f != "token")
        assert self.cleared == int(name == "RESET" and operation is not None)
        assert int(self.dut.op_ports.value) == self.bank.staged["JOB_PORTS"]

    async def shell(self):
        """Between accesses, the shell reports a write of its own, or clears what is staged."""
        dut, code = self.dut, self.rng.choice([zwire.CODE_DONE, zwire.CODE_BUSY, zwire.CODE_BAD_DEADLINE])
        await ClockCycles(dut.clk, 2)
        assert int(dut.owned.value) == int(self.bank.owner != 0)
        if self.rng.random() < 0.5:
            dut.s_code_valid.value, self.bank.last_code = 1, code
        else:
            dut.clear_staged.value, self.bank.staged = 1, dict.fromkeys(STAGED, 0)
        dut.s_code.value = code
        await RisingEdge(dut.clk)
        dut.s_code_valid.value = dut.clear_staged.value = 0
        dut.s_code.value = self.rng.getrandbits(8)


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def registers_do_as_specified(dut, idle, stall):
    rng = random.Random(f"{idle} {stall}")
    bench = RegistersBench(dut, PATTERNS[idle](), PATTERNS[stall](), rng)
    await start(dut)
    for _ in range(180):
        if rng.random() < 0.1:
            bench.show_jobs()
        if rng.random() < 0.15:
            await bench.shell()
        await bench.step()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_link_that_goes_down_clears_the_owner(dut):
    """An answer that was not taken waits on, unchanged."""
    quiet(dut)
    dut.m_reg_ready.value = 0
    await start(dut)
    await access(dut, 1, zwire.REG_OWNER, TOKEN)
    dut.link_down.value = 1
    for _ in range(20):
        assert answer_of(dut) == (1, zwire.CODE_DONE, TOKEN)
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
    dut.link_down.value = 0
    dut.m_reg_ready.value = 1
    await RisingEdge(dut.clk)
    await access(dut, 0, zwire.REG_OWNER, 0)
    assert answer_of(dut) == (1, zwire.CODE_DONE, 0)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_write_that_meets_a_link_that_is_down_is_busy(dut):
    """The link falls at any moment of a write: it is done whole, or not at all and answered `busy`.
    An operation of agg_jobs is cancelled. Reads go on.
    """
    quiet(dut)
    dut.m_reg_ready.value = 1
    await start(dut)

    async def done(write, register, value):
        await access(dut, write, register, value)
        code, after = int(dut.m_reg_code.value), int(dut.m_reg_value.value)
        await RisingEdge(dut.clk)
        assert code == zwire.CODE_DONE
        return after

    seen = set()
    writes = {"OWNER": (zwire.REG_OWNER, TOKEN), "JOB_WINDOW": (zwire.REG_JOB_WINDOW, 99)}
    writes |= {"RESET": (zwire.REG_RESET, TOKEN), "JOB_COMMIT": (zwire.REG_JOB_COMMIT, 1 << 32)}
    for (name, (address, value)), moment in itertools.product(writes.items(), range(9)):
        await done(1, zwire.REG_JOB_TOKEN, TOKEN)
        await done(1, zwire.REG_JOB_WINDOW, 7)
        if name != "OWNER":
            assert await done(1, zwire.REG_OWNER, TOKEN) == TOKEN
        dut.s_reg_valid.value, dut.s_reg_write.value = 1, 1
        dut.s_reg_addr.value, dut.s_reg_wdata.value = address, value
        replies, cleared = [], 0
        for cycle in range(14):
            dut.link_down.value = int(cycle >= moment)
            await FallingEdge(dut.clk)
            cleared |= int(dut.clear_counters.value)
            if int(dut.m_reg_valid.value):
                replies.append((int(dut.m_reg_code.value), int(dut.m_reg_value.value)))
            await RisingEdge(dut.clk)
            dut.s_reg_valid.value = 0
        assert not cleared and len(replies) == 1, f"{name}, link down in cycle {moment}: {replies}"
        (code, after), last = replies[0], await done(0, zwire.REG_LAST_CODE, 0)
        staged = await done(0, zwire.REG_JOB_WINDOW, 0)
        seen.add((name, code))
        assert last == code and after == (value if code == zwire.CODE_DONE else 0)
        assert staged == (99 if (name, code) == ("JOB_WINDOW", zwire.CODE_DONE) else 7)
        assert await done(0, zwire.REG_OWNER, 0) == 0
        dut.link_down.value = 0
    # agg_jobs never completes an operation in this bench.
    whole = {(name, zwire.CODE_DONE) for name in ("OWNER", "JOB_WINDOW")}
    assert seen == whole | {(name, zwire.CODE_BUSY) for name in writes}


def quiet(dut):
    """Drives no access, no operation's end and nothing of the shell."""
    idle = ("op_done", "op_code", "link_down", "s_reg_valid", "s_reg_partial", "s_reg_stranger")
    for name in (*idle, "s_code_valid", "clear_staged"):
        getattr(dut, name).value = 0


def answer_of(dut):
    return int(dut.m_reg_valid.value), int(dut.m_reg_code.value), int(dut.m_reg_value.value)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_lag_is_read_three_cycles_later(dut):
    """The value of a lag is valid only in the third cycle after its selection."""
    quiet(dut)
    dut.m_reg_ready.value = 1
    dut.job_ever.value = (1 << len(dut.job_ever)) - 1
    await start(dut)
    for rank in range(IDENT["PORTS"]):
        cocotb.start_soon(count_follows_its_selection(dut, (0, rank, 7), rank))
        await access(dut, 0, lag_address(0, rank, 7), 0)
        assert (int(dut.m_reg_valid.value), int(dut.m_reg_value.value)) == (1, rank)
        await RisingEdge(dut.clk)
        await access(dut, 0, zwire.REG_LANES, 0)
        assert (int(dut.m_reg_valid.value), int(dut.m_reg_value.value)) == (1, IDENT["LANES"])
        await RisingEdge(dut.clk)


async def count_follows_its_selection(dut, which, count):
    """Checks that the lag is selected from the access's first cycle to its fourth; drives its count
    in the fourth alone."""
    dut.lag_value.value = 1000
    await RisingEdge(dut.clk)
    for cycle in range(4):
        dut.lag_value.value = count if cycle == 3 else 1000
        await FallingEdge(dut.clk)
        assert (int(dut.lag_job.value), int(dut.lag_rank.value), int(dut.lag_bucket.value)) == which
        await RisingEdge(dut.clk)
    dut.lag_value.value = 1000


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def an_address_that_is_one_bit_off_is_another(dut):
    """Flips each bit of every register's address: only another register's address may be
    answered."""
    quiet(dut)
    dut.m_reg_ready.value = 1
    jobs = len(dut.job_valid)
    shown = ["JOB_STATE", "JOB_SLOTS", *JOB_SHOWN.values()]
    of_jobs = {zwire.REGISTERS[name][0] + zwire.REG_JOB_STRIDE * job for name in shown for job in range(jobs)}
    others = {address for name, (address, _, _) in zwire.REGISTERS.items() if name not in (*shown, "JOB_LAG")}
    counts = {zwire.REG_COUNTERS + 8 * index for index in range(len(zwire.COUNTER_NAMES))}
    lags = {lag_address(job, rank, n) for job in range(jobs) for rank in range(IDENT["PORTS"]) for n in range(16)}
    known = of_jobs | others | counts | lags
    await start(dut)
    for address in sorted(of_jobs | others | {max(counts), min(lags), max(lags)}):
        for off in {address ^ 1 << bit for bit in range(32)} - known:
            for write in (0, 1):
                await access(dut, write, off, TOKEN)
                answer = int(dut.m_reg_valid.value), int(dut.m_reg_code.value), int(dut.m_reg_value.value)
                assert answer == (1, zwire.CODE_BAD_ADDRESS, 0), f"{off:#x}, beside {address:#x}: {answer}"
                await RisingEdge(dut.clk)


async def access(dut, write, address, value):
    """Makes an access and returns in the cycle in which its answer is due."""
    dut.s_reg_valid.value, dut.s_reg_write.value = 1, write
    dut.s_reg_addr.value, dut.s_reg_wdata.value = address, value
    await RisingEdge(dut.clk)
    dut.s_reg_valid.value = 0
    for _ in range(5):
        await FallingEdge(dut.clk)
        assert not int(dut.m_reg_valid.value), "answered too early"
        await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)


@pytest.mark.parametrize("jobs, job_bits", [(1, 1), (4, 2)])
def test_agg_registers(jobs, job_bits):
    run(
        "agg_registers",
        parameters={name: f"64'd{value}" for name, value in (IDENT | {"JOBS": jobs}).items()}
        | {"JOB_BITS": job_bits, "RANK_BITS": RANK_BITS},
        simulator="icarus" if jobs == 1 else "verilator",
        testcase=[f"registers_do_as_specified/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS if jobs > 1 or i == s]
        + ["a_link_that_goes_down_clears_the_owner", "a_lag_is_read_three_cycles_later"]
        + ["an_address_that_is_one_bit_off_is_another", "a_write_that_meets_a_link_that_is_down_is_busy"],
    )


# agg_counters

EVENTS = {
    "stored": "stored",
    "asked": "asks",
    "finished": "finishes",
    "chunk": "chunks",
    "beat": "beats",
    "result": "results",
    "replay": "replays",
    "status": "statuses",
    "stored_nonfinite": "nonfinite_in",
    "stored_ce": "ce",
    "undecided": "undecided",
    "stalled": "stalled",
    "overdue": "overdue",
    "partial": "partial",
    "evicts": "evictions",
}
AMOUNTS = ["nonfinite_out", "overflow"]  # counted by value
SHELL_EVENTS = ["frames", "hunted", "header_crc", "bad_version", "bad_kind", "bad_length"]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_event_counts_once(dut):
    rng = random.Random(1)
    names = [name for name, _ in zwire.COUNTER_NAMES]
    refusals = {code: name for name, code in zwire.COUNTER_NAMES if code}
    counts = dict.fromkeys(names, 0)
    inputs = [*EVENTS, *(f"shell_{e}" for e in SHELL_EVENTS), "refused", "refused_code", *AMOUNTS]
    linked = int(dut.LINK.value)
    for name in [*inputs, "clear", "link_down", "index"]:
        getattr(dut, name).value = 0
    dut.link_down.value = 1  # as before the first host
    await start(dut)
    down = True
    for _ in range(600):
        cleared = rng.random() < 0.003
        events = {
            e: rng.getrandbits(len(getattr(dut, e))) for e in inputs if e not in ("refused_code", *AMOUNTS)
        }
        code = rng.choice([*refusals, zwire.CODE_DONE]) ^ rng.choice([0, 0, 1 << rng.randrange(8)])
        amounts = {name: rng.getrandbits(len(getattr(dut, name))) for name in AMOUNTS}
        went_down, down = down, rng.random() < 0.2
        dut.clear.value, dut.link_down.value = int(cleared), int(down)
        dut.refused_code.value = code
        for name, value in (events | amounts).items():
            getattr(dut, name).value = value
        await RisingEdge(dut.clk)
        for event, name in EVENTS.items():
            counts[name] += events[event]
        for event in SHELL_EVENTS:
            counts[event] += events[f"shell_{event}"]
        for name, amount in amounts.items():
            counts[name] += amount
        counts["link_down"] += int(linked and down and not went_down)
        # Requests cut off by the link's fall are dropped, not refused.
        if events["refused"] and not (linked and down) and code in refusals:
            counts[refusals[code]] += 1
        if cleared:
            counts = dict.fromkeys(names, 0)
    for name in inputs:
        getattr(dut, name).value = 0
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    for index, name in enumerate(names):
        assert await count_at(dut, index) == counts[name], name
    assert all(count or (name == "link_down" and not linked) for name, count in counts.items())


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_bit_of_a_count_counts(dut):
    """Sets the counts so that the next event changes many bits, then at random."""
    rng = random.Random(2)
    names = [name for name, _ in zwire.COUNTER_NAMES]
    counted = {event: name for event, name in EVENTS.items()} | {f"shell_{name}": name for name in SHELL_EVENTS}
    for name in [*counted, "refused", "refused_code", *AMOUNTS, "clear", "link_down", "index"]:
        getattr(dut, name).value = 0
    await start(dut)
    for trial in range(64):
        counts = {name: (2 << trial) - 1 if trial < 32 else rng.getrandbits(32) for name in names}
        joined(dut.counts_reg, list(counts.values()))
        for signal in (1, 0):
            for event in [*counted, *AMOUNTS]:
                getattr(dut, event).value = signal
            await RisingEdge(dut.clk)
        for name in [*counted.values(), *AMOUNTS]:
            counts[name] += 1
        await RisingEdge(dut.clk)
        for index, name in enumerate(names):
            assert await count_at(dut, index) == counts[name] % 2**32, f"{name}, in trial {trial}"


async def count_at(dut, index):
    """Returns the value of index, three cycles after it was chosen."""
    dut.index.value = index
    await ClockCycles(dut.clk, 3)
    await FallingEdge(dut.clk)
    return int(dut.value.value)


@pytest.mark.parametrize("event_bits, linked", [(1, 1), (3, 0)])
def test_agg_counters(event_bits, linked):
    tests = ["every_event_counts_once", "every_bit_of_a_count_counts"]
    run("agg_counters", parameters={"COUNT_BITS": 4, "EVENT_BITS": event_bits, "LINK": linked}, testcase=tests)


# agg_job_counts


class Found:
    """The count of one kind of a job's exceptions, and the first."""

    def __init__(self, count=0):
        self.count, self.first = count, 0

    def add(self, count, place):
        if count and not self.first:
            self.first = 1 << 63 | place
        self.count = min(self.count + count, 2**32 - 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def keeps_the_first_of_each_job(dut):
    """Random contributions and sums, with and without exceptions; one job follows another."""
    rng = random.Random(1)
    bits = len(dut.nonfinite)
    quiet_counts(dut)
    await start(dut)
    found, written = [Found(), Found(), Found()], None
    for job in range(40):
        rare = rng.choice([0.5, 0.05, 0.0])
        for _ in range(rng.randint(1, 60)):
            strange, vid, rank = rng.random() < rare, rng.getrandbits(32), rng.getrandbits(6)
            dut.stored_nonfinite.value, dut.vid.value, dut.rank.value = int(strange), vid, rank
            writes = rng.getrandbits(32)
            counts = [rng.choice([rng.getrandbits(bits), 1 << rng.randrange(bits)]) if rng.random() < rare else 0 for _ in range(2)]
            wr_en = rng.random() < 0.6
            dut.wr_en.value, dut.wr_vid.value = int(wr_en), writes
            dut.nonfinite.value, dut.overflow.value = counts  # of the last cycle's sum, if any
            await RisingEdge(dut.clk)
            found[0].add(int(strange), vid | rank << 32)
            for i, count in enumerate(counts if written is not None else []):
                found[i + 1].add(count, written)
            written = writes if wr_en else None
        # The last sum's counts arrive in the cycle in which the next job may be set up.
        quiet_counts(dut)
        written = None
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        check_found(dut, found)
        await RisingEdge(dut.clk)
        late = rng.randrange(2)  # the old job's counts may arrive at the last moment
        dut.clear.value, dut.wr_en.value = 1, late
        await RisingEdge(dut.clk)
        dut.clear.value, dut.wr_en.value, dut.nonfinite.value = 0, 0, late
        await RisingEdge(dut.clk)
        dut.nonfinite.value = 0
        await FallingEdge(dut.clk)
        found = [Found(), Found(), Found()]
        check_found(dut, found)
        await RisingEdge(dut.clk)


def quiet_counts(dut):
    for name in ("clear", "stored_nonfinite", "wr_en", "nonfinite", "overflow"):
        getattr(dut, name).value = 0


def check_found(dut, found):
    counts = [int(s.value) for s in (dut.nonfinite_in, dut.nonfinite_out, dut.overflows)]
    firsts = [int(s.value) for s in (dut.first_in, dut.first_out, dut.first_overflow)]
    assert counts == [f.count for f in found]
    assert firsts == [f.first for f in found]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def counts_stop_at_their_largest_value(dut):
    quiet_counts(dut)
    await start(dut)
    # As after a very long time.
    for name in ("in_reg", "out_reg", "overflow_reg"):
        getattr(dut, name).value = 2**32 - 2
    dut.wr_en.value = 1
    dut.stored_nonfinite.value, dut.nonfinite.value, dut.overflow.value = 1, 1, 3
    for _ in range(5):
        await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    assert [int(s.value) for s in (dut.nonfinite_in, dut.nonfinite_out, dut.overflows)] == [2**32 - 1] * 3


@pytest.mark.parametrize("count_bits", [1, 5])
def test_agg_job_counts(count_bits):
    run(
        "agg_job_counts",
        parameters={"COUNT_BITS": count_bits},
        testcase=["keeps_the_first_of_each_job", *(["counts_stop_at_their_largest_value"] if count_bits > 1 else [])],
    )
