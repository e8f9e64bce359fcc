"""Between slot memories and cache, leaf by leaf: delays, memory, gate, reader, writer."""

import random
import struct

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from bench import RTL, run, start
from streams import PATTERNS



def path(leaf):
    return RTL / f"{leaf}.v"


# agg_delay, agg_tag_delay


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def delays_by_so_many_cycles(dut):
    rng = random.Random(1)
    cycles, width = int(dut.CYCLES.value), len(dut.d)
    words = [rng.getrandbits(width) for _ in range(200)]
    dut.d.value = 0
    await start(dut)
    for i, word in enumerate(words):
        dut.d.value = word
        await FallingEdge(dut.clk)
        if i >= cycles:
            assert int(dut.q.value) == words[i - cycles]
        await RisingEdge(dut.clk)


@pytest.mark.parametrize("cycles", [0, 1, 2, 7])
def test_agg_delay(cycles):
    run("agg_delay", parameters={"WIDTH": 9, "CYCLES": cycles}, testcase=["delays_by_so_many_cycles"])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def tags_come_late_and_a_reset_drops_them(dut):
    rng = random.Random(2)
    cycles = int(dut.CYCLES.value)
    dut.in_valid.value = dut.in_tag.value = 0
    await start(dut)
    sent = []
    for i in range(300):
        reset = i in (100, 101)
        sent.append((int(rng.random() < 0.5 and not reset), rng.getrandbits(len(dut.in_tag))))
        dut.rst.value = int(reset)
        dut.in_valid.value, dut.in_tag.value = sent[-1]
        await FallingEdge(dut.clk)
        if i >= cycles and not (cycles and 100 < i < 102 + cycles):
            valid, tag = sent[i - cycles]
            assert int(dut.out_valid.value) == valid
            assert not valid or int(dut.out_tag.value) == tag
        elif cycles and i > 100:
            assert int(dut.out_valid.value) == 0
        await RisingEdge(dut.clk)


@pytest.mark.parametrize("cycles", [0, 1, 5])
def test_agg_tag_delay(cycles):
    sources = [path("agg_tag_delay"), path("agg_delay")]
    run(
        "agg_tag_delay",
        sources,
        parameters={"WIDTH": 6, "CYCLES": cycles},
        testcase=["tags_come_late_and_a_reset_drops_them"],
    )


# agg_ram, agg_gate


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reads_what_was_written(dut):
    rng = random.Random(3)
    forward = int(dut.FORWARD.value)
    words, shown = {}, None
    dut.wr_en.value = dut.rd_en.value = 0
    await start(dut)
    collisions = 0
    for _ in range(1000):
        wr, at, word = rng.random() < 0.6, rng.randrange(8), rng.getrandbits(len(dut.wr_data))
        rd, of = rng.random() < 0.6, rng.randrange(8)
        dut.wr_en.value, dut.wr_addr.value, dut.wr_data.value = int(wr), at, word
        dut.rd_en.value, dut.rd_addr.value = int(rd), of
        await FallingEdge(dut.clk)
        if shown is not None:
            assert int(dut.rd_data.value) == shown
        if rd:
            both = wr and at == of
            collisions += both
            shown = word if both and forward else words.get(of)
        if wr:
            words[at] = word
        await RisingEdge(dut.clk)
    assert collisions > 10


