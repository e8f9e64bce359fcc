"""agg_datagram_accept: what becomes of a datagram, as the model of a card on a network decides (network_model.py)."""

import collections
import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

import eth_frames
import model
import zwire
from arithmetic import Arithmetic
from bench import leaf, number, run, start
from network_model import NetworkCard

FORMATS = {1: "fp8e4m3", 2: "bf16", 4: "fp32"}  # by the bytes of an element
EVENTS = ("event_frame", "event_bad_version", "event_bad_kind", "event_bad_length")
PULSES = ("m_axis_tvalid", "m_verdict_valid", "m_access_valid", *EVENTS)
ACCESS = ("write", "addr", "tag", "wdata", "mac", "ip", "port")


class Accept:
    """Sends words and verdicts, and compares what comes two cycles later with the model."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.size = len(dut.s_axis_tdata) // 8
        self.element = int(dut.ELEM_BYTES.value)
        self.chunk = int(dut.CHUNK.value)
        self.card = NetworkCard.of(chunk=self.chunk, arithmetic=Arithmetic(FORMATS[self.element]))
        self.due = collections.deque([None] * 2)  # what two cycles show: before the first verdict, nothing is known
        self.outcomes = collections.Counter()
        dut.s_axis_tvalid.value = dut.s_verdict_valid.value = 0

    async def cycle(self, verdict=None, word=None, rst=0):
        """Spends a cycle. verdict: what eth_frames.judge() finds; word: data and last."""
        dut, rng = self.dut, self.rng
        dut.rst.value = rst
        dut.s_axis_tvalid.value = int(word is not None)
        data, last = word or (rng.getrandbits(8 * self.size), rng.randrange(2))
        dut.s_axis_tdata.value, dut.s_axis_tlast.value = data, last
        dut.s_verdict_valid.value = int(verdict is not None)
        # Without a verdict, its fields are those of a good access.
        shown = verdict or self.datagram(zwire.KIND_REGREAD, length=rng.getrandbits(16), size=0)
        fields = {
            "kind": shown.kind,
            "mac": int.from_bytes(shown.mac, "big"),
            "ip": int.from_bytes(shown.ip, "big"),
            "port": shown.port,
            "ecn": shown.ecn,
            "header": int.from_bytes((shown.header + shown.payload)[:22], "little"),
            "bytes": len(shown.payload),
        }
        for name, value in fields.items():
            getattr(dut, f"s_verdict_{name}").value = value
        want = dict.fromkeys(PULSES, False)
        if verdict and not rst:
            want |= self.becomes(verdict, fields)
        if word and not rst:
            want |= {"m_axis_tvalid": True, "m_axis_tdata": data, "m_axis_tlast": last}
        await RisingEdge(dut.clk)
        self.check(self.due.popleft())
        if rst:
            self.due = collections.deque([want])
        self.due.append(want)

    def check(self, want):
        """Compares the outputs of this cycle."""
        for name, value in (want or {}).items():
            found = getattr(self.dut, name)
            assert number(found) == value, f"{name}: {number(found):#x}, want {value:#x}"

    def becomes(self, verdict, fields):
        """Returns the outputs that follow from a verdict on a frame."""
        if verdict.kind != eth_frames.DATAGRAM:
            self.outcomes["other"] += 1
            return {"m_verdict_valid": True, "m_verdict_keep": False}
        data = verdict.header + verdict.payload
        header = model.unpack(data[:14])
        refusal = self.card.refusal(header, data)
        self.outcomes[refusal or header["kind"]] += 1
        want = {"m_verdict_valid": True, "m_verdict_keep": False, "event_frame": True}
        if refusal:
            return want | {f"event_{refusal}": True}
        sender = {name: fields[name] for name in ("mac", "ip", "port")}
        if header["kind"] in (zwire.KIND_REGREAD, zwire.KIND_REGWRITE):
            write = header["kind"] == zwire.KIND_REGWRITE
            access = sender | {"write": write, "addr": header["vid"], "tag": header["length"]}
            if write:
                access["wdata"] = int.from_bytes(data[14:22], "little")
            return want | {f"m_access_{name}": value for name, value in access.items()} | {"m_access_valid": True}
        header["flags"] = header["flags"] & ~3 | verdict.ecn
        ragged = header["kind"] == zwire.KIND_DATA and (len(data) - 14) % self.size != 0
        packed = int.from_bytes(model.pack(header, 14), "little")
        descriptor = packed | sender["ip"] << 112 | sender["port"] << 144 | ragged << 160
        return want | {"m_verdict_keep": True, "m_verdict_descriptor": descriptor}

    def datagram(self, kind, length, size, version=zwire.VERSION):
        """Returns the verdict on a datagram with that many bytes after its first 14."""
        rng = self.rng
        header = {name: rng.getrandbits(bits) for name, (lsb, bits) in zwire.FIELDS.items() if lsb < 112}
        data = model.pack(header | {"version": version, "kind": kind, "length": length}, 14) + rng.randbytes(size)
        return eth_frames.Verdict(
            eth_frames.DATAGRAM,
            mac=rng.randbytes(6),
            ip=rng.randbytes(4),
            port=rng.getrandbits(16),
            ecn=rng.randrange(4),
            header=data[:14],
            payload=data[14:],
        )

    def some_verdict(self):
        """Returns the verdict on any frame; most are on good datagrams, or on such with one mistake."""
        rng = self.rng
        kind = rng.choice([zwire.KIND_DATA, zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH])
        kind = rng.choice([kind, kind, zwire.KIND_REGREAD, zwire.KIND_REGWRITE, rng.randrange(16)])
        most = min(self.chunk, 2000)
        length = rng.choice([1, most, rng.randint(1, most), rng.randint(1, most)])
        if rng.random() < 0.2:
            length = rng.choice([0, self.chunk + 1, self.chunk ^ 1 << rng.randrange(16)]) % 2**16
        right = {zwire.KIND_DATA: self.element * length, zwire.KIND_REGWRITE: 8}.get(kind, 0)
        size = right if right <= max(8, self.element * most) else 0
        if rng.random() < 0.15:
            size = max(0, size + rng.choice([-1, 1, 4, 8, 16, 256, -size]))
        version = zwire.VERSION if rng.random() < 0.9 else rng.randrange(16)
        verdict = self.datagram(kind, length, size, version)
        if rng.random() < 0.15:
            verdict.kind = rng.choice([*range(6)])
        return verdict


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(often=[1, 0.5])
async def accepts_what_the_model_accepts(dut, often):
    rng = random.Random(f"{often}")
    accept = Accept(dut, rng)
    await start(dut)
    for n in range(3000):
        verdict = accept.some_verdict() if rng.random() < often else None
        word = (rng.getrandbits(8 * accept.size), rng.randrange(2)) if rng.random() < often else None
        await accept.cycle(verdict, word, rst=int(n % 500 > 496))
    kinds = [zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH, zwire.KIND_REGREAD, zwire.KIND_REGWRITE]
    for outcome in [*kinds, "other", "bad_version", "bad_kind", "bad_length"]:
        assert accept.outcomes[outcome] > 10, accept.outcomes


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def compares_every_bit_of_a_header(dut):
    """One bit differs: of version, kind and length, and of the payload's size."""
    rng = random.Random(1)
    accept = Accept(dut, rng)
    await start(dut)
    right = {zwire.KIND_DATA: accept.element * accept.chunk & 0xFFFF, zwire.KIND_REGWRITE: 8}
    for kind in (zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH, zwire.KIND_REGREAD, zwire.KIND_REGWRITE):
        size = right.get(kind, 0)
        await accept.cycle(accept.datagram(kind, accept.chunk, size))
        for bit in range(16):
            await accept.cycle(accept.datagram(kind ^ 1 << bit % 4, accept.chunk, size))
            await accept.cycle(accept.datagram(kind, accept.chunk, size, version=zwire.VERSION ^ 1 << bit % 4))
            await accept.cycle(accept.datagram(kind, accept.chunk ^ 1 << bit, size))
            await accept.cycle(accept.datagram(kind, accept.chunk, size ^ 1 << bit))
            await accept.cycle(accept.datagram(kind, 1 << bit, accept.element << bit & 0xFFFF))
    for _ in range(3):
        await accept.cycle()


@pytest.mark.parametrize("size, chunk, element", [(8, 256, 4), (1, 3, 1), (64, 1000, 2), (8, 0xFFFF, 4)])
def test_agg_datagram_accept(size, chunk, element):
    run(
        "agg_datagram_accept",
        [leaf(name) for name in ("agg_datagram_accept", "agg_tag_delay", "agg_delay")],
        {"BYTES": size, "CHUNK": chunk, "ELEM_BYTES": element},
    )
