"""agg_connection_check: packets of connections become data of their job, as ROCE.md says."""

import collections
import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

import model
import zwire
from bench import joined, number, run, start
from streams import PATTERNS, StreamSink, StreamSource

FORMAT = 2
BEAT = ("axis_tdata", "axis_tkeep", "axis_tlast", "axis_theader", "axis_tdest")
# Of a descriptor, the lowest first; the record is icrc_part, code and header.
RECORD_BITS = 626


class Check:
    """Packets on their way to the core, and what must leave of them: beats, and a record with its tag."""

    def __init__(self, dut, rng, idle="never", stall="never", records="never", held="never"):
        self.dut, self.rng = dut, rng
        self.jobs, self.ports = len(dut.newest_vid) // 32, len(dut.m_axis_tdest)
        self.size, self.element = len(dut.m_axis_tkeep), int(dut.ELEM_BYTES.value)
        self.job_bits, self.port_bits = int(dut.JOB_BITS.value), int(dut.PORT_BITS.value)
        self.stall, self.hold = PATTERNS[records](), PATTERNS[held]()
        self.records = collections.deque()  # that are due
        self.want = collections.deque()  # packets whose record is taken, or due: beats without their place
        self.places = collections.deque()  # of packets whose first beat has not left
        self.open = self.leaving = False  # a packet was taken, or has left, in part
        self.here = 0  # packets that were taken in part, and whose end has not left
        self.packets = self.held = 0  # that left; cycles in which one was held
        self.source = StreamSource(dut, "s_axis", PATTERNS[idle](), ("tdata", "tpayload", "tlast", "tuser"))
        self.sink = StreamSink(dut, "m", PATTERNS[stall](), BEAT, "axis_tvalid", "axis_tready", to=self.leaves)
        dut.hold.value = dut.m_record_ready.value = dut.record_place.value = 0
        self.newest = self.ranks = ()
        self.change()

    async def start(self):
        await start(self.dut)
        cocotb.start_soon(self.watch())

    def change(self, newest=None):
        """Draws the state of all jobs anew."""
        rng, dut = self.rng, self.dut
        self.newest = [rng.randrange(1 << 32) if newest is None else newest for _ in range(self.jobs)]
        self.ranks = [rng.randrange(256) for _ in range(self.jobs * self.ports)]
        dut.newest_vid.value = joined(32, self.newest)
        dut.rank_of_port.value = joined(8, self.ranks)

    def send(self, words, **fields):
        """Queues a packet of that many words; fields of its descriptor that are not given are random."""
        draw = self.rng.randrange
        fields = {"port": draw(self.ports), "job": draw(self.jobs), "offset": draw(1 << 24), "mtu": draw(5)} | fields
        fields = fields | {"epoch": draw(1 << 16), "ecn": draw(4), "record": self.rng.getrandbits(RECORD_BITS)}
        widths = self.widths()
        packed = at = 0
        for name, width in widths.items():
            packed |= fields[name] << at
            at += width
        for n in range(words):
            word = {"tdata": self.rng.getrandbits(8 * self.size), "tpayload": 1, "tlast": int(n == words - 1)}
            self.source.put(word | {"tuser": packed})

    def widths(self):
        return {"port": self.port_bits, "job": self.job_bits, "offset": 24, "epoch": 16, "mtu": 3, "ecn": 2, "record": RECORD_BITS}

    async def watch(self):
        """Follows packets and records, and changes the jobs."""
        dut, waits = self.dut, None
        while True:
            await RisingEdge(dut.clk)
            assert number(dut.busy) == bool(self.here)
            self.here -= number(dut.m_axis_tvalid) and number(dut.m_axis_tready) and number(dut.m_axis_tlast)
            if number(dut.s_axis_tvalid) and number(dut.s_axis_tready):
                assert self.open or not number(dut.hold), "a packet began while packets are held"
                self.takes()
            self.held += number(dut.hold) and number(dut.s_axis_tvalid) and not self.open
            offered = number(dut.m_record) if number(dut.m_record_valid) else None
            assert waits is None or offered == waits, "a record changed"
            waits = offered if not number(dut.m_record_ready) else None
            if offered is not None and number(dut.m_record_ready):
                assert offered == self.records.popleft()
                self.places.append(number(dut.record_place))
            dut.m_record_ready.value = int(not next(self.stall))
            dut.record_place.value = self.rng.randrange(1 << len(dut.record_place))
            if self.rng.random() < 0.2 and not self.records:
                self.change()
            dut.hold.value = int(next(self.hold))

    def takes(self):
        """A beat is taken: what must leave is known."""
        dut, fields, packed = self.dut, {}, number(self.dut.s_axis_tuser)
        for name, width in self.widths().items():
            fields[name] = packed % (1 << width)
            packed >>= width
        assert packed == 0
        job, port, last = fields["job"], fields["port"], number(dut.s_axis_tlast)
        if not self.open:
            self.here += 1
            vid = nearest(fields["offset"], self.newest[job])
            header = {
                "version": zwire.VERSION,
                "kind": zwire.KIND_DATA,
                "flags": fields["ecn"],
                "job": job,
                "format": FORMAT,
                "epoch": fields["epoch"],
                "rank": self.ranks[job * self.ports + port],
                "vid": vid,
                "length": (256 << fields["mtu"]) // self.element,
            }
            tag = job << 48 | fields["epoch"] << 32 | vid
            self.records.append(tag << RECORD_BITS | fields["record"])
            self.want.append((header, 1 << port, collections.deque()))
        beats = self.want[-1][2]
        beats.append(number(dut.s_axis_tdata))
        if last:
            beats.append(None)  # the end
        self.open = not last

    def leaves(self, beat):
        header, dest, beats = self.want[0]
        if not self.leaving:
            header["code"] = self.places.popleft()  # its record was taken before
        self.leaving = True
        word = beats.popleft()
        assert model.unpack(beat["axis_theader"].to_bytes(14, "little")) == header
        assert (beat["axis_tdest"], beat["axis_tlast"]) == (dest, int(word is None))
        if word is None:
            self.want.popleft()
            self.leaving = False
            self.packets += 1
        else:
            assert (beat["axis_tdata"], beat["axis_tkeep"]) == (word, (1 << self.size) - 1)

    async def drain(self):
        """Waits until every packet has left."""
        await self.source.drained()
        for _ in range(1000):
            await RisingEdge(self.dut.clk)
            if not self.want:
                break
        assert not (self.want or self.records or self.places)


