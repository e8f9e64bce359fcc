"""The transmitting half of the byte-stream shell: beat unpacking, framing, packing into link words.

The Python model parses the link's bytes; it checks sync words, CRCs and that frames have no
gaps. Idle x back-pressure, links of 8 to 64 bits.
"""

import os
import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

import frames
import model
import zwire
from bench import ROOT, leaf, run, start
from streams import PATTERNS, StreamSink, StreamSource, packet

PAYLOAD_KINDS = (zwire.KIND_RESULT, zwire.KIND_REPLAY)


class Transmitter:
    """The design with its streams."""

    def __init__(self, dut, idle="never", stall="never"):
        self.dut = dut
        self.width = len(dut.m_axis_tkeep)
        self.beat = len(dut.s_axis_tkeep)
        dut.down.value = 0
        self.source = StreamSource(dut, "s_axis", PATTERNS[idle]())
        self.replies = StreamSource(
            dut, "s_reply", PATTERNS[idle](), fields=("header",), valid="valid", ready="ready"
        )
        self.sink = StreamSink(dut, "m_axis", PATTERNS[stall]())

    def put(self, header, payload):
        """Queues a packet of the core, or a reply."""
        raw = int.from_bytes(model.pack({"version": 2, **header}, 30), "little")
        if header["kind"] == zwire.KIND_REPLY:
            self.replies.put({"header": raw & ((1 << 176) - 1)})
        elif payload:
            words = [payload[i : i + self.beat] for i in range(0, len(payload), self.beat)]
            beats = packet([int.from_bytes(w, "little") for w in words], keep=(1 << self.beat) - 1, tuser=raw)
            self.source.put(beats)
        else:
            self.source.put(packet([0], keep=0, tuser=raw))

    def sent(self):
        """Returns the bytes on the link so far; checks that words are contiguous and not empty."""
        out = b""
        for b in self.sink.beats:
            size = b["tkeep"].bit_length()
            assert size and b["tkeep"] == (1 << size) - 1
            out += b["tdata"].to_bytes(self.width, "little")[:size]
        return out

    async def settle(self):
        """Returns when everything is sent."""
        await self.source.drained()
        await self.replies.drained()
        quiet = 0
        while quiet < 60:
            before = len(self.sink.beats)
            await ClockCycles(self.dut.clk, 20)
            quiet = quiet + 20 if len(self.sink.beats) == before else 0


