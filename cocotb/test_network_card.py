"""Registers, owner, lease and address table of a card on a network, in front of the core's registers
and jobs (network_card.v); and agg_network_counters.

The reference is written from sections 3 to 5 of driver/wire/NETWORK.md. Jobs are those of the core's
bench.
"""

import collections
import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

import zwire
from bench import ROOT, cycle, leaf, number, run, start
from streams import PATTERNS, StreamSink, StreamSource
from test_core_registers import CHUNK, WINDOW, Jobs, members_of

Address = collections.namedtuple("Address", "ip port mac ethernet")
EMPTY = Address(0, 0, 0, 0)
OWN = Address(0x0A00FF01, 0x5442, 0x02545242AB01, 0)
STAGED = ("JOB_TOKEN", "JOB_PORTS", "JOB_CHUNK", "JOB_WINDOW", "JOB_DEADLINE")
LAST_READ = ("SOURCE", "SOURCE_MAC")
DONE, BUSY = zwire.CODE_DONE, zwire.CODE_BUSY

# The senders of accesses. The second is the first behind another router; the next three differ from it
# in one part of the address each.
FIRST = Address(0x0A000001, 4000, 0x020000000001, 0)
SENDERS = [
    FIRST,
    FIRST._replace(mac=0x0200000000FF),
    FIRST._replace(ip=0x0A010001),
    FIRST._replace(port=4000 ^ 1 << 15),
    FIRST._replace(ethernet=1),
]


def same_sender(a, b):
    """The IPv4 address, the UDP port and the Ethernet port count; the MAC address does not."""
    return (a.ip, a.port, a.ethernet) == (b.ip, b.port, b.ethernet)


def words(address):
    """Returns the values of an *ADDRESS and of a *MAC register."""
    return address.port << 32 | address.ip, address.ethernet << 48 | address.mac


def from_words(address, mac):
    """Returns the address in the values of two registers; bits without a meaning are ignored."""
    return Address(address % 2**32, address >> 32 & 0xFFFF, mac % 2**48, mac >> 48 & 0xFF)


