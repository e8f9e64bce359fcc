"""Whole cards under test: generates them, and exchanges packets with either shell.

BareCard drives the ports of a card made with -shell none, LinkCard the byte stream of -shell
stream. Both send packets (header dict, payload bytes). self.sent collects the card's packets as
tuples (header, payload, port); port is None for a packet without a port of its own. expect()
compares them with the Python model's reply.
"""

import collections
import functools
import json
import logging
import os
import pathlib
import random
import shutil
import subprocess

import cocotb
from cocotb.triggers import ClockCycles, Event, FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

import model
import zwire
from arithmetic import Arithmetic
from bench import BUILD, ROOT, cycle, number, run, start, wait_cycles
from streams import StreamSink, StreamSource, never

# A card answers a refusal at most once in this many cycles.
REFUSAL_CYCLES = 1024

# Registers whose value depends on time, or on the course of a sum.
TIMED = [zwire.REG_CYCLES, *(zwire.REG_COUNTERS + 8 * i for i in (zwire.COUNT_UNDECIDED, zwire.COUNT_STALLED))]


def run_card(name, flags, testcase=None, generator=(ROOT / "bin" / "hwgen",)):
    """Generates a card and runs the calling file's cocotb tests on it. generator: a command with
    hwgen's flags."""
    folder = BUILD / "cards" / name
    if "MUTANTS" not in os.environ:  # it exists already, and several benches read it at once
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([*generator, *map(str, flags), "-o", folder], check=True, cwd=ROOT)
    manifest = json.loads((folder / "manifest.json").read_text())
    run(
        manifest["top"],
        sources=[folder / f for f in manifest["files"] if f.endswith(".v")],
        includes=[folder],
        simulator="verilator",
        testcase=testcase,
        env={"CARD": str(folder)},
    )


def usual(cards, *others):
    """Returns the names of cards, those of the others only with CARDS=all in the environment."""
    assert set(others) < set(cards), f"{others} are not among {list(cards)}"
    return [name for name in cards if name not in others or os.environ.get("CARDS") == "all"]


def manifest():
    """Returns the manifest of the card under test."""
    return json.loads((pathlib.Path(os.environ["CARD"]) / "manifest.json").read_text())


