"""The way in, leaf by leaf: ingress, arbiter, header checks."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer

import zwire
from bench import run, start
from streams import PATTERNS, StreamSource

# Fields of a commit's request, as agg_ingress describes it: name, bits, lowest first.
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


def pack_request(request):
    value = shift = 0
    for name, bits in REQUEST:
        value |= request.get(name, 0) << shift
        shift += bits
    return value


def header_bits(fields):
    """The header as a number, with the fields given by name."""
    value = 0
    for name, content in fields.items():
        lsb, bits = zwire.FIELDS[name]
        value |= (content & (1 << bits) - 1) << lsb
    return value


# agg_ingress

BEATS, SLOTS, BEAT_BITS = 3, 8, 32


class Ingress:
    """agg_ingress under random packets; commits are granted and resolved here, as agg_slots might."""

    def __init__(self, dut, idle, stall, rng):
        self.dut, self.stall, self.rng = dut, stall, rng
        self.memory = {}  # (slot, beat): what was written
        self.held = {}  # slot: beats of the contribution that is stored and not summed
        self.packets = []  # sent, not yet requested
        self.requests = []  # requested, not yet resolved: packet, request, cycles left
        self.stored = self.unwritten = self.commits = 0
        for name in ("flush", "req_grant", "resolve", "resolve_slot", "resolve_stored", "reduced", "reduced_slot"):
            getattr(dut, name).value = 0
        dut.s_nonfinite.value = 0
        dut.slot_mask.value = SLOTS - 1
        dut.job_last.value = BEATS - 1
        self.source = StreamSource(dut, "s_axis", idle)

    def send(self):
        """Queues a random packet."""
        rng = self.rng
        kind = rng.choice([zwire.KIND_DATA] * 5 + [zwire.KIND_ASK, zwire.KIND_FINISH])
        count = rng.choice([BEATS] * 6 + [1, 2, 4, 7, 9]) if kind == zwire.KIND_DATA else 1
        fields = {name: rng.getrandbits(32) for name in zwire.FIELDS if name not in ("mask", "receivers")}
        fields["kind"] = kind
        # Few slots, so that packets of one slot follow each other closely.
        fields["vid"] = rng.getrandbits(32) & ~(SLOTS - 1) | rng.randrange(3)
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
            await Timer(1, "ns")  # what is written may depend on the grant
            self.watch()
            await RisingEdge(self.dut.clk)

    def watch(self):
        """Notes what is written in this cycle: never a beat that is held."""
        if int(self.dut.wr_en.value):
            slot, beat = int(self.dut.wr_slot.value), int(self.dut.wr_beat.value)
            assert slot not in self.held, f"slot {slot} is written while its contribution is held"
            assert beat < BEATS
            self.memory[slot, beat] = int(self.dut.wr_data.value)

    def grant(self):
        """Grants a request in some cycles; resolves it in one of the next, in order."""
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
        """Stores the oldest granted packet when it can be stored, or refuses it."""
        dut, rng = self.dut, self.rng
        request, beats = self.requests.pop(0)
        self.commits += 1
        slot = request["vid"] % SLOTS
        if not request["writable"]:
            self.unwritten += request["kind"] == zwire.KIND_DATA
            return
        good = request["whole"] and not request["bad"] and rng.random() < 0.8
        dut.resolve.value, dut.resolve_slot.value, dut.resolve_stored.value = 1, slot, int(good)
        if good:
            self.stored += 1
            self.held[slot] = [b["tdata"] for b in beats]
            assert [self.memory[slot, i] for i in range(BEATS)] == self.held[slot], "not what was sent"

    def check_request(self, request, fields, beats):
        data = fields["kind"] == zwire.KIND_DATA
        for name in ("version", "kind", "job", "format", "epoch", "rank", "vid", "length"):
            assert request[name] == fields[name] & (1 << zwire.FIELDS[name][1]) - 1, name
        assert request["ecn"] == fields["flags"] & 3
        assert request["bad"] == beats[-1]["tuser"] >> 112
        full = all(b["tkeep"] == (1 << BEAT_BITS // 8) - 1 for b in beats)
        assert request["whole"] == int(full and len(beats) == BEATS)
        assert data or not request["writable"]


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def what_is_held_is_never_written(dut, idle, stall):
    """Whatever comes, and whenever it is committed: held payloads stay, and are what was sent."""
    rng = random.Random(f"{idle} {stall}")
    bench = Ingress(dut, PATTERNS[idle](), PATTERNS[stall](), rng)
    await start(dut)
    await bench.run(300)
    assert bench.stored > 15 and bench.unwritten > 5


FULL = (1 << BEAT_BITS // 8) - 1


def data_beats(vid, count, last=True):
    """Beats of data for vid; the last of them ends the packet, or not."""
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


async def flush(dut):
    dut.flush.value = 1
    await RisingEdge(dut.clk)
    dut.flush.value = 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(wait=[0, 3])
async def a_flush_takes_the_permission(dut, wait):
    """A packet that was on its way when the job ended is not to be stored, and blocks nothing."""
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), random.Random(1))
    await start(dut)
    await bench.source.send(data_beats(5, 2, last=False))
    await ClockCycles(dut.clk, wait)
    await flush(dut)
    for writable in (0, 1):
        bench.source.put(data_beats(5, 1))
        assert (await granted(dut))["writable"] == writable


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_flush_takes_the_permission_of_requests(dut):
    """So it is with those that wait to be granted."""
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), random.Random(1))
    await start(dut)
    bench.source.put(data_beats(1, BEATS) + data_beats(2, BEATS))
    await ClockCycles(dut.clk, 3 * BEATS)
    await flush(dut)
    bench.source.put(data_beats(1, BEATS))
    assert [(await granted(dut))["writable"] for _ in range(3)] == [0, 0, 1]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_nonfinite_beat_marks_its_packet_alone(dut):
    """s_nonfinite counts in every beat of a packet, and in no other packet."""
    rng = random.Random(2)
    bench = Ingress(dut, PATTERNS["never"](), PATTERNS["never"](), rng)
    await start(dut)
    for vid in range(40):
        marks = [rng.random() < 0.2 for _ in range(BEATS)]
        for beat, mark in zip(data_beats(vid, BEATS), marks):
            dut.s_nonfinite.value = int(mark)
            await bench.source.send(beat)
        assert (await granted(dut))["nonfinite"] == int(any(marks))
        dut.resolve.value, dut.resolve_slot.value = 1, vid % SLOTS
        await RisingEdge(dut.clk)
        dut.resolve.value = 0


def test_agg_ingress():
    run(
        "agg_ingress",
        parameters={"BEAT_BITS": BEAT_BITS, "SLOT_BITS": 3, "INDEX_BITS": 2},
        testcase=[f"what_is_held_is_never_written/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS]
        + [f"a_flush_takes_the_permission/wait={wait}" for wait in (0, 3)]
        + ["a_flush_takes_the_permission_of_requests", "a_nonfinite_beat_marks_its_packet_alone"],
    )


# agg_arbiter

BUSY = {"seldom": 0.1, "often": 0.5, "always": 1.0}  # chance that a port that does not ask begins to


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(busy=list(BUSY))
async def every_request_has_its_turn(dut, busy):
    """One grant a cycle while any asks; no port waits for more than one grant of each other."""
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


# agg_commit


def expected_code(request, job, port):
    """The specification's checks, in their order; 0 when all hold."""
    kinds = (zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH)
    finish = request["kind"] == zwire.KIND_FINISH
    confirms = finish and job["complete"] and request["epoch"] == job["epoch"]
    data = request["kind"] == zwire.KIND_DATA
    checks = [
        (request["version"] == zwire.VERSION, zwire.CODE_BAD_VERSION),
        (request["kind"] in kinds, zwire.CODE_BAD_KIND),
        (request["job"] == 0 and (job["valid"] or confirms), zwire.CODE_BAD_JOB),
        (request["epoch"] == job["epoch"], zwire.CODE_BAD_EPOCH),
        (job["ranks"].get(port) == request["rank"], zwire.CODE_BAD_RANK),
        (not data or request["format"] == zwire.FORMAT_FP32, zwire.CODE_BAD_FORMAT),
        (not data or (request["length"] == job["chunk"] and request["whole"]), zwire.CODE_BAD_LENGTH),
        (not data or not request["bad"], zwire.CODE_PAYLOAD_CRC),
    ]
    return next((code for holds, code in checks if not holds), 0)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_first_check_that_fails_is_the_refusal(dut):
    rng = random.Random(3)
    seen = set()
    ports = len(dut.member)
    for _ in range(4000):
        members = rng.sample(range(ports), rng.randint(1, ports))
        ranks = {port: rank for rank, port in enumerate(sorted(members))}
        job = {
            "valid": rng.random() < 0.8,
            "complete": rng.random() < 0.5,
            "epoch": rng.getrandbits(16),
            "chunk": rng.getrandbits(16),
            "ranks": ranks,
        }
        port = rng.randrange(ports)
        request = {
            "version": zwire.VERSION,
            "kind": rng.choice([zwire.KIND_DATA, zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH]),
            "job": 0,
            "format": zwire.FORMAT_FP32,
            "epoch": job["epoch"],
            "rank": ranks.get(port, 0),
            "length": job["chunk"],
            "whole": 1,
            "bad": 0,
        }
        for name, bits in REQUEST:
            if name not in request or rng.random() < 0.07:
                request[name] = rng.getrandbits(bits)
        dut.valid.value = valid = int(rng.random() < 0.9)
        dut.port.value = port
        dut.request.value = pack_request(request)
        dut.job_valid.value, dut.job_complete.value = int(job["valid"]), int(job["complete"])
        dut.job_epoch.value, dut.job_chunk.value = job["epoch"], job["chunk"]
        dut.member.value = sum(1 << p for p in members)
        dut.rank_of_port.value = sum(ranks.get(p, 200) << 8 * p for p in range(ports))
        await Timer(1, "ns")
        code = expected_code(request, job, port)
        seen.add(code)
        accepted = valid and code == 0
        assert int(dut.refused.value) == int(valid and code != 0)
        assert int(dut.code.value) == code
        assert int(dut.belongs.value) == int(ranks.get(port) == request["rank"])
        for kind, name in ((zwire.KIND_DATA, "data"), (zwire.KIND_ASK, "ask"), (zwire.KIND_FINISH, "finish")):
            assert int(getattr(dut, name).value) == int(accepted and request["kind"] == kind)
        for name in ("ecn", "job", "epoch", "rank", "vid", "nonfinite", "writable"):
            assert int(getattr(dut, name).value) == request[name]
    assert len(seen) == 9, "not every check was tried"


def test_agg_commit():
    run(
        "agg_commit",
        parameters={"PORTS": 5, "PORT_BITS": 3},
        testcase=["the_first_check_that_fails_is_the_refusal"],
    )
