"""The way of results and statuses to the wire: agg_datagram_steps, _sums and _store, agg_eth_transmit.

The frames are compared byte by byte with those of ethernet.py, and judged by scapy.
"""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles

import ethernet
import model
import zwire
from bench import ROOT, joined, leaf, run, start
from streams import PATTERNS, StreamSink, StreamSource, packet


class Transmitter:
    """The design with its streams, its own address and those of its members."""

    def __init__(self, dut, rng, idle="never", stall="never"):
        self.dut = dut
        self.width = len(dut.m_axis_tkeep)
        self.beat = len(dut.s_axis_tkeep)
        self.most = dut.PAYLOAD.value.to_unsigned() // self.beat
        self.draw_addresses(rng)
        self.source = StreamSource(dut, "s_axis", PATTERNS[idle]())
        self.sink = StreamSink(dut, "m_axis", PATTERNS[stall]())
        self.want = []  # frames

    def draw_addresses(self, rng):
        self.own, *self.members = [some_address(rng) for _ in range(1 + len(self.dut.s_axis_tdest))]
        self.drive_addresses()

    def drive_addresses(self):
        for name, width, place in (("mac", 48, 0), ("ip", 32, 1), ("port", 16, 2)):
            getattr(self.dut, f"own_{name}").value = self.own[place]
            getattr(self.dut, f"member_{name}").value = joined(width, [m[place] for m in self.members])

    def put(self, header, payload, ports):
        """Queues a packet for the ports, and the frames that are to come of it."""
        header = {"version": 2, **header}
        raw = int.from_bytes(model.pack(header, 30), "little")
        dest = sum(1 << port for port in ports)
        if payload:
            words = [payload[i : i + self.beat] for i in range(0, len(payload), self.beat)]
            words = [int.from_bytes(word, "little") for word in words]
            self.source.put(packet(words, keep=(1 << self.beat) - 1, tuser=raw, tdest=dest))
        else:
            self.source.put(packet([0], keep=0, tuser=raw, tdest=dest))
        data = ethernet.datagram(header, payload)
        ecn = header["flags"] % 4 if payload else zwire.ECN_ECT0
        for port in sorted(ports):
            self.want.append(ethernet.udp_frame(self.own, self.members[port], data, ecn))

    async def check(self):
        """Returns when all is sent, and has compared and judged it."""
        await self.source.drained()
        while sum(beat["tlast"] for beat in self.sink.beats) < len(self.want):
            await ClockCycles(self.dut.clk, 20)
        await ClockCycles(self.dut.clk, 20)
        found = ethernet.frames(self.sink.beats, self.width)
        assert found == self.want
        for frame in found:
            assert ethernet.judge(frame).haslayer("UDP")


def some_address(rng):
    """Returns a MAC address, an IP address and a UDP port, sometimes of extreme bits."""
    return tuple(rng.choice([rng.getrandbits(n), 0, (1 << n) - 1]) or 1 for n in (48, 32, 16))


