"""A whole card on Ethernet under test (-shell udp), and the hosts on its network.

Frames go in at eth_rx; scapy judges every frame that leaves at eth_tx, and what NETWORK.md says of all frames is
checked here: lengths, TTL, ECN, who sent it. self.sent has the packets with the Host that each is for. Frames that
pass from one Ethernet port to another are for the bench to check.
"""

import functools
import random

import cocotb
from cocotb.triggers import Event, FallingEdge
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP

import eth_frames
import ethernet
import model
import network_model
import zwire
from bench import bits, start
from cards import CardBench, run_card
from castagnoli import crc32c
from network_model import Host
from streams import StreamSink, StreamSource, never

OWN = ["-mac", eth_frames.MAC, "-ip", eth_frames.ADDRESS, "-udp-port", eth_frames.PORT]

LEASE_SECONDS, CLOCK = 5, 100_000_000  # without a board, a card counts on 100 MHz

# Frames that leave at one time: a chunk's copies, and a reply.
LATENCY = 200  # cycles of the shell, from a frame to its answer, without those of their words


def run_udp_card(name, flags, testcase=None):
    """Generates a card with shell udp and runs the calling file's cocotb tests on it."""
    run_card(f"udp_{name}", [*flags, "-shell", "udp", *OWN], testcase)


def host(number, ethernet=0):
    """Returns one of the hosts on the network, behind an Ethernet port of the card."""
    return Host(0x02_0000_001000 + number, 0xC6336400 + number, 50000 + number, ethernet)


class Line:
    """An Ethernet port of the card."""

    def __init__(self, dut, number, idle, stall, to):
        """to: is called with each beat that leaves."""
        name = f"eth_{{}}_p{number}"
        self.rx = StreamSource(dut, name.format("rx"), idle=idle(), fields=("tdata", "tkeep", "tlast", "tuser"))
        self.tx = StreamSink(dut, name.format("tx"), stall=stall(), fields=("tdata", "tkeep", "tlast"), to=to)
        self.leaves = getattr(dut, f"{name.format('tx')}_tvalid")
        self.partial = b""  # of the frame that leaves


