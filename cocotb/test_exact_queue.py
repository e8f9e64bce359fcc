"""The path of undecided beats: the queue, with models of reader, lanes and unit around it; and
the leaves that select an element from a beat, and insert results and zeros."""

import os
import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from bench import number, run, start

# Lanes, ports, bits of a slot, of a beat's number and of the queue's length; latency of the lanes
# and pause.
SHAPES = {
    "some": (5, 3, 2, 3, 4, 9, 18),
    "ports": (3, 8, 2, 3, 4, 9, 18),  # a result arrives during the next element's read
    "least": (1, 2, 3, 4, 5, 27, 0),
}
SHAPE = os.environ.get("QUEUE_SHAPE", "some")
LANES, PORTS, SLOT_BITS, INDEX_BITS, DEPTH_BITS, LANE_LATENCY, PAUSE = SHAPES[SHAPE]
LIMIT = (1 << DEPTH_BITS) - LANE_LATENCY - 3
UNIT_LATENCY, UNIT_GAP, UNIT_SPACING = 33, 33, 3  # as documented in agg_exact_unit
ELEMENT_CYCLES = 3 * PORTS + LANE_LATENCY + PAUSE + 4
ALL_LANES, ALL_PORTS = (1 << LANES) - 1, (1 << PORTS) - 1


