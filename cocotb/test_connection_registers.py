"""agg_connection_registers: registers of connections in front of the core's, by ROCE.md, sections 2 and 6.

The bench is the shell that forwards accesses, the core, and agg_connection_table.
"""

import collections
import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

import zwire
from bench import number, run, start

ANSWER, FORWARD = 6, 5  # cycles from an access to its answer here, and to the core

DONE, BUSY, READ_ONLY = zwire.CODE_DONE, zwire.CODE_BUSY, zwire.CODE_READ_ONLY
BAD_JOB, BAD_CONNECTION = zwire.CODE_BAD_JOB, zwire.CODE_BAD_CONNECTION
COMMIT = zwire.REGISTERS["JOB_COMMIT"][0]
STAGED = {name: zwire.REGISTERS[f"JOB_{name.upper()}"][0] for name in ("ports", "chunk", "deadline")}
DROPS = 6  # reasons of dropped frames; their counters come first
EARLY, RELAYED = DROPS, DROPS + 1

SIZES = {
    "one": {"PORTS": 1, "PORT_BITS": 1, "JOBS": 1, "JOB_BITS": 1, "ETHERNET": 1, "HAS_NEIGHBOURS": 1, "NEIGHBOURS": 1},
    "armed": {"PORTS": 3, "PORT_BITS": 2, "JOBS": 3, "JOB_BITS": 2, "ETHERNET": 1, "HAS_NEIGHBOURS": 1, "NEIGHBOURS": 3},
    "path": {"PORTS": 4, "PORT_BITS": 2, "JOBS": 2, "JOB_BITS": 1, "ETHERNET": 3, "HAS_NEIGHBOURS": 0, "NEIGHBOURS": 1},
}

Access = collections.namedtuple("Access", "write addr wdata stranger", defaults=(0,))

# Pulses, with what they are about
PULSES = {"m_code_valid": "m_code", "table_write": "table_port", "remove": "remove_job"}
PULSES |= dict.fromkeys(["install", "remove_all", "table_clear"])


@pytest.mark.parametrize("size", SIZES)
def test_agg_connection_registers(size):
    run("agg_connection_registers", parameters=SIZES[size])


