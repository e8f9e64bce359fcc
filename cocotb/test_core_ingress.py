"""Ingress, leaf by leaf: ingress, arbiter."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer

import zwire
from bench import joined, run, start
from streams import PATTERNS, StreamSource

# Fields of a commit's request.
REQUEST = "version kind ecn job format epoch rank vid length whole bad nonfinite writable entered".split()


def header_bits(fields):
    """Returns the header as a number, given its fields by name."""
    value = 0
    for name, content in fields.items():
        lsb, bits = zwire.FIELDS[name]
        value |= (content & (1 << bits) - 1) << lsb
    return value


# agg_ingress

BEATS, BEAT_BITS = 3, 32

# Per job: first slot, slots, beats of a chunk, and whether it is set up.
JOBS = {1: [(0, 8, BEATS, 1)], 4: [(4, 4, BEATS, 1), (2, 2, 2, 1), (0, 8, 1, 0), (0, 2, 4, 1)]}


class Ingress:
    """agg_ingress under random packets; the bench grants and judges requests, as agg_arbiter and
    agg_slots might."""

    def __init__(self, dut, idle, stall, rng):
        self.dut, self.stall, self.rng = dut, stall, rng
        self.jobs = JOBS[len(dut.flush)]
        self.memory = {}  # (slot, beat): the written data
        self.held = {}  # slot: beats of the stored contribution, until it is summed
        self.packets = []  # sent, not yet granted
        self.requests = []  # granted, not yet judged
        self.picked = False  # the arbiter picked the request in the last cycle
        self.summed = [None] * 3  # slots summed in the last cycles
        self.stored = self.unwritten = self.commits = 0
        for name in ("flush", "req_grant", "judged", "judged_stored", "clear", "clear_slot", "job_valid"):
            getattr(dut, name).value = 0
        dut.reduced.value = dut.reduced_slot.value = dut.s_nonfinite.value = 0
        bases, counts, beats, _ = zip(*self.jobs)
        dut.slot_base.value, dut.slot_mask.value = joined(3, bases), joined(3, [count - 1 for count in counts])
        dut.job_last.value = joined(2, [n - 1 for n in beats])
        self.source = StreamSource(dut, "s_axis", idle)

    async def start(self):
        """Resets the port, clears all slots and sets up the jobs."""
        await start(self.dut)
        await self.clear(range(8))
        self.dut.job_valid.value = joined(1, [valid for _, _, _, valid in self.jobs])
        await FallingEdge(self.dut.clk)

    async def clear(self, slots):
        """Clears slots, and waits until that has its effect."""
        dut = self.dut
        for slot in slots:
            dut.clear.value, dut.clear_slot.value = 1, slot
            await RisingEdge(dut.clk)
        dut.clear.value = 0
        await ClockCycles(dut.clk, 4)

    async def flush(self, job):
        """Ends the job, which is then set up again with the same slots."""
        dut = self.dut
        base, slots, _, _ = self.jobs[job]
        valid = int(dut.job_valid.value)
        dut.flush.value, dut.job_valid.value = 1 << job, valid & ~(1 << job)
        await ClockCycles(dut.clk, 2)
        await self.clear(range(base, base + slots))
        dut.flush.value = 0
        await RisingEdge(dut.clk)
        dut.job_valid.value = valid

    async def judge(self, stored=0):
        """Judges the oldest granted request."""
        self.dut.judged.value, self.dut.judged_stored.value = 1, stored
        await RisingEdge(self.dut.clk)
        self.dut.judged.value = 0

    def send(self):
        """Queues a random packet."""
        rng = self.rng
        kind = rng.choice([zwire.KIND_DATA] * 5 + [zwire.KIND_ASK, zwire.KIND_FINISH])
        job = rng.randrange(len(self.jobs))
        count = rng.choice([self.jobs[job][2]] * 6 + [1, 2, 4, 7, 9]) if kind == zwire.KIND_DATA else 1
        fields = {name: rng.getrandbits(32) for name in zwire.FIELDS if name not in ("mask", "receivers")}
        fields["kind"] = kind
        fields["job"] = rng.choice([job] * 9 + [job + len(self.jobs)])
        # Few slots: packets of one slot then follow each other closely.
        fields["vid"] = rng.getrandbits(32) & ~7 | rng.randrange(3)
        full = (1 << BEAT_BITS // 8) - 1
        beats = []
        for i in range(count):
            keep = 0 if kind != zwire.KIND_DATA else full if rng.random() < 0.97 else full >> 1
            user = header_bits(fields) if i == 0 else rng.getrandbits(112)
            beats.append(
                {
                    "tdata": rng.getrandbits(BEAT_BITS),
                    "tkeep": keep,
                    "tlast": int(i == count - 1),
                    "tuser": user | rng.getrandbits(1) << 112,
                }
            )
        self.source.put(beats)
        self.packets.append((fields, beats))

    async def run(self, count):
        while self.commits < count:
            if len(self.source.queue) < 20:
                self.send()
            self.drive()
            await FallingEdge(self.dut.clk)
            self.watch()
            await RisingEdge(self.dut.clk)

    def drive(self):
        """Judges a granted request in some cycles, never in two in a row, and sums a slot in others."""
        dut, rng = self.dut, self.rng
        rests = int(dut.judged.value)
        dut.judged.value = dut.reduced.value = 0
        dut.judged_stored.value = rng.getrandbits(1)
        summed = None
        if rng.random() < 0.1:
            # Any slot: one without a contribution may be summed for the other ports.
            summed = rng.choice([*self.held] * 2 + [*range(8)])
            self.held.pop(summed, None)
            dut.reduced.value, dut.reduced_slot.value = 1, summed
        self.summed = [summed, *self.summed[:2]]
        if self.requests and not rests and rng.random() < 0.4:
            self.resolve()
        dut.req_grant.value = int(self.picked)

    def watch(self):
        """Records this cycle's write, which must not hit a held beat, and its grant."""
        dut = self.dut
        if int(dut.wr_en.value):
            slot, beat = int(dut.wr_slot.value), int(dut.wr_beat.value)
            assert slot not in self.held, f"slot {slot} is written while its contribution is held"
            assert slot not in self.unjudged(), f"slot {slot} is written while its data waits for its verdict"
            self.memory[slot, beat] = int(dut.wr_data.value)
        if self.picked:
            request = granted_request(dut)
            fields, beats = self.packets.pop(0)
            self.check_request(request, fields, beats)
            self.requests.append((request, beats))
        self.picked = not self.picked and not next(self.stall) and bool(int(dut.req_valid.value))

    def slot(self, request):
        base, slots, _, _ = self.jobs[request["job"]]
        return base + request["vid"] % slots

    def unjudged(self):
        """Returns the slots written by granted requests."""
        return [self.slot(request) for request, _ in self.requests if request["writable"]]

    def resolve(self):
        """Stores the oldest granted packet if that is allowed, or refuses it."""
        dut, rng = self.dut, self.rng
        request, beats = self.requests.pop(0)
        self.commits += 1
        dut.judged.value, dut.judged_stored.value = 1, 0
        if not request["writable"]:
            self.unwritten += request["kind"] == zwire.KIND_DATA
            return
        slot, length = self.slot(request), self.jobs[request["job"]][2]
        # agg_slots sees a sum some cycles later, so it stores nothing in the slot at once.
        good = request["whole"] and not request["bad"] and rng.random() < 0.8 and slot not in self.summed
        dut.judged_stored.value = int(good)
        if good:
            self.stored += 1
            self.held[slot] = [b["tdata"] for b in beats]
            assert [self.memory[slot, i] for i in range(length)] == self.held[slot], "not what was sent"

    def check_request(self, request, fields, beats):
        data = fields["kind"] == zwire.KIND_DATA
        for name in ("version", "kind", "job", "format", "epoch", "rank", "vid", "length"):
            assert request[name] == fields[name] & (1 << zwire.FIELDS[name][1]) - 1, name
        assert request["ecn"] == fields["flags"] & 3
        assert request["bad"] == beats[-1]["tuser"] >> 112
        full = all(b["tkeep"] == (1 << BEAT_BITS // 8) - 1 for b in beats)
        if fields["job"] < len(self.jobs):
            _, _, length, valid = self.jobs[fields["job"]]
            assert request["whole"] == int(full and len(beats) == length)
            assert (data and valid) or not request["writable"]
            assert request["entered"] == valid
        else:
            assert not request["writable"] and not request["entered"]


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def what_is_held_is_never_written(dut, idle, stall):
    """Held payloads stay as sent, whatever arrives and whenever it is committed."""
    rng = random.Random(f"{idle} {stall}")
    bench = Ingress(dut, PATTERNS[idle](), PATTERNS[stall](), rng)
    await bench.start()
    await bench.run(300)
    assert bench.stored > 15 and bench.unwritten > 5


FULL = (1 << BEAT_BITS // 8) - 1


def data_beats(vid, count, last=True):
    """Returns beats of data for vid; last: whether the last beat ends the packet."""
    head = header_bits({"version": 2, "kind": zwire.KIND_DATA, "vid": vid})
    return [{"tdata": i, "tkeep": FULL, "tlast": int(last and i == count - 1), "tuser": head} for i in range(count)]


def granted_request(dut):
    """Returns the fields of the request that is granted in this cycle."""
    return {name: int(getattr(dut, f"req_{name}").value) for name in REQUEST}


async def granted(dut):
    """Grants the next request, in the cycle after it, and returns it."""
    await FallingEdge(dut.clk)
    while not int(dut.req_valid.value):
        await FallingEdge(dut.clk)
    await RisingEdge(dut.clk)
    dut.req_grant.value = 1
    await FallingEdge(dut.clk)
    request = granted_request(dut)
    await RisingEdge(dut.clk)
    dut.req_grant.value = 0
    return request


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(wait=[0, 3], ended=[0, 1])
async def a_flush_takes_the_permission(dut, wait, ended):
    """A job's end forbids storing that job's incoming packet, spares other jobs', and blocks
    nothing."""
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), random.Random(1))
    if ended >= len(bench.jobs):
        return
    await bench.start()
    await bench.source.send(data_beats(5, 2, last=False))
    await ClockCycles(dut.clk, wait)
    await bench.flush(ended)
    for vid, writable in ((5, ended), (5 + ended, 1)):  # the next data of a slot waits
        bench.source.put(data_beats(vid, 1))
        request = await granted(dut)
        assert (request["writable"], request["entered"]) == (writable, 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(ended=[0, 1])
async def a_flush_takes_the_permission_of_requests(dut, ended):
    """A job's end also forbids storing all that waits: the queued request, and the packets behind
    it. It spares other jobs'."""
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), random.Random(1))
    if ended >= len(bench.jobs):
        return
    await bench.start()
    # One in the queue, one in B; then one beat each in A and in the skid.
    bench.source.put(data_beats(1, BEATS) + data_beats(2, BEATS) + data_beats(3, 1) + data_beats(0, 1))
    await ClockCycles(dut.clk, 4 * BEATS)
    assert not bench.source.queue
    await bench.flush(ended)
    for _ in range(4):
        assert (await granted(dut))["writable"] == ended
    bench.source.put(data_beats(1, BEATS))
    await ClockCycles(dut.clk, 3 * BEATS)
    # The first packet is unjudged, and its slot waits for that, whether or not its job ended.
    await FallingEdge(dut.clk)
    assert not int(dut.req_valid.value)
    await bench.judge()
    assert (await granted(dut))["writable"] == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_verdict_frees_the_slot_or_takes_it(dut):
    """Data for a slot with unjudged data waits, and is written only if that was not stored."""
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), random.Random(1))
    await bench.start()
    for stored in (0, 1):
        bench.source.put(data_beats(2, BEATS) * 2)
        assert (await granted(dut))["writable"]
        await ClockCycles(dut.clk, 4 * BEATS)
        assert not int(dut.req_valid.value)
        await bench.judge(stored)
        assert (await granted(dut))["writable"] == int(not stored)
        await bench.judge()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(wait=range(5))
