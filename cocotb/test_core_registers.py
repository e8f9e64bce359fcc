"""Jobs and registers, leaf by leaf: ranks, the job's life, the register bank, the counters."""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge, Timer

import zwire
from bench import RTL, run, start
from streams import PATTERNS, StreamSink, StreamSource


def path(leaf):
    return RTL / f"{leaf}.v"


def ranks_of(dut, ports):
    """Rank of every port that has one, read from member and rank_of_port."""
    member, ranks = int(dut.member.value), int(dut.rank_of_port.value)
    return {p: ranks >> 8 * p & 255 for p in range(ports) if member >> p & 1}


# agg_ranks


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def ranks_follow_the_ports(dut):
    rng = random.Random(1)
    ports = len(dut.member)
    dut.start.value = dut.ports.value = 0
    await start(dut)
    assert ranks_of(dut, ports) == {p: p for p in range(ports)}
    assert int(dut.ranks.value) == (1 << ports) - 1
    for _ in range(40):
        members = rng.randint(1, (1 << ports) - 1)
        dut.start.value, dut.ports.value = 1, members
        await RisingEdge(dut.clk)
        dut.start.value, dut.ports.value = 0, rng.getrandbits(ports)
        for waited in range(ports + 3):
            await FallingEdge(dut.clk)
            if int(dut.done.value):
                break
            await RisingEdge(dut.clk)
        assert int(dut.done.value), f"not done after {waited} cycles"
        chosen = [p for p in range(ports) if members >> p & 1]
        assert ranks_of(dut, ports) == {p: rank for rank, p in enumerate(chosen)}
        assert int(dut.ranks.value) == (1 << len(chosen)) - 1
        await RisingEdge(dut.clk)


@pytest.mark.parametrize("ports, port_bits", [(1, 1), (5, 3), (8, 3)])
def test_agg_ranks(ports, port_bits):
    run("agg_ranks", parameters={"PORTS": ports, "PORT_BITS": port_bits}, testcase=["ranks_follow_the_ports"])


# agg_jobs

CHUNK, WINDOW, LANES = 24, 8, 4


class Jobs:
    """What a job is, from section 4 of the specification."""

    def __init__(self, ports):
        self.ports = ports
        self.running = self.ever = self.complete = False
        self.epoch, self.setup, self.finished = 0, None, set()

    def commit(self, job, epoch, setup):
        """The code of JOB_COMMIT."""
        members, chunk, window, _ = setup
        newer = (epoch - self.epoch) % 2**16
        if job:
            return zwire.CODE_BAD_JOB
        if self.running and epoch == self.epoch:
            return zwire.CODE_DONE if setup == self.setup else zwire.CODE_EPOCH_IN_USE
        if self.ever and (newer == 0 or newer >= 2**15):
            return zwire.CODE_STALE_EPOCH
        if members == 0 or members >> self.ports:
            return zwire.CODE_BAD_PORTS
        if chunk == 0 or chunk % LANES or chunk > CHUNK:
            return zwire.CODE_BAD_CHUNK
        if window == 0 or window & (window - 1) or window > WINDOW:
            return zwire.CODE_BAD_WINDOW
        self.running = self.ever = True
        self.complete = False
        self.epoch, self.setup, self.finished = epoch, setup, set()
        return zwire.CODE_DONE

    def abort(self, job, epoch):
        """The code of JOB_ABORT."""
        if job:
            return zwire.CODE_BAD_JOB
        if self.running and epoch != self.epoch:
            return zwire.CODE_BAD_EPOCH
        self.end()
        return zwire.CODE_DONE

    def end(self):
        self.running, self.finished = False, set()

    def finish(self, rank):
        if self.running:
            self.finished.add(rank)
            if len(self.finished) == bin(self.setup[0]).count("1"):
                self.end()
                self.complete = True


