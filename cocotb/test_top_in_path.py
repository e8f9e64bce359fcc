"""Throughput of a card in path: 16 lanes and 8 ports, each with a member behind a MAC of 100 Gbit/s.

Every member sends and gets as much as its wire carries. Results are the fuller direction: as many as contributions,
with 16 bytes more each. Cycles are those between the last words of a port's first and last result.
"""

import collections
import itertools
import random

import cocotb

import ethernet
import zwire
from traffic import Contributions, data_header
from udp_card import run_udp_card
from wires import BESIDE, WiredCard, check_rate

CARD = "-lanes 16 -format int32 -workers 8 -ethernet 8 -chunk 2048 -window 16 -link 512".split()

LARGEST = 9018  # bytes of a frame

# By elements of a chunk: chunks, and their window. A chunk is on its way for as long as nine of 1 KiB take on the
# wire, six of 4 KiB or five of 8 KiB.
FULL = {256: (32, 16), 1024: (16, 8), 2048: (12, 8)}

# The same, when as many other frames of the same size pass.
HALF = {256: (40, 16), 2048: (12, 4)}


def test_top_in_path():
    run_udp_card("in_path", CARD)


class PathCard(WiredCard):
    """A card whose members send a chunk for each result that they get, and frames for each other."""

    def __init__(self, dut):
        super().__init__(dut)
        self.waiting = [collections.deque() for _ in self.lines]  # by member: frames that the window does not allow yet
        self.results = [[] for _ in self.lines]  # by Ethernet port: cycles of the last words
        self.passed = [[] for _ in self.lines]  # frames of other members: cycle of the last word, sender, bytes
        self.ends = {}  # by frame: its sender, and the number of its last word

    def put(self, frame, bad=False, ethernet=0):
        super().put(frame, bad, ethernet)
        rx = self.lines[ethernet].rx
        self.ends[frame] = ethernet, len(rx.accepted_at) + len(rx.queue) - 1

    def delay(self, frame, cycle):
        """Returns the cycles that a passing frame took beyond its own words, given that of its last word."""
        sender, number = self.ends[frame]
        return cycle - self.lines[sender].rx.accepted_at[number] + 1 - words(self, frame)

    def _frame(self, frame, at):
        for sender, member in enumerate(self.members):
            if frame[6:12] == member.mac.to_bytes(6, "big"):
                self.passed[at].append((self.cycle, sender, frame))
                return
        super()._frame(frame, at)

    def arrived(self, packet):
        super().arrived(packet)
        at = packet[2].ethernet
        self.results[at].append(self.cycle)
        self.go_on(at)

    def go_on(self, member):
        """Sends the member's next chunk, and what comes with it."""
        for frame in self.waiting[member].popleft() if self.waiting[member] else []:
            self.put(frame, ethernet=member)

    def passing(self, sender, receiver, size):
        """Returns a frame from member to member."""
        source, target = self.members[sender], self.members[receiver]
        return ethernet.udp_frame(source, target, self.rng.randbytes(size - 42))

    async def learn(self):
        """Has members send frames to themselves until the switch knows them: after a reset, it learns nothing yet."""
        for _ in range(3):
            self.passed = [[] for _ in self.lines]
            for member in range(self.ports):
                self.put(self.passing(member, member, 60), ethernet=member)
            await self.quiet()
            if not any(self.passed):
                return
        raise AssertionError("the switch does not learn where members are")

    async def reduce(self, size, chunks, window, beside=lambda member: []):
        """Sums chunks of so many elements, and checks the results.

        beside: returns the frames that a member sends behind each chunk.
        """
        await self.set_up(epoch=1, chunk=size, window=window)
        data = Contributions(self, random.Random(1), chunks, size=size)
        for rank, vid in itertools.product(range(self.ports), range(chunks)):
            header = data_header(self, rank, vid, epoch=1) | {"length": size, "flags": data.ecn[vid][rank]}
            frame = self.frame(self.members[rank], header, data.payloads[vid][rank])
            self.waiting[rank].append([frame, *beside(rank)])
        self.paced()
        for member, _ in itertools.product(range(self.ports), range(window)):
            self.go_on(member)
        await self.quiet()
        fields, all_ranks = ("kind", "vid", "flags", "receivers"), (1 << self.ports) - 1
        want = [((zwire.KIND_RESULT, vid, data.flags(vid), all_ranks), data.sum(vid)) for vid in range(chunks)]
        for member in self.members:
            got = [(tuple(h[f] for f in fields), payload) for h, payload, to in self.sent if to == member]
            assert got == want, f"the results of {member}"

    async def counted(self, name):
        """Returns a counter of the card."""
        return (await self.counters()).get(name, 0)


