"""agg_member_check: packets of members pass, as the model of a card on a network decides (network_model.py)."""

import collections
import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

import model
import zwire
from bench import number, run, start
from network_model import NO_ENTRY, Host, NetworkCard
from streams import PATTERNS, StreamSink, StreamSource

HERE = 2  # the Ethernet port where the packets come
BEAT = ("axis_tdata", "axis_tkeep", "axis_tlast", "axis_theader", "axis_tdest")  # bytes without keep count too


class Members:
    """Packets on their way to the core, beside the address table of a model.

    The table changes only as a commit does it: while packets are held, and none is here.
    """

    def __init__(self, dut, rng, idle, stall, held="never"):
        self.dut, self.rng, self.hold = dut, rng, PATTERNS[held]()
        self.size, self.ports = len(dut.m_axis_tkeep), len(dut.m_axis_tdest)
        self.card = NetworkCard.of(ports=self.ports, jobs=2)
        self.hosts = [Host(0, 0x0A000001 + n, 0x8001 + n) for n in range(self.ports)]
        self.open = False  # a packet's first beat was taken, and its last one was not
        self.want = collections.deque()  # beats that are due
        self.here = collections.deque()  # packets that were taken in part: whether each passes
        self.passed = self.strangers = self.changes = 0
        self.rows = [(0,), (0,)]  # that the table reads
        fields = ("tdata", "tpayload", "tlast", "tuser")
        self.source = StreamSource(dut, "s_axis", PATTERNS[idle](), fields)
        self.sink = StreamSink(dut, "m", PATTERNS[stall](), BEAT, "axis_tvalid", "axis_tready", to=self._leaves)
        dut.hold.value = 0
        dut.ethernet_port.value = HERE
        self._show(0, 0, 0, 0, 0)

    async def start(self):
        self.change()
        await start(self.dut)
        cocotb.start_soon(self._watch())

    def change(self):
        """Draws the table anew: jobs of some of the ports, with addresses that differ in a bit."""
        rng, card = self.rng, self.card
        for job, block in enumerate(card.blocks):
            block.members = sorted(rng.sample(range(self.ports), rng.randint(1, self.ports)))
            card.tables[job] = [NO_ENTRY] * self.ports
            for port in block.members:
                self.hosts[port] = self.near(self.hosts[port])
                elsewhere = 1 << rng.randrange(8) if port != block.members[0] and rng.random() < 0.3 else 0
                card.tables[job][port] = self.hosts[port].address, elsewhere << 48

    def near(self, host):
        """Returns a host whose address differs in a bit."""
        if self.rng.random() < 0.5:
            return host._replace(ip=host.ip ^ 1 << self.rng.randrange(32))
        return host._replace(port=host.port ^ 1 << self.rng.randrange(16))

    def send(self):
        """Queues a packet: most are of a member, others have another rank, job or address."""
        rng, card = self.rng, self.card
        job = rng.randrange(len(card.blocks))
        rank = rng.randrange(len(card.blocks[job].members))
        address, _ = card.tables[job][card.blocks[job].members[rank]]
        sender = rng.choice([*[Host(0, address % 2**32, address >> 32)] * 4, *self.hosts])
        if rng.random() < 0.1:
            job, rank = rng.choice([job, 2]), rng.choice([rank, self.ports, 255])
        if rng.random() < 0.2:
            sender = self.near(sender)
        header = {name: rng.getrandbits(bits) for name, (lsb, bits) in zwire.FIELDS.items() if lsb < 112}
        packed = int.from_bytes(model.pack(header | {"job": job, "rank": rank}, 14), "little")
        words = rng.choice([0, 1, 1, 2, 5])
        descriptor = packed | sender.ip << 112 | sender.port << 144 | (words > 0 and rng.randrange(2)) << 160
        for n in range(max(words, 1)):
            word = {"tdata": rng.getrandbits(8 * self.size), "tpayload": int(words > 0)}
            self.source.put(word | {"tlast": int(n == max(words, 1) - 1), "tuser": descriptor})

    async def _watch(self):
        """Follows the packets, answers lookups, and changes the table."""
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            assert number(dut.busy) == bool(self.here)
            if number(dut.m_axis_tvalid) and number(dut.m_axis_tready) and number(dut.m_axis_tlast):
                assert self.here.popleft(), "a stranger's packet left"
                self.passed += 1
            if number(dut.event_stranger):
                assert not self.here.popleft(), "a member's packet was dropped"
                self.strangers += 1
            if number(dut.s_axis_tvalid) and number(dut.s_axis_tready):
                assert self.open or not number(dut.hold), "a packet began while packets are held"
                self._takes()
            if number(dut.from_en):
                self.rows = [self._lookup(), self.rows[0]]
                self._show(*self.rows[1])
            if number(dut.hold) and not self.here and self.rng.random() < 0.3:
                self.change()
                self.changes += 1
            dut.hold.value = int(next(self.hold))

    def _takes(self):
        """A beat is taken: what must leave is known."""
        dut, descriptor = self.dut, number(self.dut.s_axis_tuser)
        last, packed = number(dut.s_axis_tlast), descriptor % (1 << 112)
        port = self.card.port_of(sender_of(descriptor), model.unpack(packed.to_bytes(14, "little")))
        if not self.open:
            self.here.append(port is not None)
        self.open = not last
        if port is None:
            return
        same = {"axis_theader": packed, "axis_tdest": 1 << port}
        if number(dut.s_axis_tpayload):
            keep = 0 if last and descriptor >> 160 else (1 << self.size) - 1
            self.want.append({"axis_tdata": number(dut.s_axis_tdata), "axis_tkeep": keep, "axis_tlast": 0} | same)
        if last:
            self.want.append({"axis_tlast": 1} | same)

    def _leaves(self, beat):
        want = self.want.popleft()
        assert want == {field: beat[field] for field in want}

    def _lookup(self):
        """Returns an entry's fields. Those of an empty one are the sender's, and mean nothing."""
        job, rank, card = number(self.dut.from_job), number(self.dut.from_rank), self.card
        members = card.blocks[job].members if job < len(card.blocks) else []
        if rank >= len(members):
            sender = sender_of(number(self.dut.s_axis_tuser))
            return 0, sender.ip, sender.port, HERE, self.rng.randrange(self.ports)
        address, mac = card.tables[job][members[rank]]
        return 1, address % 2**32, address >> 32, HERE ^ mac >> 48, members[rank]

    def _show(self, *entry):
        for name, value in zip(("valid", "ip", "port", "ethernet", "dest"), entry):
            getattr(self.dut, f"from_{name}").value = value

    async def drain(self):
        """Waits until every packet has left or was dropped."""
        await self.source.drained()
        for _ in range(1000):
            await RisingEdge(self.dut.clk)
            if not self.here:
                break
        assert not self.here and not self.want


