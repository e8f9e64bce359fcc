"""The bus of a FIFO bridge, with a model of the chip at its pins; and the break that starts a
new link."""

import itertools
import random

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer
from cocotb.types import Logic, LogicArray

from bench import CLOCK_PERIOD_NS, ROOT, bits, leaf, number, run, start
from streams import PATTERNS, Gate, StreamSink, StreamSource


def packets(passed):
    """Stalls for one to twenty cycles whenever one to forty words have passed."""
    rng = random.Random(5)
    while True:
        until = passed() + rng.randint(1, 40)
        while passed() < until:
            yield False
        yield from itertools.repeat(True, rng.randint(1, 20))


CHIPS = ["never", "alternate", "bursts", "at_random", "packets"]


class Chip:
    """A bridge in synchronous 245 mode, as in FTDI's data sheet of the FT232H (section 4.4, table
    4.1).

    The chip's outputs are unknown from an edge to the middle of the cycle (t4, t5, t11: 9 ns of
    16.67). Its inputs must be stable by then (t7, t9, t12, t14: 7.5 ns before the edge). The
    host's reader gets words in order; taken lists the written words. The patterns choose the
    cycles in which the chip has no data, or no room. The pattern "packets" stalls only after a
    word has passed, like a buffer that runs empty or full.
    """

    # In ns: outputs are known KNOWN after a falling edge, inputs must be stable SET_UP after it,
    # and outputs hold for STAYS after a rising edge. The clock's period represents the chip's.
    KNOWN, SET_UP, STAYS = 0, 0, 0

    def __init__(self, dut, words=(), empty="never", full="never"):
        self.dut = dut
        self.words = list(words)
        self.taken, self.given, self.cycle = [], 0, 0
        self.empty = self._pattern(empty, lambda: self.given)
        self.full = self._pattern(full, lambda: len(self.taken))
        self.last = {"drive": -9, "oe": -9}  # cycle in which each side last drove
        self.bursts = [0]  # words per burst, until WR# rises
        self.asks = []  # cycles at which SIWU# fell, and how many it stayed low
        self.rxf_n = self.txe_n = self.txe_before = self.txe_earlier = 1
        self.before = {"rd_n": 1, "wr_n": 1, "oe_n": 1, "siwu_n": 1}
        self.inputs = {name: getattr(dut, name) for name in self.before}
        self.released, self.unknown = (LogicArray(bit * len(dut.data_in)) for bit in "ZX")
        dut.rxf_n.value = dut.txe_n.value = 1
        dut.data_in.value = self.released
        cocotb.start_soon(self._run())

    @staticmethod
    def _pattern(name, passed):
        """Returns the pattern of a name; a pattern is returned unchanged."""
        if not isinstance(name, str):
            return name
        return packets(passed) if name == "packets" else PATTERNS[name]()

    def pins(self):
        """Returns the chip's input pins, which must be known."""
        pins = {name: number(handle) for name, handle in self.inputs.items()}
        released = set(bits(self.dut.drive_n))
        assert released in ({"0"}, {"1"}), "some of the data pins are driven, and some not"
        return {**pins, "drive": int("0" in released)}

    async def _run(self):
        await FallingEdge(self.dut.rst)
        while True:
            await FallingEdge(self.dut.clk)
            await self._pass(self.KNOWN)
            self._drive(self.pins()["oe_n"])
            await self._pass(self.SET_UP - self.KNOWN)
            set_up, data = self.pins(), bits(self.dut.data_out)
            await RisingEdge(self.dut.clk)
            pins = self.pins()
            assert pins == set_up, "changed within the set-up time"
            assert not pins["drive"] or pins["wr_n"] or bits(self.dut.data_out) == data
            self.cycle += 1
            self._judge(pins)
            await self._pass(self.STAYS)
            self.dut.rxf_n.value = self.dut.txe_n.value = Logic("X")
            self.dut.data_in.value = self.unknown

    @staticmethod
    async def _pass(ns):
        if ns:
            await Timer(ns, "ns")

    def _take(self, word):
        """Records a written word."""
        self.taken.append(word)

    def _judge(self, pins):
        """Acts on the pins at a clock edge, and checks them."""
        assert not (pins["drive"] and not pins["oe_n"]), "both drive the bus"
        if pins["drive"]:
            assert self.cycle - self.last["oe"] > 2, "the chip has not let go of the bus"
            self.last["drive"] = self.cycle
        if not pins["oe_n"]:
            assert self.cycle - self.last["drive"] > 1, "we have not let go of the bus"
            self.last["oe"] = self.cycle
        if not pins["rd_n"]:
            assert not pins["oe_n"] and not self.before["oe_n"], "RD# before the bus is turned"
            if not self.rxf_n:
                self.words.pop(0)
                self.given += 1
        if not pins["wr_n"]:
            assert pins["drive"], "nobody drives what is written"
            assert not (self.before["wr_n"] and self.txe_earlier), "WR# falls without TXE#"
            self.bursts[-1] += not self.txe_n
            if not self.txe_n:
                self._take(number(self.dut.data_out))
        elif self.bursts[-1]:
            self.bursts.append(0)
        if not pins["siwu_n"]:
            if self.before["siwu_n"]:
                self.asks.append([self.cycle, 0])
            self.asks[-1][1] += 1
        self.before = pins
        self.txe_before, self.txe_earlier = self.txe_n, self.txe_before

    def _drive(self, oe_n):
        """Drives the chip's outputs from the middle of a cycle."""
        self.rxf_n = int(next(self.empty) or not self.words)
        self.txe_n = int(next(self.full))
        self.dut.rxf_n.value, self.dut.txe_n.value = self.rxf_n, self.txe_n
        if oe_n:
            self.dut.data_in.value = self.released
        elif self.rxf_n:
            self.dut.data_in.value = self.unknown
        else:
            self.dut.data_in.value = self.words[0]


