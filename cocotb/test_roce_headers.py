"""agg_roce_headers: a packet's record becomes the header of its port and slot when the core's verdict keeps it."""

import collections
import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from bench import joined, leaf, number, run, start
from roce_headers import DUPLICATE, FLUSHED, KEPT, OWED, RECORD_BITS, REFUSED, STORED, Record, Writer, some_record

PLACES = 8  # of an Ethernet port
ENTERED = 16  # packets in a port of the core
WRITTEN = 5  # cycles from a verdict until its record can be read
READ = 3  # cycles from read_ready to read_done


class Design:
    """The design's sizes, and its quiet inputs."""

    def __init__(self, dut):
        self.dut = dut
        self.ethernet, self.ports, self.jobs = len(dut.s_record_valid), len(dut.enter_tvalid), len(dut.job_on)
        self.port_bits, self.slot_bits = int(dut.PORT_BITS.value), int(dut.SLOT_BITS.value)
        self.place_bits = len(dut.s_record_place) // self.ethernet
        dut.read_valid.value = dut.read_port.value = dut.read_slot.value = 0
        self.epochs = [0] * self.jobs
        self.on = [1] * self.jobs
        self.show_jobs()

    def show_jobs(self):
        self.dut.job_on.value = joined(1, self.on)
        self.dut.job_epoch.value = joined(16, self.epochs)

    def ask(self, wants):
        """Asks for rows: {ethernet: (port, slot)}."""
        ports = slots = 0
        for e, (port, slot) in wants.items():
            ports |= port << self.port_bits * e
            slots |= slot << self.slot_bits * e
        self.dut.read_valid.value = sum(1 << e for e in wants)
        self.dut.read_port.value, self.dut.read_slot.value = ports, slots

    def done(self):
        """Returns the Ethernet port whose read is done, or None, and the record with its tag."""
        done = number(self.dut.read_done)
        if done == 0:
            return None, None
        assert done & (done - 1) == 0, f"reads of several at once: {done:b}"
        bits = number(self.dut.read_tag) << RECORD_BITS | number(self.dut.read_record)
        return done.bit_length() - 1, bits


def newer(vid, than):
    """Returns whether a VID is above another one, or equal, in serial arithmetic."""
    return (vid - than) % (1 << 32) < 1 << 31


