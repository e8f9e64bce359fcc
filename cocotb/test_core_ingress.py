"""Ingress, leaf by leaf: ingress, arbiter."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer

import zwire
from bench import run, start
from streams import PATTERNS, StreamSource

# Fields of a commit's request, as in agg_ingress: name and width, lowest first.
REQUEST = [
    ("version", 4),
    ("kind", 4),
    ("ecn", 2),
    ("job", 8),
    ("format", 8),
    ("epoch", 16),
    ("rank", 8),
    ("vid", 32),
    ("length", 16),
    ("whole", 1),
    ("bad", 1),
    ("nonfinite", 1),
    ("writable", 1),
]


def unpack_request(value):
    request = {}
    for name, bits in REQUEST:
        request[name] = value & (1 << bits) - 1
        value >>= bits
    return request


def joined(bits, values):
    """Returns a vector of fields of the given width, the first lowest."""
    return sum(int(value) << bits * i for i, value in enumerate(values))


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
    """agg_ingress under random packets; the bench grants and resolves commits, as agg_slots
    might."""

    def __init__(self, dut, idle, stall, rng):
        self.dut, self.stall, self.rng = dut, stall, rng
        self.jobs = JOBS[len(dut.flush)]
        self.memory = {}  # (slot, beat): the written data
        self.held = {}  # slot: beats of the stored contribution, until it is summed
        self.packets = []  # sent, not yet requested
        self.requests = []  # requested, not yet resolved
        self.stored = self.unwritten = self.commits = 0
        for name in ("flush", "flush_slots", "req_grant", "resolve", "resolve_slot", "resolve_stored"):
            getattr(dut, name).value = 0
        dut.reduced.value = dut.reduced_slot.value = dut.s_nonfinite.value = 0
        bases, counts, beats, valid = zip(*self.jobs)
        dut.slot_base.value, dut.slot_mask.value = joined(3, bases), joined(3, [count - 1 for count in counts])
        dut.job_last.value, dut.job_valid.value = joined(2, [n - 1 for n in beats]), joined(1, valid)
        self.source = StreamSource(dut, "s_axis", idle)

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
            await FallingEdge(self.dut.clk)
            self.grant()
            await Timer(1, "ns")  # writes may depend on the grant
            self.watch()
            await RisingEdge(self.dut.clk)

    def watch(self):
        """Records this cycle's write, which must not hit a held beat."""
        if int(self.dut.wr_en.value):
            slot, beat = int(self.dut.wr_slot.value), int(self.dut.wr_beat.value)
            assert slot not in self.held, f"slot {slot} is written while its contribution is held"
            self.memory[slot, beat] = int(self.dut.wr_data.value)

    def grant(self):
        """Grants a request in some cycles, and resolves it in a later cycle, in order."""
        dut, rng = self.dut, self.rng
        dut.resolve.value = dut.reduced.value = 0
        if self.requests:
            if self.held and rng.random() < 0.3:
                slot = rng.choice(list(self.held))
                del self.held[slot]
                dut.reduced.value, dut.reduced_slot.value = 1, slot
            self.resolve()
        granted = not next(self.stall)
        dut.req_grant.value = int(granted and int(dut.req_valid.value))
        if granted and int(dut.req_valid.value):
            request = unpack_request(int(dut.req_data.value))
            fields, beats = self.packets.pop(0)
            self.check_request(request, fields, beats)
            self.requests.append((request, beats))

    def resolve(self):
        """Stores the oldest granted packet if that is allowed, or refuses it."""
        dut, rng = self.dut, self.rng
        request, beats = self.requests.pop(0)
        self.commits += 1
        if not request["writable"]:
            self.unwritten += request["kind"] == zwire.KIND_DATA
            return
        base, slots, length, _ = self.jobs[request["job"]]
        slot = base + request["vid"] % slots
        good = request["whole"] and not request["bad"] and rng.random() < 0.8
        dut.resolve.value, dut.resolve_slot.value, dut.resolve_stored.value = 1, slot, int(good)
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
        else:
            assert not request["writable"]


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def what_is_held_is_never_written(dut, idle, stall):
    """Held payloads stay as sent, whatever arrives and whenever it is committed."""
    rng = random.Random(f"{idle} {stall}")
    bench = Ingress(dut, PATTERNS[idle](), PATTERNS[stall](), rng)
    await start(dut)
    await bench.run(300)
    assert bench.stored > 15 and bench.unwritten > 5