class Network:
    """The expected registers of a card on a network."""

    def __init__(self, ports, jobs, ethernet, lease):
        self.ports, self.ethernet, self.default = ports, ethernet, lease
        self.jobs = Jobs(ports, jobs)
        self.table = [[EMPTY] * ports for _ in range(jobs)]
        self.owner, self.owned_by, self.last_code, self.leases = 0, None, DONE, 0
        self.card = list(words(OWN))
        self.clear()

    def clear(self):
        """RESET and a new owner do this."""
        self.staged = dict.fromkeys(STAGED, 0)
        self.members = [[0, 0] for _ in range(self.ports)]
        self.lease = self.default

    def locate(self, address):
        """Returns the name of a register, and its numbers of job and port; None if the card lacks it."""
        for name in ("OWNER", "RELEASE", "RESET", "LAST_CODE", "JOB_COMMIT", "JOB_ABORT", *STAGED):
            if address == zwire.REGISTERS[name][0]:
                return name, 0, 0
        for job in range(len(self.table)):
            if address == zwire.REG_JOB_STATE + zwire.REG_JOB_STRIDE * job:
                return "JOB_STATE", job, 0
            for port in range(self.ports):
                for name in ("JOB_ADDRESS", "JOB_MAC"):
                    base = zwire.NETWORK_REGISTERS[name][0]
                    if address == base + zwire.REG_TABLE_STRIDE * job + zwire.REG_MEMBER_STRIDE * port:
                        return name, job, port
        for port in range(self.ports):
            for name in ("MEMBER_ADDRESS", "MEMBER_MAC"):
                if address == zwire.NETWORK_REGISTERS[name][0] + zwire.REG_MEMBER_STRIDE * port:
                    return name, 0, port
        for name in ("LEASE", "SOURCE", "SOURCE_MAC", "CARD_ADDRESS", "CARD_MAC"):
            if address == zwire.NETWORK_REGISTERS[name][0]:
                return name, 0, 0
        index = (address - zwire.REG_NETWORK_COUNTERS) // 8
        if address % 8 == 0 and 0 <= index < len(zwire.NETWORK_COUNTER_NAMES):
            return "counter", index, 0
        return None

    def access(self, sender, write, address, value):
        """Returns code and value of the reply."""
        found = self.locate(address)
        code, after = zwire.CODE_BAD_ADDRESS, 0
        if found:
            code, after = self.write(sender, value, *found) if write else (DONE, self.read(sender, *found))
        if write:
            self.last_code = code
        return code, after

    def read(self, sender, name, job, port):
        if name == "JOB_STATE":
            of = self.jobs.jobs[job]
            return job << 32 | of.epoch << 16 | of.ever << 1 | of.running
        if name in ("JOB_ADDRESS", "JOB_MAC"):
            return words(self.table[job][port])[name == "JOB_MAC"]
        if name in ("MEMBER_ADDRESS", "MEMBER_MAC"):
            return self.members[port][name == "MEMBER_MAC"]
        if name in ("CARD_ADDRESS", "CARD_MAC"):
            return self.card[name == "CARD_MAC"]
        if name in LAST_READ:
            return words(sender)[name == "SOURCE_MAC"]
        if name == "counter":
            return self.leases if job == zwire.COUNT_LEASE else 0
        return {"OWNER": self.owner, "LAST_CODE": self.last_code, "LEASE": self.lease, **self.staged}.get(name, 0)

    def stranger(self, sender, name):
        if self.owner:
            return not same_sender(sender, self.owned_by)
        return name not in ("OWNER", "RELEASE", "RESET")

    def write(self, sender, value, name, job, port):
        if name in ("JOB_STATE", "JOB_ADDRESS", "JOB_MAC", "LAST_CODE", "counter", *LAST_READ):
            return zwire.CODE_READ_ONLY, 0
        if self.stranger(sender, name):
            return BUSY, 0
        if name == "OWNER":
            return self.take(sender, value)
        if name in ("RELEASE", "RESET"):
            return self.let_go(name, value)
        if name in ("JOB_COMMIT", "JOB_ABORT"):
            if self.staged["JOB_TOKEN"] != self.owner:
                return BUSY, 0
            number, epoch, first = value >> 48 & 255, value >> 32 & 0xFFFF, value % 2**32
            return (self.commit(number, epoch, first) if name == "JOB_COMMIT" else self.jobs.abort(number, epoch)), 0
        if name == "LEASE":
            if not 1 <= value <= 2**40:
                return zwire.CODE_BAD_DEADLINE, 0
            self.lease = value
        elif name == "CARD_ADDRESS":
            value = self.card[0] = value % 2**48
        elif name == "CARD_MAC":
            value = self.card[1] = value % 2**56
        elif name in STAGED:
            self.staged[name] = value
        else:
            self.members[port][name == "MEMBER_MAC"] = value
        return DONE, value

    def take(self, sender, token):
        if not self.owner and token:
            self.owner, self.owned_by = token, sender
            self.clear()
        return DONE, self.owner or token

    def let_go(self, name, token):
        if self.owner and token != self.owner:
            return BUSY, 0
        if self.owner or name == "RESET":
            self.jobs.end_all()
        self.owner = 0
        if name == "RESET":
            self.clear()
            self.leases = 0
        return DONE, 0

    def wants(self):
        """Returns the entries that a commit writes: by port, those of JOB_PORTS."""
        ports = self.staged["JOB_PORTS"]
        return [from_words(*m) if ports >> p & 1 else EMPTY for p, m in enumerate(self.members)]

    def commit(self, number, epoch, first):
        staged = [self.staged[name] for name in STAGED[1:]]
        setup = (*staged[:3], first, staged[3])
        addresses = [from_words(*m) for m in self.members]
        whole = sum(bool(a.ip and a.port and a.ethernet < self.ethernet) << p for p, a in enumerate(addresses))
        exists = number < len(self.table)
        before = exists and self.jobs.jobs[number].epoch, exists and self.jobs.jobs[number].ever
        same = exists and self.wants() == self.table[number]
        code = self.jobs.commit(number, epoch, setup, whole, same)
        if code == DONE and before != (epoch, True):
            self.table[number] = self.wants()
        return code

    def lose(self):
        """The lease ends."""
        self.owner = 0
        self.leases += 1
        self.jobs.end_all()

    def member(self, job, rank):
        """Returns the address and the core's port of a rank, or None."""
        if job >= len(self.table):
            return None
        ports = [p for p, entry in enumerate(self.table[job]) if entry != EMPTY]
        return (self.table[job][ports[rank]], ports[rank]) if rank < len(ports) else None


class Commit:
    """What lookups find of a job's table while its commit is under way: the old entry, later none, and later the new
    one."""

    def __init__(self, job):
        self.job, self.sets_up, self.phase = job, False, 0
        self.lost = False  # the lease has ended: then the core gets the commit without preparation
        self.seen = []  # lookups whose new entry is not known yet
        self.member = None  # returns that entry

    def saw(self, rank, old, found):
        self.seen.append((rank, old, found))
        if self.member:
            self.end(self.member)

    def end(self, member):
        """The commit has been answered; member returns a rank's entry."""
        self.member = member
        for rank, old, found in self.seen:
            phases = [old, None, member(rank)] if self.sets_up else [old]
            while self.phase < len(phases) and found != phases[self.phase]:
                self.phase += 1
            assert self.phase < len(phases), f"rank {rank} of job {self.job}: {found} is none of {phases}"
        self.seen = []


