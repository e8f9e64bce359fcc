"""Rate and latency of the card under RoCEv2, in path and one-armed: sums fill every Ethernet port.

The members of a job form a ring. Packets come back to back on every wire, of 10 or 100 Gbit/s (wires.py), as far as
the job's window allows. A sum is as long as a packet, so both directions of a wire are full.

`make benches` runs the cards of SMALL, `make roce-rates` those of CARDS: the compiler takes minutes for words of
512 bits.
"""

import collections
import functools
import itertools
import os
import random
import struct

import cocotb
import pytest
from cocotb.triggers import FallingEdge

import ethernet
import model
import roce
import zwire
from bench import cycle, start, wait_cycles
from cards import manifest, run_card, usual
from castagnoli import crc32c
from udp_card import OWN, OWN_HOST, Line, host
from streams import never
from wires import BESIDE, WIRE, Gaps, Wire

TOKEN, FIRST = 0xFEED, 0xFFFFE0  # PSNs wrap
QPN, ACKS_QPN = 0x100, 0x200  # of rank 0's queue pairs: that receives, and that sends, so gets acknowledgements
MARK = 2  # ECN of all packets
MESSAGE = [roce.WRITE_FIRST, roce.WRITE_MIDDLE, roce.WRITE_MIDDLE, roce.WRITE_LAST_IMM]  # its packets: three headers

CARDS = {
    "path64": "-lanes 4 -workers 3 -ethernet 3 -link 64 -chunk 256 -window 16",
    "arm64": "-lanes 4 -workers 3 -ethernet 1 -link 64 -chunk 256 -window 16",
    "path512": "-lanes 16 -workers 8 -ethernet 8 -link 512 -chunk 256 -window 16",
    "path512_long": "-lanes 16 -workers 8 -ethernet 8 -link 512 -chunk 1024 -window 16",
    "arm512": "-lanes 16 -workers 3 -ethernet 1 -link 512 -chunk 256 -window 16",
}

# Cycles from the last word of the last contribution's frame to the first word of the first frame with the sum, or one
# less: sums are picked in every second cycle. The payload's words come on top, twice: on their way into the core, and
# out of it.
LATENCY = {"path64": 56, "arm64": 55, "path512": 57, "arm512": 56}

# Counters of what must not happen at full rate, or to one VID after the other
NONE_OF = ["dropped", "late", "early", "duplicate", "replays", "released_early", "statuses", "overdue", "fcs", "runt"]
NONE_OF += zwire.CONNECTION_COUNTER_NAMES


@pytest.mark.parametrize("card", usual(CARDS, "path512", "path512_long", "arm512"))
def test_top_roce_rate(card):
    run_card(f"roce_{card}", [*CARDS[card].split(), "-shell", "roce", "-format", "int32", *OWN])


def mtus(*sizes):
    """Returns those of the sizes that the card has."""
    largest = 4 * manifest()["chunk"] if "CARD" in os.environ else 0
    return [size for size in sizes if size <= largest]


class Arrivals(Gaps):
    """Gaps to the byte: a frame's last word, however short, takes no longer on a busy wire than its bytes."""

    def __next__(self):
        self.behind -= self.rate
        if not self.sizes:
            self.behind = max(self.behind, 0)
        if self.behind > 0 or not self.sizes:
            return True
        self.behind += self.sizes.pop(0)
        return False


