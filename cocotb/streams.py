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

from bench import bits, cycle

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


class _Edges:
    """Steps the streams of a clock: at every edge, one task wakes for all of them.

    Waking a task takes longer than what a stream does in a cycle.
    """

    of = {}  # by the clock's handle

    def __init__(self, clk):
        self.clk = clk
        self.steps = []  # functions to call at the next edge; each returns whether to call it at the edge after
        self.added = []  # others, and when each was added
        self.task = None

    @classmethod
    def at(cls, clk):
        """Returns the clock's edges."""
        return cls.of.setdefault(clk, cls(clk))

    def add(self, step):
        """Calls the function from the next edge on."""
        if self.task is None or self.task.done():
            self.steps, self.added = [], []  # those of a test that has ended
            self.task = cocotb.start_soon(self._run())
        self.added.append((get_sim_time("step"), step))

    async def _run(self):
        while self.steps or self.added:
            await RisingEdge(self.clk)
            if self.added:
                now = get_sim_time("step")
                self.steps += [step for since, step in self.added if since < now]
                self.added = [(since, step) for since, step in self.added if since == now]
            self.steps = [step for step in self.steps if step()]


class _Stream:
    """Handles of one stream of the module under test."""

    def __init__(self, dut, prefix, fields, valid, ready):
        self.clk = dut.clk
        self.edges = _Edges.at(dut.clk)
        self.rst = dut.rst if hasattr(dut, "rst") else None
        self.name = prefix
        if fields is None:
            fields = [f for f in FIELDS if hasattr(dut, f"{prefix}_{f}")]
        self.fields = {f: getattr(dut, f"{prefix}_{f}") for f in fields}
        self.valid = getattr(dut, f"{prefix}_{valid}")
        self.ready = getattr(dut, f"{prefix}_{ready}") if hasattr(dut, f"{prefix}_{ready}") else None

    def number(self, what, bits):
        """Returns the bits, which must have no X, as a number."""
        try:
            return int(bits, 2)
        except ValueError:
            raise AssertionError(f"{self.name}: {what} is {bits} in cycle {cycle()}") from None

    def is_ready(self):
        """Returns whether ready, which must be 0 or 1, is high."""
        return self.ready is None or self.number("ready", bits(self.ready)) == 1


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
        self._presenting = False  # valid is high
        self._offered = False  # the queue's first beat is at the ports
        self._awake = False
        self._moved = Event()
        self.valid.value = 0
        for handle in self.fields.values():
            handle.value = 0

    def put(self, beats):
        """Queues beats (a list, or one) and returns at once."""
        self.queue.extend([beats] if isinstance(beats, dict) else beats)
        if self.queue and not self._awake:
            self._awake = True
            self.edges.add(self._step)

    async def send(self, beats):
        """Queues beats and returns after the clock edge that accepts the last of them."""
        self.put(beats)
        await self.drained()

    async def drained(self):
        """Returns when everything queued has been accepted."""
        while self.queue:
            self._moved.clear()
            await self._moved.wait()

    def _step(self):
        """Drives a cycle, just after its clock edge; returns whether beats are left."""
        if self._offered:
            if not self.is_ready():
                return True
            self._offered = False
            self.queue.pop(0)
            self.accepted_at.append(cycle())
            self._moved.set()
        self._awake = bool(self.queue)
        if not self.queue or next(self.idle):
            self._quiet()
        else:
            self._offered = True
            self._drive(self.queue[0])
        return self._awake

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

    def __init__(self, dut, prefix, stall=None, fields=None, valid="tvalid", ready="tready", to=None):
        """to: is called with each beat, instead of adding it to self.beats."""
        super().__init__(dut, prefix, fields, valid, ready)
        self.stall = stall if stall is not None else never()
        self.beats = []  # taken so far
        self.taken_at = []  # cycle in which each of them was taken
        self.to = to if to is not None else self._keep
        self._moved = Event()
        self._ready = None  # what it is driven with
        self._waiting = None  # the beat that was offered and not accepted in the last cycle
        self._bits = None  # of that beat
        self._idle = 0  # cycles without an offer
        if self.ready is not None:
            self._set_ready(0)
        self.edges.add(self._step)

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

    def _keep(self, beat):
        self.beats.append(beat)
        self._moved.set()

    def _step(self):
        """Samples and drives a cycle, just after its clock edge; returns whether to watch the next."""
        offered = self._read() if self._offers() else None
        if self._waiting is not None:
            assert offered == self._waiting, (
                f"{self.name}: {self._waiting} was offered, not accepted, and became {offered}"
            )
        self._waiting = offered
        self._idle = 0 if offered is not None else self._idle + 1
        if offered is not None and self.is_ready():
            self._waiting = self._bits = None
            self.taken_at.append(cycle())
            self.to(offered)
        if self.ready is not None:
            self._set_ready(int(not next(self.stall)))
        if self._idle > ASLEEP:
            cocotb.start_soon(self._sleep())
        return self._idle <= ASLEEP

    async def _sleep(self):
        await RisingEdge(self.valid)
        self.edges.add(self._step)

    def _set_ready(self, ready):
        """Drives ready, if it changes: a write every cycle takes as long as everything else."""
        if ready != self._ready:
            self.ready.value = self._ready = ready

    def _offers(self):
        """Returns whether valid is high; during reset it may be X and is ignored."""
        valid = bits(self.valid)
        if valid == "0" or (self.rst is not None and bits(self.rst) != "0"):
            return False
        return self.number("valid", valid) == 1

    def _read(self):
        """Returns the beat; a beat whose bits are those of the waiting one is that beat."""
        now = [bits(handle) for handle in self.fields.values()]
        if now == self._bits:
            return self._waiting
        self._bits = now
        found = dict(zip(self.fields, now))
        keep = self.number("tkeep", found["tkeep"]) if "tkeep" in found else None
        return {
            field: self.number(field, word) if field != "tdata" or keep is None else self._kept(word, keep)
            for field, word in found.items()
        }

    def _kept(self, word, keep):
        """Returns the kept bytes of a word of bits; the others are 0."""
        size = len(word) // 8
        if keep == (1 << size) - 1:
            return self.number("tdata", word)
        kept = [word[8 * (size - 1 - k) :][:8] if keep >> k & 1 else "00000000" for k in range(size)]
        return self.number("tdata", "".join(reversed(kept)) or "0")
