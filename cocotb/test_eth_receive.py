"""agg_eth_receive: each frame's verdict and payload, for beats of 1, 8 and 64 bytes."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

import eth_frames
from bench import bits, leaf, number, run, start
from eth_frames import ADDRESS, ARP_REQUEST, DATAGRAM, DROP, ECHO, FAULTS, HOST, IGNORED, MAC, OTHER, PORT, REASONS
from eth_frames import arp_frame, datagram_frame, echo_frame, judge, some_frame
from streams import PATTERNS

LATENCY = 9  # from a frame's last beat to its verdict


class Wire:
    """Sends frames, and compares the words and verdicts with the model's."""

    def __init__(self, dut, idle="never"):
        self.dut, self.idle = dut, PATTERNS[idle]()
        self.size = len(dut.s_axis_tkeep)
        self.largest = int(dut.FRAME_BYTES.value)
        self.now = 0
        self.due = []  # cycle and verdict of the frames whose verdict has not come
        self.payload, self.ended = b"", False  # words since the last verdict
        self.seen = []  # kinds and reasons
        dut.s_axis_tvalid.value = 0
        dut.own_mac.value = int.from_bytes(eth_frames.mac_bytes(MAC), "big")
        dut.own_ip.value = int.from_bytes(eth_frames.ip_bytes(ADDRESS), "big")
        dut.own_port.value = PORT

    async def send(self, frame, bad=False):
        """Sends a frame, with idle cycles where the pattern has them."""
        dut, size = self.dut, self.size
        for at in range(0, len(frame), size):
            while next(self.idle):
                dut.s_axis_tvalid.value = 0
                await self.cycle()
            part, last = frame[at : at + size], at + size >= len(frame)
            dut.s_axis_tvalid.value, dut.s_axis_tlast.value = 1, int(last)
            dut.s_axis_tdata.value = int.from_bytes(part, "little")
            dut.s_axis_tkeep.value = (1 << len(part)) - 1
            dut.s_axis_tuser.value = int(bad if last else not bad)  # counts with tlast alone
            if last:
                self.due.append((self.now + LATENCY, judge(frame, bad, self.largest)))
            await self.cycle()
        dut.s_axis_tvalid.value = 0

    async def quiet(self):
        """Waits for all verdicts."""
        for _ in range(LATENCY + 2):
            await self.cycle()
        assert not self.due

    async def cycle(self):
        """Ends a cycle and looks at its outputs."""
        await RisingEdge(self.dut.clk)
        if bits(self.dut.m_axis_tvalid) == "1":
            self.word()
        if bits(self.dut.m_verdict_valid) == "1":
            when, verdict = self.due.pop(0)
            assert when == self.now, f"the verdict {verdict} came in cycle {self.now}, not {when}"
            self.compare(verdict)
            self.payload, self.ended = b"", False
        else:
            assert not self.due or self.due[0][0] > self.now, f"no verdict {self.due[0]} in {self.now}"
        self.now += 1

    def word(self):
        keep = number(self.dut.m_axis_tkeep)
        count = keep.bit_length()
        assert keep == (1 << count) - 1 and count > 0
        last = number(self.dut.m_axis_tlast)
        assert last or count == self.size
        assert not self.ended or self.due[0][1].kind == DROP
        word = bits(self.dut.m_axis_tdata)[-8 * count :]
        self.payload += int(word, 2).to_bytes(count, "little")
        self.ended = bool(last)

    def compare(self, want):
        """Compares a verdict's fields, and the frame's payload."""
        dut = self.dut
        kind, reason = number(dut.m_verdict_kind), REASONS[number(dut.m_verdict_reason)]
        assert (kind, reason) == (want.kind, want.reason), f"{kind} {reason} instead of {want}"
        self.seen.append(reason if kind == DROP else kind)
        if kind in (DROP, OTHER, IGNORED):
            return
        assert number(dut.m_verdict_mac) == int.from_bytes(want.mac, "big")
        assert number(dut.m_verdict_ip) == int.from_bytes(want.ip, "big")
        if kind == ARP_REQUEST:
            return
        assert number(dut.m_verdict_ecn) == want.ecn
        assert number(dut.m_verdict_bytes) == want.size
        header = number(dut.m_verdict_header).to_bytes(22, "little")
        assert header[: len(want.header)] == want.header
        assert self.payload == want.payload and self.ended == bool(want.payload)
        if kind == DATAGRAM:
            assert number(dut.m_verdict_port) == want.port
        else:
            assert number(dut.m_verdict_echo) == int.from_bytes(want.echo, "big")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def first_fault_decides(dut):
    """Every fault alone, and with every later one (on the narrowest wire: with the next one)."""
    rng = random.Random(1)
    wire = Wire(dut)
    await start(dut)
    names = list(FAULTS)
    for place, first in enumerate(names):
        later = names[place + 1 :] if wire.size > 1 and first != "oversize" else names[place + 1 : place + 2]
        for second in [None, *later]:
            frame, bad = datagram_frame(rng, {first, second}, rng.choice([0, 8, 52]), wire.largest)
            await wire.send(frame, bad)
            await wire.send(*datagram_frame(rng, payload=rng.choice([0, 4])))
            await wire.quiet()
            assert wire.seen[-2:] == [FAULTS[first], DATAGRAM], (first, second)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def forgets_the_length_before(dut):
    """The length of an IP packet is unknown in a frame's first beats; that of the last frame is not it."""
    rng = random.Random(4)
    wire = Wire(dut)
    await start(dut)
    for length in [*range(20), *[0, 1, 2] * 6]:
        frame, _ = datagram_frame(rng)
        await wire.send(frame[:16] + length.to_bytes(2, "big") + frame[18:])
        await wire.send(*datagram_frame(rng, ["too_long"], 8))
        await wire.quiet()
        assert wire.seen[-1] == "ip_length"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def drops_unsummed_datagrams_whose_sum_fits(dut):
    """UDP without a checksum has 0 there. Its words may add up as if 0 were the checksum."""
    rng = random.Random(5)
    wire = Wire(dut)
    await start(dut)
    for _ in range(20):
        frame, _ = datagram_frame(rng, payload=rng.choice([0, 4, 8]))
        port, sum_ = (int.from_bytes(frame[at : at + 2], "big") for at in (34, 40))
        port = (port + sum_) % 0xFFFF or 0xFFFF  # takes the checksum's share over
        frame = frame[:34] + port.to_bytes(2, "big") + frame[36:40] + b"\0\0" + frame[42:]
        size = int.from_bytes(frame[38:40], "big")
        assert eth_frames.sums_up(frame[26:34] + b"\0\x11" + frame[38:40] + frame[34 : 34 + size])
        await wire.send(frame)
        await wire.send(*datagram_frame(rng))
        await wire.quiet()
        assert wire.seen[-2:] == ["checksum", DATAGRAM]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def answers_neighbours(dut):
    """ARP and echo requests for the card, and others."""
    rng = random.Random(2)
    wire = Wire(dut)
    await start(dut)
    for want, frame in [
        (ARP_REQUEST, arp_frame(rng)),
        (ARP_REQUEST, arp_frame(rng, to=MAC)),
        (OTHER, arp_frame(rng, to="02:54:42:00:00:03")),
        (OTHER, arp_frame(rng, wanted=HOST)),
        *[(OTHER, arp_frame(rng, at=place)) for place in [*range(8), 24, 27]],
        *[(ECHO, echo_frame(rng, size)) for size in (0, 1, 13, 14, 15, 18, 21, 22, 23, 77, 78, 79, 142)],
        ("protocol", echo_frame(rng, 20, code=1)),
        ("checksum", echo_frame(rng, 30, wrong=True)),
    ]:
        await wire.send(*frame)
        await wire.quiet()
        assert wire.seen[-1] == want


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(idle=["never", "alternate", "at_random"])
async def judges_any_frame(dut, idle):
    """Random frames, back to back and with idle cycles between and within."""
    rng = random.Random(idle)
    wire = Wire(dut, idle)
    await start(dut)
    for _ in range(200 if wire.size > 1 else 40):
        await wire.send(*some_frame(rng, wire.largest))
        if rng.random() < 0.1:
            await wire.quiet()
    await wire.quiet()
    assert DATAGRAM in wire.seen and len(set(wire.seen)) > 8


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def keeps_the_rate(dut):
    """The shortest frames and the largest ones in every cycle: no verdict is late."""
    rng = random.Random(3)
    wire = Wire(dut)
    await start(dut)
    for payload in [0] * 6 + [4, 4, 0, 4, 8, 0, 56, 60, 64, 0, 4, 68, 120, 124, 128, 4]:
        await wire.send(*datagram_frame(rng, payload=payload))
    # Runts in every cycle take nothing from the verdict before them.
    for size in (1, wire.size, min(2 * wire.size, 59)):
        await wire.send(*datagram_frame(rng, payload=8))
        for _ in range(2 * LATENCY):
            await wire.send(rng.randbytes(min(size, 59)))
    await wire.quiet()
    assert wire.seen[-2 * LATENCY - 1 :] == [DATAGRAM] + ["runt"] * 2 * LATENCY
    wire.seen = [what for what in wire.seen if what != "runt"]
    frames = len(wire.seen)
    most = min(8192, wire.largest - 60)
    for payload in (most, most - 1, 0, most):
        await wire.send(*datagram_frame(rng, payload=payload))
    await wire.quiet()
    assert wire.seen == [DATAGRAM] * (frames + 4)
    # The largest frame is no larger than this.
    frame, _ = datagram_frame(rng, payload=0)
    await wire.send(frame + bytes(wire.largest - len(frame)))
    await wire.send(frame + bytes(wire.largest + 1 - len(frame)))
    await wire.quiet()
    assert wire.seen[-2:] == [DATAGRAM, "oversize"]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def judges_long_datagrams(dut):
    """Lengths and sums of many bits: good ones, and some that are wrong."""
    rng = random.Random(6)
    wire = Wire(dut)
    await start(dut)
    most = min(8192, wire.largest - 60)
    for faults in [[]] * 12 + [["udp_checksum"]] * 3:
        await wire.send(*datagram_frame(rng, faults, rng.randint(most // 8, most), wire.largest))
    await wire.quiet()
    assert wire.seen == [DATAGRAM] * 12 + ["checksum"] * 3


SOURCES = ["agg_eth_receive", "agg_eth_judge", "agg_eth_sum", "agg_eth_align"]
SOURCES += ["agg_crc32c", "agg_crc32c_check", "agg_delay", "agg_tag_delay"]


@pytest.mark.parametrize("size, largest", [(1, 400), (8, 9018), (64, 9018)])
def test_agg_eth_receive(size, largest):
    run(
        "agg_eth_receive",
        sources=[leaf(name) for name in SOURCES],
        parameters={"BYTES": size, "FRAME_BYTES": largest},
        simulator="verilator",
    )