class JobsBench:
    """Drives agg_jobs, whose reductions take a while to drain."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.model = Jobs(len(dut.member))
        self.flushed = self.dropped = False  # seen since they were reset
        dut.op_valid.value = dut.finish.value = dut.link_down.value = dut.keep_ranks.value = 0
        dut.drained.value = 1

    async def cycle(self):
        """One cycle; drained is low in most of those in which a job drains."""
        self.dut.drained.value = int(self.rng.random() < 0.3)
        self.dut.keep_ranks.value = int(self.rng.random() < 0.3)
        await FallingEdge(self.dut.clk)
        self.flushed |= bool(int(self.dut.flush.value))
        self.dropped |= bool(int(self.dut.drop_statuses.value))
        if int(self.dut.flush.value) or int(self.dut.hold.value):
            assert not int(self.dut.job_valid.value)
        code = int(self.dut.op_code.value) if int(self.dut.op_done.value) else None
        await RisingEdge(self.dut.clk)
        return code

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
        dut.op_ports.value, dut.op_chunk.value, dut.op_window.value, dut.op_first.value = setup

    def let_go(self):
        """Drives no operation, and anything in its fields."""
        self.dut.op_valid.value = 0
        for field in ("op_ports", "op_chunk", "op_window", "op_first", "op_epoch"):
            getattr(self.dut, field).value = self.rng.getrandbits(16)

    async def settle(self):
        await self.cycle()
        await self.cycle()
        while int(self.dut.hold.value):
            await self.cycle()

    def check(self):
        dut, model = self.dut, self.model
        assert int(dut.job_valid.value) == int(model.running)
        assert int(dut.job_ever.value) == int(model.ever)
        assert int(dut.job_complete.value) == int(model.complete)
        assert int(dut.job_epoch.value) == model.epoch
        assert int(dut.job_finished.value) == sum(1 << r for r in model.finished)
        if model.running:
            members, chunk, window, first = model.setup
            assert int(dut.job_chunk.value) == chunk and int(dut.job_last.value) == chunk // LANES - 1
            assert int(dut.job_window.value) == window and int(dut.slot_mask.value) == 2 * window - 1
            assert int(dut.job_first.value) == first
            chosen = [p for p in range(model.ports) if members >> p & 1]
            assert ranks_of(dut, model.ports) == {p: r for r, p in enumerate(chosen)}
            assert int(dut.job_ranks.value) == (1 << len(chosen)) - 1

    async def step(self):
        """One random thing that may happen to a job."""
        rng, model = self.rng, self.model
        self.flushed = self.dropped = False
        before = model.running
        action = rng.choice(["commit"] * 5 + ["abort", "end", "link_down", "finish", "finish", "finish"])
        good = ((1 << model.ports) - 1, CHUNK, WINDOW, 7)
        setup = model.setup if model.setup and rng.random() < 0.2 else good
        setup = tuple(v if rng.random() < 0.85 else self.wrong(i) for i, v in enumerate(setup))
        job = rng.choice([0] * 9 + [1])
        epoch = (model.epoch + rng.choice([0, 1, 1, 1, 5, 2**15 - 1, 2**15, -1])) % 2**16
        if action == "commit":
            old = (model.epoch, model.setup)
            assert await self.operate(action, job, epoch, setup) == model.commit(job, epoch, setup)
            ended = before and (model.epoch, model.setup) != old
        elif action == "abort":
            assert await self.operate(action, job, epoch, setup) == model.abort(job, epoch)
            ended = before and not model.running
        elif action == "end":
            assert await self.operate(action, job, epoch, setup) == zwire.CODE_DONE
            model.end()
            ended = before
        elif action == "link_down":
            self.dut.link_down.value = 1
            await self.settle()
            self.dut.link_down.value = 0
            model.end()
            ended = before
        else:
            await self.finish()
            ended = before and not model.running
        await self.settle()
        assert self.flushed >= ended, f"{action} ended the job without a flush"
        if action == "finish":
            assert not self.dropped, "the answers to the finish are dropped"
        elif ended:
            assert self.dropped, "statuses of the old job are left"
        self.check()

    async def finish(self):
        count = bin(self.model.setup[0]).count("1") if self.model.setup else 1
        rank = self.rng.randrange(count)
        self.dut.finish.value, self.dut.finish_bit.value = 1, 1 << rank
        await self.cycle()
        self.dut.finish.value = 0
        self.model.finish(rank)

    def wrong(self, which):
        """Another value of members, chunk, window or first VID, wrong or not."""
        rng = self.rng
        values = [
            [0, 1, 1 << self.model.ports, 1 << 63],
            [0, 1, LANES, 2 * LANES, CHUNK + LANES, 1 << 40],
            [0, 1, 2, 3, 2 * WINDOW, 1 << 32],
            [0, 2**32 - 1],
        ]
        return rng.choice(values[which])


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(seed=[1, 2, 3])
async def a_job_lives_as_specified(dut, seed):
    bench = JobsBench(dut, random.Random(seed))
    await start(dut)
    await bench.settle()
    bench.check()
    for _ in range(400):
        await bench.step()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_commit_ends_with_the_host_that_asked_for_it(dut):
    """The link goes down in every cycle of a commit, for one cycle or more, with a job before it or without.

    Once the commit had its owner's link to go down with, a job that nobody owned was set up, and with whatever
    epoch then stood at op_epoch.
    """
    bench = JobsBench(dut, random.Random(5))
    model = bench.model
    everyone = (1 << model.ports) - 1
    setup = (everyone, CHUNK, WINDOW, 7)
    await start(dut)
    await bench.settle()
    outcomes = set()
    for trial in range(400):
        running, before, length = trial % 2 == 0, trial // 2 % 40, 1 + trial % 3
        if running:
            epoch = (model.epoch + 1) % 2**16
            assert await bench.operate("commit", 0, epoch, setup) == model.commit(0, epoch, setup)
            await bench.settle()
        epochs = (model.epoch, (model.epoch + 1) % 2**16)
        bench.ask("commit", 0, epochs[1], setup)
        code = None
        for _ in range(before):
            code = await bench.cycle()
            if code is not None:
                bench.let_go()
                break
        dut.link_down.value = 1
        done_at_last = await bench.cycle() is not None
        bench.let_go()
        for _ in range(length - 1):
            assert await bench.cycle() is None, "an operation is done whose host is gone"
        dut.link_down.value = 0
        for _ in range(60):
            assert await bench.cycle() is None, "an operation is done whose host is gone"
            assert length > 1 or code is not None or done_at_last or not int(dut.job_valid.value)
        assert not int(dut.job_valid.value) and not int(dut.hold.value), "a job without an owner"
        assert int(dut.job_epoch.value) in epochs
        outcomes.add((running, code is not None, epochs.index(int(dut.job_epoch.value))))
        model.end()
        model.epoch, model.ever = int(dut.job_epoch.value), bool(int(dut.job_ever.value))
    # It was cut before the new epoch was set, after that, and after the answer.
    assert outcomes >= {(r, *o) for r in (False, True) for o in ((False, 0), (False, 1), (True, 1))}


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def ranks_stay_while_a_result_leaves_by_them(dut):
    """A commit waits for keep_ranks; what sets nothing up does not."""
    bench = JobsBench(dut, random.Random(6))
    ports = bench.model.ports
    everyone, first = (1 << ports) - 1, 1
    dut.drained.value = 1
    await start(dut)
    await bench.settle()
    assert await bench.operate("commit", 0, 5, (everyone, CHUNK, WINDOW, 0)) == zwire.CODE_DONE
    await bench.settle()
    dut.drained.value = dut.keep_ranks.value = 1
    bench.ask("commit", 0, 6, (first, LANES, 1, 0))
    for _ in range(50):
        await FallingEdge(dut.clk)
        assert not int(dut.op_done.value)
        assert ranks_of(dut, ports) == {p: p for p in range(ports)}
        assert int(dut.job_ranks.value) == everyone and int(dut.job_epoch.value) == 5
        await RisingEdge(dut.clk)
    dut.keep_ranks.value = 0
    while await bench.cycle() is None:
        pass
    bench.let_go()
    assert ranks_of(dut, ports) == {0: 0} and int(dut.job_epoch.value) == 6
    dut.drained.value = dut.keep_ranks.value = 1
    bench.ask("abort", 0, 6, (first, LANES, 1, 0))
    for _ in range(6):
        await FallingEdge(dut.clk)
        if int(dut.op_done.value):
            return
        await RisingEdge(dut.clk)
    raise AssertionError("an abort waits for a result to leave")


@pytest.mark.parametrize("ports, port_bits", [(1, 1), (3, 2), (5, 3)])
def test_agg_jobs(ports, port_bits):
    run(
        "agg_jobs",
        [path("agg_jobs"), path("agg_ranks")],
        parameters={
            "PORTS": ports,
            "PORT_BITS": port_bits,
            "CHUNK": CHUNK,
            "WINDOW": WINDOW,
            "SLOT_BITS": 4,
            "INDEX_BITS": 3,
            "LANE_BITS": 2,
        },
        testcase=[f"a_job_lives_as_specified/seed={seed}" for seed in (1, 2, 3)]
        + ["a_commit_ends_with_the_host_that_asked_for_it", "ranks_stay_while_a_result_leaves_by_them"],
    )


# agg_registers

TOKEN = 0x1122_3344_5566_7788
STAGED = {"JOB_TOKEN": "token", "JOB_PORTS": "op_ports", "JOB_CHUNK": "op_chunk", "JOB_WINDOW": "op_window"}
IDENT = {"LANES": 3, "PORTS": 5, "FORMAT": 0x0101, "SUM": 1, "SHELL": 1, "CHUNK": 99, "WINDOW": 4, "JOBS": 1}
IDENT |= {"LINK": 32, "LATENCY": 13, "CONFIG_HASH": 0x0123_4567_89AB_CDEF}


# What agg_job_counts holds, and the registers that show it.
JOB_COUNTS = {
    "nonfinite_in": "JOB_NONFINITE_IN",
    "nonfinite_out": "JOB_NONFINITE_OUT",
    "overflows": "JOB_OVERFLOW",
    "first_in": "JOB_FIRST_IN",
    "first_out": "JOB_FIRST_OUT",
    "first_overflow": "JOB_FIRST_OVERFLOW",
}


class Bank:
    """What the registers hold, and what an access does; the job's operations are asked of the bench."""

    def __init__(self):
        self.owner = 0
        self.staged = dict.fromkeys(STAGED, 0)
        self.constants = IDENT | {"MAGIC": zwire.MAGIC, "VERSION": zwire.VERSION}

    def access(self, name, write, value, job):
        """Code, value after it, and the operation that agg_jobs is asked for, or None. job: its code."""
        if name is None:
            return zwire.CODE_BAD_ADDRESS, 0, None
        if not write:
            return zwire.CODE_DONE, self.read(name), None
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

    def read(self, name):
        return {"OWNER": self.owner, **self.staged, **self.constants}.get(name, 0)


