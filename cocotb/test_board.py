"""The board leaves around a card: clock crossings, resets, supplies, LEDs."""

import itertools
import os
import random

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, ReadOnly, RisingEdge, Timer, with_timeout

from bench import bits, leaf, number, run
from streams import PATTERNS

# Periods of the PHY's clock and the card's, in ns, the finest resolution of the benches. They are
# as on real boards but ten times slower, close to each other, and far apart.
PERIODS = [(167, 200), (167, 250), (167, 100), (100, 101), (100, 971), (971, 100)]


def periods():
    """Returns the clock periods of this run."""
    return int(os.environ["PHY_NS"]), int(os.environ["CARD_NS"])


def run_with(leaf, pair, **arguments):
    """Runs a leaf's bench with a pair of clock periods."""
    env = {"PHY_NS": str(pair[0]), "CARD_NS": str(pair[1])}
    run(leaf, env=env, **arguments)


def clock(signal, period):
    """Starts a clock with the given period in ns."""
    cocotb.start_soon(Clock(signal, period, unit="ns", period_high=period // 2, impl="gpi").start())


class Feeder:
    """Offers words at PREFIX_tdata while on() is true, with idle cycles; sent lists the accepted
    words."""

    def __init__(self, dut, prefix, clk, idle, words):
        self.clk, self.idle, self.words = clk, idle, words
        self.data, self.valid, self.ready = (getattr(dut, f"{prefix}_{n}") for n in ("tdata", "tvalid", "tready"))
        self.sent, self.on = [], lambda: True
        self.valid.value = 0
        cocotb.start_soon(self._run())

    async def _run(self):
        word = None
        while True:
            await RisingEdge(self.clk)
            if word is not None and number(self.valid) and number(self.ready):
                self.sent.append(word)
                word = None
            if not self.on():
                word = None  # withdraws the offered word
            elif word is None and not next(self.idle):
                word = next(self.words, None)
            self.valid.value = int(word is not None)
            if word is not None:
                self.data.value = word


class Taker:
    """Takes words from PREFIX_tdata into taken, with stalls."""

    def __init__(self, dut, prefix, clk, stall):
        self.clk, self.stall = clk, stall
        self.data, self.valid, self.ready = (getattr(dut, f"{prefix}_{n}") for n in ("tdata", "tvalid", "tready"))
        self.taken = []
        self.ready.value = 0
        cocotb.start_soon(self._run())

    async def _run(self):
        while True:
            await RisingEdge(self.clk)
            if bits(self.ready) == bits(self.valid) == "1":
                self.taken.append(number(self.data))
            self.ready.value = int(not next(self.stall))


# -- agg_async_fifo --------------------------------------------------------------------------------


async def start_fifo(dut):
    """Starts both clocks and releases the resets one after the other. No word comes meanwhile: it
    would be lost."""
    dut.s_axis_tvalid.value = 0
    phy, card = periods()
    clock(dut.wr_clk, phy)
    clock(dut.rd_clk, card)
    dut.wr_rst.value = dut.rd_rst.value = 1
    await ClockCycles(dut.rd_clk, 4)
    await ClockCycles(dut.wr_clk, 4)
    dut.wr_rst.value = 0
    await ClockCycles(dut.wr_clk, 3)
    await RisingEdge(dut.rd_clk)
    dut.rd_rst.value = 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(idle=["never", "bursts"], stall=["never", "mostly", "bursts"])
async def passes_every_word_once(dut, idle, stall):
    """agg_async_fifo: all words come out once and in order at any clock periods; then the FIFO
    is empty."""
    rng = random.Random(f"{idle} {stall}")
    words = [rng.randrange(256) for _ in range(400)]
    await start_fifo(dut)
    feeder = Feeder(dut, "s_axis", dut.wr_clk, PATTERNS[idle](), iter(words))
    taker = Taker(dut, "m_axis", dut.rd_clk, PATTERNS[stall]())
    while len(taker.taken) < len(words):
        await RisingEdge(dut.rd_clk)
    assert taker.taken == words == feeder.sent
    await ClockCycles(dut.rd_clk, 10)
    assert dut.rd_empty.value == 1 and len(taker.taken) == len(words)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def holds_all_its_places(dut):
    """agg_async_fifo: without a reader, the FIFO holds its depth plus one word at m_axis."""
    words = list(range(40))
    await start_fifo(dut)
    feeder = Feeder(dut, "s_axis", dut.wr_clk, PATTERNS["never"](), iter(words))
    taker = Taker(dut, "m_axis", dut.rd_clk, itertools.repeat(True))
    await ClockCycles(dut.rd_clk, 60)
    await ClockCycles(dut.wr_clk, 60)
    assert len(feeder.sent) == (1 << int(dut.DEPTH_BITS.value)) + 1
    assert dut.rd_empty.value == 0
    taker.stall = PATTERNS["never"]()
    while len(taker.taken) < len(words):
        await RisingEdge(dut.rd_clk)
    assert taker.taken == words


@pytest.mark.parametrize("pair", PERIODS)
def test_agg_async_fifo(pair):
    run_with(
        "agg_async_fifo",
        pair,
        sources=[leaf("agg_async_fifo"), leaf("agg_sync")],
        parameters={"DEPTH_BITS": 3},
        testcase=[f"passes_every_word_once/idle={i}/stall={s}" for i in ("never", "bursts")
                  for s in ("never", "mostly", "bursts")] + ["holds_all_its_places"],
    )  # fmt: skip


# -- agg_sync --------------------------------------------------------------------------------------


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def shows_levels(dut):
    """agg_sync: a level appears at out after two edges; a reset clears it."""
    clock(dut.clk, 10)
    dut.rst.value = 1
    source = getattr(dut, "in")
    source.value = 5
    await ClockCycles(dut.clk, 3)
    assert dut.out.value == 0
    dut.rst.value = 0
    await ClockCycles(dut.clk, 3)
    assert dut.out.value == 5
    for level in (2, 7, 0, 5):
        await FallingEdge(dut.clk)
        before = int(dut.out.value)
        source.value = level
        await RisingEdge(dut.clk)
        await ReadOnly()
        assert dut.out.value == before
        await RisingEdge(dut.clk)
        await ReadOnly()
        assert dut.out.value == level


def test_agg_sync():
    run("agg_sync", parameters={"WIDTH": 3}, testcase=["shows_levels"])


# -- agg_link_cross --------------------------------------------------------------------------------


class Hosts:
    """The USB device's side and the card's side of agg_link_cross, and the words of each.

    The upper bits of a word name its host, which exposes another host's words.
    """

    def __init__(self, dut, rng, idle, stall):
        self.dut, self.rng, self.host, self.seen = dut, rng, 0, 0
        self.down = self.phy = None
        dut.phy_link_up.value = 0
        self.to_card = Feeder(dut, "s_axis_rx", dut.phy_clk, PATTERNS[idle](), self.words(lambda: self.host))
        self.to_card.on = lambda: bits(dut.phy_link_up) == "1"
        self.from_card = Feeder(dut, "s_axis_tx", dut.clk, PATTERNS[idle](), self.words(lambda: self.seen))
        self.from_card.on = lambda: bits(dut.link_up) == "1"
        self.at_card = Taker(dut, "m_axis_rx", dut.clk, PATTERNS[stall]())
        self.at_host = Taker(dut, "m_axis_tx", dut.phy_clk, PATTERNS[stall]())
        cocotb.start_soon(self.count_hosts())

    @staticmethod
    def words(host):
        """Yields the host's words 0, 1, 2, ... repeatedly."""
        for count in itertools.count():
            yield (host() % 4) << 6 | count % 64

    async def count_hosts(self):
        """Keeps in seen the host that the card sees; checks that link_up stays low for over four
        cycles."""
        while True:
            await RisingEdge(self.dut.link_up)
            self.seen = self.host
            await FallingEdge(self.dut.link_up)
            cycles = 0
            while self.dut.link_up.value == 0:
                await RisingEdge(self.dut.clk)
                cycles += 1
                if cycles > 4:
                    break
            assert cycles > 4, "the card must see that a host has ended"

    async def begin(self):
        """Lets the next host claim the card once nothing is left of the last host."""
        dut = self.dut
        await FallingEdge(dut.phy_clk)
        while dut.phy_link_clear.value != 1:
            await FallingEdge(dut.phy_clk)
        self.host += 1
        for stream in (self.to_card.sent, self.at_card.taken, self.from_card.sent, self.at_host.taken):
            stream.clear()
        await RisingEdge(dut.phy_clk)
        dut.phy_link_up.value = 1

    async def end(self):
        """Disconnects the host."""
        await RisingEdge(self.dut.phy_clk)
        self.dut.phy_link_up.value = 0
        await FallingEdge(self.dut.phy_clk)
        assert self.dut.phy_link_clear.value == 0

    def check(self):
        """Checks that everything received since the host began is a prefix of its own words."""
        for sent, got in ((self.to_card.sent, self.at_card.taken), (self.from_card.sent, self.at_host.taken)):
            assert got == sent[: len(got)], f"host {self.host}: {got[:20]} of {sent[:20]}"
            assert all(word >> 6 == self.host % 4 for word in got)


async def start_cross(dut):
    """Starts both clocks; the PHY's side leaves reset first, as with agg_board_reset."""
    phy, card = periods()
    clock(dut.phy_clk, phy)
    clock(dut.clk, card)
    dut.phy_rst.value = dut.rst.value = 1
    await ClockCycles(dut.clk, 4)
    await ClockCycles(dut.phy_clk, 4)
    dut.phy_rst.value = 0
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize(idle=["never", "bursts"], stall=["never", "mostly"])
async def keeps_hosts_apart(dut, idle, stall):
    """agg_link_cross: hosts that connect and disconnect at any time receive exactly their own
    words."""
    rng = random.Random(f"{idle} {stall} {periods()}")
    hosts = Hosts(dut, rng, idle, stall)
    await start_cross(dut)
    for _ in range(30):
        await with_timeout(hosts.begin(), 10, "ms")
        await ClockCycles(dut.phy_clk, rng.choice([1, 2, 3, 5, 8, 13, 40, 100, 300]))
        hosts.check()
        await hosts.end()
        hosts.check()
        if rng.randrange(2):
            await ClockCycles(dut.phy_clk, rng.randrange(1, 60))
    # The last host stays until words have passed both ways, and loses none.
    await hosts.begin()
    while len(hosts.at_card.taken) < 200 or len(hosts.at_host.taken) < 200:
        await RisingEdge(dut.clk)
    hosts.check()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def waits_for_words_to_be_dropped(dut):
    """agg_link_cross: words that the card does not take are dropped before the next host can
    begin."""
    hosts = Hosts(dut, random.Random(1), "never", "never")
    hosts.at_card.stall = itertools.repeat(True)
    hosts.at_host.stall = itertools.repeat(True)
    await start_cross(dut)
    await hosts.begin()
    await ClockCycles(dut.phy_clk, 200)
    await ClockCycles(dut.clk, 200)
    assert len(hosts.to_card.sent) == len(hosts.from_card.sent) == (1 << int(dut.DEPTH_BITS.value)) + 1
    await hosts.end()
    await with_timeout(hosts.begin(), 10, "ms")
    hosts.at_card.stall = hosts.at_host.stall = PATTERNS["never"]()
    while len(hosts.at_card.taken) < 50 or len(hosts.at_host.taken) < 50:
        await RisingEdge(dut.clk)
    hosts.check()
    # A link that falls and immediately rises, which violates the contract, still ends the host.
    dut.phy_link_up.value = 0
    await RisingEdge(dut.phy_clk)
    dut.phy_link_up.value = 1
    await with_timeout(FallingEdge(dut.link_up), 1, "ms")


@pytest.mark.parametrize("pair", PERIODS)
def test_agg_link_cross(pair):
    run_with(
        "agg_link_cross",
        pair,
        sources=[leaf(name) for name in ("agg_link_cross", "agg_async_fifo", "agg_sync")],
        parameters={"DEPTH_BITS": 4},
        testcase=[f"keeps_hosts_apart/idle={i}/stall={s}" for i in ("never", "bursts") for s in ("never", "mostly")]
        + ["waits_for_words_to_be_dropped"],
    )


# -- agg_board_reset -------------------------------------------------------------------------------


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def releases_in_step(dut):
    """agg_board_reset: releases the PHY, then its clock domain, then the card; resets all at
    once."""
    card_ns, phy_ns = 20, 17
    dut.started.value, dut.phy_clk.value = 0, 0
    clock(dut.clk, card_ns)
    await Timer(100, "ns")
    for held in (0, 50):
        assert (dut.phy_reset.value, dut.phy_rst.value, dut.rst.value) == (1, 1, 1)
        dut.started.value = 1
        cycles = 0
        while dut.phy_reset.value == 1:
            await RisingEdge(dut.clk)
            cycles += 1
        wait = int(dut.PHY_CYCLES.value)
        assert wait <= cycles <= wait + 5
        # Without the PHY's clock, the release stops.
        await ClockCycles(dut.clk, 50)
        assert (dut.phy_rst.value, dut.rst.value) == (1, 1)
        phy = Clock(dut.phy_clk, phy_ns, unit="ns", period_high=phy_ns // 2, impl="gpi")
        running = cocotb.start_soon(phy.start())
        edges = 0
        while dut.phy_rst.value == 1:
            await RisingEdge(dut.phy_clk)
            await ReadOnly()
            edges += 1
        assert edges == 4 and dut.rst.value == 1
        edges = 0
        while dut.rst.value == 1:
            await RisingEdge(dut.clk)
            await ReadOnly()
            edges += 1
        assert 2 <= edges <= 4
        await ClockCycles(dut.clk, 100)
        assert (dut.phy_reset.value, dut.phy_rst.value, dut.rst.value) == (0, 0, 0)
        # The PHY's clock stops, then the PLL loses its lock: the reset needs no edge.
        running.cancel()
        await Timer(held + 3, "ns")
        dut.started.value = 0
        await Timer(1, "ns")
        assert (dut.phy_reset.value, dut.phy_rst.value, dut.rst.value) == (1, 1, 1)
        await ClockCycles(dut.clk, 2)


def test_agg_board_reset():
    run("agg_board_reset", parameters={"PHY_CYCLES": 20}, testcase=["releases_in_step"])


# -- agg_supply, agg_led ---------------------------------------------------------------------------


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def sets_then_switches_on(dut):
    """agg_supply: the output is high for HIGH of 1024 cycles; enable and good rise in their time
    and fall at once."""
    dut.started.value = 0
    clock(dut.clk, 10)
    await ClockCycles(dut.clk, 3)
    for _ in range(2):
        assert (dut.set.value, dut.enable.value, dut.good.value) == (0, 0, 0)
        dut.started.value = 1
        rose = {}
        high = 0
        for cycle in range(3072):
            await RisingEdge(dut.clk)
            high += int(dut.set.value) if cycle >= 1024 else 0
            for name in ("enable", "good"):
                if getattr(dut, name).value == 1:
                    rose.setdefault(name, cycle)
        assert high == 2 * int(dut.HIGH.value)
        assert rose["enable"] == int(dut.SETTLE_CYCLES.value) + 1
        assert rose["good"] == rose["enable"] + int(dut.RISE_CYCLES.value)
        dut.started.value = 0
        await Timer(1, "ns")


def test_agg_supply():
    run("agg_supply", parameters={"HIGH": 688, "SETTLE_CYCLES": 300, "RISE_CYCLES": 70}, testcase=["sets_then_switches_on"])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def lasts_its_cycles(dut):
    """agg_led: lit for CYCLES cycles after the last strobe, otherwise dark."""
    dut.strobe.value, dut.rst.value = 0, 1
    clock(dut.clk, 10)
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    cycles = int(dut.CYCLES.value)
    for strobes in (1, 3):
        await ClockCycles(dut.clk, 5)
        assert dut.lit.value == 0
        for _ in range(strobes):
            dut.strobe.value = 1
            await RisingEdge(dut.clk)
        dut.strobe.value = 0
        for cycle in range(cycles + 3):
            await RisingEdge(dut.clk)
            assert int(dut.lit.value) == int(cycle < cycles)


@pytest.mark.parametrize("cycles", [1, 12])
def test_agg_led(cycles):
    run("agg_led", parameters={"CYCLES": cycles}, testcase=["lasts_its_cycles"])