def sender_of(descriptor):
    """Returns the sender in a descriptor."""
    return Host(0, descriptor >> 112 & 0xFFFFFFFF, descriptor >> 144 & 0xFFFF)


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(idle=["never", "at_random"], stall=["never", "bursts", "at_random"], held=["never", "bursts"])
async def lets_members_pass(dut, idle, stall, held):
    """Packets of members and of others, with a table that changes."""
    members = Members(dut, random.Random(f"{idle} {stall} {held}"), idle, stall, held)
    await members.start()
    for _ in range(300):
        members.send()
        await members.source.drained()
    await members.drain()
    assert members.passed > 20 and members.strangers > 20, (members.passed, members.strangers)
    assert members.changes > 10 or held == "never"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def compares_every_bit_of_a_sender(dut):
    """Each bit of IPv4 address, UDP port and Ethernet port counts; no packet of another address passes."""
    members = Members(dut, random.Random(1), "never", "never")
    await members.start()
    host, header = Host(0, 0x0A5533CC, 0x9669), int.from_bytes(model.pack({"job": 1}, 14), "little")
    members.card.blocks[1].members = [1]
    for bit in [None, *range(8)]:
        members.card.tables[1][1] = host.address, 0 if bit is None else 1 << 48 + bit
        for other in [None, *range(48)]:
            sender = host.address if other is None else host.address ^ 1 << other
            members.source.put({"tlast": 1, "tuser": header | sender << 112})
        await members.drain()
    assert (members.passed, members.strangers) == (1, 9 * 49 - 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def takes_a_cycle_more_than_words(dut):
    """So a beat leaves in every cycle. A stranger's packet takes as many cycles as it has words."""
    members = Members(dut, random.Random(2), "never", "never")
    await members.start()
    members.card.blocks[0].members = [1]
    members.card.tables[0][1] = 0x8001_0A000001, 0
    for sizes, rank in (([1] * 10, 0), ([0] * 10, 0), ([3, 0, 1, 2], 0), ([2] * 10, 1)):
        began = len(members.sink.taken_at)
        for size in sizes:
            packed = int.from_bytes(model.pack({"rank": rank}, 14), "little") | 0x8001_0A000001 << 112
            for n in range(max(size, 1)):
                last = int(n >= size - 1)
                members.source.put({"tdata": n, "tpayload": int(size > 0), "tlast": last, "tuser": packed})
        await members.drain()
        taken = members.sink.taken_at[began:]
        if rank == 0:
            assert taken == list(range(taken[0], taken[0] + sum(sizes) + len(sizes)))
        else:
            accepted = members.source.accepted_at[-sum(sizes) :]
            assert taken == [] and accepted == list(range(accepted[0], accepted[0] + sum(sizes)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def forgets_at_a_reset(dut):
    """Wherever a packet is: its beats, and its end, are gone, and the next packet is a new one."""
    sender = {"valid": 1, "ip": 0x0A000001, "port": 0x8001, "ethernet": HERE, "dest": 1}
    for name, value in sender.items():
        getattr(dut, f"from_{name}").value = value
    dut.ethernet_port.value, dut.hold.value, dut.s_axis_tvalid.value, dut.m_axis_tready.value = HERE, 0, 0, 0
    dut.s_axis_tuser.value = 0x8001_0A000001 << 112
    await start(dut)
    for cycles in range(1, 12):
        dut.m_axis_tready.value = cycles % 2
        for n in range(cycles):  # packets of two words, and one that is open
            dut.s_axis_tvalid.value, dut.s_axis_tpayload.value = 1, 1
            dut.s_axis_tlast.value = int(n % 2 and n != cycles - 1)
            await RisingEdge(dut.clk)
        dut.s_axis_tvalid.value, dut.rst.value = 0, 1
        await RisingEdge(dut.clk)
        dut.rst.value, dut.hold.value, dut.m_axis_tready.value = 0, 1, 1
        dut.s_axis_tvalid.value, dut.s_axis_tpayload.value, dut.s_axis_tlast.value = 1, 0, 1
        for _ in range(8):
            await RisingEdge(dut.clk)
            quiet = [number(dut.m_axis_tvalid), number(dut.busy), number(dut.event_stranger), number(dut.s_axis_tready)]
            assert quiet == [0, 0, 0, 0]
        dut.hold.value = 0
        await RisingEdge(dut.clk)
        dut.s_axis_tvalid.value = 0
        ends = []
        for _ in range(8):
            await RisingEdge(dut.clk)
            if number(dut.m_axis_tvalid):
                ends.append(number(dut.m_axis_tlast))
        assert ends == [1]


@pytest.mark.parametrize("ports, size", [(4, 8), (8, 1), (2, 64)])
def test_agg_member_check(ports, size):
    bits_of_a_port = (ports - 1).bit_length()
    run("agg_member_check", parameters={"PORTS": ports, "PORT_BITS": bits_of_a_port, "BYTES": size})