class CardBench:
    """Common to both shells' benches: the model beside the card, registers by name, comparison."""

    MODEL = model.Card

    def __init__(self, dut, shared):
        self.dut = dut
        self.manifest = manifest()
        self.lanes, self.ports = self.manifest["lanes"], self.manifest["workers"]
        self.chunk, self.window, self.jobs = (self.manifest[name] for name in ("chunk", "window", "jobs"))
        self.latency = self.manifest["latency"]
        how = {name: self.manifest[name] for name in ("format", "result", "sum", "saturate")}
        self.arithmetic = Arithmetic(**how)
        self.format, self.result = self.arithmetic.format, self.arithmetic.result
        sizes = (self.lanes, self.ports, self.chunk, self.window)
        self.model = self.MODEL(*sizes, self.ident(), shared, self.arithmetic, self.jobs)
        self.sent = []  # packets from the card that no test has checked
        self.moved = 0  # cycle of the last input or output
        self.refused = -(10**9)  # cycle in which the last refusal was seen
        self.statuses_left_out = 0

    def ident(self):
        """Returns what the model cannot derive."""
        return {"LINK": self.manifest["link"], "LATENCY": self.latency}

    async def reset(self):
        """Starts the clock, resets, and brings the link up."""
        self.dut.link_up.value = 0
        await start(self.dut)
        self.dut.link_up.value = 1
        await ClockCycles(self.dut.clk, 2)

    @property
    def cycle(self):
        """Returns the number of the clock cycle."""
        return cycle()

    async def quiet(self):
        """Waits until all queued input is in and the output has been quiet for a while."""
        calm = self.calm()
        began = self.moved = self.cycle
        while (rest := self.moved + calm - self.cycle) > 0:
            if self.busy():
                self.moved, rest = self.cycle, 8
            await wait_cycles(self.dut, max(rest, 8))
            assert self.cycle - began < 1000 * calm, "the card does not come to rest"

    async def link_fails(self, cycles):
        """Takes the link down for that many cycles."""
        self.dut.link_up.value = 0
        await wait_cycles(self.dut, cycles)
        self.dut.link_up.value = 1
        self.model.link_down()

    def place(self, port):
        """Returns where the card sends packets for a port of its core, as in self.sent."""
        return port

    def arrived(self, packet):
        """Records a whole packet, except register replies."""
        self.sent.append(packet)

    def calm(self):
        """Returns the cycles after which an input has no further effect."""
        undecided = self.manifest["slots"] * self.manifest["beats"] * self.manifest["undecided"]["beat_cycles"]
        return 40 + self.latency + 4 * self.manifest["beats"] + undecided

    # Registers

    async def access(self, header):
        """Makes a register access and checks the reply with the model; returns the value."""
        self.count_access()
        expected, _, _ = self.model.register(header)
        reply = await self.register(header)
        for field in ("code", "mask", "vid", "length"):
            timed = field == "mask" and is_timed(header["vid"])
            if field in reply and not timed:
                assert reply[field] == expected[field], (
                    f"register access {header}: {field} is {reply[field]:#x}, want {expected[field]:#x}"
                )
        return reply["mask"]

    async def write(self, name, value, *at):
        """Writes the register and checks the reply; returns the value afterwards. at: as the model's address_of."""
        header = {"kind": zwire.KIND_REGWRITE, "vid": self.model.address_of(name, *at), "mask": value, "length": 0}
        return await self.access(header)

    async def read(self, name, *at):
        """Reads the register, in the job's block if jobs have it, and checks it with the model;
        returns its value. at: as the model's address_of."""
        return await self.access({"kind": zwire.KIND_REGREAD, "vid": self.model.address_of(name, *at), "length": 0})

    async def set_up(
        self, epoch, ports=None, chunk=None, window=None, first=0, token=0x1234_5678_9ABC_DEF0, job=0, deadline=0
    ):
        """Takes the card and sets a job up; defaults: all ports, the largest chunk and window."""
        await self.write("OWNER", token)
        await self.write("JOB_TOKEN", token)
        await self.write("JOB_PORTS", (1 << self.ports) - 1 if ports is None else ports)
        await self.write("JOB_CHUNK", chunk or self.chunk)
        await self.write("JOB_WINDOW", window or self.window)
        await self.write("JOB_DEADLINE", deadline)
        await self.write("JOB_COMMIT", job << 48 | epoch << 32 | first)

    async def check_registers(self):
        """Compares all registers with the model, and one register of a job beyond the last."""
        for name in [*zwire.REGISTERS, *(name for name, _ in zwire.COUNTER_NAMES)]:
            for job in range(self.jobs if model.of_a_job(name) else 1):
                await self.read(name, job)
        await self.read("JOB_STATE", self.jobs)

    # Comparison

    async def expect(self, expected):
        """Waits for quiet, and checks that the card has sent what the model expects, in any order.

        A refusal may be missing only if another was answered within 1,024 cycles.
        """
        await self.quiet()
        for packet in self.expand(expected):
            if packet in self.sent:
                self.sent.remove(packet)
                if is_refusal(packet[0]):
                    gap = self.cycle - self.refused
                    assert gap > REFUSAL_CYCLES - 2 * self.calm(), f"a refusal {gap} cycles after another"
                    self.refused = self.cycle
                continue
            since = self.cycle - self.refused
            assert is_refusal(packet[0]) and since < REFUSAL_CYCLES + 2 * self.calm(), (
                f"not sent: {describe(packet)}; sent: {[describe(s) for s in self.sent]}"
            )
            self.statuses_left_out += 1
            self.model.counters["statuses"] -= 1
        assert not self.sent, f"sent, not expected: {[describe(s) for s in self.sent]}"


def spoiled(frame, bad):
    """Returns the frame; if bad, with a flipped bit in its last CRC."""
    return frame[:-1] + bytes([frame[-1] ^ 0x10]) if bad else frame


def whole(header, shared):
    """Returns the header with every field of its kind."""
    size = model.header_bytes(header["kind"], shared)
    return model.unpack(model.pack({"version": zwire.VERSION, **header}, size))


def is_refusal(header):
    """Returns whether a header is a refusal, whose rate the card limits; a status with a mask is
    a notice."""
    return header["kind"] == zwire.KIND_STATUS and header["code"] >= zwire.CODE_BAD_VERSION and not header["mask"]


def is_timed(address):
    """Returns whether the model does not know the register's value."""
    return address in TIMED or 0 <= address - zwire.REG_JOB_LAG < 16 * model.LAG_JOB_STRIDE


def describe(packet):
    """Describes a packet briefly, for messages."""
    header, payload, port = packet
    kind = zwire.KINDS[header["kind"]][0]
    code = zwire.CODES.get(header["code"], header["code"])
    return f"{kind} {code} vid={header['vid']} mask={header.get('mask', 0):#x} port={port} {payload[:8].hex()} {header}"