@pytest.mark.parametrize("forward", [0, 1])
def test_agg_ram(forward):
    parameters = {"WIDTH": 40, "ADDR_BITS": 3, "FORWARD": forward}
    run("agg_ram", parameters=parameters, testcase=["reads_what_was_written"])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_absent_beat_is_minus_zero(dut):
    rng = random.Random(4)
    for enable in (1, 0, 1, 0):
        x = rng.getrandbits(len(dut.x))
        dut.enable.value, dut.x.value = enable, x
        await Timer(1, "ns")
        zeros = int.from_bytes(struct.pack("<f", -0.0) * (len(dut.x) // 32), "little")
        assert int(dut.y.value) == (x if enable else zeros)


@pytest.mark.parametrize("lanes", [1, 4])
def test_agg_gate(lanes):
    run("agg_gate", parameters={"LANES": lanes}, testcase=["an_absent_beat_is_minus_zero"])


# agg_slot_fifo


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def slots_leave_in_order(dut):
    rng = random.Random(6)
    queue = []
    places = 1 << len(dut.push_slot)
    dut.clear.value = 1
    dut.push.value = dut.pop.value = 0
    await start(dut)
    for _ in range(1000):
        clear = rng.random() < 0.01
        push = len(queue) < places and rng.random() < 0.6
        pop = bool(queue) and rng.random() < 0.5
        slot = rng.randrange(places)
        dut.clear.value, dut.push.value, dut.pop.value, dut.push_slot.value = int(clear), int(push), int(pop), slot
        await FallingEdge(dut.clk)
        assert int(dut.head_valid.value) == int(bool(queue))
        assert not queue or int(dut.head_slot.value) == queue[0]
        queue = [] if clear else queue[int(pop) :] + [slot] * push
        await RisingEdge(dut.clk)


@pytest.mark.parametrize("bits", [1, 3])
def test_agg_slot_fifo(bits):
    run("agg_slot_fifo", parameters={"SLOT_BITS": bits}, testcase=["slots_leave_in_order"])


# agg_reader


class Reader:
    """agg_reader between a slot table that completes slots and a sum that may ask for beats again."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.beats = int(dut.job_last.value) + 1
        self.waiting = []  # complete slots whose reading has not begun
        self.current = None  # slot and next beat
        self.on_way = {}  # slot: beats whose sums are still to come
        self.sending = None
        self.last = None  # what was read in the last cycle
        self.reads = 0

    async def cycle(self, complete=None, again=None, reduced=None, flush=False, stop=False):
        """One cycle; what is read must be the beat asked for again, or else the next one, if none is held back."""
        dut = self.dut
        dut.stop.value = int(stop)
        dut.complete.value, dut.complete_slot.value = int(complete is not None), complete or 0
        slot, beat = again or (0, 0)
        dut.again_valid.value, dut.again_slot.value, dut.again_beat.value = int(again is not None), slot, beat
        dut.reduced.value, dut.flush.value = int(reduced is not None), int(flush)
        dut.sending.value, dut.sending_slot.value = int(self.sending is not None), self.sending or 0
        await FallingEdge(dut.clk)
        waits = self.next_beat(flush)
        expected = again or (None if stop else waits)
        assert int(dut.stalled.value) == int(bool(waits and (again or stop)))
        assert int(dut.rd_en.value) == int(expected is not None)
        if expected:
            assert (int(dut.rd_slot.value), int(dut.rd_beat.value)) == expected
        self.check_tag()
        assert int(dut.drained.value) == int(not self.on_way), "drained"
        self.last = (expected, again is not None)
        if expected and not again:
            self.advance(expected)
        if reduced is not None:
            del self.on_way[reduced]
        if flush and self.current is None:
            self.waiting = []
        elif complete is not None:
            self.waiting.append(complete)
        await RisingEdge(dut.clk)

    def next_beat(self, flush):
        if self.current:
            return self.current
        if not self.waiting or flush or self.waiting[0] == self.sending:
            return None
        return (self.waiting[0], 0)

    def advance(self, read):
        slot, beat = read
        self.reads += 1
        if beat == 0:
            self.waiting.pop(0)
            self.on_way[slot] = self.beats
        self.current = (slot, beat + 1) if beat + 1 < self.beats else None

    def check_tag(self):
        """What was read in the last cycle now stands beside the memories' outputs."""
        if self.last is None:
            return
        read, passed = self.last
        assert int(self.dut.beat_valid.value) == int(read is not None)
        if read:
            tag = (int(self.dut.beat_slot.value), int(self.dut.beat_index.value), int(self.dut.beat_pass.value))
            assert tag == (*read, int(passed))


def quiet_reader(dut, last):
    for name in ("flush", "complete", "complete_slot", "sending", "sending_slot", "reduced"):
        getattr(dut, name).value = 0
    for name in ("stop", "again_valid", "again_slot", "again_beat"):
        getattr(dut, name).value = 0
    dut.job_last.value = last


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def beats_follow_one_another(dut, idle, stall):
    """Slots in the order in which they are complete, no bubble, beats again when the sum asks."""
    rng = random.Random(f"{idle} {stall}")
    idle, stall = PATTERNS[idle](), PATTERNS[stall]()
    slots = 1 << len(dut.complete_slot)
    last = rng.randrange(1 << len(dut.job_last))
    quiet_reader(dut, last)
    await start(dut)
    bench = Reader(dut, rng)
    for _ in range(600):
        free = [s for s in range(slots) if s not in bench.on_way and s not in bench.waiting]
        complete = rng.choice(free) if free and not next(idle) else None
        done = [s for s in bench.on_way if bench.current is None or bench.current[0] != s]
        reduced = rng.choice(done) if done and rng.random() < 0.3 else None
        again = None
        if bench.on_way and next(stall):
            again = (rng.choice(list(bench.on_way)), rng.randint(0, last))
        if rng.random() < 0.1:
            bench.sending = rng.choice([None, rng.randrange(slots)])
        await bench.cycle(complete, again, reduced, stop=rng.random() < 0.1)
    assert bench.reads > 20


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_flush_finishes_the_slot_and_drops_the_rest(dut):
    quiet_reader(dut, 3)
    await start(dut)
    bench = Reader(dut, random.Random(1))
    for complete in (0, 1, 2):
        await bench.cycle(complete)
    for _ in range(8):
        await bench.cycle(flush=True)
    assert bench.reads == 4 and list(bench.on_way) == [0]
    await bench.cycle(flush=True, reduced=0)
    await bench.cycle(complete=3)
    for _ in range(5):
        await bench.cycle()
    assert bench.reads == 8 and list(bench.on_way) == [3]


@pytest.mark.parametrize("slot_bits, index_bits", [(1, 1), (3, 2)])
def test_agg_reader(slot_bits, index_bits):
    run(
        "agg_reader",
        [path("agg_reader"), path("agg_slot_fifo")],
        parameters={"SLOT_BITS": slot_bits, "INDEX_BITS": index_bits},
        testcase=[f"beats_follow_one_another/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS]
        + (["a_flush_finishes_the_slot_and_drops_the_rest"] if index_bits == 2 else []),
    )


# agg_writer


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), order=["straight", "any"])
async def a_slot_is_reduced_when_all_its_beats_are_there(dut, idle, order):
    """Sums of several slots, in order or not, some of them in parts; what a reader of the cache may read at every
    moment."""
    rng = random.Random(f"{idle} {order}")
    idle = PATTERNS[idle]()
    slots, lanes, beats = 1 << len(dut.next_slot), len(dut.sum_nonfinite), rng.randint(1, 1 << len(dut.next_beat))
    dut.job_last.value = beats - 1
    dut.next_valid.value = dut.sum_nonfinite.value = dut.sum_over.value = dut.query_slot.value = dut.query_beat.value = 0
    await start(dut)
    todo, written, whole, writes, counts = [], {}, set(), None, (0, 0)
    for _ in range(500):
        if not todo or (order == "any" and len(todo) < 2 * beats):
            free = set(range(slots)) - {slot for slot, _ in todo}
            todo += [(slot, b) for slot in rng.sample(sorted(free), min(1, len(free))) for b in range(beats)]
        at = rng.randrange(len(todo)) if order == "any" else 0
        sum_now = todo[at] if not next(idle) else None
        complete = rng.random() < 0.7  # else a part comes, and not the last one
        if sum_now and complete:
            todo.pop(at)
        strange, over = rng.getrandbits(lanes), rng.getrandbits(lanes)
        dut.next_valid.value = int(sum_now is not None)
        dut.next_whole.value = int(complete)
        dut.next_slot.value, dut.next_beat.value = sum_now or (0, 0)
        dut.sum_nonfinite.value, dut.sum_over.value = strange, over
        query = (rng.randrange(slots), rng.randrange(beats))
        dut.query_slot.value, dut.query_beat.value = query
        await FallingEdge(dut.clk)
        # The cycle's write, announced one cycle ago.
        assert int(dut.wr_en.value) == int(writes is not None)
        if writes:
            assert (int(dut.wr_slot.value), int(dut.wr_beat.value)) == writes
        assert (int(dut.nonfinite.value), int(dut.overflow.value)) == counts
        counts = (strange.bit_count(), over.bit_count()) if writes else (0, 0)
        known = query[0] in whole or query[1] in written.get(query[0], set())
        assert known or not int(dut.query_written.value), "reads what is not written"
        if order == "straight":
            assert int(dut.query_written.value) == int(known)
        elif query[0] in whole:
            assert int(dut.query_written.value) == 1
        begun = reduced = False
        if sum_now and complete:
            slot, beat = sum_now
            begun = slot not in written
            if begun:
                whole.discard(slot)
            written.setdefault(slot, set()).add(beat)
            reduced = len(written[slot]) == beats
            if reduced:
                del written[slot]
                whole.add(slot)
        assert (int(dut.begun.value), int(dut.reduced.value)) == (int(begun), int(reduced))
        writes = sum_now
        await RisingEdge(dut.clk)


@pytest.mark.parametrize("lanes, slot_bits, index_bits", [(1, 2, 1), (4, 3, 3)])
def test_agg_writer(lanes, slot_bits, index_bits):
    name = "a_slot_is_reduced_when_all_its_beats_are_there"
    run(
        "agg_writer",
        parameters={
            "LANES": lanes,
            "SLOT_BITS": slot_bits,
            "INDEX_BITS": index_bits,
            "COUNT_BITS": lanes.bit_length(),
        },
        testcase=[f"{name}/idle={i}/order={o}" for i in PATTERNS for o in ("straight", "any")],
    )