class SuperChip(Chip):
    """An FT600 or FT601 in 245 mode: words with byte enables in the upper bits (DS_FT600Q-FT601Q).

    transfers lists the host's writes; only the last word of a transfer may be partial. sent
    holds the written bytes; packets lists their count per packet, which a rise of WR# ends. In
    each 10 ns cycle, outputs are known 3.0 ns before an edge and hold for 3.5 ns after it (here
    3). Inputs must be stable 1.0 ns before the edge. Their hold time of 4.8 ns depends on the
    pin registers and is not modelled.
    """

    KNOWN, SET_UP, STAYS = 2, 4, 3

    def __init__(self, dut, transfers=(), empty="never", full="never"):
        self.width = len(dut.data_in) // 9
        self.sent, self.packets = [], [0]
        self.short = False  # the last word was partial
        super().__init__(dut, [w for t in transfers for w in self.words_of(t)], empty, full)

    def words_of(self, data):
        """Returns the words of a transfer; an empty transfer is one word without bytes."""
        words = []
        for i in range(0, max(len(data), 1), self.width):
            piece = data[i : i + self.width]
            keep = (1 << len(piece)) - 1
            words.append(keep << 8 * self.width | int.from_bytes(bytes(piece), "little"))
        return words

    def _take(self, word):
        super()._take(word)
        assert not self.short, "a word behind one that is not full"
        keep = word >> 8 * self.width
        size = keep.bit_length()
        assert size and keep == (1 << size) - 1, "byte enables with gaps"
        self.sent += word.to_bytes(self.width + 1, "little")[:size]
        self.packets[-1] += size
        self.short = size < self.width

    def _judge(self, pins):
        super()._judge(pins)
        if pins["wr_n"]:
            self.short = False
            if self.packets[-1]:
                self.packets.append(0)