class BareCard(CardBench):
    """A card with AXI4-Stream ports (-shell none)."""

    SENT_HEADER_BYTES = 22

    def __init__(self, dut, idle=never, stall=never, seed=1):
        """idle, stall: patterns of the ports' sources and sinks."""
        super().__init__(dut, shared=False)
        self.rng = random.Random(seed)
        names = self.port_names()
        self.sources = [StreamSource(dut, f"s_axis_{name}", idle=idle()) for name in names]
        self.packets = [[] for _ in names]  # beats of a packet that has not ended
        self.queued = [0] * len(names)  # beats sent so far
        self.unjudged = [collections.deque() for _ in names]  # data: number of the last beat, header
        self.places = {}  # by job and epoch: first slot and number of slots
        self.verdicts = []  # on the packets since the last exchange
        self.judged = [0] * 5  # packets by the verdict's result
        self.sinks = [
            StreamSink(dut, f"m_axis_{name}", stall=stall(), to=functools.partial(self._collect, p))
            for p, name in enumerate(names)
        ]
        self.registers = {"axil": AxilPort, "bus": BusPort}[self.manifest["register_port"]](dut, idle, stall)

    def port_names(self):
        """Returns the names of the ports, by number."""
        return [f"p{port}" for port in range(self.ports)]

    def header_bytes(self, port):
        """Returns the length of the headers that enter at the port."""
        return 14

    def judges(self, port, header):
        """Returns whether the card reports a verdict on the packet."""
        return header["kind"] == zwire.KIND_DATA

    async def reset(self):
        await super().reset()
        cocotb.start_soon(self._judge())
        await self.read("MAGIC")  # the card takes accesses when it takes packets

    async def _judge(self):
        """Checks that every data packet gets one verdict that is possible, in the order of its port."""
        while True:
            await RisingEdge(self.dut.verdict_valid)
            await FallingEdge(self.dut.clk)
            fields = ("port", "slot", "vid", "result", "code")
            port, slot, vid, result, code = verdict = tuple(number(getattr(self.dut, f"verdict_{f}")) for f in fields)
            assert self.unjudged[port], f"a verdict on no data packet: {verdict}"
            last, header = self.unjudged[port].popleft()
            assert last <= len(self.sources[port].accepted_at), f"a verdict on a packet that is not in: {verdict}"
            assert vid == header["vid"], f"verdict {verdict} on VID {header['vid']}"
            self._note_places()
            its = [place for of, place in self.places.items() if of == (header["job"], header["epoch"])]
            jobs = [place for (job, _), place in self.places.items() if job == header["job"]]
            slots = [base + vid % count for base, count in (its if result <= model.OWED else jobs)]
            assert slot in slots or (slot == 0 and result > model.OWED), f"verdict {verdict}: slots {slots}"
            refusals = {code for _, code in zwire.COUNTER_NAMES if code}
            repeated = model.code_of("duplicate")
            codes = {model.STORED: {zwire.CODE_DONE}, model.REPEATED: {repeated}, model.OWED: {repeated}}
            assert code in codes.get(result, refusals - {repeated}), f"verdict {verdict}"
            self.judged[result] += 1
            self.verdicts.append(verdict)

    def _note_places(self):
        """Notes the slots of the jobs that the model has set up."""
        for block in self.model.blocks:
            if block.job:
                self.places[block.number, block.last_epoch] = block.job.base, len(block.job.slots)

    async def quiet(self):
        await super().quiet()
        assert not any(self.unjudged), f"no verdict on {self.unjudged}"

    def _collect(self, port, beat):
        beats = self.packets[port]
        beats.append(beat)
        if not beat["tkeep"]:  # the sink reads such bytes as 0
            assert number(self.sinks[port].fields["tdata"]) == 0, "lanes without payload are not 0"
        if not beat["tlast"]:
            return
        self.packets[port] = []
        self.moved = self.cycle
        header = model.unpack(beats[0]["tuser"].to_bytes(self.SENT_HEADER_BYTES, "little"))
        size = self.result.bytes * self.lanes
        payload = b"".join(b["tdata"].to_bytes(size, "little") for b in beats if b["tkeep"])
        assert all(b["tkeep"] in (0, (1 << size) - 1) for b in beats), "tkeep is neither empty nor full"
        self.arrived((header, payload, port))

    def count_access(self):
        """Counts no frame: the access does not use a link."""

    def busy(self):
        """Returns whether packets are still queued."""
        return any(source.queue for source in self.sources)

    def idle(self, port):
        """Returns whether the port's queue is empty."""
        return not self.sources[port].queue

    def receivers(self, members, header, port):
        """Returns the packet's target ranks, given the ports of the job's members."""
        return [members.index(port)]

    def expand(self, expected):
        """Returns a packet for each port in the model's mask."""
        return [
            (whole(header, shared=False), payload, port)
            for header, payload, ports in expected
            for port in range(len(self.sources))
            if ports >> port & 1
        ]

    def send(self, port, header, payload=b"", bad=False):
        """Queues a packet on a port."""
        raw = model.pack({"version": zwire.VERSION, **header}, self.header_bytes(port))
        first = int.from_bytes(raw, "little")
        size = self.format.bytes * self.lanes
        words = [payload[i : i + size] for i in range(0, len(payload), size)] or [b""]
        beats = []
        for i, word in enumerate(words):
            last = i == len(words) - 1
            # Fields of tuser are random in the beats where they have no meaning.
            head = first if i == 0 else self.rng.getrandbits(8 * len(raw))
            flag = int(bad) if last else self.rng.getrandbits(1)
            beats.append(
                {
                    "tdata": int.from_bytes(word, "little"),
                    "tkeep": (1 << len(word)) - 1,
                    "tlast": int(last),
                    "tuser": head | flag << 8 * len(raw),
                }
            )
        self.sources[port].put(beats)
        self.queued[port] += len(beats)
        if self.judges(port, header):
            self._note_places()
            self.unjudged[port].append((self.queued[port], header))

    async def exchange(self, port, header, payload=b"", bad=False):
        """Sends a packet and compares the outcome with the model."""
        header = {**dict.fromkeys(zwire.FIELDS, 0), "version": zwire.VERSION, **header}
        self.verdicts.clear()
        self.send(port, header, payload, bad)
        await self.expect(self.model.packet(port, header, payload, bad))
        self.check_verdict(port, header)

    def check_verdict(self, port, header):
        """Compares the verdict on the last packet with the model's."""
        expected = [self.model.verdict] if self.judges(port, header) else []
        assert self.verdicts == expected, f"verdicts {self.verdicts}, want {expected}"

    async def register(self, header):
        write = header["kind"] == zwire.KIND_REGWRITE
        code, value = await self.registers.access(write, header["vid"], header.get("mask", 0))
        self.moved = self.cycle
        return {"code": code, "mask": value}