class RegistersBench:
    def __init__(self, dut, idle, stall, rng):
        self.dut, self.rng, self.bank = dut, rng, Bank()
        self.accesses = StreamSource(dut, "s_reg", idle, ("write", "addr", "wdata"), "valid", "ready")
        self.answers = StreamSink(dut, "m_reg", stall, ("code", "value"), "valid", "ready")
        self.counters = {}
        self.job_code, self.operation, self.cleared = 0, None, 0
        dut.link_down.value = dut.op_done.value = dut.op_code.value = 0
        dut.job_valid.value, dut.job_ever.value, dut.job_epoch.value, dut.job_finished.value = 1, 1, 0xABCD, 5
        self.bank.constants |= {"JOB_STATE": 0xABCD_0003, "JOB_FINISHED": 5}
        for signal, name in JOB_COUNTS.items():
            self.bank.constants[name] = rng.getrandbits(len(getattr(dut, signal)))
            getattr(dut, signal).value = self.bank.constants[name]
        cocotb.start_soon(self.jobs())

    async def jobs(self):
        """Stands in for agg_jobs and agg_counters."""
        dut = self.dut
        while True:
            await FallingEdge(dut.clk)
            index = dut.counter_index.value
            dut.counter_value.value = self.counters.get(int(index), 0) if index.is_resolvable else 0
            asked = dut.op_valid.value.is_resolvable and int(dut.op_valid.value)
            done = asked and self.rng.random() < 0.3
            dut.op_done.value, dut.op_code.value = int(done), self.job_code
            if done:
                kind = "JOB_COMMIT" if int(dut.op_commit.value) else "JOB_ABORT" if int(dut.op_abort.value) else "END"
                fields = ("op_job", "op_epoch", "op_first", "op_ports", "op_chunk", "op_window")
                self.operation = (kind, {f: int(getattr(dut, f).value) for f in fields})
                await Timer(1, "ns")
                self.cleared += int(dut.clear_counters.value)
                await RisingEdge(dut.clk)
                dut.op_done.value = 0

    async def step(self):
        """A random access, compared with the bank."""
        rng = self.rng
        name = rng.choice([*zwire.REGISTERS, "OWNER", "JOB_TOKEN", "JOB_COMMIT", "RELEASE", "counter", None])
        write = rng.random() < 0.5
        value = rng.choice([TOKEN, TOKEN, 0, rng.getrandbits(64)])
        address = zwire.REGISTERS[name][0] if name in zwire.REGISTERS else None
        if name == "counter":
            index = rng.randrange(len(zwire.COUNTER_NAMES))
            self.counters = {index: rng.getrandbits(32)}
            self.bank.constants["counter"] = self.counters[index]
            address = zwire.REG_COUNTERS + 8 * index
        elif name is None:
            known = {a for a, _, _ in zwire.REGISTERS.values()}
            after = zwire.REG_COUNTERS + 8 * len(zwire.COUNTER_NAMES)
            address = rng.choice([4, 0x0F8, after, after + 8, 0x401, rng.getrandbits(32) | 1 << 20, 1 << 31])
            assert address not in known
        self.job_code = rng.choice([zwire.CODE_DONE, zwire.CODE_STALE_EPOCH])
        self.operation, self.cleared = None, 0
        ends = name in ("RELEASE", "RESET")
        self.job_code = zwire.CODE_DONE if ends else self.job_code
        staged = dict(self.bank.staged)
        code, after, operation = self.bank.access(name, write, value, self.job_code)
        self.accesses.put({"write": int(write), "addr": address, "wdata": value})
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


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def registers_do_as_specified(dut, idle, stall):
    rng = random.Random(f"{idle} {stall}")
    bench = RegistersBench(dut, PATTERNS[idle](), PATTERNS[stall](), rng)
    await start(dut)
    for _ in range(250):
        await bench.step()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_link_that_goes_down_clears_the_owner(dut):
    """And drops the answer that was not taken."""
    for name in ("op_done", "m_reg_ready", "link_down", "s_reg_valid"):
        getattr(dut, name).value = 0
    await start(dut)
    dut.m_reg_ready.value = 0
    await access(dut, 1, zwire.REG_OWNER, TOKEN)
    assert (int(dut.m_reg_valid.value), int(dut.m_reg_value.value)) == (1, TOKEN)
    dut.link_down.value = 1
    await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    assert int(dut.m_reg_valid.value) == 0 and int(dut.s_reg_ready.value) == 0
    dut.link_down.value = 0
    await access(dut, 0, zwire.REG_OWNER, 0)
    assert (int(dut.m_reg_valid.value), int(dut.m_reg_value.value)) == (1, 0)


