"""agg_up_unwrap: the parent's packets leave without mask and receivers, and all others as they came."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from bench import number, run, start
from streams import PATTERNS, StreamSink, StreamSource

MASK = 8  # bytes that a status has behind the first 14 of its header
OFF = 16  # those of a result: mask and receivers

INPUT, OUTPUT = ("tdata", "tpayload", "tlast", "tup"), ("tdata", "tpayload", "tlast")

SIZES = {1: 1, 8: 2, 64: 3}  # JOB_BITS for each BYTES


@pytest.mark.parametrize("size", SIZES)
def test_agg_up_unwrap(size):
    run("agg_up_unwrap", parameters={"BYTES": size, "JOB_BITS": SIZES[size]})


def words(data, size):
    """Returns the bytes of each beat: a packet without any is one beat."""
    return [data[at : at + size] for at in range(0, len(data), size)] or [b""]


class Packet:
    """A packet on its way through the leaf: its beats, those that must leave, and its cycles."""

    def __init__(self, rng, size, job_bits, up, data):
        came = words(data, size)
        fill = rng.randbytes(len(came) * size - len(data)) if data else b""  # behind the last byte
        brief = len(came[-1]) <= OFF if up else rng.randrange(2)
        sides = [(brief, 1), (rng.getrandbits(job_bits), job_bits), (up, 1), (rng.getrandbits(64), 64)]
        tup = at = 0
        for value, bits in sides:
            tup, at = tup | int(value) << at, at + bits
        self.beats = [
            {"tdata": int.from_bytes(word, "little"), "tpayload": int(bool(data)), "tlast": int(last), "tup": tup}
            for word, last in ends(words(data + fill, size))
        ]
        # The bytes behind those of a sum are any.
        self.want = [*ends(words(data[OFF:] if up else data + fill, size))]
        turned = up and size > OFF and len(came) > 1
        self.cycles = len(came) + (turned and not brief)
        self.kind = "other" if not up else "status" if len(data) == MASK else "brief" if brief else "sum"
        if turned:
            self.kind += " of several words"


def ends(beats):
    """Pairs each beat with whether it is the last."""
    return ((beat, n == len(beats) - 1) for n, beat in enumerate(beats))


class Bench:
    """The leaf between a source and a sink, and the packets that were sent."""

    def __init__(self, dut, rng, idle=None, stall=None):
        self.dut, self.rng = dut, rng
        self.size, self.job_bits = len(dut.s_axis_tdata) // 8, len(dut.s_axis_tup) - 66
        self.source = StreamSource(dut, "s_axis", idle, INPUT)
        self.sink = StreamSink(dut, "m_axis", stall, OUTPUT)
        self.sent = []

    def packet(self, up, data):
        return Packet(self.rng, self.size, self.job_bits, up, data)

    def some(self):
        """Returns a packet of the parent, or of another sender; all sizes around those of words."""
        rng, size = self.rng, self.size
        up = rng.random() < 0.7
        whole = size * rng.randrange(4)
        most = rng.choice([whole + rng.choice([-1, 0, 1, OFF - 1, OFF, OFF + 1]), rng.randrange(3 * size + 1)])
        behind = rng.choice([0, OFF]) if up else 0
        length = max(behind, most, 0)
        if up and length < OFF:
            length = MASK
        return self.packet(up, rng.randbytes(length))

    def send(self, packet):
        self.sent.append(packet)
        self.source.put(packet.beats)

    async def compare(self):
        """Waits until every packet has left, and compares the beats."""
        want = [beat for packet in self.sent for beat in packet.want]
        await self.source.drained()
        for _ in range(40):
            await RisingEdge(self.dut.clk)
        assert len(self.sink.beats) == len(want)
        for beat, (data, last) in zip(self.sink.beats, want):
            check(beat, data, last)


def check(beat, data, last):
    """Compares a beat; without payload, its word is any."""
    shown = beat["tdata"] % (1 << 8 * len(data))
    assert (shown, beat["tpayload"], beat["tlast"]) == (int.from_bytes(data, "little"), bool(data), last)


def when_offered(dut):
    """A stall pattern: ready comes after valid, for a cycle."""
    while True:
        yield not number(dut.m_axis_tvalid) or number(dut.m_axis_tready)


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(
    idle=["never", "bursts", "at_random"], stall=["never", "mostly", "bursts", "at_random", "when_offered"]
)
async def packets_leave(dut, idle, stall):
    """Packets of the parent and of others, of all sizes."""
    held = when_offered(dut) if stall == "when_offered" else PATTERNS[stall]()
    bench = Bench(dut, random.Random(f"{idle} {stall}"), PATTERNS[idle](), held)
    await start(dut)
    for _ in range(150):
        bench.send(bench.some())
    await bench.compare()
    several = {"sum of several words", "brief of several words"} if bench.size > OFF else set()
    kinds = {packet.kind for packet in bench.sent}
    assert kinds >= {"other", "status", "brief"} | several, kinds


@cocotb.test(timeout_time=200, timeout_unit="us")
async def has_no_latency(dut):
    """Back to back, packets take the cycles that the header promises; a word leaves with its last byte."""
    bench = Bench(dut, random.Random(1))
    await start(dut)
    for _ in range(200):
        bench.send(bench.some())
    await bench.compare()
    now = bench.source.accepted_at[0]
    accepted, taken = [], []
    for packet in bench.sent:
        end = now + packet.cycles
        accepted += [*range(now, now + len(packet.beats) - 1), end - 1]
        taken += range(end - len(packet.want), end)
        now = end
    assert bench.source.accepted_at == accepted
    assert bench.sink.taken_at == taken


@cocotb.test(timeout_time=200, timeout_unit="us")
async def forgets_at_a_reset(dut):
    """Wherever a packet is, the next one is a new one."""
    bench = Bench(dut, random.Random(2))
    dut.m_axis_tready.value = 1
    await start(dut)

    async def cycle(beat):
        for field in INPUT:
            getattr(dut, f"s_axis_{field}").value = beat[field]
        dut.s_axis_tvalid.value = 1
        await RisingEdge(dut.clk)

    cut = bench.packet(True, bench.rng.randbytes(3 * bench.size + OFF + 3))
    for cycles in range(1, cut.cycles):
        for n in range(cycles):
            await cycle(cut.beats[min(n, len(cut.beats) - 1)])
        dut.s_axis_tvalid.value, dut.rst.value = 0, 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
        for up in (True, False):
            packet = bench.packet(up, bench.rng.randbytes(OFF + bench.size + 2))
            left = []
            for n in range(packet.cycles):
                await cycle(packet.beats[min(n, len(packet.beats) - 1)])
                if number(dut.m_axis_tvalid):
                    left.append({field: number(getattr(dut, f"m_axis_{field}")) for field in OUTPUT})
            assert len(left) == len(packet.want)
            for beat, (data, last) in zip(left, packet.want):
                check(beat, data, last)