class BusPort:
    """The register port of a card made with -registers bus."""

    def __init__(self, dut, idle, stall):
        register = {"valid": "valid", "ready": "ready"}
        self.asks = StreamSource(dut, "s_reg", fields=("write", "addr", "wdata"), **register)
        self.answers = StreamSink(dut, "m_reg", fields=("code", "value"), **register)

    async def access(self, write, address, value):
        """Returns the reply's code and value."""
        self.asks.put({"write": int(write), "addr": address, "wdata": value})
        (answer,) = await self.answers.take(1)
        return answer["code"], answer["value"]


class AxilPort:
    """The AXI4-Lite register port of a card made with -registers axil."""

    def __init__(self, dut, idle, stall):
        """idle, stall: patterns of what the master offers and takes."""
        self.master = axil_master(dut, idle, stall)

    async def access(self, write, address, value):
        """Returns the code and the value of the reply that a bus would give, by further reads."""
        if not write:
            return await self._read(address)
        response = await self.master.write(address, value.to_bytes(8, "little"))
        if response.resp == AxiResp.OKAY:
            return await self._read(address)
        if response.resp == AxiResp.DECERR:
            return zwire.CODE_BAD_ADDRESS, 0
        _, code = await self._read(model.address_of("LAST_CODE"))
        return code, 0

    async def _read(self, address):
        response = await self.master.read(address, 8)
        assert response.resp in (AxiResp.OKAY, AxiResp.DECERR), f"a read of {address:#x} is refused: {response.resp}"
        code = zwire.CODE_DONE if response.resp == AxiResp.OKAY else zwire.CODE_BAD_ADDRESS
        return code, int.from_bytes(response.data, "little")


def axil_master(dut, idle=never, stall=never):
    """Returns a master at s_axil; idle, stall: patterns of what it offers and takes."""
    logging.getLogger(f"cocotb.{dut._name}.s_axil").setLevel(logging.WARNING)
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
    for channel in (master.write_if.aw_channel, master.write_if.w_channel, master.read_if.ar_channel):
        channel.set_pause_generator(idle())
    for channel in (master.write_if.b_channel, master.read_if.r_channel):
        channel.set_pause_generator(stall())
    return master