class Shell:
    """Looks senders up, starts packets and lets them leave, and watches the card.

    A lookup of a job finds its only entry, or what a commit allows. A packet leaves for the address that
    its job's table had when it was started.
    """

    def __init__(self, dut, model, rng):
        self.dut, self.model, self.rng = dut, model, rng
        self.lookups = []  # in the pipeline, the newest first: what may be found
        self.commit = None  # that is under way
        self.packets = collections.deque()  # started: job, port, entry, same
        self.sent = 0
        self.quiet = 0  # cycles in a row with hold_packets and without packets_busy
        self.busy_for = 0
        self.leases = self.ends = 0
        self.end_at = None  # the cycle of the last lease_over
        self.own = OWN
        self.sink = StreamSink(
            dut, "m_reply", PATTERNS["bursts"](), ("header", "mac", "ip", "port", "ethernet"), "valid", "ready"
        )
        self.source = StreamSource(
            dut,
            "s_access",
            PATTERNS["bursts"](2),
            ("write", "addr", "tag", "wdata", "mac", "ip", "port", "ethernet"),
            "valid",
            "ready",
        )
        for name in ("packets_busy", "packet_started", "packet_left", "from_en", "from_job", "from_rank"):
            getattr(dut, name).value = 0
        dut.to_en.value = dut.to_job.value = dut.to_port.value = 0

    def begin(self):
        cocotb.start_soon(self._watch())
        cocotb.start_soon(self._look_up())
        cocotb.start_soon(self._send())

    async def _watch(self):
        """Drives packets_busy and checks what must hold in every cycle."""
        dut, rng = self.dut, self.rng
        while True:
            await RisingEdge(dut.clk)
            hold = number(dut.hold_packets)
            if number(dut.lease_over):
                self.leases += 1
                self.end_at = cycle()
                if self.commit:
                    self.commit.lost = True
            if number(dut.set_up):
                self.commit.sets_up = True
            taken = self._own()
            if self.own != taken:
                assert number(dut.m_reply_valid) == 0, "the card's address changed before the reply had left"
                self.own = taken
            begins = number(dut.reg_valid) and number(dut.reg_ready) and self.commit and not self.commit.lost
            assert not begins or self.quiet >= 8, f"the core got a commit after {self.quiet} quiet cycles"
            self.quiet = self.quiet + 1 if hold and not number(dut.packets_busy) else 0
            self.busy_for = max(0, self.busy_for - 1) if hold else rng.randrange(15)
            dut.packets_busy.value = int(self.busy_for > 0 and rng.random() < 0.7)

    def _own(self):
        dut = self.dut
        return Address(number(dut.own_ip), number(dut.own_port), number(dut.own_mac), 0)

    async def lease_ends(self, at):
        """Waits until a lease has ended, at about that cycle."""
        while not self.leases:
            assert cycle() < at + 100, "the lease does not end"
            await RisingEdge(self.dut.clk)

    async def _look_up(self):
        dut, rng, driven = self.dut, self.rng, None
        while True:
            await RisingEdge(dut.clk)
            if driven:
                if len(self.lookups) == 2:
                    self._check(self.lookups.pop())
                self.lookups.insert(0, driven)
            hold = number(dut.hold_packets)
            driven = None
            if not hold and rng.random() < 0.6:
                job, rank = rng.randrange(len(self.model.table) + 1), rng.randrange(self.model.ports + 1)
                if rng.random() < 0.02:
                    job, rank = rng.randrange(256), rng.randrange(256)
                commit = self.commit if self.commit and self.commit.job == job else None
                driven = job, rank, commit, self._sender(self.model.member(job, rank))
                dut.from_job.value, dut.from_rank.value = job, rank
            dut.from_en.value = int(driven is not None)

    def _check(self, lookup):
        """Compares the oldest lookup, which the outputs show now, when the next ones enter."""
        dut, (job, rank, commit, want) = self.dut, lookup
        found = None
        if number(dut.from_valid):
            found = tuple(number(h) for h in (dut.from_ip, dut.from_port, dut.from_ethernet, dut.from_dest))
        if commit:
            commit.saw(rank, want, found)
        else:
            assert found == want, f"job {job}, rank {rank}"

    @staticmethod
    def _sender(member):
        """Returns what a lookup finds of an address and a port, or None."""
        return member and (member[0].ip, member[0].port, member[0].ethernet, member[1])

    async def _send(self):
        """Starts packets for members, and lets them leave in order."""
        dut, rng = self.dut, self.rng
        while True:
            await RisingEdge(dut.clk)
            dut.packet_started.value = dut.packet_left.value = 0
            dut.to_en.value = 0
            if rng.random() < 0.3 and len(self.packets) < 20:
                self._start()
            if self.packets and rng.random() < 0.2:
                await self._leave()

    def _start(self):
        job = self.rng.randrange(len(self.model.table))
        table = self.model.table[job]
        ports = [port for port, entry in enumerate(table) if entry != EMPTY]
        commit = self.commit if self.commit and self.commit.job == job else None
        if not ports or (commit and (commit.sets_up or number(self.dut.set_up))):
            return
        port = self.rng.choice(ports)
        same = sum(1 << p for p, entry in enumerate(table) if entry == table[port])
        self.packets.append((job, port, table[port], same))
        self.dut.packet_started.value = 1

    async def _leave(self):
        dut = self.dut
        job, port, entry, same = self.packets[0]
        dut.to_job.value, dut.to_port.value, dut.to_en.value = job, port, 1
        await RisingEdge(dut.clk)
        dut.packet_started.value = 0
        dut.to_job.value, dut.to_port.value = 0, 0
        if self.rng.random() < 0.3:
            dut.to_en.value = 0
            await ClockCycles(dut.clk, self.rng.randint(1, 5))
            dut.to_en.value = 1
        await RisingEdge(dut.clk)
        dut.to_en.value = 0
        await FallingEdge(dut.clk)
        found = Address(*(number(h) for h in (dut.to_ip, dut.to_udp_port, dut.to_mac, dut.to_ethernet)))
        assert (found, number(dut.to_same)) == (entry, same), f"a packet for port {port} of job {job}"
        await RisingEdge(dut.clk)
        self.packets.popleft()
        self.sent += 1
        dut.packet_left.value = 1

    def begin_commit(self, job):
        self.commit = Commit(job)

    def end_commit(self, before):
        """The commit was answered, and the model has the job's table."""
        commit, self.commit = self.commit, None
        job, ranks = commit.job, [self._sender(self.model.member(commit.job, rank)) for rank in range(256)]
        assert commit.sets_up or self.model.table[job] == before
        commit.end(lambda rank: ranks[rank])

    def offer(self, sender, write, address, value):
        """Offers an access, after those that wait; returns its tag."""
        tag = self.rng.getrandbits(16)
        access = {"write": int(write), "addr": address, "tag": tag, "wdata": value}
        self.source.put(access | sender._asdict())
        return tag

    async def access(self, sender, write, address, value):
        """Makes an access and returns the code and value of its reply."""
        return await self.reply(sender, address, self.offer(sender, write, address, value))

    async def reply(self, sender, address, tag):
        """Waits for the next reply, which must be to this access; returns its code and value."""
        (reply,) = await self.sink.take(1)
        assert Address(reply["ip"], reply["port"], reply["mac"], reply["ethernet"]) == sender
        header = reply["header"]
        fields = {name: header >> bit & (1 << width) - 1 for name, (bit, width) in zwire.FIELDS.items() if bit < 176}
        got = {"vid": address, "length": tag, "kind": zwire.KIND_REPLY, "version": zwire.VERSION}
        got |= {"mask": fields["mask"], "code": fields["code"]}
        assert fields == dict.fromkeys(fields, 0) | got
        return fields["code"], fields["mask"]


