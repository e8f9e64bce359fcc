"""agg_roce_receive: each frame's verdict and payload, for beats of 1, 8 and 64 bytes, as ROCE.md says (roce.py)."""

import dataclasses
import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether

import roce
from bench import bits, leaf, number, run, start
from roce import ACKNOWLEDGE, CNP, CODES, DROPPED, NONE, REASONS, TAKEN, Connection, judge, packet
from streams import PATTERNS

LATENCY = 9  # from a frame's last beat to its verdict
HERE = 2  # the Ethernet port of the frames

# Connections whose addresses and numbers differ in a bit, and one whose source has no bit of another's; each is
# another member's.
CONNECTIONS = [
    Connection(0x0A000002, 0x000102, 0x0A000001, HERE, psn=0xFFFFF0, job=0, port=1, mtu=256, epoch=0xA5C3),
    Connection(0x0A000002, 0x000103, 0x0A000001, HERE, psn=0x000000, job=1, port=1, mtu=256, epoch=0x5A3C),
    Connection(0x0A000003, 0x000102, 0xF5FFFFFE, HERE, psn=0x7FFFFF, job=0, port=2, mtu=512),
    Connection(0x8A000001, 0x800102, 0x0A000003, HERE, psn=0x123456, job=1, port=3, mtu=1024),
    Connection(0x0A000001, 0x000002, 0x0B000003, HERE, psn=0xABCDEF, job=0, port=0, mtu=256),
    Connection(0x0A000009, 0x000002, 0x0A000001, HERE ^ 1, psn=0xABCDEF, job=0, port=3, mtu=256),
]


class Wire:
    """Sends frames, answers lookups, and compares words and verdicts with the model's."""

    def __init__(self, dut, idle="never", connections=CONNECTIONS, rng=None):
        self.dut, self.idle, self.connections = dut, PATTERNS[idle](), connections
        self.by_receiver = {(c.ip, c.qpn): c for c in connections}
        self.ips = {c.ip for c in connections}
        self.rng = rng or random.Random(1)
        self.size = len(dut.s_axis_tkeep)
        self.largest = int(dut.FRAME_BYTES.value)
        self.now = 0
        self.due = []  # cycle and verdict of the frames whose verdict has not come
        self.payload, self.ended = b"", False  # words since the last verdict
        self.seen = []  # kinds and reasons
        self.asked = (0, 0)  # the lookup of the cycle before
        dut.s_axis_tvalid.value = 0
        dut.ethernet_port.value = HERE

    async def send(self, frame, bad=False):
        """Sends a frame, with idle cycles where the pattern has them. Bytes behind it are random."""
        dut, size = self.dut, self.size
        data, keep, last_word, user = dut.s_axis_tdata, dut.s_axis_tkeep, dut.s_axis_tlast, dut.s_axis_tuser
        for at in range(0, len(frame), size):
            while next(self.idle):
                dut.s_axis_tvalid.value = 0
                await self.cycle()
            part, last = frame[at : at + size], at + size >= len(frame)
            dut.s_axis_tvalid.value, last_word.value = 1, int(last)
            data.value = int.from_bytes(part + self.rng.randbytes(size - len(part)), "little")
            keep.value = (1 << len(part)) - 1
            user.value = int(bad if last else not bad)  # counts with tlast alone
            if last:
                self.due.append((self.now + LATENCY, judge(frame, bad, self.largest, self.connections, HERE)))
            await self.cycle()
        dut.s_axis_tvalid.value = 0

    async def quiet(self):
        """Waits for all verdicts."""
        for _ in range(LATENCY + 2):
            await self.cycle()
        assert not self.due and not self.payload

    async def cycle(self):
        """Ends a cycle and looks at its outputs."""
        dut = self.dut
        await RisingEdge(dut.clk)
        self.look_up()
        if bits(dut.m_axis_tvalid) == "1":
            assert not self.ended or self.due[0][1].kind != TAKEN
            self.payload += int(bits(dut.m_axis_tdata), 2).to_bytes(self.size, "little")
            self.ended = bits(dut.m_axis_tlast) == "1"
        if bits(dut.m_verdict_valid) == "1":
            when, verdict = self.due.pop(0)
            assert when == self.now, f"the verdict {verdict} came in cycle {self.now}, not {when}"
            self.compare(verdict)
            self.payload, self.ended = b"", False
        else:
            assert not self.due or self.due[0][0] > self.now, f"no verdict {self.due[0]} in {self.now}"
        self.now += 1

    def look_up(self):
        """Answers the lookup of the cycle before, as the table would in the next cycle; the rest is random."""
        dut, rng = self.dut, self.rng
        found, same_ip = self.by_receiver.get(self.asked), self.asked[0] in self.ips
        self.asked = number(dut.lookup_ip), number(dut.lookup_qpn)
        dut.found.value, dut.found_ip.value = int(found is not None), int(same_ip)
        c = found or rng.choice(self.connections)
        dut.found_job.value, dut.found_port.value = c.job, c.port
        dut.found_source.value, dut.found_ethernet.value = c.source, c.ethernet
        dut.found_psn.value, dut.found_mtu.value, dut.found_epoch.value = c.psn, roce.MTUS.index(c.mtu), c.epoch

    def compare(self, want):
        """Compares a verdict, and the payload of a frame that is taken."""
        dut = self.dut
        kind, reason = number(dut.m_verdict_kind), REASONS[number(dut.m_verdict_reason)]
        assert (kind, reason) == (want.kind, want.reason), f"{kind} {reason} instead of {want}"
        self.seen.append(reason if kind == DROPPED else kind)
        if kind != TAKEN:
            return
        fields = unpack(number(dut.m_verdict_descriptor), len(dut.found_job), len(dut.found_port))
        assert fields == descriptor(want), f"{fields} instead of {descriptor(want)}"
        assert self.payload == want.payload and self.ended


