"""The receiving half of the byte-stream shell: byte FIFO, frame parser, beat packing.

The Python model's reading of SPEC.md section 3 gives the expected output. The model builds the
frames; others are hand-written in driver/wire/testdata. Idle x back-pressure, links of 8 to 64
bits, words cut anywhere.
"""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

import frames
import model
import zwire
from arithmetic import Arithmetic
from bench import ROOT, leaf, number, run, start, wait_cycles
from streams import PATTERNS, StreamSink, StreamSource

SYNC = model.SYNC
EVENTS = {
    "event_frame": "frames",
    "event_hunted": "hunted",
    "event_header_crc": "header_crc",
    "event_bad_version": "bad_version",
    "event_bad_kind": "bad_kind",
    "event_bad_length": "bad_length",
}


class Expected(model.Card):
    """The model's link receiver, which records its output to the core."""

    def __init__(self, receiver):
        how = Arithmetic({4: "fp32", 2: "bf16", 1: "fp8e4m3"}[receiver.element])
        ident = {"LINK": 0, "LATENCY": 0}
        super().__init__(1, 1, receiver.chunk, window=1, ident=ident, shared=True, arithmetic=how)
        self.packets, self.accesses = [], []

    def packet(self, port, header, payload=b"", bad=False):
        self.packets.append((model.pack(header, 14), payload, bool(bad)))
        return []

    def register(self, header):
        self.accesses.append(header)
        return None


