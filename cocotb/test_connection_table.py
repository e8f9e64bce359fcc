"""agg_connection_table: what is staged, checked and registered of connections, and found by packets (ROCE.md, section 2)."""

import collections
import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from bench import bits, number, run, start

LATENCY = 2  # cycles from a lookup, or a register, to its answer

SIZES = {
    "one": {"PORTS": 1, "PORT_BITS": 1, "JOBS": 1, "JOB_BITS": 1, "ETHERNET": 1, "ELEM_BYTES": 4},
    "jobs": {"PORTS": 3, "PORT_BITS": 2, "JOBS": 3, "JOB_BITS": 2, "ETHERNET": 2, "ELEM_BYTES": 2},
    "ports": {"PORTS": 4, "PORT_BITS": 2, "JOBS": 1, "JOB_BITS": 1, "ETHERNET": 3, "ELEM_BYTES": 1},
}

# A registered connection; ip and qpn are the receiver's, at is its Ethernet port, and number its port of the core.
Entry = collections.namedtuple("Entry", "ip qpn psn number at source ethernet mtu epoch")
Commit = collections.namedtuple("Commit", "job ports chunk first partial epoch")


@pytest.mark.parametrize("size", SIZES)
def test_agg_connection_table(size):
    run("agg_connection_table", parameters=SIZES[size])


