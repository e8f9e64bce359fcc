"""agg_relay: frames to the card's MAC address for its neighbours leave for these (ROCE.md, section 6), and no others."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from bench import joined, leaf, number, run, start
from eth_frames import ADDRESS, MAC, ip_bytes, mac_bytes
from streams import PATTERNS, StreamSink, never

VERDICT = 9  # cycles from a frame's last beat to claims
LATENCY = 12  # to its first word, if nothing waits
LARGEST = 300  # bytes of a frame

LEAVES = ["agg_relay", "agg_tag_delay", "agg_delay", "agg_frame_queue", "agg_ram"]

OWN_MAC, OWN_IP = mac_bytes(MAC), ip_bytes(ADDRESS)

# By number. The third one is not set, and the fourth has its MAC address, but no IPv4 address.
NEIGHBOURS = [(ip_bytes("198.51.100.7"), mac_bytes("02:00:00:00:00:07")), (ip_bytes("198.51.100.6"), mac_bytes("a6:15:2b:3c:4d:5e"))]
NEIGHBOURS += [(bytes(4), bytes(6)), (bytes(4), mac_bytes("02:00:00:00:00:09"))]

FAULTS = ["fcs", "runt", "oversize", "mac", "to_all", "ethertype", "own_ip", "stranger", "no_ip"]


def some_frame(rng, faults=(), size=None):
    """Returns a frame for a neighbour, and whether its FCS is wrong."""
    ip, _ = rng.choice(NEIGHBOURS[:2])
    to, kind = OWN_MAC, b"\x08\x00"
    if "mac" in faults:
        to = flipped(rng, to)
    if "to_all" in faults:
        to = b"\xff" * 6
    if "ethertype" in faults:
        kind = flipped(rng, kind)
    if "own_ip" in faults:
        ip = OWN_IP
    if "stranger" in faults:
        ip = flipped(rng, ip)
    if "no_ip" in faults:
        ip = bytes(4)
    size = size or rng.choice([60, 61, 64, 65, 72, 128, 129, LARGEST - 1, LARGEST, rng.randrange(60, LARGEST + 1)])
    size = rng.choice([1, 12, 34, 59]) if "runt" in faults else size
    size = LARGEST + rng.choice([1, 2, 8, 64, 65]) if "oversize" in faults else size
    head = to + rng.randbytes(6) + kind + rng.randbytes(16) + ip
    return (head + rng.randbytes(size))[:size], "fcs" in faults


def flipped(rng, data):
    """Returns data with one bit changed."""
    return (int.from_bytes(data, "big") ^ 1 << rng.randrange(8 * len(data))).to_bytes(len(data), "big")


def relayed(frame, bad):
    """Returns the frame that leaves for one that came; None if it is not to be relayed."""
    to = {ip: mac for ip, mac in NEIGHBOURS if any(ip)}.get(frame[30:34])
    if bad or not 60 <= len(frame) <= LARGEST or frame[:6] != OWN_MAC or frame[12:14] != b"\x08\x00" or to is None:
        return None
    return to + OWN_MAC + frame[12:]


class Relay:
    """Sends frames, refuses some, and checks claims, events and the frames that leave."""

    def __init__(self, dut, rng, idle=never, stall=never, refusals=0.3):
        """refusals: how many of the frames that the relay claims are refused."""
        self.dut, self.rng, self.idle, self.refusals = dut, rng, idle(), refusals
        self.size = int(dut.BYTES.value)
        self.now = 0
        self.due = {}  # frames by the cycle of claims; None for one that is not to be relayed
        self.want = []
        self.claimed = self.refused = self.dropped = self.relayed = 0
        self.partial, self.left, self.first_at = b"", [], []  # of the frame that leaves; frames; cycles of first words
        self.offers = False  # a word of a frame that began was not the last
        dut.s_axis_tvalid.value = dut.refuse.value = 0
        dut.own_mac.value, dut.own_ip.value = int.from_bytes(OWN_MAC, "big"), int.from_bytes(OWN_IP, "big")
        self.show_neighbours()
        self.sink = StreamSink(dut, "m_axis", stall(), ("tdata", "tkeep", "tlast"), to=self._leaves)

    def show_neighbours(self):
        dut = self.dut
        dut.neighbour_ip.value = joined(32, (int.from_bytes(ip, "big") for ip, _ in NEIGHBOURS))
        dut.neighbour_mac.value = joined(48, (int.from_bytes(mac, "big") for _, mac in NEIGHBOURS))

    def _leaves(self, beat):
        count = beat["tkeep"].bit_length()
        assert beat["tkeep"] == (1 << count) - 1 and (beat["tlast"] or count == self.size)
        self.partial += beat["tdata"].to_bytes(self.size, "little")[:count]
        if beat["tlast"]:
            self.left.append(self.partial)
            self.partial = b""

    async def cycle(self, word=None, frame=None):
        """Spends a cycle. word: fields of s_axis; frame: what leaves for the frame that ends with it."""
        dut, rng = self.dut, self.rng
        refuse = int(rng.random() < self.refusals)
        dut.refuse.value = refuse
        dut.s_axis_tvalid.value = int(word is not None)
        for field, value in (word or {}).items():
            getattr(dut, f"s_axis_{field}").value = value
        if word and word["tlast"]:
            self.due[self.now + VERDICT] = frame
        await RisingEdge(dut.clk)
        due = self.due.pop(self.now, None)
        assert number(dut.claims) == (due is not None), f"claims in cycle {self.now}"
        dropped = number(dut.event_dropped)
        self.relayed += number(dut.event_relayed)
        assert not dropped or (due is not None and not refuse), "a frame was dropped that is not to be relayed"
        if due is not None:
            self.claimed += 1
            self.refused += refuse
            self.dropped += dropped
            if not refuse and not dropped:
                self.want.append(due)
        valid = number(dut.m_axis_tvalid)
        assert valid or not self.offers, "a pause inside of a frame"
        if valid and not self.offers:
            self.first_at.append(self.now)
        if valid and number(dut.m_axis_tready):
            self.offers = not number(dut.m_axis_tlast)
        elif valid:
            self.offers = True
        self.now += 1

    async def frame(self, frame, bad=False):
        """Sends a frame; returns the cycle of its last word."""
        for at in range(0, len(frame), self.size):
            while next(self.idle):
                await self.cycle()
            part, last = frame[at : at + self.size], at + self.size >= len(frame)
            data = int.from_bytes(part + self.rng.randbytes(self.size - len(part)), "little")
            flag = bad if last else self.rng.getrandbits(1)  # without a meaning before the last word
            word = {"tdata": data, "tkeep": (1 << len(part)) - 1, "tlast": int(last), "tuser": int(flag)}
            await self.cycle(word, relayed(frame, bad) if last else None)
        return self.now - 1

    async def drain(self):
        """Waits until all has left, and compares it."""
        self.sink.stall = never()
        quiet = 0
        while quiet < 2 * LATENCY:
            await self.cycle()
            quiet = 0 if self.due or number(self.dut.m_axis_tvalid) else quiet + 1
        assert self.left == self.want and not self.partial
        assert self.relayed == len(self.want)
        assert self.claimed == len(self.want) + self.refused + self.dropped


@cocotb.test(timeout_time=3, timeout_unit="ms")
@cocotb.parametrize(idle=["never", "bursts", "at_random"], stall=["never", "bursts", "mostly"])
async def neighbours_get_their_frames(dut, idle, stall):
    """Frames with no fault, one or two, in any sizes; the shell refuses some, and the queue is full at times."""
    rng = random.Random(f"{idle} {stall}")
    relay = Relay(dut, rng, PATTERNS[idle], PATTERNS[stall])
    await start(dut)
    for _ in range(150):
        await relay.frame(*some_frame(rng, rng.sample(FAULTS, rng.choice([0, 0, 0, 1, 2]))))
    await relay.drain()
    assert relay.want and relay.refused > 5
    assert relay.dropped or stall != "mostly" or idle != "never"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def relays_nothing_else(dut):
    """A frame with each fault alone does not leave, and the next one does."""
    rng = random.Random(1)
    relay = Relay(dut, rng, refusals=0)
    await start(dut)
    for fault in FAULTS:
        for _ in range(4):
            await relay.frame(*some_frame(rng, [fault], 64))
            await relay.frame(*some_frame(rng, size=60))
            await relay.drain()
    assert len(relay.left) == 4 * len(FAULTS)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def leaves_in_its_cycles(dut):
    rng = random.Random(2)
    relay = Relay(dut, rng, refusals=0)
    await start(dut)
    for size in [60, 64, 65, 128, LARGEST]:
        ends = await relay.frame(*some_frame(rng, size=size))
        await relay.drain()
        assert relay.first_at[-1] - ends == LATENCY, f"a frame of {size} bytes"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def neighbours_change_at_once(dut):
    """The next frame goes to a neighbour's new MAC address; one that is removed gets none."""
    rng = random.Random(3)
    relay = Relay(dut, rng, refusals=0)
    await start(dut)
    first = list(NEIGHBOURS)
    for at in range(len(NEIGHBOURS)):
        ip = rng.randbytes(4)
        frame = OWN_MAC + rng.randbytes(6) + b"\x08\x00" + rng.randbytes(16) + ip + rng.randbytes(30)
        for mac in (rng.randbytes(6), rng.randbytes(6), rng.randbytes(6)):
            NEIGHBOURS[at] = (ip, mac)
            relay.show_neighbours()
            await relay.frame(frame)
            await relay.drain()
            assert relay.left[-1][:6] == mac
        NEIGHBOURS[at] = (bytes(4), mac)
        relay.show_neighbours()
        await relay.frame(frame)
        await relay.drain()
    assert len(relay.left) == 3 * len(NEIGHBOURS)
    NEIGHBOURS[:] = first


@pytest.mark.parametrize("size", [1, 8, 64])
def test_agg_relay(size):
    words = {1: 10, 8: 7, 64: 4}[size]  # log2: those of three of the largest frames
    run(
        "agg_relay",
        sources=[leaf(name) for name in LEAVES],
        parameters={"BYTES": size, "FRAME_BYTES": LARGEST, "NEIGHBOURS": len(NEIGHBOURS), "DEPTH_BITS": words, "FRAME_BITS": 3},
        simulator="verilator" if size == 1 else "icarus",
    )