class Registers:
    """The leaf, what it must hold, and what is around it."""

    def __init__(self, dut, seed=1):
        self.dut, self.rng = dut, random.Random(seed)
        names = ("PORTS", "JOBS", "ETHERNET", "HAS_NEIGHBOURS", "NEIGHBOURS")
        self.ports, self.jobs, self.ethernet, has, count = (int(getattr(dut, name).value) for name in names)
        self.neighbours = count if has else 0
        self.addresses, self.macs = [0] * count, [0] * count
        self.counters = [0] * zwire.CONNECTION_COUNTERS
        self.staged = dict.fromkeys(STAGED, 0)
        self.now = 0
        self.offered = None  # cycle in which the access was offered to the core
        self.running = 0  # jobs that are set up
        self.seen = []  # (name, value) of pulses since the last access
        self.takes = []  # accesses that the core has got
        self.answers = collections.deque()  # of the core: (cycles to wait, code, value, set_up)
        self.good, self.wait = 1, 0  # the table's answer, and the cycles that it takes
        self.checking = self.checks = 0  # cycles of this check; checks that were finished
        self.core_is_ready, self.installs = True, 0
        self.read_at = []  # what the table was asked for in the last cycles
        self.noisy = True  # frames are dropped and relayed
        for name in "s_reg_valid s_reg_write s_reg_addr s_reg_wdata s_reg_stranger m_answer_ready clear reset_done".split():
            getattr(dut, name).value = 0
        for name in "m_reg_ready s_answer_valid s_answer_code s_answer_value set_up job_on table_value".split():
            getattr(dut, name).value = 0
        for name in "checked good dropped reason relayed early".split():
            getattr(dut, name).value = 0

    # Cycles

    async def cycle(self):
        """Spends a cycle. What is around answers by what it sees at its end."""
        dut, rng = self.dut, self.rng
        self._events()
        dut.m_reg_ready.value = int(self.core_is_ready and rng.random() < 0.5)
        dut.m_answer_ready.value = rng.randrange(2)
        await RisingEdge(dut.clk)
        self.now += 1
        for name, about in PULSES.items():
            if number(getattr(dut, name)):
                self.seen.append((name, number(getattr(dut, about)) if about else None))
        self._check_commit()
        self._core()
        # The table answers two cycles later.
        self.read_at.append(tuple(number(getattr(dut, f"table_{name}")) for name in ("registered", "job", "port")))
        dut.table_value.value = connection_of(*self.read_at[-2]) if len(self.read_at) > 1 else 0

    def _events(self):
        """Frames are dropped, relayed, and released early."""
        dut, rng = self.dut, self.rng
        dropped = rng.getrandbits(self.ethernet) if self.noisy else 0
        relayed = rng.getrandbits(self.ethernet) if self.noisy and self.neighbours else 0
        early = rng.randrange(2) if self.noisy else 0
        reasons = [rng.randint(1, DROPS) for _ in range(self.ethernet)]
        dut.dropped.value, dut.relayed.value, dut.early.value = dropped, relayed, early
        dut.reason.value = sum(reason << 3 * e for e, reason in enumerate(reasons))
        for e, reason in enumerate(reasons):
            self.counters[reason - 1] += dropped >> e & 1
        self.counters[EARLY] += early
        self.counters[RELAYED] += relayed.bit_count()

    def _check_commit(self):
        """Plays the table's part in a commit."""
        dut = self.dut
        if not number(dut.check):
            self.checking = 0
            dut.checked.value, dut.good.value = 0, self.rng.randrange(2)
            return
        wdata = number(dut.s_reg_wdata)
        assert number(dut.s_reg_valid) and number(dut.s_reg_addr) == COMMIT and number(dut.s_reg_write)
        assert number(dut.commit_job) == wdata >> 48 & 0xFF and number(dut.commit_epoch) == wdata >> 32 & 0xFFFF
        assert number(dut.commit_first) == wdata % (1 << 32)
        assert number(dut.commit_ports) == self.staged["ports"] % (1 << self.ports)
        assert number(dut.commit_chunk) == self.staged["chunk"]
        assert number(dut.commit_partial) == self.staged["deadline"] >> 32 & 1
        self.checks += number(dut.checked)
        dut.checked.value = int(self.checking >= self.wait)
        dut.good.value = self.good if self.checking >= self.wait else self.rng.randrange(2)
        self.checking += 1

    def _core(self):
        """Plays the core's part: takes accesses, and answers each later."""
        dut, rng = self.dut, self.rng
        dut.set_up.value = 0
        if number(dut.m_reg_valid):
            assert number(dut.s_reg_valid)
            self.offered = self.offered or self.now
            if number(dut.m_reg_ready):
                assert number(dut.s_reg_ready), "the core takes what the shell keeps"
                self.takes.append(self.now)
        if number(dut.s_answer_valid):
            if not number(dut.s_answer_ready):
                return
            dut.s_answer_valid.value = 0
        if self.takes and self.answers and self.answers[0] is not None:
            wait, code, value, set_up = self.answers[0]
            dut.set_up.value = int(wait == set_up)
            if wait == 0:
                self.answers[0] = None
                dut.s_answer_valid.value, dut.s_answer_code.value, dut.s_answer_value.value = 1, code, value
            else:
                self.answers[0] = wait - 1, code, value, set_up
        elif not number(dut.s_answer_valid):
            dut.s_answer_code.value, dut.s_answer_value.value = rng.getrandbits(8), rng.getrandbits(64)

    async def clear(self, name):
        """The card has a new owner, or RESET is done."""
        self.noisy = False
        for _ in range(4):
            await self.cycle()
        self.seen.clear()
        getattr(self.dut, name).value = 1
        await self.cycle()
        getattr(self.dut, name).value = 0
        await self.cycle()
        pulses = {"clear": ["table_clear"], "reset_done": ["remove_all", "table_clear"]}
        assert [pulse for pulse, _ in self.seen] == pulses[name]
        self.noisy = True
        self.staged = dict.fromkeys(STAGED, 0)
        if name == "reset_done":
            self.counters = [0] * len(self.counters)
            self.addresses, self.macs = [0] * len(self.macs), [0] * len(self.macs)
        self.check_neighbours()

    # Accesses

    def show(self, access):
        """Drives an access."""
        dut = self.dut
        dut.s_reg_write.value, dut.s_reg_addr.value = access.write, access.addr
        dut.s_reg_wdata.value, dut.s_reg_stranger.value = access.wdata, access.stranger
        dut.s_reg_valid.value = 1

    async def withdraw(self, access):
        """Shows an access, and withdraws it before it is taken."""
        name, _ = self.place(access.addr)
        self.seen.clear()
        self.core_is_ready, self.wait, self.good = False, 100, self.rng.randrange(2)
        self.show(access)
        for _ in range(self.rng.randint(1, ANSWER - 1 if name else 2 * ANSWER)):
            await self.cycle()
            assert not number(self.dut.s_reg_ready) and not number(self.dut.m_answer_valid)
        self.dut.s_reg_valid.value = 0
        await self.cycle()
        self.core_is_ready = True
        assert not self.seen, "a withdrawn access did something"

    async def taken(self, access):
        """Shows an access until it is taken; returns the cycles until then, one more than the latency."""
        self.show(access)
        began = self.now
        while True:
            await self.cycle()
            assert self.now - began < 400, f"{access} is not taken"
            assert not number(self.dut.m_answer_valid), "an answer to no access"
            if number(self.dut.s_reg_ready):
                return self.now - began

    async def answered(self, quiet=8):
        """Waits for the answer to an access that was taken: code, value and the cycles until it is shown."""
        dut = self.dut
        dut.s_reg_valid.value = 0
        began, shown, at = self.now, None, None
        while True:
            await self.cycle()
            assert self.now - began < 400, "no answer"
            if number(dut.m_answer_valid):
                answer = number(dut.m_answer_code), number(dut.m_answer_value)
                assert shown in (None, answer), "an answer that changes"
                at = at or self.now - began
                shown = answer
                if number(dut.m_answer_ready):
                    break
            else:
                assert shown is None, "an answer that is withdrawn"
        for _ in range(quiet):
            await self.cycle()
            assert not number(dut.m_answer_valid) and not number(dut.m_reg_valid), "a second answer"
        return (*shown, at)

    async def access(self, access, code=None, good=1, running=None):
        """Makes an access, and checks all that it does; returns its code.

        code: the core's, by default random. good: the connections of a commit. running: jobs that are set up."""
        rng, dut = self.rng, self.dut
        name, at = self.place(access.addr)
        if name == "counter":
            self.noisy = False
            for _ in range(4):
                await self.cycle()
        self.running = rng.getrandbits(self.jobs) if running is None else running
        dut.job_on.value = self.running
        self.seen.clear()
        self.takes.clear()
        self.offered, began = None, self.now
        checks = self.checks
        commits = access.addr == COMMIT and access.write and not access.stranger and access.wdata >> 48 & 0xFF < self.jobs
        core = name is None and not (commits and not good)
        self.good, self.wait = good, rng.randrange(12)
        code = rng.choice([DONE, DONE, rng.randrange(1, 40)]) if code is None else code
        value, wait = rng.getrandbits(64), rng.randrange(10)
        sets_up = commits and good and code == DONE and rng.random() < 0.7
        self.answers.clear()
        self.answers.append((wait, code, value, rng.randint(0, wait) if sets_up else None))
        took = await self.taken(access)
        got = await self.answered()
        if not core:
            code, value = self.here(name, at, access) if not commits else (BAD_CONNECTION, 0)
            assert got[2] == 1, "the answer comes with the next cycle"
            if not commits:
                assert took + got[2] == ANSWER + 1
        assert got[:2] == (code, value), f"{access}: code {got[0]:#x} and {got[1]:#x}, want {code:#x} and {value:#x}"
        assert not core or commits or self.offered - began == FORWARD + 1
        assert len(self.takes) == core, f"the core took {access} {len(self.takes)} times"
        assert self.checks - checks == commits
        want = [("m_code_valid", code)] if access.write and not core else []
        if access.write and code == DONE and name == "MEMBER_CONNECTION":
            want.append(("table_write", at[1]))
        if access.write and code == DONE and name == "JOB_DISCONNECT":
            want.append(("remove", access.wdata))
        if sets_up:
            self.installs += 1
            want.append(("install", None))
        assert sorted(self.seen, key=str) == sorted(want, key=str), f"{access}: {self.seen}, want {want}"
        if core and access.write and code == DONE:
            self.staged |= {register: access.wdata for register, addr in STAGED.items() if access.addr == addr}
        self.check_neighbours()
        self.noisy = True
        return code

    def place(self, addr):
        """Returns the register here at an address, and where it belongs: job and port, or number; None if it is none."""
        for port in range(self.ports):
            if addr == zwire.REG_MEMBER_CONNECTION + 8 * port:
                return "MEMBER_CONNECTION", (0, port)
            for job in range(self.jobs):
                if addr == zwire.REG_JOB_CONNECTION + zwire.REG_CONNECTION_TABLE_STRIDE * job + 8 * port:
                    return "JOB_CONNECTION", (job, port)
        for n in range(self.neighbours):
            for name in ("NEIGHBOUR_ADDRESS", "NEIGHBOUR_MAC"):
                if addr == zwire.CONNECTION_REGISTERS[name][0] + zwire.REG_NEIGHBOUR_STRIDE * n:
                    return name, n
        for n in range(zwire.CONNECTION_COUNTERS):
            if addr == zwire.REG_CONNECTION_COUNTERS + 8 * n:
                return "counter", n
        return ("JOB_DISCONNECT", 0) if addr == zwire.REG_JOB_DISCONNECT else (None, 0)

    def here(self, name, at, access):
        """Makes an access to a register here; returns code and value."""
        if not access.write:
            return DONE, self.value(name, at)
        if name in ("counter", "JOB_CONNECTION"):
            return READ_ONLY, 0
        if access.stranger:
            return BUSY, 0
        if name == "JOB_DISCONNECT":
            if access.wdata >= self.jobs:
                return BAD_JOB, 0
            return (BUSY if self.running >> access.wdata & 1 else DONE), 0
        if name == "NEIGHBOUR_ADDRESS":
            self.addresses[at] = access.wdata % (1 << 32)
        elif name == "NEIGHBOUR_MAC":
            self.macs[at] = access.wdata % (1 << 48)
        else:
            return DONE, access.wdata % (1 << 56)
        return DONE, self.value(name, at)

    def value(self, name, at):
        if name == "counter":
            return self.counters[at] % (1 << 32)
        if name == "NEIGHBOUR_ADDRESS":
            return self.addresses[at]
        if name == "NEIGHBOUR_MAC":
            return self.macs[at]
        return 0 if name == "JOB_DISCONNECT" else connection_of(name == "JOB_CONNECTION", *at)

    def check_neighbours(self):
        if self.neighbours:
            assert number(self.dut.neighbour_ip) == sum(ip << 32 * n for n, ip in enumerate(self.addresses))
            assert number(self.dut.neighbour_mac) == sum(mac << 48 * n for n, mac in enumerate(self.macs))

    def known(self):
        """Returns the addresses of all registers here, and of those that are watched."""
        every = [zwire.REG_JOB_DISCONNECT, COMMIT, *STAGED.values()]
        every += [zwire.REG_CONNECTION_COUNTERS + 8 * n for n in range(zwire.CONNECTION_COUNTERS)]
        for port in range(self.ports):
            every.append(zwire.REG_MEMBER_CONNECTION + 8 * port)
            every += [zwire.REG_JOB_CONNECTION + 0x200 * job + 8 * port for job in range(self.jobs)]
            every += [zwire.REG_NEIGHBOUR_ADDRESS + 16 * port, zwire.REG_NEIGHBOUR_MAC + 16 * port]
        return every

    def beyond(self):
        """Returns addresses next to the last ones of each kind."""
        job, port = self.jobs - 1, self.ports
        addresses = [zwire.REG_MEMBER_CONNECTION + 8 * port, zwire.REG_CONNECTION_COUNTERS + 8 * zwire.CONNECTION_COUNTERS]
        addresses += [zwire.REG_JOB_CONNECTION + 0x200 * job + 8 * port, zwire.REG_JOB_CONNECTION + 0x200 * (job + 1)]
        return [*addresses, zwire.REG_NEIGHBOUR_ADDRESS + 16 * self.neighbours, zwire.REG_NEIGHBOUR_MAC + 16 * self.neighbours]

    def some_access(self):
        rng = self.rng
        addr = rng.choice([COMMIT, rng.choice(self.known()), rng.choice(self.known())])
        if rng.random() < 0.2:
            addr ^= 1 << rng.randrange(32)
        wdata = rng.getrandbits(64)
        if addr == zwire.REG_JOB_DISCONNECT:
            wdata = rng.randrange(self.jobs + 1) | rng.choice([0, 0, 0, 1 << rng.randrange(64)])
        if addr == COMMIT:
            job = rng.choice([*range(self.jobs), *range(self.jobs), self.jobs])
            wdata = wdata % (1 << 48) | job << 48
        return Access(rng.randrange(2), addr, wdata, int(rng.random() < 0.2))