class RingCard:
    """A card whose members form a ring: the connection of rank w is to rank w + 1."""

    def __init__(self, dut, mtu, paced):
        """paced: frames come and leave at the rate of a wire."""
        self.dut, self.mtu, self.paced, self.rng = dut, mtu, paced, random.Random(1)
        made = manifest()
        self.word, self.ethernet, self.ranks = made["link"] // 8, made["ethernet"], made["workers"]
        self.window, self.rate = made["window"], WIRE[made["link"]]
        self.lines = [
            Line(dut, n, never, lambda: Wire(self.rate) if paced else never(), functools.partial(self._collect, n))
            for n in range(self.ethernet)
        ]
        for line in self.lines:
            line.gaps = None
            if paced:
                line.rx.idle = line.gaps = Arrivals(self.rate)
        self.hosts = [host(rank, rank % self.ethernet) for rank in range(self.ranks)]
        self.owner = host(100)
        # By Ethernet port: cycles of the first and last word, and the frame; replies to accesses are apart
        self.left = [[] for _ in self.lines]
        self.replies = []
        self.rank_left = lambda rank: None  # is called when a sum has left to a rank

    @property
    def name(self):
        return f"{'arm' if self.ethernet == 1 else 'path'}{8 * self.word}"

    def _collect(self, at, beat):
        line, count = self.lines[at], beat["tkeep"].bit_length()
        if isinstance(line.tx.stall, Wire):
            line.tx.stall.take(count, beat["tlast"])
        if not line.partial:
            line.began = cycle()
        line.partial += beat["tdata"].to_bytes(self.word, "little")[:count]
        if beat["tlast"]:
            frame, line.partial = line.partial, b""
            if frame[36:38] != struct.pack("!H", roce.PORT):
                self.replies.append(model.unpack(frame[42:-4]))
                return
            self.left[at].append((line.began, cycle(), frame))
            if rank_of(frame) is not None:
                self.rank_left(rank_of(frame))

    def put(self, frame, at):
        """Queues a frame for an Ethernet port."""
        line = self.lines[at]
        parts = [frame[n : n + self.word] for n in range(0, len(frame), self.word)]
        for n, part in enumerate(parts):
            last = n == len(parts) - 1
            keep = (1 << len(part)) - 1
            line.rx.put({"tdata": int.from_bytes(part, "little"), "tkeep": keep, "tlast": int(last), "tuser": 0})
        if line.gaps:
            line.gaps.sizes += [len(part) for part in parts[:-1]] + [len(parts[-1]) + BESIDE]

    # Registers

    async def access(self, kind, address, value=0):
        """Makes a register access that must be done; returns the value."""
        header = {"version": zwire.VERSION, "kind": kind, "vid": address, "mask": value}
        message = model.pack(header, model.header_bytes(kind, shared=True))
        self.put(ethernet.udp_frame(self.owner, OWN_HOST, message + crc32c(message).to_bytes(4, "little")), 0)
        while not self.replies:
            await FallingEdge(self.dut.clk)
        reply = self.replies.pop()
        assert reply["code"] == zwire.CODE_DONE, f"{address:#x}: code {reply['code']:#x}"
        return reply["mask"]

    async def write(self, address, value):
        await self.access(zwire.KIND_REGWRITE, address, value)

    async def counted(self):
        """Returns the counters of NONE_OF that are not 0."""
        at = {name: zwire.REG_CONNECTION_COUNTERS + 8 * n for n, name in enumerate(zwire.CONNECTION_COUNTER_NAMES)}
        at |= {name: zwire.REG_NETWORK_COUNTERS + 8 * n for n, name in enumerate(zwire.NETWORK_COUNTER_NAMES)}
        at |= {name: zwire.REG_COUNTERS + 8 * n for n, (name, _) in enumerate(zwire.COUNTER_NAMES)}
        found = {name: await self.access(zwire.KIND_REGREAD, at[name]) for name in NONE_OF}
        return {name: count for name, count in found.items() if count}

    async def set_up(self):
        """Takes the card and registers the ring."""
        await start(self.dut)
        registers = {name: at for name, (at, *_) in {**zwire.REGISTERS, **zwire.NETWORK_REGISTERS}.items()}
        await self.write(registers["OWNER"], TOKEN)
        await self.write(registers["JOB_TOKEN"], TOKEN)
        for rank, member in enumerate(self.hosts):
            at = zwire.REG_MEMBER_STRIDE * rank
            await self.write(registers["MEMBER_ADDRESS"] + at, roce.PORT << 32 | member.ip)
            await self.write(registers["MEMBER_MAC"] + at, member.ethernet << 48 | member.mac)
            at = zwire.REG_MEMBER_CONNECTION + zwire.REG_CONNECTION_STRIDE * rank
            await self.write(at, QPN + self.receiver(rank) | FIRST << 24 | self.receiver(rank) << 48)
        await self.write(registers["JOB_PORTS"], (1 << self.ranks) - 1)
        await self.write(registers["JOB_CHUNK"], self.mtu // 4)
        await self.write(registers["JOB_WINDOW"], self.window)
        await self.write(registers["JOB_DEADLINE"], 0)
        await self.write(registers["JOB_COMMIT"], 1 << 32)

    # Packets

    def receiver(self, rank):
        """Returns the rank to which a rank sends."""
        return (rank + 1) % self.ranks

    def contributions(self, vid, opcode=roce.SEND_ONLY):
        """Returns the frames of a VID, by rank."""
        return [self._contribution(rank, vid, opcode) for rank in range(self.ranks)]

    def _contribution(self, rank, vid, opcode):
        receiver = self.receiver(rank)
        ip, source = self.hosts[receiver].ip, self.hosts[rank].ip
        c = roce.Connection(ip, QPN + receiver, source, psn=FIRST, mtu=self.mtu)
        to, sender = (mac(self.hosts[at].mac) for at in (receiver, rank))
        if self.ethernet == 1:
            to = mac(OWN_HOST.mac)
        return roce.packet(self.rng, c, FIRST + vid, opcode, to=to, sender=sender, tos=MARK)

    def acknowledgement(self, rank, to):
        """Returns the frame of an acknowledgement from rank to rank, which passes."""
        c = roce.Connection(self.hosts[to].ip, ACKS_QPN + to, self.hosts[rank].ip)
        macs = {"to": mac(self.hosts[to].mac), "sender": mac(self.hosts[rank].mac)}
        return roce.packet(self.rng, c, FIRST, roce.ACKNOWLEDGE, b"", self.rng.randbytes(4), **macs)

    async def learn(self):
        """Has members send frames to themselves until the switch knows them: after a reset, it learns nothing yet."""
        for _ in range(3):
            self.left = [[] for _ in self.lines]
            for rank in range(self.ranks):
                self.put(self.acknowledgement(rank, rank), rank)
            await wait_cycles(self.dut, 500)
            if not any(self.left):
                return
        raise AssertionError("the switch does not learn where members are")

    def sums(self, frames):
        """Returns the frames in which the sum of a VID's frames leaves, by rank of the connection."""
        end = len(frames[0]) - 4 - self.mtu  # of the header
        values = [struct.unpack(f"<{self.mtu // 4}I", frame[end:-4]) for frame in frames]
        total = struct.pack(f"<{self.mtu // 4}I", *(sum(column) & 0xFFFFFFFF for column in zip(*values)))
        return [roce.leaving(frame[:end], total, MARK, self._macs(rank)) for rank, frame in enumerate(frames)]

    def _macs(self, rank):
        """Returns the MAC addresses that a frame gets on its way, None if it keeps its own."""
        return None if self.ethernet > 1 else (mac(self.hosts[self.receiver(rank)].mac), mac(OWN_HOST.mac))


def rank_of(frame):
    """Returns the rank to which a frame with a sum is, None for other frames."""
    qpn = int.from_bytes(frame[47:50], "big")
    return qpn - QPN if qpn < ACKS_QPN else None


def mac(number):
    """Returns a MAC address as text."""
    return number.to_bytes(6, "big").hex(":")


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(mtu=mtus(1024, 4096), paced=[True, False])
async def sums_fill_every_wire(dut, mtu, paced):
    """Each member sends packet v + W when it has the sum of v. Without the pace of a wire, a word comes every cycle."""
    card = RingCard(dut, mtu, paced)
    await card.set_up()
    await reduce(card)
    assert await card.counted() == {}


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(mtu=mtus(1024, 4096))
async def acknowledgements_pass_beside_sums(dut, mtu):
    """The same in path, with an acknowledgement behind every message: they share each wire."""
    if manifest()["ethernet"] == 1:
        return
    card = RingCard(dut, mtu, paced=True)
    await card.set_up()
    await card.learn()
    acks = [[] for _ in card.hosts]  # by the rank that gets them

    def ack(rank, vid):
        to = (rank - 1) % card.ranks
        if vid % len(MESSAGE) == len(MESSAGE) - 1:
            acks[to].append(card.acknowledgement(rank, to))
            return acks[to][-1:]
        return []

    await reduce(card, ack)
    for got, left in zip(acks, card.left):
        assert [frame for *_, frame in left if rank_of(frame) is None] == got
    assert await card.counted() == {}


async def reduce(card, beside=lambda rank, vid: []):
    """Sums messages, and checks the sums and their rate.

    beside: returns the frames that a rank sends behind its packet of a VID. Cycles are those between the last words of
    the first and the last VID's sums at a port, whose headers have the same size.
    """
    packets = 16 * len(MESSAGE) + 1
    frames = [card.contributions(vid, MESSAGE[vid % len(MESSAGE)]) for vid in range(packets)]
    waiting = [collections.deque() for _ in card.hosts]
    for vid, rank in itertools.product(range(packets), range(card.ranks)):
        waiting[rank].append([frames[vid][rank], *beside(rank, vid)])

    def send(rank):
        for frame in waiting[rank].popleft() if waiting[rank] else []:
            card.put(frame, rank % card.ethernet)

    card.rank_left = send
    count = sum(len(group) for groups in waiting for group in groups)
    for _, rank in itertools.product(range(card.window), range(card.ranks)):
        send(rank)
    while sum(map(len, card.left)) < count:
        await FallingEdge(card.dut.clk)
    await wait_cycles(card.dut, 4 * card.mtu // card.word)
    assert sum(map(len, card.left)) == count
    sums = [card.sums(of_vid) for of_vid in frames]
    for rank in range(card.ranks):
        to = card.receiver(rank)
        assert [f for *_, f in card.left[to % card.ethernet] if rank_of(f) == to] == [of_vid[rank] for of_vid in sums]
    for at, left in enumerate(card.left):
        its = [n for n, (*_, frame) in enumerate(left) if rank_of(frame) is not None]
        check_cycles(card, at, left[its[card.ranks // card.ethernet - 1] : its[-1] + 1])


def check_cycles(card, at, left):
    """Checks that frames have left as fast as the Ethernet port allows, a word a cycle, and the wire behind it.

    left: of card.left, the first one's end begins the time. A MAC takes up to four words ahead of its wire.
    """
    cycles, lengths = left[-1][1] - left[0][1], [len(frame) for *_, frame in left[1:]]
    words = sum(-(-length // card.word) for length in lengths)
    wire = sum(length + BESIDE for length in lengths) / card.rate if card.paced else words
    print(f"{card.name}, port {at}: {len(lengths)} frames, {sum(lengths)} bytes, {wire} cycles: {cycles}")
    assert -4 < cycles - max(wire, words) < 2 and wire / cycles >= 0.98


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(mtu=mtus(256, 1024, 4096))
async def a_sum_leaves_soon(dut, mtu):
    """One VID after the other; the last contribution comes alone, from each rank in turn."""
    card = RingCard(dut, mtu, paced=False)
    await card.set_up()
    found = set()
    for vid in range(2 * card.ranks):
        frames, last = card.contributions(vid), vid % card.ranks
        for rank, frame in enumerate(frames):
            if rank != last:
                card.put(frame, rank % card.ethernet)
        await wait_cycles(dut, 500 + vid // card.ranks)
        assert not any(card.left)
        rx = card.lines[last % card.ethernet].rx
        card.put(frames[last], last % card.ethernet)
        while sum(map(len, card.left)) < card.ranks:
            await FallingEdge(dut.clk)
        found.add(min(left[0][0] for left in card.left if left) - rx.accepted_at[-1])
        assert sorted(frame for left in card.left for *_, frame in left) == sorted(card.sums(frames))
        card.left = [[] for _ in card.lines]
    print(f"{card.name}, MTU {mtu}: {sorted(found)} cycles")
    latency = LATENCY[card.name] + 2 * mtu // card.word
    assert found == {latency - 1, latency}
    assert await card.counted() == {}