class Receiver:
    """The design with its streams, and counts of its events."""

    def __init__(self, dut, idle="never", stall="never"):
        self.dut = dut
        self.width = len(dut.s_axis_tkeep)
        self.beat = len(dut.m_axis_tkeep)
        self.chunk, self.element = int(dut.CHUNK.value), int(dut.ELEM_BYTES.value)
        dut.down.value = 0
        self.source = StreamSource(dut, "s_axis", PATTERNS[idle]())
        self.sink = StreamSink(dut, "m_axis", PATTERNS[stall]())
        self.registers = StreamSink(
            dut, "m_register", PATTERNS[stall](), fields=("write", "header"), valid="valid", ready="ready"
        )
        self.counts = dict.fromkeys(EVENTS.values(), 0)

    async def begin(self):
        await start(self.dut)
        cocotb.start_soon(self._count())

    async def _count(self):
        handles = [(name, getattr(self.dut, event)) for event, name in EVENTS.items()]
        while True:
            await RisingEdge(self.dut.clk)
            for name, handle in handles:
                self.counts[name] += number(handle)

    def put(self, data, rng=None):
        """Queues bytes for the link: whole words, or with rng words cut anywhere."""
        while data:
            size = rng.randint(1, self.width) if rng else self.width
            word, data = data[:size], data[size:]
            self.source.put({"tdata": int.from_bytes(word, "little"), "tkeep": (1 << len(word)) - 1})

    async def settle(self):
        """Returns when all bytes are in and the outputs have been quiet for a while."""
        await self.source.drained()
        quiet = 0
        while quiet < 100:
            before = len(self.sink.beats), len(self.registers.beats), self.counts["hunted"]
            await wait_cycles(self.dut, 20)
            after = len(self.sink.beats), len(self.registers.beats), self.counts["hunted"]
            quiet = quiet + 20 if before == after else 0

    def packets(self):
        """Returns the received packets as (header, payload, whole, bad), and checks every beat's
        tkeep."""
        out, payload, header = [], b"", None
        full = (1 << self.beat) - 1
        for b in self.sink.beats:
            if header is None:
                header = (b["tuser"] & ((1 << 112) - 1)).to_bytes(14, "little")
            assert b["tkeep"] in ((full, 0) if b["tlast"] else (full,))
            if b["tkeep"]:
                payload += b["tdata"].to_bytes(self.beat, "little")
            if b["tlast"]:
                out.append((header, payload, b["tkeep"] != 0, bool(b["tuser"] >> 112)))
                payload, header = b"", None
        assert header is None, "a packet was not ended"
        return out

    def compare(self, want):
        """Checks packets, register accesses and counts against want, an Expected."""
        packets = []
        for header, payload, bad in want.packets:
            whole = bool(payload) and len(payload) % self.beat == 0
            # The last beat is empty if the payload is not a whole number of beats.
            packets.append((header, payload[: len(payload) // self.beat * self.beat], whole, bad))
        assert self.packets() == packets
        accesses = [(b["write"], model.unpack(b["header"].to_bytes(22, "little"))) for b in self.registers.beats]
        assert accesses == [
            (int(h["kind"] == zwire.KIND_REGWRITE), {"mask": 0, **h}) for h in want.accesses
        ]
        assert self.counts == {name: want.counters[name] for name in self.counts}


def data_header(rng, length):
    return {
        "kind": zwire.KIND_DATA,
        "flags": rng.randrange(4),
        "job": rng.randrange(256),
        "format": rng.randrange(256),
        "epoch": rng.randrange(1 << 16),
        "rank": rng.randrange(256),
        "code": rng.randrange(256),
        "vid": rng.randrange(1 << 32),
        "length": length,
    }


def good_frame(rng, chunk, element):
    """Returns a random frame that the card accepts."""
    kind = rng.choice(
        [zwire.KIND_DATA, zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH, zwire.KIND_REGREAD, zwire.KIND_REGWRITE]
    )
    length = rng.choice([1, 2, chunk - 1, chunk, rng.randint(1, chunk)])
    header = {**data_header(rng, length), "kind": kind}
    if kind != zwire.KIND_DATA:
        header["length"] = rng.randrange(1 << 16)  # no rule restricts it
    if kind == zwire.KIND_REGWRITE:
        header["mask"] = rng.getrandbits(64)
    return model.frame(header, rng.randbytes(element * length) if kind == zwire.KIND_DATA else b"")


def flip(rng, data, first, end):
    """Returns data with one to three bits flipped between bytes first and end."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        data[rng.randrange(first, end)] ^= 1 << rng.randrange(8)
    return bytes(data)


def garbage(rng):
    """Returns bytes without a valid header, but with many false beginnings."""
    out = b""
    for _ in range(rng.randint(1, 4)):
        out += rng.choice(
            [rng.randbytes(rng.randint(1, 9)), SYNC[: rng.randint(1, 3)], SYNC, SYNC + b"\x52", SYNC + SYNC, b"\xa5" * 5]
        )
    return out


def refused_frame(rng, chunk):
    """Returns a frame with a valid header CRC that the card refuses."""
    header = data_header(rng, rng.choice([0, chunk + 1, 65535]))
    header |= rng.choice(
        [
            {},
            {"version": rng.choice([0, 1, 3, 15])},
            {"kind": rng.choice([0, 6, 7, 15])},
            {"kind": rng.choice([zwire.KIND_RESULT, zwire.KIND_REPLAY, zwire.KIND_STATUS, zwire.KIND_REPLY])},
        ]
    )
    raw = model.pack({"version": 2, **header}, 14)
    payload = rng.randbytes(rng.randint(0, 12))
    return SYNC + raw + model.crc16(raw).to_bytes(2, "big") + payload


def traffic(rng, chunk, element, count):
    """Returns link bytes with all events, ended by a frame of each header length."""
    out = b""
    for _ in range(count):
        good = good_frame(rng, chunk, element)
        out += rng.choice(
            [
                good,
                good,
                garbage(rng) + good,
                SYNC + good,  # a false sync word right before a good frame
                good[: rng.randint(1, len(good) - 1)] + good,  # cut off
                flip(rng, good, 4, 20),
                flip(rng, good, 0, len(good)),
                refused_frame(rng, chunk),
            ]
        )
    # These bytes complete whatever was cut off last, then arrive themselves.
    rest = model.frame({"kind": zwire.KIND_ASK, "vid": 1}) * (chunk // 5 + 2)
    return out + rest + model.frame({"kind": zwire.KIND_REGWRITE, "vid": 2, "mask": 3}) + rest


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def finds_frames(dut, idle, stall):
    """All kinds of link bytes, at random, cut into words anywhere."""
    rng = random.Random(f"{idle} {stall} {len(dut.s_axis_tkeep)}")
    receiver = Receiver(dut, idle, stall)
    await receiver.begin()
    chunk = receiver.chunk
    stream = traffic(rng, chunk, receiver.element, 12)
    want = Expected(receiver)
    want.receive(stream)
    receiver.put(stream, rng)
    await receiver.settle()
    receiver.compare(want)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def finds_frame_after_every_prefix_of_one(dut):
    """A header that breaks off after any byte does not hide the next frame."""
    rng = random.Random(3)
    receiver = Receiver(dut)
    await receiver.begin()
    want = Expected(receiver)
    stream, whole = b"", 0
    for kind in (zwire.KIND_ASK, zwire.KIND_REGWRITE):
        good = model.frame({"kind": kind, "vid": 7, "mask": 9 if kind == zwire.KIND_REGWRITE else 0})
        stream += b"".join(good[:n] + good for n in range(len(good))) + good
        whole += len(good) + 1
    want.receive(stream)
    assert len(want.packets) + len(want.accesses) == whole
    receiver.put(stream, rng)
    await receiver.settle()
    receiver.compare(want)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reads_the_frames_written_by_hand(dut):
    """The hand-written frames that a card accepts arrive field by field.

    A card expects 14 header bytes for the other kinds. Their headers are longer, so their CRC
    appears wrong.
    """
    receiver = Receiver(dut)
    await receiver.begin()
    refused = 0
    packets, accesses = [], []
    for data, header, payload in frames.load().values():
        receiver.put(data)
        if zwire.KINDS[header["kind"]][4]:
            refused += 1
        elif header["kind"] in (zwire.KIND_REGREAD, zwire.KIND_REGWRITE):
            accesses.append(header)
        else:
            packets.append((header, payload))
    # The last frame may end with bytes that begin a new frame.
    receiver.put(model.frame({"kind": zwire.KIND_ASK}) * 2)
    await receiver.settle()
    got = receiver.packets()[:-2]
    assert len(got) == len(packets)
    for (raw, got_payload, _, bad), (header, payload) in zip(got, packets):
        assert model.unpack(raw) == {k: v for k, v in header.items() if k not in ("mask", "receivers")}
        assert got_payload == payload[: len(payload) // receiver.beat * receiver.beat]
        assert not bad
    got = [model.unpack(b["header"].to_bytes(22, "little")) for b in receiver.registers.beats]
    assert got == [{k: v for k, v in h.items() if k != "receivers"} for h in accesses]
    assert receiver.counts["header_crc"] == refused


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def refuses_a_host_of_version_1(dut):
    """The ask that was written by hand for version 1 is counted and dropped; the next frame arrives."""
    receiver = Receiver(dut)
    await receiver.begin()
    receiver.put(bytes.fromhex("a5 54 52 42 21 00 05 00 cd ab 03 00 fe ff ff ff 00 00 44 80"))
    receiver.put(model.frame({"kind": zwire.KIND_ASK, "vid": 9}) * 3)
    await receiver.settle()
    vids = [model.unpack(raw)["vid"] for raw, *_ in receiver.packets()]
    assert vids and set(vids) == {9}
    assert receiver.counts["bad_version"] == 1
    assert receiver.counts["header_crc"] == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def keeps_up_with_the_link(dut):
    """Back-to-back frames of full chunks on a link without pauses: the receiver keeps the link's
    rate."""
    rng = random.Random(4)
    receiver = Receiver(dut)
    await receiver.begin()
    chunk, size = receiver.chunk, receiver.element * receiver.chunk
    count = 6
    stream = b"".join(model.frame(data_header(rng, chunk), rng.randbytes(size)) for _ in range(count))
    receiver.put(stream)
    await receiver.settle()
    assert [(bad, len(payload)) for _, payload, _, bad in receiver.packets()] == [(False, size)] * count
    # Measure between the ends of the first and the last packet, so that buffers do not flatter the
    # rate.
    ends = [t for t, b in zip(receiver.sink.taken_at, receiver.sink.beats) if b["tlast"]]
    # A beat narrower than the link limits the payload's rate to a beat per cycle.
    byte_cycles = size / min(receiver.width, receiver.beat) + 22 / receiver.width
    cycles = (ends[-1] - ends[0]) / (count - 1)
    dut._log.info("%.4f of the link's bytes", byte_cycles / cycles)
    assert cycles <= byte_cycles + 2.25
    assert chunk < 256 or byte_cycles / cycles >= 0.98


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def drops_what_is_half_received_when_the_link_goes_down(dut):
    """The link goes down after any number of a frame's bytes: the frame is dropped, a packet
    that the core has begun to receive ends as bad, and the next frame arrives."""
    rng = random.Random(5)
    receiver = Receiver(dut, stall="at_random")
    await receiver.begin()
    chunk, size = receiver.chunk, receiver.element * receiver.chunk
    data = model.frame(data_header(rng, chunk), rng.randbytes(size))
    after = model.frame({"kind": zwire.KIND_FINISH, "vid": 5})
    closed = 0
    for size in range(1, len(data)):
        receiver.put(data[:size], rng)
        await receiver.source.drained()
        await ClockCycles(dut.clk, rng.randrange(8))
        dut.down.value = 1
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        while int(dut.busy.value):
            await RisingEdge(dut.clk)
        dut.down.value = 0
        await RisingEdge(dut.clk)
        receiver.put(after)
        await receiver.settle()
        *cut, (header, payload, whole, bad) = receiver.packets()
        assert (header, payload, whole, bad) == (after[4:18], b"", False, False), f"after {size} bytes"
        assert len(cut) <= 1
        for header, payload, whole, bad in cut:
            closed += 1
            assert header == data[4:18] and bad and not whole
            assert data[20:].startswith(payload)
        receiver.sink.beats.clear()
    assert closed > 0 or size <= receiver.beat


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def may_go_down_in_any_cycle(dut):
    """The link goes down in any cycle of an incoming frame: every packet that the core has begun
    to receive is ended, and the rest of the frame is skipped."""
    rng = random.Random(6)
    receiver = Receiver(dut, stall="at_random")
    await receiver.begin()
    chunk, size = receiver.chunk, receiver.element * receiver.chunk
    data = model.frame(data_header(rng, chunk), bytes(size))
    after = model.frame({"kind": zwire.KIND_FINISH, "vid": 5})
    for cycles in range(1, 60 + 2 * len(data) // receiver.width):
        receiver.put(data)
        await ClockCycles(dut.clk, cycles)
        dut.down.value = 1
        await ClockCycles(dut.clk, 2)
        while int(dut.busy.value):
            await RisingEdge(dut.clk)
        dut.down.value = 0
        await receiver.source.drained()
        receiver.put(after)
        await receiver.settle()
        *cut, last = receiver.packets()
        assert last == (after[4:18], b"", False, False), f"after {cycles} cycles"
        assert len(cut) <= 1
        for header, payload, whole, bad in cut:
            assert header == data[4:18]
            assert bad or (whole == (len(payload) == size and size % receiver.beat == 0))
        receiver.sink.beats.clear()


SOURCES = [
    ROOT / "cocotb" / "link_receiver.v",
    *(leaf(f"agg_{name}") for name in ("byte_fifo", "crc16", "frame_rx", "beat_pack")),
]


NARROW = [
    *(f"finds_frames/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS),
    "keeps_up_with_the_link",
    "drops_what_is_half_received_when_the_link_goes_down",
    "may_go_down_in_any_cycle",
]


@pytest.mark.parametrize(
    "link, lanes, chunk, element",
    [
        *((8, 16, 32, 4), (16, 1, 9, 4), (32, 2, 16, 4), (32, 16, 32, 4), (64, 1, 9, 4), (64, 16, 32, 4)),
        *((8, 1, 9, 1), (32, 1, 9, 1), (64, 1, 9, 2), (64, 2, 16, 1), (64, 4, 16, 1), (32, 4, 16, 2)),
    ],
)
def test_link_receiver(link, lanes, chunk, element):
    # The hand-written frames have elements of four bytes.
    _run(link, lanes, chunk, None if element == 4 else NARROW, element)


def test_link_receiver_full_chunk():
    """The rate with the default chunk, which must reach 0.98 of the link's."""
    for link, lanes in ((8, 16), (16, 16), (32, 16), (64, 16), (32, 1)):
        _run(link, lanes, 256, ["keeps_up_with_the_link"])


def _run(link, lanes, chunk, testcase, element=4):
    window = max(4, link // 8)
    run(
        "link_receiver",
        SOURCES,
        {
            "LINK_BYTES": link // 8,
            "WINDOW": window,
            "STEP": min(window, element * lanes),
            "BEAT_BYTES": element * lanes,
            "CHUNK": chunk,
            "ELEM_BYTES": element,
        },
        simulator="icarus" if link == 32 and lanes < 16 else "verilator",
        testcase=testcase,
    )