def some_packet(rng, beat):
    """Returns header and payload of a random packet that a card sends."""
    kind = rng.choice([*PAYLOAD_KINDS, zwire.KIND_STATUS, zwire.KIND_REPLY])
    header = {
        "kind": kind,
        "vid": rng.randrange(1 << 32),
        "length": rng.randrange(1 << 16),
        "code": rng.randrange(256),
        "mask": rng.getrandbits(64),
        "flags": rng.randrange(16),
        "job": rng.randrange(256),
        "epoch": rng.randrange(1 << 16),
        "rank": rng.randrange(256),
    }
    if kind not in PAYLOAD_KINDS:
        return header, b""
    beats = rng.choice([1, 2, rng.randint(1, 6)])
    format, size = rng.choice([(f, n) for f, n in model.ELEMENT_BYTES.items() if n <= beat])
    header |= {"format": format, "length": beats * beat // size, "receivers": rng.getrandbits(64)}
    return header, rng.randbytes(beats * beat)


def fields(header):
    """Returns a header as parsed from the link."""
    present = zwire.FIELDS if header["kind"] in PAYLOAD_KINDS else [f for f in zwire.FIELDS if f != "receivers"]
    return {**dict.fromkeys(present, 0), "version": 2, **header}


def split(packets):
    """Returns the core's packets and the replies, each in order."""
    return (
        [p for p in packets if p[0]["kind"] != zwire.KIND_REPLY],
        [p for p in packets if p[0]["kind"] == zwire.KIND_REPLY],
    )


async def watch_busy(dut):
    """Checks that busy is high while the core offers a beat or is inside a packet, and only then."""
    inside = False
    while True:
        await RisingEdge(dut.clk)
        await ReadOnly()
        offered = bool(int(dut.s_axis_tvalid.value))
        assert bool(int(dut.busy.value)) == (offered or inside)
        if offered and int(dut.s_axis_tready.value):
            inside = not int(dut.s_axis_tlast.value)


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def frames_packets(dut, idle, stall):
    """Packets and replies of every kind leave as frames without a gap; each stream keeps its
    order."""
    rng = random.Random(f"{idle} {stall}")
    transmitter = Transmitter(dut, idle, stall)
    await start(dut)
    packets = [some_packet(rng, transmitter.beat) for _ in range(15)]
    for header, payload in packets:
        transmitter.put(header, payload)
    await transmitter.settle()
    want = [(fields(header), payload) for header, payload in packets]
    assert split(model.parse_frames(transmitter.sent())) == split(want)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def writes_the_frames_written_by_hand(dut):
    """The hand-written frames that a card sends leave byte by byte as written."""
    transmitter = Transmitter(dut)
    await start(dut)
    tried = 0
    for data, header, payload in frames.load().values():
        if not zwire.KINDS[header["kind"]][4] or len(payload) % transmitter.beat:
            continue
        transmitter.put(header, payload)
        await transmitter.settle()
        assert transmitter.sent() == data
        transmitter.sink.beats.clear()
        tried += 1
    assert tried >= 2


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def keeps_the_link_full(dut):
    """While packets wait, every word is full, and the link idles at most 1.5 cycles per frame."""
    rng = random.Random(2)
    transmitter = Transmitter(dut)
    await start(dut)
    size = transmitter.beat * int(os.environ["BEATS"])
    count = 6
    for _ in range(count):
        header = {"kind": zwire.KIND_RESULT, "length": size // 4 & 0xFFFF}
        transmitter.put(header, rng.randbytes(size))
    await transmitter.settle()
    words = transmitter.sink.beats
    assert all(b["tkeep"] == (1 << transmitter.width) - 1 for b in words[:-1])
    # A beat narrower than the link limits the payload's rate to a beat per cycle.
    byte_cycles = size / min(transmitter.width, transmitter.beat) + 38 / transmitter.width
    taken = transmitter.sink.taken_at
    cycles = (taken[-1] - taken[0]) / count
    dut._log.info("%.4f of the link's bytes", byte_cycles / cycles)
    assert cycles <= byte_cycles + 1.5
    assert size < 1024 or byte_cycles / cycles >= 0.98


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def takes_turns(dut):
    """Neither replies nor packets wait for more than one frame of the other stream."""
    transmitter = Transmitter(dut)
    await start(dut)
    for vid in range(6):
        transmitter.put({"kind": zwire.KIND_STATUS, "vid": vid}, b"")
        transmitter.put({"kind": zwire.KIND_REPLY, "vid": vid}, b"")
    await transmitter.settle()
    kinds = [header["kind"] for header, _ in model.parse_frames(transmitter.sent())]
    assert len(kinds) == 12
    assert all(a != b for a, b in zip(kinds[1:10], kinds[2:11]))


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def drops_the_frame_under_way_when_the_link_goes_down(dut):
    """The link falls silent at once, at any moment; the rest of the packet is dropped, and the
    next bytes begin with a whole frame."""
    rng = random.Random(3)
    transmitter = Transmitter(dut, idle="at_random", stall="never")
    await start(dut)
    cocotb.start_soon(watch_busy(dut))
    for wait in range(1, 80, 2):
        size = transmitter.beat * 4
        transmitter.put({"kind": zwire.KIND_RESULT, "length": size // 4}, rng.randbytes(size))
        await ClockCycles(dut.clk, wait)
        dut.down.value = 1
        await RisingEdge(dut.clk)
        transmitter.source.queue = transmitter.source.queue[:4]
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            assert not int(dut.m_axis_tvalid.value)
            if not int(dut.busy.value) and not transmitter.source.queue:
                break
        await RisingEdge(dut.clk)
        dut.down.value = 0
        transmitter.sink.beats.clear()
        want = {"kind": zwire.KIND_STATUS, "vid": wait}
        transmitter.put(want, b"")
        await transmitter.settle()
        assert model.parse_frames(transmitter.sent()) == [(fields(want), b"")]
        transmitter.sink.beats.clear()


SOURCES = [
    ROOT / "cocotb" / "link_transmitter.v",
    *(leaf(f"agg_{name}") for name in ("beat_unpack", "crc16", "frame_tx", "byte_pack")),
]


@pytest.mark.parametrize(
    "link, beat", [(8, 64), (16, 4), (32, 8), (32, 64), (64, 4), (64, 64), (8, 1), (32, 1), (64, 1), (16, 2), (64, 2)]
)
def test_link_transmitter(link, beat):
    window = max(4, link // 8)
    run(
        "link_transmitter",
        SOURCES,
        {
            "LINK_BYTES": link // 8,
            "WINDOW": window,
            "STEP": min(window, beat),
            "BEAT_BYTES": beat,
        },
        simulator="verilator" if link == 8 or beat == 64 else "icarus",
        env={"BEATS": str(1024 // beat)},
    )