class LinkCard(CardBench):
    """A card on a byte stream (-shell stream)."""

    def __init__(self, dut, idle=never, stall=never, partial=False, seed=1):
        """idle, stall: patterns of the link; partial: the link's words have random lengths."""
        super().__init__(dut, shared=True)
        self.rng = random.Random(seed)
        self.partial = partial
        self.word = self.manifest["link"] // 8
        self.slowest = self.lanes * min(self.format.bytes, self.result.bytes)  # a beat per cycle
        self.rx = StreamSource(dut, "link_rx", idle=idle(), fields=("tdata", "tkeep"))
        self.tx = StreamSink(dut, "link_tx", stall=stall(), fields=("tdata", "tkeep"), to=self._collect)
        self.bytes = b""  # of an incomplete frame from the card
        self.replies = []  # register replies that no test has checked
        self.replied = Event()

    def _collect(self, beat):
        self.moved = self.cycle
        count = beat["tkeep"].bit_length()
        assert count > 0 and beat["tkeep"] == (1 << count) - 1, f"link_tx_tkeep is {beat['tkeep']:#b}"
        self.bytes += beat["tdata"].to_bytes(self.word, "little")[:count]
        whole, self.bytes = model.whole_frames(self.bytes)
        for header, payload in whole:
            if header["kind"] == zwire.KIND_REPLY:
                self.replies.append((header, payload, None))
                self.replied.set()
            else:
                self.arrived((header, payload, None))

    def hurry(self):
        """Stops stalling both directions of the link."""
        self.rx.idle, self.tx.stall = never(), never()

    async def link_fails(self, cycles):
        await super().link_fails(cycles)
        await ClockCycles(self.dut.clk, 2)
        while not int(self.dut.link_rx_tready.value):
            await ClockCycles(self.dut.clk, 1)
        self.bytes = b""  # words for the last host, even incomplete ones, do not reach the next

    def calm(self):
        return super().calm() + 2 * (max(self.format.bytes, self.result.bytes) * self.chunk + 60) // min(self.word, self.slowest)

    def count_access(self):
        """Counts the frame of a register access."""
        self.model.counters["frames"] += 1

    def busy(self):
        """Returns whether bytes are still queued."""
        return bool(self.rx.queue)

    def idle(self, port):
        """Returns whether the queue, which all ports share, is short."""
        return len(self.rx.queue) < 32

    def receivers(self, members, header, port):
        """Returns the packet's target ranks, given the ports of the job's members."""
        if header["kind"] == zwire.KIND_STATUS:
            return [header["rank"]]
        return [rank for rank in range(len(members)) if header["receivers"] >> rank & 1]

    def send(self, port, header, payload=b"", bad=False):
        """Queues a frame on the link; bad: spoils its last CRC."""
        self.put(spoiled(model.frame(header, payload), bad))

    async def quiet(self):
        await super().quiet()
        assert not self.bytes, f"the card stopped in a frame: {self.bytes.hex()}"

    def expand(self, expected):
        """Returns the same packets without a port."""
        return [(whole(header, shared=True), payload, None) for header, payload, _ in expected]

    def put(self, data):
        """Queues bytes on the link."""
        while data:
            count = self.rng.randint(1, self.word) if self.partial else self.word
            word, data = data[:count], data[count:]
            self.rx.put({"tdata": int.from_bytes(word, "little"), "tkeep": (1 << len(word)) - 1})

    async def transmit(self, data):
        """Sends bytes and compares the outcome with the model, including register replies."""
        self.put(data)
        answers = self.model.receive(data)
        await self.expect([a for a in answers if a[0]["kind"] != zwire.KIND_REPLY])
        replies, self.replies = self.replies, []
        expected = self.expand([a for a in answers if a[0]["kind"] == zwire.KIND_REPLY])
        assert replies == expected, f"replies {replies}, want {expected}"

    async def exchange(self, port, header, payload=b"", bad=False):
        """Sends a frame and compares the outcome with the model; bad: spoils its last CRC."""
        if not model.from_host(header["kind"]):
            data, _ = model.frame_header(header, 14)  # the length that the card expects
        else:
            data = model.frame(header, payload)
        await self.transmit(spoiled(data, bad))

    async def register(self, header):
        self.put(model.frame(header))
        while not self.replies:
            self.replied.clear()
            await self.replied.wait()
        ((reply, _, _),) = self.replies
        self.replies.clear()
        return reply