async def access(dut, write, address, value):
    """Makes an access and returns when its answer should stand there."""
    dut.s_reg_valid.value, dut.s_reg_write.value = 1, write
    dut.s_reg_addr.value, dut.s_reg_wdata.value = address, value
    await RisingEdge(dut.clk)
    dut.s_reg_valid.value = 0
    await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)


def test_agg_registers():
    run(
        "agg_registers",
        parameters={name: f"64'd{value}" for name, value in IDENT.items()},
        testcase=[f"registers_do_as_specified/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS]
        + ["a_link_that_goes_down_clears_the_owner"],
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
}
AMOUNTS = ["nonfinite_out", "overflow"]  # so many count
SHELL_EVENTS = ["frames", "hunted", "header_crc", "bad_version", "bad_kind", "bad_length"]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_event_counts_once(dut):
    rng = random.Random(1)
    names = [name for name, _ in zwire.COUNTER_NAMES]
    refusals = {code: name for name, code in zwire.COUNTER_NAMES if code}
    counts = dict.fromkeys(names, 0)
    inputs = [*EVENTS, *(f"shell_{e}" for e in SHELL_EVENTS), "refused", "refused_code", *AMOUNTS]
    for name in [*inputs, "clear", "link_down", "index"]:
        getattr(dut, name).value = 0
    dut.link_down.value = 1  # as it is before the first host
    await start(dut)
    down = True
    for _ in range(600):
        cleared = rng.random() < 0.003
        events = {e: rng.randrange(2) for e in inputs if e not in ("refused_code", *AMOUNTS)}
        code = rng.choice([*refusals, zwire.CODE_DONE])
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
        counts["link_down"] += int(down and not went_down)
        # What a link that goes down cuts off is dropped, not refused.
        if events["refused"] and not down and code in refusals:
            counts[refusals[code]] += 1
        if cleared:
            counts = dict.fromkeys(names, 0)
    for name in inputs:
        getattr(dut, name).value = 0
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    for index, name in enumerate(names):
        dut.index.value = index
        await FallingEdge(dut.clk)
        assert int(dut.value.value) == counts[name], name
    assert all(counts.values())


def test_agg_counters():
    run("agg_counters", parameters={"COUNT_BITS": 4}, testcase=["every_event_counts_once"])


# agg_job_counts


class Found:
    """How many of something a job had, and the first."""

    def __init__(self, count=0):
        self.count, self.first = count, 0

    def add(self, count, place):
        if count and not self.first:
            self.first = 1 << 63 | place
        self.count = min(self.count + count, 2**32 - 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def keeps_the_first_of_each_job(dut):
    """Chunks of VIDs that come to their slots, are written, and turn out well or not; jobs follow one another."""
    rng = random.Random(1)
    slots = 1 << len(dut.slot)
    most = (1 << len(dut.nonfinite)) - 1
    for name in ("clear", "stored_nonfinite", "complete", "wr_en", "nonfinite", "overflow"):
        getattr(dut, name).value = 0
    await start(dut)
    vids, found, written = {}, [Found(), Found(), Found()], None
    for job in range(40):
        rare = rng.choice([0.5, 0.05, 0.0])
        for _ in range(rng.randint(1, 60)):
            strange, completes = rng.random() < rare, rng.random() < 0.3
            slot, vid, rank = rng.randrange(slots), rng.getrandbits(32), rng.getrandbits(6)
            dut.stored_nonfinite.value, dut.complete.value = int(strange), int(completes)
            dut.slot.value, dut.vid.value, dut.rank.value = slot, vid, rank
            writes = rng.choice([*vids, None, None])
            dut.wr_en.value, dut.wr_slot.value = int(writes is not None), writes or 0
            counts = [rng.randint(1, most) if written is not None and rng.random() < rare else 0 for _ in range(2)]
            dut.nonfinite.value, dut.overflow.value = counts
            await RisingEdge(dut.clk)
            found[0].add(int(strange), vid | rank << 32)
            for i, count in enumerate(counts):
                found[i + 1].add(count, written)
            # A slot that is completed anew in the cycle of a write is written for its old VID.
            written = vids.get(writes)
            if completes:
                vids[slot] = vid
        # The last sum's counts come in the cycle in which the next job may be set up.
        for name in ("stored_nonfinite", "complete", "wr_en", "nonfinite", "overflow"):
            getattr(dut, name).value = 0
        written = None
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        check_found(dut, found)
        await RisingEdge(dut.clk)
        late = rng.randrange(2)  # counts of the old job that come at the last moment
        dut.clear.value, dut.nonfinite.value = 1, 0
        await RisingEdge(dut.clk)
        dut.clear.value, dut.nonfinite.value = 0, late
        await RisingEdge(dut.clk)
        dut.nonfinite.value = 0
        await FallingEdge(dut.clk)
        found = [Found(), Found(), Found()]
        check_found(dut, found)
        await RisingEdge(dut.clk)


def check_found(dut, found):
    counts = [int(s.value) for s in (dut.nonfinite_in, dut.nonfinite_out, dut.overflows)]
    firsts = [int(s.value) for s in (dut.first_in, dut.first_out, dut.first_overflow)]
    assert counts == [f.count for f in found]
    assert firsts == [f.first for f in found]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def counts_stop_at_their_largest_value(dut):
    for name in ("clear", "stored_nonfinite", "complete", "wr_en"):
        getattr(dut, name).value = 0
    await start(dut)
    # As after a very long time.
    for name in ("in_reg", "out_reg", "overflow_reg"):
        getattr(dut, name).value = 2**32 - 2
    dut.stored_nonfinite.value, dut.nonfinite.value, dut.overflow.value = 1, 1, 3
    for _ in range(5):
        await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    assert [int(s.value) for s in (dut.nonfinite_in, dut.nonfinite_out, dut.overflows)] == [2**32 - 1] * 3


@pytest.mark.parametrize("slot_bits, count_bits", [(1, 1), (3, 5)])
def test_agg_job_counts(slot_bits, count_bits):
    run(
        "agg_job_counts",
        parameters={"SLOT_BITS": slot_bits, "COUNT_BITS": count_bits},
        testcase=["keeps_the_first_of_each_job", *(["counts_stop_at_their_largest_value"] if count_bits > 1 else [])],
    )
