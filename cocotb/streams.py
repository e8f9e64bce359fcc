"""AXI4-Stream sources and sinks for the benches, with patterns of idle and back-pressure cycles.

A beat is a dict from field name to integer, {"tdata": 7, "tlast": 1}. The fields are those of FIELDS
in the module under test; fields=, valid= and ready= give other names.

Both ends follow the protocol and check the other end: valid and the beat are stable until accepted,
and no control signal is ever X.
"""

import itertools
import random

import cocotb
from cocotb.triggers import Event, RisingEdge
from cocotb.utils import get_sim_time

from bench import CLOCK_PERIOD_NS

FIELDS = ("tdata", "tkeep", "tlast", "tuser", "tdest")

# Cycles without an offer after which a sink waits for the next one: looking at every cycle takes longer than simulating it.
ASLEEP = 32


# A pattern is an endless iterator of booleans, one a cycle: True holds the stream back in it.


def never():
    """No cycle is idle."""
    return itertools.repeat(False)


def alternate():
    """Every other cycle is idle."""
    return itertools.cycle([True, False])


def mostly():
    """Seven of eight cycles are idle."""
    return itertools.cycle([True] * 7 + [False])


def bursts(seed=1):
    """Alternates runs of one to twelve idle and busy cycles."""
    rng = random.Random(seed)
    for held in itertools.cycle([False, True]):
        yield from itertools.repeat(held, rng.randint(1, 12))


def at_random(seed=1, chance=0.5):
    """Each cycle is idle with the given probability."""
    rng = random.Random(seed)
    while True:
        yield rng.random() < chance


class Gate:
    """A pattern that is idle while the gate is closed."""

    def __init__(self, closed=False):
        self.closed = closed

    def __iter__(self):
        return self

    def __next__(self):
        return self.closed


# What a bench is parametrized with: every idle pattern of a source with every stall pattern of a sink.
PATTERNS = {
    "never": never,
    "alternate": alternate,
    "mostly": mostly,
    "bursts": bursts,
    "at_random": at_random,
}


def packet(words, keep=None, **first):
    """Returns a packet's beats: words as tdata, tlast on the last, and constant fields.

    keep: tkeep of every beat. Other keywords (tuser=..., tdest=...) are copied into every beat.
    """
    beats = [{"tdata": w, "tlast": int(i == len(words) - 1), **first} for i, w in enumerate(words)]
    if keep is not None:
        for b in beats:
            b["tkeep"] = keep
    return beats


class _Stream:
    """Handles of one stream of the module under test."""

    def __init__(self, dut, prefix, fields, valid, ready):
        self.clk = dut.clk
        self.rst = dut.rst if hasattr(dut, "rst") else None
        self.name = prefix
        if fields is None:
            fields = [f for f in FIELDS if hasattr(dut, f"{prefix}_{f}")]
        self.fields = {f: getattr(dut, f"{prefix}_{f}") for f in fields}
        self.valid = getattr(dut, f"{prefix}_{valid}")
        self.ready = getattr(dut, f"{prefix}_{ready}") if hasattr(dut, f"{prefix}_{ready}") else None

    @property
    def cycle(self):
        """Returns the number of the clock cycle, the same for all streams."""
        return int(get_sim_time("ns")) // CLOCK_PERIOD_NS

    def bit(self, handle):
        """Returns the control signal's value, which must be 0 or 1."""
        return self.number(handle._name, handle.value)

    def number(self, what, value):
        """Returns the value, which must have no X, as a number."""
        try:
            return int(value)
        except ValueError:
            raise AssertionError(f"{self.name}: {what} is {value} in cycle {self.cycle}") from None

    def in_reset(self):
        """Returns whether control signals may still be X."""
        return self.rst is not None and (not self.rst.value.is_resolvable or bool(int(self.rst.value)))

    def accepted(self):
        """Returns whether this clock edge transfers a beat."""
        return bool(self.bit(self.valid)) and (self.ready is None or bool(self.bit(self.ready)))


