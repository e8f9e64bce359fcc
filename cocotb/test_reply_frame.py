"""agg_reply_frame: the frames of replies are those of NETWORK.md, as agg_eth_transmit sends them."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

import ethernet
import model
import zwire
from bench import leaf, number, run, start
from castagnoli import closed
from network_model import Host
from streams import PATTERNS, StreamSink, never

LATENCY = 46  # cycles from a reply to the first word of its frame

OWN = Host(0x02_5452_000001, 0x0A000001, 0x5442)


@pytest.mark.parametrize("size", [1, 8, 64])
def test_agg_reply_frame(size):
    run("agg_reply_frame", [leaf("agg_reply_frame"), leaf("agg_crc32c")], {"BYTES": size})


class Replies:
    """Offers replies, and compares the frames that leave."""

    def __init__(self, dut, stall=never, seed=1):
        self.dut, self.rng, self.size = dut, random.Random(seed), int(dut.BYTES.value)
        dut.s_reply_valid.value = 0
        for name in "own_mac own_ip own_port s_reply_header s_reply_mac s_reply_ip s_reply_port".split():
            getattr(dut, name).value = 0
        self.sink = StreamSink(dut, "m_axis", stall(), ("tdata", "tkeep", "tlast"))

    def some_host(self):
        rng = self.rng
        return Host(rng.getrandbits(48), rng.getrandbits(32), rng.getrandbits(16))

    def some_header(self):
        """Returns the header of a reply: 22 bytes."""
        rng = self.rng
        header = {"version": zwire.VERSION, "kind": zwire.KIND_REPLY, "code": rng.randrange(48), "vid": rng.getrandbits(32)}
        return model.pack(header | {"mask": rng.getrandbits(64), "length": rng.getrandbits(16)}, 22)

    async def send(self, header, own, to):
        """Sends a reply; returns its frame, and the cycles from the reply to the frame's first word."""
        dut = self.dut
        dut.own_mac.value, dut.own_ip.value, dut.own_port.value = own[:3]
        dut.s_reply_mac.value, dut.s_reply_ip.value, dut.s_reply_port.value = to[:3]
        dut.s_reply_header.value = int.from_bytes(header, "little")
        dut.s_reply_valid.value = 1
        cycles, first, begun = 0, None, len(self.sink.beats)
        while True:
            await RisingEdge(dut.clk)
            if number(dut.m_axis_tvalid):
                first = cycles if first is None else first
            else:
                assert first is None, "a pause inside of a frame"
            last = number(dut.m_axis_tvalid) and number(dut.m_axis_tready) and number(dut.m_axis_tlast)
            assert number(dut.s_reply_ready) == last, "the reply is taken with the last word"
            if last:
                break
            cycles += 1
            assert cycles < 2000, "no frame"
        # The next access may change everything.
        for name in "own_mac own_ip own_port s_reply_header s_reply_mac s_reply_ip s_reply_port".split():
            getattr(dut, name).value = self.rng.getrandbits(len(getattr(dut, name)))
        dut.s_reply_valid.value = 0
        await RisingEdge(dut.clk)
        words = self.sink.beats[begun:]
        for word in words[:-1]:
            assert word["tkeep"] == (1 << self.size) - 1 and not word["tlast"]
        count = words[-1]["tkeep"].bit_length()
        assert words[-1]["tkeep"] == (1 << count) - 1
        data = b"".join(word["tdata"].to_bytes(self.size, "little") for word in words)
        return data[: self.size * (len(words) - 1) + count], first

    async def check(self, header, own, to):
        frame, first = await self.send(header, own, to)
        want = ethernet.udp_frame(own, to, closed(header))
        assert frame == want, f"{frame.hex()}, want {want.hex()}"
        ethernet.judge(frame)
        return first


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=["never", "bursts", "mostly"])
async def frames_are_those_of_other_cards(dut, stall):
    replies = Replies(dut, PATTERNS[stall])
    await start(dut)
    for _ in range(20):
        first = await replies.check(replies.some_header(), replies.some_host(), replies.some_host())
        assert first == LATENCY
        for _ in range(replies.rng.choice([0, 0, 3])):
            await RisingEdge(dut.clk)
            assert not number(dut.m_axis_tvalid)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def checksums_wrap(dut):
    """Sums of ones, of zeros, and a UDP checksum of 0, which is sent as ones."""
    replies = Replies(dut)
    await start(dut)
    ones, zeros = Host((1 << 48) - 1, 0xFFFFFFFF, 0xFFFF), Host(0, 0, 0)
    for own, to in [(ones, ones), (zeros, zeros), (ones, zeros), (OWN, ones)]:
        for header in (b"\xff" * 22, bytes(22), replies.some_header()):
            await replies.check(header, own, to)
    for _ in range(3):
        header, to = replies.some_header(), replies.some_host()
        frame = ethernet.udp_frame(OWN, to._replace(port=0), closed(header))
        to = to._replace(port=int.from_bytes(frame[40:42], "big"))  # the sum is then 0xffff
        frame, _ = await replies.send(header, OWN, to)
        assert frame == ethernet.udp_frame(OWN, to, closed(header)) and frame[40:42] == b"\xff\xff"
    for ip in (0x3AB4FFFF, 0x3AB5FFFF, 0x3AB6FFFF, 0xFFFF3AB5):  # of IP: sums around 0xffff, and a carry that carries
        await replies.check(replies.some_header(), OWN._replace(ip=0), OWN._replace(ip=ip))
