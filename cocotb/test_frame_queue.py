"""agg_frame_queue: frames that are kept leave whole, in order and alone."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from bench import bits, number, run, start
from streams import PATTERNS, StreamSink

WORDS, FRAMES = 16, 4  # that the queue holds

# A word's payload, and what m_axis says about a beat
FIELDS = ("tdata", "tpayload", "tlast", "tuser")


class Sender:
    """Sends words and verdicts, and keeps the beats that must leave."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.want = []  # beats of the frames that were kept
        self.dropped = self.kept = 0
        dut.s_axis_tvalid.value = dut.s_verdict_valid.value = 0

    async def cycle(self, word=None, last=0, verdict=None):
        """Spends a cycle: with a word, a verdict (descriptor, keep) or both. Returns whether a frame was dropped."""
        dut, rng = self.dut, self.rng
        dut.s_axis_tvalid.value = int(word is not None)
        dut.s_axis_tdata.value = rng.getrandbits(16) if word is None else word
        dut.s_axis_tlast.value = rng.randrange(2) if word is None else last
        dut.s_verdict_valid.value = int(verdict is not None)
        dut.s_verdict_descriptor.value, dut.s_verdict_keep.value = verdict or (rng.getrandbits(12), rng.randrange(2))
        await RisingEdge(dut.clk)
        return number(dut.event_dropped) == 1

    async def frame(self, size, keep=True, apart=0, idle=None):
        """Sends a frame of that many words; its verdict comes that many cycles after the last."""
        words, descriptor = [self.rng.getrandbits(16) for _ in range(size)], self.rng.getrandbits(12)
        # A frame that is not kept may end anywhere.
        ends = keep or self.rng.random() < 0.5
        for n, word in enumerate(words):
            while idle is not None and next(idle):
                assert not await self.cycle()
            last = int(ends and n == size - 1)
            if n == size - 1 and apart == 0:
                dropped = await self.cycle(word, last, (descriptor, int(keep)))
            else:
                assert not await self.cycle(word, last)
        for n in range(apart if size else max(apart, 1)):
            final = n == max(apart, 1) - 1
            dropped = await self.cycle(verdict=(descriptor, int(keep)) if final else None)
        assert keep or not dropped, "a frame that is not kept is no loss"
        if keep and not dropped:
            self.kept += 1
            self.want += [
                {"tdata": word, "tpayload": 1, "tlast": int(n == size - 1), "tuser": descriptor}
                for n, word in enumerate(words)
            ] or [{"tdata": 0, "tpayload": 0, "tlast": 1, "tuser": descriptor}]
        self.dropped += dropped
        return dropped


async def drain(sender, sink, beats):
    """Waits until that many beats have left, and compares all."""
    for _ in range(40 * beats + 100):
        if len(sink.beats) == beats:
            break
        await sender.cycle()
    for _ in range(10):
        await sender.cycle()
    assert sink.beats == sender.want


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=["never", "alternate", "at_random"], stall=list(PATTERNS))
async def kept_frames_leave(dut, idle, stall):
    """Frames of all sizes, kept or not, also of more words than the queue has."""
    rng = random.Random(f"{idle} {stall}")
    sender = Sender(dut, rng)
    sink = StreamSink(dut, "m_axis", PATTERNS[stall](), FIELDS)
    await start(dut)
    pattern = PATTERNS[idle]()
    for _ in range(120):
        size = rng.choice([0, 1, 1, 2, 3, rng.randrange(WORDS + 3)])
        await sender.frame(size, rng.random() < 0.6, rng.choice([0, 0, 1, 3]), pattern)
        if rng.random() < 0.1:
            for _ in range(30):
                await sender.cycle()
    await drain(sender, sink, len(sender.want))
    assert sender.kept > 20 and (sender.dropped or stall != "mostly")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def holds_its_capacity(dut):
    """A stopped reader: the words and frames that fit, and each kind of frame that does not."""
    rng = random.Random(1)
    dut.m_axis_tready.value = 0
    for sizes, fits in [
        ([WORDS], True),
        ([WORDS + 1], False),
        ([WORDS - 3, 3], True),
        # The first words left the memory for the reader: as many more have a place.
        ([2, WORDS, 1], False),
        ([1, WORDS + 3], False),
        # Two frames more than the memory holds: descriptors that left it for the reader
        ([0] * (FRAMES + 2), True),
        ([1] * (FRAMES + 2), True),
        ([1] * (FRAMES + 3), False),
        ([0] * (FRAMES + 3), False),
    ]:
        sender = Sender(dut, rng)
        await start_again(dut)
        for n, size in enumerate(sizes):
            dropped = await sender.frame(size, apart=4)
            assert dropped == (not fits and n == len(sizes) - 1), (sizes, n)
        # What does not fit leaves no trace, and does not stop the next frame.
        sink = StreamSink(dut, "m_axis", None, FIELDS)
        await drain(sender, sink, len(sender.want))
        await sender.frame(3)
        await drain(sender, sink, len(sender.want))
        dut.m_axis_tready.value = 0
        sink.to = lambda beat: None


started = False


async def start_again(dut):
    """Starts the clock, or resets only."""
    global started
    if started:
        dut.rst.value = 1
        for _ in range(3):
            await RisingEdge(dut.clk)
        dut.rst.value = 0
        await RisingEdge(dut.clk)
    else:
        await start(dut)
        started = True


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def keeps_the_rate(dut):
    """A beat a cycle, whatever the frames are; the first in the third cycle after its verdict."""
    rng = random.Random(2)
    sender = Sender(dut, rng)
    dut.m_axis_tready.value = 1
    await start(dut)
    for sizes in ([0] * 20, [1] * 20, [0, 1] * 10, [2] * 10, [1, 3, 0, 2]):
        began, seen = None, []

        async def watch():
            while True:
                await RisingEdge(dut.clk)
                seen.append(bits(dut.m_axis_tvalid))

        watcher = cocotb.start_soon(watch())
        for size in sizes:
            await sender.frame(size)
        for _ in range(12):
            await sender.cycle()
        watcher.cancel()
        beats = sum(max(size, 1) for size in sizes)
        assert sender.dropped == 0
        first = seen.index("1")
        assert first == max(sizes[0], 1) - 1 + 3, "the verdict comes with the frame's last word"
        if len(set(sizes)) == 1 and sizes[0] < 2:
            assert seen[first : first + beats] == ["1"] * beats, "no cycle without a beat"
        assert seen.count("1") == beats


def test_agg_frame_queue():
    run(
        "agg_frame_queue",
        parameters={"WORD_BITS": 16, "DESCRIPTOR_BITS": 12, "DEPTH_BITS": 4, "FRAME_BITS": 2},
    )