async def a_summed_slot_is_free_three_cycles_later(dut, wait):
    """A packet is written if its first beat is accepted three cycles after the sum or later. The
    source offers a beat in the cycle after put()."""
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), random.Random(1))
    await bench.start()
    bench.source.put(data_beats(2, BEATS))
    await granted(dut)
    await bench.judge(1)
    base, slots, _, _ = bench.jobs[0]
    dut.reduced.value, dut.reduced_slot.value = 1, base + 2 % slots
    if wait == 0:
        bench.source.put(data_beats(2, BEATS))
    for cycle in range(1, 5):
        await RisingEdge(dut.clk)
        dut.reduced.value = 0
        if wait == cycle:
            bench.source.put(data_beats(2, BEATS))
    assert (await granted(dut))["writable"] == int(wait + 1 >= 3)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(beats=[1, 2, BEATS])
async def beats_flow_without_a_bubble(dut, beats):
    """Packets of two beats or more take a beat every cycle, if the arbiter serves the port alone;
    packets of one beat take two cycles."""
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), random.Random(1))
    await bench.start()
    for vid in range(40):
        bench.source.put(data_beats(vid, beats))
    picks = [False] * 7  # by cycle, the last first; a request is judged in its seventh cycle
    while bench.source.queue or any(picks):
        dut.req_grant.value, dut.judged.value, dut.judged_stored.value = int(picks[0]), int(picks[6]), 0
        await FallingEdge(dut.clk)
        picks = [not picks[0] and bool(int(dut.req_valid.value)), *picks[:6]]
        await RisingEdge(dut.clk)
    first, *_, last = bench.source.accepted_at[4:]  # two wait at first
    assert last - first == (len(bench.source.accepted_at) - 5) * (2 if beats == 1 else 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_nonfinite_beat_marks_its_packet_alone(dut):
    """s_nonfinite marks its own packet in any beat, and no other packet."""
    rng = random.Random(2)
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), rng)
    await bench.start()
    for vid in range(40):
        marks = [rng.random() < 0.2 for _ in range(BEATS)]
        for beat, mark in zip(data_beats(vid, BEATS), marks):
            dut.s_nonfinite.value = mark << rng.randrange(len(dut.s_nonfinite))
            await bench.source.send(beat)
        assert (await granted(dut))["nonfinite"] == int(any(marks))
        await bench.judge()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_packet_asks_as_soon_as_it_is_whole(dut):
    """A request follows the packet's last beat by two cycles if nothing is queued before it."""
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), random.Random(3))
    await bench.start()
    for vid, count in enumerate([1, BEATS, 2]):
        await bench.source.send(data_beats(vid, count))
        await FallingEdge(dut.clk)
        assert not int(dut.req_valid.value)
        await FallingEdge(dut.clk)
        assert int(dut.req_valid.value), f"a packet of {count} beats does not ask"
        await granted(dut)