def some_words(rng, dut, count):
    """Returns random words of the bus's width."""
    return [rng.getrandbits(len(dut.data_in)) for _ in range(count)]


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(chip=CHIPS, stream=list(PATTERNS))
async def passes_all_both_ways(dut, chip, stream):
    """agg_fifo_bus: every word passes once and in order, whatever RXF#, TXE# and the streams do."""
    rng = random.Random(f"{chip} {stream}")
    count = 60 if stream == "mostly" else 300
    from_host, to_host = some_words(rng, dut, count), some_words(rng, dut, count)
    sink = StreamSink(dut, "m_axis_rx", PATTERNS[stream]())
    source = StreamSource(dut, "s_axis_tx", PATTERNS[stream]())
    source.put([{"tdata": w} for w in to_host])
    model = Chip(dut, from_host, empty=chip, full=chip)
    await start(dut)
    assert [b["tdata"] for b in await sink.take(count)] == from_host
    while len(model.taken) < count:
        await RisingEdge(dut.clk)
    await ClockCycles(dut.clk, 100)
    assert model.taken == to_host and model.given == count


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(chip=["never", "bursts", "packets"])
async def ends_bursts(dut, chip):
    """agg_fifo_bus: WR# rises after a word with tlast, which costs the next word no more than
    that."""
    rng = random.Random(chip)
    words, lasts = some_words(rng, dut, 200), [int(rng.random() < 0.3) for _ in range(200)]
    StreamSink(dut, "m_axis_rx", PATTERNS["never"]())
    source = StreamSource(dut, "s_axis_tx", PATTERNS["never"]())
    source.put([{"tdata": w, "tlast": last} for w, last in zip(words, lasts, strict=True)])
    model = Chip(dut, full=chip)
    await start(dut)
    while len(model.taken) < len(words):
        await RisingEdge(dut.clk)
    await ClockCycles(dut.clk, 3)
    assert model.taken == words
    ends = set(itertools.accumulate(model.bursts))
    due = {i + 1 for i, last in enumerate(lasts) if last}
    assert due <= ends
    if chip == "never":
        assert ends - due <= {len(words)} and model.cycle < len(words) + 3 * len(due) + 15


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(way=["from", "to"])
async def runs_at_full_rate(dut, way):
    """agg_fifo_bus: a single direction moves a word every cycle."""
    words = some_words(random.Random(way), dut, 500)
    sink = StreamSink(dut, "m_axis_rx", PATTERNS["never"]())
    source = StreamSource(dut, "s_axis_tx", PATTERNS["never"]())
    model = Chip(dut, words if way == "from" else [])
    await start(dut)
    if way == "from":
        assert [b["tdata"] for b in await sink.take(len(words))] == words
    else:
        source.put([{"tdata": w} for w in words])
        while len(model.taken) < len(words):
            await RisingEdge(dut.clk)
        assert model.taken == words
    assert model.cycle < len(words) + 12


@cocotb.test(timeout_time=100, timeout_unit="us")
async def shares_the_bus(dut):
    """agg_fifo_bus: saturated directions take turns of BURST cycles; a pair of turns loses seven
    cycles."""
    burst = int(dut.BURST.value)
    rng = random.Random(3)
    sink = StreamSink(dut, "m_axis_rx", PATTERNS["never"]())
    source = StreamSource(dut, "s_axis_tx", PATTERNS["never"]())
    source.put([{"tdata": w} for w in some_words(rng, dut, 20 * burst)])
    model = Chip(dut, some_words(rng, dut, 20 * burst))
    await start(dut)
    await ClockCycles(dut.clk, 10 * (2 * burst + 7))
    assert abs(model.given - 10 * burst) <= burst + 10
    assert abs(len(model.taken) - 10 * burst) <= burst + 10
    assert model.given + len(model.taken) >= 20 * burst - 20
    assert len(await sink.take(model.given - 4)) == model.given - 4


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(blocked=["host", "card"])
async def one_way_does_not_block_the_other(dut, blocked):
    """agg_fifo_bus: a host that does not read, or a card that does not take, blocks only its own
    direction."""
    rng = random.Random(4)
    from_host, to_host = some_words(rng, dut, 300), some_words(rng, dut, 300)
    gate = Gate(closed=True)
    sink = StreamSink(dut, "m_axis_rx", gate if blocked == "card" else PATTERNS["never"]())
    source = StreamSource(dut, "s_axis_tx", PATTERNS["never"]())
    source.put([{"tdata": w} for w in to_host])
    model = Chip(dut, from_host, full=gate if blocked == "host" else "never")
    await start(dut)
    await ClockCycles(dut.clk, 400)
    if blocked == "host":
        assert [b["tdata"] for b in await sink.take(300)] == from_host and not model.taken
    else:
        assert model.taken == to_host and model.given == 4
    gate.closed = False
    if blocked == "card":
        assert [b["tdata"] for b in await sink.take(300)] == from_host
    while len(model.taken) < 300:
        await RisingEdge(dut.clk)
    assert model.taken == to_host


