"""The leaves of a card on Ethernet that stand alone: agg_crc32c, agg_eth_merge and agg_eth_answers."""

import random
import struct

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge, Timer

import ethernet
from bench import ROOT, leaf, run, start
from castagnoli import crc32c
from streams import PATTERNS, Gate, StreamSink, StreamSource

# -- agg_crc32c


@cocotb.test()
async def continues_the_crc(dut):
    """The CRC of a message grows by a step. Each bit has its share: the CRC is linear, so these determine it."""
    rng = random.Random(1)
    size = len(dut.data) // 8

    async def crc(state, data):
        dut.crc_in.value = state
        dut.data.value = int.from_bytes(data, "little")
        await Timer(1, "ns")
        return dut.crc_out.value.to_unsigned()

    for bit in range(32 + 8 * size):
        state, step = (1 << bit) % (1 << 32), 1 << bit >> 32
        want = state
        for place in range(8 * size):
            want = want >> 1 ^ (0x82F63B78 if (want ^ step >> place) & 1 else 0)
        assert await crc(state, step.to_bytes(size, "little")) == want
    assert crc32c(b"123456789") == 0xE3069283  # the check value of its catalogues
    for _ in range(20):
        begin, step = rng.randbytes(rng.randrange(20)), rng.randbytes(size)
        state = crc32c(begin) ^ 0xFFFFFFFF
        want = crc32c(begin + step) ^ 0xFFFFFFFF
        assert await crc(state, step) == want
        assert await crc(state, bytes(size)) ^ await crc(0, step) == want


@pytest.mark.parametrize("size", [1, 8, 64])
def test_agg_crc32c(size):
    run("agg_crc32c", parameters={"BYTES": size}, testcase="continues_the_crc")


# -- agg_eth_merge


def words(frame, size):
    """Returns a frame's beats."""
    parts = [frame[i : i + size] for i in range(0, len(frame), size)]
    beats = [{"tdata": int.from_bytes(part, "little"), "tkeep": (1 << len(part)) - 1, "tlast": 0} for part in parts]
    beats[-1]["tlast"] = 1
    return beats


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def merges_whole_frames(dut, idle, stall):
    """Frames of all streams leave whole, each stream's in order."""
    rng = random.Random(f"{idle} {stall}")
    size = len(dut.m_axis_tkeep)
    sources = [StreamSource(dut, f"s_{i}", PATTERNS[idle]()) for i in range(3)]
    sink = StreamSink(dut, "m_axis", PATTERNS[stall]())
    await start(dut)
    want = [[], [], []]
    for i, source in enumerate(sources):
        for number in range(4):
            want[i].append(bytes([i, number]) + rng.randbytes(rng.choice([58, 59, 70, 130])))
            source.put(words(want[i][-1], size))
    while sum(beat["tlast"] for beat in sink.beats) < 12:
        await ClockCycles(dut.clk, 20)
    found = ethernet.frames(sink.beats, size)
    assert [[frame for frame in found if frame[0] == i] for i in range(3)] == want


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def takes_turns_without_a_pause(dut):
    """While all streams offer frames, a word leaves every cycle, and streams alternate; a stream alone has all cycles."""
    size = len(dut.m_axis_tkeep)
    sources = [StreamSource(dut, f"s_{i}") for i in range(3)]
    sink = StreamSink(dut, "m_axis")
    await start(dut)
    for i, count in enumerate((3, 6, 4)):
        for number in range(count):
            sources[i].put(words(bytes([i, number]) + bytes(58 + 5 * i), size))
    while sum(beat["tlast"] for beat in sink.beats) < 13:
        await ClockCycles(dut.clk, 20)
    order = [frame[0] for frame in ethernet.frames(sink.beats, size)]
    assert order == [0, 1, 2] * 3 + [1, 2] + [1, 1]
    assert sink.taken_at == list(range(sink.taken_at[0], sink.taken_at[0] + len(sink.beats)))


@pytest.mark.parametrize("size", [1, 8, 64])
def test_agg_eth_merge(size):
    idles = PATTERNS if size == 8 else ["at_random", "never"]
    run(
        "ethernet_merge",
        [ROOT / "cocotb" / "ethernet_merge.v", leaf("agg_eth_merge")],
        {"BYTES": size},
        testcase=[f"merges_whole_frames/idle={i}/stall={s}" for i in idles for s in idles]
        + ["takes_turns_without_a_pause"],
    )