class Bench:
    """The card with its model."""

    def __init__(self, dut, seed):
        self.dut, self.rng = dut, random.Random(seed)
        self.jobs, self.ports = len(dut.job_valid), len(dut.to_same)
        self.ethernet, self.default = int(dut.ETHERNET.value), int(dut.LEASE_DEFAULT.value)
        self.model = Network(self.ports, self.jobs, self.ethernet, self.default)
        self.shell = Shell(dut, self.model, self.rng)
        # Any bit of an address may be 1; it differs from another's in a few bits or in many.
        addresses = random.Random(f"addresses {seed}")
        self.stations = [addresses.getrandbits(32) | 1 for _ in range(max(3, self.ports))]
        self.macs = [addresses.getrandbits(48) for _ in self.stations]
        self.udp_ports = [addresses.getrandbits(16) | 1 for _ in range(2)]
        self.heard_at = 0
        self.margin = 300  # cycles that an access takes, except for a commit
        self.epochs = [self.rng.getrandbits(16) for _ in range(self.jobs)]
        self.codes = collections.Counter()

    async def start(self):
        await start(self.dut)
        self.shell.begin()

    async def access(self, sender, write, address, value=0):
        """Makes an access, compares its reply, and returns the code."""
        model, shell = self.model, self.shell
        await self._let_the_lease_end()
        if model.owner and same_sender(sender, model.owned_by):
            self.heard_at = cycle()
        owned, found = model.owner, model.locate(address)
        commit = write and found and found[0] == "JOB_COMMIT" and not model.stranger(sender, "JOB_COMMIT")
        job = value >> 48 & 255
        if commit and job < self.jobs:
            shell.begin_commit(job)
        before = [list(entries) for entries in model.table]
        code, mask = await shell.access(sender, write, address, value)
        want = model.access(sender, write, address, value)
        what = f"{'write' if write else 'read'} of {found} at {address:#x} with {value:#x} by {sender}"
        assert (code, mask) == want, f"{what}: {code, hex(mask)}, want {want[0], hex(want[1])}"
        if shell.commit:
            shell.end_commit(before[shell.commit.job])
        if model.owner and not owned:
            self.heard_at = cycle()
        self.codes[code] += 1
        return code

    async def _let_the_lease_end(self):
        """Waits until the lease has ended if it is about to."""
        left = self.model.lease - (cycle() - self.heard_at)
        if self.model.owner and left < self.margin:
            await self.silence()

    async def silence(self):
        """Waits until the owner has lost the card."""
        assert self.shell.leases == 0
        await self.shell.lease_ends(self.heard_at + self.model.lease)
        late = self.shell.end_at - self.heard_at - self.model.lease
        assert -60 < late < 60, f"the lease ended {late} cycles too late"
        self.shell.leases = 0
        await ClockCycles(self.dut.clk, self.rng.choice([1, 1, 2, 3, 10, 30]))
        self.model.lose()

    def someone(self, owner=0.7):
        """Returns a sender, most often the owner."""
        if self.model.owner and self.rng.random() < owner:
            return self.model.owned_by
        return self.rng.choice(SENDERS)

    def member(self, port):
        """Returns the values of a port's MEMBER registers: most are good, and some are equal."""
        rng = self.rng
        station = self.stations[rng.choice([port, 1, 2])] | rng.choice(self.udp_ports) << 32
        mac = self.macs[rng.choice([port, 1, 1])] | rng.randrange(self.ethernet) << 48
        if rng.random() < 0.03:
            station &= rng.choice([0xFFFFFFFF, 0xFFFF << 32])
        if rng.random() < 0.03:
            mac |= rng.choice([self.ethernet, 255]) << 48
        return station | rng.getrandbits(16) << 48, mac | rng.getrandbits(8) << 56

    def place(self, name, job=0, port=0):
        address = (zwire.REGISTERS | zwire.NETWORK_REGISTERS)[name][0]
        if name in ("JOB_ADDRESS", "JOB_MAC"):
            address += zwire.REG_TABLE_STRIDE * job
        if name in ("JOB_ADDRESS", "JOB_MAC", "MEMBER_ADDRESS", "MEMBER_MAC"):
            address += zwire.REG_MEMBER_STRIDE * port
        return address + zwire.REG_JOB_STRIDE * job * (name == "JOB_STATE")

    async def stage(self, ports, sender=None, members=None):
        """Stages a job with good values; members: all its addresses, by port."""
        sender = sender or self.model.owned_by
        window = self.rng.choice([1, 2]) if self.jobs > 1 else WINDOW
        values = {"JOB_TOKEN": self.model.owner, "JOB_PORTS": ports, "JOB_CHUNK": CHUNK, "JOB_WINDOW": window}
        for name, value in values.items():
            await self.access(sender, 1, self.place(name), value)
        for port in members_of(ports):
            pair = words(members[port]) if members else self.member(port)
            for name, value in zip(("MEMBER_ADDRESS", "MEMBER_MAC"), pair):
                await self.access(sender, 1, self.place(name, port=port), value)

    async def commit(self, job, epoch, sender=None):
        value = job << 48 | epoch << 32 | 7
        return await self.access(sender or self.model.owned_by, 1, self.place("JOB_COMMIT"), value)

    async def set_up(self):
        """The owner stages a job and commits it, perhaps twice, and perhaps with other addresses."""
        rng = self.rng
        job, ports = rng.randrange(self.jobs), rng.randint(1, (1 << self.ports) - 1)
        await self.stage(ports)
        self.epochs[job] = (self.epochs[job] + rng.choice([1, 1, 1, 5, 0])) % 2**16
        await self.commit(job, self.epochs[job])
        if rng.random() < 0.5:
            port = rng.choice(members_of(ports))
            for name, value in zip(("MEMBER_ADDRESS", "MEMBER_MAC"), self.member(port)):
                if rng.random() < 0.4:
                    await self.access(self.model.owned_by, 1, self.place(name, port=port), value)
            await self.commit(job, self.epochs[job])

    async def step(self):
        """Makes a random access, or several that belong together."""
        rng, model = self.rng, self.model
        choice = rng.random()
        if not model.owner and choice < 0.5:
            await self.access(rng.choice(SENDERS), 1, zwire.REG_OWNER, rng.getrandbits(64) * (rng.random() < 0.9))
        elif model.owner and choice < 0.12:
            await self.set_up()
        elif model.owner and choice < 0.13 and model.lease <= 2 * self.default:
            await self.silence()
        elif model.owner and choice < 0.15:
            await self.reset()
        else:
            await self.any_access()

    async def reset(self):
        """The owner resets what it has staged, and anyone sees it."""
        owner, port = self.model.owned_by, self.rng.randrange(self.ports)
        shown = [self.place("LEASE"), self.place("JOB_CHUNK"), self.place("MEMBER_MAC", port=port)]
        for address, value in zip(shown, (2 * self.default, CHUNK, self.rng.getrandbits(64))):
            await self.access(owner, 1, address, value)
        await self.access(owner, 1, zwire.REG_RESET, self.model.owner)
        for address in shown:
            await self.access(self.rng.choice(SENDERS), 0, address)

    async def any_access(self):
        rng, model = self.rng, self.model
        names = ["OWNER", "RELEASE", "RESET", "JOB_COMMIT", "JOB_ABORT", "JOB_STATE", "LAST_CODE", *STAGED]
        names += [*zwire.NETWORK_REGISTERS] * 2 + ["JOB_ADDRESS", "JOB_MAC", "MEMBER_ADDRESS", "MEMBER_MAC"] * 3
        name = rng.choice([*names, "counter", "unknown"])
        job, port = rng.randrange(self.jobs), rng.randrange(self.ports)
        write = rng.random() < (0.2 if name in ("RELEASE", "RESET") else 0.5)
        value = rng.choice([model.owner, 0, rng.getrandbits(64), rng.getrandbits(40)])
        if name == "LEASE":
            value = rng.choice([0, self.default, 2 * self.default, 2**40, 2**40 + 1, 2**63])
        elif name in ("JOB_COMMIT", "JOB_ABORT"):
            value = rng.choice([job, job, self.jobs]) << 48 | self.epochs[job] << 32 | 7
        if name == "counter":
            address = zwire.REG_NETWORK_COUNTERS + 8 * rng.choice(
                [zwire.COUNT_LEASE, rng.randrange(zwire.NETWORK_COUNTERS)]
            )
        elif name == "unknown":
            address = self.unknown()
        else:
            address = self.place(name, job, port)
        await self.access(self.someone(), write, address, value)

    def unknown(self):
        """Returns an address beside a register: none, or another register's."""
        rng = self.rng
        name = rng.choice([*zwire.NETWORK_REGISTERS])
        edges = [
            zwire.REG_NETWORK_COUNTERS + 8 * zwire.NETWORK_COUNTERS,
            self.place("MEMBER_MAC", port=self.ports - 1) + 8,
            self.place("JOB_MAC", self.jobs - 1, self.ports - 1) + 8,
            zwire.REG_JOB_ADDRESS + zwire.REG_TABLE_STRIDE * self.jobs,
        ]
        while True:
            near = self.place(name, rng.randrange(self.jobs), rng.randrange(self.ports)) ^ 1 << rng.randrange(32)
            address = rng.choice([near, near, *edges])
            # Reading other registers of the core is not for this bench.
            if address % 8 or address >= 0x400 and not 0x1000 <= address < 0x20000 + 0x20000 or self.model.locate(address):
                if not zwire.REG_COUNTERS <= address < zwire.REG_NETWORK_COUNTERS or address % 8:
                    return address