def unpack(number, job_bits, port_bits):
    """Returns a descriptor's fields."""
    fields = {}
    widths = {"port": port_bits, "job": job_bits, "offset": 24, "epoch": 16, "mtu": 3, "ecn": 2, "header": 592, "code": 2, "part": 32}
    for name, width in widths.items():
        fields[name] = number % (1 << width)
        number >>= width
    assert number == 0
    return fields


def descriptor(verdict):
    """Returns the fields that a verdict has in its descriptor."""
    c = verdict.connection
    return {
        "port": c.port,
        "job": c.job,
        "offset": verdict.offset,
        "epoch": c.epoch,
        "mtu": roce.MTUS.index(c.mtu),
        "ecn": verdict.ecn,
        "header": int.from_bytes(verdict.header, "little"),
        "code": roce.HEADERS.index(len(verdict.header)),
        "part": verdict.part,
    }


# -- Frames ------------------------------------------------------------------------------------------


# Faults in the order of the checks, and what each makes of a data packet that has only that one.
FAULTS = {
    "fcs": NONE,
    "runt": NONE,
    "oversize": NONE,
    "vlan": "roce_hidden",
    "options": "roce_hidden",
    "ethertype": NONE,
    "tcp": NONE,
    "udp_port": NONE,
    "ip": NONE,
    "qpn": NONE,
    "acknowledge": NONE,
    "cnp": NONE,
    "ip_version": "roce_header",
    "ip_checksum": "roce_header",
    "more_fragments": "roce_header",
    "offset": "roce_header",
    "cut": "roce_header",
    "udp_longer": "roce_header",
    "udp_shorter": "roce_header",
    "version": "roce_header",
    "icrc": "roce_icrc",
    "source": "roce_source",
    "ethernet": "roce_source",
    "opcode": "roce_opcode",
    "shorter": "roce_length",
    "longer": "roce_length",
    "pad": "roce_length",
}

# A packet has one opcode, and an IP header one length.
EXCLUSIVE = [("acknowledge", "cnp"), ("acknowledge", "opcode"), ("cnp", "opcode"), ("options", "ip_version")]

OTHER_OPCODES = [op for op in range(256) if op not in CODES and op not in (ACKNOWLEDGE, CNP)]