# -- agg_eth_answers


def arp_request(own, mac, ip):
    """Returns an ARP request for the card (RFC 826), as a broadcast."""
    data = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + mac.to_bytes(6, "big") + struct.pack("!I", ip)
    return ethernet.ethernet(mac, (1 << 48) - 1, 0x0806, data + bytes(6) + struct.pack("!I", own[1]))


def arp_reply(own, mac, ip):
    """Returns the card's answer to arp_request."""
    data = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2) + own[0].to_bytes(6, "big") + struct.pack("!I", own[1])
    return ethernet.ethernet(own[0], mac, 0x0806, data + mac.to_bytes(6, "big") + struct.pack("!I", ip))


def echo(kind, data):
    """Returns an ICMP echo message (RFC 792): kind 8 is a request, 0 the reply. data: from the identifier on."""
    return struct.pack("!BBH", kind, 0, ethernet.checksum(bytes([kind, 0, 0, 0]) + data)) + data


class Answers:
    """The design between a receive side and a MAC."""

    def __init__(self, dut, rng, idle="never", stall=None):
        self.dut, self.rng, self.idle = dut, rng, PATTERNS[idle]()
        self.size = len(dut.m_axis_tkeep)
        self.sink = StreamSink(dut, "m_axis", stall)
        self.dropped = 0
        self.own = some_peer(rng)  # the card's MAC and IP addresses
        dut.own_mac.value, dut.own_ip.value = self.own
        dut.s_axis_tvalid.value = 0

    async def start(self):
        await start(self.dut)
        cocotb.start_soon(self._count())

    async def _count(self):
        while True:
            await RisingEdge(self.dut.clk)
            self.dropped += int(self.dut.dropped.value)

    async def receive(self, frame, **verdict):
        """Passes a frame word by word, with the fields of its verdict in its last cycle."""
        for beat in words(frame, self.size):
            while next(self.idle):
                await self._word({}, valid=0)
            await self._word({"tdata": beat["tdata"], "tlast": beat["tlast"], **(verdict if beat["tlast"] else {})})
        self.dut.s_axis_tvalid.value = 0

    async def _word(self, fields, valid=1):
        noise = {name: self.rng.getrandbits(len(handle)) for name, handle in self._fields().items()}
        if fields and fields["tlast"]:
            noise["arp"] = noise["echo"] = 0
        for name, handle in self._fields().items():
            handle.value = fields.get(name, noise[name])
        self.dut.s_axis_tvalid.value = valid
        await RisingEdge(self.dut.clk)

    def _fields(self):
        names = {name: f"s_{name}" for name in ("arp", "echo", "mac", "ip", "bytes", "checksum")}
        names |= {name: f"s_axis_{name}" for name in ("tdata", "tlast")}
        return {name: getattr(self.dut, handle) for name, handle in names.items()}

    async def ask(self, mac, ip, data=None):
        """Passes an ARP request, or an echo request with the data; returns the answer due."""
        if data is None:
            await self.receive(arp_request(self.own, mac, ip), arp=1, mac=mac, ip=ip)
            return arp_reply(self.own, mac, ip)
        message = echo(8, data)
        frame = ethernet.ethernet(mac, self.own[0], 0x0800, ethernet.ipv4(1, ip, self.own[1], message, ecn=self.rng.randrange(4)))
        if 34 + len(message) < 60:  # not every sender pads with zeros
            frame = frame[: 34 + len(message)] + self.rng.randbytes(26 - len(message))
        fields = {"bytes": 20 + len(message), "checksum": int.from_bytes(message[2:4], "big")}
        await self.receive(frame, echo=1, mac=mac, ip=ip, **fields)
        return ethernet.ethernet(self.own[0], mac, 0x0800, ethernet.ipv4(1, self.own[1], ip, echo(0, data)))

    async def answered(self, count):
        while sum(beat["tlast"] for beat in self.sink.beats) < count:
            await RisingEdge(self.dut.clk)


def same_frame(found, want):
    """Whether frames are the same, but for both forms of a checksum of ICMP that is 0."""
    if found[12:14] == b"\x08\0" and want[36:38] == b"\0\0":
        want = want[:36] + b"\xff\xff" + want[38:]
    return found == want


