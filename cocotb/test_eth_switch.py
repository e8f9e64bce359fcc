"""agg_eth_switch, behind agg_eth_receive, and its table alone, agg_switch_table."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from bench import ROOT, leaf, number, run, start
from eth_frames import BROADCAST, HOST, MAC, arp_frame, datagram_frame, mac_bytes
from streams import PATTERNS, Gate, never
from switching import LARGEST, Lines, frame, station

LATENCY = 24  # cycles from a frame's last word to its first word at the other port

GROUP = bytes([1, 0, 0x5E, 0, 0, 9])
ALL = mac_bytes(BROADCAST)


async def settle(lines, rng):
    """Has each port's station send, so that the switch knows them all. Station n is behind port n."""
    for port in range(lines.ports):
        lines.put(port, frame(rng, station(port), station(port)))
    await lines.quiet()


# -- One frame after another


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def learns_where_stations_are(dut):
    """Frames leave at all other ports until their station has sent something, and then at its port alone."""
    rng = random.Random(1)
    lines = Lines(dut)
    await lines.start()
    others = [1, 2]

    async def sent(port, to, source, bad=False, size=None):
        ports = lines.put(port, frame(rng, to, source, size), bad)
        await lines.quiet()
        return ports

    a, b, c = station(1), station(2), station(3)
    assert await sent(0, b, a) == others, "nobody knows b"
    assert await sent(1, a, b) == [0]
    assert await sent(0, b, a) == [1]
    assert await sent(0, a, c) == [], "a is where the frame came"
    assert await sent(2, b, a) == [1], "a has moved"
    assert await sent(1, a, b) == [2]
    # Groups: never learned, always to all
    assert await sent(2, ALL, b) == [0, 1], "b has moved, too"
    assert await sent(1, GROUP, GROUP) == [0, 2]
    assert await sent(0, GROUP, a) == others
    assert await sent(2, a, a) == [], "a has moved, and the frame is for itself"
    # Nothing damaged, too short or too long is learned or passed.
    assert await sent(1, c, a, bad=True) == []
    assert await sent(1, c, a, size=59) == []
    assert await sent(1, c, a, size=LARGEST + 1) == []
    assert await sent(0, a, c) == [2], "a has not moved"
    assert lines.dropped == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def learns_from_frames_for_the_card(dut):
    """Datagrams, ARP requests and refused packets to the card are not passed, but their senders are known."""
    rng = random.Random(2)
    lines = Lines(dut)
    await lines.start()
    host, asker = mac_bytes("06:11:22:33:44:55"), mac_bytes("06:11:22:33:44:55")
    for port, (whole, _) in enumerate(
        [datagram_frame(rng, payload=8), arp_frame(rng), datagram_frame(rng, ["udp_checksum"])]
    ):
        assert whole[6:12] == host
        assert lines.put(port, whole) == []
        await lines.quiet()
        other = (port + 1) % lines.ports
        assert lines.put(other, frame(rng, host, station(other))) == [port]
        await lines.quiet()
    # ARP: the sender that is learned is the frame's, not that of its ARP part.
    assert lines.put(0, frame(rng, mac_bytes("06:00:00:00:00:77"), station(0))) == [1, 2]
    # Requests for others pass; what the card does not take at its own address leaves nowhere.
    assert lines.put(0, arp_frame(rng, wanted=HOST)[0]) == [1, 2]
    for fault in ["vlan", "ipv6"]:
        assert lines.put(0, datagram_frame(rng, [fault])[0]) == []
    await lines.quiet()
    assert lines.dropped == 0


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def keeps_its_latency(dut):
    """The first word leaves LATENCY cycles after the last came; a copy follows another without a pause."""
    rng = random.Random(3)
    lines = Lines(dut)
    await lines.start()
    await settle(lines, rng)
    for size in [60, 61, 64, 65, 128, 1514, LARGEST]:
        for to, ports in [(station(1), [1]), (ALL, [1, 2])]:
            lines.left.clear()
            whole = frame(rng, to, station(0), size)
            assert lines.put(0, whole) == ports
            await lines.quiet()
            (ended,) = [cycle for cycle, sent in lines.ended[0].items() if sent == whole]
            words = -(-size // lines.size)
            for n, (port, _, first, last) in enumerate(lines.left):
                assert (port, first) == (ports[n], ended + LATENCY + n * words)
                assert last == first + words - 1


# -- Traffic


@cocotb.test(timeout_time=8, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def passes_any_traffic(dut, idle, stall):
    """Frames of all ports to stations and groups: whole, in order, or dropped and counted. Nothing damaged is learned."""
    rng = random.Random(f"{idle} {stall}")
    ports = int(dut.PORTS.value)
    lines = Lines(dut, [PATTERNS[idle]() for _ in range(ports)], [PATTERNS[stall]() for _ in range(ports)])
    await lines.start()
    await settle(lines, rng)
    for _ in range(60):
        for port in range(ports):
            to = rng.choice([station(n) for n in range(ports)] + [station(99), GROUP, ALL, mac_bytes(MAC)])
            bad, size = rng.random() < 0.1, rng.randrange(14, 60) if rng.random() < 0.1 else None
            source = rng.randrange(ports) if bad or size else port
            lines.put(port, frame(rng, to, station(source), size), bad)
    for port in range(ports):
        lines.put(port, frame(rng, ALL, station((port + 1) % ports), LARGEST + 1))
    await lines.quiet()
    assert lines.passed > 20 * ports
    assert lines.dropped or idle != "never" or stall != "mostly"


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def keeps_the_rate(dut):
    """All ports receive frames back to back, each for one other port: none is lost, and words leave every cycle."""
    rng = random.Random(4)
    lines = Lines(dut)
    await lines.start()
    await settle(lines, rng)
    # The table serves a frame a cycle, of all ports, and a store begins one every other cycle.
    sizes = [60, 61, 65, 128, 129, 193, 1514, LARGEST]
    for size in [size for size in sizes if -(-size // lines.size) >= max(lines.ports, 2)]:
        lines.left.clear()
        count = 30 if size < 200 else 3
        for n in range(count):
            for port in range(lines.ports):
                lines.put(port, frame(rng, station((port + 1) % lines.ports), station(port), size))
        await lines.quiet()
        assert lines.dropped == 0
        words = -(-size // lines.size)
        for port in range(lines.ports):
            mine = [(first, last) for out, _, first, last in lines.left if out == port]
            assert len(mine) == count
            assert mine[-1][1] - mine[0][0] + 1 == count * words, f"port {port}: idle cycles between frames"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def passes_short_frames_in_wide_words(dut):
    """A frame of one word every other cycle of each of two ports: all that the table and the stores can take."""
    rng = random.Random(9)
    lines = Lines(dut, [PATTERNS["alternate"]() for _ in range(2)])
    await lines.start()
    await settle(lines, rng)
    lines.left.clear()
    for _ in range(200):
        for port in range(2):
            lines.put(port, frame(rng, station(1 - port), station(port), rng.choice([60, 64])))
    await lines.quiet()
    assert lines.dropped == 0
    first = min(first for _, _, first, _ in lines.left)
    assert max(last for _, _, _, last in lines.left) <= first + 2 * 200


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def serves_outputs_in_turns(dut):
    """Ports that send to the same port have the same share of it."""
    rng = random.Random(5)
    lines = Lines(dut)
    await lines.start()
    await settle(lines, rng)
    lines.left.clear()
    for n in range(6):
        for port in (1, 2):
            lines.put(port, frame(rng, station(0), station(port), 80))
    await lines.quiet()
    order = [lines.source[whole] for _, whole, _, _ in lines.left]
    assert order == [1, 2] * 6 or order == [2, 1] * 6


# -- Full queues


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def a_blocked_port_holds_up_no_other(dut):
    """While port 0 takes nothing: its senders' frames wait, up to two of the largest; all others pass."""
    rng = random.Random(6)
    gate = Gate()
    ports = int(dut.PORTS.value)
    lines = Lines(dut, None, [gate] + [never() for _ in range(ports - 1)])
    await lines.start()
    await settle(lines, rng)
    gate.closed = True
    for _ in range(2):
        lines.put(1, frame(rng, station(0), station(1), LARGEST))
    for _ in range(60):
        lines.put(2, frame(rng, station(1), station(2), 70))
        lines.put(0, frame(rng, station(2), station(0), 70))
    await ClockCycles(dut.clk, 3 * LARGEST // lines.size + 400)
    assert lines.dropped == 0, "two of the largest frames have a place"
    assert not lines.want[2, 1] and not lines.want[0, 2], "other ports pass frames"
    # More finds no place, is counted, and leaves no trace.
    while lines.dropped < 3:
        lines.put(1, frame(rng, station(2), station(1), LARGEST))
        await ClockCycles(dut.clk, LARGEST // lines.size + 30)
    waiting = len(lines.want[1, 0]) + len(lines.want[1, 2])
    assert 2 <= waiting <= 4
    gate.closed = False
    await lines.quiet()
    dropped = lines.dropped
    lines.put(1, frame(rng, station(0), station(1), LARGEST))
    await lines.quiet()
    assert lines.dropped == dropped, "there is room again"


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def holds_many_small_frames(dut):
    """A blocked port's sender has a place for 2^FRAME_BITS frames, and those that have left the memory."""
    rng = random.Random(7)
    gate = Gate()
    ports = int(dut.PORTS.value)
    lines = Lines(dut, None, [gate] + [never() for _ in range(ports - 1)])
    await lines.start()
    await settle(lines, rng)
    gate.closed = True
    places = 1 << int(dut.FRAME_BITS.value)
    for _ in range(places + 20):
        lines.put(1, frame(rng, station(0), station(1), 60))
    # A source is learned also from a frame that is dropped: its own port's is the last.
    lines.put(1, frame(rng, station(0), station(50), 60))
    while any(lines.queues):
        await RisingEdge(dut.clk)
    await ClockCycles(dut.clk, 60)
    held = len(lines.want[1, 0])
    assert lines.dropped == places + 21 - held and places <= held <= places + 8
    assert lines.put(2, frame(rng, station(50), station(2))) == [1]
    gate.closed = False
    await lines.quiet()
    dropped = lines.dropped
    for _ in range(places):
        lines.put(1, frame(rng, station(0), station(1), 60))
    await lines.quiet()
    assert lines.dropped == dropped, "there is room again"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def counts_what_the_table_cannot_serve(dut):
    """All ports receive a frame every cycle, more than the table serves: the rest is dropped, counted and no more."""
    rng = random.Random(8)
    lines = Lines(dut)
    await lines.start()
    await settle(lines, rng)
    count = 100
    for _ in range(count):
        for port in range(lines.ports):
            lines.put(port, frame(rng, station((port + 1) % lines.ports), station(port), 60))
    await lines.quiet(rest=count * lines.ports)  # counters count one frame a cycle
    assert lines.dropped > 0 and lines.passed >= count


# -- The table alone

class Table:
    """agg_switch_table by its header: sets of two places, the newer one first."""

    def __init__(self, dut):
        self.dut = dut
        self.bits, self.ports = int(dut.SET_BITS.value), int(dut.PORTS.value)
        self.sets = {}  # [address, port] by set, the newest first
        self.gone = {}  # cycle and port of addresses whose place was taken
        self.now = 0
        self.due = {}  # by cycle: who asked, and the answers that are right
        self.answers = self.unicast = 0
        dut.s_valid.value = dut.s_learn.value = dut.s_pass.value = 0

    async def start(self):
        await start(self.dut)
        for _ in range((1 << self.bits) + 2):
            await RisingEdge(self.dut.clk)

    def set_of(self, address):
        """Returns the XOR of the address's parts, each as wide as a set's number."""
        number = 0
        while address:
            number ^= address & (1 << self.bits) - 1
            address >>= self.bits
        return number

    def port_of(self, address):
        return dict(self.sets.get(self.set_of(address), [])).get(address)

    async def operation(self, source, target, port, learn=True, asks=True):
        """Learns and looks up, in one cycle."""
        if learn:
            places = self.sets.setdefault(self.set_of(source), [])
            places[:] = [(source, port)] + [place for place in places if place[0] != source]
            if len(places) > 2:
                address, there = places.pop()
                self.gone[address] = self.now, there
        if asks:
            found = self.port_of(target)
            right = [self.leaves(found, port)]
            when, there = self.gone.get(target, (-9, None))
            if found is None and self.now - when <= 3:
                right.append(self.leaves(there, port))
            self.due[self.now + 4] = 1 << port, right
        dut = self.dut
        dut.s_valid.value, dut.s_learn.value, dut.s_pass.value = 1, int(learn), int(asks)
        dut.s_from.value, dut.s_to.value, dut.s_port.value = source, target, port
        await self.cycle()
        dut.s_valid.value = 0
        # Without valid, they mean nothing.
        dut.s_learn.value = dut.s_pass.value = 1

    def leaves(self, found, port):
        """Returns the ports where a frame leaves, as a vector. found: that of its station, if it is known."""
        ports = (1 << self.ports) - 1 if found is None else 1 << found
        return ports & ~(1 << port)

    async def cycle(self):
        await RisingEdge(self.dut.clk)
        asked, right = self.due.pop(self.now, (0, None))
        assert number(self.dut.m_valid) == asked, f"cycle {self.now}"
        if asked:
            answer = number(self.dut.m_ports)
            assert answer in right, f"cycle {self.now}: {answer:b}, not one of {right}"
            self.answers += 1
            self.unicast += answer.bit_count() == 1
        self.now += 1

    async def idle(self, cycles):
        for _ in range(cycles):
            await self.cycle()


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=["never", "at_random", "mostly"], addresses=[3, 4, 7, 12])
async def learns_and_finds(dut, idle, addresses):
    """Few addresses in few sets, in any order and from cycle to cycle: moves, and the older one that makes room."""
    rng = random.Random(f"{idle} {addresses}")
    table = Table(dut)
    await table.start()
    known = [rng.getrandbits(48) for _ in range(addresses)]
    pattern = PATTERNS[idle]()
    for _ in range(3000):
        while next(pattern):
            await table.cycle()
        learn, asks = rng.random() < 0.7, rng.random() < 0.9
        await table.operation(rng.choice(known), rng.choice(known), rng.randrange(table.ports), learn, asks)
    await table.idle(6)
    assert table.unicast > 300


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def compares_every_bit(dut):
    """An address that differs in one bit from one that is known is not known."""
    table = Table(dut)
    await table.start()
    address = 0x5A0F33CC9966
    await table.operation(address, address, 0)
    for bit in range(48):
        await table.operation(0, address ^ 1 << bit, 1, learn=False)
        await table.operation(0, address, 2, learn=False)
        # Also while it is under way
        await table.operation(address, address ^ 1 << bit, 0)
        await table.operation(address, address, 0)
    await table.idle(6)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def holds_as_many_as_it_says(dut):
    """Addresses in a row have places of their own, two for each set."""
    table = Table(dut)
    await table.start()
    base, count = 0x001122334400, 2 << table.bits
    order = [base + n for n in range(count)]
    random.Random(3).shuffle(order)
    for n, address in enumerate(order):
        await table.operation(address, address, n % table.ports, asks=False)
    for n, address in enumerate(order):
        assert table.port_of(address) == n % table.ports
        await table.operation(0, address, (n + 1) % table.ports, learn=False)
    await table.idle(6)
    assert table.unicast == count


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def forgets_what_is_silent(dut):
    """An address is kept for a period of silence, and forgotten after two; each frame begins them again."""
    table = Table(dut)
    await table.start()
    period = int(dut.CLOCK_KHZ.value) * int(dut.AGE_MS.value)
    for _ in range(5):
        await table.operation(7, 7, 1)
        await table.idle(period * 9 // 10)
        await table.operation(0, 7, 0, learn=False)
    await table.idle(2 * period)
    table.sets.clear()
    await table.operation(0, 7, 0, learn=False)
    await table.operation(7, 0, 2)
    await table.operation(0, 7, 0, learn=False)
    await table.idle(6)
    assert table.unicast == 6


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def clears_itself(dut):
    """A reset forgets everything; operations find and learn nothing until the table is clear."""
    table = Table(dut)
    await table.start()
    for address in range(1, 40):
        await table.operation(address, address, 1)
    await table.idle(6)
    dut.rst.value = 1
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    table.sets.clear()
    table.gone.clear()
    for n in range(1 << table.bits):
        await table.operation(n % 40, n % 40, 1, learn=False)
        dut.s_learn.value = 1
    await table.idle(6)
    for n in range(1, 40):
        await table.operation(0, n, 0, learn=False)
    await table.idle(6)


def run_table(sets, tests, age_ms=300000, simulator="verilator"):
    run(
        "agg_switch_table",
        [leaf("agg_switch_table"), leaf("agg_ram")],
        {"PORTS": 5, "PORT_BITS": 3, "SET_BITS": sets, "CLOCK_KHZ": 10, "AGE_MS": age_ms},
        simulator=simulator,
        testcase=tests,
    )


def test_agg_switch_table():
    """One bit of the set alone: all addresses meet in two sets."""
    pairs = [(i, n) for i in ("never", "at_random", "mostly") for n in (3, 4, 7, 12)]
    run_table(1, [f"learns_and_finds/idle={i}/addresses={n}" for i, n in pairs] + ["compares_every_bit"])


def test_agg_switch_table_capacity():
    run_table(9, ["holds_as_many_as_it_says", "compares_every_bit"])


def test_agg_switch_table_forgets():
    run_table(3, ["clears_itself", "forgets_what_is_silent"], age_ms=50, simulator="icarus")


# -- Builds

SWITCH = [
    ROOT / "cocotb" / "ethernet_switch.v",
    *(leaf(f"agg_switch_{name}") for name in ("delay", "input", "requests", "store", "table")),
    *(leaf(f"agg_eth_{name}") for name in ("switch", "merge", "receive", "judge", "sum", "align")),
    *(leaf(name) for name in ("agg_crc32c", "agg_crc32c_check", "agg_ram", "agg_delay", "agg_tag_delay")),
]

DEPTH_BITS = {1: 15, 8: 12, 64: 9}  # two of the largest frames, by the bytes of a word

SEQUENCES = ["learns_where_stations_are", "learns_from_frames_for_the_card", "keeps_its_latency"]
QUEUES = ["a_blocked_port_holds_up_no_other", "holds_many_small_frames"]


def run_switch(ports, size, tests):
    run(
        "ethernet_switch",
        SWITCH,
        {"PORTS": ports, "BYTES": size, "DEPTH_BITS": DEPTH_BITS[size], "FRAME_BITS": 5, "SET_BITS": 6},
        simulator="verilator",
        testcase=tests,
    )


@pytest.mark.parametrize("size", [1, 8, 64])
def test_agg_eth_switch(size):
    idles = ["at_random", "never"] if size == 8 else ["at_random"]
    traffic = [f"passes_any_traffic/idle={i}/stall={s}" for i in idles for s in idles]
    run_switch(3, size, SEQUENCES + traffic + ["keeps_the_rate", "serves_outputs_in_turns"] + QUEUES)


@pytest.mark.parametrize("ports, size", [(2, 64), (8, 8)])
def test_agg_eth_switch_of_other_ports(ports, size):
    tests = ["passes_any_traffic/idle=bursts/stall=at_random"]
    tests += ["keeps_the_rate"]
    run_switch(ports, size, tests + (["passes_short_frames_in_wide_words"] if size == 64 else []))


def test_agg_eth_switch_overload():
    run_switch(4, 64, ["counts_what_the_table_cannot_serve"])