@cocotb.test(timeout_time=100, timeout_unit="us")
async def asks_to_send_at_once(dut):
    """agg_fifo_bus: SIWU# falls once, SILENCE cycles after the last word, and never without a
    word."""
    silence, ask = int(dut.SILENCE.value), int(dut.ASK.value)
    StreamSink(dut, "m_axis_rx", PATTERNS["never"]())
    source = StreamSource(dut, "s_axis_tx", PATTERNS["never"]())
    gate = Gate()
    model = Chip(dut, full=gate)
    await start(dut)
    await ClockCycles(dut.clk, 3 * silence)
    assert not model.asks
    for pause, asked in [(silence - 8, 0), (silence + ask + 8, 1), (3 * silence, 1)]:
        before, took = len(model.asks), len(model.taken)
        source.put([{"tdata": n} for n in range(3)])
        while len(model.taken) < took + 3:
            await RisingEdge(dut.clk)
        ended = model.cycle
        await ClockCycles(dut.clk, pause)
        assert len(model.asks) == before + asked
        if asked:
            at, cycles = model.asks[-1]
            assert silence <= at - ended <= silence + 3 and cycles == ask
    # A word that waits for room in the chip is not silence.
    before = len(model.asks)
    gate.closed = True
    source.put([{"tdata": 1}])
    await ClockCycles(dut.clk, 4 * silence)
    assert len(model.asks) == before
    gate.closed = False
    await ClockCycles(dut.clk, 2 * silence + ask)
    assert len(model.asks) == before + 1


@cocotb.test(timeout_time=100, timeout_unit="us")
async def resets_without_a_clock(dut):
    """agg_fifo_bus: a reset quiets the pins at once, even while the chip's clock is stopped."""
    dut.rxf_n.value = dut.txe_n.value = 0
    dut.data_in.value = 0
    dut.m_axis_rx_tready.value = dut.s_axis_tx_tvalid.value = 1
    dut.s_axis_tx_tdata.value = 1
    clock = Clock(dut.clk, CLOCK_PERIOD_NS, unit="ns")
    dut.rst.value = 1
    clock.start()
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    seen = set()
    for cycles in range(5, 60):
        await ClockCycles(dut.clk, cycles)
        await Timer(1, "ns")
        clock.stop()
        dut.rst.value = 1
        seen.add((int(dut.rd_n.value), int(dut.wr_n.value)))
        await Timer(1, "ns")
        assert all(getattr(dut, n).value == 1 for n in ("rd_n", "wr_n", "oe_n", "siwu_n"))
        assert set(str(dut.drive_n.value)) == {"1"}
        await Timer(50, "ns")
        clock.start()
        await ClockCycles(dut.clk, 2)
        dut.rst.value = 0
    assert {(0, 1), (1, 0)} <= seen


@pytest.mark.parametrize("width", [8, 36])
def test_agg_fifo_bus(width):
    run("agg_fifo_bus", parameters={"WIDTH": width, "BURST": 32}, testcase=BUS)


BUS = [
    *(f"passes_all_both_ways/chip={c}/stream={s}" for c in CHIPS for s in PATTERNS),
    *(f"ends_bursts/chip={c}" for c in ("never", "bursts", "packets")),
    *(f"runs_at_full_rate/way={w}" for w in ("from", "to")),
    "shares_the_bus",
    *(f"one_way_does_not_block_the_other/blocked={b}" for b in ("host", "card")),
    "asks_to_send_at_once",
    "resets_without_a_clock",
]


# -- agg_link_break --------------------------------------------------------------------------------


class FarSide:
    """Plays the part of agg_link_cross: releases the last host some cycles after the link fell."""

    def __init__(self, dut):
        self.dut, self.falls, self.clear_after = dut, 0, 3
        dut.link_clear.value = 1
        cocotb.start_soon(self._run())

    async def _run(self):
        up, wait = 0, 0
        while True:
            await RisingEdge(self.dut.clk)
            if number(self.dut.rst):
                up = 0
                continue
            now = number(self.dut.link_up)
            if up and not now:
                self.falls += 1
                wait = self.clear_after
            wait -= wait > 0
            up = now
            self.dut.link_clear.value = int(not up and not wait)


def words_of(data, width, rng):
    """Cuts bytes into beats of at most the given size."""
    beats = []
    while data:
        size = rng.randint(1, min(width, len(data)))
        beats.append({"tdata": int.from_bytes(data[:size], "little"), "tkeep": (1 << size) - 1})
        data = data[size:]
    return beats


