"""agg_parent_table: a commit changes a job's entries in two steps, and its lookups and checks are those of TREES.md."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles

from bench import bits, leaf, number, run, start
from network_model import Host

WIDTHS = {"mac": 48, "ip": 32, "port": 16, "ethernet": 8}  # of the fields that are compared
LOOKED_UP = ["parent_valid", "parent_ip", "parent_port", "parent_ethernet", "up_mac", "up_ip", "up_udp_port", "up_source"]

SIZES = {"one": {"JOBS": 1, "JOB_BITS": 1, "ETHERNET": 1}, "several": {"JOBS": 4, "JOB_BITS": 2, "ETHERNET": 3}}


def near(host, fields=WIDTHS):
    """Returns the hosts whose address differs in one bit."""
    return [host._replace(**{f: getattr(host, f) ^ 1 << bit}) for f in fields for bit in range(WIDTHS[f])]


@pytest.mark.parametrize("size", SIZES)
def test_agg_parent_table(size):
    run("agg_parent_table", [leaf("agg_parent_table"), leaf("agg_ram")], SIZES[size])


class Table:
    """The leaf, and what it must hold."""

    def __init__(self, dut, seed=1):
        self.dut, self.rng = dut, random.Random(seed)
        self.ethernet, self.jobs = len(dut.parent_en), len(dut.up_runs)
        for name in ("clear", "reg_write", "reg_mac", "reg_wdata", "commit_job", "staged_up", "staged_up_port", "receives", "sends"):
            getattr(dut, name).value = 0
        dut.partial.value = dut.up_runs.value = dut.up_ports.value = dut.parent_job.value = dut.up_job.value = 0
        self.own = self.some_parent()._replace(mac=0, ethernet=0)
        dut.own_ip.value, dut.own_port.value = self.own.ip, self.own.port
        dut.parent_en.value = dut.up_en.value = (1 << self.ethernet) - 1

    async def pulse(self, name):
        getattr(self.dut, name).value = 1
        await ClockCycles(self.dut.clk, 1)
        getattr(self.dut, name).value = 0

    async def stage(self, parent, port, tree=1, meaningless=0):
        """Stages a parent and an upward UDP port; meaningless: bits above the address."""
        dut = self.dut
        for mac, value in enumerate([meaningless << 48 | parent.address, (meaningless & 0xFF) << 56 | parent.place]):
            dut.reg_mac.value, dut.reg_wdata.value = mac, value
            await self.pulse("reg_write")
            await ClockCycles(dut.clk, 1)
            assert number(dut.reg_value) == value
        dut.staged_up.value, dut.staged_up_port.value = tree, port
        await ClockCycles(dut.clk, 6)

    def some_parent(self):
        rng = self.rng
        return Host(rng.getrandbits(48), rng.randrange(1, 1 << 32), rng.randrange(1, 1 << 16), rng.randrange(self.ethernet))

    async def look_up(self, job):
        """Returns the job's sender and receiver at each Ethernet port: (Host without MAC, or None), and (Host, port)."""
        dut = self.dut
        every = sum(job << len(dut.commit_job) * e for e in range(self.ethernet))
        dut.parent_job.value = dut.up_job.value = every
        await ClockCycles(dut.clk, 3)
        shown = {name: bits(getattr(dut, name)) for name in LOOKED_UP}
        # Without an enabled cycle, nothing changes.
        dut.parent_en.value = dut.up_en.value = 0
        dut.parent_job.value = dut.up_job.value = self.rng.getrandbits(len(dut.up_job))
        await ClockCycles(dut.clk, 4)
        assert shown == {name: bits(getattr(dut, name)) for name in LOOKED_UP}
        dut.parent_en.value = dut.up_en.value = (1 << self.ethernet) - 1
        senders, receivers = [], []
        for e in range(self.ethernet):

            def of(name, width):
                return number(getattr(dut, name)) >> width * e & (1 << width) - 1

            sender = Host(0, of("parent_ip", 32), of("parent_port", 16), of("parent_ethernet", 8))
            senders.append(sender if of("parent_valid", 1) else None)
            receivers.append((Host(of("up_mac", 48), of("up_ip", 32), of("up_udp_port", 16)), of("up_source", 16)))
        assert len(set(senders)) == len(set(receivers)) == 1
        return senders[0], receivers[0]

    def above(self, job):
        """Returns the Ethernet ports where the job's parent is."""
        value = number(self.dut.above)
        return [e for e in range(self.ethernet) if value >> self.jobs * e + job & 1]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_commit_changes_senders_before_receivers(dut):
    """Between both, the job has no parent, and packets for it go to the old one. Other jobs keep theirs."""
    table = Table(dut)
    await start(dut)
    held = {}
    for step in range(12):
        job = step % table.jobs if step < table.jobs else table.rng.randrange(table.jobs)
        new, port = table.some_parent(), table.rng.randrange(1, 1 << 16)
        await table.stage(new, port, meaningless=table.rng.getrandbits(16))
        dut.commit_job.value = job
        await table.pulse("receives")
        dut.partial.value = 1
        for other, (parent, up) in held.items():
            sender, receiver = await table.look_up(other)
            assert sender == (None if other == job else parent._replace(mac=0))
            assert receiver == (parent._replace(ethernet=0), up)
            assert table.above(other) == [parent.ethernet]
        dut.parent_job.value = sum(job << len(dut.commit_job) * e for e in range(table.ethernet))
        await ClockCycles(dut.clk, 3)
        assert number(dut.parent_valid) == 0
        await table.pulse("sends")
        dut.partial.value = 0
        held[job] = new, port
        for other, (parent, up) in held.items():
            assert await table.look_up(other) == (parent._replace(mac=0), (parent._replace(ethernet=0), up))
            assert table.above(other) == [parent.ethernet]


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(seed=[1, 2, 3, 4])
async def a_parent_is_good_or_bad(dut, seed):
    table = Table(dut, seed)
    await start(dut)
    good, up, own = table.some_parent(), table.rng.randrange(1, 1 << 16), table.own
    dut.commit_job.value = 0

    async def judged(parent, port, tree=1):
        await table.stage(parent, port, tree)
        return number(dut.parent_good)

    assert await judged(good, up) == 1
    bad = [good._replace(ip=0), good._replace(port=0), good._replace(ethernet=table.ethernet), Host(1, own.ip, own.port)]
    for parent in bad:
        assert await judged(parent, up) == 0 and await judged(parent, up, tree=0) == 1
    for bit in range(table.ethernet.bit_length(), WIDTHS["ethernet"]):
        assert await judged(good._replace(ethernet=1 << bit), up) == 0
    some = [good._replace(**{field: 1 << bit}) for field in ("ip", "port") for bit in range(WIDTHS[field])]
    for parent in [*some, good._replace(port=own.port), good._replace(mac=0), *near(own, ["ip", "port"])]:
        assert await judged(parent, up) == 1
    assert await judged(good, 0) == await judged(good, own.port) == 0
    for bit in range(16):
        assert await judged(good, own.port ^ 1 << bit) == 1
    for job in range(table.jobs):
        for committed in {job, (job + 1) % table.jobs}:
            dut.commit_job.value = committed
            for bit in range(16):
                other = up ^ 1 << bit
                dut.up_runs.value, dut.up_ports.value = 1 << job, other << 16 * job
                assert await judged(good, up) == 1
                assert await judged(good, other) == (job == committed), "a port of this very job is its own"
            dut.up_runs.value = 0
            assert await judged(good, other) == 1, "of a job that has ended"
    dut.commit_job.value = 0

    await table.pulse("receives")
    await table.pulse("sends")
    for parent, want in [(good, 1), *((other, 0) for other in near(good)), (good, 1)]:
        await table.stage(parent, up, meaningless=table.rng.getrandbits(16))
        assert number(dut.parent_same) == want, parent
    await table.pulse("clear")
    await ClockCycles(dut.clk, 6)
    assert number(dut.reg_value) == number(dut.parent_good) == 0
