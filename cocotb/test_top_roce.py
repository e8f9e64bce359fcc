"""The card under RoCEv2, as hwgen emits it, by frames: packets of connections, faults of a bad network, and set-up.

Sends frames, and compares all that leaves with the Python model (roce_model.py), which is written from
driver/wire/ROCE.md.
"""

import random

import cocotb
import pytest

import roce
import zwire
from bench import wait_cycles
from eth_frames import arp_frame, echo_frame
from roce_card import RoceBench, run_roce_card
from roce_model import connection_entry
from streams import PATTERNS
from traffic import Contributions
from udp_card import host

CARDS = {
    "armed8": "-lanes 1 -workers 2 -chunk 64 -window 4 -jobs 2 -link 8".split(),
    "path64": "-lanes 2 -format int32 -workers 3 -chunk 128 -window 4 -jobs 2 -link 64 -ethernet 2".split(),
}

TOKEN = 0x1234_5678_9ABC_DEF0


@pytest.mark.parametrize("card", CARDS)
def test_top_roce(card):
    run_roce_card(card, CARDS[card])


# -- Sums --------------------------------------------------------------------------------------------


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_sum_leaves_in_each_header(dut):
    """Each opcode: all ranks send a packet with it, and each receiver gets the sum in the header of its sender."""
    card = RoceBench(dut)
    await card.reset()
    await card.set_up(epoch=7, chunk=64)
    for vid, opcode in enumerate(roce.CODES):
        for port in range(card.ports):
            await card.contribute(0, port, vid, opcode=opcode)
    assert card.model.counters["chunks"] == len(roce.CODES)
    assert [stream.next for stream in card.model.streams[0]] == [len(roce.CODES)] * card.ports
    await card.check_registers()


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize((("idle", "stall"), [("never", "mostly"), ("bursts", "bursts")]))
async def forwards_like_the_model(dut, idle, stall):
    """Packets in and out of turn, repeats, faults and other frames, of all jobs."""
    rng = random.Random(f"{idle} {stall}")
    card = RoceBench(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    if card.ethernet == 1:
        await card.introduce()
    walk = Walk(card, rng)
    for epoch in range(2):
        for job in range(card.jobs):
            await walk.set_up(job, epoch + 1)
        for _ in range(60 if card.word > 1 else 30):
            await walk.step()
    card.hurry()
    await card.check_registers()
    assert card.model.counters["chunks"] > 5


class Walk:
    """Sends frames one after another: mostly the next packets of connections."""

    def __init__(self, card, rng):
        self.card, self.rng = card, rng
        self.next = {}  # by job and port: the VID that the member sends next

    async def set_up(self, job, epoch):
        card = self.card
        size = 256 << self.rng.randrange((card.chunk * card.format.bytes // 256).bit_length())
        sizes = {"chunk": size // card.format.bytes, "window": max(1, card.window // card.jobs)}
        await card.set_up(epoch, job=job, token=TOKEN, **sizes)
        assert card.model.blocks[job].last_epoch == epoch, "the job is not set up"
        self.next |= {(job, port): 0 for port in range(card.ports)}

    async def step(self):
        actions = {self.progress: 60, self.near: 16, self.fault: 16, self.other: 8}
        (action,) = self.rng.choices(list(actions), actions.values())
        await action()

    async def progress(self):
        """The next packet of the connection that is most behind, or of any within the window."""
        job = self.rng.randrange(self.card.jobs)
        ports = [port for port in range(self.card.ports)]
        first = min(self.next[job, port] for port in ports)
        window = self.card.model.blocks[job].job.window
        port = self.rng.choice([port for port in ports if self.next[job, port] < first + window])
        vid = self.next[job, port]
        if self.rng.random() < 0.15:  # a packet is lost on its way
            vid += 1
        self.next[job, port] = max(self.next[job, port], vid + (vid == self.next[job, port]))
        await self.data(job, port, vid)

    async def near(self):
        """A packet that came before, or comes too early."""
        job, port = self.rng.randrange(self.card.jobs), self.rng.randrange(self.card.ports)
        window = self.card.model.blocks[job].job.window
        vid = self.next[job, port] + self.rng.choice([-1, -1, -window, -2 * window, 1, window, 2 * window, 1 << 22])
        await self.data(job, port, vid)

    async def data(self, job, port, vid):
        """A packet, unless section 5 leaves open what a card does with it."""
        stream, running = self.card.model.streams[job][port], self.card.model.blocks[job].job
        if running.slot(vid).vid == vid >= stream.next + 2 * running.window:
            return
        await self.card.contribute(job, port, vid, opcode=self.rng.choice(list(roce.CODES)))

    async def fault(self):
        """A packet that is dropped, and counted for the first of its faults."""
        card, rng = self.card, self.rng
        job, port = rng.randrange(card.jobs), rng.randrange(card.ports)
        ethernet = card.members[port].ethernet
        how = rng.choice(
            [
                {"faults": rng.sample(roce.FAULTS, rng.choice([1, 1, 2]))},
                {"source": card.members[port].ip ^ 1 << rng.randrange(32)},
                {"pad": rng.randrange(1, 4)},
                {"version": rng.randrange(1, 16)},
                {"opcode": rng.choice([0x0C, 0x0D, 0x10, 0x13, 0x16, 0x17, 0x24, 0x64])},
                {"payload": rng.randbytes(rng.choice([0, 4, 252, 255, 257, 260, 512]))},
                {"ethernet": (ethernet + 1) % card.ethernet},
                {"bad": True},
            ]
        )
        ethernet, bad = how.pop("ethernet", ethernet), how.pop("bad", False)
        frame = card.packet(job, port, self.next[job, port], **how)
        await card.transmit(frame, bad, ethernet)

    async def other(self):
        """A frame of no registered connection, or an acknowledgement: it passes, or the card answers it."""
        card, rng = self.card, self.rng
        job, port = rng.randrange(card.jobs), rng.randrange(card.ports)
        ethernet = card.members[port].ethernet
        which = rng.randrange(5)
        if which == 0:
            frame = card.packet(job, port, 0, rng.randbytes(4), opcode=roce.ACKNOWLEDGE)
        elif which == 1:
            frame = card.packet(job, port, 0, rng.randbytes(16), opcode=roce.CNP)
        elif which == 2:
            frame = card.packet(job, port, 0, qpn=0x900)
        elif which == 3:
            frame, _ = arp_frame(rng)
        else:
            frame, _ = echo_frame(rng, rng.randrange(60))
        await card.transmit(frame, ethernet=ethernet)


# -- Order -------------------------------------------------------------------------------------------


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_rank_without_its_packet_gets_the_next_sum_early(dut):
    """Section 5, rule 2, once; rule 1 afterwards. Rule 3: a repeat gets its sum again."""
    card = RoceBench(dut)
    await card.reset()
    await card.set_up(epoch=7, chunk=64)
    late, others = 0, range(1, card.ports)
    for vid in (0, 1):
        for port in others:
            await card.contribute(0, port, vid)
    await card.contribute(0, late, 1)
    assert card.model.counters["released_early"] == 1
    await card.contribute(0, late, 1)  # again: its turn comes
    await card.contribute(0, late, 0)
    assert [stream.next for stream in card.model.streams[0]] == [2] * card.ports
    before = card.model.counters["replays"]
    for port in range(card.ports):
        await card.contribute(0, port, 0)
        await card.contribute(0, port, 1)
    assert card.model.counters["replays"] == before + 2 * card.ports
    await card.check_registers()


# -- The end, and the set-up -------------------------------------------------------------------------


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def connections_outlive_their_job(dut):
    """Packets of an ended job are dropped; after JOB_DISCONNECT they pass."""
    card = RoceBench(dut)
    await card.reset()
    if card.ethernet == 1:
        await card.introduce()
    await card.set_up(epoch=7, chunk=64)
    await card.contribute(0, 0, 0)
    frame = card.packet(0, 0, 1)
    await card.write("JOB_DISCONNECT", 0)  # busy
    await card.write("JOB_DISCONNECT", card.jobs)  # no such job
    await card.write("JOB_ABORT", 7 << 32)
    await card.transmit(frame)
    assert card.model.counters["bad_job"] == 1
    await card.write("RELEASE", TOKEN)
    await card.transmit(frame)
    assert card.model.counters["bad_job"] == 2
    await card.check_registers()
    await card.write("OWNER", TOKEN)
    await card.write("JOB_DISCONNECT", 0)
    await card.transmit(frame)
    assert card.model.counters["bad_job"] == 2
    await card.set_up(epoch=8, chunk=64)
    await card.contribute(0, 0, 0)
    await card.write("RESET", TOKEN)
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_late_packet_is_not_in_the_next_job(dut):
    """Packets of the old connections wait in the card while a commit replaces these: the new job sums its own alone."""
    card = RoceBench(dut)
    await card.reset()
    await card.set_up(epoch=1, chunk=64)
    old = [card.packet(0, port, vid) for vid in range(2) for port in range(card.ports)]
    card.entries = card.ring((1 << card.ports) - 1, job=1)  # with other QPNs
    await card.stage_members()
    commit = {"kind": zwire.KIND_REGWRITE, "vid": card.model.address_of("JOB_COMMIT"), "mask": 2 << 32, "length": 0}
    access = cocotb.start_soon(card.access(commit))
    for frame in old:
        for ethernet in {member.ethernet for member in card.members}:
            card.put(frame, ethernet=ethernet)
    await access
    await card.quiet()
    card.left.clear()
    for vid in range(2):
        for port in range(card.ports):
            await card.contribute(0, port, vid)
    assert card.model.counters["chunks"] == 2


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def refuses_bad_connections(dut):
    """Each reason of bad_connection, and its place among the checks."""
    card = RoceBench(dut)
    await card.reset()
    all_ports = (1 << card.ports) - 1
    ring = card.ring(all_ports)
    second = ring[1]
    epoch = 0

    async def commit(entries=None, **how):
        nonlocal epoch
        epoch += 1
        await card.set_up(epoch, entries=ring | (entries or {}), **{"chunk": 64, **how})
        return card.model.last_code

    bad = zwire.CODE_BAD_CONNECTION
    assert await commit() == zwire.CODE_DONE
    assert await commit({0: connection_entry(0, 0, 1)}) == bad
    assert await commit({0: connection_entry(1, 0, 1)}) == bad
    assert await commit({0: connection_entry(2, 0, 1) | 0xA5 << 56}) == zwire.CODE_DONE
    assert await commit({0: connection_entry(5, 0, card.ports)}) == bad
    assert await commit({0: connection_entry(5, 0, 0x40 + 1)}) == bad
    assert await commit({0: connection_entry(second & 0xFFFFFF, 0, second >> 48)}) == bad
    assert await commit(first=1) == bad
    assert await commit(chunk=32) == bad
    assert await commit(deadline=1 << 32 | 1000) == bad
    assert await commit(deadline=1000) == zwire.CODE_DONE
    # Each fails another check, too.
    assert await commit(first=1, window=3) == bad
    await card.write("JOB_COMMIT", 1)
    assert card.model.last_code == bad, "an old epoch"
    await card.write("JOB_TOKEN", TOKEN ^ 1)
    await card.write("JOB_COMMIT", (epoch + 1) << 32 | 1)
    assert card.model.last_code == bad, "another token"
    await card.write("JOB_COMMIT", card.jobs << 48 | (epoch + 1) << 32 | 1)
    assert card.model.last_code == zwire.CODE_BUSY, "another token, and no such job"
    await card.write("JOB_TOKEN", TOKEN)
    await card.write("JOB_COMMIT", card.jobs << 48 | (epoch + 1) << 32 | 1)
    assert card.model.last_code == zwire.CODE_BAD_JOB
    card.accessing = host(101)
    await card.write("JOB_COMMIT", (epoch + 1) << 32 | 1)
    assert card.model.last_code == zwire.CODE_BUSY, "of a stranger"
    card.accessing = card.owner
    if card.jobs > 1:
        assert await commit(window=1) == zwire.CODE_DONE
        assert await commit(window=1, job=1) == bad  # the first job's connections
        assert await commit(card.ring(all_ports, 1), window=1, job=1) == zwire.CODE_DONE
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_running_job_keeps_its_connections(dut):
    """A commit of the running epoch changes no connection, whatever is staged, but is checked for bad ones."""
    card = RoceBench(dut)
    await card.reset()
    await card.set_up(epoch=7, chunk=64)
    await card.contribute(0, 0, 0)
    kept = card.entries[0]
    for entry, code in [(kept, zwire.CODE_DONE), (kept ^ 1 << 30, zwire.CODE_DONE), (0, zwire.CODE_BAD_CONNECTION)]:
        await card.write("MEMBER_CONNECTION", entry, 0, 0)
        await card.write("JOB_COMMIT", 7 << 32)
        assert card.model.last_code == code and await card.read("JOB_CONNECTION", 0, 0) == kept
    for port in range(card.ports):
        await card.contribute(0, port, 0)
    assert card.model.counters["chunks"] == 1
    await card.check_registers()


# -- All ranks at once -------------------------------------------------------------------------------


class Endpoint:
    """The sender and the receiver of one connection, with go-back-N, on a network that loses packets."""

    def __init__(self, ring, port):
        self.ring, self.port = ring, port
        self.next = self.taken = 0  # VID to be sent next; sums that the receiver has
        self.rest = 0  # cycles until the sender repeats

    def act(self):
        """Sends a packet if the window and the order of messages let it."""
        ring = self.ring
        window, before = ring.window, ring.endpoints[ring.before(self.port)]
        if self.next < len(ring.data) and self.next < self.taken + window and self.next < before.taken + window:
            self.send(self.next)
            self.next += 1
            self.rest = 3000
        elif self.taken < self.next:
            self.rest -= 1
            if self.rest <= 0:
                self.next, self.rest = self.taken, 3000

    def send(self, vid):
        ring, card = self.ring, self.ring.card
        payload, mark = ring.data.payloads[vid][self.port], ring.data.ecn[vid][self.port]
        if ring.rng.random() < ring.loss:
            return
        opcode = ring.rng.choice(list(roce.CODES))
        frame = card.packet(0, self.port, vid, payload, opcode=opcode, tos=mark)
        card.put(frame, ethernet=card.members[self.port].ethernet)

    def take(self, vid, frame):
        """The receiver takes a sum, or sends a NAK for the one that it misses."""
        ring = self.ring
        if vid > self.taken:
            self.next = self.taken  # the NAK repeats from here
        if vid != self.taken or ring.rng.random() < ring.loss:
            return
        size = roce.HEADERS[roce.CODES[frame[42]]]
        assert frame[size:-4] == ring.data.sum(vid), f"wrong bits of VID {vid} for the receiver of port {self.port}"
        assert frame[15] & 3 == ring.data.flags(vid) & 3
        self.taken += 1


class Ring:
    """A job whose ranks all send at once."""

    def __init__(self, card, rng, chunks, loss):
        self.card, self.rng, self.loss = card, rng, loss
        self.window = card.window
        self.data = Contributions(card, rng, chunks, members=list(range(card.ports)), size=64)
        self.endpoints = [Endpoint(self, port) for port in range(card.ports)]

    def before(self, port):
        """Returns the port whose connection leads to the member at a port."""
        return (port - 1) % self.card.ports

    def deliver(self):
        """Hands frames that left to their receivers."""
        card = self.card
        for at, frame in card.left:
            assert frame[-4:] == roce.icrc(frame[:-4])
            connection = next(c for c in card.model.connections() if (c.ip, c.qpn) == (number(frame, 30, 4), number(frame, 47, 3)))
            receiver = next(member for member in card.members if member.ip == connection.ip)
            assert at == receiver.ethernet and frame[:6] == receiver.mac.to_bytes(6, "big")
            self.endpoints[connection.port].take((number(frame, 51, 3) - connection.psn) % (1 << 24), frame)
        card.left.clear()

    async def run(self):
        while any(endpoint.taken < len(self.data) for endpoint in self.endpoints):
            await wait_cycles(self.card.dut, 8)
            self.deliver()
            for endpoint in self.endpoints:
                if self.card.idle(endpoint.port):
                    endpoint.act()


def number(frame, at, size):
    return int.from_bytes(frame[at : at + size], "big")


@cocotb.test(timeout_time=200, timeout_unit="ms")
async def a_ring_gets_every_sum_in_order(dut):
    """The network loses one packet in ten, on either side of the card."""
    rng = random.Random(1)
    card = RoceBench(dut, PATTERNS["bursts"], PATTERNS["bursts"])
    await card.reset()
    await card.set_up(epoch=5, chunk=64)
    await Ring(card, rng, 24, loss=0.1).run()