def some_peer(rng):
    return rng.getrandbits(48), rng.getrandbits(32)


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def answers_requests(dut, idle, stall):
    """Every request is answered, also between other frames, and nothing else."""
    rng = random.Random(f"{idle} {stall}")
    answers = Answers(dut, rng, idle, PATTERNS[stall]())
    await answers.start()
    want = []
    for length in (None, 4, rng.choice([22, 23, 24]), rng.randint(4, 200)):
        for _ in range(rng.randrange(3)):
            await answers.receive(rng.randbytes(rng.choice([60, 61, 110])))
        want.append(await answers.ask(*some_peer(rng), None if length is None else rng.randbytes(length)))
        for _ in range(rng.randrange(3)):
            await answers.receive(rng.randbytes(rng.choice([60, 64, 90])))
        await answers.answered(len(want))
    await ClockCycles(dut.clk, 100)
    found = ethernet.frames(answers.sink.beats, answers.size)
    assert len(found) == len(want) and all(map(same_frame, found, want))
    for frame in found:
        ethernet.judge(frame)
    assert answers.dropped == 0


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def keeps_the_answer_under_way(dut):
    """No frame changes an answer that waits to leave. Requests meanwhile are dropped and counted."""
    rng = random.Random(5)
    gate = Gate(closed=True)
    answers = Answers(dut, rng, stall=gate)
    await answers.start()
    want = []
    # An answer of one word has left the buffer when it waits.
    for kept in (rng.randbytes(700), None if answers.size < 64 else rng.randbytes(200), rng.randbytes(100)):
        want.append(await answers.ask(*some_peer(rng), kept))
        for data in (rng.randbytes(800), None, rng.randbytes(4)):
            await answers.receive(rng.randbytes(900))
            await answers.ask(*some_peer(rng), data)
        gate.closed = False
        await answers.answered(len(want))
        gate.closed = True
        await RisingEdge(dut.clk)
    assert ethernet.frames(answers.sink.beats, answers.size) == want
    assert answers.dropped == 9


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def answers_echoes_up_to_1500_bytes(dut):
    """The largest echo has 1,500 bytes. An echo that began during an answer is dropped, an ARP request is not."""
    rng = random.Random(6)
    answers = Answers(dut, rng)
    await answers.start()
    want = [await answers.ask(*some_peer(rng), rng.randbytes(1500 - 24))]
    await answers.answered(1)
    await answers.ask(*some_peer(rng), rng.randbytes(1500 - 23))
    await answers.ask(*some_peer(rng), rng.randbytes(1600))
    await ClockCycles(dut.clk, 100)
    assert answers.dropped == 2
    for data in (rng.randbytes(1400), None):
        want.append(await answers.ask(*some_peer(rng)))
        await answers.receive(rng.randbytes(60))
        answer = await answers.ask(*some_peer(rng), data) if answers.size == 1 else None
        await answers.answered(len(want))
        if answers.size == 1 and data is None:
            want.append(answer)
    await ClockCycles(dut.clk, 200)
    assert ethernet.frames(answers.sink.beats, answers.size) == want


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def answers_an_echo_of_zeros(dut):
    """The answer to an echo whose words are 0 has the checksum 0xffff, with which their sum is not 0."""
    rng = random.Random(7)
    answers = Answers(dut, rng)
    await answers.start()
    zeros = await answers.ask(*some_peer(rng), bytes(40))
    await answers.answered(1)
    other = await answers.ask(*some_peer(rng), b"\x12\x34\xed\xcb" + bytes(36))
    await answers.answered(2)
    found = ethernet.frames(answers.sink.beats, answers.size)
    assert found[0] == zeros and zeros[36:38] == b"\xff\xff"
    assert other[36:38] == b"\0\0" and same_frame(found[1], other)
    assert ethernet.checksum(found[0][34:]) == ethernet.checksum(found[1][34:]) == 0


@pytest.mark.parametrize("size", [1, 8, 64])
def test_agg_eth_answers(size):
    pauses = PATTERNS if size == 8 else ["at_random"]
    run(
        "agg_eth_answers",
        parameters={"BYTES": size},
        testcase=[f"answers_requests/idle={i}/stall={s}" for i in pauses for s in pauses]
        + ["keeps_the_answer_under_way", "answers_echoes_up_to_1500_bytes", "answers_an_echo_of_zeros"],
    )