def some_packet(rng, transmitter):
    """Returns header, payload and ports of a random packet that a core sends."""
    ports = range(len(transmitter.members))
    header = {
        "kind": rng.choice([zwire.KIND_RESULT, zwire.KIND_REPLAY, zwire.KIND_STATUS]),
        "flags": rng.randrange(16),
        "job": rng.randrange(16),
        "epoch": rng.getrandbits(16),
        "vid": rng.getrandbits(32),
        "mask": rng.getrandbits(64),
    }
    if header["kind"] == zwire.KIND_STATUS:
        return header | {"code": rng.randrange(256), "rank": rng.randrange(64)}, b"", [rng.choice(ports)]
    size = transmitter.beat * rng.choice([1, 2, transmitter.most, rng.randint(1, transmitter.most)])
    payload = rng.choice([rng.randbytes(size), rng.randbytes(size), bytes(size), b"\xff" * size])
    header |= {"length": size, "format": rng.randrange(1, 7), "receivers": rng.getrandbits(64)}
    return header, payload, rng.sample(ports, rng.choice([1, rng.randint(1, len(ports))]))


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def sends_each_receiver_the_same_datagram(dut, idle, stall):
    """Packets of every kind and size leave once for each receiver, whatever the pauses."""
    rng = random.Random(f"{idle} {stall}")
    transmitter = Transmitter(dut, rng, idle, stall)
    await start(dut)
    for _ in range(6):
        transmitter.put(*some_packet(rng, transmitter))
    await transmitter.check()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def sends_without_a_pause(dut):
    """A frame has no pause. Nor has the change to the next copy, or to the next packet if that came in time."""
    rng = random.Random(2)
    transmitter = Transmitter(dut, rng)
    await start(dut)
    step = min(transmitter.beat, transmitter.width)
    receivers = len(transmitter.members)
    for beats in [transmitter.most] * 4 + [max(1, transmitter.most - 1)] * 4:
        header = {"kind": zwire.KIND_RESULT, "flags": 2, "length": 1, "format": 1}
        transmitter.put(header, rng.randbytes(beats * transmitter.beat), range(receivers))
    await transmitter.check()
    ends = [i for i, beat in enumerate(transmitter.sink.beats) if beat["tlast"]]
    taken = transmitter.sink.taken_at
    words = -(-(76 + transmitter.most * transmitter.beat) // transmitter.width)
    comes = max(1, 32 // step) + transmitter.most * transmitter.beat // step  # cycles of a packet
    for i, (before, after) in enumerate(zip(taken, taken[1:])):
        changes = i in ends[receivers - 1 :: receivers]
        assert after == before + 1 or changes and comes > receivers * words, f"a pause after word {i}"
    assert comes <= receivers * words or transmitter.beat < transmitter.width
    first = taken[0] - transmitter.source.accepted_at[transmitter.most - 1]
    assert first == 13 + (1 if step <= 8 else 2 if step <= 32 else 3), f"{first} cycles to the first word"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def writes_a_checksum_of_0_as_ffff(dut):
    """A UDP checksum that comes to 0 leaves as 0xffff, and an IP checksum of 0 as 0."""
    rng = random.Random(3)
    transmitter = Transmitter(dut, rng)
    header = {"kind": zwire.KIND_STATUS, "flags": 0, "vid": 7}
    data = ethernet.datagram({"version": 2, **header})
    for port, (mac, _, _) in enumerate(transmitter.members):
        ip = 0x0A000000 + rng.getrandbits(23)
        if port % 2 == 0:
            frame = ethernet.udp_frame(transmitter.own, (mac, ip, 0), data)
            ip += int.from_bytes(frame[24:26], "big")  # makes IP's checksum 0
        frame = ethernet.udp_frame(transmitter.own, (mac, ip, 0), data)
        udp = int.from_bytes(frame[40:42], "big")
        transmitter.members[port] = (mac, ip, udp)
    transmitter.drive_addresses()
    await start(dut)
    for port in range(len(transmitter.members)):
        transmitter.put(header, b"", [port])
    assert all(frame[40:42] == b"\xff\xff" for frame in transmitter.want)
    assert any(frame[24:26] == b"\0\0" for frame in transmitter.want)
    await transmitter.check()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def sums_any_addresses(dut):
    """The checksums hold from any address to any other."""
    rng = random.Random(4)
    transmitter = Transmitter(dut, rng)
    await start(dut)
    for _ in range(24):
        transmitter.draw_addresses(rng)
        await ClockCycles(dut.clk, 10)  # its own address is summed
        transmitter.put(*some_packet(rng, transmitter))
        await transmitter.check()


SOURCES = [
    ROOT / "cocotb" / "ethernet_transmitter.v",
    *(leaf(f"agg_{name}") for name in ("crc32c", "datagram_steps", "datagram_sums", "datagram_store")),
    *(leaf(f"agg_{name}") for name in ("eth_transmit", "delay", "tag_delay")),
]


EVERY_PAUSE = [(8, 16)]


# Words of the frame, bytes of a beat (1, 4 and 16 lanes of fp8 and fp32), receivers, bytes of the largest payload
@pytest.mark.parametrize(
    "width, beat, ports, payload",
    [(1, 1, 3, 5), (1, 16, 1, 32), (8, 1, 2, 21), (8, 4, 8, 44), (8, 16, 5, 96), (8, 64, 1, 256)]
    + [(64, 1, 8, 130), (64, 16, 4, 208), (64, 64, 1, 512)],
)
def test_ethernet_transmitter(width, beat, ports, payload):
    parameters = {"BYTES": width, "BEAT_BYTES": beat, "PORTS": ports, "PAYLOAD": payload}
    pauses = PATTERNS if (width, beat) in EVERY_PAUSE else ["at_random"]
    run(
        "ethernet_transmitter",
        SOURCES,
        parameters,
        testcase=[f"sends_each_receiver_the_same_datagram/idle={i}/stall={s}" for i in pauses for s in pauses]
        + ["sends_without_a_pause", "writes_a_checksum_of_0_as_ffff", "sums_any_addresses"],
    )