class Traffic:
    """Random packets from all Ethernet ports to all ports of the core, their verdicts, and reads; and what must come."""

    def __init__(self, dut, rng):
        self.design, self.dut, self.rng = Design(dut), dut, rng
        d = self.design
        self.now = 0
        self.offered = [None] * d.ethernet  # record, port and slot
        self.used = [set() for _ in range(d.ethernet)]  # places
        self.way = [collections.deque() for _ in range(d.ethernet)]  # taken: record, port, slot, place
        self.entering = [None] * d.ports  # packet and beats that are left
        self.entered = [collections.deque() for _ in range(d.ports)]  # packet, and when it entered
        self.freed = []  # cycle, Ethernet port and place
        self.rows = collections.defaultdict(list)  # by port and slot: (from which cycle, record), in order
        self.reads = [None] * d.ethernet  # what is asked for
        self.open_reads = collections.deque()  # ethernet, row, cycle of the grant
        self.newest = [0] * d.jobs
        self.stored = collections.defaultdict(list)  # by cycle
        self.vid = [rng.choice([0, (1 << 32) - 8])] * d.jobs
        self.seen = collections.Counter()

    def some_packet(self):
        d, rng = self.design, self.rng
        job = rng.randrange(d.jobs)
        self.vid[job] = (self.vid[job] + rng.choice([0, 1, 1, 2])) % (1 << 32)
        vid = (self.vid[job] - rng.choice([0, 0, 1, 3])) % (1 << 32)
        record = some_record(rng, job, d.epochs[job], vid, 16)
        return record, rng.randrange(d.ports), rng.randrange(min(4, 1 << d.slot_bits))

    async def run(self, cycles, verdicts, reads):
        """Runs for some cycles. verdicts, reads: the chance of one in a cycle."""
        for _ in range(cycles):
            self.offer()
            self.enter()
            self.judge(verdicts)
            self.ask(reads)
            await ReadOnly()
            self.sample()
            await RisingEdge(self.dut.clk)
            self.now += 1

    def offer(self):
        d = self.design
        for e in range(d.ethernet):
            if self.offered[e] is None and self.rng.random() < 0.7:
                self.offered[e] = self.some_packet()
        bits = 0
        for e, offer in enumerate(self.offered):
            if offer is not None:
                bits |= offer[0].bits() << len(self.dut.s_record) // d.ethernet * e
        self.dut.s_record.value = bits
        self.dut.s_record_valid.value = joined(1, [offer is not None for offer in self.offered])

    def enter(self):
        """Packets of an Ethernet port arrive in order. They meet those of others at the ports of the core."""
        rng, valid, ready, last, places = self.rng, 0, 0, 0, 0
        for e in rng.sample(range(self.design.ethernet), self.design.ethernet):
            way = self.way[e]
            if way and rng.random() < 0.5:
                port = way[0][1]
                if self.entering[port] is None and len(self.entered[port]) < ENTERED - 1:
                    self.entering[port] = [way.popleft(), rng.randint(1, 3), True]
        for port, packet in enumerate(self.entering):
            offers, takes = rng.random() < 0.8, rng.random() < 0.8
            place = rng.getrandbits(self.design.place_bits)
            if packet is not None and packet[2] and offers:
                place = packet[0][3]
            places |= place << self.design.place_bits * port
            ready |= takes << port
            if packet is None or not offers:
                continue
            valid |= 1 << port
            last |= (packet[1] == 1) << port
            if takes:
                if packet[2]:
                    self.entered[port].append((packet[0], self.now))
                packet[1], packet[2] = packet[1] - 1, False
                if packet[1] == 0:
                    self.entering[port] = None
        dut = self.dut
        dut.enter_tvalid.value, dut.enter_tready.value = valid, ready
        dut.enter_tlast.value, dut.enter_place.value = last, places

    def judge(self, chance):
        rng, dut = self.rng, self.dut
        ports = [p for p, queue in enumerate(self.entered) if queue and self.now - queue[0][1] >= 2]
        judges = bool(ports) and rng.random() < chance
        port = rng.choice(ports) if judges else rng.randrange(self.design.ports)
        result, slot = rng.choice([STORED] * 4 + [DUPLICATE, OWED, REFUSED, FLUSHED]), 0
        if judges:
            (record, _, slot, place), _ = self.entered[port].popleft()
            self.freed.append((self.now + WRITTEN - 1, place >> 3, place))
            self.seen[result] += 1
            if result in KEPT:
                self.rows[port, slot].append((self.now + WRITTEN, record))
            if result == STORED:
                self.stored[self.now + WRITTEN - 1].append(record)
        dut.verdict_valid.value, dut.verdict_port.value = int(judges), port
        dut.verdict_slot.value, dut.verdict_result.value = slot, result

    def ask(self, chance):
        known = [row for row, found in self.rows.items() if found[0][0] <= self.now]
        wants = {}
        for e in range(self.design.ethernet):
            if self.reads[e] is None and known and self.rng.random() < chance:
                fresh = [row for row in known if self.rows[row][-1][0] >= self.now - 2]  # to meet a write
                self.reads[e] = self.rng.choice(fresh if fresh and self.rng.random() < 0.5 else known)
            if self.reads[e] is not None:
                wants[e] = self.reads[e]
        self.design.ask(wants)

    def sample(self):
        d, dut = self.design, self.dut
        self.check_newest()
        freed = [(e, place) for when, e, place in self.freed if when <= self.now]
        self.freed = [entry for entry in self.freed if entry[0] > self.now]
        for e, place in freed:
            self.used[e].remove(place)
        taken = number(dut.s_record_ready)
        could = [e for e in range(d.ethernet) if self.offered[e] is not None and len(self.used[e]) < PLACES]
        assert taken & (taken - 1) == 0 and bool(taken) == bool(could), f"{taken:b} of {could}"
        if taken:
            e = taken.bit_length() - 1
            assert e in could
            place = number(dut.s_record_place) >> d.place_bits * e & (1 << d.place_bits) - 1
            assert place not in self.used[e] and place >> 3 == e
            self.used[e].add(place)
            self.way[e].append((*self.offered[e], place))
            self.offered[e] = None
        self.check_reads()

    def check_newest(self):
        d = self.design
        for job in range(d.jobs):
            found = number(self.dut.newest_vid) >> 32 * job & 0xFFFFFFFF
            assert found == self.newest[job], f"newest VID {found:#x}, not {self.newest[job]:#x}"
        for record in self.stored.pop(self.now, []):
            job = record.job
            if record.epoch == d.epochs[job] and newer(record.vid, self.newest[job]):
                self.newest[job] = record.vid
                self.seen["newer"] += 1

    def check_reads(self):
        granted = number(self.dut.read_ready)
        assert granted & (granted - 1) == 0
        if granted:
            e = granted.bit_length() - 1
            assert self.reads[e] is not None, "a read that nobody asked for"
            self.open_reads.append((e, self.reads[e], self.now))
            self.reads[e] = None
        e, bits = self.design.done()
        if e is None:
            assert not self.open_reads or self.now < self.open_reads[0][2] + READ + 5, "a read is not done"
            return
        asker, row, when = self.open_reads.popleft()
        assert asker == e and self.now >= when + READ
        # What the row has held since the grant
        found = self.rows[row]
        since = max(i for i, (at, _) in enumerate(found) if at <= when)
        could = [record.bits() for at, record in found[since:] if at <= self.now]
        assert bits in could, "not the row's record"
        self.seen["read"] += 1
        self.seen["replaced"] += len(could) > 1


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(seed=[1, 2, 3])
async def keeps_the_records_of_packets(dut, seed):
    """Records from several Ethernet ports, packets that meet at a port of the core, verdicts and reads at any time."""
    rng = random.Random(seed)
    Writer(dut)
    traffic = Traffic(dut, rng)
    await start(dut)
    for verdicts, reads in [(0.5, 0.3), (1, 1), (0.1, 0.9), (0.7, 0.1)]:
        await traffic.run(1000, verdicts, reads)
    assert min(traffic.seen[result] for result in range(5)) > 20, traffic.seen
    assert traffic.seen["read"] > 300 and traffic.seen["replaced"] > 20 and traffic.seen["newer"] > 50, traffic.seen


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_read_meets_a_write(dut):
    """A read of a row that is written around the same cycle returns one of both records, whole."""
    rng = random.Random(4)
    design, writer = Design(dut), Writer(dut)
    await start(dut)
    old = Record(0, 0, 1, bytes(74), 0)
    new = Record(0, 1, (1 << 32) - 1, b"\xff" * 70, (1 << 32) - 1)
    late = 0
    for delay in range(10):
        for row in {(0, 0), (0, 1), (design.ports - 1, 0)}:
            await writer.put(0, 0, old)
            await writer.put(*row, old)
            await ClockCycles(dut.clk, WRITTEN)
            place = await writer.give(rng.randrange(design.ethernet), new)
            await writer.enter(0, place)
            done, asked = [], None
            for cycle in range(20):
                dut.verdict_valid.value, dut.verdict_port.value, dut.verdict_slot.value = int(cycle == 0), 0, 0
                dut.verdict_result.value = STORED
                design.ask({0: row} if cycle >= delay and asked is None else {})
                await ReadOnly()
                if number(dut.read_ready):
                    asked = cycle
                if number(dut.read_done):
                    done.append((cycle, design.done()[1]))
                await RisingEdge(dut.clk)
            assert asked == delay and len(done) == 1
            when, bits = done[0]
            same = row == (0, 0)
            assert bits == (new if same and when - 2 >= WRITTEN else old).bits(), f"{delay} {row}: in cycle {when}"
            late += when != asked + READ
            assert when == asked + READ or same, "a read waited for the write of another row"
    assert late == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def has_eight_places_for_each_ethernet_port(dut):
    """Without a place, a record waits. Any verdict frees the place of the port's oldest packet."""
    rng = random.Random(5)
    design, writer = Design(dut), Writer(dut)
    await start(dut)
    records = [some_record(rng, 0, 0, vid, 16) for vid in range(3 * PLACES)]
    for e in range(design.ethernet):
        places = [await writer.give(e, records[n]) for n in range(PLACES)]
        assert sorted(places) == list(range(PLACES * e, PLACES * (e + 1)))
        dut.s_record_valid.value = 1 << e
        for _ in range(8):
            await ReadOnly()
            assert number(dut.s_record_ready) == 0, "a place too many"
            await RisingEdge(dut.clk)
        dut.s_record_valid.value = 0
        for result in (STORED, DUPLICATE, OWED, REFUSED, FLUSHED):
            await writer.enter(0, places[result])
            await writer.judge(0, 1, result)
            assert await writer.give(e, records[PLACES + result]) == places[result]
        await ClockCycles(dut.clk, WRITTEN)
        design.ask({e: (0, 1)})
        await RisingEdge(dut.clk)
        design.ask({})
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        await ReadOnly()
        assert design.done() == (e, records[OWED].bits())
        await RisingEdge(dut.clk)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def serves_readers_and_records_in_turns(dut):
    """One read and one record a cycle; while all Ethernet ports ask, each has its turn."""
    rng = random.Random(6)
    design, writer = Design(dut), Writer(dut)
    await start(dut)
    await writer.put(0, 0, some_record(rng, 0, 0, 1, 16))
    await ClockCycles(dut.clk, WRITTEN)
    count = design.ethernet
    dut.s_record_valid.value = (1 << count) - 1
    design.ask({e: (0, 0) for e in range(count)})
    reads, records, done = [], [], []
    for cycle in range(4 * count + READ):
        if cycle == 4 * count:
            dut.s_record_valid.value = 0
            design.ask({})
        await ReadOnly()
        reads.append(number(dut.read_ready))
        records.append(number(dut.s_record_ready))
        done.append(number(dut.read_done))
        await RisingEdge(dut.clk)
    for turns in (reads, records, done[READ:]):
        assert all(sorted(turns[count * n :][:count]) == [1 << e for e in range(count)] for n in range(4)), turns


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_new_epoch_begins_at_vid_0(dut):
    """The newest VID is that of stored packets of the job's epoch; it wraps, and is 0 again in the next set-up."""
    rng = random.Random(7)
    design, writer = Design(dut), Writer(dut)
    job = design.jobs - 1
    design.epochs[job] = 5
    design.show_jobs()
    await start(dut)

    async def newest(vid, result=STORED, epoch=5):
        await writer.put(0, 0, some_record(rng, job, epoch, vid, 16), result)
        await ClockCycles(dut.clk, WRITTEN)
        found = number(dut.newest_vid)
        assert all(found >> 32 * j & 0xFFFFFFFF == 0 for j in range(design.jobs - 1))
        return found >> 32 * job

    assert await newest(7) == 7
    assert await newest(5) == 7  # late
    assert await newest(9, DUPLICATE) == await newest(9, OWED) == await newest(9, REFUSED) == 7
    assert await newest(12, epoch=4) == 7  # of another set-up
    assert await newest((1 << 31) + 6) == (1 << 31) + 6
    assert await newest((1 << 32) - 1) == (1 << 32) - 1
    assert await newest(3) == 3  # it wraps
    design.epochs[job] = 6
    design.show_jobs()
    await ReadOnly()
    assert number(dut.newest_vid) == 0, "the VID of another epoch"
    await RisingEdge(dut.clk)
    assert await newest(1 << 20, epoch=5) == 0
    assert await newest(2, epoch=6) == 2
    design.on[job] = 0
    design.show_jobs()
    await ReadOnly()
    assert number(dut.newest_vid) == 0, "the VID of a job that is not set up"
    await RisingEdge(dut.clk)
    design.on[job] = 1
    design.show_jobs()
    await ClockCycles(dut.clk, 3)
    assert number(dut.newest_vid) == 0


@pytest.mark.parametrize("ethernet, ports, jobs, slot_bits", [(1, 1, 1, 1), (1, 4, 2, 3), (3, 5, 3, 5), (8, 8, 2, 4)])
def test_agg_roce_headers(ethernet, ports, jobs, slot_bits):
    parameters = {"ETHERNET": ethernet, "PORTS": ports, "JOBS": jobs, "SLOT_BITS": slot_bits}
    parameters |= {"PORT_BITS": max(1, (ports - 1).bit_length()), "JOB_BITS": max(1, (jobs - 1).bit_length())}
    run("agg_roce_headers", [leaf("agg_roce_headers")], parameters)