@cocotb.test(timeout_time=60, timeout_unit="ms")
@cocotb.parametrize(seed=[1, 2])
async def does_as_specified(dut, seed):
    """Several senders access the card at random, take it, lose it, and set jobs up, while packets pass."""
    bench = Bench(dut, seed)
    await bench.start()
    steps = 500 if bench.ports in (4, 8) else 150
    for _ in range(steps):
        await bench.step()
        if not number(dut.down):
            assert number(dut.job_valid) == sum(job.running << i for i, job in enumerate(bench.model.jobs.jobs))
    if bench.ports == 4:
        names = "DONE BUSY READ_ONLY BAD_ADDRESS BAD_DEADLINE BAD_MEMBER EPOCH_IN_USE STALE_EPOCH".split()
        assert bench.codes.keys() >= {getattr(zwire, f"CODE_{name}") for name in names}
    assert bench.shell.sent > steps


@cocotb.test(timeout_time=60, timeout_unit="ms")
async def a_lease_ends_in_any_cycle_of_a_commit(dut):
    """The job is set up whole, with its addresses, or not at all; then the owner has lost the card."""
    bench = Bench(dut, 3)
    model, shell, reader = bench.model, bench.shell, SENDERS[2]
    await bench.start()
    outcomes, done, lease, epoch = set(), 0, 0, 100
    tables = [[Address(0x0A000100 * t + p, 5000, 0x020000000000 + p, 0) for p in range(bench.ports)] for t in (1, 2)]
    everyone = (1 << bench.ports) - 1
    while done < 10:
        lease += 1
        await bench.access(FIRST, 1, zwire.REG_OWNER, 1 << 40 | lease)
        await bench.stage(everyone, members=tables[0])
        assert await bench.commit(0, epoch) == DONE
        await bench.stage(everyone, members=tables[1])
        # The commit follows at once. The model does not know when the lease ends.
        value, before = epoch + 1 << 32 | 7, model.table[0]
        shell.begin_commit(0)
        tags = [shell.offer(FIRST, 1, zwire.REG_LEASE, lease), shell.offer(FIRST, 1, zwire.REG_JOB_COMMIT, value)]
        assert await shell.reply(FIRST, zwire.REG_LEASE, tags[0]) == (DONE, lease)
        code, _ = await shell.reply(FIRST, zwire.REG_JOB_COMMIT, tags[1])
        _, state = await shell.access(reader, 0, zwire.REG_JOB_STATE, 0)
        renewed = state >> 16 & 0xFFFF == epoch + 1
        model.table[0] = tables[renewed]
        shell.end_commit(before)
        assert code == BUSY or (code == DONE and renewed)
        outcomes.add((code, renewed))
        done = done + 1 if code == DONE else 0
        await shell.lease_ends(cycle() + lease)
        shell.leases = 0
        model.lose()
        model.jobs.jobs[0].epoch = epoch + renewed
        model.last_code = code
        for name in ("OWNER", "LAST_CODE", "JOB_STATE"):
            await bench.access(reader, 0, bench.place(name))
        for port in range(bench.ports):
            await bench.access(reader, 0, bench.place("JOB_ADDRESS", 0, port))
            await bench.access(reader, 0, bench.place("JOB_MAC", 0, port))
        await bench.access(reader, 0, zwire.REG_NETWORK_COUNTERS + 8 * zwire.COUNT_LEASE)
        epoch += 2
    assert outcomes == {(BUSY, False), (BUSY, True), (DONE, True)}