class Table:
    """The leaf beside its model. Each cycle looks connections up at all Ethernet ports, and reads a register."""

    def __init__(self, dut, seed):
        self.dut, self.rng = dut, random.Random(seed)
        self.ports, self.jobs, self.ethernet, self.bytes = (
            int(getattr(dut, name).value) for name in ("PORTS", "JOBS", "ETHERNET", "ELEM_BYTES")
        )
        self.port_bits, self.job_bits = int(dut.PORT_BITS.value), int(dut.JOB_BITS.value)
        self.draw()
        self.staged = self.nothing()
        self.entries = {}  # Entry by job and port
        self.register = (0, 0, 0)
        self.asked = collections.deque()  # (what the table held, lookups, register) of the last cycles
        self.found = self.before = 0  # lookups that found a connection; those in whose cycle the table changed
        for name in "clear stage_address stage_mac stage_connection check install remove remove_all".split():
            getattr(dut, name).value = 0
        for name in "stage_port stage_value commit_job commit_ports commit_chunk commit_first commit_partial".split():
            getattr(dut, name).value = 0
        dut.commit_epoch.value = dut.remove_job.value = 0

    def draw(self):
        """Draws addresses and QPNs: few, of which some differ in one bit. Connections collide, and lookups nearly match."""
        rng = self.rng
        ip, qpn = rng.getrandbits(32), rng.randrange(8, 1 << 24)
        self.addresses = [ip, ip ^ 1 << rng.randrange(32), ip ^ 1 << rng.randrange(32), rng.getrandbits(32)]
        self.qpns = [2, 3, qpn, qpn ^ 1 << rng.randrange(3), qpn ^ 1 << rng.randrange(3, 24)]

    def nothing(self):
        return {"address": [0] * self.ports, "mac": [0] * self.ports, "connection": [0] * self.ports}

    # Cycles

    async def cycle(self):
        """Spends a cycle with new lookups, and checks the answers to those of two cycles ago."""
        rng, dut = self.rng, self.dut
        lookups = [self.lookup() for _ in range(self.ethernet)]
        dut.lookup_ip.value = sum(ip << 32 * e for e, (ip, _) in enumerate(lookups))
        dut.lookup_qpn.value = sum(qpn << 24 * e for e, (_, qpn) in enumerate(lookups))
        if rng.random() < 0.5:  # it stays for two cycles at least, to be checked
            self.register = rng.randrange(2), rng.randrange(self.jobs), rng.randrange(self.ports)
            dut.reg_table.value, dut.reg_job.value, dut.reg_port.value = self.register
        await RisingEdge(dut.clk)
        self.asked.append((dict(self.entries), list(self.staged["connection"]), lookups, self.register))
        if len(self.asked) > LATENCY:
            held, staged, lookups, (registered, job, port) = self.asked.popleft()
            if self.asked[0][-1] == (registered, job, port):
                want = entry_value(held.get((job, port))) if registered else staged[port]
                assert number(dut.reg_value) == want, f"register of job {job}, port {port}"
            for e, lookup in enumerate(lookups):
                self.check_found(e, held, self.asked[0][0], *lookup)
            self.check_places(self.asked[-1][0])

    def lookup(self):
        """Returns an address and a QPN: of a connection, of one with another bit, or of none."""
        rng = self.rng
        if not self.entries or rng.random() < 0.3:
            return rng.choice(self.addresses), rng.choice(self.qpns)
        entry = rng.choice(list(self.entries.values()))
        ip, qpn = entry.ip, entry.qpn
        if rng.random() < 0.2:
            ip ^= 1 << rng.randrange(32)
        if rng.random() < 0.2:
            qpn ^= 1 << rng.randrange(24)
        return ip, qpn

    def check_found(self, e, held, then, ip, qpn):
        """Checks the answer to a lookup. held, then: the connections in its cycle, and one cycle later."""
        mine = [(at, entry) for at, entry in held.items() if (entry.ip, entry.qpn) == (ip, qpn)]
        assert self.of("found", 1, e) == len(mine)
        assert self.of("found_ip", 1, e) == any(entry.ip == ip for entry in held.values())
        if not mine:
            return
        self.found += 1
        ((job, port), entry), = mine
        assert self.of("found_epoch", 16, e) == entry.epoch, "a lookup's epoch is that of the connection that it found"
        assert self.of("found_job", self.job_bits, e) == job and self.of("found_port", self.port_bits, e) == port
        if then.get((job, port)) != entry:
            self.before += 1
            return
        fields = [("source", 32, entry.source), ("ethernet", 8, entry.ethernet), ("psn", 24, entry.psn), ("mtu", 3, entry.mtu)]
        for name, width, value in fields:
            assert self.of(f"found_{name}", width, e) == value, f"{name} of job {job}, port {port}"

    def of(self, name, width, e):
        """Returns the field of an output that belongs to an Ethernet port."""
        shown = bits(getattr(self.dut, name))[::-1][width * e : width * (e + 1)]
        return int(shown[::-1], 2)

    def check_places(self, held):
        """Checks where the sums of registered connections leave."""
        receivers, behind = (bits(signal)[::-1] for signal in (self.dut.receivers, self.dut.behind))  # bit 0 first
        for (job, port), entry in held.items():
            at = self.ports * job + port
            number_bits = receivers[self.port_bits * at : self.port_bits * (at + 1)]
            assert int(number_bits[::-1], 2) == entry.number
            for e in range(self.ethernet):
                assert behind[self.jobs * self.ports * e + at] == str(int(entry.at == e))

    async def pulse(self, name):
        getattr(self.dut, name).value = 1
        await self.cycle()
        getattr(self.dut, name).value = 0

    # Changes

    async def stage(self, name, port, value):
        self.dut.stage_port.value, self.dut.stage_value.value = port, value
        await self.pulse(f"stage_{name}")
        self.staged[name][port] = value
        self.dut.stage_port.value, self.dut.stage_value.value = self.rng.randrange(self.ports), self.rng.getrandbits(56)

    async def stage_some(self, ports):
        """Stages good connections of most of the ports in the mask; others have what they had."""
        rng = self.rng
        members = [port for port in range(self.ports) if ports >> port & 1]
        for port in members:
            if rng.random() < 0.8:
                await self.stage("address", port, rng.getrandbits(16) << 32 | rng.choice(self.addresses))
                await self.stage("mac", port, rng.randrange(self.ethernet + 1) << 48 | rng.getrandbits(48))
            if rng.random() < 0.8:
                await self.stage("connection", port, connection(rng.choice(self.qpns), rng.getrandbits(24), rng.choice(members)))

    def is_good(self, commit):
        """Returns whether a commit's connections may be registered."""
        if commit.chunk * self.bytes not in (256, 512, 1024, 2048, 4096) or commit.first or commit.partial:
            return False
        taken = {(entry.ip, entry.qpn) for (job, _), entry in self.entries.items() if job != commit.job}
        for port in range(self.ports):
            if not commit.ports >> port & 1:
                continue
            qpn, _, receiver = split(self.staged["connection"][port])
            if receiver >= self.ports or not commit.ports >> receiver & 1 or qpn < 2:
                return False
            key = self.staged["address"][receiver] % (1 << 32), qpn
            if key in taken:
                return False
            taken.add(key)
        return True

    async def check(self, commit, cycles=None):
        """Has a commit checked, and compares the answer; returns it. cycles: withdraws it then."""
        dut = self.dut
        for name, value in zip(commit._fields, commit):
            getattr(dut, f"commit_{name}").value = value
        dut.check.value = 1
        took = 0
        while took != cycles:
            await self.cycle()
            if number(dut.checked):
                break
            took += 1
        good = None
        if took != cycles:
            assert took == self.ports * (self.ports * (self.jobs + 1) + 3) + 1
            good = number(dut.good)
            assert good == self.is_good(commit), f"{commit} with {self.staged}, {self.entries}"
        dut.check.value = 0
        await self.cycle()
        return good

    async def install(self, commit):
        """Registers the connections that were checked last."""
        await self.pulse("install")
        for port in range(self.ports):
            self.entries.pop((commit.job, port), None)
            if commit.ports >> port & 1:
                qpn, psn, receiver = split(self.staged["connection"][port])
                self.entries[commit.job, port] = Entry(
                    ip=self.staged["address"][receiver] % (1 << 32),
                    qpn=qpn,
                    psn=psn,
                    number=receiver,
                    at=self.staged["mac"][receiver] >> 48,
                    source=self.staged["address"][port] % (1 << 32),
                    ethernet=self.staged["mac"][port] >> 48,
                    mtu=(commit.chunk * self.bytes // 256).bit_length() - 1,
                    epoch=commit.epoch,
                )

    async def remove(self, job):
        self.dut.remove_job.value = job
        await self.pulse("remove")
        self.entries = {at: entry for at, entry in self.entries.items() if at[0] != job}

    async def forget(self, name):
        """clear, or remove_all."""
        await self.pulse(name)
        if name == "clear":
            self.staged = self.nothing()
        else:
            self.entries = {}

    def some_commit(self, ports=None):
        rng = self.rng
        return Commit(
            job=rng.randrange(self.jobs),
            ports=rng.randrange(1, 1 << self.ports) if ports is None else ports,
            chunk=(256 << rng.randrange(5)) // self.bytes,
            first=0,
            partial=0,
            epoch=rng.getrandbits(16),
        )


def connection(qpn, psn, receiver):
    return receiver << 48 | psn << 24 | qpn


def split(value):
    return value % (1 << 24), value >> 24 & 0xFFFFFF, value >> 48


def entry_value(entry):
    """Returns JOB_CONNECTION of an entry."""
    return 0 if entry is None else connection(entry.qpn, entry.psn, entry.number)


async def begin(dut, seed=1):
    table = Table(dut, seed)
    dut.lookup_ip.value = dut.lookup_qpn.value = dut.reg_table.value = dut.reg_job.value = dut.reg_port.value = 0
    await start(dut)
    return table


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def checks_registers_and_finds_like_the_model(dut):
    """Commits of all kinds, most good: those that are good are registered, others are not."""
    table = await begin(dut)
    rng = table.rng
    good = bad = 0
    for step in range(200):
        if step % 10 == 0:
            table.draw()
        commit = table.some_commit()
        if rng.random() < 0.1:
            fault = rng.choice([{"chunk": 0}, {"first": 1 << rng.randrange(32)}, {"partial": 1}])
            commit = commit._replace(**fault)
        await table.stage_some(commit.ports)
        if rng.random() < 0.2:
            await table.check(table.some_commit(), cycles=rng.randrange(1, 30))
        if await table.check(commit):
            good += 1
            await table.install(commit)
        else:
            bad += 1
        for _ in range(rng.choice([0, 0, 8])):
            await table.cycle()
        action = rng.random()
        if action < 0.05:
            await table.remove(rng.randrange(table.jobs))
        elif action < 0.1:
            await table.forget(rng.choice(["clear", "remove_all"]))
    assert good > 20 and bad > 5 and table.found > 100
    assert table.before > 0, "no lookup was in the cycle of a change"


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def refuses_for_each_reason(dut):
    """A good commit with one change: each alone makes it bad, or leaves it good."""
    table = await begin(dut)
    ports, last = table.ports, table.ports - 1
    every = (1 << ports) - 1
    ring = [connection(0x100 + port, 5, (port + 1) % ports) for port in range(ports)]
    commit = table.some_commit(every)._replace(job=0)

    async def stage(entries):
        for port in range(ports):
            await table.stage("address", port, 0x0A000001 + port)
            await table.stage("mac", port, 0)
            await table.stage("connection", port, entries.get(port, ring[port]))

    async def judged(entries=None, **how):
        await stage(entries or {})
        return await table.check(commit._replace(**how))

    assert await judged()
    for port in range(ports):
        to = (port + 1) % ports
        for bit in range(8):  # of the receiver's port
            if to ^ 1 << bit >= ports:
                assert not await judged({port: connection(9, 0, to ^ 1 << bit)}), f"receiver {to ^ 1 << bit}"
        assert not await judged({port: connection(0, 0, to)}) and not await judged({port: connection(1, 0, to)})
        for bit in range(1, 24):
            assert await judged({port: connection(1 << bit, 0, to)}), f"QPN {1 << bit}"
        if ports > 1:
            assert not await judged(ports=every ^ 1 << port), "a receiver that is no member"
            other = (port + 1) % ports
            assert not await judged({port: ring[other]}), "the same receiver twice"
            assert await judged({port: ring[other] ^ 1}), "with another QPN"
            away = {p: connection(9, 0, p) for p in range(ports)}
            assert await judged(away), "the same QPN, at other addresses"
    for bit in range(16, 64):
        assert not await judged(chunk=commit.chunk | 1 << bit)
    for size in (128, 252, 260, 384, 8192, 0):
        assert not await judged(chunk=size // table.bytes)
    for bit in range(32):
        assert not await judged(first=1 << bit)
    assert not await judged(partial=1)
    if table.jobs == 1:
        return
    await stage({})
    assert await table.check(commit) and not await table.install(commit)
    assert not await judged(job=1), "of another job"
    assert not await judged({p: connection(9, 0, 0) for p in range(1, ports)}, ports=1 << last | 1, job=1) or last == 0
    assert await judged(), "its own, again"
    await table.remove(0)
    assert await judged(job=1), "of a job whose connections were removed"


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def installs_at_once(dut):
    """Connections that swap ports with a new commit are found in every cycle, and once, with their own epoch."""
    table = await begin(dut)
    ports = table.ports
    every = (1 << ports) - 1
    for port in range(ports):
        await table.stage("address", port, 0x0A000001 + port)
    for turn in range(2 * ports):
        entries = [connection(7, turn, (port + turn) % ports) for port in range(ports)]
        for port in range(ports):
            await table.stage("connection", port, entries[port])
        commit = Commit(job=0, ports=every, chunk=256 // table.bytes, first=0, partial=0, epoch=turn + 1)
        assert await table.check(commit)
        await table.install(commit)
        for _ in range(3):
            await table.cycle()
        assert len(table.entries) == ports
