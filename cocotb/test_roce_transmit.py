"""The way of sums to the wire under RoCEv2: agg_roce_sums, agg_roce_headers, agg_roce_transmit, with the stores between.

The frames are compared byte by byte with those of roce.py.
"""

import collections
import random
import zlib

import cocotb
import pytest
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

import model
import roce
import zwire
from bench import ROOT, bits, cycle, joined, leaf, number, run, start
from roce_headers import DUPLICATE, OWED, STORED, Writer, some_record
from streams import PATTERNS, StreamSource, packet

FIELDS = ("tdata", "tkeep", "tlast", "tuser", "tdest", "tslot")


class Transmitter:
    """The design: its members, the headers in it, its streams, and the frames that must leave each Ethernet port."""

    def __init__(self, dut, rng, idle="never", stall="never"):
        self.dut, self.rng = dut, rng
        self.ethernet, self.ports, self.jobs = len(dut.m_axis_tvalid), len(dut.s_axis_tdest), len(dut.job_on)
        self.width = len(dut.m_axis_tkeep) // self.ethernet
        self.beat, self.mtu = len(dut.s_axis_tkeep), int(dut.PAYLOAD.value)
        self.slots = 1 << len(dut.s_axis_tslot)
        self.own = rng.getrandbits(48)
        self.macs = [[rng.getrandbits(48) for _ in range(self.ports)] for _ in range(self.jobs)]
        self.at = [[rng.randrange(self.ethernet) for _ in range(self.ports)] for _ in range(self.jobs)]
        self.drive_members()
        dut.job_on.value = dut.job_epoch.value = 0
        self.writer = Writer(dut)
        self.source = StreamSource(dut, "s_axis", PATTERNS[idle](), FIELDS)
        self.stall = [PATTERNS[stall]() for _ in range(self.ethernet)]
        dut.m_axis_tready.value = 0
        self.headers = {}  # by port and slot
        self.want = [collections.deque() for _ in range(self.ethernet)]  # frames
        self.found = [b""] * self.ethernet  # of a frame that has not ended
        self.words = [[] for _ in range(self.ethernet)]  # the cycle of each word, and whether it is a frame's last
        self.packets = [0] * self.ethernet  # with a copy at the Ethernet port
        self.skips = [0] * self.ethernet
        self.left, self.skipped = [0] * self.ethernet, [0] * self.ethernet

    def drive_members(self):
        dut = self.dut
        dut.own_mac.value = self.own
        dut.member_mac.value = joined(48, [mac for job in self.macs for mac in job])
        behind = [at == e for e in range(self.ethernet) for job in self.at for at in job]
        dut.behind.value = joined(1, behind)

    async def start(self):
        await start(self.dut)
        cocotb.start_soon(self._run())

    def some_header(self, job, epoch, vid, size=None, **fields):
        """Returns a random record, that came to the card's MAC address or to another one. size: the payload's bytes."""
        own = f"{self.own:012x}"
        macs = [own, own[:-1] + f"{int(own[-1], 16) ^ 1:x}", f"{self.rng.getrandbits(48):012x}"]
        to = self.rng.choice([macs[0], macs[0], macs[1], macs[2]])
        sender = f"{self.rng.getrandbits(48):012x}"
        return some_record(self.rng, job, epoch, vid, size or self.mtu, to=to, sender=sender, **fields)

    async def set_header(self, port, slot, record, result=STORED):
        """A packet of a port sets the header of a slot."""
        await self.writer.put(port, slot, record, result, self.rng.randrange(self.ethernet))
        self.headers[port, slot] = record

    def frame(self, port, record, payload, ecn):
        """Returns the frame in which a sum leaves on the connection of a port."""
        own = self.own.to_bytes(6, "big")
        macs = None
        if record.header[:6] == own:
            macs = self.macs[record.job][port].to_bytes(6, "big").hex(), own.hex()
        return roce.leaving(record.header, payload, ecn, macs)

    def send(self, slot, job, epoch, vid, ports, payload=None, ecn=2, want=None):
        """Queues a sum of the core for the ports, and the frames that must leave.

        want: records by port; by default the slots' headers, if they are of the sum.
        """
        payload = self.rng.randbytes(self.mtu) if payload is None else payload
        header = {"version": 2, "kind": self.rng.choice([zwire.KIND_RESULT, zwire.KIND_REPLAY]), "flags": ecn}
        header |= {"job": job, "epoch": epoch, "vid": vid, "length": len(payload), "mask": self.rng.getrandbits(64)}
        header |= {"receivers": self.rng.getrandbits(64), "format": 1}
        words = [payload[i : i + self.beat] for i in range(0, len(payload), self.beat)]
        words = [int.from_bytes(word, "little") for word in words]
        dest = sum(1 << port for port in ports)
        fields = {"tuser": int.from_bytes(model.pack(header, 30)[:22], "little"), "tdest": dest, "tslot": slot}
        self.source.put(packet(words, keep=(1 << self.beat) - 1, **fields))
        if want is None:
            found = {port: self.headers.get((port, slot)) for port in ports}
            want = {p: r for p, r in found.items() if r is not None and (r.job, r.epoch, r.vid) == (job, epoch, vid)}
        for port in sorted(ports):
            e = self.at[job][port]
            if port in want:
                self.want[e].append(self.frame(port, want[port], payload, ecn))
            else:
                self.skips[e] += 1
        for e in {self.at[job][port] for port in ports}:
            self.packets[e] += 1

    def send_status(self, port):
        """Queues a status, of which nothing may leave."""
        header = {"version": 2, "kind": zwire.KIND_STATUS, "flags": 0, "job": 0, "epoch": 0, "vid": self.rng.getrandbits(32)}
        raw = int.from_bytes(model.pack(header, 22), "little")
        self.source.put(packet([self.rng.getrandbits(8 * self.beat)], keep=0, tuser=raw, tdest=1 << port, tslot=0))

    async def check(self):
        """Returns when all has left, and nothing else has."""
        await self.source.drained()
        for _ in range(100000):
            if not any(self.want):
                break
            await RisingEdge(self.dut.clk)
        await ClockCycles(self.dut.clk, 3 * self.mtu // self.width + 60)
        assert not any(self.want) and not any(self.found), "frames that did not leave"
        assert self.skipped == self.skips
        assert self.left == self.packets

    async def _run(self):
        """Takes the words that leave in every cycle."""
        dut, e_all = self.dut, range(self.ethernet)
        waits = [None] * self.ethernet
        while True:
            ready = [not next(stall) for stall in self.stall]
            dut.m_axis_tready.value = joined(1, ready)
            await ReadOnly()
            valid = number(dut.m_axis_tvalid)
            left, skipped = number(dut.left), number(dut.skipped)
            last = bits(dut.m_axis_tlast)[::-1]
            for e in e_all:
                self.left[e] += left >> e & 1
                self.skipped[e] += skipped >> e & 1
                if not valid >> e & 1:
                    assert waits[e] is None, "a word was offered and vanished"
                    continue
                data, keep = self._word(e)
                word = data, keep, last[e]
                assert waits[e] in (None, word), "a word changed while it waited"
                waits[e] = None if ready[e] else word
                if ready[e]:
                    self._take(e, *word)
            await RisingEdge(dut.clk)

    def _word(self, e):
        """Returns the kept bytes of an Ethernet port's word; the others may be X."""
        size = self.width
        keep = bits(self.dut.m_axis_tkeep)[::-1][size * e :][:size]
        count = keep.find("0") if "0" in keep else size
        assert keep == "1" * count + "0" * (size - count) and count, f"tkeep is {keep}"
        data = bits(self.dut.m_axis_tdata)
        data = data[len(data) - 8 * (size * e + count) : len(data) - 8 * size * e]
        return int(data, 2).to_bytes(count, "little"), count

    def _take(self, e, data, count, last):
        self.found[e] += data
        self.words[e].append((cycle() + 1, last == "1"))
        assert last == "1" or count == self.width, "a word before the last is not full"
        if last == "1":
            frame, self.found[e] = self.found[e], b""
            assert self.want[e], f"nobody asked for {frame.hex()}"
            want = self.want[e].popleft()
            assert frame == want, f"Ethernet port {e}: {differences(frame, want)}"


def differences(frame, want):
    """Returns the first bytes that differ."""
    places = [n for n, (a, b) in enumerate(zip(frame, want)) if a != b]
    return f"{len(frame)} bytes, not {len(want)}; differ at {places[:8]}: {frame[:80].hex()} not {want[:80].hex()}"


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def sends_sums_in_the_headers_of_their_receivers(dut, idle, stall):
    """Headers of all lengths and marks, one receiver or several, headers of other sums, statuses between, jobs of
    the largest MTU and of smaller ones."""
    rng = random.Random(f"{idle} {stall}")
    transmitter = Transmitter(dut, rng, idle, stall)
    await transmitter.start()
    free = []  # slots whose sums have left: only then may their headers be replaced
    for _ in range(10):
        if not free or rng.random() < 0.3:
            await transmitter.check()
            free = rng.sample(range(transmitter.slots), 4)
        slot, job = free.pop(), rng.randrange(transmitter.jobs)
        epoch, vid = rng.getrandbits(16), rng.getrandbits(32)
        size = rng.choice([mtu for mtu in roce.MTUS if mtu <= transmitter.mtu])
        ports = rng.sample(range(transmitter.ports), rng.choice([1, rng.randint(1, transmitter.ports)]))
        for port in ports:
            # Sometimes the slot has turned over, or has a header of an old epoch or of another job.
            other = rng.choice([0, 0, 0, 0, 1, 2, 3])
            tag = [job, epoch, vid]
            if other == 1:
                tag[2] ^= 1 << rng.randrange(32)
            elif other == 2:
                tag[1] ^= 1 << rng.randrange(16)
            elif other == 3 and transmitter.jobs > 1:
                tag[0] = (job + 1) % transmitter.jobs
            await transmitter.set_header(port, slot, transmitter.some_header(*tag, size))
        await ClockCycles(dut.clk, 6)
        if rng.random() < 0.3:
            transmitter.send_status(rng.randrange(transmitter.ports))
        payload = rng.choice([rng.randbytes(size), rng.randbytes(size), bytes(size), b"\xff" * size])
        transmitter.send(slot, job, epoch, vid, ports, payload, rng.randrange(4))
    await transmitter.check()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def writes_every_ecn_mark_and_checksum(dut):
    """The mark is the sum's, whatever the header has; IP's checksum is made anew, also if it comes to 0."""
    rng = random.Random(2)
    transmitter = Transmitter(dut, rng)
    await transmitter.start()
    for tos in range(4):
        for ecn in range(4):
            record = transmitter.some_header(0, 1, 1, tos=tos | rng.randrange(64) << 2)
            header = bytearray(record.header)
            header[14:34] = rng.choice([bytes(header[14:34]), b"\x45" + header[15:16] + b"\xff" * 18])
            if ecn == 2:  # the sum of the other words is 0xffff
                header[15] = header[15] & 0xFC | ecn
                header[30:32] = b"\0\0"
                header[30:32] = roce.ip_checksum(bytes(header[14:34]))
                assert roce.ip_checksum(bytes(header[14:34])) == b"\0\0"
            if ecn == 3:  # the first fold of the sum carries again
                header[15:16] = bytes([header[15] | 3])
                header[24:26] = header[32:34] = b"\0\0"
                header[26:32] = b"\xff" * 6
                total = sum(int.from_bytes(header[n : n + 2], "big") for n in range(14, 34, 2))
                header[32:34] = (0xFFFF - total % 0x10000).to_bytes(2, "big")
                assert total >> 16
            await transmitter.set_header(0, 0, type(record)(*record_fields(record, bytes(header), transmitter.mtu)))
            await ClockCycles(dut.clk, 6)
            transmitter.send(0, 0, 1, 1, [0], ecn=ecn)
            await transmitter.check()


def record_fields(record, header, size):
    return record.job, record.epoch, record.vid, header, roce.icrc_part(header, size)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def leaves_in_the_newest_header(dut):
    """While a frame waits, a repeat replaces the header of the sum behind it, and another slot's packet does not."""
    rng = random.Random(3)
    transmitter = Transmitter(dut, rng)
    closed = [True] * transmitter.ethernet
    transmitter.stall = [iter(lambda e=e: closed[e], None) for e in range(transmitter.ethernet)]
    await transmitter.start()
    e = transmitter.at[0][0]
    for port in range(transmitter.ports):
        transmitter.at[0][port] = e
    transmitter.drive_members()
    last = transmitter.ports - 1
    for result in (STORED, DUPLICATE, OWED):
        closed[e] = True
        old, new = (transmitter.some_header(0, 2, 7) for _ in range(2))
        await transmitter.set_header(0, 0, transmitter.some_header(0, 2, 7))
        await transmitter.set_header(last, transmitter.slots - 1, old)
        await ClockCycles(dut.clk, 6)
        for _ in range(3):  # the output, the frame, and the place before it are taken
            transmitter.send(0, 0, 2, 7, [0])
        transmitter.send(transmitter.slots - 1, 0, 2, 7, [last], want={last: new})
        await ClockCycles(dut.clk, 40)
        await transmitter.set_header(last, transmitter.slots - 1, new, result)
        await ClockCycles(dut.clk, 20)
        closed[e] = False
        await transmitter.check()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def nothing_leaves_of_a_slot_that_turned_over(dut):
    """The slot turns over after the core sent its sum. The frames behind leave, also those of the same sum."""
    rng = random.Random(4)
    transmitter = Transmitter(dut, rng)
    closed = [True] * transmitter.ethernet
    transmitter.stall = [iter(lambda e=e: closed[e], None) for e in range(transmitter.ethernet)]
    await transmitter.start()
    ports = range(transmitter.ports)
    for vid in range(4):
        for e in range(transmitter.ethernet):
            closed[e] = True
        for slot in (0, 1):
            for port in ports:
                await transmitter.set_header(port, slot, transmitter.some_header(0, 3, vid))
        await ClockCycles(dut.clk, 6)
        for _ in range(3):
            transmitter.send(0, 0, 3, vid, ports)
        turned = rng.sample(ports, rng.randint(1, transmitter.ports))
        want = {port: transmitter.headers[port, 1] for port in ports if port not in turned}
        transmitter.send(1, 0, 3, vid, ports, want=want)
        transmitter.send(0, 0, 3, vid, ports)
        await ClockCycles(dut.clk, 40)
        for port in turned:
            await transmitter.set_header(port, 1, transmitter.some_header(0, 3, vid + transmitter.slots))
        await ClockCycles(dut.clk, 20)
        for e in range(transmitter.ethernet):
            closed[e] = False
        await transmitter.check()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def sends_a_word_every_cycle(dut):
    """Sums for all Ethernet ports in step: no frame pauses, and none waits for the one before. Packets come meanwhile."""
    rng = random.Random(5)
    transmitter = Transmitter(dut, rng)
    for job in transmitter.at:
        job[:] = [port % transmitter.ethernet for port in range(transmitter.ports)]
    transmitter.drive_members()
    await transmitter.start()
    ports, count = range(transmitter.ports), min(transmitter.slots, 16)
    for slot in range(count):
        for port in ports:
            await transmitter.set_header(port, slot, transmitter.some_header(0, 1, slot))
    await ClockCycles(dut.clk, 6)
    for slot in range(count):
        transmitter.send(slot, 0, 1, slot, ports)
    repeats = cocotb.start_soon(keep_writing(transmitter, count))
    await transmitter.check()
    repeats.cancel()
    each = -(-transmitter.ports // transmitter.ethernet)  # frames of a sum at the busiest Ethernet ports
    comes = transmitter.mtu // min(transmitter.beat, transmitter.width) + 1  # cycles of a sum
    shortest = -(-(54 + transmitter.mtu + 4) // transmitter.width)  # words of a frame
    for e, words in enumerate(transmitter.words):
        taken = [when for when, _ in words]
        ends = [n for n, (_, last) in enumerate(words) if last]
        assert all(b == a + 1 for n, (a, b) in enumerate(zip(taken, taken[1:])) if n not in ends), "a pause in a frame"
        if transmitter.at[0].count(e) == each and each * shortest >= comes and transmitter.mtu >= 8 * transmitter.width:
            # All senders ask at once for their first headers: those frames may wait for each other.
            begins = ends[2 * each - 1] + 1
            pauses = taken[-1] - taken[begins] + 1 - (len(taken) - begins)
            assert pauses == 0, f"{pauses} cycles between {len(ends)} frames"


async def keep_writing(transmitter, slots):
    """Each packet that leaves has come: writes the headers again, as often as sums leave."""
    while True:
        for slot in range(slots):
            for port in range(transmitter.ports):
                await transmitter.writer.put(port, slot, transmitter.headers[port, slot], DUPLICATE)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def takes_known_cycles(dut):
    """A step a cycle enters, after a cycle for the header; the first word leaves some cycles after the last."""
    transmitter = Transmitter(dut, random.Random(6))
    await transmitter.start()
    record = transmitter.some_header(0, 1, 1)
    await transmitter.set_header(0, 0, record)
    await ClockCycles(dut.clk, 6)
    transmitter.send(0, 0, 1, 1, [0])
    await transmitter.check()
    step, accepted = min(transmitter.beat, transmitter.width), transmitter.source.accepted_at
    begins = accepted[0] - max(1, transmitter.beat // step)  # the cycle of the header
    assert accepted[-1] - begins == transmitter.mtu // step
    (first, _), *_ = transmitter.words[transmitter.at[0][0]]
    assert first - accepted[-1] == (14 if step <= 16 else 15), f"{first - accepted[-1]} cycles"


@cocotb.test()
async def continues_the_crc(dut):
    """agg_crc32 continues the CRC of Ethernet; each bit has its share."""
    rng = random.Random(7)
    size = len(dut.data) // 8
    for n in range(32 + 8 * size + 20):
        state, step = (1 << n) % (1 << 32), (1 << n >> 32) % (1 << 8 * size)
        if n >= 32 + 8 * size:
            state, step = rng.getrandbits(32), rng.getrandbits(8 * size)
        dut.crc_in.value, dut.data.value = state, step
        await cocotb.triggers.Timer(1, "ns")
        want = zlib.crc32(step.to_bytes(size, "little"), state ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
        assert number(dut.crc_out) == want


LEAVES = "crc32 roce_sums roce_headers roce_transmit packet_split datagram_store delay tag_delay"
SOURCES = [ROOT / "cocotb" / "roce_transmitter.v", *(leaf(f"agg_{name}") for name in LEAVES.split())]
EVERY_PAUSE = [(8, 16)]
WITH_X = [(64, 16)]


# Words of the frame, bytes of a beat, Ethernet ports, ports of the core, jobs, MTU
@pytest.mark.parametrize(
    "width, beat, ethernet, ports, jobs, mtu",
    [(1, 1, 1, 2, 1, 256), (1, 16, 2, 3, 2, 256), (8, 16, 2, 4, 2, 256), (8, 1, 1, 1, 1, 512), (8, 64, 3, 8, 3, 256)]
    + [(64, 64, 8, 8, 1, 1024), (64, 16, 1, 3, 2, 256), (64, 128, 3, 5, 2, 512)],
)
def test_agg_roce_transmit(width, beat, ethernet, ports, jobs, mtu):
    parameters = {"BYTES": width, "BEAT_BYTES": beat, "ETHERNET": ethernet, "PORTS": ports, "JOBS": jobs, "PAYLOAD": mtu}
    parameters |= {"PORT_BITS": max(1, (ports - 1).bit_length()), "JOB_BITS": max(1, (jobs - 1).bit_length())}
    pauses = PATTERNS if (width, beat) in EVERY_PAUSE else ["at_random"]
    random_tests = [f"sends_sums_in_the_headers_of_their_receivers/idle={i}/stall={s}" for i in pauses for s in pauses]
    others = "writes_every_ecn_mark_and_checksum leaves_in_the_newest_header nothing_leaves_of_a_slot_that_turned_over"
    others += " takes_known_cycles sends_a_word_every_cycle"
    simulator = "icarus" if (width, beat) in WITH_X else "verilator"
    run("roce_transmitter", SOURCES, parameters, simulator=simulator, testcase=random_tests + others.split())


@pytest.mark.parametrize("size", [1, 8, 64])
def test_agg_crc32(size):
    run("agg_crc32", parameters={"BYTES": size}, testcase="continues_the_crc")