def words(card, frame):
    """Returns the number of a frame's words."""
    return -(-len(frame) // card.word)


def frame_bytes(size):
    """Returns the bytes of a result's frame."""
    return 42 + zwire.HDR_MAX_BYTES + 4 * size + 4


def check_results(card, size, chunks, beside=0):
    """Checks that results have left without an idle cycle at every port, each with so many frames beside it."""
    for cycles in card.results:
        check_rate(card, frame_bytes(size), cycles[-1] - cycles[0], (1 + beside) * (chunks - 1))


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(size=list(FULL))
async def results_fill_every_wire(dut, size):
    """Payloads of 1, 4 and 8 KiB."""
    chunks, window = FULL[size]
    card = PathCard(dut)
    await card.reset()
    await card.reduce(size, chunks, window)
    check_results(card, size, chunks)
    assert await card.counted("dropped") == 0


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(size=list(HALF))
async def sums_and_passing_frames_share_the_wires(dut, size):
    """Half of every wire's frames are for the next member: neither these nor results get less than half.

    The first that passes finds a wire without results; later ones wait for one result.
    """
    chunks, window = HALF[size]
    card = PathCard(dut)
    await card.reset()
    await card.learn()
    before = await card.counted("passed")
    sent = [[] for _ in card.members]

    def to_the_next(member):
        sent[member].append(card.passing(member, (member + 1) % card.ports, frame_bytes(size)))
        return sent[member][-1:]

    await card.reduce(size, chunks, window, to_the_next)
    check_results(card, size, chunks, beside=1)
    for receiver, passed in enumerate(card.passed):
        sender = (receiver - 1) % card.ports
        assert [(source, frame) for _, source, frame in passed] == [(sender, frame) for frame in sent[sender]]
        turn = words(card, sent[sender][0])
        check_rate(card, frame_bytes(size), passed[-1][0] - passed[0][0], 2 * (chunks - 1), late=turn)
        delays = [card.delay(frame, cycle) for cycle, _, frame in passed]
        print(f"a frame that passes takes {max(delays)} cycles beyond its own")
        assert max(delays) <= card.manifest["pass_latency"] + turn
    assert await card.counted("dropped") == 0 and await card.counted("passed") - before == chunks * card.ports


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(flood=["one_wire", "table"])
async def dropped_frames_take_no_turn_of_results(dut, flood):
    """Half of every wire's frames are for other members, and more than the card can pass.

    one_wire: all but one member send to the first, whose wire has room for a seventh. table: frames of 60 bytes to the
    next member come three a cycle, and the switch finds one destination a cycle. The card drops and counts the others,
    and the results at every port come as if it had passed them all.
    """
    size = 256
    chunks, window = HALF[size]
    card = PathCard(dut)
    await card.reset()
    await card.learn()
    before = await card.counted("passed")
    each, count = (frame_bytes(size), 1) if flood == "one_wire" else (60, 13)
    sent = [[] for _ in card.members]

    def others(member):
        receiver = 0 if flood == "one_wire" and member else (member + 1) % card.ports
        sent[member] += [card.passing(member, receiver, each) for _ in range(count)]
        return sent[member][-count:]

    await card.reduce(size, chunks, window, others)
    least = (chunks - 1) * (frame_bytes(size) + BESIDE + count * (each + BESIDE)) / card.rate
    print(f"the wire needs {least} cycles: {[at[-1] - at[0] for at in card.results]}")
    assert all(at[-1] - at[0] < least + 2 for at in card.results)
    for passed in card.passed:
        for sender, frames in enumerate(sent):
            left = iter(frames)
            assert all(frame in left for _, source, frame in passed if source == sender), "out of order, or changed"
    passed, dropped = sum(map(len, card.passed)), await card.counted("dropped")
    print(f"{passed} frames passed, {dropped} were dropped")
    assert passed > 0 and dropped > 0 and passed + dropped == sum(map(len, sent))
    assert await card.counted("passed") - before == passed
    assert flood == "table" or len(card.passed[1]) == chunks, "nothing else is for the second member"


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_frame_passes_in_its_cycles(dut):
    """An idle card: the first word leaves pass_latency cycles after the last came, and one follows each cycle."""
    card = PathCard(dut)
    await card.reset()
    await card.learn()
    for size in [60, 64, 65, 1514, LARGEST]:
        frame = card.passing(2, 5, size)
        card.put(frame, ethernet=2)
        await card.quiet()
        (cycle, sender, left) = card.passed[5].pop()
        assert (sender, left) == (2, frame) and not any(card.passed)
        assert card.delay(frame, cycle) == card.manifest["pass_latency"], f"a frame of {size} bytes"
        assert cycle - card.lines[5].tx.taken_at[-words(card, frame)] == words(card, frame) - 1, "a pause"