@cocotb.test(timeout_time=60, timeout_unit="ms")
async def a_lease_ends_after_the_silence_of_its_owner(dut):
    """Accesses of others, also those refused, restart nothing; one of the owner does, also one refused."""
    bench = Bench(dut, 4)
    shell, rng = bench.shell, bench.rng
    shell.source.idle, shell.sink.stall = PATTERNS["never"](), PATTERNS["never"]()
    await bench.start()
    for trial in range(12):
        lease = rng.randint(150, 400)
        await bench.access(FIRST, 1, zwire.REG_OWNER, 7)
        bench.margin = 0
        await bench.access(FIRST, 1, zwire.REG_LEASE, lease)
        for _ in range(rng.randrange(4)):
            await ClockCycles(dut.clk, lease - 60)
            owner = SENDERS[trial % 2]  # behind any router
            await bench.access(owner, rng.randrange(2), zwire.REG_SOURCE, 1)
        heard = shell.source.accepted_at[-1]
        while not shell.leases:
            stranger = rng.choice(SENDERS[2:])
            code, _ = await shell.access(stranger, 1, zwire.REG_MEMBER_ADDRESS, 1)
            assert code == BUSY
            assert cycle() < heard + lease + 100, "the lease does not end"
        # The lease begins when the access is decoded, a few cycles before it is answered.
        assert lease - 12 <= shell.end_at - heard <= lease + 4, f"after {shell.end_at - heard} cycles, want {lease}"
        shell.leases = 0
        bench.model.lose()
        bench.model.last_code = BUSY