FULL = (1 << BEAT_BITS // 8) - 1


def data_beats(vid, count, last=True):
    """Returns beats of data for vid; last: whether the last beat ends the packet."""
    head = header_bits({"version": 1, "kind": zwire.KIND_DATA, "vid": vid})
    return [{"tdata": i, "tkeep": FULL, "tlast": int(last and i == count - 1), "tuser": head} for i in range(count)]


async def granted(dut):
    """Grants the next request and returns it."""
    await FallingEdge(dut.clk)
    while not int(dut.req_valid.value):
        await FallingEdge(dut.clk)
    request = unpack_request(int(dut.req_data.value))
    dut.req_grant.value = 1
    await RisingEdge(dut.clk)
    dut.req_grant.value = 0
    return request


async def flush(bench, job):
    """Ends the job in one cycle; it continues with the same slots."""
    base, slots, _, _ = bench.jobs[job]
    bench.dut.flush.value, bench.dut.flush_slots.value = 1 << job, (1 << slots) - 1 << base
    await RisingEdge(bench.dut.clk)
    bench.dut.flush.value = bench.dut.flush_slots.value = 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(wait=[0, 3], ended=[0, 1])
async def a_flush_takes_the_permission(dut, wait, ended):
    """A job's end forbids storing that job's incoming packet, spares other jobs', and blocks
    nothing."""
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), random.Random(1))
    if ended >= len(bench.jobs):
        return
    await start(dut)
    await bench.source.send(data_beats(5, 2, last=False))
    await ClockCycles(dut.clk, wait)
    await flush(bench, ended)
    for vid, writable in ((5, ended), (5 + ended, 1)):  # the next data of a slot waits
        bench.source.put(data_beats(vid, 1))
        assert (await granted(dut))["writable"] == writable


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(ended=[0, 1])
async def a_flush_takes_the_permission_of_requests(dut, ended):
    """A job's end also forbids storing its waiting requests, and forgets only its own unresolved
    data."""
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), random.Random(1))
    if ended >= len(bench.jobs):
        return
    await start(dut)
    bench.source.put(data_beats(1, BEATS) + data_beats(2, BEATS))
    await ClockCycles(dut.clk, 3 * BEATS)
    await flush(bench, ended)
    for _ in range(2):
        assert (await granted(dut))["writable"] == ended
    bench.source.put(data_beats(1, BEATS))
    await ClockCycles(dut.clk, 3 * BEATS)
    # In a job that continues, the first packet is unresolved, and its slot waits for that.
    await FallingEdge(dut.clk)
    assert int(dut.req_valid.value) == int(not ended)
    dut.resolve.value, dut.resolve_slot.value = 1, bench.jobs[0][0] + 1
    await RisingEdge(dut.clk)
    dut.resolve.value = 0
    assert (await granted(dut))["writable"] == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_nonfinite_beat_marks_its_packet_alone(dut):
    """s_nonfinite marks its own packet in any beat, and no other packet."""
    rng = random.Random(2)
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), rng)
    await start(dut)
    for vid in range(40):
        marks = [rng.random() < 0.2 for _ in range(BEATS)]
        for beat, mark in zip(data_beats(vid, BEATS), marks):
            dut.s_nonfinite.value = int(mark)
            await bench.source.send(beat)
        assert (await granted(dut))["nonfinite"] == int(any(marks))
        base, slots, _, _ = bench.jobs[0]
        dut.resolve.value, dut.resolve_slot.value = 1, base + vid % slots
        await RisingEdge(dut.clk)
        dut.resolve.value = 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_packet_asks_as_soon_as_it_is_whole(dut):
    """A request follows the packet's last beat by one cycle if nothing is queued before it."""
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), random.Random(3))
    await start(dut)
    for vid, count in enumerate([1, BEATS, 2]):
        await bench.source.send(data_beats(vid, count))
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
        + ["a_nonfinite_beat_marks_its_packet_alone", "a_packet_asks_as_soon_as_it_is_whole"],
    )


# agg_arbiter

BUSY = {"seldom": 0.1, "often": 0.5, "always": 1.0}  # chance that an idle port starts a request


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(busy=list(BUSY))
async def every_request_has_its_turn(dut, busy):
    """Grants one request a cycle; between two grants of a waiting port, every other port gets at
    most one."""
    rng = random.Random(busy)
    ports, width = len(dut.req_valid), len(dut.out_data)
    words, waited, expected = [None] * ports, [0] * ports, None
    dut.req_valid.value = dut.req_data.value = dut.hold.value = 0
    await start(dut)
    for _ in range(600):
        for p in range(ports):
            if words[p] is None and rng.random() < BUSY[busy]:
                words[p] = rng.getrandbits(width)
        hold = rng.random() < 0.1
        dut.hold.value = int(hold)
        dut.req_valid.value = sum(1 << p for p in range(ports) if words[p] is not None)
        dut.req_data.value = sum((words[p] or 0) << p * width for p in range(ports))
        await FallingEdge(dut.clk)
        assert int(dut.out_valid.value) == int(expected is not None)
        if expected is not None:
            port, word = expected
            assert (int(dut.out_port.value), int(dut.out_ports.value)) == (port, 1 << port)
            assert int(dut.out_data.value) == word
        grant = int(dut.req_grant.value)
        asked = [p for p in range(ports) if words[p] is not None]
        assert bin(grant).count("1") == int(bool(asked) and not hold)
        expected = None
        for p in asked:
            if grant >> p & 1:
                expected, words[p], waited[p] = (p, words[p]), None, 0
            elif grant:
                waited[p] += 1
                assert waited[p] < ports, f"port {p} was passed over"
        await RisingEdge(dut.clk)


@pytest.mark.parametrize("ports, bits", [(1, 1), (5, 3), (8, 3)])
def test_agg_arbiter(ports, bits):
    run(
        "agg_arbiter",
        parameters={"PORTS": ports, "PORT_BITS": bits, "WIDTH": 9},
        testcase=[f"every_request_has_its_turn/busy={busy}" for busy in BUSY],
    )