class UdpCard(CardBench):
    """A card on Ethernet. A member is behind each port of its core; another host owns it.

    With one Ethernet port, all hosts are behind it. With several, the member at port p of the core is behind Ethernet
    port p, and the owner behind the first.
    """

    MODEL = network_model.NetworkCard

    def __init__(self, dut, idle=never, stall=never, seed=1):
        """idle, stall: patterns of the MAC's receive and transmit side."""
        super().__init__(dut, shared=True)
        self.rng = random.Random(seed)
        self.word = self.manifest["link"] // 8
        self.ethernet = self.manifest["ethernet"]
        self.members = [host(port, port % self.ethernet) for port in range(self.ports)]  # by port
        self.owner = self.accessing = host(100)
        self.own = self.model.own
        self.lines = [
            Line(dut, number, idle, stall, functools.partial(self._collect, number)) for number in range(self.ethernet)
        ]
        self.rx, self.tx = self.lines[0].rx, self.lines[0].tx
        self.frames = []  # that have left: cycle of the last word and bytes
        self.answers = []  # to ARP and echo requests, that no test has checked
        self.replies = []  # (header, payload, host), that no test has checked
        self.replied = Event()

    def ident(self):
        own = {"own": OWN_HOST, "ethernet": self.manifest["ethernet"], "lease": LEASE_SECONDS * CLOCK}
        return super().ident() | own

    async def reset(self):
        await start(self.dut)
        for line in self.lines:
            cocotb.start_soon(self._watch_pauses(line))
        await self.read("MAGIC")

    async def _watch_pauses(self, line):
        """Checks that no frame from the card has a pause inside."""
        while True:
            await FallingEdge(line.leaves)
            await FallingEdge(self.dut.clk)
            assert bits(line.leaves) == "1" or not line.partial, "a pause inside of a frame"

    def hurry(self):
        """Stops idle cycles and stalls of the MACs."""
        for line in self.lines:
            line.rx.idle, line.tx.stall = never(), never()

    # Frames from the card

    def _collect(self, at, beat):
        self.moved = self.cycle
        line, count = self.lines[at], beat["tkeep"].bit_length()
        assert count > 0 and beat["tkeep"] == (1 << count) - 1, f"eth_tx_p{at}_tkeep is {beat['tkeep']:#b}"
        assert beat["tlast"] or count == self.word, "a word inside of a frame is not full"
        line.partial += beat["tdata"].to_bytes(self.word, "little")[:count]
        if beat["tlast"]:
            frame, line.partial = line.partial, b""
            self._frame(frame, at)

    def _frame(self, frame, at):
        """Checks a frame that left at an Ethernet port, and records what it is."""
        self.frames.append((self.cycle, frame))
        parsed = ethernet.judge(frame)
        if ARP in parsed or ICMP in parsed:
            self.answers.append(frame)
            return
        packet = self._packet(frame, parsed, at)
        if packet[0]["kind"] == zwire.KIND_REPLY:
            self.replies.append(packet)
            self.replied.set()
        else:
            self.arrived(packet)

    def _packet(self, frame, parsed, at):
        """Returns header, payload and target of a frame with a datagram, and checks all its fields."""
        ip, udp = parsed[IP], parsed[UDP]
        assert (ip.version, ip.ihl, ip.flags, ip.frag, ip.ttl) == (4, 5, "DF", 0, 64)
        assert len(frame) == 14 + ip.len == 34 + udp.len, "a frame's lengths"
        data, crc = frame[42:-4], frame[-4:]
        assert crc32c(data) == int.from_bytes(crc, "little"), "a wrong CRC in a datagram from the card"
        kind = data[0] >> 4
        size = model.header_bytes(kind, shared=True)
        header, payload = model.unpack(data[:size]), data[size:]
        has_payload = zwire.KINDS[kind][3]
        self.check_sender(header, Host(number(parsed.src), address(ip.src), udp.sport))
        assert header["version"] == zwire.VERSION
        assert len(payload) == (self.result.bytes * header["length"] if has_payload else 0)
        assert ip.tos == (header["flags"] & 3 if has_payload else zwire.ECN_ECT0), "the mark in the IP header"
        return header, payload, Host(number(parsed.dst), address(ip.dst), udp.dport, at)

    def check_sender(self, header, sender):
        """Checks that the card sends a packet, and from where."""
        assert not model.from_host(header["kind"])
        assert sender == self.own, "the frame is not from the card"

    # As cards.py needs it

    def calm(self):
        chunk = max(self.format.bytes, self.result.bytes) * self.chunk + 100
        slowest = min(self.word, self.lanes * min(self.format.bytes, self.result.bytes))
        return super().calm() + LATENCY + 3 * chunk // slowest

    def busy(self):
        """Returns whether frames are still queued."""
        return any(line.rx.queue for line in self.lines)

    def idle(self, port):
        """Returns whether the member's queue, which all hosts behind its Ethernet port share, is short."""
        return len(self.lines[port % self.ethernet].rx.queue) * self.word < 4 * (self.chunk * self.format.bytes + 60)

    def count_access(self):
        """Counts the datagram of a register access."""
        self.model.counters["frames"] += 1

    def place(self, port):
        return self.members[port]

    def receivers(self, members, header, port):
        """Returns the ranks that a packet to a host is for, given the ports of the job's members."""
        if header["kind"] == zwire.KIND_STATUS:
            return [header["rank"]]
        its = [rank for rank, at in enumerate(members) if header["receivers"] >> rank & 1 and self.members[at] == port]
        assert its, f"a copy for {port}, which is none of the receivers {header['receivers']:#b}"
        return its

    def expand(self, expected):
        """Returns the packets with every field of their header; the model has made the copies."""
        return [({**model.unpack(bytes(model.header_bytes(h["kind"], True))), "version": zwire.VERSION, **h}, payload, to) for h, payload, to in expected]

    async def quiet(self):
        await super().quiet()
        for line in self.lines:
            assert not line.partial, f"the card stopped in a frame: {line.partial.hex()}"

    # Frames to the card

    def put(self, frame, bad=False, ethernet=0):
        """Queues a frame for an Ethernet port; bad: the MAC finds its FCS wrong."""
        for at in range(0, len(frame), self.word):
            part, last = frame[at : at + self.word], at + self.word >= len(frame)
            flag = bad if last else self.rng.getrandbits(1)  # without a meaning before the last word
            self.lines[ethernet].rx.put(
                {
                    "tdata": int.from_bytes(part, "little"),
                    "tkeep": (1 << len(part)) - 1,
                    "tlast": int(last),
                    "tuser": int(flag),
                }
            )

    def message(self, header, payload=b""):
        """Returns a datagram without its CRC; a kind that hosts do not send has the shortest header."""
        size = model.header_bytes(header["kind"], shared=True) if model.from_host(header["kind"]) else 14
        return model.pack({"version": zwire.VERSION, **header}, size) + payload

    def frame(self, sender, header, payload=b"", bad=False):
        """Returns the frame of a packet; its mark is in the IP header alone. bad: the datagram's CRC is wrong."""
        header = {"flags": 0, **header}
        mark, header["flags"] = header["flags"] & 3, header["flags"] ^ self.rng.getrandbits(2)
        message = self.message(header, payload)
        crc = crc32c(message) ^ (1 << self.rng.randrange(32) if bad else 0)
        return ethernet.udp_frame(sender, self.own, message + crc.to_bytes(4, "little"), mark)

    def send(self, port, header, payload=b"", bad=False):
        """Queues a member's packet."""
        member = self.members[port]
        self.put(self.frame(member, header, payload, bad), ethernet=member.ethernet)

    async def exchange(self, port, header, payload=b"", bad=False):
        """Sends a member's packet and compares the outcome with the model."""
        member = self.members[port]
        await self.transmit(self.frame(member, header, payload, bad), ethernet=member.ethernet)

    async def transmit(self, frame, bad=False, ethernet=0):
        """Sends a frame and compares the outcome with the model: packets, replies, answers."""
        self.put(frame, bad, ethernet)
        packets, answers = self.model.frame(frame, bad, ethernet)
        await self.expect([p for p in packets if p[0]["kind"] != zwire.KIND_REPLY])
        replies, self.replies = self.replies, []
        assert replies == self.expand([p for p in packets if p[0]["kind"] == zwire.KIND_REPLY])
        found, self.answers = self.answers, []
        assert found == answers, f"answers {[f.hex() for f in found]}, want {[f.hex() for f in answers]}"

    # Registers

    async def access(self, header):
        """Makes an access from the host self.accessing."""
        self.model.sender = self.accessing
        value = await super().access(header)
        self.own = self.model.own  # in effect when the reply has left
        return value

    async def register(self, header):
        asking, tag = self.accessing, self.rng.getrandbits(16)
        self.put(self.frame(asking, {**header, "length": tag}), ethernet=asking.ethernet)
        while not (mine := [r for r in self.replies if r[2] == asking and r[0]["length"] == tag]):
            self.replied.clear()
            await self.replied.wait()
        self.replies.remove(mine[0])
        return {**mine[0][0], "length": header.get("length", 0)}

    async def stage_members(self, ports=None):
        """Stages the addresses of the members at the ports, by default at all."""
        for port in range(self.ports):
            if ports is None or ports >> port & 1:
                await self.write("MEMBER_ADDRESS", self.members[port].address, 0, port)
                await self.write("MEMBER_MAC", self.members[port].place, 0, port)

    async def set_up(self, epoch, ports=None, token=0x1234_5678_9ABC_DEF0, **how):
        """Takes the card, which forgets what was staged, and sets a job up."""
        await self.write("OWNER", token)
        await self.stage_members(ports)
        await super().set_up(epoch, ports, token=token, **how)

    async def check_registers(self):
        await super().check_registers()
        for name in [*zwire.NETWORK_REGISTERS, *zwire.NETWORK_COUNTER_NAMES]:
            for job in range(self.jobs + 1 if name.startswith("JOB_") else 1):
                for port in range(self.ports + 1 if name.startswith(("JOB_", "MEMBER_")) else 1):
                    await self.read(name, job, port)


def number(mac):
    """Returns a MAC address, as scapy writes it, as a number."""
    return int(mac.replace(":", ""), 16)


def address(ip):
    """Returns an IPv4 address, as scapy writes it, as a number."""
    return int.from_bytes(eth_frames.ip_bytes(ip), "big")


OWN_HOST = Host(number(eth_frames.MAC), address(eth_frames.ADDRESS), eth_frames.PORT)