SOURCES = [
    ROOT / "cocotb" / "network_card.v",
    *map(leaf, ("agg_network_registers", "agg_member_table", "agg_network_counters", "agg_link_session")),
    *map(leaf, ("agg_registers", "agg_jobs", "agg_job_checks", "agg_job_places", "agg_ranks", "agg_ram")),
]


@pytest.mark.parametrize(
    "ports, jobs, ethernet, lease, simulator",
    [(1, 1, 1, 1500, "icarus"), (4, 2, 1, 1500, "verilator"), (8, 4, 4, 1500, "verilator"), (64, 16, 2, 20000, "verilator")],
)
def test_network_card(ports, jobs, ethernet, lease, simulator):
    bits = {"PORT_BITS": max(1, (ports - 1).bit_length()), "JOB_BITS": max(1, (jobs - 1).bit_length())}
    tests = ["does_as_specified/seed=1"]
    if ports == 4:
        tests += ["does_as_specified/seed=2", "a_lease_ends_after_the_silence_of_its_owner"]
        tests += ["a_lease_ends_in_any_cycle_of_a_commit"]
    run(
        "network_card",
        SOURCES,
        {"PORTS": ports, "JOBS": jobs, "ETHERNET": ethernet, "LEASE_DEFAULT": lease, **bits},
        simulator=simulator,
        testcase=tests,
    )