def nearest(offset, newest):
    """Returns the VID with these low 24 bits that is nearest to the newest; of two, the lower."""
    block = newest >> 24
    candidates = [(block + n << 24) + offset for n in (-1, 0, 1)]
    return min(candidates, key=lambda vid: (abs(vid - newest), vid)) % (1 << 32)


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(
    idle=["never", "at_random"], stall=["never", "bursts", "at_random"], records=["never", "at_random"], held=["never", "bursts"]
)
async def makes_data_of_packets(dut, idle, stall, records, held):
    """Packets of every size that a word allows, while the jobs change."""
    check = Check(dut, random.Random(f"{idle} {stall} {records} {held}"), idle, stall, records, held)
    await check.start()
    for _ in range(150):
        check.send(check.rng.choice([1, 2, 3, 8]))
        if check.rng.random() < 0.1:
            await check.source.drained()
    await check.drain()
    assert check.packets == 150 and (held == "never" or check.held > 10)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def finds_the_nearest_vid(dut):
    """On both sides of the newest, and of each border of 24 bits."""
    check = Check(dut, random.Random(1))
    check.rng.random = lambda: 1.0  # the jobs change here alone
    await check.start()
    half = 1 << 23
    for newest in (0, 1, half - 1, half, half + 1, (1 << 24) - 1, 1 << 24, 0x12FFFFFF, 0xFFFFFFFF, 0xFF800000):
        check.change(newest)
        for distance in (0, 1, 2, 100, half - 1, half, half + 1, -1, -2, -100, 1 - half):
            check.send(1, offset=(newest + distance) % (1 << 24))
        await check.drain()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def takes_a_cycle_more_than_words(dut):
    """So a beat leaves in every cycle."""
    check = Check(dut, random.Random(2))
    await check.start()
    sizes = [4] * 5 + [1] * 5 + [2, 1, 3]
    for size in sizes:
        check.send(size)
    await check.drain()
    taken = check.sink.taken_at
    assert taken == list(range(taken[0], taken[0] + sum(sizes) + len(sizes)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def asks_once_for_a_place(dut):
    """The words of a packet whose record was taken leave while no record is."""
    check = Check(dut, random.Random(4), stall="at_random")
    await check.start()
    check.stall = iter(lambda: not check.records, None)
    for size in (1, 2, 4, 8) * 4:
        check.send(size)
        await check.drain()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def finishes_a_packet_while_held(dut):
    """A commit waits for the packet that has begun, so its other words are taken; the next one waits."""
    check = Check(dut, random.Random(3))
    await check.start()
    check.hold = iter(lambda: check.here > 0 or check.packets > 0, None)
    check.send(4)
    check.send(4)
    for _ in range(40):
        await RisingEdge(dut.clk)
    assert check.packets == 1 and not check.want and check.held > 10


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def forgets_at_a_reset(dut):
    """Wherever a packet is: its words, its end and its record are gone, and the next packet is a new one."""
    dut.hold.value, dut.s_axis_tvalid.value, dut.m_axis_tready.value, dut.m_record_ready.value = 0, 0, 0, 0
    dut.s_axis_tuser.value, dut.s_axis_tpayload.value, dut.record_place.value = 0, 1, 1
    dut.newest_vid.value, dut.rank_of_port.value = 0, 0
    await start(dut)
    for cycles in range(1, 14):
        dut.m_axis_tready.value, dut.m_record_ready.value = int(cycles % 2), int(cycles % 3 > 0)
        for n in range(cycles):  # packets of two words, and one that is open
            dut.s_axis_tvalid.value, dut.s_axis_tlast.value = 1, int(n % 2 and n != cycles - 1)
            await RisingEdge(dut.clk)
        dut.s_axis_tvalid.value, dut.rst.value = 0, 1
        await RisingEdge(dut.clk)
        dut.rst.value, dut.hold.value, dut.m_axis_tready.value, dut.m_record_ready.value = 0, 1, 1, 1
        dut.s_axis_tvalid.value, dut.s_axis_tlast.value = 1, 1
        for _ in range(8):
            await RisingEdge(dut.clk)
            quiet = [number(signal) for signal in (dut.m_axis_tvalid, dut.busy, dut.m_record_valid, dut.s_axis_tready)]
            assert quiet == [0, 0, 0, 0]
        dut.hold.value = 0
        await RisingEdge(dut.clk)
        dut.s_axis_tvalid.value = 0
        ends, records = [], 0
        for _ in range(8):
            await RisingEdge(dut.clk)
            records += number(dut.m_record_valid)
            if number(dut.m_axis_tvalid):
                ends.append(number(dut.m_axis_tlast))
        assert (ends, records) == ([0, 1], 1)


@pytest.mark.parametrize("ports, jobs, size, element", [(4, 3, 8, 4), (8, 1, 1, 1), (2, 2, 64, 2)])
def test_agg_connection_check(ports, jobs, size, element):
    run(
        "agg_connection_check",
        parameters={
            "PORTS": ports,
            "PORT_BITS": (ports - 1).bit_length(),
            "JOBS": jobs,
            "JOB_BITS": max(1, (jobs - 1).bit_length()),
            "BYTES": size,
            "ELEM_BYTES": element,
            "FORMAT": FORMAT,
        },
    )