class StreamSource(_Stream):
    """Drives PREFIX_tdata, ... with the beats given to put() or send().

    idle: pattern of the cycles in which no new beat starts. Absent fields of a beat are 0. While idle, every
    field is the complement of the last beat's, to detect modules that read a field without valid.
    """

    def __init__(self, dut, prefix, idle=None, fields=None, valid="tvalid", ready="tready"):
        super().__init__(dut, prefix, fields, valid, ready)
        self.idle = idle if idle is not None else never()
        self.queue = []
        self.accepted_at = []  # cycle in which each beat was accepted
        self._driven = dict.fromkeys(self.fields, 0)
        self._presenting = False
        self._filled = Event()
        self._moved = Event()
        self.valid.value = 0
        for handle in self.fields.values():
            handle.value = 0
        cocotb.start_soon(self._run())

    def put(self, beats):
        """Queues beats (a list, or one) and returns at once."""
        self.queue.extend([beats] if isinstance(beats, dict) else beats)
        self._filled.set()

    async def send(self, beats):
        """Queues beats and returns after the clock edge that accepts the last of them."""
        self.put(beats)
        await self.drained()

    async def drained(self):
        """Returns when everything queued has been accepted."""
        while self.queue:
            self._moved.clear()
            await self._moved.wait()

    async def _run(self):
        while True:
            await self._filled.wait()
            self._filled.clear()
            await RisingEdge(self.clk)
            await self._empty()

    async def _empty(self):
        """Drives beats until the queue is empty; begins and ends just after a clock edge."""
        while self.queue:
            if next(self.idle):
                self._quiet()
                await RisingEdge(self.clk)
                continue
            self._drive(self.queue[0])
            await RisingEdge(self.clk)
            while not self.accepted():
                await RisingEdge(self.clk)
            self.queue.pop(0)
            self.accepted_at.append(self.cycle)
            self._moved.set()
        self._quiet()

    def _drive(self, beat):
        unknown = set(beat) - set(self.fields)
        assert not unknown, f"{self.name} has no {sorted(unknown)}"
        if not self._presenting:
            self.valid.value = 1
            self._presenting = True
        for field in self.fields:
            self._set(field, beat.get(field, 0))

    def _quiet(self):
        if self._presenting:
            self.valid.value = 0
            self._presenting = False
            for field, handle in self.fields.items():
                self._set(field, self._driven[field] ^ ((1 << len(handle)) - 1))

    def _set(self, field, value):
        """Drives a field, if it changes; see _set_ready."""
        if value != self._driven[field]:
            self.fields[field].value = self._driven[field] = value


class StreamSink(_Stream):
    """Receives beats from PREFIX_tdata, ... into self.beats.

    stall: pattern of the cycles in which ready is low. It advances every cycle, whatever valid is, until
    ASLEEP cycles without a beat; then ready is constant until the next beat.
    In a beat with tkeep, unused bytes of tdata read as 0, and may be X.
    """

    def __init__(self, dut, prefix, stall=None, fields=None, valid="tvalid", ready="tready"):
        super().__init__(dut, prefix, fields, valid, ready)
        self.stall = stall if stall is not None else never()
        self.beats = []  # taken so far
        self.taken_at = []  # cycle in which each of them was taken
        self._moved = Event()
        self._ready = None  # what it is driven with
        if self.ready is not None:
            self._set_ready(0)
        cocotb.start_soon(self._run())

    async def take(self, count):
        """Waits for count beats, removes them from self.beats and returns them."""
        while len(self.beats) < count:
            self._moved.clear()
            await self._moved.wait()
        taken, self.beats = self.beats[:count], self.beats[count:]
        return taken

    async def packet(self):
        """Waits for the next packet (up to tlast), removes it from self.beats and returns its beats."""
        beats = await self.take(1)
        while not beats[-1]["tlast"]:
            beats += await self.take(1)
        return beats

    async def _run(self):
        waiting = None  # the beat that was offered and not accepted in the last cycle
        idle = 0  # cycles without an offer
        while True:
            if idle > ASLEEP:
                await RisingEdge(self.valid)
            await RisingEdge(self.clk)
            offered = self._read() if self._offers() else None
            if waiting is not None:
                assert offered == waiting, (
                    f"{self.name}: {waiting} was offered, not accepted, and became {offered}"
                )
            waiting = offered
            idle = 0 if offered is not None else idle + 1
            if offered is not None and (self.ready is None or self.bit(self.ready)):
                self.beats.append(offered)
                self.taken_at.append(self.cycle)
                waiting = None
                self._moved.set()
            if self.ready is not None:
                self._set_ready(int(not next(self.stall)))

    def _set_ready(self, ready):
        """Drives ready, if it changes: a write every cycle takes as long as everything else."""
        if ready != self._ready:
            self.ready.value = self._ready = ready

    def _offers(self):
        """Returns whether valid is high; during reset it may be X and is ignored."""
        value = self.valid.value
        if value.is_resolvable and not int(value):
            return False
        return not self.in_reset() and bool(self.bit(self.valid))

    def _read(self):
        beat = {}
        for field, handle in self.fields.items():
            value = handle.value
            if field == "tdata" and "tkeep" in self.fields:
                beat[field] = self._kept(value, int(self.fields["tkeep"].value))
            else:
                beat[field] = self.number(field, value)
        return beat

    def _kept(self, value, keep):
        try:
            word = int(value)
        except ValueError:
            return self._kept_of_unknown(str(value)[::-1], keep)
        if keep == (1 << len(value) // 8) - 1:
            return word
        return sum(word & (0xFF << 8 * k) for k in range(len(value) // 8) if keep >> k & 1)

    def _kept_of_unknown(self, bits, keep):
        word = 0
        for k in range(len(bits) // 8):
            if keep >> k & 1:
                byte = bits[8 * k : 8 * k + 8][::-1]
                assert set(byte) <= {"0", "1"}, f"{self.name}: kept byte {k} of tdata is {byte}"
                word |= int(byte, 2) << 8 * k
        return word