def data(rng, faults=(), connection=None, largest=9018, **fields):
    """Returns a frame of a data packet with these faults, and whether its FCS is wrong."""
    c = connection or rng.choice(CONNECTIONS[:3])
    if "ethernet" in faults:
        c = dataclasses.replace(CONNECTIONS[5])
    size = c.mtu
    if "shorter" in faults:
        size = rng.choice([0, 1, c.mtu - 64, c.mtu - 4, c.mtu - 1, c.mtu // 2])
    if "longer" in faults:
        size = c.mtu + rng.choice([1, 4, 64, c.mtu])
    fields.setdefault("opcode", rng.choice(list(CODES)))
    if "opcode" in faults:
        fields["opcode"] = rng.choice(OTHER_OPCODES)
    if "acknowledge" in faults:
        fields["opcode"] = ACKNOWLEDGE
    if "cnp" in faults:
        fields["opcode"] = CNP
    if "udp_port" in faults:
        fields["port"] = roce.PORT ^ 1 << rng.randrange(16)
    if "ip" in faults:
        fields["ip"] = c.ip ^ 0x40 << rng.randrange(16)
    if "qpn" in faults:
        fields["qpn"] = c.qpn ^ 0x10 << rng.randrange(16)
    if "source" in faults:
        fields["source"] = c.source ^ 1 << rng.randrange(32)
    if "version" in faults:
        fields["version"] = rng.randrange(1, 16)
    if "pad" in faults:
        fields["pad"] = rng.randrange(1, 4)
    fields.setdefault("payload", rng.randbytes(size))
    fields.setdefault("psn", rng.randrange(1 << 24))
    frame = packet(rng, c, faults=faults, **fields)
    if "oversize" in faults:
        frame += rng.randbytes(largest + rng.choice([1, 2, 70]) - len(frame))
    if "runt" in faults:
        frame = frame[: rng.choice([1, 8, 14, 33, 54, 59])]
    return frame, "fcs" in faults


def short(rng, connection=None, opcode=ACKNOWLEDGE, size=4, **fields):
    """Returns a packet with few bytes behind the base transport header: an acknowledgement, or another."""
    c = connection or rng.choice(CONNECTIONS)
    return packet(rng, c, opcode=opcode, payload=rng.randbytes(size), extension=b"", psn=rng.randrange(1 << 24), **fields)


def some_frame(rng, largest):
    """Returns any frame: mostly with few faults, sometimes with damage anywhere or random."""
    which = rng.random()
    if which < 0.15:
        return short(rng, opcode=rng.choice([ACKNOWLEDGE, CNP, rng.randrange(256)]), size=rng.choice([0, 1, 4, 16])), False
    frame, bad = data(rng, rng.sample(list(FAULTS), rng.choice([0, 0, 0, 0, 1, 2])), largest=largest)
    if which < 0.3:  # one bit differs
        frame = flipped(frame, rng.randrange(8 * len(frame)))
    elif which < 0.35:  # of the headers
        frame = flipped(frame, rng.randrange(min(432, 8 * len(frame))))
    elif which < 0.45:  # a switch pads more
        frame += rng.randbytes(rng.choice([1, 4, 7, 64, 65]))
    elif which < 0.5:
        frame = rng.randbytes(rng.randrange(1, 150))
    elif which < 0.55:
        frame = frame[: rng.randrange(1, len(frame) + 1)]
    return frame, bad


def flipped(frame, place):
    """Returns the frame with another bit."""
    wrong = bytearray(frame)
    wrong[place // 8] ^= 1 << place % 8
    return bytes(wrong)


# -- Tests -------------------------------------------------------------------------------------------


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def takes_data_packets(dut):
    """Every opcode and MTU; the PSN wraps."""
    rng = random.Random(1)
    connections = [Connection(0x0A000001 + n, 5, 7, HERE, 0xFFFFFF - n, n % 2, n % 4, mtu) for n, mtu in enumerate(roce.MTUS)]
    wire = Wire(dut, connections=connections)
    await start(dut)
    for connection in connections if wire.size > 1 else connections[:2]:
        for opcode in CODES:
            psn = connection.psn + rng.choice([0, 1, 2, 0x7FFFFF, 0x800000])
            await wire.send(*data(rng, connection=connection, opcode=opcode, psn=psn))
    await wire.quiet()
    assert set(wire.seen) == {TAKEN}


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def first_fault_decides(dut):
    """Every fault alone, and with every later one (on the narrowest wire: with a few of them)."""
    rng = random.Random(2)
    wire = Wire(dut)
    await start(dut)
    names = list(FAULTS)
    for place, first in enumerate(names):
        later = names[place + 1 :]
        if wire.size == 1 or first == "oversize":
            later = rng.sample(later, min(2, len(later)))
        for second in [None, *later]:
            if (first, second) in EXCLUSIVE:
                continue
            hidden = first not in ("vlan", "options") or second not in ("ethertype", "tcp", "ip")
            await wire.send(*data(rng, {first, second}, largest=wire.largest))
            await wire.send(*data(rng, connection=CONNECTIONS[0]))
            await wire.quiet()
            assert wire.seen[-2:] == [FAULTS[first] if hidden else NONE, TAKEN], (first, second)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def passes_what_endpoints_answer(dut):
    """Acknowledgements and CNPs, padded or damaged: of a connection, to its endpoint, whatever else they have."""
    rng = random.Random(3)
    wire = Wire(dut)
    await start(dut)
    for connection in CONNECTIONS:
        for opcode, size in ((ACKNOWLEDGE, 4), (CNP, 16)):
            for faults in ((), ("icrc",), ("ip_checksum",), ("udp_longer",)):
                await wire.send(short(rng, connection, opcode, size, faults=faults))
                await wire.quiet()
                assert wire.seen.pop() == NONE
    for opcode in OTHER_OPCODES if wire.size > 1 else OTHER_OPCODES[:20]:  # READ, atomics and unknown ones
        await wire.send(short(rng, CONNECTIONS[0], opcode, rng.choice([4, 16, 28])))
        await wire.quiet()
        assert wire.seen.pop() == "roce_opcode"
    for inner in (b"\x86\xdd", b"\x81\0", b"\x08\1"):  # no IPv4 behind a tag
        frame, _ = data(rng, ["vlan"])
        await wire.send(frame[:16] + inner + frame[18:])
        await wire.quiet()
        assert wire.seen.pop() == NONE
    for size in range(12):  # without all of base transport header and ICRC, which are padding
        frame = bytearray(short(rng, CONNECTIONS[0], roce.SEND_ONLY, 0))
        frame[16:18], frame[38:40] = (32 + size).to_bytes(2, "big"), (12 + size).to_bytes(2, "big")
        frame[24:26] = roce.ip_checksum(frame[14:34])
        end = 14 + 32 + size - 4
        if end > 49:  # the ICRC is behind the QPN
            frame[end : end + 4] = roce.icrc(frame[:end])
        await wire.send(bytes(frame))
        await wire.quiet()
        assert wire.seen.pop() == "roce_header"


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def drops_damaged_packets(dut):
    """Every bit of some packets is wrong once. Bits that the ICRC leaves out change nothing, or are IP's."""
    rng = random.Random(4)
    wire = Wire(dut)
    await start(dut)
    free = {*range(8 * 12), *range(8 * 40, 8 * 42), *range(8 * 46, 8 * 47)}  # MAC addresses, UDP's checksum, byte 4
    for opcode in (roce.WRITE_ONLY_IMM, roce.SEND_FIRST) if wire.size > 8 else (roce.WRITE_ONLY,):
        frame, _ = data(rng, connection=CONNECTIONS[0], opcode=opcode)
        frame += rng.randbytes(3)
        places = range(8 * len(frame))
        for place in places if wire.size > 1 else [*places[: 8 * 54], *rng.sample(places, 50)]:
            await wire.send(flipped(frame, place))
            padding = place >= 8 * (len(frame) - 3)
            await wire.quiet()
            assert (wire.seen.pop() == TAKEN) == (place in free or padding), place


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def forgets_the_length_before(dut):
    """The length of an IP packet is unknown in a frame's first beats; that of the last frame is not it."""
    rng = random.Random(5)
    wire = Wire(dut)
    await start(dut)
    for length in [*range(20), *[0, 1, 2] * 3]:
        frame, _ = data(rng)
        await wire.send(frame[:16] + length.to_bytes(2, "big") + frame[18:])
        await wire.send(*data(rng, ["cut"]))
        await wire.quiet()
        await wire.send(frame[:16] + length.to_bytes(2, "big") + frame[18:])
        good = data(rng)
        await wire.send(*good)
        await wire.quiet()
        assert wire.seen[-4:-1] == ["roce_header"] * 3
        assert wire.seen[-1] == TAKEN


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(idle=["never", "alternate", "at_random"])
async def judges_any_frame(dut, idle):
    """Random frames, back to back and with idle cycles between and within."""
    rng = random.Random(idle)
    wire = Wire(dut, idle, rng=rng)
    await start(dut)
    for _ in range(600 if wire.size > 1 else 80):
        await wire.send(*some_frame(rng, wire.largest))
        if rng.random() < 0.1:
            await wire.quiet()
    await wire.quiet()
    assert wire.seen.count(TAKEN) > 10 and len(set(wire.seen)) > 5, set(wire.seen)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def keeps_the_rate(dut):
    """The shortest frames, the shortest packets and the largest ones in every cycle: no verdict is late."""
    rng = random.Random(6)
    wire = Wire(dut, connections=[CONNECTIONS[0], Connection(0x0A000007, 9, 7, HERE, mtu=4096)])
    await start(dut)
    for _ in range(4):
        for opcode in (roce.SEND_MIDDLE, roce.WRITE_ONLY_IMM, roce.SEND_LAST_IMM, roce.WRITE_FIRST):
            await wire.send(*data(rng, connection=CONNECTIONS[0], opcode=opcode))
        for size in (4, 0, 8, 20, 24):
            await wire.send(short(rng, CONNECTIONS[0], ACKNOWLEDGE, size))
            await wire.send(short(rng, CONNECTIONS[0], roce.SEND_ONLY, size))
    await wire.quiet()
    assert wire.seen.count(TAKEN) == 16 and wire.seen.count("roce_length") == 20
    # Runts in every cycle take nothing from the verdict before them.
    for size in (1, wire.size, min(2 * wire.size, 59)):
        for opcode in (roce.SEND_MIDDLE, roce.WRITE_ONLY_IMM):
            await wire.send(*data(rng, connection=CONNECTIONS[0], opcode=opcode))
            for _ in range(2 * LATENCY):
                await wire.send(rng.randbytes(min(size, 59)))
            await wire.quiet()
            assert wire.seen[-2 * LATENCY - 1 :] == [TAKEN] + [NONE] * 2 * LATENCY
    # The largest frame is no larger than this.
    frame, _ = data(rng, connection=CONNECTIONS[0])
    await wire.send(frame + bytes(wire.largest - len(frame)))
    await wire.send(frame + bytes(wire.largest + 1 - len(frame)))
    await wire.quiet()
    assert wire.seen[-2:] == [TAKEN, NONE]
    if wire.size > 1:
        for _ in range(3):
            await wire.send(*data(rng, connection=wire.connections[1]))
        await wire.quiet()
        assert wire.seen[-3:] == [TAKEN] * 3


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def forgets_at_a_reset(dut):
    """A frame that a reset cuts, or whose verdict has not come, gets none; the next one is whole."""
    rng = random.Random(7)
    wire = Wire(dut)
    await start(dut)
    for after in range(-3, 12):
        frame, _ = data(rng, connection=CONNECTIONS[0])
        whole = len(frame) // wire.size
        for at in range(whole + min(after, 0)):
            dut.s_axis_tvalid.value, dut.s_axis_tkeep.value = 1, (1 << wire.size) - 1
            dut.s_axis_tdata.value = int.from_bytes(frame[at * wire.size :][: wire.size], "little")
            dut.s_axis_tlast.value, dut.s_axis_tuser.value = int(after > 0 and at == whole - 1), 0
            await RisingEdge(dut.clk)
        dut.s_axis_tvalid.value = 0
        for _ in range(min(after, LATENCY - 1)):
            await RisingEdge(dut.clk)
        dut.rst.value = 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
        await wire.send(*data(rng, connection=CONNECTIONS[0]))
        await wire.quiet()
        assert wire.seen.pop() == TAKEN


def test_packets_are_those_of_scapy():
    """Another author's ICRC and base transport header agree with ours, also on the frame that leaves."""
    rng = random.Random(8)
    for opcode in CODES:
        connection = rng.choice(CONNECTIONS)
        frame = packet(rng, connection, psn=rng.randrange(1 << 24), opcode=opcode)
        verdict = judge(frame, False, 9018, [connection], connection.ethernet)
        assert verdict.kind == TAKEN
        sent = rng.randbytes(connection.mtu)
        for frame in (frame, roce.leaving(verdict.header, sent, 1), roce.leaving(verdict.header, verdict.payload, 3)):
            header = Ether(frame)[BTH]
            assert header.compute_icrc(None) == frame[-4:]
            assert (header.opcode, header.dqpn) == (opcode, connection.qpn)
            assert roce.fault(frame, connection, connection.ethernet) is None
        part = verdict.part ^ roce.crc_of(sent) ^ 0xFFFFFFFF
        assert part.to_bytes(4, "little") == roce.leaving(verdict.header, sent, 1)[-4:]


SOURCES = ["agg_roce_receive", "agg_roce_judge", "agg_roce_align", "agg_icrc_check", "agg_crc32", "agg_eth_sum"]
SOURCES += ["agg_delay", "agg_tag_delay"]


@pytest.mark.parametrize("size, largest", [(1, 600), (8, 9018), (64, 9018)])
def test_agg_roce_receive(size, largest):
    run(
        "agg_roce_receive",
        sources=[leaf(name) for name in SOURCES],
        parameters={"BYTES": size, "FRAME_BYTES": largest, "PORT_BITS": 2, "JOB_BITS": 1},
        simulator="verilator",
    )
