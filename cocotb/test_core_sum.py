"""From slot memories to cache, leaf by leaf: delays, memory, gate, reader, writer."""

import random
import struct

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from bench import leaf, number, run, start
from streams import PATTERNS



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
    sources = [leaf("agg_tag_delay"), leaf("agg_delay")]
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
    apart = int(dut.APART.value)
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
            shown = None if both and apart else words.get(of)
        if wr:
            words[at] = word
        await RisingEdge(dut.clk)
    assert collisions > 10


@pytest.mark.parametrize("apart", [0, 1])
def test_agg_ram(apart):
    parameters = {"WIDTH": 40, "ADDR_BITS": 3, "APART": apart}
    run("agg_ram", parameters=parameters, testcase=["reads_what_was_written"])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_absent_beat_is_minus_zero(dut):
    rng = random.Random(4)
    bits = len(dut.x)
    await start(dut)
    for number in range(40):
        enable = number % 2
        x = ((1 << bits) - 1, 0, rng.getrandbits(bits))[min(number // 2, 2)]
        dut.enable.value, dut.x.value = enable, x
        await RisingEdge(dut.clk)
        dut.enable.value, dut.x.value = 1 - enable, rng.getrandbits(bits)
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        zeros = int.from_bytes(struct.pack("<f", -0.0) * (bits // 32), "little")
        assert int(dut.y.value) == (x if enable else zeros)


@pytest.mark.parametrize("lanes", [1, 4])
def test_agg_gate(lanes):
    run("agg_gate", parameters={"LANES": lanes}, testcase=["an_absent_beat_is_minus_zero"])


# agg_cache


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS))
async def a_sum_can_be_read_in_the_cycle_of_its_address(dut, idle):
    """Words are written and read in any order and distance, with packets without payload between
    them, while the receiver makes the output wait."""
    rng = random.Random(f"cache {idle}")
    idle = PATTERNS[idle]()
    width = len(dut.wr_data)
    dut.wr_en.value = dut.hold.value = dut.blank.value = 0
    dut.shift.value = 1
    await start(dut)
    words, word = {}, None  # word: whose address came in the cycle before
    fetched, out = None, None  # (address, blank) of the word behind the output, word at the output
    near = 0
    for _ in range(2000):
        # The output is free, or its word leaves.
        shift = out is None or not next(idle)
        hold = fetched is not None and not shift
        wr, at = rng.random() < 0.5, rng.randrange(8)
        if fetched and at == fetched[0]:
            wr = False  # a word that is read is not written
        rd = not hold and rng.random() < 0.7
        # Half of the words that are read came just now, or in the cycle before.
        recent = [a for a in (at if wr else None, word) if a is not None]
        of = rng.choice(recent) if recent and rng.random() < 0.5 else rng.randrange(8)
        rd = rd and (of in words or (wr and of == at))
        dut.wr_en.value, dut.wr_addr.value = int(wr), at
        data = rng.getrandbits(width)
        dut.wr_data.value = data
        if word is not None:
            words[word] = data
        dut.rd_addr.value = of if rd else rng.randrange(8)
        dut.hold.value, dut.shift.value = int(hold), int(shift)
        dut.blank.value = int(bool(fetched and fetched[1]))
        await FallingEdge(dut.clk)
        if out is not None:
            assert number(dut.data) == out
        near += rd and of in (at if wr else None, word)
        if shift:
            out = None if fetched is None else 0 if fetched[1] else words[fetched[0]]
            fetched = None
        if rd:
            fetched = (of, rng.random() < 0.1)
            words.setdefault(of, None)
        word = at if wr else None
        await RisingEdge(dut.clk)
    assert near > 100


@pytest.mark.parametrize("width", [1, 40])
def test_agg_cache(width):
    name = "a_sum_can_be_read_in_the_cycle_of_its_address"
    run(
        "agg_cache",
        parameters={"WIDTH": width, "ADDR_BITS": 3},
        testcase=[f"{name}/idle={i}" for i in PATTERNS],
    )


# agg_slot_fifo


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def slots_leave_in_order(dut):
    """The oldest slot is at the head, and the next oldest is named when the head may be popped: not
    in consecutive cycles."""
    rng = random.Random(6)
    queue, popped, pops = [], False, 0
    places = 1 << len(dut.push_slot)
    dut.clear.value = 1
    dut.push.value = dut.pop.value = 0
    await start(dut)
    await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    for _ in range(1000):
        clear = rng.random() < 0.01
        push = len(queue) < places and rng.random() < 0.6
        slot = rng.randrange(places)
        assert int(dut.head_valid.value) == int(bool(queue)), "the head is missing"
        assert not queue or int(dut.head_slot.value) == queue[0]
        if not popped:
            assert int(dut.after_valid.value) == int(len(queue) > 1)
            assert len(queue) < 2 or int(dut.after_slot.value) == queue[1]
        pop = bool(queue) and not popped and rng.random() < 0.9
        dut.clear.value, dut.push.value, dut.pop.value, dut.push_slot.value = int(clear), int(push), int(pop), slot
        popped = pop
        pops += int(pop)
        queue = [] if clear else queue[int(pop) :] + [slot] * push
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
    assert pops > 300


@pytest.mark.parametrize("bits", [1, 3])
def test_agg_slot_fifo(bits):
    run("agg_slot_fifo", parameters={"SLOT_BITS": bits}, testcase=["slots_leave_in_order"])


# agg_reader


class Choice:
    """What agg_reader may choose to read in a cycle, and what it must choose from if it can."""

    def __init__(self, again, stop, may, must):
        self.again, self.stop, self.may, self.must = again, stop, may, must


class Reader:
    """agg_reader between a slot table that completes slots and a sum that may request beats
    again."""

    def __init__(self, dut, lasts):
        """lasts: the number of a chunk's last beat, per job."""
        self.dut, self.lasts = dut, lasts
        self.waiting = [[] for _ in lasts]  # per job: complete slots whose reading has not begun
        self.current = None  # slot and next beat
        self.on_way = set()  # slots whose sums are incomplete
        self.out = [None] * 4  # slots whose cache entries are picked, labelled, prepared and sent
        self.were_out = set()  # in the last cycle
        self.left = set()  # jobs whose slot was one of these
        self.popped = None  # the slot begun in the last cycle
        self.choice = Choice(None, False, [], [])  # of the last cycle
        self.label = None  # its slot
        self.tag = None  # the read of the last cycle, and whether it was requested again
        self.reads = self.turns = 0
        self.in_front = [set() for _ in lasts]  # per job: jobs begun while its slots waited
        quiet_reader(dut, lasts)

    def job(self, slot):
        """Returns the job of the slot."""
        return slot % len(self.lasts)

    def of(self, job):
        """Returns the job's slots whose sums are incomplete."""
        return [slot for slot in self.on_way if self.job(slot) == job]

    async def cycle(self, complete=None, again=None, reduced=None, flush=(), stop=False):
        """Runs a cycle, which must choose the beat requested again, or otherwise the next beat,
        unless stopped.

        flush: jobs that end.
        """
        dut = self.dut
        dut.stop.value = int(stop)
        dut.complete.value, dut.complete_slot.value = int(complete is not None), complete or 0
        dut.complete_job.value = self.job(complete or 0)
        slot, beat = again or (0, 0)
        dut.again_valid.value, dut.again_slot.value, dut.again_beat.value = int(again is not None), slot, beat
        dut.reduced.value, dut.flush.value = int(reduced is not None), sum(1 << job for job in flush)
        dut.reduced_job.value = self.job(reduced or 0)
        for name, slot in zip(("pick", "picked", "prep", "send"), self.out):
            getattr(dut, f"{name}_valid").value = int(slot is not None)
            getattr(dut, f"{name}_slot").value = slot or 0
        await FallingEdge(dut.clk)
        for job in range(len(self.lasts)):
            assert int(dut.drained.value) >> job & 1 == int(not self.of(job)), f"drained {job}"
        self.check_tag()
        self.take()
        self.choice = self.choose(again, stop, flush)
        self.label = int(dut.label_slot.value) if again or self.choice.may else None
        if reduced is not None:
            self.on_way.remove(reduced)
        for job in flush:
            self.waiting[job] = []
        if complete is not None:
            self.waiting[self.job(complete)].append(complete)
        await RisingEdge(dut.clk)

    def choose(self, again, stop, flush):
        """Returns what may be chosen in this cycle: no slot begins in the cycle after another, or if
        it was on its way out in the cycle before. A job is late by one more cycle then, if there are
        several, and delays others by one, also when it ends."""
        heads = {job: q[0] for job, q in enumerate(self.waiting) if q}
        known = heads if self.popped is None else heads | {self.job(self.popped): self.popped}
        left, self.left = self.left, {job for job, slot in known.items() if slot in self.were_out}
        out, self.were_out = self.were_out, {slot for slot in self.out if slot is not None}
        if self.current:
            return Choice(again, stop, [self.current], [self.current])
        if self.popped is not None:
            return Choice(again, stop, [], [])
        may = [(slot, 0) for job, slot in heads.items() if job not in flush and slot not in out]
        late = left if len(self.lasts) > 1 else set()
        waits = any((slot in out or job in flush) and job not in late for job, slot in heads.items())
        must = [(slot, 0) for slot, _ in may if self.job(slot) not in late]
        return Choice(again, stop, may, [] if waits else must)

    def pass_on(self, rng, slots):
        """Moves the entries on their way out, and picks another one."""
        if rng.random() < 0.2:
            self.out[3] = None
        for place in (2, 1):
            if self.out[place + 1] is None and rng.random() < 0.5:
                self.out[place + 1], self.out[place] = self.out[place], None
        if self.out[0] is not None:
            self.out[1] = self.out[0] if rng.random() < 0.9 else None
        picks = self.out[1] is None and rng.random() < 0.2
        self.out[0] = rng.randrange(slots) if picks else None

    def take(self):
        """Checks the read of the last cycle's choice."""
        dut, choice = self.dut, self.choice
        read = (int(dut.rd_slot.value), int(dut.rd_beat.value)) if int(dut.rd_en.value) else None
        self.popped, passed = None, choice.again is not None
        self.tag = (read, passed)
        if passed:
            assert read == choice.again
        elif choice.stop:
            assert read is None
        elif read is None:
            assert not choice.must, "no beat is read"
        else:
            assert read in choice.may
        assert read is None or read[0] == self.label
        kept = int(dut.stalled.value)
        assert not kept or (choice.may and (passed or choice.stop))
        assert kept or not choice.must or not (passed or choice.stop)
        begins = read is not None and not passed and read[1] == 0
        assert int(dut.begun.value) == int(begins)
        if begins:
            assert (int(dut.begun_slot.value), int(dut.begun_job.value)) == (read[0], self.job(read[0]))
        if not self.current:
            self.check_turn(choice, read if begins else None)
        if read and not passed:
            self.advance(read)

    def check_turn(self, choice, begun):
        """Checks that no job is begun twice while another job has a slot to begin."""
        waiting = {self.job(slot) for slot, _ in choice.must}
        for job in range(len(self.lasts)):
            if job not in waiting or (begun and self.job(begun[0]) == job):
                self.in_front[job] = set()
            elif begun:
                assert self.job(begun[0]) not in self.in_front[job], f"job {job} was passed over"
                self.in_front[job].add(self.job(begun[0]))
                self.turns += 1

    def advance(self, read):
        slot, beat = read
        self.reads += 1
        if beat == 0:
            self.popped = slot
            assert self.waiting[self.job(slot)].pop(0) == slot
            self.on_way.add(slot)
        self.current = (slot, beat + 1) if beat < self.lasts[self.job(slot)] else None

    def check_tag(self):
        """Checks the tag of the last cycle's read, which accompanies the memories' outputs."""
        if self.tag is None:
            return
        dut, (read, passed) = self.dut, self.tag
        assert int(dut.beat_valid.value) == int(read is not None)
        if read:
            tag = (int(dut.beat_slot.value), int(dut.beat_index.value), int(dut.beat_pass.value))
            assert tag == (*read, int(passed))
            last = read[1] == self.lasts[self.job(read[0])]
            assert passed or int(dut.beat_last.value) == int(last)


def quiet_reader(dut, lasts):
    for name in ("flush", "complete", "complete_slot", "complete_job", "reduced", "reduced_job"):
        getattr(dut, name).value = 0
    for name in ("pick", "picked", "prep", "send"):
        getattr(dut, f"{name}_valid").value = getattr(dut, f"{name}_slot").value = 0
    for name in ("stop", "again_valid", "again_slot", "again_beat"):
        getattr(dut, name).value = 0
    bits = len(dut.job_last) // len(lasts)
    dut.job_last.value = sum(last << bits * job for job, last in enumerate(lasts))


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def beats_follow_one_another(dut, idle, stall):
    """Each job's slots are read in the order of completion and without a bubble; beats are
    repeated on request; jobs end."""
    rng = random.Random(f"{idle} {stall}")
    crowded = idle == "never"
    idle, stall = PATTERNS[idle](), PATTERNS[stall]()
    slots, jobs = 1 << len(dut.complete_slot), len(dut.flush)
    bench = Reader(dut, [rng.randrange(1 << len(dut.again_beat)) for _ in range(jobs)])
    await start(dut)
    flush = set()
    for _ in range(600):
        held = bench.on_way | {slot for queue in bench.waiting for slot in queue}
        free = [s for s in range(slots) if s not in held and bench.job(s) not in flush]
        complete = rng.choice(free) if free and not next(idle) else None
        done = sorted(s for s in bench.on_way if bench.current is None or bench.current[0] != s)
        reduced = rng.choice(done) if done and rng.random() < 0.3 else None
        again = None
        if bench.on_way and next(stall):
            slot = rng.choice(sorted(bench.on_way))
            again = (slot, rng.randint(0, bench.lasts[bench.job(slot)]))
        bench.pass_on(rng, slots)
        await bench.cycle(complete, again, reduced, flush, stop=rng.random() < 0.1)
        # A job's end lasts until none of its slots is being summed.
        flush = {job for job in flush if bench.of(job)}
        if rng.random() < 0.01:
            flush.add(rng.randrange(jobs))
    assert bench.reads > 20
    assert bench.turns > 5 or jobs == 1 or not crowded


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_flush_finishes_the_slot_and_drops_the_rest(dut):
    """The flush drops the waiting slots of its job only; reading of others continues."""
    jobs = len(dut.flush)
    bench = Reader(dut, [3] * jobs)
    await start(dut)
    for complete in (0, jobs, 2 * jobs):
        await bench.cycle(complete)
    if jobs > 1:
        await bench.cycle(1)
    for _ in range(8):
        await bench.cycle(flush={0})
    assert bench.on_way == ({0, 1} if jobs > 1 else {0})
    await bench.cycle(flush={0}, reduced=0)
    await bench.cycle(complete=3 * jobs)
    for _ in range(5):
        await bench.cycle()
    assert bench.on_way == ({1, 3 * jobs} if jobs > 1 else {3})


@pytest.mark.parametrize("slot_bits, index_bits, jobs, job_bits", [(1, 1, 1, 1), (3, 1, 2, 1), (4, 2, 4, 2)])
def test_agg_reader(slot_bits, index_bits, jobs, job_bits):
    run(
        "agg_reader",
        [leaf(name) for name in ("agg_reader", "agg_slot_fifo", "agg_tag_delay", "agg_delay")],
        parameters={"SLOT_BITS": slot_bits, "INDEX_BITS": index_bits, "JOBS": jobs, "JOB_BITS": job_bits},
        testcase=[f"beats_follow_one_another/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS]
        + (["a_flush_finishes_the_slot_and_drops_the_rest"] if index_bits == 2 else []),
    )


# agg_labels


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_reader_sees_its_slots_label(dut):
    """The gates see the label of the slot that is read; writer and sender see it from the time on
    at which the slot began."""
    rng = random.Random(5)
    slots = 1 << len(dut.complete_slot)
    fields = ("job", "ports", "vid", "ecn", "nonfinite", "gen")
    complete, sent = {}, {}  # labels by slot
    dut.complete.value = dut.begun.value = 0
    await start(dut)
    reads, sends, writes, copies = [None] * 3, [None] * 3, [None] * 2, [None] * 3
    for _ in range(800):
        completes, slot = rng.random() < 0.5, rng.randrange(slots)
        label = {name: rng.getrandbits(len(getattr(dut, f"complete_{name}"))) for name in fields}
        dut.complete.value, dut.complete_slot.value = int(completes), slot
        for name, value in label.items():
            getattr(dut, f"complete_{name}").value = value
        read, send, write = rng.randrange(slots), rng.randrange(slots), rng.randrange(slots)
        dut.rd_slot.value, dut.send_slot.value, dut.wr_slot.value = read, send, write
        begun = reads[-1] is not None and rng.random() < 0.5
        dut.begun.value, dut.begun_slot.value = int(begun), reads[-1][0] if begun else rng.randrange(slots)
        await FallingEdge(dut.clk)
        if reads[-1]:
            assert number(dut.begun_gen) == reads[-1][1]["gen"]
        if reads[-2]:
            assert number(dut.beat_ports) == reads[-2][1]["ports"]
            assert number(dut.beat_gen) == reads[-2][1]["gen"]
            assert number(dut.beat_job) == reads[-2][1]["job"]
        if writes[-1]:
            assert number(dut.written_vid) == writes[-1]["vid"]
        if sends[-2]:
            for name in fields[1:]:
                assert number(getattr(dut, f"send_{name}")) == sends[-2][name]
        reads = [*reads[1:], (read, complete[read]) if read in complete else None]
        sends, writes = [*sends[1:], sent.get(send)], [*writes[1:], sent.get(write)]
        if copies[-1]:
            sent[copies[-1][0]] = copies[-1][1]
        copies = [*copies[1:], reads[-2] if begun else None]
        if completes:
            complete[slot] = label
        await RisingEdge(dut.clk)


@pytest.mark.parametrize("ports, job_bits, slot_bits", [(1, 1, 1), (5, 2, 3)])
def test_agg_labels(ports, job_bits, slot_bits):
    run(
        "agg_labels",
        [leaf("agg_labels"), leaf("agg_ram")],
        parameters={"PORTS": ports, "JOB_BITS": job_bits, "SLOT_BITS": slot_bits},
        testcase=["every_reader_sees_its_slots_label"],
    )


# agg_writer

QUERY = ["query_slot", "query_beat", "query_gen"]
AFTER = ["after_slot", "after_beat", "after_gen"]


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), passes=["one", "some"])
async def a_slot_is_reduced_when_all_its_beats_are_there(dut, idle, passes):
    """Sums of chunks of different lengths, slot after slot. Some beats need a further pass, which
    comes later. The bench checks which beats the cache offers for reading in every cycle."""
    rng = random.Random(f"{idle} {passes}")
    idle = PATTERNS[idle]()
    slots, lanes, most = 1 << len(dut.next_slot), len(dut.sum_nonfinite), 1 << len(dut.next_beat)
    jobs = 1 << len(dut.next_job)
    for name in ("next_valid", "next_again", "sum_nonfinite", "sum_over", *QUERY, *AFTER, "query_after"):
        getattr(dut, name).value = 0
    dut.clear.value = 0
    await start(dut)
    for slot in range(slots):
        dut.clear.value, dut.clear_slot.value = 1, slot
        await RisingEdge(dut.clk)
    dut.clear.value = 0
    gen, job, length, due = [0] * slots, [0] * slots, [0] * slots, [set() for _ in range(slots)]
    written = [set() for _ in range(slots)]
    slot, beat, wait, pause, reports = None, 0, 0, 0, []
    writes, sums, counts, offered = None, None, [(0, 0)] * 2, None
    front_slot = None  # of the last first pass
    complete, beats, counted, whole_for = 0, 0, False, [9] * slots  # whole_for: cycles since reduced
    for _ in range(700):
        wait, pause = wait + 1, pause + 1
        if slot is None and wait > 1:
            free = [s for s in range(slots) if not due[s] and whole_for[s] > 2]
            if free:
                slot, beat, wait = rng.choice(free), 0, 0
                gen[slot] ^= 1
                job[slot], length[slot] = rng.randrange(jobs), rng.randint(1, most)
                due[slot], written[slot] = set(range(length[slot])), set()
        tag = None  # slot, beat, again, whole, last
        left = [(s, b) for s in range(slots) for b in due[s] if b < (beat if s == slot else length[s])]
        if left and pause > 6 and rng.random() < 0.4:
            tag = (*rng.choice(left), 1, 1, rng.getrandbits(1))
            pause = 0
        elif slot is not None and not next(idle):
            whole = passes == "one" or rng.random() < 0.8
            tag = (slot, beat, 0, int(whole), int(beat == length[slot] - 1))
        strange, over = rng.getrandbits(lanes), rng.getrandbits(lanes)
        dut.sum_nonfinite.value, dut.sum_over.value = strange, over
        dut.next_valid.value = int(tag is not None)
        at, index, again, whole, last = tag or (0, 0, rng.getrandbits(1), rng.getrandbits(1), rng.getrandbits(1))
        dut.next_slot.value, dut.next_beat.value = at, index
        dut.next_again.value, dut.next_whole.value, dut.next_last.value = again, whole, last
        dut.next_gen.value, dut.next_job.value = gen[at], job[at]
        asked = rng.randrange(slots)
        place = rng.randrange(length[asked] or most)
        # The query in question, and some other.
        after = rng.randrange(2)
        other = rng.randrange(slots), rng.randrange(most), rng.randrange(2)
        dut.query_after.value = after
        for name, value in zip(AFTER if after else QUERY, (asked, place, gen[asked] or (not length[asked]))):
            getattr(dut, name).value = value
        for name, value in zip(QUERY if after else AFTER, other):
            getattr(dut, name).value = value
        await FallingEdge(dut.clk)
        assert number(dut.wr_en) == int(writes is not None)
        if writes:
            assert (number(dut.wr_slot), number(dut.wr_beat)) == writes[:2]
        assert (number(dut.nonfinite), number(dut.overflow)) == counts[0]
        if sums:
            assert number(dut.sum_slot) == sums[0]
        assert number(dut.written) == int(counted)
        counts = [counts[1], (strange.bit_count(), over.bit_count()) if sums else (0, 0)]
        counted = sums is not None
        sums = writes
        if offered is not None:
            may, must = offered
            assert may or not number(dut.query_written), "reads what is not written"
            assert number(dut.query_written) or not must, "does not offer what is written"
        whole_for = [n + 1 for n in whole_for]
        if number(dut.reduced):
            done = number(dut.reduced_slot)
            assert done in reports, "not whole, or reported before"
            reports.remove(done)
            assert (number(dut.reduced_gen), number(dut.reduced_job)) == (gen[done], job[done])
            whole_for[done] = 0
            complete += 1
        writes = None
        if tag:
            writes = tag
            if whole:
                due[at].discard(index)
                written[at].add(index)
            if not again:
                beats += 1
                beat += 1
                front_slot = at
                if last:
                    slot = None
            if not due[at]:
                whole_for[at] = -9
                reports.append(at)
        front = {place for place in range(length[asked]) if set(range(place + 1)) <= written[asked]}
        must = whole_for[asked] > 0 and asked not in reports and not due[asked] and length[asked]
        must = must or (passes == "one" and asked == front_slot and place in front)
        offered = (place in written[asked], must)
        await RisingEdge(dut.clk)
    assert complete > 10 and beats > 40


@pytest.mark.parametrize("lanes, slot_bits, index_bits, passes", [(1, 2, 1, 0), (4, 3, 3, 0), (4, 2, 2, 1)])
def test_agg_writer(lanes, slot_bits, index_bits, passes):
    name = "a_slot_is_reduced_when_all_its_beats_are_there"
    run(
        "agg_writer",
        parameters={
            "LANES": lanes,
            "JOB_BITS": 2,
            "SLOT_BITS": slot_bits,
            "INDEX_BITS": index_bits,
            "COUNT_BITS": lanes.bit_length(),
            "PASSES": passes,
        },
        testcase=[f"{name}/idle={i}/passes={'some' if passes else 'one'}" for i in PATTERNS],
    )