def bytes_of(beats):
    """Returns the bytes of beats, in order."""
    return b"".join(b["tdata"].to_bytes(4, "little")[: b["tkeep"].bit_length()] for b in beats)


async def start_break(dut, idle="never", stall="never"):
    """Starts the module with a stream at each end; returns both, and the far side."""
    source = StreamSource(dut, "s_axis", PATTERNS[idle]())
    sink = StreamSink(dut, "m_axis", PATTERNS[stall]())
    far = FarSide(dut)
    await start(dut)
    return source, sink, far


@cocotb.test(timeout_time=500, timeout_unit="us")
@cocotb.parametrize(idle=["never", "bursts"], stall=["never", "bursts"])
async def breaks_at_so_many_zeros(dut, idle, stall):
    """agg_link_break: ZEROS zeros take the link down, one fewer does not; further zeros are
    dropped."""
    width, zeros = len(dut.s_axis_tkeep), int(dut.ZEROS.value)
    rng = random.Random(f"{idle} {stall}")
    source, sink, far = await start_break(dut, idle, stall)
    falls, expected = 0, b""
    for behind in [-1, 0, 1, 50, zeros, -1, 3 * zeros, -zeros + 1]:
        before = bytes(rng.randrange(1, 256) for _ in range(20 * width))
        source.put(words_of(before, width, rng))
        run_length = zeros + behind
        source.put([{"tdata": 0, "tkeep": 1}] * run_length)
        after = bytes([rng.randrange(1, 256), 0, 0, 7])
        source.put(words_of(after, width, rng))
        await source.drained()
        await ClockCycles(dut.clk, 40)
        falls += behind >= 0
        assert far.falls == falls
        expected += before + bytes(min(run_length, zeros)) + after
    assert bytes_of(sink.beats) == expected