# agg_network_counters

REASONS = ["fcs", "runt", "oversize", "ip_header", "ip_checksum", "fragment", "ip_length", "ip_address", "protocol"]
REASONS += ["udp_length", "checksum", "udp_port", "short", "datagram_crc"]  # agg_eth_judge's numbers, from 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_event_of_a_network_counts(dut):
    """Several events of each kind happen in a cycle."""
    rng = random.Random(1)
    ethernet = len(dut.passed)
    counts = dict.fromkeys(zwire.NETWORK_COUNTER_NAMES, 0)
    inputs = ("drop_valid", "stranger", "passed", "dropped", "lease")
    for name in (*inputs, "drop_reason", "clear", "index"):
        getattr(dut, name).value = 0
    await start(dut)
    for trial in range(800):
        values = {name: rng.getrandbits(len(getattr(dut, name))) for name in inputs}
        reasons = [rng.randrange(16) for _ in range(ethernet)]
        cleared = trial in (100, 101, 300)
        for name, value in values.items():
            getattr(dut, name).value = value
        dut.drop_reason.value = sum(reason << 4 * port for port, reason in enumerate(reasons))
        dut.clear.value = int(cleared)
        await RisingEdge(dut.clk)
        for name in inputs[1:]:
            counts[name] += values[name].bit_count()
        for port, reason in enumerate(reasons):
            if values["drop_valid"] >> port & 1 and 1 <= reason <= len(REASONS):
                counts[REASONS[reason - 1]] += 1
        if cleared:
            counts = dict.fromkeys(counts, 0)
    for name in inputs:
        getattr(dut, name).value = 0
    await ClockCycles(dut.clk, 3)
    for index, (name, count) in enumerate(counts.items()):
        dut.index.value = index
        await ClockCycles(dut.clk, 3)
        await FallingEdge(dut.clk)
        assert (number(dut.value), name) == (count, name)
        assert count
        await RisingEdge(dut.clk)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def counts_of_a_network_wrap(dut):
    """Counters have 32 bits, and one that wraps does not change the others."""
    dut.clear.value = dut.index.value = dut.drop_reason.value = 0
    for name in ("drop_valid", "stranger", "passed", "dropped", "lease"):
        getattr(dut, name).value = 0
    await start(dut)
    await ClockCycles(dut.clk, 4)
    dut.counts_reg.value = (1 << len(dut.counts_reg)) - 1
    dut.stranger.value = (1 << len(dut.stranger)) - 1
    await RisingEdge(dut.clk)
    dut.stranger.value = 0
    await ClockCycles(dut.clk, 2)
    for index in range(zwire.NETWORK_COUNTERS):
        dut.index.value = index
        await ClockCycles(dut.clk, 3)
        await FallingEdge(dut.clk)
        want = len(dut.stranger) - 1 if index == zwire.COUNT_STRANGER else 2**32 - 1
        assert (number(dut.value), index) == (want, index)
        await RisingEdge(dut.clk)


@pytest.mark.parametrize("ethernet, queues", [(1, 1), (4, 9)])
def test_agg_network_counters(ethernet, queues):
    tests = ["every_event_of_a_network_counts", "counts_of_a_network_wrap"]
    run("agg_network_counters", parameters={"ETHERNET": ethernet, "QUEUES": queues}, testcase=tests)