class Around:
    """Reader, slot memories, lanes and unit. Beats are numbers; slot and index are their lower
    bits."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.member = rng.choice([ALL_PORTS, 0b001, 0b101 & ALL_PORTS])
        dut.member.value = self.member
        self.reset()

    def reset(self):
        self.cycle = self.new = 0
        self.entered = {}  # by cycle: the lanes' input
        self.asked = None  # the read decided one cycle ago: (beat, again)
        self.read = None  # the memories' output in this cycle: (beat, again)
        self.undecided = {}  # by beat: lanes undecided after one pass
        self.written = {}  # by beat: lanes in the cache
        self.unfinished = set()  # beats read that are not whole
        self.writes = None  # the next cycle's (beat, lanes, result)
        self.operands = {}  # (beat, lane, port) by the cycle of entering the unit
        self.sum = []  # operands in the unit
        self.done = None  # (cycle, beat, lane)
        self.result = None  # (beat, lane) of the unit's sum
        self.result_at = 0  # first cycle of that sum
        self.last_at = -UNIT_GAP  # cycle of a sum's last operand
        self.firsts = []  # cycles of a sum's first operand
        self.held_up = 0
        self.met = 0  # results that waited for a read

    async def step(self, chance=0.0, undecided=0):
        """Runs a cycle; chance: of reading a new beat; undecided: mask of its lanes, or -1 for
        random lanes."""
        dut, t = self.dut, self.cycle
        early = self.entered.get(t + 2 - LANE_LATENCY)
        dut.undecided.value = early["undecided"] if early else self.rng.getrandbits(LANES)
        passed = self.entered.get(t + 1 - LANE_LATENCY)
        dut.lane_next.value = int(passed is not None)
        if passed:
            dut.lane_slot.value, dut.lane_beat.value = self.place(passed["beat"])
            for name in ("again", "write", "last"):
                getattr(dut, f"lane_{name}").value = passed[name]
        dut.done.value = int(self.done is not None and self.done[0] == t)
        await FallingEdge(dut.clk)
        self.check_write()
        self.check_pass(passed)
        self.check_gates()
        self.check_unit()
        self.read_memories(chance, undecided)
        await RisingEdge(dut.clk)
        self.cycle += 1

    def place(self, beat):
        return beat >> INDEX_BITS & (1 << SLOT_BITS) - 1, beat & (1 << INDEX_BITS) - 1

    def check_write(self):
        if self.writes:
            beat, lanes, result = self.writes
            assert number(self.dut.sum_lanes) == lanes
            assert number(self.dut.sum_result) == result
            assert not self.written[beat] & lanes, "a lane is written twice"
            self.written[beat] |= lanes

    def check_pass(self, passed):
        """A first pass writes the decided lanes, a further pass a result of the unit; the last
        write completes the beat."""
        dut = self.dut
        writes, whole, found = map(number, (dut.sum_next, dut.sum_whole, dut.found))
        self.writes = None
        if passed and not passed["again"]:
            self.writes = (passed["beat"], ALL_LANES & ~passed["undecided"], 0)
        elif passed and passed["write"]:
            beat, lane = passed["result"]
            assert beat == passed["beat"], "a result goes to another beat"
            self.writes = (beat, 1 << lane, 1)
        assert writes == int(self.writes is not None)
        assert found == int(bool(self.writes and not passed["again"] and passed["undecided"]))
        if self.writes:
            beat, lanes, _ = self.writes
            assert whole == int(self.written[beat] | lanes == ALL_LANES)
            if whole:
                self.unfinished.remove(beat)

    def check_gates(self):
        """Checks the lanes' input: all members of a new beat; a single port, or a result, of a
        repeated beat."""
        dut = self.dut
        if not self.read:
            return
        beat, again = self.read
        ports, write = number(dut.beat_ports), number(dut.beat_write)
        if not again:
            assert ports == self.member and not write
        elif write:
            assert ports == 0
            assert self.cycle <= self.result_at + 4, "a result waits"
            self.met += self.cycle == self.result_at + 4
        else:
            assert ports.bit_count() <= 1 and not ports & ~self.member
        self.entered[self.cycle] = {
            "beat": beat,
            "again": int(again),
            "write": write if again else self.rng.getrandbits(1),
            "last": number(dut.beat_last) if again else self.rng.getrandbits(1),
            "undecided": self.rng.getrandbits(LANES) if again else self.undecided[beat],
            "ports": ports,
            "result": self.result,
        }

    def check_unit(self):
        """Checks that an operand enters the unit two cycles after its sum, from the lane
        selected with the sum."""
        dut, t = self.dut, self.cycle
        if self.done and self.done[0] == t:
            self.result, self.result_at, self.done = self.done[1:], t, None
        passed = self.entered.get(t - LANE_LATENCY)
        if passed and passed["again"] and not passed["write"]:
            select = number(dut.select)
            assert select.bit_count() == 1
            self.operands[t + 2] = (passed["beat"], select.bit_length() - 1, passed["ports"])
        operand = self.operands.pop(t, None)
        assert number(dut.operand_valid) == int(operand is not None)
        if operand is None:
            return
        if not self.sum:
            assert t - self.last_at >= UNIT_GAP, "the unit is not ready"
            self.firsts.append(t)
        else:
            assert t - self.sum[-1][0] >= UNIT_SPACING
        self.sum.append((t, *operand))
        assert number(dut.operand_last) == int(len(self.sum) == PORTS)
        if len(self.sum) == PORTS:
            _, beat, lane, _ = self.sum[0]
            assert [s[1:] for s in self.sum] == [(beat, lane, 1 << p & self.member) for p in range(PORTS)]
            assert self.undecided[beat] >> lane & 1, "the lane was decided"
            self.sum, self.last_at = [], t
            assert self.done is None
            self.done = (t + UNIT_LATENCY, beat, lane)

    def read_memories(self, chance, undecided):
        """Reads the beat requested again; otherwise perhaps a new beat, unless stopped."""
        dut = self.dut
        self.read, self.asked = self.asked, None
        if number(dut.again_valid):
            place = number(dut.again_slot), number(dut.again_beat)
            (beat,) = [b for b in self.unfinished if self.place(b) == place]
            self.asked = (beat, True)
        elif number(dut.stop):
            self.held_up += 1
        elif self.rng.random() < chance and self.new - (1 << SLOT_BITS + INDEX_BITS) not in self.unfinished:
            lanes = self.rng.getrandbits(LANES) if undecided < 0 else undecided
            self.undecided[self.new], self.written[self.new] = lanes, 0
            self.unfinished.add(self.new)
            self.asked = (self.new, False)
            self.new += 1


INPUTS = ["undecided", "lane_next", "lane_slot", "lane_beat", "lane_again", "lane_write", "lane_last", "done"]


def quiet(dut):
    for name in INPUTS:
        getattr(dut, name).value = 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(seldom=[0, 0.5, 0.97])
async def every_beat_becomes_whole_once(dut, seldom):
    """New beats at full speed or slower: each lane of each beat is written once, and its last
    write completes the beat."""
    rng = random.Random(seldom)
    quiet(dut)
    around = Around(dut, rng)
    await start(dut)
    for _ in range(12000):
        await around.step(rng.choice([0.1, 1]), 0 if rng.random() < seldom else -1)
    for _ in range((1 << DEPTH_BITS) * LANES * ELEMENT_CYCLES + 200):
        await around.step()
    assert around.new > 100 and not around.unfinished
    assert around.held_up > 100 or seldom > 0.9
    assert around.met > 0 or SHAPE != "ports"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def elements_follow_one_another_as_said(dut):
    """Beats of undecided elements only: one element per ELEMENT_CYCLES, and one more cycle
    between beats."""
    quiet(dut)
    around = Around(dut, random.Random(1))
    await start(dut)
    while len(around.firsts) < 4 * LANES:
        await around.step(1, ALL_LANES)
    gaps = [b - a for a, b in zip(around.firsts, around.firsts[1:])]
    assert gaps == [ELEMENT_CYCLES + (i % LANES == LANES - 1) for i in range(len(gaps))]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_full_queue_loses_nothing(dut):
    """During the work on one beat, other beats arrive in a row, from each of its cycles, until
    stopped.

    The queue holds its documented number of them, less the reads that repeated beats take.
    """
    quiet(dut)
    around = Around(dut, random.Random(2))
    await start(dut)
    places = 1 << DEPTH_BITS
    came = set()
    for moment in range(LANE_LATENCY + 5, LANE_LATENCY + 5 + ELEMENT_CYCLES):
        await around.step(1, ALL_LANES)
        for _ in range(moment):
            await around.step()
        before = around.new
        for _ in range(places + 2 * PORTS + LANE_LATENCY):
            await around.step(1, 1 << moment % LANES)
        came.add(around.new - before)
        while around.unfinished:
            await around.step()
    assert max(came) == places and min(came) >= places - PORTS - 1


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_reset_leaves_nothing_behind(dut):
    rng = random.Random(3)
    quiet(dut)
    around = Around(dut, rng)
    await start(dut)
    for moment in range(1, 300, 9):
        for _ in range(moment):
            await around.step(1, ALL_LANES)
        for name in INPUTS:
            getattr(dut, name).value = rng.getrandbits(len(getattr(dut, name)))
        dut.lane_next.value = dut.done.value = dut.rst.value = 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
        around.reset()
        for _ in range(20):
            await around.step()
            assert not dut.stop.value and not around.read
        for _ in range(60):
            await around.step(0.3, -1)
        while around.unfinished:
            await around.step()


@pytest.mark.parametrize("shape", SHAPES)
def test_exact_queue(shape):
    names = ["LANES", "PORTS", "SLOT_BITS", "INDEX_BITS", "DEPTH_BITS", "LANE_LATENCY", "PAUSE"]
    parameters = dict(zip(names, SHAPES[shape]))
    parameters["LIMIT"] = (1 << parameters["DEPTH_BITS"]) - parameters["LANE_LATENCY"] - 3
    tests = [f"every_beat_becomes_whole_once/seldom={s}" for s in (0, 0.5, 0.97)]
    tests += ["elements_follow_one_another_as_said", "a_reset_leaves_nothing_behind"]
    if parameters["LANES"] > 1:  # a single-lane beat finishes before the queue fills
        tests.append("a_full_queue_loses_nothing")
    simulator = "icarus" if shape == "least" else "verilator"
    run("agg_exact_queue", parameters=parameters, simulator=simulator, testcase=tests, env={"QUEUE_SHAPE": shape})


# agg_exact_select


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def takes_one_lane(dut):
    rng = random.Random(4)
    lanes, width = len(dut.select), len(dut.y)
    await start(dut)
    for _ in range(200):
        beat, lane = rng.getrandbits(lanes * width), rng.randrange(lanes)
        dut.beat.value, dut.select.value = beat, 1 << lane
        await RisingEdge(dut.clk)
        dut.beat.value, dut.select.value = rng.getrandbits(lanes * width), rng.getrandbits(lanes)
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        assert int(dut.y.value) == beat >> lane * width & (1 << width) - 1
        await RisingEdge(dut.clk)


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_exact_select(lanes):
    run("agg_exact_select", parameters={"LANES": lanes, "ELEM_BITS": 9}, testcase=["takes_one_lane"])


# agg_exact_gate, agg_exact_extend


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def lets_a_result_in(dut):
    rng = random.Random(5)
    width = len(dut.result)
    lanes = len(dut.x) // width
    await start(dut)
    for _ in range(100):
        x, result = rng.getrandbits(len(dut.x)), rng.getrandbits(width)
        for enable, write, every in ((1, 0, None), (0, 0, 0x80), (0, 1, result)):
            dut.x.value, dut.enable.value, dut.write.value, dut.result.value = x, enable, write, result
            await RisingEdge(dut.clk)
            dut.x.value, dut.write.value = 0, 1 - write
            await RisingEdge(dut.clk)
            await FallingEdge(dut.clk)
            want = x if every is None else sum(every << width * lane for lane in range(lanes))
            assert int(dut.y.value) == want


@pytest.mark.parametrize("lanes", [1, 4])
def test_exact_gate(lanes):
    parameters = {"LANES": lanes, "ELEM_BITS": 8, "IDENTITY": 0x80}
    run("agg_exact_gate", parameters=parameters, testcase=["lets_a_result_in"])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def puts_zeros_below(dut):
    rng = random.Random(6)
    lanes, narrow, wide = int(dut.LANES.value), int(dut.FROM.value), int(dut.TO.value)
    for _ in range(100):
        elements = [rng.getrandbits(narrow) for _ in range(lanes)]
        dut.x.value = sum(e << narrow * i for i, e in enumerate(elements))
        await Timer(1, "ns")
        assert int(dut.y.value) == sum(e << wide * i + wide - narrow for i, e in enumerate(elements))


@pytest.mark.parametrize("lanes", [1, 3])
def test_exact_extend(lanes):
    run("agg_exact_extend", parameters={"LANES": lanes, "FROM": 5, "TO": 12}, testcase=["puts_zeros_below"])