@cocotb.test(timeout_time=500, timeout_unit="us")
async def counts_zeros_of_whole_words(dut):
    """agg_link_break: counts the zeros only of words whose bytes are all zero."""
    width, zeros = len(dut.s_axis_tkeep), int(dut.ZEROS.value)
    source, _, far = await start_break(dut)
    full = (1 << width) - 1
    whole = [{"tdata": 0, "tkeep": full}] * (zeros // width - 1)
    for top in (1, 1 << 8 * (width - 1)):
        source.put([{"tdata": top, "tkeep": full}, *whole])
        await source.drained()
        await ClockCycles(dut.clk, 20)
        assert far.falls == 0
    source.put([{"tdata": 0, "tkeep": full}])
    await source.drained()
    await ClockCycles(dut.clk, 20)
    assert far.falls == 1


@cocotb.test(timeout_time=500, timeout_unit="us")
async def waits_for_the_far_side(dut):
    """agg_link_break: nothing passes while the link is down, however long the far side takes."""
    zeros = int(dut.ZEROS.value)
    source, sink, far = await start_break(dut)
    for far.clear_after in (1, 500):
        source.put([{"tdata": 0, "tkeep": 1}] * zeros + [{"tdata": 9, "tkeep": 1}])
        while int(dut.link_up.value) == 0:
            await RisingEdge(dut.clk)
        while int(dut.link_up.value) == 1:
            await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        seen, down = len(sink.beats), 1
        while int(dut.link_up.value) == 0:
            assert len(sink.beats) == seen
            await RisingEdge(dut.clk)
            down += 1
        assert far.clear_after <= down <= far.clear_after + 3
        await source.drained()
        assert sink.beats[-1]["tdata"] == 9


@pytest.mark.parametrize("width", [1, 2, 4])
def test_agg_link_break(width):
    patterns = itertools.product(("never", "bursts"), repeat=2)
    run(
        "agg_link_break",
        parameters={"BYTES": width, "ZEROS": 96},
        testcase=[f"breaks_at_so_many_zeros/idle={i}/stall={s}" for i, s in patterns]
        + ["counts_zeros_of_whole_words", "waits_for_the_far_side"],
    )


def test_agg_link_break_of_links():
    run("agg_link_break", parameters={"BYTES": 4}, testcase=["counts_zeros_of_whole_words"])


# -- agg_bus_burst ---------------------------------------------------------------------------------


def some_bytes(rng, count):
    """Returns random nonzero bytes."""
    return bytes(rng.randrange(1, 256) for _ in range(count))


async def start_burst(dut, idle="never", stall="never"):
    """Starts the module with a stream at each end, and returns both."""
    source = StreamSource(dut, "s_axis", PATTERNS[idle]())
    sink = StreamSink(dut, "m_axis", PATTERNS[stall]())
    await start(dut)
    return source, sink


@cocotb.test(timeout_time=500, timeout_unit="us")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def packs_all_bytes(dut, idle, stall):
    """agg_bus_burst: bytes leave in order and in full words, except where tlast ends one."""
    rng = random.Random(f"{idle} {stall}")
    link, bus = len(dut.s_axis_tkeep), len(dut.m_axis_tkeep)
    source, sink = await start_burst(dut, idle, stall)
    sent = b""
    for count in (1, 7, 200, 3, 64, 300):
        data = some_bytes(rng, count)
        source.put(words_of(data, link, rng))
        sent += data
        await source.drained()
        await ClockCycles(dut.clk, rng.choice([0, 5, 40, 120]))
    while len(bytes_of(sink.beats)) < len(sent):
        await RisingEdge(dut.clk)
    await ClockCycles(dut.clk, 100)
    assert bytes_of(sink.beats) == sent
    assert all(b["tlast"] == int(b["tkeep"] != (1 << bus) - 1) for b in sink.beats)


@cocotb.test(timeout_time=500, timeout_unit="us")
async def waits_for_a_burst(dut):
    """agg_bus_burst: words wait for a whole burst or for silence, then leave without a gap."""
    link, bus = len(dut.s_axis_tkeep), len(dut.m_axis_tkeep)
    burst, silence = 1 << int(dut.BURST_BITS.value), int(dut.SILENCE.value)
    rng = random.Random(9)
    source, sink = await start_burst(dut)
    steps = (burst - 4) * bus // link
    for _ in range(steps):  # less than a burst, with pauses
        source.put([{"tdata": rng.getrandbits(8 * link), "tkeep": (1 << link) - 1}])
        await source.drained()
        await ClockCycles(dut.clk, silence - 4)
    assert not sink.beats
    await ClockCycles(dut.clk, silence + 30)
    assert len(sink.beats) == burst - 4
    assert sink.taken_at[-1] - sink.taken_at[0] == burst - 5
    # A single byte leaves after silence, not later.
    source.put([{"tdata": 5, "tkeep": 1}])
    await source.drained()
    at = source.accepted_at[-1]
    await ClockCycles(dut.clk, silence + 40)
    assert sink.beats[-1] == {"tdata": 5, "tkeep": 1, "tlast": 1}
    assert silence < sink.taken_at[-1] - at <= silence + 21
    # More than a burst without pauses leaves at the input's rate, or the bus's.
    taken = len(sink.beats)
    count = 8 * burst
    source.put([{"tdata": rng.getrandbits(8 * link), "tkeep": (1 << link) - 1}] * (count * bus // link))
    await source.drained()
    await ClockCycles(dut.clk, 8 * count)
    times = sink.taken_at[taken:]
    assert len(times) == count and times[-1] - times[0] <= count + 2 * silence


@pytest.mark.parametrize("link, bus", [(2, 2), (4, 2), (4, 4), (8, 4)])
def test_agg_bus_burst(link, bus):
    patterns = itertools.product(PATTERNS, repeat=2)
    run(
        "agg_bus_burst",
        sources=[leaf("agg_bus_burst"), leaf("agg_byte_pack")],
        parameters={"LINK_BYTES": link, "BUS_BYTES": bus, "BURST_BITS": 4},
        testcase=[f"packs_all_bytes/idle={i}/stall={s}" for i, s in patterns] + ["waits_for_a_burst"],
    )


# -- From the chip's pins to the card --------------------------------------------------------------


class Card:
    """A card with its own clock at the chain's end. On the first link it sends bytes from 64 up;
    on later links it answers every byte it receives, in words of any size."""

    def __init__(self, dut, stalls):
        self.dut, self.heard, self.links = dut, [[]], 0
        self.stalls, self.out, self.old = stalls, [], itertools.cycle(range(64, 128))
        self.width, self.rng = len(dut.tx_tkeep), random.Random(11)
        self.word = 0  # bytes in the offered word
        dut.rx_tready.value = dut.tx_tvalid.value = 0
        cocotb.start_soon(self._run())

    async def _run(self):
        dut, up = self.dut, 0
        while True:
            await RisingEdge(dut.card_clk)
            if number(dut.card_rst):
                continue
            if number(dut.rx_tvalid) and number(dut.rx_tready):
                size = number(dut.rx_tkeep).bit_length()
                came = list(number(dut.rx_tdata).to_bytes(self.width, "little")[:size])
                self.heard[-1] += came
                if self.links > 1:
                    self.out += [n + 1 for n in came]
            if number(dut.tx_tvalid) and number(dut.tx_tready):
                self.out, self.word = self.out[self.word :], 0
            now = number(dut.link_up)
            if now != up:
                self.out, self.word = [], 0
                if now:
                    self.links += 1
                    if self.links > 1:
                        self.heard.append([])
            up = now
            if up and self.links == 1 and not self.out:
                self.out = [next(self.old) for _ in range(self.width)]
            if not self.word:
                self.word = self.rng.randint(1, min(self.width, len(self.out))) if self.out else 0
            dut.rx_tready.value = int(not next(self.stalls))
            dut.tx_tvalid.value = int(up and bool(self.word))
            if self.word:
                dut.tx_tdata.value = int.from_bytes(bytes(self.out[: self.word]), "little")
                dut.tx_tkeep.value = (1 << self.word) - 1


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(card_ns=[6, 10, 26], reads=["always", "late"], stall=["never", "bursts"])
async def begins_anew_at_a_break(dut, card_ns, reads, stall):
    """After a break, the card receives only new bytes, and its new bytes follow all its earlier
    ones."""
    zeros, width = int(dut.ZEROS.value), len(dut.tx_tkeep)
    first, question = list(range(1, 40)), list(range(200, 240))
    host_full = Gate(closed=reads == "late")
    full = host_full if reads == "late" else "packets"
    if width == 1:
        model = Chip(dut, first + [0] * 2 * zeros + question, empty="packets", full=full)
        model.sent = model.taken
    else:
        transfers = [first[:10], [], first[10:], [0] * 2 * zeros + question[:5], question[5:]]
        model = SuperChip(dut, transfers, empty="packets", full=full)
    dut.card_rst.value = 1
    cocotb.start_soon(Clock(dut.card_clk, card_ns, unit="ns").start())
    card = Card(dut, PATTERNS[stall]())
    cocotb.start_soon(start(dut))
    await FallingEdge(dut.rst)
    dut.card_rst.value = 0
    while len(card.heard) < 2 or len(card.heard[1]) < len(question):
        await RisingEdge(dut.card_clk)
    host_full.closed = False
    await ClockCycles(dut.clk, 400)
    assert card.links == 2 and card.heard[1] == question
    # Zeros at the end of the first link may be dropped with it. Zeros that share a word with other
    # bytes are not counted.
    old = card.heard[0]
    assert old == (first + [0] * (zeros + width))[: len(old)] and len(old) >= len(first)
    # The bytes that the card sent on the first link arrive without a gap; only the last may be
    # missing.
    answer = [n + 1 for n in question]
    stale = model.sent[: -len(answer)]
    assert model.sent[-len(answer) :] == answer
    assert stale == list(itertools.islice(itertools.cycle(range(64, 128)), len(stale))) and stale


@pytest.mark.parametrize("width", [1, 2, 4])
def test_bridge_chain(width):
    leaves = ["agg_fifo_bus", "agg_link_break", "agg_bus_burst", "agg_byte_pack"]
    leaves += ["agg_link_cross", "agg_async_fifo", "agg_sync"]
    cases = itertools.product((6, 10, 26), ("always", "late"), ("never", "bursts"))
    run(
        "bridge_chain",
        sources=[ROOT / "cocotb" / "bridge_chain.v", *(leaf(name) for name in leaves)],
        parameters={"BYTES": width, "BUS": 8 if width == 1 else 9 * width, "ZEROS": 64 * width},
        testcase=[f"begins_anew_at_a_break/card_ns={c}/reads={r}/stall={s}" for c, r, s in cases],
    )