@pytest.mark.parametrize("jobs", JOBS)
def test_agg_ingress(jobs):
    job_bits = max(1, (jobs - 1).bit_length())
    run(
        "agg_ingress",
        parameters={"BEAT_BITS": BEAT_BITS, "SLOT_BITS": 3, "INDEX_BITS": 2, "JOBS": jobs, "JOB_BITS": job_bits},
        testcase=[f"what_is_held_is_never_written/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS]
        + [f"a_flush_takes_the_permission/wait={wait}/ended={job}" for wait in (0, 3) for job in range(min(jobs, 2))]
        + [f"a_flush_takes_the_permission_of_requests/ended={job}" for job in range(min(jobs, 2))]
        + [f"a_summed_slot_is_free_three_cycles_later/wait={wait}" for wait in range(5)]
        + [f"beats_flow_without_a_bubble/beats={beats}" for beats in (1, 2, BEATS) if jobs == 1]
        + ["a_verdict_frees_the_slot_or_takes_it"]
        + ["a_nonfinite_beat_marks_its_packet_alone", "a_packet_asks_as_soon_as_it_is_whole"],
    )


# agg_arbiter

EVENTS = 7  # the cycle of an operation's events
BUSY = {"seldom": 0.1, "often": 0.5, "always": 1.0}  # chance that an idle port starts a request


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(busy=list(BUSY))
async def every_request_has_its_turn(dut, busy):
    """Picks an operation every second cycle, and none before an action's events are over; between
    two grants of a waiting port, every other port gets at most one."""
    rng = random.Random(busy)
    ports, width = len(dut.req_valid), len(dut.out_data)
    words, waited, act = [None] * ports, [0] * ports, None
    picked = [None] * EVENTS  # by cycle, the latest first: a port, "act" or None
    data = None  # of the operation in cycle 2
    last_act = held = False
    dut.req_valid.value = dut.req_data.value = dut.hold.value = dut.slow.value = dut.act_valid.value = 0
    dut.act_slot.value = dut.act_job.value = 0
    await start(dut)
    for _ in range(1500):
        for p in range(ports):
            if words[p] is None and rng.random() < BUSY[busy]:
                words[p] = rng.getrandbits(width)
        if act is None and rng.random() < BUSY[busy] / 4:
            act = rng.getrandbits(len(dut.act_slot)), rng.getrandbits(len(dut.act_job))
        hold, slow = rng.random() < 0.1, rng.random() < 0.1
        dut.hold.value, dut.slow.value = int(hold), int(slow)
        dut.act_valid.value = int(act is not None)
        dut.act_slot.value, dut.act_job.value = act or (0, 0)
        dut.req_valid.value = sum(1 << p for p in range(ports) if words[p] is not None)
        dut.req_data.value = sum((words[p] or 0) << p * width for p in range(ports))
        await FallingEdge(dut.clk)
        # Cycle 2
        second = picked[1]
        assert int(dut.out_valid.value) == int(isinstance(second, int))
        assert int(dut.out_act.value) == int(second == "act")
        if second == "act":
            assert (int(dut.out_slot.value), int(dut.out_job.value)) == data
            assert int(dut.out_data.value) == 0
        elif second is not None:
            assert (int(dut.out_port.value), int(dut.out_ports.value)) == (second, 1 << second)
            assert int(dut.out_data.value) == data
            assert (int(dut.out_slot.value), int(dut.out_job.value)) == (0, 0)
        # Cycle 1
        grant = int(dut.req_grant.value)
        (port,) = [p for p in range(ports) if grant >> p & 1] or [None]
        assert not (grant and int(dut.act_grant.value))
        first = "act" if int(dut.act_grant.value) else port
        assert (first is not None) == bool(picked[0])
        if first is not None:
            assert first in picked[0], "not one of those that waited"
        if first == "act":
            data, act, last_act = act, None, True
        elif first is not None:
            for p in picked[0]:
                waited[p] = 0 if p == port or words[p] is None else waited[p] + 1
                assert waited[p] < ports, f"port {p} was passed over"
            data, words[port], last_act = words[port], None, False
        picked[0] = first
        idle = int(dut.idle.value)
        assert not idle or not any(op is not None for op in picked)
        # Cycle 0: what can be picked, if anything
        asked = [p for p in range(ports) if words[p] is not None]
        free = not held and first is None and "act" not in picked
        choice = ["act"] if act is not None and not (last_act and asked) else asked
        picked = [choice if free and choice else None, *picked[:-1]]
        assert not idle or picked[0] is None
        held = hold or slow
        await RisingEdge(dut.clk)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_hold_empties_the_pipeline(dut):
    """idle comes once an operation's events are over. A request in hold is unjudged, but not
    granted."""
    dut.req_valid.value = dut.hold.value = dut.slow.value = dut.act_valid.value = 0
    dut.req_data.value = dut.act_slot.value = dut.act_job.value = 0
    await start(dut)
    await ClockCycles(dut.clk, 3)
    dut.req_valid.value = 1
    await RisingEdge(dut.clk)
    dut.req_valid.value, dut.hold.value = 0, 1  # cycle 1 of the operation
    for cycle in range(1, EVENTS + 4):
        await FallingEdge(dut.clk)
        assert int(dut.req_grant.value) == int(cycle == 1)
        assert int(dut.idle.value) == int(cycle > EVENTS)
        assert int(dut.unjudged.value) == int(cycle <= EVENTS + 1 or cycle > EVENTS + 2)
        await RisingEdge(dut.clk)
        dut.req_valid.value = int(cycle > EVENTS)


@pytest.mark.parametrize("ports, bits", [(1, 1), (5, 3), (8, 3)])
def test_agg_arbiter(ports, bits):
    run(
        "agg_arbiter",
        parameters={"PORTS": ports, "PORT_BITS": bits, "WIDTH": 9, "EVENTS": EVENTS},
        testcase=[f"every_request_has_its_turn/busy={busy}" for busy in BUSY] + ["a_hold_empties_the_pipeline"],
    )