def connection_of(registered, job, port):
    """Returns what the table has in a register."""
    return registered << 40 | job << 16 | port << 8 | 0x5A


async def begin(dut, seed=1):
    registers = Registers(dut, seed)
    registers.noisy = False
    await start(dut)
    await registers.cycle()
    registers.noisy = True
    return registers


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def answers_each_access_once(dut):
    """Reads and writes of all registers, and of addresses near them; some are withdrawn before."""
    registers = await begin(dut)
    rng = registers.rng
    for _ in range(400):
        access = registers.some_access()
        if rng.random() < 0.3:
            await registers.withdraw(access)
        await registers.access(registers.some_access() if rng.random() < 0.5 else access, good=rng.randrange(2))
        if rng.random() < 0.03:
            await registers.clear(rng.choice(["clear", "reset_done"]))
    assert registers.installs > 5 and registers.checks > 20


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def leaves_other_addresses_to_the_core(dut):
    """Those of ports, jobs and counters that the card does not have, and those with another bit."""
    registers = await begin(dut)
    for addr in registers.beyond():
        assert registers.place(addr) == (None, 0)
        await registers.access(Access(0, addr, 0))
    for addr in {registers.place(addr)[0]: addr for addr in registers.known()}.values():
        for bit in range(32):
            await registers.access(Access(0, addr ^ 1 << bit, 0))


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def refuses_and_does_by_its_rules(dut):
    """Each refusal of the registers here, and what a commit with bad connections leaves alone."""
    registers = await begin(dut)
    jobs = registers.jobs

    async def write(addr, wdata, **how):
        return await registers.access(Access(1, addr, wdata, how.pop("stranger", 0)), **how)

    disconnect = zwire.REG_JOB_DISCONNECT
    for job in range(jobs):
        assert await write(disconnect, job, running=0) == DONE
        assert await write(disconnect, job, running=1 << job) == BUSY
        assert await write(disconnect, job, running=(1 << jobs) - 1 ^ 1 << job) == DONE
        assert await write(disconnect, job, running=0, stranger=1) == BUSY
        for bit in range(64):
            if job | 1 << bit >= jobs:
                assert await write(disconnect, job | 1 << bit, running=0) == BAD_JOB
    assert await write(disconnect, jobs, running=0, stranger=1) == BUSY
    for addr in (zwire.REG_CONNECTION_COUNTERS, zwire.REG_JOB_CONNECTION):
        assert await write(addr, 1, stranger=0) == await write(addr, 1, stranger=1) == READ_ONLY
    assert await write(zwire.REG_MEMBER_CONNECTION, 1, stranger=1) == BUSY
    for name, addr in STAGED.items():
        for code in (DONE, BUSY):
            await write(addr, registers.rng.getrandbits(64), code=code)
        assert await write(COMMIT, 0, good=1, code=DONE) == DONE, name
    for number_ in range(jobs):
        assert await write(COMMIT, number_ << 48, good=0) == BAD_CONNECTION
        assert await write(COMMIT, number_ << 48, good=1, code=zwire.CODE_STALE_EPOCH) == zwire.CODE_STALE_EPOCH
        assert await write(COMMIT, number_ << 48, good=0, stranger=1, code=BUSY) == BUSY
    for bit in range(48, 56):
        if 1 << bit - 48 >= jobs:
            assert await write(COMMIT, 1 << bit, good=0, code=BAD_JOB) == BAD_JOB


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def counts_every_event(dut):
    """All ports at once, and each reason."""
    registers = await begin(dut)
    for _ in range(300):
        await registers.cycle()
    for n in range(zwire.CONNECTION_COUNTERS):
        await registers.access(Access(0, zwire.REG_CONNECTION_COUNTERS + 8 * n, 0))
    assert all(registers.counters[: EARLY + 1])
    await registers.clear("reset_done")
    for n in range(zwire.CONNECTION_COUNTERS):
        await registers.access(Access(0, zwire.REG_CONNECTION_COUNTERS + 8 * n, 0))
